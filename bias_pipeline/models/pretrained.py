"""Finds published weights on disk, identifies them by digests, and loads them but no code.

Only safetensors are read, since other formats can run code when they are opened. Code that comes
with a model is never read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bias_pipeline.errors import (
    BiasPipelineError,
    DataError,
    ResourceError,
    UsageError,
    inflect,
    listed_names,
)
from bias_pipeline.io.digests import digest_of
from bias_pipeline.io.json_files import expect, load_json
from bias_pipeline.io.machine import ADAPTERS, disable_tf32
from bias_pipeline.models.model_location import (
    MAIN,
    Place,
    check_config,
    check_preprocessing,
    find_place,
    prefetch_advice,
    require_preprocessing,
    require_vocabulary,
)
from bias_pipeline.models.plain_preprocessing import quicken

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

    from bias_pipeline.array_types import Float32Array

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
_OTHER_WEIGHTS = (".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack", ".pkl")
_COMPUTED = ".relative_position_index"  # of windows; only one major version of the library saves it
# The files of an adapter such as LoRA, which transformers applies if peft is installed.
ADAPTER_CONFIG, ADAPTER = "adapter_config.json", "adapter_model.safetensors"
# Files that decide a model's output beside weights: configuration, preprocessing, vocabulary,
# templates, and the pooling of a sentence model.
BESIDE = (
    "*.json", "*.txt", "*.model", "*.jinja", "additional_chat_templates/*.jinja",
    "[0-9]*_*/config.json", "video_processor/*.json",
)  # fmt: skip


@dataclass(frozen=True)
class Pretrained:
    name: str  # as the user wrote it
    folder: Path  # the model's folder
    kind: str  # the model's `model_type`
    files: Mapping[str, str]  # name to SHA-256 (hex) of all files that decide its output
    source: str = "a folder"  # where the model comes from
    revision: str = ""  # the revision on the hub, if known
    packed: int = 0  # size in bytes of the packed weights; 0: the weights need no unpacking

    def __hash__(self) -> int:
        return hash((self.name, *self.files.items()))


def find_pretrained(name: str, kinds: Sequence[str] | None, *, revision: str = "") -> Pretrained:
    """Find a model without loading it and without importing PyTorch or transformers."""
    place = find_place(name, revision or MAIN)
    folder = place.folder
    path = folder / "config.json"
    if not path.is_file():
        raise missing_file(name, place, path.name)
    config = expect(load_json(path, what="a model's configuration"), dict, path, "")
    kind = str(config.get("model_type"))
    if kinds is not None and kind not in kinds:
        raise DataError(f"{name}: model type {kind!r} is not supported here; {listed_names(kinds)}")
    check_config(path, config)
    beside = (
        path.relative_to(folder).as_posix() for pattern in BESIDE for path in folder.glob(pattern)
    )
    names = {*_weights(name, place), *_adapter(folder), *beside}
    files = {file_name: digest_of(folder / file_name) for file_name in sorted(names)}
    if place.sha256 and files[WEIGHTS] != place.sha256:
        raise DataError(
            f"{folder / WEIGHTS}: the weights in {place.source} are not those published as {name}; "
            "reinstall the package, or give a folder"
        )
    return Pretrained(name, folder, kind, files, place.source, place.revision)


def _weights(name: str, place: Place) -> list[str]:
    """The names of the files of weights; an absent file is refused."""
    folder = place.folder
    if (folder / WEIGHTS).is_file():
        return [WEIGHTS]
    index = folder / INDEX
    others = [path for path in folder.iterdir() if path.suffix in _OTHER_WEIGHTS]
    if not index.is_file() and not others:
        raise missing_file(name, place, WEIGHTS)
    if not index.is_file():
        raise DataError(
            f"{folder}: has neither {WEIGHTS} nor {INDEX}; other formats can run code and are "
            "not read: load the model where you trust it and write it with save_pretrained"
        )
    read = expect(load_json(index, what="an index of weights"), dict, index, "")
    names = set(map(str, expect(read.get("weight_map"), dict, index, "weight_map").values()))
    if any(
        Path(file_name).name != file_name or not file_name.endswith(".safetensors")
        for file_name in names
    ):
        raise DataError(f"{index}: names files that are not safetensors in its folder")
    absent = sorted(file_name for file_name in names if not (folder / file_name).is_file())
    if absent:
        raise missing_file(name, place, absent[0])
    return sorted(names)


def _adapter(folder: Path) -> list[str]:
    """A list with the adapter's file of weights; empty if the folder has no adapter."""
    if not (folder / ADAPTER_CONFIG).is_file():
        return []
    if not (folder / ADAPTER).is_file():
        raise DataError(
            f"{folder}: {ADAPTER_CONFIG} names an adapter and {ADAPTER} is absent; fetch it, or "
            "remove the configuration to use the model without an adapter"
        )
    ADAPTERS.require()
    return [ADAPTER]


def checkpoint_of(model: Pretrained) -> Path:
    """The file of weights of a model that has only one such file, as FIBER and OpenCLIP have."""
    return model.folder / next(iter(model.files))


def missing_file(name: str, place: Place, file: str) -> ResourceError:
    """The error for a model that lacks a file, for example after an incomplete download."""
    if place.revision:
        remedy = f"{prefetch_advice(name, place.revision)} fetches the rest"
    else:
        remedy = "fetch it into this folder"
    return ResourceError(f"{place.folder}: {file} is absent; {remedy}")


def load(
    model: Pretrained,
    architecture: Any,
    device: torch.device,
    unused: tuple[str, ...] = (),
    dtype: str = "float32",
    config: Any = None,
) -> Any:
    import torch
    from transformers.utils import logging as library

    library.set_verbosity_error()  # type: ignore[no-untyped-call]
    library.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        network, report = architecture.from_pretrained(
            model.folder,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
            # A later cast would round the weights that the library keeps in float32
            torch_dtype=getattr(torch, dtype),
            **({} if config is None else {"config": config}),
        )
    except Exception as error:  # whatever the library raises on a broken file
        # The library's advice does not help; its two major versions phrase it differently.
        other = any(phrase in str(error) for phrase in ("mismatched_sizes", "size mismatch"))
        why = "weights of other sizes than config.json says" if other else first_line(error)
        raise DataError(
            f"{model.name}: cannot be loaded ({why}); fetch its files again, all of one revision"
        ) from error
    missing = [
        key
        for key in report["missing_keys"]
        if not key.startswith(unused) and not key.endswith(_COMPUTED)
    ]
    if missing:
        raise DataError(
            f"{model.name}: {inflect(len(missing), 'weights are')} missing, such as "
            f"{min(missing)}; is it a "
            f"{type(network).__name__}?"
        )
    return network.to(device).eval()


def first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def image_processor(model: Pretrained) -> Any:
    """The library's preprocessing of a model's pictures, which always uses Pillow."""
    import transformers

    require_preprocessing(model.folder, model.files)
    for path in sorted(model.folder.glob("p*processor_config.json")):
        read = load_json(path, what="a model's preprocessing")
        check_preprocessing(path, expect(read, dict, path, ""))
    # Torchvision resizes a little differently; results must not depend on its installation.
    recent = int(transformers.__version__.partition(".")[0]) >= 5
    processor = transformers.AutoImageProcessor.from_pretrained(  # type: ignore[no-untyped-call]
        model.folder,
        local_files_only=True,
        trust_remote_code=False,
        **({"backend": "pil"} if recent else {"use_fast": False}),
    )
    quicken(processor)
    return processor


class Preprocessing:
    """A model's own preprocessing of pictures, which always uses Pillow."""

    def __init__(self, model: Pretrained) -> None:
        from PIL import Image

        try:
            self._process = image_processor(model)
            self._shapes = {self(Image.new("RGB", size)).shape for size in ((40, 30), (30, 60))}
        except BiasPipelineError:
            raise
        except Exception as error:  # whatever the library raises on a broken file
            raise DataError(
                f"{model.name}: preprocessing cannot be loaded ({first_line(error)})"
            ) from error
        self._model = model

    def of_one_shape(self) -> Preprocessing:
        """The same object, unless it makes pictures of different shapes, which are refused."""
        if len(self._shapes) > 1:
            raise DataError(
                f"{self._model.name}: its preprocessing makes pictures of different shapes; set "
                "do_center_crop or a height and a width in preprocessor_config.json"
            )
        return self

    def __call__(self, photo: Image) -> Float32Array:
        """(3, H, W) the model's input."""
        pixels: Float32Array = self._process(images=photo, return_tensors="np")["pixel_values"][0]
        return pixels


def tokenizer(model: Pretrained) -> Any:
    import transformers

    require_vocabulary(model.folder, model.files)
    path = model.folder / "tokenizer_config.json"
    config = load_json(path, what="a tokenizer's configuration") if path.is_file() else {}
    # The name in version 5 of a class that version 4 lacks
    fast = isinstance(config, dict) and config.get("tokenizer_class") == "TokenizersBackend"
    kind: Any = transformers.PreTrainedTokenizerFast if fast else transformers.AutoTokenizer
    try:
        read = kind.from_pretrained(model.folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # whatever the library raises on a broken or absent file
        raise DataError(
            f"{model.name}: its tokenizer cannot be loaded ({first_line(error)})"
        ) from error
    longest = read.model_max_length
    if not isinstance(longest, int | float) or not longest >= 1:
        raise DataError(
            f"{model.name}: tokenizer_config.json says model_max_length={str(longest)[:40]}; "
            "set it to the number of tokens that the model reads"
        )
    return read


def check_tokens(name: str, rows: Iterable[Sequence[int]], n_tokens: int) -> None:
    """Refuse tokens that a network does not know, such as words added to its tokenizer later."""
    highest = max(map(max, rows), default=0)
    if highest >= n_tokens:
        raise DataError(
            f"{name}: its tokenizer has a token of number {highest}, but its network has only "
            f"{n_tokens:,} tokens, from 0; take the tokenizer of the same model"
        )


def device_of(name: str) -> torch.device:
    """The device with a name; ``auto`` means the first GPU if there is one."""
    import torch

    disable_tf32()
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UsageError(f"device {name!r} is unknown; use auto, cpu, cuda or cuda:1") from None
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ResourceError(f"device {name}: {first_line(error)}") from error
    return device


def numbers_of(tensor: torch.Tensor, name: str) -> Float32Array:
    """The output of a network as float32 numbers of the same shape."""
    import numpy as np

    numbers: Float32Array = tensor.float().cpu().numpy()
    if not np.isfinite(numbers).all():
        raise DataError(f"{name}: it gives values that are not numbers; its weights are broken")
    return numbers
