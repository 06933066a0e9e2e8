"""Pictures from prompts, by a diffusion pipeline on disk (diffusers).

As in the other models, only safetensors are read, and no code that comes with a model is run.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.io.digests import digest_of
from bias_pipeline.io.json_files import expect, load_json
from bias_pipeline.io.machine import DIFFUSION

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

INDEX = "model_index.json"
# Whose classes a pipeline may be made of; None: a part that it does without.
_LIBRARIES = ([None], ["diffusers"], ["transformers"], ["stable_diffusion"])
_READ = ("*.json", "*/*.json", "*/*.txt", "*/*.model", "*/*.safetensors")


@dataclass(frozen=True)
class ImageModel:
    """A diffusion pipeline on disk."""

    folder: Path  # where it lies
    files: Mapping[str, str]  # name to SHA-256 (hex) of all files that decide its pictures


def find_image_model(folder: Path) -> ImageModel:
    """Find a pipeline without loading it.

    Args:
        folder: as ``save_pretrained`` of diffusers writes it.

    Raises:
        DataError: if it needs code of its own, or has no weights in safetensors.
        ResourceError: if the folder holds no pipeline.
    """
    path = folder / INDEX
    if not path.is_file():
        raise ResourceError(
            f"{folder}: holds no diffusion pipeline ({INDEX}); name a folder that diffusers' "
            "save_pretrained wrote"
        )
    index = expect(load_json(path, what="the index of a diffusion pipeline"), dict, path, "")
    for name, part in index.items():
        if isinstance(part, list) and part[:1] not in _LIBRARIES:
            raise DataError(
                f"{path}, {name}: is made of code that comes with the model, which is not run; "
                "name a pipeline of diffusers' own classes"
            )
    names = sorted({p.relative_to(folder).as_posix() for kind in _READ for p in folder.glob(kind)})
    if not any(name.endswith(".safetensors") for name in names):
        raise DataError(
            f"{folder}: no weights in safetensors; other formats can run code and are not read: "
            "write the pipeline with save_pretrained where you trust it"
        )
    return ImageModel(folder, {name: digest_of(folder / name) for name in names})


class TextToImage:
    """A loaded pipeline.

    Args:
        model: the pipeline.
        device: that it runs on.
        steps: of denoising.

    Raises:
        DataError: if it cannot be loaded.
    """

    def __init__(self, model: ImageModel, device: torch.device, steps: int) -> None:
        DIFFUSION.require()
        from diffusers import DiffusionPipeline

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of what a library will rename
                self._pipeline: Any = DiffusionPipeline.from_pretrained(
                    model.folder, local_files_only=True, use_safetensors=True
                )
        except (OSError, ValueError, RuntimeError, AttributeError, KeyError, TypeError) as error:
            first = str(error).partition("\n")[0]
            raise DataError(f"{model.folder}: cannot be loaded ({first})") from error
        self._pipeline.to(device)
        self._pipeline.set_progress_bar_config(disable=True)
        self._steps = steps

    def picture(self, prompt: str, seed: int) -> Image:
        """The picture of a prompt; the noise that it begins with depends on the seed alone."""
        import torch

        # On the processor, so that every device begins with the same noise.
        noise = torch.Generator("cpu").manual_seed(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = self._pipeline(prompt, num_inference_steps=self._steps, generator=noise)
        picture: Image = made.images[0]
        return picture
