"""CLIP and SigLIP: photos and texts as vectors of one space.

Radford et al., Learning Transferable Visual Models From Natural Language Supervision (ICML 2021);
Zhai et al., Sigmoid Loss for Language Image Pre-Training (ICCV 2023). SigLIP was trained on
lower-case texts padded to full length without a mask, so it gets the same here.

The small CLIP of ``dataset=scenes`` is fitted once, to a separate world, and cached. Its captions
come from a simulated captioner whose dial ``a_to_t`` sets how strongly tasks depend on the person's
group, so the CLIP's bias is known.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bias_pipeline.array_types import Float32Array
from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.datasets.scenes.captioners import world_captions
from bias_pipeline.datasets.scenes.pixels import SceneDrawing
from bias_pipeline.datasets.scenes.slots import BiasSettings
from bias_pipeline.datasets.scenes.world import generate
from bias_pipeline.errors import DataError
from bias_pipeline.io.digests import is_whole, seal_folder
from bias_pipeline.io.terminal import warn
from bias_pipeline.models.clip_fitting import VERSION, ClipRecipe, Pairs, fit_clip
from bias_pipeline.models.pretrained import Preprocessing, Pretrained, load, tokenizer
from bias_pipeline.vision.torchvision import make_importable

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

CLIP, SIGLIP = "clip", "siglip"
KINDS = (CLIP, SIGLIP)


def _load(model: Pretrained, device: torch.device) -> Any:
    import transformers

    architecture = transformers.SiglipModel if model.kind == SIGLIP else transformers.CLIPModel
    return load(model, architecture, device)


class ClipPhotos:
    """Photos as vectors.

    Args:
        model: of one of :data:`KINDS`.
        device: where to compute.
        normalize: whether vectors have length 1.
    """

    def __init__(self, model: Pretrained, device: torch.device, *, normalize: bool) -> None:
        make_importable()
        self._prepare = Preprocessing(model).of_one_shape()
        self._network = _load(model, device)
        self._sigmoid = model.kind == SIGLIP  # whose pooled vector is not projected
        self._device, self._normalize = device, normalize

    def prepare(self, photo: Image) -> Float32Array:
        """(3, H, W) a photo, preprocessed for the network."""
        return self._prepare(photo)

    def describe(self, photos: Sequence[Float32Array]) -> Float32Array:
        """(N, D) a vector for each photo."""
        import torch

        with torch.inference_mode():
            pixels = torch.from_numpy(np.stack(photos)).to(self._device)
            return _vectors(self.states(pixels), self._normalize)

    def states(self, pixels: torch.Tensor) -> torch.Tensor:
        """(N, D) the vectors as the model makes them; gradients pass to the pixels.

        Args:
            pixels: (N, 3, H, W) as :meth:`prepare` gives them, on the model's device.
        """
        states: torch.Tensor = self._network.vision_model(pixel_values=pixels).pooler_output
        if not self._sigmoid:
            states = self._network.visual_projection(states)
        return states


class ClipTexts:
    """Texts as vectors of the same space; too long texts are cut.

    Args:
        model: of one of :data:`KINDS`, with its tokenizer.
        device: where to compute.
        normalize: whether vectors have length 1.

    Raises:
        DataError: if there is no tokenizer.
    """

    def __init__(self, model: Pretrained, device: torch.device, *, normalize: bool) -> None:
        self._network = _load(model, device)
        self._tokens = tokenizer(model)
        self._sigmoid = model.kind == SIGLIP
        self._longest = self._network.config.text_config.max_position_embeddings
        self._device, self._normalize = device, normalize

    @property
    def scale(self) -> float:
        """The factor of cosines before a softmax over texts."""
        return math.exp(self._network.logit_scale.item())

    def read(self, text: str) -> str:
        """A text as it is."""
        return text

    @property
    def projection(self) -> Float32Array:
        """(D, H) the projection from states to vectors."""
        return _numbers(self._network.text_projection.weight)

    @property
    def mark(self) -> Float32Array:
        """(H,) what a CLIP adds to every first token; identifies its text model."""
        return _numbers(self._network.text_model.embeddings.position_embedding.weight[0])

    def states(self, texts: Sequence[str]) -> Float32Array:
        """(N, H) the last token's state of each text, from which its vector is computed."""
        import torch

        with torch.inference_mode():
            return _vectors(self._states(texts), normalize=False)

    def describe(self, texts: Sequence[str]) -> Float32Array:
        """(N, D) a vector for each text."""
        import torch

        with torch.inference_mode():
            states = self._states(texts)
            states = states if self._sigmoid else self._network.text_projection(states)
            return _vectors(states, self._normalize)

    def _states(self, texts: Sequence[str]) -> torch.Tensor:
        tokens = self._tokens(
            [text.lower() if self._sigmoid else text for text in texts],
            padding="max_length" if self._sigmoid else True,
            truncation=True,
            max_length=self._longest,
            return_tensors="pt",
        ).to(self._device)
        mask = {} if self._sigmoid else {"attention_mask": tokens["attention_mask"]}
        states: torch.Tensor = self._network.text_model(
            input_ids=tokens["input_ids"], **mask
        ).pooler_output
        return states


def _numbers(weight: torch.Tensor) -> Float32Array:
    numbers: Float32Array = weight.detach().float().cpu().numpy()
    return numbers


def _vectors(states: torch.Tensor, normalize: bool) -> Float32Array:
    import torch

    if normalize:
        states = torch.nn.functional.normalize(states, dim=-1)
    vectors: Float32Array = states.float().cpu().numpy()
    if not np.isfinite(vectors).all():
        raise DataError("the model gives vectors that are not numbers; its weights are broken")
    return vectors


N_IMAGES = 6000
SEED = 1000  # of the world; data sets begin at 0, so scored images are rarely training images
MARK = "gender"
ABOUT = "about two minutes"  # on two cores


@dataclass(frozen=True)
class ClipOfScenes:
    """The recipe of such a CLIP."""

    # The dial, in [0, 1]: the share of tasks in captions that are replaced by ones typical of the
    # person's group
    association: float
    recipe: ClipRecipe = field(default_factory=ClipRecipe)  # sizes and training
    n_images: int = N_IMAGES  # of the world

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
