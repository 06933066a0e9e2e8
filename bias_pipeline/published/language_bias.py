"""``dataset=language_bias`` has human captions whose only bias is the verb used for each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import numpy as np

from bias_pipeline.array_types import IntArray
from bias_pipeline.corpus.attribute import Attribute, LabelMap, Words, words_of
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.data.base import Dataset
from bias_pipeline.declared import Count, Range, Seed
from bias_pipeline.errors import NotApplicableError, UsageError
from bias_pipeline.io.hashing import hash_ids, random_words
from bias_pipeline.text.counterfactual_captions import captions_naming
from bias_pipeline.text.mentions import lowered_words, named_group

Cells = Mapping[tuple[int, int], Sequence[int]]  # (group, verb) to rows of captions

SPEAKER = "people"
LEVELS = (0.6, 0.7, 0.8, 0.9)  # C1 to C4 of the paper: 30:20, 35:15, 40:10 and 45:05


class LanguageBiasDataset(Dataset):
    """Controlled corpora of language bias (DBAC, section 5.1), picked from human captions.

    Each task gets as many captions of men as of women, so group and task are independent. Only the
    verb differs. Of the first group's captions, a share ``imbalance`` has the task's first verb,
    and the rest has its second verb. For the second group, the verbs are exchanged. Metrics that
    use only groups and tasks must find nothing. Everything that an attacker finds is language.

    The captioner ``people`` copies human captions, so its difference from human captions is 0. Look
    at the ``human`` parts of scores. A label is the group that a caption names. An image gives at
    most one caption. All levels from 0.6 to 0.9 have equally many captions (in the paper 50 per
    task and group, which were picked by hand). Levels share as many captions as possible.

    Picked captions may also differ between groups in other ways. ``retold`` removes these
    differences. ``retold`` assigns captions to groups at random, and every word that names a group
    becomes a word of the assigned group. Then only the verb differs.
    """

    name = "language_bias"

    def __init__(
        self,
        of: Dataset,
        imbalance: Annotated[float, Range(low=0.5, high=1)],
        tasks: Mapping[str, Words],
        verbs: Mapping[str, Sequence[Words]],
        gender_by: Literal["pronoun", "word"] = "word",
        pronouns: Mapping[str, Words] | None = None,
        size: Count | None = None,
        seed: Seed = 0,
        retold: bool = False,
        terms: Mapping[str, str] | None = None,
    ) -> None:
        if set(tasks) != set(verbs) or any(len(words) != 2 for words in verbs.values()):
            raise UsageError(
                f"dataset.verbs: give two verbs for each of the tasks {', '.join(tasks)}"
            )
        self.of = of
        self.imbalance = imbalance
        self.tasks = {task: words_of(words) for task, words in tasks.items()}
        self.verbs = {task: [words_of(verb) for verb in verbs[task]] for task in tasks}
        self.gender_by = gender_by
        self.pronouns = {group: words_of(words) for group, words in (pronouns or {}).items()}
        self.size = size
        self.seed = seed
        self.retold = retold
        self.terms = dict(terms or {})

    def captioners(self) -> Sequence[str]:
        return (SPEAKER,)

    def load(self, captioner: str, attribute: Attribute) -> Corpus:
        self.check_captioner(captioner)
        source = self.of.load(self.of.captioners()[0], attribute)
        groups = source.groupings[attribute.name].names
        if len(groups) != 2:
            raise NotApplicableError(
                f"dataset 'language_bias' compares two groups; attribute {attribute.name!r} has "
                f"{len(groups)}"
            )
        named = self._groups_named(source.human, attribute, groups)
        fitting = self._fitting(source, named)
        taken = {task: self._cells(task, rows, source, named) for task, rows in fitting.items()}
        by_group = [
            captions_naming(source.human, attribute, group, self.terms)
            if self.retold
            else source.human
            for group in groups
        ]
        records = [
            record
            for task, cells in taken.items()
            for record in self._records(task, cells, source, by_group, attribute.name, groups)
        ]
        return Corpus.build(
            records,
            dataset=f"{source.dataset} {self.imbalance:.0%} language bias",
            captioner=SPEAKER,
            groups={attribute.name: (groups, LabelMap(attribute.name, {g: g for g in groups}))},
            notes=[f"language bias: {'; '.join(map(self._balance, self.tasks, taken.values()))}"],
        )

    def _groups_named(
        self, captions: Captions, attribute: Attribute, groups: Sequence[str]
    ) -> IntArray:
        """(C,) the single group that each caption names; below 0 for none and for both groups."""
        if self.gender_by == "word":
            return named_group(captions, attribute, groups).astype(np.int64)
        absent = [group for group in groups if not self.pronouns.get(group)]
        if absent:
            raise UsageError(
                f"dataset.pronouns has no words for {absent[0]!r}; add some, or set "
                "dataset.gender_by=word"
            )
        lowered = lowered_words(captions)
        mentioned = np.stack([lowered.mentions(self.pronouns[group]) for group in groups], axis=1)
        return np.where(mentioned.sum(axis=1) == 1, mentioned.argmax(axis=1), -1)

    def _fitting(self, source: Corpus, named: IntArray) -> dict[str, list[int]]:
        """Captions that name one group and one verb of a task, at most one per image, by task."""
        lowered = lowered_words(source.human)
        images: set[int] = set()
        fitting = {}
        for task, words in self.tasks.items():
            fits = lowered.mentions(words) & (named >= 0) & (self._verbs(task, lowered) >= 0)
            rows = _one_an_image(np.flatnonzero(fits), source, self.seed)
            fitting[task] = [row for row in rows if int(source.human.image_rows[row]) not in images]
            images |= {int(source.human.image_rows[row]) for row in rows}
        return fitting

    def _verbs(self, task: str, lowered: Captions) -> IntArray:
        """(C,) which of a task's two verbs each caption has; below 0 for neither and for both."""
        mentioned = np.stack([lowered.mentions(words) for words in self.verbs[task]], axis=1)
        return np.where(mentioned.sum(axis=1) == 1, mentioned.argmax(axis=1), -1)

    def _cells(self, task: str, rows: Sequence[int], source: Corpus, named: IntArray) -> Cells:
        """The captions that are taken, by group and verb; retold captions have a random group."""
        verbs = self._verbs(task, lowered_words(source.human))
        if self.retold:
            by_verb = [[row for row in rows if verbs[row] == verb] for verb in (0, 1)]
            counts = " and ".join(str(len(of_verb)) for of_verb in by_verb)
            size = self._size(task, f"{counts} captions by verb", min(map(len, by_verb)))
            n_matching = round(self.imbalance * size)
            taken = (slice(n_matching), slice(n_matching, size))
            return {(g, v): by_verb[v][taken[g != v]] for g in (0, 1) for v in (0, 1)}
        which = {
            (g, v): [row for row in rows if (named[row], verbs[row]) == (g, v)]
            for g in (0, 1)
            for v in (0, 1)
        }
        most, least = max(*LEVELS, self.imbalance), min(*LEVELS, self.imbalance)
        shares = {True: most, False: 1 - least}
        there = min(int(len(rows) / shares[g == v] + 1e-9) for (g, v), rows in which.items())
        counts = ", ".join(str(len(rows)) for rows in which.values())
        size = self._size(task, f"{counts} captions by group and verb", there)
        n_matching = round(self.imbalance * size)
        return {
            (g, v): cell_rows[: n_matching if g == v else size - n_matching]
            for (g, v), cell_rows in which.items()
        }

    def _size(self, task: str, captions: str, there: int) -> int:
        """The number of captions that each group gets for a task."""
        size = there if self.size is None else self.size
        if not 0 < size <= there:
            by_word = self.size is None and not self.retold
            raise NotApplicableError(
                f"dataset 'language_bias': task {task!r} has {captions}, enough for {there} per "
                f"group; {'set dataset.gender_by=word' if by_word else 'lower dataset.size'}"
            )
        return size

    def _records(
        self,
        task: str,
        cells: Cells,
        source: Corpus,
        by_group: Sequence[Captions],
        attribute: str,
        groups: Sequence[str],
    ) -> list[Record]:
        return [
            Record(
                id=source.ids[source.human.image_rows[row]],
                model=by_group[group].text(row),
                human=(by_group[group].text(row),),
                labels={attribute: groups[group]},
                objects=frozenset({task}),
            )
            for (group, _), rows in cells.items()
            for row in rows
        ]

    def _balance(self, task: str, cells: Cells) -> str:
        first, second = (self.verbs[task][verb][0] for verb in (0, 1))
        counts = {cell: len(rows) for cell, rows in cells.items()}
        return (
            f"{task} {counts[0, 0]} {first} and {counts[0, 1]} {second} of one group, "
            f"{counts[1, 0]} {first} and {counts[1, 1]} {second} of the other"
        )


def _one_an_image(rows: IntArray, source: Corpus, seed: int) -> list[int]:
    """Captions in random order, with only the first caption of each image."""
    images = source.human.image_rows[rows]
    keys = hash_ids(
        [f"{source.ids[i]} {source.human.positions[r]}" for i, r in zip(images, rows, strict=True)]
    )
    order = np.argsort(random_words("language bias", seed, keys), kind="stable")
    first: dict[int, int] = {}
    for place in order.tolist():
        first.setdefault(int(images[place]), int(rows[place]))
    return list(first.values())
