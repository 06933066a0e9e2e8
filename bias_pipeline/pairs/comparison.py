"""Compares two groups over sets of pictures, by distances, direction, classes and words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.metrics.corpus_view import has_captions
from bias_pipeline.pairs.backgrounds import Backgrounds, backgrounds
from bias_pipeline.pairs.contrasts import Contrasts
from bias_pipeline.pairs.distances import (
    BeyondPictures,
    Kernel,
    SetDistances,
    common_shift,
    cosine_distances,
    jaccard_distances,
    means_of_pictures,
    shift_p,
    tf_idf,
)
from bias_pipeline.pairs.group_gaps import (
    GroupGap,
    MeasuredGap,
    adjust_p_values,
    group_gap,
    word_gaps,
)
from bias_pipeline.pairs.said_of_people import (
    DECLINES,
    LENGTH,
    NAMED,
    WRONG,
    SaidOfPeople,
    Wordings,
    declined_shares,
)
from bias_pipeline.stats.sign_flips import FEWEST_SETS, SignFlips

KERNELS: Mapping[str, Kernel] = {"jaccard": jaccard_distances, "cosine": cosine_distances}


@dataclass(frozen=True, eq=False)
class SetPictures:
    """The N pictures of a corpus with sets, and the content of their captions."""

    corpus: Corpus
    wordings: Wordings
    distance: str  # of `KERNELS`

    @cached_property
    def model(self) -> SaidOfPeople:
        """The content of the captioner's captions, with all samples."""
        return SaidOfPeople.of_model(self.corpus.each_sample, self.wordings)

    @cached_property
    def with_edits(self) -> SaidOfPeople | None:
        """The same with captions of the pictures' edits, or None if no picture was edited."""
        samples = self.corpus.each_sample
        edits = [edit for sample in samples for edit in sample.edits]
        return SaidOfPeople.of_model([*samples, *edits], self.wordings) if edits else None

    @cached_property
    def people(self) -> SaidOfPeople | None:
        """What annotators say, or None if they describe only some of the captioner's pictures."""
        described = np.unique(self.model.pictures)
        if not len(self.corpus.human) or not has_captions(self.corpus, "human")[described].all():
            return None
        return SaidOfPeople(self.corpus.human, self.wordings)

    @property
    def codes(self) -> IntArray:
        """(N,) the group of each picture."""
        return self.corpus.groupings[self.wordings.attributes[0].name].codes

    @property
    def groups(self) -> tuple[str, ...]:
        return self.corpus.groupings[self.wordings.attributes[0].name].names

    @cached_property
    def contexts(self) -> IntArray:
        """(N,) numbers that are equal if pictures agree in the groups of all other attributes."""
        others = [self.corpus.groupings[a.name].codes for a in self.wordings.attributes[1:]]
        table = np.stack([np.zeros(len(self.corpus), np.int64), *others])
        return np.unique(table, axis=1, return_inverse=True)[1].ravel().astype(np.int64)

    def contrasts(self, compared: tuple[int, int], used: BoolArray) -> Contrasts:
        """The pairs of pictures of two groups."""
        sets = self.corpus.set_ids or ()
        return Contrasts.of_groups(sets, self.codes, self.contexts, compared, used)

    @cached_property
    def n_captions(self) -> IntArray:
        """(N,) the number of captions of each picture."""
        return np.bincount(self.model.pictures, minlength=len(self.corpus))

    @cached_property
    def classes(self) -> list[tuple[str, Float64Array, Float64Array | None]]:
        """Each class with the (N,) means of pictures and the means of annotators' captions."""
        n = len(self.corpus)
        model, people = self.model, self.people
        theirs = self._classes_of(people) if people else {}
        return [
            (
                name,
                model.by_picture(flags, n),
                people.by_picture(theirs[name], n) if people else None,
            )
            for name, flags in self._classes_of(model).items()
        ]

    def _classes_of(self, side: SaidOfPeople) -> dict[str, BoolArray | IntArray]:
        about = side.about_person(self.codes, self.groups)
        return {**about, **side.marks(), LENGTH: side.captions.lengths}


@dataclass(frozen=True, eq=False)
class GroupsCompared:
    """Two groups, compared over the sets that contain both groups."""

    pictures: SetPictures
    compared: tuple[int, int]  # the groups' numbers; differences are the second minus the first
    label: str  # in names of parts; empty if there are only two groups
    level: float  # level of intervals
    n_families: int  # how many attributes and pairs of groups are tested

    @property
    def first_group(self) -> str:
        return self.pictures.groups[self.compared[0]]

    @property
    def second_group(self) -> str:
        return self.pictures.groups[self.compared[1]]

    @cached_property
    def contrasts(self) -> Contrasts:
        """The pairs of pictures that have captions."""
        return self.pictures.contrasts(self.compared, self.pictures.n_captions > 0)

    @property
    def n_sets(self) -> int:
        return len(self.contrasts)

    @property
    def has_enough_sets(self) -> bool:
        return self.n_sets >= FEWEST_SETS

    @cached_property
    def distances(self) -> SetDistances:
        return self._distances(self.pictures.model.words, self.pictures.model.pictures)

    @cached_property
    def edit_distances(self) -> SetDistances | None:
        """The distances if captions of a picture's edits count as captions of the picture."""
        edited = self.pictures.with_edits
        return self._distances(edited.words, edited.pictures) if edited else None

    def _distances(self, words: sparse.csr_array, pictures: IntArray) -> SetDistances:
        kernel = KERNELS[self.pictures.distance]
        vectors = words if kernel is jaccard_distances else tf_idf(words)
        return SetDistances.from_vectors(self.contrasts, vectors, pictures, kernel)

    def by_set(self, of_pairs: Float64Array) -> Float64Array:
        """(J,) the mean over those pairs of each set that have a value; NaN if no pair has one."""
        known = ~np.isnan(of_pairs)
        weights = self.contrasts.weights[known]
        sets = np.bincount(self.contrasts.set_of[known], weights, self.n_sets)
        sums = np.bincount(self.contrasts.set_of[known], weights * of_pairs[known], self.n_sets)
        return np.where(sets > 0, sums / np.where(sets > 0, sets, 1), np.nan)

    def mean_over_sets(self, of_pairs: Float64Array) -> float:
        """The mean over sets of the values of pairs, or NaN if no set has a value."""
        by_set = self.by_set(of_pairs)
        by_set = by_set[~np.isnan(by_set)]
        return float(by_set.mean()) if len(by_set) else math.nan

    @cached_property
    def beyond_pictures(self) -> BeyondPictures:
        """The effect of the group that contexts have in common."""
        return BeyondPictures(self.contrasts, self.distances.crossed)

    @cached_property
    def distance_tests(self) -> dict[str, tuple[float, float]]:
        """The value and p of both tests of distances by name, with and without visible marks."""
        plain = self._distance_tests(self.pictures.model.words, self.beyond_pictures)
        shown = self.pictures.model.without_marks()
        crossed = self._distances(shown, self.pictures.model.pictures).crossed
        bare = BeyondPictures(self.contrasts, crossed)
        without = self._distance_tests(shown, bare)
        return plain | {f"{name}:without_marks": test for name, test in without.items()}

    def _distance_tests(
        self, words: sparse.csr_array, beyond: BeyondPictures
    ) -> dict[str, tuple[float, float]]:
        shifts = self.shifts(words)
        shift_test = (
            shift_p(SignFlips(self.contrasts.keys), shifts) if self.has_enough_sets else math.nan
        )
        crossed = int((~np.isnan(beyond.by_set)).sum())
        beyond_test = beyond.p_value() if crossed >= FEWEST_SETS else math.nan
        return {
            "beyond_pictures": (beyond.value, beyond_test),
            "shift": (common_shift(shifts), shift_test),
        }

    def shifts(self, words: sparse.csr_array) -> sparse.csr_array:
        """(J, V) changes of the captions of each set, minus annotators' changes if known."""
        n = len(self.pictures.corpus)
        model, people = self.pictures.model, self.pictures.people
        if people is None:
            return self.contrasts.differences(means_of_pictures(tf_idf(words), model.pictures, n))
        place = {word: k for k, word in enumerate(model.vocabulary)}
        known = [place.get(word, -1) for word in people.vocabulary]
        rows = [k for k, number in enumerate(known) if number >= 0]
        columns = sparse.csr_array(
            (np.ones(len(rows)), (rows, [known[k] for k in rows])),
            shape=(len(known), len(place)),
        )
        theirs = sparse.csr_array(people.words @ columns)
        both = tf_idf(sparse.csr_array(sparse.vstack([words, theirs])))
        n_model = words.shape[0]
        of_model = means_of_pictures(both[:n_model], model.pictures, n)
        other = means_of_pictures(both[n_model:], people.pictures, n)
        return self.contrasts.differences(of_model) - self.contrasts.differences(other)

    @cached_property
    def gaps(self) -> list[GroupGap]:
        """The differences in all classes, where classes about the person come first."""
        of_pictures = self.pictures
        gaps = [
            group_gap(
                name,
                self.contrasts,
                values,
                of_pictures.n_captions,
                is_share=name != LENGTH,
                level=self.level,
                people=people,
            )
            for name, values, people in of_pictures.classes
        ]
        declined, answers = declined_shares(of_pictures.corpus)
        if np.nansum(declined) > 0:
            contrasts = of_pictures.contrasts(self.compared, answers > 0)
            gaps.insert(2, group_gap(DECLINES, contrasts, declined, answers, level=self.level))
        return adjust_p_values(gaps, self.n_families)

    @property
    def deciding(self) -> list[GroupGap]:
        """The differences in classes about the person, on which an answer may rest."""
        about = (NAMED, WRONG, DECLINES, *self.pictures.wordings.classes)
        return [gap for gap in self.gaps if gap.name in about]

    @cached_property
    def words(self) -> list[MeasuredGap]:
        if not self.has_enough_sets:
            return []
        model = self.pictures.model
        shares = means_of_pictures(model.words, model.pictures, len(self.pictures.corpus))
        return word_gaps(self.contrasts, model.vocabulary, shares)

    @cached_property
    def backgrounds(self) -> Backgrounds | None:
        """How much pictures differ with the group outside the person; None unless all are files."""
        return backgrounds(self.pictures.corpus.pictures, self.contrasts)

    @property
    def n_equal(self) -> int:
        """The number of sets in which all pairs have equal content words."""
        unequal = self.contrasts.set_of[self.distances.pairs > 0]
        return self.n_sets - len(np.unique(unequal))

    def most_changed(self, number: int) -> list[int]:
        """The sets whose captions differ most between the groups."""
        weighted = self.contrasts.weights * self.distances.pairs
        by_set = np.bincount(self.contrasts.set_of, weighted, self.n_sets)
        names: Sequence[str] = self.contrasts.sets
        return sorted(range(self.n_sets), key=lambda j: (-by_set[j], names[j]))[:number]
