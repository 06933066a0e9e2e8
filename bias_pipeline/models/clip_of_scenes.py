"""The small CLIP of ``dataset=scenes``: fitted once, to a separate world, and cached.

Its captions come from a simulated captioner whose dial ``a_to_t`` sets how strongly tasks depend on
the person's group, so the CLIP's bias is known.
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
from bias_pipeline.datasets.scenes.bias_settings import BiasSettings
from bias_pipeline.datasets.scenes.captioners import world_captions
from bias_pipeline.datasets.scenes.pixels.drawing import SceneDrawing
from bias_pipeline.datasets.scenes.world import generate
from bias_pipeline.io.folder_seal import is_whole, seal_folder
from bias_pipeline.io.terminal import warn
from bias_pipeline.models.clip_fitting import VERSION, ClipRecipe, Pairs, fit_clip

N_IMAGES = 6000
SEED = 1000  # of the world; data sets begin at 0, so scored images are rarely training images
MARK = "gender"
ABOUT = "about two minutes"  # on two cores


@dataclass(frozen=True)
class ClipOfScenes:
    """The recipe of such a CLIP.

    Attributes:
        association: the dial, in [0, 1]: the share of tasks in captions that are replaced by ones
            typical of the person's group.
        recipe: sizes and training.
        n_images: of the world.
    """

    association: float
    recipe: ClipRecipe = field(default_factory=ClipRecipe)
    n_images: int = N_IMAGES

    @property
    def spec(self) -> Mapping[str, object]:
        """Everything that decides its weights, except rounding differences of processors."""
        return {"version": VERSION, "world": SEED, **asdict(self)}

    def folder(self, cache: Path) -> Path:
        """Where it is kept."""
        text = json.dumps(self.spec, sort_keys=True)
        return cache / "clips" / hashlib.sha256(text.encode()).hexdigest()[:16]

    def n_learnt(self, pictures: Pictures) -> int:
        """How many of the pictures it was fitted to; 0 unless ``dataset.seed=1000``.

        An image follows from its world's seed and its number, so one image identifies the world.
        """
        images = [drawing.image for drawing in pictures.files if isinstance(drawing, SceneDrawing)]
        first = min(images, key=lambda image: image.key, default=None)
        if first is None or generate(first.key + 1, SEED).images[first.key] != first:
            return 0
        return sum(image.key < self.n_images for image in images)

    def made(self, cache: Path) -> Path:
        """Its folder; fits the CLIP first, with a message, if needed.

        Raises:
            ResourceError: if it cannot be written.
        """
        folder = self.folder(cache)
        if is_whole(folder):
            return folder
        warn(
            f"encoder.model is empty: a small CLIP is fitted to {self.n_images} scenes, once "
            f"({ABOUT} on two cores), and kept in {folder}"
        )
        draft = folder.with_name(f"{folder.name}.{os.getpid()}")
        world = generate(self.n_images, SEED)
        captions = world_captions(world, BiasSettings(a_to_t=self.association))
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
