"""Attackers on captions that were made ready, each set of images attacked once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus, Grouping
from bias_pipeline.corpus.predictions import Labelled, Predictions
from bias_pipeline.corpus.split import SMALLEST_GROUP, Split
from bias_pipeline.errors import DataError, NotApplicableError
from bias_pipeline.metrics.parts import HUMAN, MODEL, PartName
from bias_pipeline.text.transform import is_special

Mask = npt.NDArray[np.bool_]
WORDLESS_WARNING = 0.05

_UNKNOWN = "<unk>"  # what alignment puts for people's words that the captioner does not use


def _holding(captions: Captions, types: Mask) -> Mask:
    """(N,) whether each caption holds one of the distinct words that are flagged, (V,)."""
    rows = np.repeat(np.arange(len(captions)), captions.lengths)
    return np.bincount(rows, weights=types[captions.tokens], minlength=len(captions)) > 0


def _wordless(side: str, captions: Captions, share: float) -> str:
    """Why nothing can be learnt from captions of which this share holds no word."""
    unknown = np.array([word == _UNKNOWN for word in captions.types], bool)
    if side == "human" and _holding(captions, unknown).mean() >= share:
        return (
            f"{share:.0%} of the human captions hold no word that the captioner uses, once masked; "
            "it may write another language, or next to no words (alignment=none keeps people's)"
        )
    return (
        f"{share:.0%} of the {side} captions hold no word once masked; there is nothing to learn "
        "from"
    )


def labelled(
    part: PartName, captions: Captions, grouping: Grouping, positions: int
) -> Iterator[Labelled]:
    """What attackers learn from: captions of each position with the groups of their images.

    Args:
        part: whose captions they are; people's are named by position too.
        captions: of labelled images.
        grouping: the images' groups.
        positions: how many are taken; those with too few images of a group are left out.
    """
    n_classes = len(grouping.names)
    for k, own in enumerate(captions.by_position(positions)):
        labels = grouping.codes[own.image_rows]
        if np.bincount(labels, minlength=n_classes).min() >= SMALLEST_GROUP:
            name = f"{part}:{k}" if part.side == "human" else part
            yield Labelled(name, own, labels, n_classes, grouping.names)


@dataclass(frozen=True)
class Manner:
    """How a metric attacks.

    Attributes:
        attribute: the name of what is guessed.
        positions: how many human captions of an image are used.
        wordless_limit: the share of captions without a word above which there is nothing to learn.
        shown: adds to captions what else attackers may look at.
        predict: what fresh attackers predict.
    """

    attribute: str
    positions: int
    wordless_limit: float
    shown: Callable[[Labelled, Corpus], Labelled]
    predict: Callable[[Labelled, Sequence[Split]], Predictions]


class Attack:
    """Attackers of one corpus.

    Args:
        manner: of the metric.
        ready: captions as attackers read them.
        splits: one a seed.

    Attributes:
        trained: all predictions so far.
        notes: what a reader of the result must know.
        wordless_share: side to the share of its captions without a word.
    """

    def __init__(self, manner: Manner, ready: Corpus, splits: Sequence[Split]) -> None:
        self.manner = manner
        self.ready = ready
        self.splits = splits
        self.trained: list[Predictions] = []
        self.notes: list[str] = []
        self.wordless_share: dict[str, float] = {}
        self._done: dict[tuple[str, bytes], list[Predictions]] = {}
        self._verbatim: dict[PartName, list[float]] = {}

    def on(self, part: PartName, images: Mask) -> list[Predictions]:
        """Predictions on one side of some images, one item a caption position.

        Args:
            part: a side, as it is or ``paired``; names the predictions.
            images: the part's images; a set that was attacked before is not attacked again.
        """
        key = (part.side, images.tobytes())
        if key not in self._done:
            tables = self._labelled(part, images)
            self._done[key] = [self.attack(table) for table in tables]
            self._verbatim[part] = [_verbatim_share(table, self.splits) for table in tables]
        return self._done[key]

    def attack(self, data: Labelled) -> Predictions:
        """What attackers predict that learnt from some captions."""
        self._check_tested(data)
        predictions = self.manner.predict(data, self.splits)
        self.trained.append(predictions)
        return predictions

    def _labelled(self, part: PartName, images: Mask) -> list[Labelled]:
        side, captions = part.side, self.ready.side(part.side)
        captions = captions.take(images[captions.image_rows])
        self._check_words(side, captions)
        grouping = self.ready.groupings[self.manner.attribute]
        tables = list(labelled(part, captions, grouping, self.manner.positions))
        if not tables:
            raise NotApplicableError(
                f"captioner {self.ready.captioner!r}, {side} captions: attackers need two groups "
                f"or more with at least {SMALLEST_GROUP} captioned images each"
            )
        return [self.manner.shown(table, self.ready) for table in tables]

    def _check_tested(self, data: Labelled) -> None:
        """A seed without a test caption of every group has no score, and with it the metric."""
        for split in self.splits:
            _, test = split.select(data.captions.image_rows, data.labels)
            if not len(test):
                raise NotApplicableError(
                    f"captioner {self.ready.captioner!r}: none of {len(data.captions)} captions "
                    f"({data.name}) can be tested with seed {split.seed}; score more images of "
                    "each group"
                )

    def _check_words(self, side: str, captions: Captions) -> None:
        special = [is_special(word) or not any(map(str.isalnum, word)) for word in captions.types]
        wordless = ~_holding(captions, ~np.array(special, bool))
        share = float(wordless.mean())
        self.wordless_share[side] = share
        if share > self.manner.wordless_limit:
            raise DataError(
                f"captioner {self.ready.captioner!r}: {_wordless(side, captions, share)}"
            )
        if share > WORDLESS_WARNING:
            self.notes.append(f"{share:.0%} of the {side} captions hold no word once masked")

    def verbatim_share(self) -> dict[str, float]:
        """Share of test captions that stand verbatim in training, of all images of a side."""
        shares = {str(name): self._verbatim.get(name) for name in (MODEL, HUMAN)}
        return {side: float(np.mean(own)) if own else np.nan for side, own in shares.items()}


def _verbatim_share(data: Labelled, splits: Sequence[Split]) -> float:
    """Mean over splits; the split is by image, so captions may repeat across its parts."""
    identities = data.captions.identities
    shares = []
    for split in splits:
        train, test = split.select(data.captions.image_rows, data.labels)
        shares.append(float(np.isin(identities[test], identities[train]).mean()))
    return float(np.mean(shares))
