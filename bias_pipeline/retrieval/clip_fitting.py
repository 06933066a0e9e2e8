"""Trains a small CLIP on pictures and captions, and writes a folder for other programs.

The network is transformers' CLIP. The loss is the symmetric contrast of Radford et al. (2021): in a
batch, each picture must find its caption, and each caption must find its picture. The small CLIP of
``dataset=scenes`` is trained once, on a separate world, and cached. A simulated captioner wrote its
captions. The dial ``a_to_t`` says how strongly tasks depend on the person's group. So we know how
much bias the CLIP was taught.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from bias_pipeline.attack.lightning_loop import (
    CheckpointSettings,
    Share,
    run_together,
    run_training,
    world_size,
)
from bias_pipeline.corpus.pictures import Pictures, Pixels
from bias_pipeline.data.generator import generator
from bias_pipeline.data.regions import Crop, crop_person
from bias_pipeline.errors import DataError, UsageError, inflect
from bias_pipeline.io import signals
from bias_pipeline.io.digests import is_whole, seal_folder
from bias_pipeline.io.files import draft_of
from bias_pipeline.io.progress import bar, track
from bias_pipeline.io.terminal import warn
from bias_pipeline.models.torchvision import make_importable

if TYPE_CHECKING:
    import torch


PAD, START, UNKNOWN, END = "[PAD]", "[START]", "[UNKNOWN]", "[END]"


def write_tokenizer(folder: Path, texts: Iterable[str], longest: int) -> Any:
    """Write a tokenizer of the lower-case words that occur at least twice in the texts."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordLevel(unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    # Sorted by frequency, then alphabetically: the order of texts does not matter.
    trainer = trainers.WordLevelTrainer(
        special_tokens=[PAD, START, UNKNOWN, END], min_frequency=2, show_progress=False
    )
    tokenizer.train_from_iterator(sorted(texts), trainer)
    ends = [(name, tokenizer.token_to_id(name)) for name in (START, END)]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{START} $A {END}", special_tokens=ends
    )
    PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        pad_token=PAD,
        bos_token=START,
        unk_token=UNKNOWN,
        eos_token=END,
        model_max_length=longest,
    ).save_pretrained(folder)
    tokenizer.enable_truncation(longest)
    return tokenizer


def write_preprocessing(folder: Path, side: int) -> None:
    """Write the preprocessing to squares of ``side`` pixels, with values from -1 to 1."""
    settings = {
        "image_processor_type": "CLIPImageProcessor",
        "do_resize": True,
        "size": {"height": side, "width": side},
        "resample": 3,
        "do_center_crop": False,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
        "do_convert_rgb": True,
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(settings, indent=1))


VERSION = 1  # raise it whenever the same data would give other weights
ANYWHERE: Mapping[str, Any] = {"accelerator": "auto", "devices": 1}
_TRAINER = {
    "precision": "32-true",
    "gradient_clip_val": 1.0,
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}


@dataclass(frozen=True)
class ClipRecipe:
    """The sizes of the network and the settings of training, which we chose for two cores."""

    side: int = 64  # pixels a side of the network's input
    patch: int = 16  # pixels a side of each patch
    width: int = 64  # of both towers and of their vectors
    picture_layers: int = 2  # of the picture tower
    text_layers: int = 1  # of the text tower
    heads: int = 4  # of attention
    longest: int = 24  # tokens of a text that are read
    epochs: int = 15  # passes over the pictures, each time with one random caption per picture
    batch_size: int = 128  # pictures per batch
    learning_rate: float = 2e-3  # at its highest; it rises for fifty steps and falls along a cosine
    seed: int = 0  # of weights, batches and captions


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pictures and their captions."""

    pixels: Pixels  # (N, side, side, 3)
    texts: Sequence[Sequence[str]]  # N lists of captions, none empty

    @classmethod
    def read(
        cls, pictures: Pictures, texts: Sequence[Sequence[str]], crop: Crop, side: int
    ) -> Pairs:
        """The images that have both a picture and a caption."""
        rows = [row for row in np.flatnonzero(pictures.present).tolist() if texts[row]]
        if not rows:
            raise DataError("no image has both a picture and a caption, which a CLIP needs")
        pixels = np.empty((len(rows), side, side, 3), np.uint8)
        with bar("pictures"):
            for place, row in enumerate(track(rows, len(rows))):
                pixels[place] = np.asarray(crop_person(pictures, row, crop).resize((side, side), 3))
                signals.stop_if_requested()
        return cls(pixels, [texts[row] for row in rows])


def fit_clip(
    pairs: Pairs,
    recipe: ClipRecipe,
    folder: Path,
    provenance: Mapping[str, object],
    trainer: Mapping[str, Any] = ANYWHERE,
    survival: CheckpointSettings | None = None,
) -> Sequence[float]:
    """Train a CLIP and write its folder: weights, settings, vocabulary, preprocessing, card."""
    if len(pairs.texts) < 2:
        raise DataError(f"{inflect(len(pairs.texts), 'pairs')}: a CLIP needs two or more")
    world = world_size(trainer)
    chosen = {key: setting for key, setting in trainer.items() if setting is not None}
    flags = {**_TRAINER, **chosen, "max_epochs": recipe.epochs}
    n_together = min(recipe.batch_size, len(pairs.texts))
    if n_together % world:
        raise UsageError(
            f"trainer.devices={world}: a batch of {n_together} pictures cannot be divided among "
            "them; choose another --batch-size"
        )
    with draft_of(folder) as draft:
        return run_together(world, _fit_into, draft, pairs, recipe, provenance, flags, survival)


def _fit_into(
    draft: Path,
    pairs: Pairs,
    recipe: ClipRecipe,
    provenance: Mapping[str, object],
    flags: Mapping[str, Any],
    survival: CheckpointSettings | None,
    share: Share,
) -> Sequence[float]:
    """Train in one process; only the first process writes the files."""
    make_importable()  # before transformers and Lightning look for it
    import torch
    from transformers import CLIPModel
    from transformers.utils import logging as library

    from bias_pipeline.retrieval.clip_learning import Contrast

    library.disable_progress_bar()  # type: ignore[no-untyped-call]
    torch.set_num_threads(1)  # with products this small, several threads only wait for each other
    torch.manual_seed(recipe.seed)
    with TemporaryDirectory() as aside:
        folder = Path(aside) if share.rank else draft
        texts = (text for texts in pairs.texts for text in texts)
        tokens = write_tokenizer(folder, texts, recipe.longest)
    network = CLIPModel(_config(recipe, tokens.get_vocab_size(), tokens.token_to_id(END)))
    batches = _Batches(pairs, tokens, recipe, share)
    learner = Contrast(network, recipe.learning_rate)
    checkpoints = []  # a killed training continues from a checkpoint
    if survival is not None:
        sha = hashlib.sha256(f"{VERSION} {asdict(recipe)} {pairs.texts!r}".encode())
        sha.update(np.ascontiguousarray(pairs.pixels).tobytes())
        checkpoints = [survival.checkpoint(sha.hexdigest(), batches)]
    with bar("fitting a CLIP"):
        run_training(learner, batches, flags, checkpoints)
    if share.rank == 0:
        network.cpu().save_pretrained(draft)
        write_preprocessing(draft, recipe.side)
        (draft / "README.md").write_text(
            _card(recipe, provenance, learner.losses), encoding="utf-8"
        )
    return learner.losses


def _config(recipe: ClipRecipe, n_words: int, end: int) -> Any:
    from transformers import CLIPConfig

    shared = {
        "hidden_size": recipe.width,
        "intermediate_size": 2 * recipe.width,
        "num_attention_heads": recipe.heads,
    }
    text = {
        **shared,
        "num_hidden_layers": recipe.text_layers,
        "vocab_size": n_words,
        "max_position_embeddings": recipe.longest,
        "bos_token_id": 1,
        "eos_token_id": end,
        "pad_token_id": 0,
    }
    vision = {
        **shared,
        "num_hidden_layers": recipe.picture_layers,
        "image_size": recipe.side,
        "patch_size": recipe.patch,
    }
    return CLIPConfig(text_config=text, vision_config=vision, projection_dim=recipe.width)


class _Batches:
    """Batches of pictures in a new order per epoch, each picture with one of its captions."""

    def __init__(self, pairs: Pairs, tokens: Any, recipe: ClipRecipe, share: Share) -> None:
        self.share = share
        self.pixels = pairs.pixels
        flat = [text for texts in pairs.texts for text in texts]
        coded = [encoding.ids for encoding in tokens.encode_batch(flat)]
        self.ids = np.zeros((len(coded), max(map(len, coded))), np.int64)
        for row, ids in enumerate(coded):
            self.ids[row, : len(ids)] = ids
        counts = np.array([len(texts) for texts in pairs.texts])
        self.first, self.counts = np.cumsum(counts) - counts, counts
        self.size = min(recipe.batch_size, len(counts))
        self.order = np.random.default_rng([recipe.seed, VERSION])  # batches and captions

    def __len__(self) -> int:
        return len(self.counts) // self.size

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        import torch

        order = self.order.permutation(len(self.counts))
        chosen = self.first + (self.order.random(len(self.counts)) * self.counts).astype(np.int64)
        for number in track(range(len(self)), len(self)):
            rows = self.share.take(order[number * self.size :][: self.size])
            ids = self.ids[chosen[rows]]
            ids = ids[:, : int((ids > 0).sum(axis=1).max())]
            pixels = torch.from_numpy(self.pixels[rows]).permute(0, 3, 1, 2)  # (B, 3, H, W)
            yield {
                "input_ids": torch.from_numpy(ids),
                "attention_mask": torch.from_numpy((ids > 0).astype(np.int64)),
                "pixel_values": pixels.float() / 127.5 - 1.0,  # as the CLIP's preprocessing does
            }
            signals.stop_if_requested()


def _card(recipe: ClipRecipe, provenance: Mapping[str, object], losses: Sequence[float]) -> str:
    fitting = {"recipe": asdict(recipe), "version": VERSION, "loss of each epoch": losses}
    facts = {**provenance, **fitting}
    return (
        "# A small CLIP\n\n"
        "Fitted by `bias_pipeline fit clip` for measuring retrieval bias where no published model\n"
        "is at hand. It knows the words and pictures it was fitted to and nothing else.\n\n"
        f"```json\n{json.dumps(facts, indent=1)}\n```\n"
    )


N_IMAGES = 6000
SEED = 1000  # of the world; data sets begin at 0, so scored images are rarely training images
ABOUT = "about two minutes"  # on two cores


@dataclass(frozen=True)
class ClipOfScenes:
    """The recipe of the small CLIP that is trained on scenes."""

    # The dial, in [0, 1]: the share of the captions' tasks that are replaced by tasks typical of
    # the person's group
    association: float
    recipe: ClipRecipe = field(default_factory=ClipRecipe)  # sizes and training
    n_images: int = N_IMAGES  # of the world

    @property
    def spec(self) -> Mapping[str, object]:
        """Everything that decides the weights, except the rounding of processors."""
        return {"version": VERSION, "world": SEED, **asdict(self)}

    def folder(self, cache: Path) -> Path:
        text = json.dumps(self.spec, sort_keys=True)
        return cache / "clips" / hashlib.sha256(text.encode()).hexdigest()[:16]

    def n_learnt(self, pictures: Pictures) -> int:
        """The number of pictures that the CLIP learnt from; 0 unless ``dataset.seed`` is 1000."""
        return sum(number < self.n_images for number in generator().numbers(pictures, SEED))

    def fit_once(self, cache: Path) -> Path:
        """The folder of the CLIP; an absent CLIP is trained first, with a message."""
        folder = self.folder(cache)
        if is_whole(folder):
            return folder
        warn(
            f"encoder.model is empty: a small CLIP is fitted to {self.n_images} scenes, once "
            f"({ABOUT} on two cores), and kept in {folder}"
        )
        draft = folder.with_name(f"{folder.name}.{os.getpid()}")
        pictures, captions = generator().draw_captioned(self.n_images, SEED, self.association)
        texts = [[caption] for caption in captions]
        pairs = Pairs.read(pictures, texts, "person", self.recipe.side)
        fit_clip(pairs, self.recipe, draft, {"data": "scenes", **self.spec})
        seal_folder(draft)
        if folder.exists() and not is_whole(folder):
            warn(f"{folder}: has no checksums that fit; removed, and made anew")
            shutil.rmtree(folder)
        try:
            draft.rename(folder)
        except OSError:  # another process finished first
            shutil.rmtree(draft, ignore_errors=True)
            if not is_whole(folder):
                raise
        return folder
