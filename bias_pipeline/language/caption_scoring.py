"""Scores captions for the Gender Score; each caption is written about every group in turn.

The visual context of a caption is the objects in its picture, with probabilities.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.attack.language_models import Frozen
from bias_pipeline.corpus.captions import ranges
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.object_names import coco_name
from bias_pipeline.errors import NotApplicableError, UsageError, did_you_mean
from bias_pipeline.language.formulas import bias_ratio, gender_score, likeliest_group
from bias_pipeline.language.language_model import LanguageModel
from bias_pipeline.metrics.corpus_view import CorpusView, sum_by_image
from bias_pipeline.metrics.counting.numbers import COUNT, CountedNumber, Sums
from bias_pipeline.metrics.counting.sides import CaptionSides, by_group
from bias_pipeline.metrics.functional.counts import share
from bias_pipeline.metrics.value_names import (
    HUMAN,
    HUMAN_PAIRED,
    MODEL,
    MODEL_PAIRED,
    SCORE,
    PartName,
)
from bias_pipeline.text.counterfactual_captions import captions_naming


@dataclass(frozen=True, eq=False)
class Contexts:
    """The objects of images, as M pairs of an image and an object, in the order of the images."""

    names: tuple[str, ...]  # the U distinct objects
    images: IntArray  # (M,) row of each pair's image
    objects: IntArray  # (M,) index of its object
    probabilities: Float64Array  # (M,) P(c) of the object, in [0, 1]
    notes: tuple[str, ...] = ()  # sentences for readers about the source

    @classmethod
    def of_images(
        cls, objects_by_row: Mapping[int, Mapping[str, float]], notes: tuple[str, ...] = ()
    ) -> Contexts:
        """Contexts from a mapping that gives, for rows of images, the objects and their P(c).

        Example:
            >>> contexts = Contexts.of_images({3: {"dog": 0.5}, 1: {"kite": 0.25, "dog": 0.75}})
            >>> contexts.names, contexts.images.tolist(), contexts.probabilities.tolist()
            (('dog', 'kite'), [1, 1, 3], [0.75, 0.25, 0.5])
        """
        pairs = [
            (row, name, objects_by_row[row][name])
            for row in sorted(objects_by_row)
            for name in sorted(objects_by_row[row])
        ]
        names = tuple(sorted({name for _, name, _ in pairs}))
        number = {name: k for k, name in enumerate(names)}
        return cls(
            names,
            np.array([row for row, _, _ in pairs], np.int64),
            np.array([number[name] for _, name, _ in pairs], np.int64),
            np.array([probability for _, _, probability in pairs], np.float64),
            notes,
        )

    def images_with_objects(self, n_images: int) -> BoolArray:
        flags = np.zeros(n_images, bool)
        flags[self.images] = True
        return flags

    def pairs_of(self, images: IntArray) -> tuple[IntArray, IntArray]:
        """(P,) the pairs of R images, in any order, and (P,) the image of each pair."""
        starts, ends = (np.searchsorted(self.images, images, side) for side in ("left", "right"))
        return ranges(starts, ends - starts), np.repeat(np.arange(len(images)), ends - starts)

    def number(self, name: str) -> int:
        if name not in self.names:
            raise UsageError(
                f"metric.objects: no image shows {name!r}; {did_you_mean(name, self.names)}"
            )
        return self.names.index(name)


def annotated_objects(corpus: Corpus, excluded: Collection[str]) -> Contexts:
    """The objects of a data set's annotations.

    Annotations have no confidence. P(c) is how common an object is: the share of images with known
    objects that show the object. The paper has the same meaning of P(c): an object in every picture
    says nothing about people.
    """
    of_images = corpus.objects or ()
    names = {name: coco_name(name) for name in corpus.images_by_object}
    objects_of_images = [
        sorted({names[name] for name in objects or ()} - set(excluded)) for objects in of_images
    ]
    known = sum(objects is not None for objects in of_images)
    if not any(objects_of_images):
        raise NotApplicableError(
            f"dataset {corpus.dataset!r} has no objects for these images, and the Gender "
            "Score needs objects as visual context"
        )
    counts = Counter(name for objects in objects_of_images for name in objects)
    shares = {name: count / known for name, count in counts.items()}
    return Contexts.of_images(
        {
            row: {name: shares[name] for name in objects}
            for row, objects in enumerate(objects_of_images)
        }
    )


OWN_BIAS = PartName("lm", detail="own_bias")
TIES = PartName("ties")
# A caption's score: by both factors, by the language model alone, by similarity alone.
FACTORS = ("gs", "lm", "similarity")
ESTIMATES = {"gs": "estimate", "lm": "estimate_lm", "similarity": "estimate_similarity"}
_COLUMNS = ("count", *FACTORS, *ESTIMATES.values(), "told")  # K columns each, then a column of ties


@dataclass(frozen=True)
class CaptionScorer:
    """The models and settings by which captions are scored."""

    language_model: LanguageModel  # gives P(g)
    sentence_encoder: Frozen  # gives similarities
    weigh: str = "captions"  # `captions`, or `pairs` of a caption and an object
    positions: int = 1  # how many human captions of an image are judged
    terms: Mapping[str, str] = field(default_factory=dict)  # see `captions_naming`

    def require(self) -> None:
        self.language_model.require()
        self.sentence_encoder.require()


def unit_vectors(encoder: Frozen, texts: Sequence[str]) -> Float64Array:
    """(N, D) vectors of texts, of length 1; texts may repeat."""
    place = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    vectors = encoder.vectors(list(place)).astype(np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: Float64Array = (vectors / np.where(lengths > 0, lengths, 1.0))[[place[t] for t in texts]]
    return units


def judge(
    how: CaptionScorer,
    texts: Sequence[Sequence[str]],
    contexts: Contexts,
    pairs: IntArray,
    of: IntArray,
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Likelihoods (R, K) of texts; similarities (P, K) and scores (P, K) of texts and objects.

    Pair p joins text ``of[p]`` and row ``pairs[p]`` of ``contexts``.
    """
    flat = [text for versions in texts for text in versions]
    shape = (len(texts), len(texts[0]))
    likelihood = np.exp(how.language_model.log_likelihood(flat)).reshape(shape).T
    vectors = unit_vectors(how.sentence_encoder, [*flat, *contexts.names])
    version_vectors = vectors[: len(flat)].reshape(*shape, vectors.shape[1])
    names = vectors[len(flat) :][contexts.objects[pairs]]
    similarity = np.stack(
        [(vectors_of_group[of] * names).sum(axis=-1) for vectors_of_group in version_vectors],
        axis=1,
    )
    probability = contexts.probabilities[pairs][:, None]
    return likelihood, similarity, gender_score(likelihood[of], similarity, probability)


def mean_over(of: IntArray, values: Float64Array, n_texts: int) -> Float64Array:
    """(R, K) means over the objects of each text, from the (P, K) values of pairs."""
    totals = np.stack([np.bincount(of, column, minlength=n_texts) for column in values.T], axis=1)
    means: Float64Array = totals / np.bincount(of, minlength=n_texts)[:, None]
    return means


class Judged:
    """Scores of a side's captions, each caption written about every group in turn."""

    def __init__(self, how: CaptionScorer, view: CorpusView, contexts: Contexts, side: str) -> None:
        captions, self.side = view.corpus.side(side), side
        self.named, self.images = view.named_group(side), captions.image_rows
        self.shape = (len(view.corpus), len(captions))
        self.n_groups = len(view.groups)
        shown = (view.labelled & contexts.images_with_objects(len(view.corpus)))[
            captions.image_rows
        ]
        scored = shown & (self.named >= 0) & (captions.positions < how.positions)
        self.rows = np.flatnonzero(scored)  # (R,) the captions
        # (P,) rows of contexts, which are the objects in the captions' pictures, and (P,) for each
        # row which of the R captions it belongs to
        self.pairs, self.of = contexts.pairs_of(captions.image_rows[self.rows])
        self.objects = contexts.objects[self.pairs]
        self.weigh = how.weigh
        versions = (captions_naming(captions, view.attribute, g, how.terms) for g in view.groups)
        self.texts = [[version.text(row) for row in self.rows.tolist()] for version in versions]
        self.likelihood, self.similarity, self.score = judge(
            how, self.texts, contexts, self.pairs, self.of
        )

    @property
    def audit(self) -> Mapping[str, object]:
        return {
            "captions": len(self.rows),
            "pairs": len(self.pairs),
            "similarities_below_0": int((self.similarity < 0).sum()),
        }

    def table(self, chosen: BoolArray) -> sparse.csr_array:
        """(N, C) sums over the chosen captions of each image; :class:`Values` knows the columns."""
        is_chosen = chosen[self.rows]
        n_objects = np.bincount(self.of, minlength=len(self.rows)).astype(np.float64)
        by_factor = {
            "gs": mean_over(self.of, self.score, len(self.rows)),
            "lm": self.likelihood,
            "similarity": mean_over(self.of, self.similarity, len(self.rows)),
        }
        named = self.named[self.rows]
        weight = n_objects if self.weigh == "pairs" else np.ones(len(self.rows))
        weighted = np.eye(self.n_groups)[named] * weight[:, None]  # (R, K) whom each caption names
        columns = [weighted]
        columns += [weighted * by_factor[name] for name in FACTORS]
        groups = np.arange(self.n_groups)  # no group is -1, which equals none of them
        columns += [
            1.0 * (likeliest_group(by_factor[name])[0][:, None] == groups) for name in FACTORS
        ]
        columns += [
            self.likelihood,
            likeliest_group(by_factor["gs"])[1][:, None].astype(np.float64),
        ]
        sums = np.concatenate(columns, axis=1) * is_chosen[:, None]
        return sum_by_image(sparse.csr_array(sums), self.images[self.rows], self.shape[0])

    def object_tables(
        self, wanted: IntArray, images: BoolArray, name: str
    ) -> dict[str, sparse.csr_array]:
        """Two (N, K * T) tables of wanted objects: sums of pairs' scores and counts of pairs."""
        column = np.full(int(max(self.objects.max(initial=-1), wanted.max(initial=-1))) + 1, -1)
        column[wanted] = np.arange(len(wanted))
        named = self.named[self.rows][self.of]
        inside = (column[self.objects] >= 0) & images[self.images[self.rows][self.of]]
        rows = self.images[self.rows][self.of][inside]
        columns = named[inside] * len(wanted) + column[self.objects[inside]]
        values = self.score[np.arange(len(named)), named][inside]
        shape = (self.shape[0], self.n_groups * len(wanted))
        return {
            f"{name}:scores": sparse.csr_array((values, (rows, columns)), shape),
            f"{name}:counts": sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape),
        }


_FURTHER = (*FACTORS[1:], *ESTIMATES.values())  # numbers of a side besides the score


@dataclass(frozen=True, eq=False)
class Values:
    """Computes the metric's numbers from sums."""

    groups: tuple[str, ...]  # the K groups
    objects: tuple[str, ...]  # the T objects that have their own parts
    sides: CaptionSides  # the images of each part

    def side_numbers(self, sums: Float64Array) -> dict[str, Float64Array]:
        """(B, K) values for each name, computed from the (B, C) sums of :meth:`Judged.table`."""
        n = len(self.groups)
        column = {name: sums[:, k * n : (k + 1) * n] for k, name in enumerate(_COLUMNS)}
        means = {name: share(column[name], column["count"]) for name in FACTORS}
        values = {f"mean {name}": mean for name, mean in means.items()}
        groups = range(len(self.groups))
        values |= {
            name: np.stack([bias_ratio(mean, k) for k in groups], axis=1)
            for name, mean in means.items()
        }
        for name in (*ESTIMATES.values(), "told"):
            values[name] = share(column[name], column[name].sum(axis=1, keepdims=True))
        return {**values, "ties": sums[:, len(_COLUMNS) * n :]}

    def named_numbers(
        self, means: Mapping[PartName, Mapping[str, Float64Array]]
    ) -> dict[PartName, CountedNumber]:
        """The numbers of :class:`~bias_pipeline.language.gender_score.GenderScore`."""
        number = self.sides.number
        values = {part: number(part, by_name["gs"][:, 0]) for part, by_name in means.items()}
        for part, by_name in means.items():
            if not part.detail:
                values |= self._of_side(part, by_name)
        if HUMAN_PAIRED in means:
            model, human = means[MODEL_PAIRED], means[HUMAN_PAIRED]
            values[SCORE] = values[MODEL_PAIRED] - values[HUMAN_PAIRED]
            change = {PartName(name): model[name][:, 0] - human[name][:, 0] for name in _FURTHER}
            groups = model["gs"] - human["gs"]
            change |= {PartName(group=g): groups[:, k] for k, g in enumerate(self.groups)}
            for name, of_name in change.items():
                values[name] = CountedNumber(values=of_name, images=self.sides.paired_images)
        values[OWN_BIAS] = number(MODEL, means[MODEL]["told"][:, 0])
        values[TIES] = number(MODEL, means[MODEL]["ties"][:, 0], COUNT)
        return values

    def _of_side(
        self, part: PartName, by_name: Mapping[str, Float64Array]
    ) -> dict[PartName, CountedNumber]:
        side, number = part.side, partial(self.sides.number, part)
        values = {PartName(name, side=side): number(by_name[name][:, 0]) for name in _FURTHER}
        people = side if side == "human" else ""
        for k, group in enumerate(self.groups):
            values[PartName("gs", group=group, side=people)] = number(by_name["mean gs"][:, k])
            values[PartName(group=group, side=side)] = number(by_name["gs"][:, k])
        return values

    def of_objects(self, sums: Sums) -> dict[PartName, CountedNumber]:
        """For each object, the first group's share in the scores and in the counts."""
        values: dict[PartName, CountedNumber] = {}
        sides = [part for part in (MODEL, HUMAN) if f"objects:{part.side}:counts" in sums]
        for part in sides:
            for kind, what in (("scores", ""), ("counts", "cooccurrence")):
                group_sums = by_group(sums[f"objects:{part.side}:{kind}"], len(self.groups))
                shares = share(group_sums[:, 0], group_sums.sum(axis=1))
                number = self.sides.number(part, shares)
                values |= number.by_object(self.objects, what, side=part.side)
        for name in self.objects if len(sides) == 2 else ():
            model, human = (values[PartName(object=name, side=part.side)] for part in sides)
            values[PartName(object=name)] = replace(model - human, images=self.sides.paired_images)
        return values
