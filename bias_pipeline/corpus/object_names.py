"""Maps labels that programs give to objects to COCO's 80 categories.

A label is mapped by its name, since numbers differ between label sets. COCO's ids and
supercategories are facts; we chose the nouns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bias_pipeline.corpus.pictures import PERSON
from bias_pipeline.errors import DataError, inflect


class Category(NamedTuple):
    """One COCO category."""

    id: int  # COCO's own number, 1 to 90 with gaps
    supercategory: str  # COCO's own grouping
    nouns: tuple[str, ...]  # singular nouns that name it, the most frequent first


_TABLE = """
1 person: person
2 vehicle: bicycle|bike|mountain bike
3 vehicle: car|sedan|taxi|automobile
4 vehicle: motorcycle|motorbike|scooter
5 vehicle: airplane|plane|jet|aircraft
6 vehicle: bus|school bus
7 vehicle: train|locomotive
8 vehicle: truck|pickup|lorry
9 vehicle: boat|canoe|sailboat|rowboat
10 outdoor: traffic light|stoplight|traffic signal
11 outdoor: fire hydrant|hydrant
13 outdoor: stop sign
14 outdoor: parking meter|meter
15 outdoor: bench
16 animal: bird|pigeon|seagull
17 animal: cat|kitten|kitty
18 animal: dog|puppy|pup
19 animal: horse|pony
20 animal: sheep|lamb
21 animal: cow|calf
22 animal: elephant
23 animal: bear
24 animal: zebra
25 animal: giraffe
27 accessory: backpack|knapsack|rucksack
28 accessory: umbrella|parasol
31 accessory: handbag|purse
32 accessory: tie|necktie
33 accessory: suitcase|briefcase
34 sports: frisbee|disc
35 sports: skis
36 sports: snowboard
37 sports: sports ball|ball|soccer ball
38 sports: kite
39 sports: baseball bat|bat
40 sports: baseball glove|mitt|baseball mitt
41 sports: skateboard|skate board
42 sports: surfboard|surf board
43 sports: tennis racket|racket|racquet
44 kitchen: bottle|water bottle|plastic bottle
46 kitchen: wine glass|goblet|champagne glass
47 kitchen: cup|mug
48 kitchen: fork
49 kitchen: knife
50 kitchen: spoon|ladle
51 kitchen: bowl|mixing bowl
52 food: banana
53 food: apple
54 food: sandwich|burger|panini
55 food: orange|tangerine
56 food: broccoli
57 food: carrot
58 food: hot dog|hotdog
59 food: pizza|cheese pizza
60 food: donut|doughnut
61 food: cake|cupcake
62 furniture: chair|stool|armchair
63 furniture: couch|sofa|loveseat
64 furniture: potted plant|houseplant|potted flower
65 furniture: bed|mattress
67 furniture: dining table|table
70 furniture: toilet
72 electronic: tv|television|flat screen
73 electronic: laptop|laptop computer|notebook computer
74 electronic: mouse
75 electronic: remote|controller|remote control
76 electronic: keyboard
77 electronic: cell phone|phone|cellphone|smartphone
78 appliance: microwave
79 appliance: oven|stove
80 appliance: toaster
81 appliance: sink|basin
82 appliance: refrigerator|fridge
84 indoor: book|novel|paperback
85 indoor: clock|wall clock
86 indoor: vase|urn
87 indoor: scissors|shears
88 indoor: teddy bear|stuffed bear|teddy
89 indoor: hair drier|hair dryer|blow dryer
90 indoor: toothbrush
"""


def _parse(line: str) -> tuple[str, Category]:
    head, nouns = line.split(": ")
    number, supercategory = head.split(" ")
    words = tuple(nouns.split("|"))
    return words[0], Category(int(number), supercategory, words)


CATEGORIES: Mapping[str, Category] = dict(_parse(line) for line in _TABLE.strip().splitlines())

# COCO's own number, as its files write it, to the name.
NAMES_BY_NUMBER: Mapping[str, str] = {
    str(category.id): name for name, category in CATEGORIES.items()
}


# On each line the names of one category in COCO, PASCAL VOC, darknet, early lists of COCO's 80, and
# in other spellings.
_SYNONYMS = (
    ("airplane", "aeroplane"),
    ("motorcycle", "motorbike"),
    ("couch", "sofa"),
    ("tv", "television", "tv monitor"),
    ("donut", "doughnut"),
    ("hair drier", "hair dryer"),
    ("cell phone", "mobile phone", "cellular phone", "cellular telephone"),
    ("tennis racket", "tennis racquet"),
)
# What lists finer than COCO's call people.
_PEOPLE = ("people", "human", "pedestrian", "man", "woman", "boy", "girl", "child", "baby")
_NOTHING = ("n/a", "none", "background", "no object")  # detectors' names for no category
# An ending of plurals, and the ending of the singular in its place.
_PLURALS = (
    *(("s", ""), ("es", ""), ("ies", "y"), ("ves", "f"), ("ves", "fe")),
    *(("men", "man"), ("mice", "mouse"), ("people", "person"), ("children", "child")),
)
_SHOWN = 5
_LONGEST = 40  # characters of a name in a sentence
MOST_UNKNOWN = 0.1  # the share of objects of unknown names above which a file is refused


def plain_label(text: str) -> str:
    """A label as words. If the label lists synonyms, only the first one is returned.

    For a label that is no category, the result is empty.

    Labels of ImageNet separate synonyms by commas. Other lists join words with ``_``.

    Example:
        >>> plain_label("motor scooter, scooter"), plain_label("Traffic_light"), plain_label("N/A")
        ('motor scooter', 'traffic light', '')
    """
    return _as_words(text.partition(",")[0])


def _as_words(text: str) -> str:
    """A label in lower case with single blanks, or empty if the label means no category."""
    words = " ".join(text.lower().replace("_", " ").split())
    return "" if words in _NOTHING else words


def _letters(name: str) -> str:
    """Only the letters and digits of a name, in lower case."""
    return "".join(sign for sign in name.casefold() if sign.isalnum())


def _spellings(name: str) -> Iterator[str]:
    """The letters of a name, of the possible singular, and of the possible plural."""
    letters = _letters(name)
    yield letters
    for ending, single in _PLURALS:
        if letters.endswith(ending):
            yield letters.removesuffix(ending) + single
    yield f"{letters}s"


class ObjectNames:
    """Finds the known name that a name in a file means.

    A known name means itself. For other names, case, blanks, hyphens, other signs, and singular or
    plural do not matter. If no known name fits, names from other lists are mapped to COCO's
    categories. A name that could mean two known names means neither.

    Example:
        >>> names = ObjectNames(["couch", "hot dog", "person"])
        >>> [names.meaning_of(name) for name in ("Sofa ", "hot_dogs", "woman", "dog")]
        ['couch', 'hot dog', 'person', None]
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)
        spelt = Counter(map(_letters, self._names))
        self._meanings = {_letters(n): n for n in sorted(self._names) if spelt[_letters(n)] == 1}
        for synonyms in _SYNONYMS:
            meanings = {self.meaning_of(name) for name in synonyms} - {None}
            self._add(synonyms, meanings)
        self._add(_PEOPLE, {self.meaning_of(PERSON)})

    def _add(self, names: Iterable[str], meanings: set[str | None]) -> None:
        """Add meanings for names that have no meaning yet, if the meaning is unique."""
        for name in names if len(meanings) == 1 else ():
            if (meaning := next(iter(meanings))) and self.meaning_of(name) is None:
                self._meanings[_letters(name)] = meaning

    def meaning_of(self, name: str) -> str | None:
        """The known name that a name means, or None if the name is unknown or means no object."""
        if name in self._names:
            return name
        return next((self._meanings[s] for s in _spellings(name) if s in self._meanings), None)


COCO_NAMES = ObjectNames(CATEGORIES)


def coco_name(name: str) -> str:
    """COCO's name for an object, or the name itself if COCO does not have the object.

    Example:
        >>> coco_name("Aeroplane"), coco_name("hat")
        ('airplane', 'hat')
    """
    return COCO_NAMES.meaning_of(name) or name


def is_odd(name: str) -> bool:
    """Whether a name in a file may be another spelling of a known name."""
    known = name in CATEGORIES or COCO_NAMES.meaning_of(name) is None
    return not (known and name == _as_words(name))


@dataclass(frozen=True)
class ObjectsRead:
    """The known names to which the object names of a data set were mapped."""

    # Name to how many images have it; without excluded names and names for no object
    images: Mapping[str, int]
    meanings: Mapping[str, str]  # name to the known name that it means; unknown names are absent

    @classmethod
    def match(
        cls, names: Iterable[str], images: Mapping[str, int], excluded: Iterable[str] = ()
    ) -> ObjectsRead:
        """Find the known names for the object names of a data set.

        Example:
            >>> images = {"Couch": 3, "sky": 1, "N/A": 9, "Woman": 9}
            >>> ObjectsRead.match(["couch", "person"], images, ["person"]).unknown_share
            0.25
        """
        known, ignored = ObjectNames(names), frozenset(excluded)
        every = {name: known.meaning_of(name) for name in images if _as_words(name)}
        meanings = {name: meaning for name, meaning in every.items() if meaning not in ignored}
        return cls(
            {name: images[name] for name in meanings},
            {name: meaning for name, meaning in meanings.items() if meaning is not None},
        )

    @property
    def unknown(self) -> list[str]:
        """The unknown names, the most frequent first."""
        return self._by_frequency(name for name in self.images if name not in self.meanings)

    @property
    def unknown_share(self) -> float:
        """The share of objects with unknown names, in [0, 1]. An object counts once per image."""
        total = sum(self.images.values())
        return sum(self.images[name] for name in self.unknown) / total if total else 0.0

    def _by_frequency(self, names: Iterable[str]) -> list[str]:
        return sorted(names, key=lambda name: (-self.images[name], name))

    def fault(self, tasks: str) -> str:
        """A message on unknown object names, with the most frequent ones; may be empty."""
        unknown, total = self.unknown, sum(self.images.values())
        if not unknown:
            return ""
        what = f"of {total} objects ({self.unknown_share:.1%}) are not counted"
        number = inflect(sum(self.images[name] for name in unknown), what)
        most = ", ".join(f"{_quote(name)} ({self.images[name]})" for name in unknown[:_SHOWN])
        often = "most often " if len(unknown) > _SHOWN else ""
        return f"{number}, since {tasks} has no task of such a name: {often}{most}"

    def note_on_renamed(self) -> str:
        """A note on names that were read as other names, or an empty text."""
        others = self._by_frequency(name for name in self.meanings if name != self.meanings[name])
        names = ", ".join(f"{_quote(name)} is {self.meanings[name]}" for name in others[:_SHOWN])
        further = f", and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        return f"names of objects: {names}{further}" if others else ""


def _quote(name: str) -> str:
    return repr(name if len(name) <= _LONGEST else f"{name[:_LONGEST]}...")


def coco_number(label: str) -> int | None:
    """COCO's own number of a label, 1 to 90, or None if COCO has no such category.

    Example:
        >>> coco_number("Person"), coco_number("diningtable"), coco_number("sofa")
        (1, 67, 63)
        >>> coco_number("N/A"), coco_number("sky-other-merged")
        (None, None)
    """
    name = COCO_NAMES.meaning_of(plain_label(label))
    return None if name is None else CATEGORIES[name].id


def coco_numbers(labels: Sequence[str], model: str) -> list[int | None]:
    numbers = [coco_number(label) for label in labels]
    if CATEGORIES[PERSON].id not in numbers:
        shown = ", ".join(map(repr, labels[:_SHOWN]))
        raise DataError(
            f"{model}: none of its {len(labels)} labels ({shown}, ...) is 'person', so it cannot "
            "find people; choose a detector that was trained on people, such as COCO's"
        )
    return numbers
