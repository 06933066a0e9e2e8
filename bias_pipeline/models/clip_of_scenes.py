"""The small CLIP of ``dataset=scenes``: fitted once, to a world of its own, and kept.

Its captions are those of a simulated captioner whose dial ``a_to_t`` says how closely the tasks it
writes of go with the group of the person in the picture, so that how biased the CLIP is is known.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.datasets.scenes.captioners import describe
from bias_pipeline.datasets.scenes.dials import Dials
from bias_pipeline.datasets.scenes.pixels.drawing import SceneDrawing
from bias_pipeline.datasets.scenes.world import generate
from bias_pipeline.io.folder_seal import is_whole, seal_folder
from bias_pipeline.io.terminal import warn
from bias_pipeline.models.clip_fitting import VERSION, ClipRecipe, Pairs, fit_clip

N_IMAGES = 6000
SEED = 1000  # of the world; data sets begin at 0, so what is scored was rarely learnt from
MARK = "gender"
ABOUT = "about two minutes"  # on two cores


@dataclass(frozen=True)
class ClipOfScenes:
    """What such a CLIP is fitted to.

    Attributes:
        association: the dial, in [0, 1]: the share of tasks in captions that are not those of the
            picture but typical of the person's group.
        recipe: sizes and training.
        n_images: of the world.
    """

    association: float
    recipe: ClipRecipe = field(default_factory=ClipRecipe)
    n_images: int = N_IMAGES

    @property
    def spec(self) -> Mapping[str, object]:
        """Everything that decides its weights, but for the last digits of this processor."""
        return {"version": VERSION, "world": SEED, **asdict(self)}

    def folder(self, cache: Path) -> Path:
        """Where it is kept."""
        text = json.dumps(self.spec, sort_keys=True)
        return cache / "clips" / hashlib.sha256(text.encode()).hexdigest()[:16]

    def n_learnt(self, pictures: Pictures) -> int:
        """How many of the pictures it is fitted to; none but with ``dataset.seed=1000``.

        An image follows from its world's seed and its number, so one image tells the world.
        """
        images = [own.image for own in pictures.files if isinstance(own, SceneDrawing)]
        first = min(images, key=lambda image: image.key, default=None)
        if first is None or generate(first.key + 1, SEED).images[first.key] != first:
            return 0
        return sum(image.key < self.n_images for image in images)

    def made(self, cache: Path) -> Path:
        """Its folder; fitted, which is said, if it is not there yet.

        Raises:
            ResourceError: if it cannot be written.
        """
        folder = self.folder(cache)
        if is_whole(folder):
            return folder
        warn(
            f"encoder.model names none: a small CLIP is fitted to {self.n_images} scenes, once "
            f"({ABOUT} on two cores), and kept in {folder}"
        )
        draft = folder.with_name(f"{folder.name}.{os.getpid()}")
        world = generate(self.n_images, SEED)
        captions = describe(world, Dials(a_to_t=self.association))
        pictures = Pictures(tuple(SceneDrawing(image, MARK) for image in world.images))
        texts = [[captions[image.id]] for image in world.images]
        pairs = Pairs.of(pictures, texts, "person", self.recipe.side)
        fit_clip(pairs, self.recipe, draft, {"data": "scenes", **self.spec})
        seal_folder(draft)
        if folder.exists() and not is_whole(folder):
            warn(f"{folder}: has no checksums that fit; removed, and made anew")
            shutil.rmtree(folder)
        try:
            draft.rename(folder)
        except OSError:  # another process was as quick
            shutil.rmtree(draft, ignore_errors=True)
            if not is_whole(folder):
                raise
        return folder
