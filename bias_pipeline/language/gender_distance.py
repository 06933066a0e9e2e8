"""Measures whether the objects that captions name are nearer to one group's word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.attack.language_models import Frozen, Line
from bias_pipeline.corpus.attribute import TaskVocabulary
from bias_pipeline.corpus.corpus import SIDES
from bias_pipeline.declared import Count, NotNegative
from bias_pipeline.errors import NotApplicableError, UsageError
from bias_pipeline.language.formulas import (
    bias_ratio,
    cosines,
    mean_cosines,
    ratio_to_neutral,
)
from bias_pipeline.language.vectors import GLOVE_NAME, digests, files_of, word_vectors
from bias_pipeline.metrics.base import WEIGHTS, Cost, ExpectedResponse, MetricInfo
from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.metrics.counting.base import TaskMetric, least_share
from bias_pipeline.metrics.counting.numbers import SHARE, CountedNumber, Sums, Tally
from bias_pipeline.metrics.counting.sides import (
    CaptionSides,
    by_group,
    cross_with_groups,
    mean_of,
    one_hot,
)
from bias_pipeline.metrics.functional.counts import share
from bias_pipeline.metrics.references import SABIR_2023, ZHAO_2017
from bias_pipeline.metrics.value_names import (
    HUMAN_PAIRED,
    MODEL,
    MODEL_PAIRED,
    SCORE,
    PartName,
)
from bias_pipeline.text.counterfactual_captions import term_of

OBJECTS = "objects"  # the table's name
_COSINE = (-1.0, 1.0)


@dataclass(eq=False, kw_only=True)
class GenderDistance(TaskMetric):
    """Bias ratio, computed from word vectors of the objects in captions (Sabir and Padro).

    ``distance:GROUP:model`` and ``:human`` are the mean cosines between the group's word and the
    objects that the captioner or annotators name. ``model`` and ``human`` are the first group's
    share of the sum of groups' mean cosines (eq. 1). ``score`` is ``model`` minus ``human`` on the
    images that both describe. Only ``cooccurrence`` and ``leakage`` depend on the group that a
    caption names.

    * ``to_neutral:GROUP:model``, ``:human``: the group's mean cosine, divided by the neutral word's
      mean cosine (eq. 2).
    * ``object:NAME``: the first group's share of the sum of an object's cosines.
    * ``cooccurrence:*``: among the objects and groups that captions name together, the first
      group's share.
    * ``leakage:GROUP``: the number of the captioner's captions that name the group, divided by the
      number of human captions that do (Table 3).
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="gender_distance",
        title="Gender-object distance",
        version=1,
        unit="fraction",
        range=(-1.0, 1.0),
        neutral=0.0,
        direction="at 0, captions name objects as near to each group's word as annotators do; "
        "above 0, their objects are nearer to the first group's word",
        family="language",
        question="tasks",
        sources={SABIR_2023: "eq. 1 and 2", ZHAO_2017: "an object's ratio"},
        ours="the difference from annotators is",
        needs=(WEIGHTS,),
        without={"human captions": MODEL},
        cost=Cost(per_caption=2e-5),
        responses={
            "score": ExpectedResponse(
                stays=("women called men", "group follows object", "names no group", "synonym")
            )
        },
        says={"score": "it names objects nearer to the first group's word than annotators do"},
        amplification=True,
    )

    # Where word vectors are, see `word_vectors`: GloVe, FastText, word2vec, GN-GloVe. If a name has
    # several words, its vector is the mean of their vectors, each of length 1
    vectors: Line = GLOVE_NAME
    # A folder or a name on the hub that gives vectors instead, if any
    sentence_encoder: Line | None = None
    # Objects instead of the vocabulary's, such as `[skateboard,kitchen]`. A task of the vocabulary
    # counts with all its words, another word by itself
    objects: Sequence[str] | None = None
    # Treatment of a word without a vector: `zero`, a cosine of 0 (the public code), or `skip`,
    # which leaves the object out (ours)
    oov: Literal["zero", "skip"] = "zero"
    terms: Mapping[str, str] | None = None  # each group's word (default: the first listed word)
    neutral: str = "person"  # the word for no group in particular
    # An object gets its own parts if at least this share of a side's captions name it; see
    # `least_share`
    min_support: NotNegative = 0.005
    positions: Count = 5  # how many human captions of an image are used
    device: str = "auto"  # where sentences are embedded
    cache: str | None = None  # folder of sentence vectors, None to store none

    def __post_init__(self) -> None:
        """Read the names of the objects."""
        super().__post_init__()
        if self.objects is not None:
            self.task = _named_objects(self.objects, self.task)
            self.exclude_tasks = ()

    @cached_property
    def encoder(self) -> Frozen | None:
        """The sentence encoder whose vectors are used; there may be none."""
        if not self.sentence_encoder:
            return None
        store = None if self.cache is None else str(Path(self.cache, "embeddings"))
        return Frozen(self.sentence_encoder, device=self.device, cache=store)

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        encoder = settings.get("sentence_encoder")
        if encoder:
            return {"sentence_encoder": dict(Frozen(encoder).pretrained_model.files), "vectors": ""}
        return {"vectors": digests(str(settings["vectors"]))}

    def require(self) -> None:
        if self.encoder:
            self.encoder.require()
        else:
            files_of(self.vectors)

    def rests_on_names(self, part: PartName) -> bool:
        """True for co-occurrence and leakage, since distances use only objects."""
        return part.what in ("cooccurrence", "leakage")

    def tally(self, view: CorpusView) -> Tally:
        sides = CaptionSides.from_view(view, self.positions)
        n_groups = len(view.groups)

        def things(side: str, chosen: BoolArray) -> sparse.csr_array:
            code = np.where(chosen, 0, -1)
            return view.by_image(side, cross_with_groups(code, view.mentions(side), 1))

        def pairs(side: str, chosen: BoolArray) -> sparse.csr_array:
            named = np.where(chosen, view.named_group(side), -1)
            return view.by_image(side, cross_with_groups(named, view.mentions(side), n_groups))

        def who(side: str, chosen: BoolArray) -> sparse.csr_array:
            return view.by_image(
                side, one_hot(np.where(chosen, view.named_group(side), -1), n_groups)
            )

        tables = {
            **sides.tables(view, things, "things:"),
            **sides.tables(view, pairs, "pairs:"),
            **sides.tables(view, who, "who:"),
        }
        cosine = self._cosines(view)
        unknown = self._unknown(cosine, view)
        how, near = "left out", cosine
        if self.oov == "zero":
            how, near = "near nobody", np.where(np.isnan(cosine), 0.0, cosine)
        note = f"objects without a vector, {how} (metric.oov={self.oov}): {', '.join(unknown)}"
        notes = [note] if unknown else []
        with_parts = self._with_parts(sides, tables)
        values = _Values(view.groups, self.neutral, near, view.tasks, with_parts, sides)
        return Tally(
            tables,
            values.numbers,
            audit={"objects_without_a_vector": len(unknown)},
            notes=[*notes, *sides.notes],
            lines={OBJECTS: self._lines(view, near)},
        )

    def _lines(self, view: CorpusView, near: Float64Array) -> list[dict[str, object]]:
        """A line for each named object: its mentions, the groups beside it, the nearest group."""
        words = [*view.groups, self.neutral]
        lines, n_groups = [], len(view.groups)
        for side in [side for side in SIDES if len(view.corpus.side(side))]:
            mentions = view.mentions(side)
            crossed = cross_with_groups(view.named_group(side), mentions, n_groups)
            pairs = np.asarray(crossed.sum(axis=0)).reshape(n_groups, -1)
            counts = np.asarray(mentions.sum(axis=0))
            for t in np.argsort(-counts, kind="stable").tolist():
                cosine = {word: float(near[t, k]) for k, word in enumerate(words)}
                known = {word: value for word, value in cosine.items() if np.isfinite(value)}
                lines.append(
                    {
                        "side": side,
                        "object": view.tasks[t],
                        "captions": int(counts[t]),
                        **{f"with {g}": int(pairs[k, t]) for k, g in enumerate(view.groups)},
                        **{f"cosine {word}": round(value, 6) for word, value in cosine.items()},
                        "nearest": max(known, key=known.__getitem__) if known else "",
                    }
                )
        return [line for line in lines if line["captions"]]

    def _terms(self, view: CorpusView) -> list[str]:
        return [
            *(term_of(group, self.attribute, self.terms or {}) for group in view.groups),
            self.neutral,
        ]

    def _unknown(self, cosine: Float64Array, view: CorpusView) -> list[str]:
        nowhere: BoolArray = np.isnan(cosine)
        if nowhere.all():
            raise NotApplicableError(
                f"none of the {len(view.tasks)} objects has a vector in {self.vectors} together "
                "with a group's word, so there is no distance; give others with metric.vectors"
            )
        lost = np.flatnonzero(nowhere.all(axis=0))
        if len(lost):
            who = (*view.groups, "nobody in particular")[lost[0]]
            raise NotApplicableError(
                f"{self._terms(view)[lost[0]]!r}, the word for {who}, has no vector in "
                f"{self.vectors}; give another word with metric.terms"
            )
        return [view.tasks[t] for t in np.flatnonzero(nowhere.all(axis=1)).tolist()]

    def _cosines(self, view: CorpusView) -> Float64Array:
        """(T, K + 1) cosines of objects and groups' words, the neutral word last; some are NaN."""
        names, words = list(view.tasks), self._terms(view)
        if self.encoder:
            distinct = list(dict.fromkeys([*names, *words]))
            embedded = self.encoder.vectors(distinct).astype(np.float64)
            place = {text: row for row, text in enumerate(distinct)}
            return cosines(embedded[[place[n] for n in names]], embedded[[place[w] for w in words]])
        vectors = word_vectors(
            self.vectors, {part for name in (*names, *words) for part in name.split()}
        )
        size = max(1, vectors.units.shape[1])  # 1 if no word has a vector

        def vector(name: str) -> Float64Array:
            parts = [part for part in name.split() if part in vectors.places]
            return vectors.rows(parts).mean(axis=0) if parts else np.zeros(size)

        return cosines(*(np.stack([vector(name) for name in side]) for side in (names, words)))

    def _with_parts(self, sides: CaptionSides, tables: Mapping[str, sparse.csr_array]) -> IntArray:
        """The numbers of the objects that get parts of their own."""
        if self.objects is not None:
            return np.arange(len(self.task.tasks))
        counts = np.asarray(tables[f"things:{MODEL}:0"].sum(axis=0))
        n_images = int(sides.images[MODEL].sum())
        least = least_share(self.min_support, n_images)
        return np.flatnonzero(counts >= max(1.0, least * n_images))


@dataclass(frozen=True, eq=False)
class _Values:
    groups: tuple[str, ...]  # the K groups
    neutral: str  # the word for no group in particular
    near: Float64Array  # (T, K + 1) cosines of objects and words of groups, the neutral word last
    objects: tuple[str, ...]  # the T objects
    with_parts: IntArray  # indices of the objects that get their own parts
    sides: CaptionSides  # the images of each part

    def numbers(self, sums: Sums) -> dict[PartName, CountedNumber]:
        n = len(self.groups)
        values: dict[PartName, CountedNumber] = {}
        for part in self.sides.images:
            means = mean_of(
                [
                    mean_cosines(counts, self.near)
                    for counts in self.sides.position_sums(part, sums, "things:")
                ]
            )
            values[part] = self.sides.number(part, bias_ratio(means[:, :n]))
            if not part.detail:
                values |= self._of_side(part, means, self._pairs(sums, part))
        if HUMAN_PAIRED in self.sides.images:
            values[SCORE] = values[MODEL_PAIRED] - values[HUMAN_PAIRED]
            values |= self._comparisons(sums)
        ratios = np.tile(bias_ratio(self.near[self.with_parts, :n]), (len(values[MODEL].values), 1))
        of_objects = CountedNumber(values=ratios, images=self.sides.paired_images)
        return values | of_objects.by_object(self.objects[t] for t in self.with_parts)

    def _pairs(self, sums: Sums, part: PartName) -> Float64Array:
        """(B, K, T) how often each object is named with one group, over all positions."""
        pooled = np.sum(self.sides.position_sums(part, sums, "pairs:"), axis=0)
        return by_group(pooled, len(self.groups))

    def _of_side(
        self, part: PartName, means: Float64Array, pairs: Float64Array
    ) -> dict[PartName, CountedNumber]:
        side = part.side
        number = partial(CountedNumber, images=self.sides.images[part], side=side)
        distance = partial(number, unit="cosine", range=_COSINE)
        values = {
            PartName("distance", group=self.neutral, side=side): distance(values=means[:, -1])
        }
        for k, group in enumerate(self.groups):
            of_group = partial(PartName, group=group, side=side)
            values[of_group("distance")] = distance(values=means[:, k])
            values[of_group()] = number(values=bias_ratio(means[:, :-1], k), range=SHARE)
            to_neutral = ratio_to_neutral(means[:, k], means[:, -1])
            values[of_group("to_neutral")] = number(values=to_neutral, unit="ratio")
        shares = share(pairs[:, 0], pairs.sum(axis=1))
        values[PartName("cooccurrence", side=side)] = number(
            values=_first_share(pairs), range=SHARE
        )
        of_objects = number(values=shares[:, self.with_parts], range=SHARE)
        names = [self.objects[t] for t in self.with_parts]
        return values | of_objects.by_object(names, "cooccurrence", side=side)

    def _comparisons(self, sums: Sums) -> dict[PartName, CountedNumber]:
        number = partial(CountedNumber, images=self.sides.images[MODEL_PAIRED])
        model, human = (
            mean_of(self.sides.position_sums(p, sums, "who:")) for p in (MODEL_PAIRED, HUMAN_PAIRED)
        )
        leaks = share(model, human)
        change = _first_share(self._pairs(sums, MODEL_PAIRED)) - _first_share(
            self._pairs(sums, HUMAN_PAIRED)
        )
        return {
            PartName("cooccurrence"): number(values=change),
            **number(values=leaks, unit="ratio").by_group(self.groups, "leakage"),
        }


def _first_share(pairs: Float64Array) -> Float64Array:
    """(B,) the first group's share in all (B, K, T) pairs."""
    return share(pairs[:, 0].sum(axis=1), pairs.sum(axis=(1, 2)))


def _named_objects(names: Sequence[str], task: TaskVocabulary) -> TaskVocabulary:
    """A vocabulary of the named objects; a task keeps all its words, another object has one."""
    distinct = [name.strip().lower() for name in names]
    if not distinct or not all(distinct) or len(set(distinct)) < len(distinct):
        raise UsageError(f"metric.objects={list(names)}: give distinct names of objects")
    return TaskVocabulary("objects", {name: task.tasks.get(name, (name,)) for name in distinct})
