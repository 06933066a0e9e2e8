"""``dataset=language_bias``: people's captions whose only bias is which verb goes with whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.attribute import Attribute, LabelMap, Words, words_of
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.datasets.base import Dataset
from bias_pipeline.declared import Count, Range, Seed
from bias_pipeline.errors import NotApplicableError, UsageError
from bias_pipeline.io.hashing import keys_of, stream
from bias_pipeline.text.counterparts import told_of
from bias_pipeline.text.mentions import lowered_words, named_group

IntArray = npt.NDArray[np.int64]
Cells = Mapping[tuple[int, int], Sequence[int]]  # (group, verb) to rows of captions

SPEAKER = "people"
LEVELS = (0.6, 0.7, 0.8, 0.9)  # C1 to C4 of the paper: 30:20, 35:15, 40:10 and 45:05


class LanguageBiasDataset(Dataset):
    """Controlled corpora of language bias (DBAC, section 5.1), picked from people's captions.

    Of each task as many captions of men as of women are taken, so group and task are independent.
    What differs is the verb: a share ``imbalance`` of the first group's captions has the task's
    first verb and the rest its second one, and the other way round for the second group. Metrics
    that only see groups and tasks must find nothing; what an attacker finds is language.

    The captioner ``people`` says what people say, so metrics that compare score 0, and their
    ``human`` parts are what is measured. A label is the group that a caption names. An image gives
    one caption at most. Every level takes as many captions as all levels from 0.6 to 0.9 can fill
    (50 a task and group in the paper, picked by hand), and another level changes as few of them
    as it must.

    In picked captions other things may go with the group too, as they do in the corpus. ``retold``
    takes them out: which caption is told of whom is dealt by chance, and every word that names a
    group becomes one of the group it is dealt to. Then the verb alone is planted, exactly.

    Args:
        of: the data set whose human captions are picked from.
        imbalance: share of a group's captions with its own verb; 0.6 to 0.9 are C1 to C4.
        tasks: task to the words that name it.
        verbs: task to the forms of its two verbs, as text with commas or lists.
        gender_by: ``pronoun``: the paper's, by pronouns alone, of which few captions have one;
            ``word``: by the attribute's own words.
        pronouns: group to its pronouns.
        size: captions of a task and group; None: as many as there are.
        seed: of the draw.
        retold: whether captions are dealt to groups and told of them
            (:func:`~bias_pipeline.text.counterparts.told_of`); they are lower-case words then.
        terms: group to the word that stands for whoever has no counterpart; see there.

    Raises:
        UsageError: if tasks and verbs do not fit.
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
        if set(tasks) != set(verbs) or any(len(own) != 2 for own in verbs.values()):
            raise UsageError(
                f"dataset.verbs: give two verbs for each of the tasks {', '.join(tasks)}"
            )
        self.of = of
        self.imbalance = imbalance
        self.tasks = {task: words_of(own) for task, own in tasks.items()}
        self.verbs = {task: [words_of(verb) for verb in verbs[task]] for task in tasks}
        self.gender_by = gender_by
        self.pronouns = {group: words_of(own) for group, own in (pronouns or {}).items()}
        self.size = size
        self.seed = seed
        self.retold = retold
        self.terms = dict(terms or {})

    def captioners(self) -> Sequence[str]:
        """The one that says what people say."""
        return (SPEAKER,)

    def load(self, captioner: str, attribute: Attribute) -> Corpus:
        """See :meth:`Dataset.load`.

        Raises:
            NotApplicableError: if the attribute has not two groups, or a cell has no caption.
        """
        self.check_captioner(captioner)
        source = self.of.load(self.of.captioners()[0], attribute)
        groups = source.groupings[attribute.name].names
        if len(groups) != 2:
            raise NotApplicableError(
                f"dataset 'language_bias' sets two groups against each other; attribute "
                f"{attribute.name!r} has {len(groups)}"
            )
        named = self._named(source.human, attribute, groups)
        fitting = self._fitting(source, named)
        taken = {task: self._cells(task, rows, source, named) for task, rows in fitting.items()}
        told = [
            told_of(source.human, attribute, group, self.terms) if self.retold else source.human
            for group in groups
        ]
        records = [
            record
            for task, cells in taken.items()
            for record in self._records(task, cells, source, told, attribute.name, groups)
        ]
        return Corpus.build(
            records,
            dataset=f"{source.dataset} {self.imbalance:.0%} language bias",
            captioner=SPEAKER,
            groups={attribute.name: (groups, LabelMap(attribute.name, {g: g for g in groups}))},
            notes=[f"language bias: {'; '.join(map(self._told, self.tasks, taken.values()))}"],
        )

    def _named(self, captions: Captions, attribute: Attribute, groups: Sequence[str]) -> IntArray:
        """(C,) the one group each caption names, below 0 for none or both."""
        if self.gender_by == "word":
            return named_group(captions, attribute, groups)
        absent = [group for group in groups if not self.pronouns.get(group)]
        if absent:
            raise UsageError(
                f"dataset.pronouns has none for {absent[0]!r}; add some, or set "
                "dataset.gender_by=word"
            )
        lowered = lowered_words(captions)
        said = np.stack([lowered.mentions(self.pronouns[group]) for group in groups], axis=1)
        return np.where(said.sum(axis=1) == 1, said.argmax(axis=1), -1)

    def _fitting(self, source: Corpus, named: IntArray) -> dict[str, list[int]]:
        """Captions by task that name one group and one of its verbs, no two of one image."""
        lowered = lowered_words(source.human)
        images: set[int] = set()
        found = {}
        for task, words in self.tasks.items():
            fits = lowered.mentions(words) & (named >= 0) & (self._verbs(task, lowered) >= 0)
            rows = _one_an_image(np.flatnonzero(fits), source, self.seed)
            found[task] = [row for row in rows if int(source.human.image_rows[row]) not in images]
            images |= {int(source.human.image_rows[row]) for row in rows}
        return found

    def _verbs(self, task: str, lowered: Captions) -> IntArray:
        """(C,) which of a task's two verbs each caption has, below 0 for none or both."""
        said = np.stack([lowered.mentions(own) for own in self.verbs[task]], axis=1)
        return np.where(said.sum(axis=1) == 1, said.argmax(axis=1), -1)

    def _cells(self, task: str, rows: Sequence[int], source: Corpus, named: IntArray) -> Cells:
        """The captions that are taken, by group and verb."""
        verbs = self._verbs(task, lowered_words(source.human))
        if self.retold:
            return self._dealt(task, rows, verbs)
        which = {
            (group, verb): [row for row in rows if (named[row], verbs[row]) == (group, verb)]
            for group in (0, 1)
            for verb in (0, 1)
        }
        size = self._size(task, which)
        own = round(self.imbalance * size)
        return {
            (group, verb): found[: own if group == verb else size - own]
            for (group, verb), found in which.items()
        }

    def _dealt(self, task: str, rows: Sequence[int], verbs: IntArray) -> Cells:
        """Captions of a verb dealt to the groups, whomever they were of."""
        saying = [[row for row in rows if verbs[row] == verb] for verb in (0, 1)]
        there = min(map(len, saying))
        size = there if self.size is None else self.size
        if not 0 < size <= there:
            raise NotApplicableError(
                f"dataset 'language_bias': task {task!r} has {len(saying[0])} and "
                f"{len(saying[1])} captions by verb, enough for {there} a group; lower dataset.size"
            )
        own = round(self.imbalance * size)
        return {
            (group, verb): saying[verb][:own] if group == verb else saying[verb][own:size]
            for group in (0, 1)
            for verb in (0, 1)
        }

    def _size(self, task: str, which: Cells) -> int:
        """How many captions a group gets."""
        most, least = max(*LEVELS, self.imbalance), min(*LEVELS, self.imbalance)
        shares = {True: most, False: 1 - least}
        there = min(int(len(rows) / shares[g == v] + 1e-9) for (g, v), rows in which.items())
        size = there if self.size is None else self.size
        if not 0 < size <= there:
            counts = ", ".join(str(len(rows)) for rows in which.values())
            raise NotApplicableError(
                f"dataset 'language_bias': task {task!r} has {counts} captions by group and verb, "
                f"enough for {there} a group; "
                + ("set dataset.gender_by=word" if self.size is None else "lower dataset.size")
            )
        return size

    def _records(
        self,
        task: str,
        cells: Cells,
        source: Corpus,
        told: Sequence[Captions],
        attribute: str,
        groups: Sequence[str],
    ) -> list[Record]:
        return [
            Record(
                id=source.ids[source.human.image_rows[row]],
                model=told[group].text(row),
                human=(told[group].text(row),),
                labels={attribute: groups[group]},
                objects=frozenset({task}),
            )
            for (group, _), rows in cells.items()
            for row in rows
        ]

    def _told(self, task: str, cells: Cells) -> str:
        """How many captions of a task there are."""
        first, second = (self.verbs[task][verb][0] for verb in (0, 1))
        counts = {cell: len(rows) for cell, rows in cells.items()}
        return (
            f"{task} {counts[0, 0]} {first} and {counts[0, 1]} {second} of one group, "
            f"{counts[1, 0]} {first} and {counts[1, 1]} {second} of the other"
        )


def _one_an_image(rows: IntArray, source: Corpus, seed: int) -> list[int]:
    """Some captions in an order by chance, of an image the first alone."""
    images = source.human.image_rows[rows]
    keys = keys_of(
        [f"{source.ids[i]} {source.human.positions[r]}" for i, r in zip(images, rows, strict=True)]
    )
    order = np.argsort(stream("language bias", seed, keys), kind="stable")
    first: dict[int, int] = {}
    for place in order.tolist():
        first.setdefault(int(images[place]), int(rows[place]))
    return list(first.values())
