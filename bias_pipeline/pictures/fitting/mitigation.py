"""The losses of the Equalizer, by which ``fit`` trains against a bias.

With ``fit --equalizer``, a captioner learns to name a group by the person and not by the scene. The
two losses of Hendricks, Burns, Saenko, Darrell and Rohrbach (2018), "Women also Snowboard", are
added to the cross-entropy of words. Both losses are computed at every word that names one of two
groups. p(g) is the sum of the probabilities of all words of group g. The appearance confusion loss
is |p(first) - p(second)| on the picture with people hidden. The confident loss is p(the other
group) / (p(the caption's group) + 1e-5) on the whole picture. Both losses are summed over a
caption's words and averaged over captions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import Float32Array, IntArray
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.data.image_masking import ImageMasking
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.pictures.captioners.backbones import Backbone, BackboneInputs

HIDDEN = "hidden_"  # the beginning of names of a picture with hidden people, in a batch
CAN_HIDE = "can_hide"


@dataclass(frozen=True)
class EqualizerWeights:
    """The weights of the two losses; the loss of words has the weight 1.

    The defaults come from the authors' training script. The script sums the losses of a batch. The
    paper's equations and this program average over captions.
    """

    confusion: float = 10.0  # of the appearance confusion loss
    confident: float = 1.0  # of the confident loss


@dataclass(frozen=True, eq=False)
class Equalizer:
    weights: EqualizerWeights  # the weights of both losses
    words: tuple[frozenset[str], frozenset[str]]  # the words that name each of the two groups
    hidden: Pictures  # the N images with people hidden, where people can be hidden

    @classmethod
    def of_corpus(
        cls, weights: EqualizerWeights, attribute: Attribute, corpus: Corpus, masking: ImageMasking
    ) -> Equalizer:
        namings = attribute.namings()
        if len(namings) > 1 or len(namings[0].words) != 2 or namings[0].applies_to is not None:
            raise UsageError(
                f"--equalizer needs an attribute of two groups whose words name them in any "
                f"context, such as attribute=gender; attribute={attribute.name} is not one"
            )
        if masking.changes_nothing:
            raise UsageError("--equalizer hides people; give image_masking=person_segment")
        masked = masking(corpus).pictures
        if masked is None:
            raise DataError(
                f"dataset {corpus.dataset!r} has no pictures here; set dataset.images=DIR"
            )
        (_, first), (_, second) = namings[0].words
        return cls(weights, (first, second), masked)

    @property
    def spec(self) -> Mapping[str, object]:
        """Everything that decides the losses, without words and pictures."""
        return {**asdict(self.weights), "hidden": [dict(edit.spec) for edit in self.hidden.edits]}

    def members(self, vocabulary: Mapping[str, int], n_words: int) -> Float32Array:
        """(W, 2) 1 where a word names a group, else 0."""
        members = np.zeros((n_words, 2), np.float32)
        for group, words in enumerate(self.words):
            members[[vocabulary[word] for word in words if word in vocabulary], group] = 1
        if not members.any(axis=0).all():
            raise DataError(
                "--equalizer: the captions name one group only; it needs captions of both"
            )
        return members

    def inputs(self, backbone: Backbone, images: LabelledCaptions) -> HiddenInputs:
        pictures = self.hidden.take(images.captions.image_rows)
        able = np.flatnonzero(pictures.present)
        places = np.full(len(pictures), -1)
        places[able] = np.arange(len(able))
        none = np.zeros(len(able), np.int64)
        shown = LabelledCaptions(
            images.name, images.captions.take(able), none, 1, pictures=pictures.take(able)
        )
        return HiddenInputs(backbone.read(shown), places)


@dataclass(frozen=True, eq=False)
class HiddenInputs:
    visual: BackboneInputs  # the visual inputs of M pictures
    places: IntArray  # (N,) the picture of each image, -1 where people cannot be hidden

    def batch(self, images: IntArray) -> Mapping[str, npt.NDArray[Any]]:
        """``can_hide`` (B,), and visual inputs, which are meaningless if ``can_hide`` is False."""
        places = self.places[images]
        shown = self.visual.batch(np.maximum(places, 0))
        return {CAN_HIDE: places >= 0, **{HIDDEN + name: item for name, item in shown.items()}}
