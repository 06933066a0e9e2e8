"""Puts a scene into words: one caption by one annotator.

Every decision has a random number of its own (:data:`PURPOSES`). So a dial that changes one
decision does not change any other decision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from bias_pipeline.corpus.object_names import CATEGORIES
from bias_pipeline.errors import join_words
from bias_pipeline.scenes import lexicon
from bias_pipeline.scenes.lexicon import (
    Verb,
    noun_phrase,
    pick,
    plural,
)
from bias_pipeline.scenes.scene import Scene
from bias_pipeline.scenes.slots import GROUPS, BiasSettings
from bias_pipeline.text.articles import with_article

_Option = TypeVar("_Option")

# Probabilities for a person's caption; a comment names the dial that multiplies the probability.
GENDERED = 0.7  # gender_word_rate
MENTION = 0.5  # mention_rate, each object
CLOTHING = 0.18
CARRIED_LATE = 0.1
PLACE_FIRST = 0.06
PLACE = 0.85  # length, as all that follow up to SIZE
BACKDROP = 0.25
COMPANY = 0.05
LONG_FRAME = 0.06
COLOUR = 0.16
SIZE = 0.06
AGE, EMOTION = 0.18, 0.08
SKIN = 0.012  # skin_word_rate
POSSESSIVE = 0.15

# Numbers of words after the words for the person, so that naming the person changes nothing else.
ENOUGH = 4  # with fewer words, the place is always named
ROOM = 8  # with more words, no place, backdrop or company is added; multiplied by length
_LARGE = frozenset({"vehicle", "outdoor", "animal", "furniture", "appliance"})
_IN_PLURAL = frozenset({"banana", "apple", "orange", "carrot"})

PURPOSES = tuple(
    """gendered|person|gender adjective|child|role|role noun|someone|determiner|count
    age said|age adjective|emotion said|emotion adjective|skin said|skin adjective
    possessive|named main|main noun|main coloured|main size|size|verb
    clothing said|clothing noun|clothing coloured|clothing relation
    named carried|carried noun|carried relation|carried late
    named other 0|named other 1|other noun 0|other noun 1|around
    named nearby|nearby noun|nearby relation|nearby coloured
    place said|place wording|place first|backdrop said|backdrop wording
    company said|company wording|long frame|frame|surface
    wording follows skin""".replace("\n    ", "|").split("|")
)


class Subject(NamedTuple):
    text: str  # "a young woman"
    be: str  # "is" or "are"
    exist: str  # the verb after "there": also "is" before "a group of men"
    possessive: str  # "his", "her" or "their"


@dataclass(frozen=True, slots=True)
class Description:
    scene: Scene  # what the annotator sees
    spoken: Mapping[str, str]  # the group assumed for each attribute, "" if unsure
    draws: Mapping[str, float]  # a number in [0, 1) for each of `PURPOSES`
    dials: BiasSettings  # how the annotator differs from a person

    def says(self, purpose: str, probability: float) -> bool:
        return self.draws[purpose] < probability

    def details(self, purpose: str, probability: float) -> bool:
        """Whether the annotator mentions a detail; people do so with the given probability."""
        return self.draws[purpose] < probability * self.dials.length

    def names(self, what: str) -> bool:
        return self.draws[f"named {what}"] < MENTION * self.dials.mention_rate

    @property
    def room(self) -> float:
        """The number of words left after the words for the person."""
        return ROOM * self.dials.length

    def word(self, purpose: str, synonyms: Sequence[_Option]) -> _Option:
        low, share = self.wording
        return pick(synonyms, (low + share * self.draws[purpose]) * self.dials.vocabulary)

    @property
    def wording(self) -> tuple[float, float]:
        """Where the used synonyms begin in a list, and their share of the list by frequency."""
        skin = self.spoken["skin"]
        if not skin or self.draws["wording follows skin"] >= self.dials.skin_wording:
            return 0.0, 1.0
        share = GROUPS["skin"][skin]
        return (0.0 if skin == "Light" else 1 - share), share

    @property
    def has_several(self) -> bool:
        return self.scene.people > 1

    @property
    def is_gendered(self) -> bool:
        rate = GENDERED * self.dials.gender_word_rate
        return bool(self.spoken["gender"]) and self.draws["gendered"] < rate


def caption(description: Description) -> str:
    subject = _subject(description)
    sentence, objects = _sentence(description, subject), _join(*_objects(description))
    room = description.room + _length(subject.text) - _length(_join(sentence, objects))
    place = _place(description, room)
    surroundings = _surroundings(description, room - len(place.split()))
    parts = [sentence, place, objects, surroundings]
    if description.says("place first", PLACE_FIRST):
        parts = [place, sentence, objects, surroundings]
    text = _join(*parts)
    surface = description.draws["surface"]
    if surface < 0.3:
        return text
    text = text[0].upper() + text[1:]
    return text if surface < 0.45 else f"{text}."


def _place(description: Description, room: float) -> str:
    place = description.word("place wording", description.scene.place)
    wanted = description.details("place said", PLACE) and _length(place) <= room
    return place if wanted or description.room - room < ENOUGH else ""


def _surroundings(description: Description, room: float) -> str:
    backdrop = description.word("backdrop wording", description.scene.backdrop)
    if not description.details("backdrop said", BACKDROP) or _length(backdrop) > room:
        backdrop = ""
    company = description.word("company wording", lexicon.COMPANIONS)
    room -= len(backdrop.split())
    if not description.details("company said", COMPANY) or _length(company) > room:
        company = ""
    return _join(backdrop, company)


def _join(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _length(text: str) -> int:
    return text.count(" ") + 1


# --- who


def _subject(description: Description) -> Subject:
    age = description.spoken["age"] if description.says("age said", AGE) else ""
    child = age == "young" and description.says("child", 0.6)
    adjectives = _adjectives(description, "" if child else age)
    noun = (
        _gendered_noun(description, child)
        if description.is_gendered
        else _neutral_noun(description, child)
    )
    text = _with_determiner(description, [*adjectives, noun])
    singular = not description.has_several
    their = (
        lexicon.POSSESSIVES[description.spoken["gender"]] if description.is_gendered else "their"
    )
    return Subject(
        text,
        be="is" if singular else "are",
        exist="is" if singular or text.startswith(("a group", "a bunch", "a crowd")) else "are",
        possessive=their if singular else "their",
    )


def _adjectives(description: Description, age: str) -> list[str]:
    """Adjectives of emotion, age and skin in English order; unsure groups have none."""
    emotion = description.spoken["emotion"] if description.says("emotion said", EMOTION) else ""
    rate = SKIN * description.dials.skin_word_rate
    skin = description.spoken["skin"] if description.says("skin said", rate) else ""
    labels = {"emotion": emotion, "age": age, "skin": skin}
    return [
        description.word(f"{attribute} adjective", lexicon.GROUP_ADJECTIVES[group])
        for attribute, group in labels.items()
        if group
    ]


def _gendered_noun(description: Description, child: bool) -> str:
    gender, roles = description.spoken["gender"], description.scene.activity.roles
    if roles and not child and description.says("gender adjective", 0.08):
        return f"{lexicon.GENDER_ADJECTIVES[gender]} {_role(description)}"
    pair = description.word("person", lexicon.CHILDREN if child else lexicon.ADULTS)
    return (pair.male if gender == "Male" else pair.female)[description.has_several]


def _neutral_noun(description: Description, child: bool) -> str:
    if not child and description.scene.activity.roles and description.says("role", 0.45):
        return _role(description)
    if not child and not description.has_several and description.says("someone", 0.12):
        return lexicon.SOMEONE
    nouns = lexicon.NEUTRAL_CHILDREN if child else lexicon.NEUTRAL_ADULTS
    return description.word("person", nouns)[description.has_several]


def _role(description: Description) -> str:
    role = description.word("role noun", description.scene.activity.roles)
    return plural(role) if description.has_several else role


def _with_determiner(description: Description, words: Sequence[str]) -> str:
    text = " ".join(words)
    if description.has_several:
        counts = lexicon.TWO if description.scene.people == 2 else lexicon.MANY
        return f"{description.word('count', counts)} {text}"
    if words[-1] == lexicon.SOMEONE:
        return " ".join([lexicon.SOMEONE, *words[:-1]])  # "someone happy", never "a happy someone"
    rare = description.draws["determiner"] * description.dials.vocabulary
    return f"the {text}" if rare > 0.93 else with_article(text)


# --- what


def _sentence(description: Description, subject: Subject) -> str:
    early, late = _carried_things(description)
    verb, rest = _predicate(description, subject)
    long_frame = description.details("long frame", LONG_FRAME)
    frame = description.word("frame", lexicon.LONG_FRAMES if long_frame else lexicon.SHORT_FRAMES)
    return frame.format(
        s=_join(subject.text, _clothing(description), early),
        be=subject.be,
        exist=subject.exist,
        ving=_join(verb.gerund + rest, late),
        v=_join((verb.base if description.has_several else verb.third) + rest, late),
    )


def _predicate(description: Description, subject: Subject) -> tuple[Verb, str]:
    """The predicate, which is a verb and its objects, with the main object if it is named."""
    activity = description.scene.activity
    if not description.names("main"):
        verb = description.word("verb", activity.plain)
        return verb, verb.rest
    verb = description.word("verb", activity.naming)
    return verb, verb.rest.replace("{it}", _main(description, subject))


def _main(description: Description, subject: Subject) -> str:
    activity = description.scene.activity
    noun = description.word("main noun", CATEGORIES[activity.main].nouns)
    one_each = activity.possessive and description.has_several
    if one_each or activity.main in _IN_PLURAL:
        noun = plural(noun)
    adjective = ""
    if description.details("main coloured", COLOUR):
        adjective = description.scene.main_colour
    elif description.details("main size", SIZE):
        adjective = description.word("size", lexicon.SIZES)
    if activity.possessive and description.says("possessive", POSSESSIVE):
        return _join(subject.possessive, adjective, noun)
    bare = one_each or activity.main in _IN_PLURAL
    return _join(adjective, noun) if bare else noun_phrase(noun, adjective)


def _clothing(description: Description) -> str:
    if not description.says("clothing said", CLOTHING):
        return ""
    noun = description.word("clothing noun", description.scene.clothing)
    coloured = description.details("clothing coloured", 2 * COLOUR)
    relations = lexicon.ADORNED if noun.endswith(lexicon.ADORNMENTS) else lexicon.WEARING
    relation = description.word("clothing relation", relations)
    colour = description.scene.clothing_colour if coloured else ""
    return f"{relation} {_one_each(description, noun, colour)}"


def _one_each(description: Description, noun: str, adjective: str = "") -> str:
    return (
        _join(adjective, plural(noun)) if description.has_several else noun_phrase(noun, adjective)
    )


def _carried_things(description: Description) -> tuple[str, str]:
    """The things that the person carries, if mentioned: a phrase after the person or at the end."""
    carried = description.scene.carried
    if not carried or not description.names("carried"):
        return "", ""
    thing = _one_each(description, description.word("carried noun", CATEGORIES[carried].nouns))
    worn = carried in lexicon.WORN
    if description.says("carried late", CARRIED_LATE):
        return "", f"while {'wearing' if worn else 'holding'} {thing}"
    relations = lexicon.ADORNED if worn else lexicon.CARRYING
    return f"{description.word('carried relation', relations)} {thing}", ""


# --- with what, where, when


def _objects(description: Description) -> list[str]:
    """The named objects that nobody carries."""
    named = [
        (name, description.word(f"other noun {i}", CATEGORIES[name].nouns))
        for i, name in enumerate(description.scene.others)
        if description.names(f"other {i}")
    ]
    objects, nearby = _others(description, named), description.scene.nearby
    if nearby and description.names("nearby"):
        noun = description.word("nearby noun", CATEGORIES[nearby].nouns)
        coloured = description.details("nearby coloured", COLOUR)
        thing = noun_phrase(noun, description.scene.near_colour if coloured else "")
        objects.append(f"{description.word('nearby relation', lexicon.NEAR)} {thing}")
    return objects


def _others(description: Description, named: Sequence[tuple[str, str]]) -> list[str]:
    if not named:
        return []
    things = join_words(
        [
            f"some {plural(noun)}" if name in _IN_PLURAL else noun_phrase(noun)
            for name, noun in named
        ]
    )
    if CATEGORIES[named[0][0]].supercategory in _LARGE:
        return [f"{description.word('around', lexicon.NEAR)} {things}"]
    return ["with " + _join(things, description.word("around", lexicon.AROUND))]
