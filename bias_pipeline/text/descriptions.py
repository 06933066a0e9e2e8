"""Finds how captions describe persons, by concepts instead of spellings.

A concept combines words with the same meaning: "handsome" and "pretty" are *good-looking*.
``conf/concepts`` has the words, and the lists for the rules below. No parser is used.

An adjective describes a person if it stands

a. before a noun for a person ("a young tennis player") or for what a person has ("a serious
expression"), b. after a verb that links it to a person ("he looks tired"), or after a comma ("a
woman, happy"), c. after "looking", in a sentence with a person, d. in a sentence with a person, if
only a person can be this ("smiling").

A noun for a person that also describes the person ("girl") counts, unless an animal or a thing
follows.

e. A noun, verb or adverb for what a person has or does ("hair", "smiles", "skillfully") counts if
the nearest noun that can own it is a person. f. A sentence describes nobody if its first person is
a bystander, or "another" person.

No word counts within three words after a negation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, IntArray
from bias_pipeline.corpus.attribute import Attribute, Context, Words, words_of
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.declared import Configurable
from bias_pipeline.text.mentions import Neighbours, word_set
from bias_pipeline.text.sentences import ends_sentence

_TOKEN = re.compile(r"[^\W\d_]+(?:[-'][^\W\d_]+)*|[.!?;,:]")
_END = "\n"  # a token behind the last word of each sentence
_STOPS = frozenset((".", "!", "?", ";", _END))
_SIGNS = _STOPS | {",", ":"}
_FURTHEST_NOUN = 4  # words behind an adjective
_FURTHEST_SUBJECT = 7  # words before a verb
_NEAR = (-3, -2, -1)  # places before a description where a negation reaches it
_TOGETHER = 100_000  # captions read at once, which bounds memory


@dataclass(frozen=True, eq=False)
class ConceptTable(Configurable):
    """Concepts with their words and classes, and the lists for the rules; see ``conf/concepts``."""

    people: Context  # nouns and pronouns for persons, and heads that these only describe
    adjectives: Mapping[str, Mapping[str, Words]]  # class to concept to adjectives
    alone: Mapping[str, Words]  # class to adjectives that are concepts of their own
    person_nouns: Mapping[str, Words]  # concept to nouns for a person that describe
    carried: Mapping[str, Words]  # concept to what a person has or does; "-haired" is an ending
    pronouns: Words
    more_people: Words = ()
    roles: Words = ()  # nouns for persons that follow a noun of what they do
    bystanders: Words = ()
    others: Words = ()  # words before a person who is not the first
    carriers: Words = ()  # what a person has and an adjective may describe
    linking: Words = ()  # verbs between a person and an adjective
    appearing: Words = ()
    degree: Words = ()  # may stand beside an adjective
    looks: Words = ()  # may stand between an adjective and a person
    non_persons: Words = ()  # nouns that an adjective behind a verb describes
    only_persons: Words = ()  # adjectives of rule d
    sizes: Words = ()  # adjectives that need a person within three words
    negations: Words = ()
    no_owners: Words = ()  # who or what may have a face and is no person
    pictures: Words = ()  # words of `no_owners` for what may show a person
    showing: Words = ()
    smiles: Words = ()
    things: Words = ()  # nouns that hair only describes
    grooming: Words = ()
    before_focus: Words = ()
    # Class to the attribute that it is about; audits of this attribute leave the class out
    of_attribute: Mapping[str, str] = field(default_factory=dict)
    source: str = ""

    @cached_property
    def class_of(self) -> dict[str, str]:
        listed = {concept: kind for kind, of in self.adjectives.items() for concept in of}
        return listed | {word: kind for kind, of in self.alone.items() for word in words_of(of)}

    @property
    def concepts(self) -> tuple[str, ...]:
        """The Q concepts, in the order of all columns."""
        return tuple(self.class_of)

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.class_of.values()))

    @cached_property
    def adjective_concepts(self) -> dict[str, int]:
        listed = [of for kind in self.adjectives.values() for of in kind.items()]
        return self._numbers([*listed, *((w, w) for k in self.alone.values() for w in words_of(k))])

    @cached_property
    def noun_concepts(self) -> dict[str, int]:
        """For each noun for a person, the indices of its concepts."""
        return self._numbers(self.person_nouns.items())

    @cached_property
    def carried_concepts(self) -> dict[str, int]:
        """For each word for what a person has or does, the indices of its concepts."""
        return self._numbers(self.carried.items())

    @cached_property
    def persons(self) -> frozenset[str]:
        """Every noun and pronoun for a person."""
        return word_set([self.people.words, self.pronouns, self.more_people, self.roles])

    @cached_property
    def concept_words(self) -> frozenset[str]:
        return frozenset((*self.adjective_concepts, *self.noun_concepts, *self.carried_concepts))

    @cached_property
    def frame(self) -> frozenset[str]:
        """The words around descriptions: nouns for persons, pronouns, verbs, "very" and so on."""
        kinds = (self.carriers, self.linking, self.appearing, self.degree, self.pronouns)
        return self.persons | word_set(kinds)

    def about(self, attribute: Attribute) -> frozenset[str]:
        """The concepts that define an attribute, and so show no bias about its groups.

        These are the concepts in the attribute's own classes, and concepts whose adjectives include
        a word of the attribute.
        """
        names = {single.name for single in attribute.singles}
        classes = {kind for kind, name in self.of_attribute.items() if name in names}
        words = frozenset(attribute.all_words)
        concepts = self.concepts
        named = {concepts[k] for word, k in self.adjective_concepts.items() if word in words}
        return frozenset(named | {c for c, kind in self.class_of.items() if kind in classes})

    def _numbers(self, lists: Iterable[tuple[str, Words]]) -> dict[str, int]:
        """For each word, the indices of its concepts, from the first list with the word."""
        number = {concept: k for k, concept in enumerate(self.concepts)}
        pairs = [(word, number[concept]) for concept, of in lists for word in words_of(of)]
        return dict(reversed(pairs))


@dataclass(frozen=True, eq=False)
class Descriptions:
    """The descriptions of persons in C captions."""

    concepts: sparse.csr_array  # (C, Q) 1 where a caption describes a person by a concept
    spellings: sparse.csr_array  # (C, S) 1 where a caption describes a person by a word
    words: tuple[str, ...]  # the S words, sorted
    concept_of: IntArray  # (S,) the concept of each word


def describe_captions(captions: Captions, table: ConceptTable) -> Descriptions:
    """Find the descriptions of persons in each caption, by the rules of the module."""
    return captions.read(_describe, table)


def _describe(captions: Captions, table: ConceptTable) -> Descriptions:
    rows: list[IntArray] = []
    columns: list[IntArray] = []
    number: dict[tuple[str, int], int] = {}
    for start in range(0, len(captions), _TOGETHER):
        block = captions.take(np.arange(start, min(start + _TOGETHER, len(captions))))
        sentences = sentences_of(block)
        for rule in RULES:
            places, concepts = rule(sentences, table)
            sentence = np.searchsorted(sentences.starts, places, side="right") - 1
            rows.append(start + sentences.image_rows[sentence])
            types = sentences.tokens[places].tolist()
            pairs = [(sentences.types[t], k) for t, k in zip(types, concepts.tolist(), strict=True)]
            columns.append(np.array([number.setdefault(p, len(number)) for p in pairs], np.int64))
    return _tables(np.concatenate(rows), np.concatenate(columns), number, len(captions), table)


def _tables(
    rows: IntArray,
    columns: IntArray,
    number: Mapping[tuple[str, int], int],
    n_captions: int,
    table: ConceptTable,
) -> Descriptions:
    """Tables of spellings and concepts per caption, from pairs of a caption and a word's index."""
    order = sorted(number, key=lambda pair: (pair[0], pair[1]))
    place = np.empty(len(order), np.int64)
    place[[number[pair] for pair in order]] = np.arange(len(order))
    concept_of = np.array([concept for _, concept in order], np.int64)
    column = place[columns]
    spellings = _indicators(rows, column, (n_captions, len(order)))
    shape = (n_captions, len(table.concepts))
    concepts = _indicators(rows, concept_of[column] if len(column) else column, shape)
    return Descriptions(concepts, spellings, tuple(word for word, _ in order), concept_of)


def _indicators(rows: IntArray, columns: IntArray, shape: tuple[int, int]) -> sparse.csr_array:
    table = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)
    table.sum_duplicates()
    table.data = np.ones_like(table.data)
    return table


def content_words(
    captions: Captions, table: ConceptTable, group_words: frozenset[str], *, framed: bool
) -> Captions:
    """Captions without words of concepts, where words that name a group become "person"."""
    persons = group_words | frozenset(table.noun_concepts)
    dropped = (table.concept_words if framed else table.concept_words | table.frame) - persons

    def content(word: str) -> tuple[str, ...]:
        words = ("person" if w in persons else w for w in _tokens(word) if w[0].isalpha())
        return tuple(w for w in words if w not in dropped and not w.endswith("-haired"))

    return captions.rewrite(content)


def _tokens(word: str) -> list[str]:
    """A word of a raw caption as tokens: the word in lower case, and its punctuation."""
    return _TOKEN.findall(word.lower().replace("’", "'"))


def tokens_of(word: str) -> list[str]:
    """A word of a raw caption as tokens. The last word of a sentence also ends the sentence."""
    return [*_tokens(word), _END] if ends_sentence(word) else _tokens(word)


def sentences_of(captions: Captions) -> Captions:
    """The sentences of captions, with one sentence per row.

    ``image_rows`` has the caption of each sentence. :func:`tokens_of` gives the tokens. "facial
    hair" is one token.
    """
    tokens = captions.rewrite(tokens_of).join(["facial hair"])
    mark = np.array([word == _END for word in tokens.types], bool)
    ends = np.flatnonzero(mark[tokens.tokens]) + 1 if len(mark) else np.empty(0, np.int64)
    starts = np.unique(np.concatenate([tokens.starts[:-1], ends[ends < len(tokens.tokens)]]))
    rows = np.searchsorted(tokens.starts[:-1], starts, side="right") - 1
    return Captions(tokens.types, tokens.tokens, np.append(starts, len(tokens.tokens)), rows)


_Rule = Callable[[Captions, ConceptTable], tuple[IntArray, IntArray]]


def _places(sentences: Captions, number: Mapping[str, int]) -> tuple[IntArray, IntArray]:
    """The positions of words that have a number, (P,), and these numbers, (P,)."""
    numbers = np.array([number.get(word, -1) for word in sentences.types], np.int64)
    numbers = numbers[sentences.tokens] if len(numbers) else np.empty(0, np.int64)
    return np.flatnonzero(numbers >= 0), numbers[numbers >= 0]


def _adjectives(sentences: Captions, table: ConceptTable) -> tuple[IntArray, IntArray]:
    """The positions and the concepts of adjectives that describe a person."""
    places, concepts = _places(sentences, table.adjective_concepts)
    near = AdjectiveSlots(sentences, places, table)
    says = near.say() & ~_of_another(sentences, table)[near.row]
    return places[says], concepts[says]


class AdjectiveSlots(Neighbours):
    """The rules a to d on positions of adjectives."""

    def __init__(self, sentences: Captions, places: IntArray, table: ConceptTable) -> None:
        super().__init__(sentences, places)
        self.table = table
        self.row = np.searchsorted(sentences.starts, places, side="right") - 1
        beside = frozenset((*table.adjective_concepts, *words_of(table.degree), ","))
        self.chain = beside | {word for word in sentences.types if word.endswith("ly")}
        self.nouns = table.persons - word_set(table.pronouns)
        self.verb = self.past(self.chain, places - 1, -1)  # the nearest word before, or the noun
        self.with_person = sentences.mentions(table.persons)[self.row]

    def say(self) -> BoolArray:
        """Whether the adjective at each position describes a person."""
        table = self.table
        behind = self.behind_verb() | self.behind_comma() | self.appearing() | self.only_person()
        before_smile = self.is_among(word_set(table.smiles), self.places + 1)
        size = self.is_among(word_set(table.sizes), self.places)
        unlike = before_smile | self.is_within(word_set(table.negations), _NEAR)
        unlike |= self.is_among(word_set(table.no_owners), self.places + 1)
        unlike |= size & ~self.is_within(table.persons, (1, 2, 3))
        return (self.is_before_person() | behind) & ~unlike

    def is_before_person(self) -> BoolArray:
        table = self.table
        passed = self.chain | word_set([table.looks, table.people.between])
        heads, roles = self.nouns | word_set(table.carriers), word_set(table.roles)
        at, on = self.places + 1, np.ones(len(self.places), bool)
        head = np.zeros(len(self.places), bool)
        for _ in range(_FURTHEST_NOUN):
            head |= on & self.is_among(heads, at)
            on &= ~head & (self.is_among(passed, at) | self.is_among(roles, at + 1))
            at = at + on
        behind = self.past(self.nouns, at, 1)
        return head & ~self.is_among(word_set(table.people.other_heads) - self.nouns, behind)

    def behind_verb(self) -> BoolArray:
        table = self.table
        subjects = table.persons | word_set(table.carriers)
        ends = _STOPS | word_set(table.non_persons)
        on = self.is_among(word_set(table.linking), self.verb)
        subject = np.zeros(len(self.places), bool)
        for step in range(1, _FURTHEST_SUBJECT + 1):
            subject |= on & self.is_among(subjects, self.verb - step)
            on &= ~subject & ~self.is_among(ends, self.verb - step)
        return subject

    def behind_comma(self) -> BoolArray:
        comma = self.is_among(frozenset(","), self.verb + 1) & (self.verb + 1 < self.places)
        return comma & self.closes() & self.is_among(self.nouns, self.verb)

    def closes(self) -> BoolArray:
        """Whether the word ends its phrase, so that it describes no noun after it."""
        following = self.past(self.chain - {","}, self.places + 1, 1)
        closing = _SIGNS | word_set([self.table.people.closing, self.table.linking])
        return (following == self.end) | self.is_among(closing, following)

    def appearing(self) -> BoolArray:
        return self.with_person & self.is_among(word_set(self.table.appearing), self.verb)

    def only_person(self) -> BoolArray:
        return self.with_person & self.is_among(word_set(self.table.only_persons), self.places)


def _person_nouns(sentences: Captions, table: ConceptTable) -> tuple[IntArray, IntArray]:
    """The positions and the concepts of nouns for a person that also describe the person."""
    places, concepts = _places(sentences, table.noun_concepts)
    near = Neighbours(sentences, places)
    following = near.past(word_set(table.looks), places + 1, 1)
    heads = word_set([table.no_owners, table.people.other_heads]) - table.persons
    row = np.searchsorted(sentences.starts, places, side="right") - 1
    says = ~near.is_among(heads, following) & ~_of_another(sentences, table)[row]
    return places[says], concepts[says]


def _carried_words(sentences: Captions, table: ConceptTable) -> tuple[IntArray, IntArray]:
    """The positions and concepts of words for what a person has or does (rule e)."""
    number = {**table.carried_concepts}
    for ending in [word for word in number if word.startswith("-")]:
        ended = (word for word in sentences.types if word.endswith(ending))
        number |= {word: number[ending] for word in ended if word not in number}
    places, concepts = _places(sentences, number)
    near = Neighbours(sentences, places)
    row = np.searchsorted(sentences.starts, places, side="right") - 1
    unlike = near.is_among(word_set([table.things, table.no_owners]), places + 1)
    unlike |= near.is_within(word_set(table.negations), _NEAR)
    unlike |= (concepts == number.get("hair", -1)) & near.is_within(word_set(table.grooming), _NEAR)
    unlike |= _of_camera(near, table)
    says = _find_owned(sentences, places, table) & ~unlike & ~_of_another(sentences, table)[row]
    return places[says], concepts[says]


def _of_camera(near: Neighbours, table: ConceptTable) -> BoolArray:
    """Whether the word "focus" is about a camera and not about a person who concentrates."""
    focus = near.is_among(frozenset(["focus"]), near.places)
    on_it = near.is_among(word_set(table.before_focus), near.places - 1)
    camera = word_set(table.no_owners) | {"main", "center", "central", "out"}
    beside = near.is_within(camera, (-4, -3, -2, -1, 1, 2, 3, 4))
    of = near.is_among(frozenset(("of", "in")), near.places + 1)
    return focus & (~on_it | beside | of)


def _find_owned(sentences: Captions, places: IntArray, table: ConceptTable) -> BoolArray:
    """Whether the nearest possible owner before each position, or else after it, is a person."""
    persons = table.persons | {f"{word}'s" for word in table.persons}
    no_person = word_set(table.no_owners)
    if not len(places):
        return np.empty(0, bool)
    following = np.append(sentences.tokens[1:], -1)
    shows = _flags(sentences, word_set(table.showing) | {","})
    pictures = _flags(sentences, word_set(table.pictures))[sentences.tokens]
    pictures &= (following >= 0) & shows[following]
    is_person = _flags(sentences, persons)[sentences.tokens]
    owner = is_person | (_flags(sentences, no_person)[sentences.tokens] & ~pictures)
    owners = np.flatnonzero(owner)
    row = np.searchsorted(sentences.starts, places, side="right") - 1
    before = np.searchsorted(owners, places) - 1  # an owner at the place itself is behind it
    behind = np.searchsorted(owners, places, side="right")
    padded = np.concatenate([[-1], owners, [len(sentences.tokens)]])
    left, right = padded[before + 1], padded[behind + 1]
    has_left = left >= sentences.starts[row]
    has_right = right < sentences.starts[row + 1]
    persons_at = np.append(is_person, False)
    return (has_left & persons_at[left]) | (~has_left & has_right & persons_at[right])


def _flags(captions: Captions, words: frozenset[str]) -> BoolArray:
    """(V,) flags: true for distinct words that are among ``words``."""
    return np.array([word in words for word in captions.types], bool)


def _of_another(sentences: Captions, table: ConceptTable) -> BoolArray:
    """(N,) flags: true for sentences about a person who is not their first person (rule f)."""
    return sentences.read(_another, table)


def _another(sentences: Captions, table: ConceptTable) -> BoolArray:
    bystanders = word_set(table.bystanders)
    flags = _flags(sentences, bystanders | table.persons | frozenset(table.noun_concepts))
    places = np.flatnonzero(flags[sentences.tokens]) if len(flags) else np.empty(0, np.int64)
    row = np.searchsorted(sentences.starts, places, side="right") - 1
    rows, first = np.unique(row, return_index=True)
    near = Neighbours(sentences, places[first])
    another = np.zeros(len(sentences), bool)
    another[rows] = near.is_among(bystanders, near.places) | near.is_within(
        word_set(table.others), _NEAR
    )
    return another


RULES: tuple[_Rule, ...] = (_adjectives, _person_nouns, _carried_words)
