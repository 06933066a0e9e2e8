"""Published weights: found in a folder or on the hub, known by their digests, loaded without code.

Only safetensors are read (other formats can run code when they are opened), and never code that
comes with a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bias_pipeline.errors import DataError, ResourceError, UsageError, did_you_mean
from bias_pipeline.io.digests import digest_of
from bias_pipeline.io.json_files import expect, load_json
from bias_pipeline.models.folders import (
    check_config,
    check_preprocessing,
    require_preprocessing,
    require_vocabulary,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import torch
    from PIL.Image import Image

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
_OTHER_WEIGHTS = (".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack", ".pkl")
_BESIDE = ("*.json", "*.txt", "*.model")  # configuration, preprocessing, vocabulary


@dataclass(frozen=True)
class Pretrained:
    """A model on disk.

    Attributes:
        name: as the user wrote it.
        folder: where it lies.
        kind: its ``model_type``.
        files: name to SHA-256 (hex) of all that decides what it computes.
    """

    name: str
    folder: Path
    kind: str
    files: Mapping[str, str]


def find_pretrained(name: str, kinds: Sequence[str], *, revision: str = "") -> Pretrained:
    """Find a model; nothing is loaded, and neither PyTorch nor transformers imported.

    Args:
        name: a folder, or a name on the hub (with ``HF_HUB_OFFLINE=1`` from its cache alone).
        kinds: the values of ``model_type`` that will do.
        revision: of a name on the hub; its main one if empty.

    Raises:
        DataError: if it is of another kind, has weights of other formats alone, is too large to be
            built or asks for code.
        ResourceError: if it, or a file of it, is not there.
    """
    folder = Path(name).expanduser()
    if not folder.is_dir():
        folder = _of_hub(name, revision)
    path = folder / "config.json"
    config = expect(load_json(path, what="a model's configuration"), dict, path, "")
    kind = str(config.get("model_type"))
    if kind not in kinds:
        raise DataError(f"{name}: model type {kind!r} will not do; {did_you_mean(kind, kinds)}")
    check_config(path, config)
    names = [*_weights(folder), *(path.name for own in _BESIDE for path in folder.glob(own))]
    files = {own: digest_of(folder / own) for own in sorted(set(names))}
    return Pretrained(name, folder, kind, files)


def _of_hub(name: str, revision: str) -> Path:
    import huggingface_hub
    from huggingface_hub.constants import HF_HUB_CACHE
    from huggingface_hub.errors import HFValidationError

    try:
        found = huggingface_hub.snapshot_download(
            name,
            revision=revision or None,
            allow_patterns=["*.safetensors", *_BESIDE],
            ignore_patterns=["*/*"],
        )
    except HFValidationError:
        raise ResourceError(
            f"model {name}: there is no such folder (relative paths start at {Path.cwd()})"
        ) from None
    except Exception as error:  # of the hub's client, of its transport, of the disk
        given = f" --revision {revision}" if revision else ""
        raise ResourceError(
            f"model {name}{given}: no such folder at {Path.cwd()}, not in {HF_HUB_CACHE}, and the "
            f"hub does not give it ({_first_line(error)}); where there is a network, "
            f"`hf download {name}{given}` fetches it there"
        ) from error
    return Path(str(found))


def _weights(folder: Path) -> list[str]:
    """The names of the files of weights."""
    if (folder / WEIGHTS).is_file():
        return [WEIGHTS]
    index = folder / INDEX
    others = [path for path in folder.iterdir() if path.suffix in _OTHER_WEIGHTS]
    if not index.is_file() and not others:
        raise ResourceError(f"{folder}: {WEIGHTS} is absent; fetch it into this folder")
    if not index.is_file():
        raise DataError(
            f"{folder}: neither {WEIGHTS} nor {INDEX}; other formats can run code and are not "
            "read: load the model where you trust it and write it with save_pretrained"
        )
    read = expect(load_json(index, what="an index of weights"), dict, index, "")
    names = set(map(str, expect(read.get("weight_map"), dict, index, "weight_map").values()))
    if any(Path(own).name != own or not own.endswith(".safetensors") for own in names):
        raise DataError(f"{index}: names files that are no safetensors beside it")
    return sorted(names)


def load(model: Pretrained, architecture: Any, device: torch.device) -> Any:
    """The network in float32, ready to answer.

    Args:
        model: the model.
        architecture: the class of transformers that it is.
        device: where to.

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
        )
    except Exception as error:  # whatever a broken file makes of the library
        raise DataError(f"{model.name}: cannot be loaded ({_first_line(error)})") from error
    if told["missing_keys"]:
        raise DataError(
            f"{model.name}: {len(told['missing_keys'])} weights are missing, such as "
            f"{min(told['missing_keys'])}; is it a {architecture.__name__}?"
        )
    return network.to(device=device, dtype=torch.float32).eval()


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


class Preprocessing:
    """A model's own preprocessing of pictures, through Pillow wherever it runs.

    Args:
        model: the model.

    Raises:
        DataError: if it is broken, makes pictures of no size or a huge one, or of several shapes.
        ResourceError: if it is absent.
    """

    def __init__(self, model: Pretrained) -> None:
        import transformers
        from PIL import Image

        require_preprocessing(model.folder, model.files)
        for path in sorted(model.folder.glob("*processor_config.json")):
            read = load_json(path, what="a model's preprocessing")
            check_preprocessing(path, expect(read, dict, path, ""))
        # Torchvision resizes a little differently; a result must not depend on its being there.
        recent = int(transformers.__version__.partition(".")[0]) >= 5
        try:
            self._process = transformers.AutoImageProcessor.from_pretrained(  # type: ignore[no-untyped-call]
                model.folder,
                local_files_only=True,
                trust_remote_code=False,
                **({"backend": "pil"} if recent else {"use_fast": False}),
            )
            shapes = {self(Image.new("RGB", size)).shape for size in ((40, 30), (30, 60))}
        except Exception as error:  # whatever a broken file makes of the library
            raise DataError(
                f"{model.name}: preprocessing cannot be loaded ({_first_line(error)})"
            ) from error
        if len(shapes) > 1:
            raise DataError(
                f"{model.name}: its preprocessing makes pictures of different shapes; set "
                "do_center_crop or a height and a width in preprocessor_config.json"
            )

    def __call__(self, photo: Image) -> npt.NDArray[np.float32]:
        """(3, H, W) what the model looks at."""
        found: npt.NDArray[np.float32] = self._process(images=photo, return_tensors="np")[
            "pixel_values"
        ][0]
        return found


def tokenizer(model: Pretrained) -> Any:
    """A model's own tokenizer.

    Raises:
        DataError: if it is broken.
        ResourceError: if it is absent.
    """
    import transformers

    require_vocabulary(model.folder, model.files)
    try:
        return transformers.AutoTokenizer.from_pretrained(
            model.folder, local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # whatever a broken or absent file makes of the library
        raise DataError(
            f"{model.name}: its tokenizer cannot be loaded ({_first_line(error)})"
        ) from error


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
        raise ResourceError(f"device {name}: {_first_line(error)}") from error
    return device
