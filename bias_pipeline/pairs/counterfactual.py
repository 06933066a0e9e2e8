"""Counterfactual pairs measure whether captions change if the picture shows another person."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import ClassVar, Literal

import numpy as np

from bias_pipeline.corpus.attribute import Attribute, Words
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.split import Split
from bias_pipeline.errors import NotApplicableError, inflect, some_of
from bias_pipeline.metrics.base import SETS, Cost, Metric, MetricInfo, Number, Score
from bias_pipeline.metrics.references import FRASER_2024
from bias_pipeline.metrics.value_names import SCORE, PartName
from bias_pipeline.pairs.changing_answer import (
    MOST_WORDS,
    answer_of,
    facts,
    largest_gap,
    smallest_p,
)
from bias_pipeline.pairs.comparison import GroupsCompared, SetPictures
from bias_pipeline.pairs.group_gaps import GroupGap
from bias_pipeline.pairs.said_of_people import LENGTH, Wordings
from bias_pipeline.pairs.several_groups import SeveralGroups
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate
from bias_pipeline.text.descriptions import ConceptTable
from bias_pipeline.text.mentions import neutral_rate

_MOST_CHANGED = 3  # sets whose captions are shown


@dataclass(eq=False, kw_only=True)
class Counterfactual(Metric):
    """How captions change if only the group of the person in the picture changes.

    A set has pictures of one scene. Only pictures that agree in all other labelled attributes are
    compared. Each set is one observation. Tests flip the signs of sets' differences.

    * ``class:NAME``: the share of the second group's captions in a class, minus the first group's
      share. The classes are captions that name the right group (``named``), name another group
      (``wrong``), decline, or describe the person (``agency`` and so on). If annotators describe
      all pictures, the difference in annotators' captions is subtracted. ``class:NAME:GROUP`` is
      one group's share.
    * ``score``: the largest difference among the classes that describe the person. The p value and
      the interval's lower end are corrected for the number of classes. With more than two groups,
      ``class:NAME`` is the largest share minus the smallest, and p comes from Cochran's Q test.
      ``class:NAME:GROUP against OTHER`` compares two groups.
    * ``samples``, ``beyond_samples``: the distance between two captions of one picture, and how
      much further apart the captions of two groups are. Words for persons are masked.
    * ``edits``, ``beyond_edits``: the same distances if captions of edited pictures (such as crops)
      count as captions of the original. Labels then need a column ``edit``.
    * ``beyond_pictures``, ``shift``: the size of changes that recur in another pair of the same
      set, and of changes with the same direction in all sets. Under ``backgrounds=drawn`` the
      answer ignores both numbers.
    * ``word:WORD``: the difference in how often captions use a word, for at most ten words.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="counterfactual",
        title="Counterfactual pairs",
        version=2,
        unit="fraction",
        range=(0.0, math.inf),
        neutral=0.0,
        direction="lower is fairer; at 0, captions of a scene describe persons of all groups alike",
        family="counting",
        question="changing",
        sources={FRASER_2024: "sets of pictures"},
        ours="the classes, distances and tests are",
        needs=(SETS,),
        cost=Cost(per_caption=2e-3),
        says={"score": "its captions change with the {attribute} of the person in the same scene"},
    )

    attribute: Attribute
    others: Mapping[str, Attribute]  # other attributes in which pictures of a set may differ
    stats: Bootstrap  # gives the level of intervals; nothing is resampled
    concepts: ConceptTable
    neutral: Words  # nouns and pronouns for persons that name no group
    function_words: Words
    mark_classes: Sequence[str]  # classes of concepts that are visible marks
    marks: Mapping[str, Words]  # words of further visible marks, by class
    distance: Literal["jaccard", "cosine"] = "jaccard"
    backgrounds: Literal["drawn", "alike"] = "drawn"

    def scored_apart(self, corpus: Corpus) -> Sequence[Corpus]:
        """The corpus with all its samples, since captions of one picture are compared."""
        return (corpus,)

    def compute(self, corpus: Corpus, *, splits: Sequence[Split]) -> Score:
        del splits
        pictures = self._pictures(corpus)
        comparisons = self._comparisons(pictures)
        several = _several_groups(pictures, comparisons)
        answer = answer_of(comparisons, self.backgrounds, several)
        around = [(one, outer) for one in comparisons if (outer := one.backgrounds)]
        return Score(
            dict(_Parts(self, pictures, comparisons, several)),
            audit={self.info.name: facts(answer, comparisons, self.backgrounds)},
            notes=[
                *corpus.notes,
                *_sets_notes(pictures, comparisons),
                *answer.sentences,
                *(outer.sentence(one.second_group) for one, outer in around),
            ],
            tables=_tables(comparisons),
        )

    def _pictures(self, corpus: Corpus) -> SetPictures:
        if corpus.set_ids is None:
            raise NotApplicableError(
                f"dataset {corpus.dataset!r} has no sets of pictures that differ only in a "
                f"person's group, and {self.info.name} compares such sets; name each "
                "picture's set in a column 'set' of the labels, or use dataset=pairs"
            )
        others = [
            other
            for name, other in self.others.items()
            if name != self.attribute.name and _varies(corpus, name)
        ]
        wordings = Wordings(
            [self.attribute, *others],
            self.neutral,
            self.function_words,
            self.concepts,
            self.marks,
            self.mark_classes,
        )
        return SetPictures(corpus, wordings, self.distance)

    def _comparisons(self, pictures: SetPictures) -> list[GroupsCompared]:
        """All pairs of groups that occur in the same set at least twice."""
        present = np.unique(pictures.codes[pictures.codes >= 0]).tolist()
        pairs = list(combinations(present, 2))
        n_families = len(pairs) * len(pictures.wordings.attributes)
        each = [
            GroupsCompared(
                pictures,
                pair,
                f"{pictures.groups[pair[1]]} against {pictures.groups[pair[0]]}"
                if len(pairs) > 1
                else "",
                self.stats.level,
                n_families,
            )
            for pair in pairs
        ]
        compared = [one for one in each if one.n_sets > 1]
        if not compared:
            raise NotApplicableError(
                f"no two sets have captioned pictures of two groups of {self.attribute.name!r} "
                f"that are alike in all other attributes{_groups_of_a_set(pictures)}; give all "
                "pictures of a scene the same name in the column 'set' of the labels"
            )
        return compared


def _groups_of_a_set(pictures: SetPictures) -> str:
    """The groups in the first set as an example; empty if no picture with a set has a group."""
    labelled = np.flatnonzero(pictures.codes >= 0)
    sets = np.array(pictures.corpus.set_ids or ())[labelled]
    if not any(sets):
        return ""
    first = next(filter(None, sets.tolist()))
    codes = np.unique(pictures.codes[labelled[sets == first]])
    return f" (set {first!r} has {' and '.join(pictures.groups[code] for code in codes)})"


def _several_groups(
    pictures: SetPictures, comparisons: Sequence[GroupsCompared]
) -> SeveralGroups | None:
    """All groups compared at once, or None for two groups, or if too few sets have all groups."""
    groups = sorted({code for one in comparisons for code in one.compared})
    several = SeveralGroups(pictures, groups)
    return several if len(groups) > 2 and several.has_enough_sets else None


def _varies(corpus: Corpus, attribute: str) -> bool:
    """Whether some set has pictures of two groups of the attribute."""
    if attribute not in corpus.groupings:
        return False
    first: dict[str, int] = {}
    codes = corpus.groupings[attribute].codes.tolist()
    pairs = zip(corpus.set_ids or (), codes, strict=True)
    return any(name and code >= 0 and first.setdefault(name, code) != code for name, code in pairs)


class _Parts:
    def __init__(
        self,
        metric: Counterfactual,
        pictures: SetPictures,
        comparisons: Sequence[GroupsCompared],
        several: SeveralGroups | None,
    ) -> None:
        self.metric, self.comparisons, self.several = metric, comparisons, several
        corpus = pictures.corpus
        self.used = np.zeros(len(corpus), bool)
        for one in comparisons:
            self.used[one.contrasts.first] = self.used[one.contrasts.second] = True
        self.coverage = float(self.used.sum()) / max(int(metric.scope(corpus).sum()), 1)
        self.neutral_rate = neutral_rate(pictures.model.captions, metric.attribute, self.used)

    def __iter__(self) -> Iterator[tuple[PartName, Number]]:
        largest = largest_gap(self.comparisons, self.metric.stats.level)
        score = self._part(largest, smallest_p(self.comparisons, self.several, math.nan))
        yield SCORE, replace(score, range=self.metric.info.range)
        if self.several:
            yield from self._of_all(self.several)
        for one in self.comparisons:
            yield from self._distances(one)
            for gap in one.gaps:
                yield from self._class(one, gap)
            for word in one.words[:MOST_WORDS]:
                name = PartName(f"word:{word.name}", group=one.label)
                yield name, self._part(word.second - word.first, word.p_value)

    def _of_all(self, several: SeveralGroups) -> Iterator[tuple[PartName, Number]]:
        for one in several.classes:
            name = f"class:{one.name}"
            yield PartName(name), self._part(one.range, one.adjusted_p)
            for group, share in zip(several.groups, one.shares, strict=True):
                yield PartName(name, group=group), self._part(share)

    def _part(
        self, estimate: Estimate | float, p_value: float = math.nan, unit: str = "fraction"
    ) -> Number:
        known = estimate if isinstance(estimate, Estimate) else Estimate(estimate)
        return Number(
            known.value,
            ci_low=known.ci_low,
            ci_high=known.ci_high,
            p_value=p_value,
            unit=unit,
            n_images=int(self.used.sum()),
            coverage=self.coverage,
            neutral_rate=self.neutral_rate,
            range=(-math.inf, math.inf),
        )

    def _distances(self, one: GroupsCompared) -> Iterator[tuple[PartName, Number]]:
        for name, distances in (("samples", one.distances), ("edits", one.edit_distances)):
            if distances is None:
                continue
            for part, values in ((name, distances.samples), (f"beyond_{name}", distances.excess)):
                yield PartName(part, group=one.label), self._part(one.mean_over_sets(values))
        for name, (value, p_value) in one.distance_tests.items():
            known: Estimate | float = value
            if name == "beyond_pictures":
                known = one.beyond_pictures.estimate(self.metric.stats.level)
            yield PartName(name, group=one.label), self._part(known, p_value)

    def _class(self, one: GroupsCompared, gap: GroupGap) -> Iterator[tuple[PartName, Number]]:
        unit = "per caption" if gap.name == LENGTH else "fraction"
        name = f"class:{gap.name}"
        yield PartName(name, group=one.label), self._part(gap, gap.adjusted_p, unit)
        if not one.label:
            yield PartName(name, group=one.first_group), self._part(gap.first, unit=unit)
            yield PartName(name, group=one.second_group), self._part(gap.second, unit=unit)


def _sets_notes(pictures: SetPictures, comparisons: Sequence[GroupsCompared]) -> Iterator[str]:
    """Notes on the numbers of sets, pictures and samples, and on sets that are left out."""
    corpus = pictures.corpus
    used = {name for one in comparisons for name in one.contrasts.sets}
    known = {name for name in corpus.set_ids or () if name}
    counts = np.unique([name for name in corpus.set_ids or () if name in used], return_counts=True)
    sizes = sorted({*counts[1].tolist()})
    each = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    attributes = ", ".join(attribute.name for attribute in pictures.wordings.attributes)
    left_out = sorted(known - used)
    yield (
        f"{inflect(len(used), 'sets')} of {each} pictures, {len(left_out)} left out; captions of a "
        f"picture: {len(corpus.each_sample)}; differing in {attributes}"
    )
    if left_out:
        yield (
            f"{inflect(len(left_out), 'sets are')} left out ({some_of(left_out)}): without "
            f"captioned pictures of two groups of {pictures.wordings.attributes[0].name} that are "
            "alike in the other attributes"
        )


def _tables(comparisons: Sequence[GroupsCompared]) -> dict[str, list[dict[str, object]]]:
    """Tables of classes, of sets, of the captions that changed most, and of outer quarters."""
    each = {
        "classes": _class_lines,
        "sets": _set_lines,
        "captions": _caption_lines,
        "backgrounds": _background_lines,
    }
    tables = {
        f"counterfactual_{name}": [line for one in comparisons for line in lines(one)]
        for name, lines in each.items()
    }
    return {name: lines for name, lines in tables.items() if lines}


def _background_lines(one: GroupsCompared) -> Iterator[dict[str, object]]:
    for gap in one.backgrounds.gaps if one.backgrounds else ():
        yield {
            "outer quarters": gap.name,
            "first": one.first_group,
            "of first": gap.first,
            "second": one.second_group,
            "of second": gap.second,
            "p": gap.p_value,
        }


def _class_lines(one: GroupsCompared) -> Iterator[dict[str, object]]:
    deciding = {gap.name for gap in one.deciding}
    for gap in one.gaps:
        yield {
            "class": gap.name,
            "first": one.first_group,
            "share of first": gap.first,
            "second": one.second_group,
            "share of second": gap.second,
            "difference": gap.value,
            "low": gap.ci_low,
            "high": gap.ci_high,
            "p": gap.adjusted_p,
            "usually misses below": gap.misses,
            "decides": gap.name in deciding,
        }


def _set_lines(one: GroupsCompared) -> Iterator[dict[str, object]]:
    contrasts, distances = one.contrasts, one.distances
    beyond = one.beyond_pictures.by_set
    for number, name in enumerate(contrasts.sets):
        chosen = contrasts.set_of == number
        yield {
            "set": name,
            "first": one.first_group,
            "second": one.second_group,
            "distance": float((contrasts.weights * distances.pairs)[chosen].sum()),
            "samples": float((contrasts.weights * distances.samples)[chosen].sum()),
            "beyond_pictures": float(beyond[number]),
        }


def _caption_lines(one: GroupsCompared) -> Iterator[dict[str, object]]:
    """Captions of the sets that changed most, with masked words in brackets."""
    model, contrasts = one.pictures.model, one.contrasts
    ids, first_caption = one.pictures.corpus.ids, np.searchsorted
    for number in one.most_changed(_MOST_CHANGED):
        pair = int(np.flatnonzero(contrasts.set_of == number)[0])
        for group, picture in (
            (one.first_group, int(contrasts.first[pair])),
            (one.second_group, int(contrasts.second[pair])),
        ):
            row = int(first_caption(model.pictures, picture))
            yield {
                "set": contrasts.sets[number],
                "group": group,
                "image_id": ids[picture],
                "caption": model.captions.text(row),
                "compared": model.masked_captions.text(row),
            }
