"""LIC and the gender error of a captioner after each epoch of its training.

Usage: python -m experiments.each_epoch.study --out DIR

Trains the SAT of `fit sat` on a caption of each of many drawn scenes, has it caption others after
each epoch, and logs their scores with :func:`bias_pipeline.integrations.epochs.bias_callback` to
DIR/metrics.csv. One to two minutes on two cores.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch.utils.data import DataLoader

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.integrations.epochs import CaptionBias, bias_callback
from bias_pipeline.models.torchvision import make_importable
from bias_pipeline.pictures.captioners.decoding import beam_search
from bias_pipeline.pictures.captioners.fitted import Fitted
from bias_pipeline.pictures.fitting.captioner import CaptionInputs, Lesson, vocabulary_of
from bias_pipeline.run import compose

make_importable()  # before Lightning imports torchvision

from pytorch_lightning import Trainer  # noqa: E402
from pytorch_lightning.loggers import CSVLogger  # noqa: E402

from bias_pipeline.attack.attacker import LengthBatches  # noqa: E402
from bias_pipeline.pictures.fitting.learning import CaptionLearner  # noqa: E402

TRAINED, OTHERS = 2000, 200  # scenes
EPOCHS = 10
LONGEST = 20  # words of a caption
SCORED = {"seeds": 1, "stats": {"resamples": 100}}


class Captioner(CaptionLearner):
    """The learner of `fit sat`; a validation loop calls its callbacks and computes nothing more."""

    def validation_step(self, batch: torch.Tensor, batch_idx: int) -> None:
        """The callback has it write."""


@dataclass(frozen=True)
class Scribe:
    """Writes captions of pictures by their rows.

    Attributes:
        ids: of the pictures.
        pixels: the network's inputs.
        words: number to word.
    """

    ids: Sequence[str]
    pixels: Any
    words: dict[int, str]

    def captions(self, captioner: Any, batch: torch.Tensor) -> tuple[list[str], list[str]]:
        """Ids and captions of a batch of rows."""
        rows = batch.numpy()
        arrays = self.pixels.batch(rows)
        picture = {name: torch.from_numpy(array) for name, array in arrays.items()}
        numbers = beam_search(captioner.network, picture, beams=1, longest=LONGEST)
        texts = [" ".join(self.words[n] for n in line) for line in numbers]
        return [self.ids[row] for row in rows], texts


def bias_of(corpus: Corpus) -> CaptionBias:
    """What is computed of captions of a corpus' images."""
    gender = corpus.groupings["gender"]
    labels = {
        image: gender.names[code]
        for image, code in zip(corpus.ids, gender.codes, strict=True)
        if code >= 0
    }
    people = {image: corpus.human.of_image(row) for row, image in enumerate(corpus.ids)}
    return CaptionBias(labels, human=people, **SCORED)


def train(out: Path, trained: int = TRAINED, others: int = OTHERS, epochs: int = EPOCHS) -> None:
    """Train on the first scenes, caption the others after each epoch."""
    settings = [
        f"dataset.n_images={trained + others}",
        "encoder.side=64",
        "encoder.dropout=0.1",
        "attacker.batch_size=16",
    ]
    cell = compose.cell(["metric=imagecaptioner2", "encoder=sat", *settings])
    text: Any = cell.build("text")
    corpus, recipe = text(cell.corpus()), cell.build("probe").recipe
    rows = np.arange(len(corpus))
    parts = (corpus.take(rows[:trained]), corpus.take(rows[trained:]))
    one_each = parts[0].rewrite({"human": parts[0].human.position(0)})
    learnt, shown = (
        Lesson.of_corpus("sat", recipe, part, "human", 0) for part in (one_each, parts[1])
    )

    torch.set_num_threads(1)
    torch.manual_seed(0)
    fitted = Fitted("sat", learnt.encoder, vocabulary_of(learnt.words))
    places = np.unique(learnt.captions.image_rows, return_inverse=True)[1]
    pixels = learnt.encoder.visual.read(learnt.images)
    inputs: Any = CaptionInputs.of_words(learnt.words, places, fitted.vocabulary, pixels)
    order = np.arange(len(places))
    batches = LengthBatches(inputs, order, torch.zeros(len(order)), recipe.batch_size, 0)

    words = {number: word for word, number in fitted.vocabulary.items()}
    scribe = Scribe(parts[1].ids, shown.encoder.visual.read(shown.images), words)
    callback = bias_callback(bias_of(parts[1]), scribe.captions)
    trainer = Trainer(
        accelerator="cpu",
        max_epochs=epochs,
        logger=CSVLogger(out, name="", version=""),
        callbacks=[callback],
        enable_checkpointing=False,
        enable_model_summary=False,
        enable_progress_bar=False,
        num_sanity_val_steps=0,
    )
    loader: Any = DataLoader(rows[: len(parts[1])], batch_size=100)  # type: ignore[arg-type]
    trainer.fit(Captioner(fitted.network(), recipe.optimizer, recipe.schedule), batches, loader)


def table(out: Path) -> pd.DataFrame:
    """Epoch to what was logged."""
    return pd.read_csv(out / "metrics.csv").groupby("epoch").first().drop(columns="step")


def main() -> None:
    program = "python -m experiments.each_epoch.study"
    parser = argparse.ArgumentParser(description=__doc__, prog=program)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    train(out)
    print(table(out).round(3).to_string())


if __name__ == "__main__":
    main()
