"""Gender-object distance: are the things that captions name nearer to one group's word?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import sparse

from bias_pipeline.corpus.attribute import Attribute, TaskVocabulary
from bias_pipeline.declared import Count, NotNegative
from bias_pipeline.encoders.frozen import Frozen
from bias_pipeline.encoders.published import Line
from bias_pipeline.errors import NotApplicableError, UsageError
from bias_pipeline.metrics.base import WEIGHTS, Cost, MetricInfo, Response
from bias_pipeline.metrics.counting.caption_sides import CaptionSides, mean_of
from bias_pipeline.metrics.counting.tally import (
    SHARE,
    About,
    FloatArray,
    IntArray,
    Mask,
    Sums,
    Tally,
    TaskMetric,
    by_group,
    crossed,
    least_share,
    one_hot,
    support,
)
from bias_pipeline.metrics.functional.counts import share
from bias_pipeline.metrics.functional.gender_distance import cosines, mean_cosines
from bias_pipeline.metrics.functional.gender_score import bias_ratio, ratio_to_neutral
from bias_pipeline.metrics.parts import HUMAN, HUMAN_PAIRED, MODEL, MODEL_PAIRED, SCORE, PartName
from bias_pipeline.metrics.seen import Seen
from bias_pipeline.metrics.sources import SABIR_2023, ZHAO_2017
from bias_pipeline.stats.bootstrap import Bootstrap
from bias_pipeline.text.vectors import GLOVE_NAME, digests, files_of, word_vectors

OBJECTS = "objects"  # the table's name
_COSINE = (-1.0, 1.0)


class GenderDistance(TaskMetric):
    """Bias ratio of the objects that captions name, by vectors of words (Sabir and Padro 2023).

    Every object that a caption names has a cosine to each group's word (the paper calls it
    distance). ``distance:GROUP:model`` and ``:human`` are means over all that a side names;
    ``model`` and ``human`` the first group's share in them, s(m) / (s(m) + s(w)) (eq. 1, a ratio of
    averages, as the paper's tables are), and ``score`` the difference on the images that both sides
    describe. Whom a caption names plays no part: it is the *things* that lean, by what a corpus of
    text says of them. Beside it stands what captions themselves put together, ``cooccurrence``:

    * ``distance:NEUTRAL:model`` and ``:human`` the same of the neutral word, and
      ``to_neutral:GROUP:model`` and ``:human`` the ratio to it (eq. 2);
    * ``group:NAME:model`` and ``:human``: each group's share;
    * ``object:NAME``: the first group's share in an object's own cosines, NaN where one of them is
      not above 0; the same whoever names it;
    * ``cooccurrence:model``, ``:human``, ``cooccurrence``: the first group's share among the pairs
      of an object and the one group that a caption names (Zhao et al. 2017), and
      ``cooccurrence:NAME:model`` and ``:human`` of one object (the paper's Table 4);
    * ``leakage:GROUP``: captions of the captioner that name a group for one of people's (Table 3).

    The table ``objects.csv`` has counts, cosines and the nearest group of every object (Table 1).

    Args:
        attribute: whose groups are compared; any number of them.
        task: whose tasks are the objects.
        stats: how intervals over images are made; vectors are not resampled.
        vectors: where word vectors are, see :func:`~bias_pipeline.text.vectors.word_vectors`:
            GloVe, FastText, word2vec, GN-GloVe. A name of several words has the mean of theirs.
        sentence_encoder: a folder or a name on the hub that gives vectors instead, if any.
        objects: names instead of the vocabulary's, such as ``[skateboard,kitchen]``: its tasks
            count with all their words, other words as they stand.
        oov: what a word without a vector is: ``zero``, a cosine of 0 (the public code), or
            ``skip``, so that the object is left out (ours).
        terms: group to the word that stands for it; the first listed word if left out.
        neutral: the word that stands for nobody in particular.
        min_support: the share of captions of a side that must name an object for it to get parts of
            its own; see :func:`~bias_pipeline.metrics.counting.tally.least_share`.
        positions: how many human captions of an image are used.
        words: see :class:`~bias_pipeline.metrics.counting.tally.CountingMetric`.
        exclude_tasks: tasks left out; every image shows a person.
        device: where sentences are embedded.
        cache: folder of sentence vectors, None to keep none.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="gender_distance",
        title="Gender-object distance",
        version=1,
        unit="fraction",
        range=(-1.0, 1.0),
        neutral=0.0,
        direction="0: names things as near to each group as people do; above 0 things nearer to "
        "the first group",
        family="language",
        question="tasks",
        sources={SABIR_2023: "eq. 1 and 2", ZHAO_2017: "an object's ratio"},
        ours="the difference to people is",
        needs=(WEIGHTS,),
        cost=Cost(per_caption=2e-5),
        responses={
            "score": Response(
                stays=("women called men", "group follows object", "neutral alone", "synonym")
            )
        },
        says={"score": "it names things nearer to the first group's word than people do"},
        amplification=True,
    )

    def __init__(
        self,
        attribute: Attribute,
        task: TaskVocabulary,
        stats: Bootstrap,
        vectors: Line = GLOVE_NAME,
        sentence_encoder: Line | None = None,
        objects: Sequence[str] | None = None,
        oov: Literal["zero", "skip"] = "zero",
        terms: Mapping[str, str] | None = None,
        neutral: str = "person",
        min_support: NotNegative = 0.005,
        positions: Count = 5,
        words: str | None = None,
        exclude_tasks: Sequence[str] = ("person",),
        device: str = "auto",
        cache: str | None = None,
    ) -> None:
        super().__init__(attribute, task, stats, words, exclude_tasks)
        self.source = vectors
        kept = None if cache is None else str(Path(cache, "embeddings"))
        self.encoder = sentence_encoder and Frozen(sentence_encoder, device=device, cache=kept)
        if objects is not None:
            self.task = _named_objects(objects, task)
            self.exclude_tasks = ()
        self.objects = objects
        self.oov = oov
        self.terms = dict(terms or {})
        self.neutral = neutral
        self.min_support = support(min_support)
        self.positions = positions

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        """Vectors or encoder by the digests of their files."""
        encoder = settings.get("sentence_encoder")
        if encoder:
            return {"sentence_encoder": dict(Frozen(encoder).found.files), "vectors": ""}
        return {"vectors": digests(str(settings["vectors"]))}

    def require(self) -> None:
        """See the base."""
        if self.encoder:
            self.encoder.require()
        else:
            files_of(self.source)

    def rests_on_names(self, part: PartName) -> bool:
        """Co-occurrence and leakage; a distance is of things alone."""
        return part.what in ("cooccurrence", "leakage")

    def tally(self, seen: Seen) -> Tally:
        """See the class."""
        sides = CaptionSides.of(seen, self.positions)
        n_groups = len(seen.groups)

        def things(side: str, chosen: Mask) -> sparse.csr_array:
            kept = np.where(chosen, 0, -1)
            return seen.by_image(side, crossed(kept, seen.mentions(side), 1))

        def pairs(side: str, chosen: Mask) -> sparse.csr_array:
            named = np.where(chosen, seen.named(side), -1)
            return seen.by_image(side, crossed(named, seen.mentions(side), n_groups))

        def who(side: str, chosen: Mask) -> sparse.csr_array:
            return seen.by_image(side, one_hot(np.where(chosen, seen.named(side), -1), n_groups))

        tables = {
            f"{what}:{name}": table
            for what, make in (("things", things), ("pairs", pairs), ("who", who))
            for name, table in sides.tables(seen, make).items()
        }
        cosine = self._cosines(seen)
        unknown = self._unknown(cosine, seen)
        near = self._near(cosine)
        kept = self._with_parts(sides, tables)
        values = _Values(seen.groups, self.neutral, near, seen.tasks, kept, sides)
        whole = {name: np.asarray(t.sum(axis=0), np.float64)[None] for name, t in tables.items()}
        return Tally(
            tables=tables,
            numbers=values.of,
            about=About(sides.images.get(MODEL_PAIRED, sides.images[MODEL])),
            parts={name: values.about(name) for name in values.of(whole)},
            audit={"objects_without_a_vector": len(unknown)},
            notes=[*self._notes(unknown), *self._without_people(sides)],
        )

    def examples(self, seen: Seen) -> Mapping[str, Sequence[Mapping[str, object]]]:
        """Every object that is named: how often, with whom, and whom it is nearest to."""
        near, words = self._near(self._cosines(seen)), [*seen.groups, self.neutral]
        lines = []
        for side in [own for own in ("model", "human") if len(seen.corpus.side(own))]:
            named, mentions = seen.named(side), seen.mentions(side)
            pairs = by_group(
                np.asarray(crossed(named, mentions, len(seen.groups)).sum(axis=0), np.float64)[
                    None
                ],
                len(seen.groups),
            )[0]
            counts = np.asarray(mentions.sum(axis=0))
            for t in np.argsort(-counts, kind="stable").tolist():
                cosine = {word: float(near[t, k]) for k, word in enumerate(words)}
                known = {word: own for word, own in cosine.items() if np.isfinite(own)}
                lines.append(
                    {
                        "side": side,
                        "object": seen.tasks[t],
                        "captions": int(counts[t]),
                        **{f"with {g}": int(pairs[k, t]) for k, g in enumerate(seen.groups)},
                        **{f"cosine {word}": round(own, 6) for word, own in cosine.items()},
                        "nearest": max(known, key=known.__getitem__) if known else "",
                    }
                )
        return {OBJECTS: [line for line in lines if line["captions"]]}

    def _terms(self, seen: Seen) -> list[str]:
        """The word of each group, and the neutral one."""
        return [*(self.terms.get(g, self.attribute.words[g][0]) for g in seen.groups), self.neutral]

    def _unknown(self, cosine: FloatArray, seen: Seen) -> list[str]:
        """Objects without a vector.

        Raises:
            NotApplicableError: if no object has one, or the word of a group has none.
        """
        nowhere: Mask = np.isnan(cosine)
        if nowhere.all():
            raise NotApplicableError(
                f"none of the {len(seen.tasks)} objects has a vector in {self.source} beside the "
                "groups' words, so there is no distance"
            )
        lost = np.flatnonzero(nowhere.all(axis=0))
        if len(lost):
            who = (*seen.groups, "nobody in particular")[lost[0]]
            raise NotApplicableError(
                f"{self._terms(seen)[lost[0]]!r}, which stands for {who}, has no vector in "
                f"{self.source}; give another word with metric.terms"
            )
        return [seen.tasks[t] for t in np.flatnonzero(nowhere.all(axis=1)).tolist()]

    def _notes(self, unknown: Sequence[str]) -> list[str]:
        how = "near nobody" if self.oov == "zero" else "left out"
        told = f"objects without a vector, {how} (metric.oov={self.oov}): {', '.join(unknown)}"
        return [told] if unknown else []

    def _without_people(self, sides: CaptionSides) -> list[str]:
        return [] if HUMAN in sides.images else ["no human captions: there is no score"]

    def _near(self, cosine: FloatArray) -> FloatArray:
        """(T, K + 1) cosines as they count."""
        return np.where(np.isnan(cosine), 0.0, cosine) if self.oov == "zero" else cosine

    def _cosines(self, seen: Seen) -> FloatArray:
        """(T, K + 1) of objects and the groups' words, the neutral word last; NaN for none."""
        names, words = list(seen.tasks), self._terms(seen)
        if self.encoder:
            distinct = list(dict.fromkeys([*names, *words]))
            found = self.encoder.vectors(distinct).astype(np.float64)
            place = {text: row for row, text in enumerate(distinct)}
            return cosines(found[[place[n] for n in names]], found[[place[w] for w in words]])
        own = word_vectors(
            self.source, {part for name in (*names, *words) for part in name.split()}
        )
        size = max(1, own.units.shape[1])  # 1 where no word is known

        def vector(name: str) -> FloatArray:
            parts = [part for part in name.split() if part in own.places]
            return own.rows(parts).mean(axis=0) if parts else np.zeros(size)

        return cosines(*(np.stack([vector(name) for name in side]) for side in (names, words)))

    def _with_parts(self, sides: CaptionSides, tables: Mapping[str, sparse.csr_array]) -> IntArray:
        """Numbers of the objects that get parts of their own."""
        if self.objects is not None:
            return np.arange(len(self.task.tasks))
        counts = np.asarray(tables[f"things:{MODEL}:0"].sum(axis=0))
        n_images = int(sides.images[MODEL].sum())
        least = least_share(self.min_support, n_images)
        return np.flatnonzero(counts >= max(1.0, least * n_images))


@dataclass(frozen=True, eq=False)
class _Values:
    """From sums to named numbers.

    Attributes:
        groups: the K groups.
        neutral: the word for nobody in particular.
        near: (T, K + 1) cosines of objects, of the neutral word last.
        objects: the T objects.
        kept: numbers of those that get parts of their own.
        sides: which images each part rests on.
    """

    groups: tuple[str, ...]
    neutral: str
    near: FloatArray
    objects: tuple[str, ...]
    kept: IntArray
    sides: CaptionSides

    def of(self, sums: Sums) -> dict[PartName, FloatArray]:
        """See :class:`GenderDistance`."""
        n = len(self.groups)
        values: dict[PartName, FloatArray] = {}
        for part in self.sides.images:
            means = mean_of(
                [mean_cosines(own, self.near) for own in self._each(sums, "things", part)]
            )
            values[part] = bias_ratio(means[:, :n])
            if not part.detail:
                values |= self._of_side(part.side, means, self._pairs(sums, part))
        if HUMAN_PAIRED in self.sides.images:
            values[SCORE] = values[MODEL_PAIRED] - values[HUMAN_PAIRED]
            values |= self._compared(sums)
        ratios = bias_ratio(self.near[:, :n])
        n_samples = len(values[MODEL])
        return values | {
            PartName(object=self.objects[t]): np.repeat(ratios[t], n_samples) for t in self.kept
        }

    def _each(self, sums: Sums, what: str, part: PartName) -> list[FloatArray]:
        start = f"{what}:"
        own = {name.removeprefix(start): v for name, v in sums.items() if name.startswith(start)}
        return self.sides.each(part, own)

    def _pairs(self, sums: Sums, part: PartName) -> FloatArray:
        """(B, K, T) objects named with one group, of all positions together."""
        pooled = np.sum(self._each(sums, "pairs", part), axis=0)
        return by_group(pooled, len(self.groups))

    def _of_side(
        self, side: str, means: FloatArray, pairs: FloatArray
    ) -> dict[PartName, FloatArray]:
        values = {PartName("distance", group=self.neutral, side=side): means[:, -1]}
        for k, group in enumerate(self.groups):
            values[PartName("distance", group=group, side=side)] = means[:, k]
            values[PartName(group=group, side=side)] = bias_ratio(means[:, :-1], k)
            to_neutral = ratio_to_neutral(means[:, k], means[:, -1])
            values[PartName("to_neutral", group=group, side=side)] = to_neutral
        shares = share(pairs[:, 0], pairs.sum(axis=1))
        values[PartName("cooccurrence", side=side)] = _first(pairs)
        return values | {
            PartName("cooccurrence", object=self.objects[t], side=side): shares[:, t]
            for t in self.kept
        }

    def _compared(self, sums: Sums) -> dict[PartName, FloatArray]:
        model, human = (mean_of(self._each(sums, "who", p)) for p in (MODEL_PAIRED, HUMAN_PAIRED))
        leaks = share(model, human)
        change = _first(self._pairs(sums, MODEL_PAIRED)) - _first(self._pairs(sums, HUMAN_PAIRED))
        return {
            PartName("cooccurrence"): change,
            **{PartName("leakage", group=g): leaks[:, k] for k, g in enumerate(self.groups)},
        }

    def about(self, name: PartName) -> About:
        """What a number rests on."""
        both = self.sides.images.get(MODEL_PAIRED, self.sides.images[MODEL])
        if name in self.sides.images:
            return self.sides.about(name)
        if name.what == "leakage":
            return About(both, unit="ratio")
        images = self.sides.images[PartName(side=name.side)] if name.side else both
        unit, bounds = _UNITS.get(name.what, ("fraction", SHARE if name.side else None))
        return About(images, name.side or "model", unit, bounds)


_UNITS = {"distance": ("cosine", _COSINE), "to_neutral": ("ratio", None)}


def _first(pairs: FloatArray) -> FloatArray:
    """(B,) the first group's share in all pairs (B, K, T)."""
    return share(pairs[:, 0].sum(axis=1), pairs.sum(axis=(1, 2)))


def _named_objects(names: Sequence[str], task: TaskVocabulary) -> TaskVocabulary:
    """A vocabulary of the named objects alone: tasks with their words, other words as they are.

    Raises:
        UsageError: if a name is blank or stands twice.
    """
    own = [name.strip().lower() for name in names]
    if not own or not all(own) or len(set(own)) < len(own):
        raise UsageError(f"metric.objects={list(names)}: give distinct names of objects")
    return TaskVocabulary("objects", {name: task.tasks.get(name, (name,)) for name in own})
