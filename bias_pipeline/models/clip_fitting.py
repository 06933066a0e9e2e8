"""Fitting a small CLIP to pictures and captions: a folder that any reader of CLIPs takes.

The network is transformers' own; what is learnt is the symmetric contrast of Radford et al. (2021):
each picture of a batch finds its caption among all, and each caption its picture.
"""

from __future__ import annotations

import json
import logging
import math
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.io import stopping
from bias_pipeline.io.progress import bar, track
from bias_pipeline.models.clip_folder import SPECIAL, write_preprocessing, write_tokenizer
from bias_pipeline.vision.people import Crop, look
from bias_pipeline.vision.torchvision import make_importable

if TYPE_CHECKING:
    import pytorch_lightning as pl
    import torch

VERSION = 1  # raise it whenever the same data would give other weights
_WARM_UP = 50  # steps
_SPREAD = 0.05  # weight decay

Pixels = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class ClipRecipe:
    """Sizes and training; ours, for drawn scenes on two cores.

    Attributes:
        side: pixels a side of what the network sees.
        patch: of each of its patches.
        width: of both halves and of their vectors.
        picture_layers: of the picture half.
        text_layers: of the text half.
        heads: of attention.
        longest: tokens of a text that are read.
        epochs: times that each picture is seen, each time beside one of its captions by chance.
        batch_size: pictures among which a caption is sought.
        learning_rate: at its highest; it rises for fifty steps and falls along a cosine.
        seed: of weights, batches and captions.
    """

    side: int = 64
    patch: int = 16
    width: int = 64
    picture_layers: int = 2
    text_layers: int = 1
    heads: int = 4
    longest: int = 24
    epochs: int = 15
    batch_size: int = 128
    learning_rate: float = 2e-3
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pictures and what is said of them.

    Attributes:
        pixels: (N, side, side, 3).
        texts: N lists of captions, none empty.
    """

    pixels: Pixels
    texts: Sequence[Sequence[str]]

    @classmethod
    def of(cls, pictures: Pictures, texts: Sequence[Sequence[str]], crop: Crop, side: int) -> Pairs:
        """Those images that have a picture and a caption.

        Raises:
            DataError: if there is none, or a picture cannot be read.
        """
        rows = [row for row in range(len(pictures)) if pictures.present[row] and texts[row]]
        if not rows:
            raise DataError("no image has both a picture and a caption, of which a CLIP learns")
        pixels = np.empty((len(rows), side, side, 3), np.uint8)
        with bar("pictures"):
            for place, row in enumerate(track(rows, len(rows))):
                pixels[place] = np.asarray(look(pictures, row, crop).resize((side, side), 3))
                stopping.stop_if_requested()
        return cls(pixels, [texts[row] for row in rows])


def fit_clip(
    pairs: Pairs, recipe: ClipRecipe, folder: Path, told: Mapping[str, object]
) -> Sequence[float]:
    """Fit a CLIP and write its folder: weights, configuration, vocabulary, preprocessing, card.

    Args:
        pairs: what it learns from.
        recipe: how.
        folder: appears whole or not at all.
        told: of the data, for the card.

    Returns:
        The mean loss of each epoch.

    Raises:
        DataError: if there are fewer pairs than a batch needs.
        ResourceError: if the folder is there already, or cannot be written.
    """
    if len(pairs.texts) < 2:
        raise DataError(f"{len(pairs.texts)} pairs: a CLIP learns of two or more")
    new_folder(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(mkdtemp(dir=folder.parent, prefix=".clip-"))
    except OSError as error:
        raise ResourceError(f"cannot write to {folder.parent}: {error.strerror}") from error
    try:
        losses = _fit_into(draft, pairs, recipe, told)
        draft.chmod(0o755)
        draft.replace(folder)
    except OSError as error:
        raise ResourceError(f"cannot write {folder}: {error.strerror}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return losses


def new_folder(folder: Path) -> None:
    """Know before any work that a folder is new, or empty.

    Raises:
        ResourceError: if it is not.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ResourceError(f"{folder}: is there already; name a new folder (--out)")


def _fit_into(
    draft: Path, pairs: Pairs, recipe: ClipRecipe, told: Mapping[str, object]
) -> Sequence[float]:
    make_importable()  # before transformers and Lightning ask for it
    import torch
    from transformers import CLIPModel
    from transformers.utils import logging as library

    library.disable_progress_bar()  # type: ignore[no-untyped-call]
    torch.set_num_threads(1)  # threads that share products so small only wait for each other
    torch.manual_seed(recipe.seed)
    tokens = write_tokenizer(draft, (own for texts in pairs.texts for own in texts), recipe.longest)
    network = CLIPModel(_config(recipe, tokens.get_vocab_size(), tokens.token_to_id(SPECIAL.end)))
    batches = _Batches(pairs, tokens, recipe)
    module = _contrast(network, recipe, len(batches) * recipe.epochs)
    with bar("fitting a CLIP"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its advice for data loaders does not fit these batches
        _trainer(recipe.epochs).fit(module, batches)
    network.cpu().save_pretrained(draft)
    write_preprocessing(draft, recipe.side)
    losses = [float(own) for own in module.losses]
    (draft / "README.md").write_text(_card(recipe, told, losses), encoding="utf-8")
    return losses


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
    """Pictures in batches of another order each time, each beside one of its captions.

    Args:
        pairs: of N images.
        tokens: the tokenizer.
        recipe: has sizes and seed.
    """

    def __init__(self, pairs: Pairs, tokens: Any, recipe: ClipRecipe) -> None:
        self.pixels = pairs.pixels
        flat = [text for texts in pairs.texts for text in texts]
        coded = [own.ids for own in tokens.encode_batch(flat)]
        self.ids = np.zeros((len(coded), max(map(len, coded))), np.int64)
        for row, own in enumerate(coded):
            self.ids[row, : len(own)] = own
        counts = np.array([len(texts) for texts in pairs.texts])
        self.first, self.counts = np.cumsum(counts) - counts, counts
        self.size = min(recipe.batch_size, len(counts))
        self.random = np.random.default_rng([recipe.seed, VERSION])  # batches and captions

    def __len__(self) -> int:
        return len(self.counts) // self.size

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        import torch

        order = self.random.permutation(len(self.counts))
        chosen = self.first + (self.random.random(len(self.counts)) * self.counts).astype(np.int64)
        for number in track(range(len(self)), len(self)):
            rows = order[number * self.size :][: self.size]
            ids = self.ids[chosen[rows]]
            ids = ids[:, : int((ids > 0).sum(axis=1).max())]
            pixels = torch.from_numpy(self.pixels[rows]).permute(0, 3, 1, 2)  # (B, 3, H, W)
            yield {
                "input_ids": torch.from_numpy(ids),
                "attention_mask": torch.from_numpy((ids > 0).astype(np.int64)),
                "pixel_values": pixels.float() / 127.5 - 1.0,  # as its preprocessing does
            }
            stopping.stop_if_requested()


def _contrast(network: Any, recipe: ClipRecipe, n_steps: int) -> Any:
    """The LightningModule around a CLIP; ``losses`` has a mean for each epoch."""
    import pytorch_lightning as pl
    import torch

    class Contrast(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.network = network
            self.losses: list[float] = []
            self._running: list[torch.Tensor] = []

        def training_step(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
            loss: torch.Tensor = self.network(**batch, return_loss=True).loss
            self._running.append(loss.detach())
            return loss

        def on_train_epoch_end(self) -> None:
            self.losses.append(float(torch.stack(self._running).mean()))
            self._running.clear()

        def configure_optimizers(self) -> Any:
            own = torch.optim.AdamW(
                self.parameters(), lr=recipe.learning_rate, weight_decay=_SPREAD
            )
            rate = torch.optim.lr_scheduler.LambdaLR(own, lambda step: _rate(step, n_steps))
            return {"optimizer": own, "lr_scheduler": {"scheduler": rate, "interval": "step"}}

    return Contrast()


def _rate(step: int, n_steps: int) -> float:
    """The learning rate's share of its highest."""
    rising = min(1.0, (step + 1) / _WARM_UP)
    return rising * 0.5 * (1 + math.cos(math.pi * min(1.0, step / max(n_steps, 1))))


def _trainer(epochs: int) -> pl.Trainer:
    import pytorch_lightning as pl
    from pytorch_lightning.plugins.environments import (  # type: ignore[attr-defined]
        LightningEnvironment,
    )

    for name in ("pytorch_lightning", "lightning_fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    # Otherwise Lightning, under Slurm, would count Slurm's tasks and take over its signals.
    return pl.Trainer(
        max_epochs=epochs,
        accelerator="auto",
        devices=1,
        gradient_clip_val=1.0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        plugins=[LightningEnvironment()],
    )


def _card(recipe: ClipRecipe, told: Mapping[str, object], losses: Sequence[float]) -> str:
    """What a folder says of itself."""
    facts = {**told, "recipe": asdict(recipe), "version": VERSION, "loss of each epoch": losses}
    return (
        "# A small CLIP\n\n"
        "Fitted by `bias_pipeline fit clip` for measuring retrieval bias where no published model\n"
        "is at hand. It knows the words and pictures it was fitted to and nothing else.\n\n"
        f"```json\n{json.dumps(facts, indent=1)}\n```\n"
    )
