"""Protected attributes and task vocabularies: words and labels, read from YAML alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated

from bias_pipeline.declared import Configurable, Given, Text
from bias_pipeline.errors import DataError, UnlabelledError, UsageError, did_you_mean

Word = Annotated[str, Text(r"[\s\S]*[^\s,][\s\S]*", "a word ([] if there is none)")]
Name = Annotated[str, Text(r"[\s\S]*\S[\s\S]*", "a name")]
# A word or phrase, several with commas between, or any nesting of lists and of mappings (whose
# values count) of them. Long lists are text in YAML: Hydra copies every item of a list many times.
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


@dataclass(frozen=True)
class LabelMap(Configurable):
    """How one data set writes the groups of an attribute.

    Attributes:
        field: the name of the label column in the data set.
        groups: raw label to group name.
        strata: raw labels that belong to no group ("Unsure", "Both", empty); images that carry
            one are counted and reported under that name, never scored.
    """

    field: str
    groups: Mapping[str, str]
    strata: Sequence[str] = ()

    def group_of(self, raw: str) -> str | None:
        """The group of a raw label, None for a stratum.

        Raises:
            DataError: if the label is neither a known label nor a known stratum.
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
    """A published word list, kept beside our own.

    Attributes:
        words: the words that are masked or counted, as text with commas or a list.
        token: what replaces each of them when masked.
        groups: the group of each word that the attribute's own lists do not hold.
    """

    words: Annotated[Sequence[str], Given(Words)]
    token: str
    groups: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Split what was given as text."""
        object.__setattr__(self, "words", words_of(self.words))


@dataclass(frozen=True)
class Context(Configurable):
    """What must stand by a word for it to be said of somebody; ``conf/context`` has them.

    Attributes:
        words: nouns and pronouns for whom it must be said of ("man"), as text with commas or a
            list; single words. One that is listed for a group itself needs nothing by it.
        between: words that may stand between the two ("black *young* man").
        other_heads: words of which a noun before them only says something ("a white chef *hat*").
        linking: words that lead back to the noun ("a man *who is* black").
        closing: words that may follow then: what follows is not described ("who is black *on*").
    """

    words: Words
    between: Words = ()
    other_heads: Words = ()
    linking: Words = ()
    closing: Words = ()

    def __post_init__(self) -> None:
        """Split what was given as text."""
        for kind in fields(self):
            object.__setattr__(self, kind.name, words_of(getattr(self, kind.name)))


@dataclass(frozen=True)
class Naming:
    """What counts in a caption as naming a group of one attribute.

    Attributes:
        attribute: its name.
        words: K pairs of a group and its words and phrases, as captions have them without signs.
        other_senses: phrases whose words name nobody.
        applies_to: what must stand by a word; None: nothing.
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
        groups: K >= 2 group names; a group's position is its class index.
        words: group name to the words and phrases that reveal it, as text with commas or a list.
            Lower case, none in two groups; "dark-skinned" is found with its hyphen, "dark skinned"
            without.
        labels: data set name to how that data set writes the groups.
        also_masked: words that reveal the attribute without telling which group.
        presets: published word lists by name.
        applies_to: what must stand by a word for it to name its group; None: nothing, the word is
            enough. Masking takes every listed word wherever it stands.
        other_senses: phrases whose words name nobody ("black and white"), as text with commas or a
            list.
        source: where words and labels come from.
    """

    name: Name
    groups: Sequence[Name]
    words: Annotated[Mapping[str, Sequence[str]], Given(Mapping[str, Words])]
    labels: Mapping[str, LabelMap]
    also_masked: Annotated[Sequence[str], Given(Words)] = ()
    presets: Mapping[str, WordList] = field(default_factory=dict)
    applies_to: Context | None = None
    other_senses: str | Sequence[str] = ()
    source: str = ""

    def __post_init__(self) -> None:
        """Split words that were given as text; check that they belong to the groups.

        Raises:
            UsageError: on fewer than two groups, words of an unknown group, a word that stands in
                two groups, or a context that is a name alone.
        """
        if isinstance(self.applies_to, str):
            raise UsageError(
                f"attribute {self.name!r}: applies_to={self.applies_to} is a name, not a context; "
                f"write defaults: [/context@applies_to: {self.applies_to}, _self_] atop its "
                f"YAML, or +context@attribute.applies_to={self.applies_to} on the command line"
            )
        object.__setattr__(self, "other_senses", words_of(self.other_senses))
        object.__setattr__(self, "words", {g: words_of(own) for g, own in self.words.items()})
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
                        f"attribute {self.name!r}: {word!r} stands in {owner[word]!r} and {group!r}"
                    )

    @property
    def singles(self) -> tuple[Attribute, ...]:
        """The attributes that labels are read for: itself, or those of an intersection."""
        return (self,)

    @property
    def crossed(self) -> bool:
        """Whether its groups are those of several attributes together."""
        return len(self.singles) > 1

    @property
    def all_words(self) -> tuple[str, ...]:
        """Every word that reveals the attribute, sorted."""
        words = {word for group in self.words.values() for word in group}
        return tuple(sorted(words | set(self.also_masked)))

    def counted_words(self, preset: str | None = None) -> dict[str, tuple[str, ...]]:
        """Group name to the words that count as naming it.

        Args:
            preset: a published list, each of its words in the group where our own lists have it;
                our own lists if left out, and for an attribute that has no such preset.

        Example:
            >>> few = WordList(["man", "obama", "pregnant"], "x", {"obama": "male"})
            >>> own = {"male": ["man", "boy"], "female": ["woman"]}
            >>> gender = Attribute("gender", tuple(own), own, {}, presets={"few": few})
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
        """What counts as naming a group; for an intersection one of each of its attributes.

        Args:
            preset: see :meth:`counted_words`. A published list counts as it was published: every
                word, wherever it stands.
        """
        words = tuple(
            (group, frozenset(word.replace("-", " ") for word in own))
            for group, own in self.counted_words(preset).items()
        )
        if preset in self.presets:
            return (Naming(self.name, words),)
        return (Naming(self.name, words, frozenset(self.other_senses), self.applies_to),)

    def groups_of(self, dataset: str) -> tuple[tuple[str, ...], LabelMap]:
        """The groups that ``dataset`` can hold, in the attribute's order, and how it writes them.

        A data set may know fewer groups than the attribute; chance is then that of its own.

        Raises:
            UnlabelledError: if the data set carries no labels of this attribute.
        """
        if dataset not in self.labels:
            raise UnlabelledError(
                f"dataset {dataset!r} has no labels of attribute {self.name!r}; "
                f"it is labelled in: {', '.join(sorted(self.labels)) or 'none'}"
            )
        labels = self.labels[dataset]
        held = set(labels.groups.values())
        return tuple(group for group in self.groups if group in held), labels


@dataclass(frozen=True)
class TaskVocabulary(Configurable):
    """The tasks that a caption may name, such as the 80 COCO objects.

    Attributes:
        name: the vocabulary's name.
        tasks: task name to the words and phrases that name it, as text with commas or a list
            (synonyms and plurals, lower case; a phrase is words with one blank between). The
            task's own name is always one of them.
        source: where the list comes from.
    """

    name: str
    tasks: Annotated[Mapping[str, Sequence[str]], Given(Mapping[str, Words])]
    source: str = ""

    def __post_init__(self) -> None:
        """Split what was given as text."""
        object.__setattr__(self, "tasks", {t: words_of(own) for t, own in self.tasks.items()})

    @property
    def all_words(self) -> tuple[str, ...]:
        """Every word or phrase that names a task, sorted."""
        return tuple(sorted({word for words in self.tasks.values() for word in words}))
