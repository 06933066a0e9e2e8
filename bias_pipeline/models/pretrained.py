"""Published weights: found in a folder or on the hub, known by their digests, loaded without code.

Only safetensors are read (other formats can run code when they are opened), and never code that
comes with a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bias_pipeline.errors import (
    BiasPipelineError,
    DataError,
    ResourceError,
    UsageError,
    did_you_mean,
)
from bias_pipeline.io.digests import digest_of
from bias_pipeline.io.extras import ADAPTERS
from bias_pipeline.io.json_files import expect, load_json
from bias_pipeline.models.folders import (
    check_config,
    check_preprocessing,
    require_preprocessing,
    require_vocabulary,
)
from bias_pipeline.models.places import MAIN, Place, find_place, prefetch_command

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import torch
    from PIL.Image import Image

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
_OTHER_WEIGHTS = (".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack", ".pkl")
_COMPUTED = ".relative_position_index"  # of windows; saved by one major of the library alone
# A LoRA or the like, which transformers applies to the weights beside it wherever peft is there.
ADAPTER_CONFIG, ADAPTER = "adapter_config.json", "adapter_model.safetensors"
# Configuration, preprocessing, vocabulary, templates; pooling of a sentence model.
BESIDE = (
    "*.json", "*.txt", "*.model", "*.jinja", "additional_chat_templates/*.jinja",
    "[0-9]*_*/config.json",
)  # fmt: skip


@dataclass(frozen=True)
class Pretrained:
    """A model on disk.

    Attributes:
        name: as the user wrote it.
        folder: where it lies.
        kind: its ``model_type``.
        files: name to SHA-256 (hex) of all that decides what it computes.
        source: what brought it there.
        revision: of the hub, where one is known.
    """

    name: str
    folder: Path
    kind: str
    files: Mapping[str, str]
    source: str = "a folder"
    revision: str = ""

    def __hash__(self) -> int:
        """Of its files' digests: they are what it is."""
        return hash((self.name, *self.files.items()))


def find_pretrained(name: str, kinds: Sequence[str], *, revision: str = "") -> Pretrained:
    """Find a model; nothing is loaded, and neither PyTorch nor transformers imported.

    Args:
        name: a folder, or a name on the hub, looked up in packages and the hub's cache.
        kinds: the values of ``model_type`` that will do.
        revision: of a name on the hub; ``main`` if empty.

    Raises:
        DataError: if it is of another kind, has weights of other formats alone, is too large to be
            built or asks for code.
        ResourceError: if it, or a file of it, is not there.
    """
    place = find_place(name, revision or MAIN)
    folder = place.folder
    path = folder / "config.json"
    if not path.is_file():
        raise _unfinished(name, place, path.name)
    config = expect(load_json(path, what="a model's configuration"), dict, path, "")
    kind = str(config.get("model_type"))
    if kind not in kinds:
        raise DataError(f"{name}: model type {kind!r} will not do; {did_you_mean(kind, kinds)}")
    check_config(path, config)
    beside = (path.relative_to(folder).as_posix() for own in BESIDE for path in folder.glob(own))
    names = {*_weights(name, place), *_adapter(folder), *beside}
    files = {own: digest_of(folder / own) for own in sorted(names)}
    if place.sha256 and files[WEIGHTS] != place.sha256:
        raise DataError(
            f"{folder / WEIGHTS}: in {place.source} are other weights than those that were "
            f"published as {name}; install the package anew, or give a folder"
        )
    return Pretrained(name, folder, kind, files, place.source, place.revision)


def _weights(name: str, place: Place) -> list[str]:
    """The names of the files of weights, all of which are there."""
    folder = place.folder
    if (folder / WEIGHTS).is_file():
        return [WEIGHTS]
    index = folder / INDEX
    others = [path for path in folder.iterdir() if path.suffix in _OTHER_WEIGHTS]
    if not index.is_file() and not others:
        raise _unfinished(name, place, WEIGHTS)
    if not index.is_file():
        raise DataError(
            f"{folder}: neither {WEIGHTS} nor {INDEX}; other formats can run code and are not "
            "read: load the model where you trust it and write it with save_pretrained"
        )
    read = expect(load_json(index, what="an index of weights"), dict, index, "")
    names = set(map(str, expect(read.get("weight_map"), dict, index, "weight_map").values()))
    if any(Path(own).name != own or not own.endswith(".safetensors") for own in names):
        raise DataError(f"{index}: names files that are no safetensors beside it")
    absent = sorted(own for own in names if not (folder / own).is_file())
    if absent:
        raise _unfinished(name, place, absent[0])
    return sorted(names)


def _adapter(folder: Path) -> list[str]:
    """The name of an adapter's weights, if there is an adapter beside the model's.

    Raises:
        DataError: if it is in another format.
        ResourceError: if peft, which applies it, is not installed: without it the library would
            pass over the adapter in silence.
    """
    if not (folder / ADAPTER_CONFIG).is_file():
        return []
    if not (folder / ADAPTER).is_file():
        raise DataError(
            f"{folder}: {ADAPTER_CONFIG} names an adapter and {ADAPTER} is absent; fetch it, or "
            "remove the configuration to use the model without an adapter"
        )
    ADAPTERS.require()
    return [ADAPTER]


def weight_names(model: Pretrained) -> set[str]:
    """The names of its weights, none of which is read.

    Raises:
        DataError: if a file is broken.
    """
    from safetensors import safe_open

    found: set[str] = set()
    for path in (model.folder / own for own in model.files if own.endswith(".safetensors")):
        try:
            with safe_open(path, "np") as file:
                found.update(file.keys())
        except Exception as error:  # whatever a broken file makes of the library
            raise DataError(
                f"{path}: no file of weights, or cut short ({first_line(error)}); fetch it again"
            ) from error
    return found


def _unfinished(name: str, place: Place, file: str) -> ResourceError:
    """A model of which a file is missing, as half a download leaves it."""
    if place.revision:
        remedy = f"{prefetch_command(name, place.revision)} fetches the rest"
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
    """The network, ready to predict.

    Args:
        model: the model.
        architecture: the class of transformers that it is.
        device: where to.
        unused: beginnings of weights that play no part and may be missing.
        dtype: the precision it computes in, by its name in PyTorch.
        config: the library's, where that of the folder will not do.

    Raises:
        DataError: if weights are broken, or some are missing and would be made up.
    """
    import torch
    from transformers.utils import logging as library

    library.set_verbosity_error()  # type: ignore[no-untyped-call]
    library.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        network, told = architecture.from_pretrained(
            model.folder,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
            **({} if config is None else {"config": config}),
        )
    except Exception as error:  # whatever a broken file makes of the library
        # What the library advises is no way out; its two majors say it in two ways.
        other = any(told in str(error) for told in ("mismatched_sizes", "size mismatch"))
        why = "weights of other sizes than config.json says" if other else first_line(error)
        raise DataError(
            f"{model.name}: cannot be loaded ({why}); fetch its files again, all of one revision"
        ) from error
    missing = [
        key
        for key in told["missing_keys"]
        if not key.startswith(unused) and not key.endswith(_COMPUTED)
    ]
    if missing:
        raise DataError(
            f"{model.name}: {len(missing)} weights are missing, such as {min(missing)}; is it a "
            f"{architecture.__name__}?"
        )
    return network.to(device=device, dtype=getattr(torch, dtype)).eval()


def first_line(error: Exception) -> str:
    """What an error of a library says, cut to its first line."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def image_processor(model: Pretrained) -> Any:
    """The library's preprocessing of a model's pictures, through Pillow wherever it runs.

    Raises:
        DataError: if it makes pictures of no size or a huge one.
        ResourceError: if it is absent.
    """
    import transformers

    require_preprocessing(model.folder, model.files)
    for path in sorted(model.folder.glob("*processor_config.json")):
        read = load_json(path, what="a model's preprocessing")
        check_preprocessing(path, expect(read, dict, path, ""))
    # Torchvision resizes a little differently; a result must not depend on its being there.
    recent = int(transformers.__version__.partition(".")[0]) >= 5
    return transformers.AutoImageProcessor.from_pretrained(  # type: ignore[no-untyped-call]
        model.folder,
        local_files_only=True,
        trust_remote_code=False,
        **({"backend": "pil"} if recent else {"use_fast": False}),
    )


class Preprocessing:
    """A model's own preprocessing of pictures, through Pillow wherever it runs.

    Args:
        model: the model.

    Raises:
        DataError: if it is broken, or makes pictures of no size or a huge one.
        ResourceError: if it is absent.
    """

    def __init__(self, model: Pretrained) -> None:
        from PIL import Image

        try:
            self._process = image_processor(model)
            self._told = _told(model.kind, self._process)
            self._shapes = {self(Image.new("RGB", size)).shape for size in ((40, 30), (30, 60))}
        except BiasPipelineError:
            raise
        except Exception as error:  # whatever a broken file makes of the library
            raise DataError(
                f"{model.name}: preprocessing cannot be loaded ({first_line(error)})"
            ) from error
        self._model = model

    def of_one_shape(self) -> Preprocessing:
        """Itself, for networks that take several pictures at once.

        Raises:
            DataError: if it makes pictures of several shapes.
        """
        if len(self._shapes) > 1:
            raise DataError(
                f"{self._model.name}: its preprocessing makes pictures of different shapes; set "
                "do_center_crop or a height and a width in preprocessor_config.json"
            )
        return self

    def __call__(self, photo: Image) -> npt.NDArray[np.float32]:
        """(3, H, W) what the model looks at."""
        found: npt.NDArray[np.float32] = self._process(
            images=photo, return_tensors="np", **self._told
        )["pixel_values"][0]
        return found


def _told(kind: str, process: Any) -> dict[str, bool]:
    """What a processor is told at each call although its files say it.

    BridgeTower's of transformers 4.51 crops only where the call asks for it.
    """
    return {"do_center_crop": process.do_center_crop} if kind == "bridgetower" else {}


def tokenizer(model: Pretrained) -> Any:
    """A model's own tokenizer.

    Raises:
        DataError: if it is broken.
        ResourceError: if it is absent.
    """
    require_vocabulary(model.folder, model.files)
    try:
        read = _tokenizer_class(model.folder).from_pretrained(
            model.folder, local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # whatever a broken or absent file makes of the library
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


def _tokenizer_class(folder: Path) -> Any:
    """The library's class for a tokenizer; the name that version 5 writes, 4 does not know."""
    import transformers

    path = folder / "tokenizer_config.json"
    told = load_json(path, what="a tokenizer's configuration") if path.is_file() else {}
    named = isinstance(told, dict) and told.get("tokenizer_class") == "TokenizersBackend"
    return transformers.PreTrainedTokenizerFast if named else transformers.AutoTokenizer


def device_of(name: str) -> torch.device:
    """A device by name; ``auto`` is the first GPU if there is one.

    Raises:
        UsageError: if there is no such name.
        ResourceError: if there is no such device.
    """
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UsageError(f"device {name!r} is unknown; such as auto, cpu, cuda, cuda:1") from None
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ResourceError(f"device {name}: {first_line(error)}") from error
    return device


def numbers_of(found: torch.Tensor, name: str) -> npt.NDArray[np.float32]:
    """What a network gives, in its shape.

    Args:
        found: from any device, of any precision.
        name: of the model.

    Raises:
        DataError: if some of it is NaN or infinite.
    """
    import numpy as np

    numbers: npt.NDArray[np.float32] = found.float().cpu().numpy()
    if not np.isfinite(numbers).all():
        raise DataError(f"{name}: it gives what are no numbers; its weights are broken")
    return numbers
