"""Makes pictures from prompts, with a diffusion pipeline on disk (diffusers).

Only safetensors are read, and no code of a model is run. The usual prompts ask for pictures in
which nobody can tell a person's group.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bias_pipeline.data.tables import check_file, open_rows
from bias_pipeline.errors import DataError, ResourceError, UsageError, cannot_write
from bias_pipeline.io.digests import digest_of
from bias_pipeline.io.files import table_csv, write_file
from bias_pipeline.io.json_files import expect, load_json
from bias_pipeline.io.machine import DIFFUSION
from bias_pipeline.io.progress import bar, track
from bias_pipeline.people.anonymous_pictures import PICTURES, TABLE

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

INDEX = "model_index.json"
# The libraries whose classes a pipeline may consist of; None: the pipeline lacks that part.
_LIBRARIES = ([None], ["diffusers"], ["transformers"], ["stable_diffusion"])
_READ = ("*.json", "*/*.json", "*/*.txt", "*/*.model", "*/*.safetensors")


@dataclass(frozen=True)
class ImageModel:
    folder: Path  # the folder of the pipeline
    files: Mapping[str, str]  # SHA-256 (hex) by name, of all files that decide the pictures


def find_image_model(folder: Path) -> ImageModel:
    """Find and check a pipeline without loading it."""
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
    def __init__(self, model: ImageModel, device: torch.device, steps: int) -> None:
        DIFFUSION.require()
        from diffusers import DiffusionPipeline

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about names that a library will change
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
        """The picture of a prompt; the noise at its start depends only on the seed."""
        import torch

        # On the processor, so that every device begins with the same noise.
        noise = torch.Generator("cpu").manual_seed(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = self._pipeline(prompt, num_inference_steps=self._steps, generator=noise)
        picture: Image = made.images[0]
        return picture


SETTINGS = "settings.json"
PARTS = Path(__file__).with_name("anonymous_prompts.csv")
VERSION = 1  # raise it when the same settings would give other pictures
_WHAT = "prompts: a table with the column prompt"


class PromptedPicture(NamedTuple):
    image_id: str  # the numbers of the prompt and of the picture
    prompt: str  # what the picture should show
    seed: int  # the seed of the noise

    @property
    def file(self) -> str:
        return f"{self.image_id}.png"


def usual_prompts() -> list[str]:
    """500 prompts with 10 people whose group cannot be told, each in 50 scenes.

    The 500 prompts of AnonymousBench are handwritten and not published. These prompts are ours.

    Example:
        >>> len(set(usual_prompts()))
        500
    """
    rows = list(open_rows(PARTS, what="parts of prompts").items)
    people, scenes = (
        [str(row["text"]) for _, row in rows if row["part"] == part] for part in ("person", "scene")
    )
    return [f"{person} {scene}" for scene, person in product(scenes, people)]


def read_prompts(path: Path) -> list[str]:
    rows = open_rows(check_file(path), what=_WHAT)
    rows.require("prompt")
    prompts: list[str] = []
    for number, row in rows.items:
        prompt = rows.text(number, row, "prompt").strip()
        if not prompt or prompt in prompts:
            rows.refuse(number, "the prompt is empty or occurs twice; remove the line")
        prompts.append(prompt)
    if not prompts:
        raise DataError(f"{path}: holds no prompts; expected {_WHAT}")
    return prompts


def planned_pictures(prompts: Sequence[str], per_prompt: int) -> list[PromptedPicture]:
    """All pictures to make: one for every prompt, then another for every prompt, and so on.

    Example:
        >>> [picture.image_id for picture in planned_pictures(["a person", "a crowd"], 2)]
        ['p1s0', 'p2s0', 'p1s1', 'p2s1']
    """
    return [
        PromptedPicture(f"p{number}s{seed}", prompt, seed)
        for seed in range(per_prompt)
        for number, prompt in enumerate(prompts, 1)
    ]


def make_pictures(
    folder: Path,
    model: ImageModel,
    pictures: Sequence[PromptedPicture],
    device: torch.device,
    steps: int,
) -> int:
    """Make the absent pictures; each picture is on disk before the next picture is begun."""
    _check_settings(folder, model, pictures, steps)
    absent = [one for one in pictures if not (folder / PICTURES / one.file).is_file()]
    if absent:
        painter = TextToImage(model, device, steps)
        with bar("pictures"):
            for one in track(absent, len(absent)):
                content = BytesIO()
                painter.picture(one.prompt, one.seed).save(content, "PNG")
                write_file(folder / PICTURES / one.file, content.getvalue(), sync=True)
    return len(absent)


def _check_settings(
    folder: Path, model: ImageModel, pictures: Sequence[PromptedPicture], steps: int
) -> None:
    """Write the table and the settings; refuse a folder with other settings."""
    plan = hashlib.sha256(repr(list(pictures)).encode()).hexdigest()
    settings = {"version": VERSION, "model": dict(model.files), "pictures": plan, "steps": steps}
    path = folder / SETTINGS
    if path.is_file():
        known = expect(load_json(path, what="settings of anonymous build"), dict, path, "")
        differ = [key for key in settings if known.get(key) != settings[key]]
        if differ:
            raise UsageError(
                f"{folder}: holds pictures of another {' and another '.join(differ)}; choose "
                "another --out, or give what it was started with"
            )
        return
    if folder.exists() and any(folder.iterdir()):
        raise ResourceError(f"{folder}: already exists; name a new folder (--out)")
    lines = [
        {"image_id": one.image_id, "file": one.file, "prompt": one.prompt, "seed": one.seed}
        for one in pictures
    ]
    try:
        (folder / PICTURES).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error
    write_file(folder / TABLE, table_csv(lines).encode(), sync=True)
    write_file(path, (json.dumps(settings, indent=1) + "\n").encode(), sync=True)
