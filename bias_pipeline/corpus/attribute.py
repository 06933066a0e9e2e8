"""Defines protected attributes and task vocabularies: words and labels that are read from YAML."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated

from bias_pipeline.corpus.list_check import ListCheck
from bias_pipeline.declared import Configurable, ConfiguredAs, Text
from bias_pipeline.errors import DataError, UnlabelledError, UsageError, did_you_mean
from bias_pipeline.io.terminal import refuse_secrets

Word = Annotated[str, Text(r"[\s\S]*[^\s,][\s\S]*", "a word ([] if there is none)")]
Name = Annotated[str, Text(r"[\s\S]*\S[\s\S]*", "a name")]
Language = Annotated[str, Text(r"[a-z]{2,3}", "a code such as en or de")]
ENGLISH = "en"
# A word or phrase, several separated by commas, or lists and mappings of these, nested at will
# (only the values of mappings count). Long lists are text in YAML: Hydra copies every item of a
# list many times.
Words = Word | Sequence["Words"] | Mapping[str, "Words"]


def words_of(words: Words) -> tuple[str, ...]:
    """The words and phrases in the order in which they are written.

    Example:
        >>> words_of({"animals": "cat, hot dog", "others": ["man"]})
        ('cat', 'hot dog', 'man')
    """
    return tuple(_words(words))


def _words(words: Words) -> Iterator[str]:
    if isinstance(words, str):
        yield from (word for part in words.split(",") if (word := part.strip()))
    else:
        for part in words.values() if isinstance(words, Mapping) else words:
            yield from _words(part)


def _lower_case(words: Words, of: str) -> tuple[str, ...]:
    """Return the words, which will be searched in lower-case captions.

    Raises:
        UsageError: if a word has a capital letter, since no caption would ever contain it.
    """
    listed = words_of(words)
    for word in listed:
        if word != word.lower():
            raise UsageError(
                f"{of}: {word!r} has capital letters, and captions are searched in lower case; "
                "write it in lower case"
            )
    return listed


@dataclass(frozen=True)
class LabelMap(Configurable):
    """How one data set writes the groups of an attribute in its labels.

    Attributes:
        field: the name of the label column in the data set.
        groups: raw label to group name.
        strata: raw labels that mean no group ("Unsure", "Both", empty). Images with one of these
            labels are counted and reported by label.
        unsure: the labels in ``strata`` that mean that annotators could not tell the group. "Both",
            an empty label and "no majority" do not mean this.
    """

    field: str
    groups: Mapping[str, str]
    strata: Sequence[str] = ()
    unsure: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check that ``unsure`` is a subset of ``strata``.

        Raises:
            UsageError: if ``unsure`` has a label that is not in ``strata``.
        """
        unknown = sorted(set(self.unsure) - set(self.strata))
        if unknown:
            raise UsageError(
                f"labels of column {self.field!r}: unsure has {unknown[0]!r}, which is not in "
                "strata; "
                f"{did_you_mean(unknown[0], map(repr, self.strata))}"
            )

    def is_unsure(self, raw: str) -> bool:
        """Whether a label says that annotators could not tell the group.

        Example:
            >>> labels = LabelMap("sex", {"Male": "male"}, ("Both", "Unsure"), ("Unsure",))
            >>> [labels.is_unsure(raw) for raw in ("Male", "Both", "Unsure")]
            [False, False, True]
        """
        return raw in self.unsure and raw not in self.groups

    def with_labels(self, groups: Mapping[str, str], strata: Mapping[str, str]) -> LabelMap:
        """A copy of the map with more labels.

        Args:
            groups: raw label to group name.
            strata: raw label to the known stratum that it means.

        Example:
            >>> labels = LabelMap("sex", {"Male": "male"}, ("Both", "Unsure"), ("Unsure",))
            >>> labels.with_labels({}, {"?": "Unsure", "two": "Both"}).unsure
            ('Unsure', '?')
        """
        unsure = [raw for raw, stratum in strata.items() if stratum in self.unsure]
        return LabelMap(
            self.field,
            {**{raw: group for raw, group in self.groups.items() if raw not in strata}, **groups},
            tuple(dict.fromkeys([*self.strata, *strata])),
            tuple(dict.fromkeys([*self.unsure, *unsure])),
        )

    def group_of(self, raw: str) -> str | None:
        """The group of a raw label, or None if the label means no group.

        Raises:
            DataError: if the label is in neither ``groups`` nor ``strata``.
        """
        if raw in self.groups:
            return self.groups[raw]
        if raw in self.strata:
            return None
        allowed = [*self.groups, *self.strata]
        raise DataError(
            f"label {raw!r} in column {self.field!r} is unknown; "
            f"{did_you_mean(raw, map(repr, allowed))} "
            "Map it in the attribute's YAML (labels.<dataset>.groups or .strata)."
        )


@dataclass(frozen=True)
class WordList(Configurable):
    """A published word list, which a metric can use instead of the attribute's own words.

    Attributes:
        words: the words that are masked or counted, as text with commas or a list.
        token: what replaces each word when it is masked.
        groups: the group of each word that is not in the attribute's own lists.
    """

    words: Annotated[Sequence[str], ConfiguredAs(Words)]
    token: str
    groups: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Split words that were given as text."""
        object.__setattr__(self, "words", words_of(self.words))


@dataclass(frozen=True)
class Context(Configurable):
    """The words that must be near a word so that it describes a person; see ``conf/context``.

    Attributes:
        words: nouns and pronouns that the word must describe ("man"), as text with commas or a
            list. A group's word that is also in this list needs no context.
        between: words that may stand between the word and the noun ("black *young* man").
        other_heads: nouns that a person's noun before them merely describes ("a white chef *hat*").
        linking: words that link back to the noun ("a man *who is* black").
        closing: words that may follow, because they show that no other noun is described ("who is
            black *on*").
    """

    words: Words
    between: Words = ()
    other_heads: Words = ()
    linking: Words = ()
    closing: Words = ()

    def __post_init__(self) -> None:
        """Split words that were given as text."""
        for kind in fields(self):
            listed = _lower_case(getattr(self, kind.name), f"context, {kind.name}")
            object.__setattr__(self, kind.name, listed)


@dataclass(frozen=True)
class Naming:
    """The words that count as naming a group of one attribute.

    Attributes:
        attribute: the attribute's name.
        words: K pairs of a group and its words and phrases, in the form of captions without
            punctuation.
        other_senses: phrases whose words name no group.
        applies_to: the context that a word needs. None: words need no context.
    """

    attribute: str
    words: tuple[tuple[str, frozenset[str]], ...]
    other_senses: frozenset[str] = frozenset()
    applies_to: Context | None = None


@dataclass(frozen=True)
class Attribute(Configurable):
    """A protected attribute: the words that reveal each group and the labels of each data set.

    Attributes:
        name: the attribute's name, as in ``attribute=``.
        groups: K >= 2 group names. The position of a group is its class index.
        words: by group name, the words and phrases that reveal the group, as text with commas or a
            list. Words are in lower case, and no word belongs to two groups. "dark-skinned" is
            found only with its hyphen, "dark skinned" only without.
        labels: by data set name, how the data set writes the groups. Your own file needs no entry
            if the column is named after the attribute and contains the names of the groups.
        also_masked: words that reveal the attribute but not the group.
        presets: published word lists by name.
        applies_to: the context that a word needs to name its group. None: words need no context.
            Masking replaces every listed word, whatever the context is.
        other_senses: phrases whose words name no group ("black and white"), as text with commas or
            a list.
        source: the source of words and labels.
        language: the language of the words, as a code of ISO 639. Captions in another language are
            not tested.
        english_check: how lists in another language compare with English lists. None: unknown.
    """

    name: Name
    groups: Sequence[Name]
    words: Annotated[Mapping[str, Sequence[str]], ConfiguredAs(Mapping[str, Words])]
    labels: Mapping[str, LabelMap] = field(default_factory=dict)
    also_masked: Annotated[Sequence[str], ConfiguredAs(Words)] = ()
    presets: Mapping[str, WordList] = field(default_factory=dict)
    applies_to: Context | None = None
    other_senses: str | Sequence[str] = ()
    source: str = ""
    language: Language = ENGLISH
    english_check: ListCheck | None = None

    def __post_init__(self) -> None:
        """Split words that were given as text, and check that all words belong to groups.

        Raises:
            UsageError: on fewer than two groups, words of an unknown group, a word listed in two
                groups or with capital letters, a context given only by name, or a name that holds a
                key of the environment.
        """
        refuse_secrets({"attribute.name": self.name, "attribute.groups": " ".join(self.groups)})
        if isinstance(self.applies_to, str):
            raise UsageError(
                f"attribute {self.name!r}: applies_to={self.applies_to} is a name, not a context; "
                f"write defaults: [/context@applies_to: {self.applies_to}, _self_] at the top of "
                f"its YAML, or +context@attribute.applies_to={self.applies_to} on the command line"
            )
        of = f"attribute {self.name!r}, words"
        object.__setattr__(self, "other_senses", _lower_case(self.other_senses, of))
        object.__setattr__(
            self,
            "words",
            {g: _lower_case(group_words, of) for g, group_words in self.words.items()},
        )
        object.__setattr__(self, "also_masked", words_of(self.also_masked))
        if len(set(self.groups)) < 2:
            raise UsageError(f"attribute {self.name!r}: at least two distinct groups are needed")
        owner: dict[str, str] = {}
        for group, words in self.words.items():
            if group not in self.groups:
                raise UsageError(
                    f"attribute {self.name!r}: words of unknown group {group!r}; "
                    f"{did_you_mean(group, self.groups)}"
                )
            for word in words:
                if owner.setdefault(word, group) != group:
                    raise UsageError(
                        f"attribute {self.name!r}: {word!r} is listed in {owner[word]!r} and "
                        f"{group!r}"
                    )

    @property
    def singles(self) -> tuple[Attribute, ...]:
        """The attributes whose labels are read: this one, or both parts of an intersection."""
        return (self,)

    @property
    def is_crossed(self) -> bool:
        """Whether the groups combine several attributes."""
        return len(self.singles) > 1

    @property
    def all_words(self) -> tuple[str, ...]:
        """Every word that reveals the attribute, sorted."""
        words = {word for group in self.words.values() for word in group}
        return tuple(sorted(words | set(self.also_masked)))

    @property
    def words_digest(self) -> str:
        """A digest of all settings on which masking, and the group that a word names, depend."""
        lists = [self.words, self.also_masked, self.other_senses, repr(self.applies_to)]
        return hashlib.sha256(json.dumps(lists, default=list).encode()).hexdigest()[:12]

    def counted_words(self, preset: str | None = None) -> dict[str, tuple[str, ...]]:
        """For each group, the words that count as naming the group.

        Args:
            preset: the name of a published list. Each word of the list gets the group that it has
                among the attribute's own words. Without a name, or if the attribute has no list of
                this name, the attribute's own words count.

        Example:
            >>> few = WordList(["man", "obama", "pregnant"], "x", {"obama": "male"})
            >>> words = {"male": ["man", "boy"], "female": ["woman"]}
            >>> gender = Attribute("gender", tuple(words), words, {}, presets={"few": few})
            >>> gender.counted_words("few")
            {'male': ('man', 'obama'), 'female': ()}
        """
        if preset is None or preset not in self.presets:
            return {group: tuple(self.words.get(group, ())) for group in self.groups}
        chosen = self.presets[preset]
        owner = {word: group for group, words in self.words.items() for word in words}
        owner |= chosen.groups
        return {
            group: tuple(word for word in chosen.words if owner.get(word) == group)
            for group in self.groups
        }

    def namings(self, preset: str | None = None) -> tuple[Naming, ...]:
        """The words that name a group. An intersection has one item for each of its two attributes.

        Args:
            preset: see :meth:`counted_words`. In a published list every word counts, whatever the
                context is.
        """
        words = tuple(
            (group, frozenset(word.replace("-", " ") for word in group_words))
            for group, group_words in self.counted_words(preset).items()
        )
        if preset in self.presets:
            return (Naming(self.name, words),)
        return (Naming(self.name, words, frozenset(self.other_senses), self.applies_to),)

    def groups_of(self, dataset: str) -> tuple[tuple[str, ...], LabelMap]:
        """The groups that ``dataset`` labels, in the attribute's order, and the label map.

        A data set may label fewer groups than the attribute has. Then chance is computed from the
        labelled groups.

        Raises:
            UnlabelledError: if the data set carries no labels of this attribute.
        """
        if dataset not in self.labels:
            raise UnlabelledError(
                f"dataset {dataset!r} has no labels of attribute {self.name!r}; "
                f"it is labelled in: {', '.join(sorted(self.labels)) or 'none'}"
            )
        labels = self.labels[dataset]
        labelled = set(labels.groups.values())
        return tuple(group for group in self.groups if group in labelled), labels


@dataclass(frozen=True)
class TaskVocabulary(Configurable):
    """The tasks that a caption may name, such as the 80 COCO objects.

    Attributes:
        name: the vocabulary's name.
        tasks: by task name, the words and phrases that name the task, as text with commas or a
            list. They include synonyms and plurals, in lower case and with single blanks. The
            task's own name counts only if it is listed.
        source: the source of the list.
    """

    name: str
    tasks: Annotated[Mapping[str, Sequence[str]], ConfiguredAs(Mapping[str, Words])]
    source: str = ""

    def __post_init__(self) -> None:
        """Split tasks and words that were given as text."""
        of = f"tasks {self.name!r}"
        object.__setattr__(
            self, "tasks", {t: _lower_case(synonyms, of) for t, synonyms in self.tasks.items()}
        )

    @property
    def all_words(self) -> tuple[str, ...]:
        """Every word or phrase that names a task, sorted."""
        return tuple(sorted({word for words in self.tasks.values() for word in words}))
