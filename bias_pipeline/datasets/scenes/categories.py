"""The 80 object categories of COCO: ids and supercategories (facts), and nouns for them (ours).

A detector's label is mapped to a category by its name: numbers differ between label sets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bias_pipeline.corpus.pictures import PERSON
from bias_pipeline.errors import DataError
from bias_pipeline.vision.people import plain_label


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


# As PASCAL VOC and early lists of COCO's 80 write it.
_OTHER_NAMES = {
    "aeroplane": "airplane",
    "motorbike": "motorcycle",
    "sofa": "couch",
    "television": "tv",
    "tv monitor": "tv",
    "tv/monitor": "tv",
}
# What lists finer than COCO's call people.
_PEOPLE = ("people", "human", "pedestrian", "man", "woman", "boy", "girl", "child", "baby")
_SHOWN = 5


def _joined(name: str) -> str:
    return "".join(letter for letter in name if letter not in " -_")


_NUMBERS = {
    _joined(name): CATEGORIES[coco_name].id
    for name, coco_name in (
        *((name, name) for name in CATEGORIES),
        *_OTHER_NAMES.items(),
        *((name, PERSON) for name in _PEOPLE),
    )
}


def coco_number(label: str) -> int | None:
    """COCO's own number of a label, 1 to 90; None if COCO has no such category.

    Example:
        >>> coco_number("Person"), coco_number("diningtable"), coco_number("sofa")
        (1, 67, 63)
        >>> coco_number("N/A"), coco_number("sky-other-merged")
        (None, None)
    """
    return _NUMBERS.get(_joined(plain_label(label)))


def coco_numbers(labels: Sequence[str], model: str) -> list[int | None]:
    """COCO's number of each label of a model.

    Args:
        labels: the L labels, in the model's order.
        model: its name.

    Raises:
        DataError: if none of them is people's.
    """
    numbers = [coco_number(label) for label in labels]
    if CATEGORIES[PERSON].id not in numbers:
        shown = ", ".join(map(repr, labels[:_SHOWN]))
        raise DataError(
            f"{model}: none of its {len(labels)} labels ({shown}, ...) is 'person', so it cannot "
            "find people; choose a detector that was trained on people, such as COCO's"
        )
    return numbers
