"""Puts a scene together from its chosen options, with boxes for its objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from bias_pipeline.corpus.object_names import CATEGORIES
from bias_pipeline.scenes.activities import ACTIVITIES, PLACES, Activity
from bias_pipeline.scenes.lexicon import COLOURS, LOOKS
from bias_pipeline.scenes.slots import KINDS, NOTHING, SLOTS, slot_name

MAX_OTHERS = 2  # so that a scene has at most five objects besides its people
_PEOPLE = (0.78, 0.91)  # draws below the first bound: one person; below the second: two; else three

# Decisions that are made once per image, for all annotators and captioners.
PURPOSES = (
    *("people", "place", "other 0", "other 1", "other 2", "other 3"),
    *("clothing colour", "main colour", "near colour"),
)


@dataclass(frozen=True, slots=True)
class Scene:
    """The content of a picture, except the person's groups."""

    activity: Activity  # what the people do
    place: tuple[str, ...]  # wordings of the place
    others: tuple[str, ...]  # further COCO objects that belong to the activity, at most two
    clothing: tuple[str, ...]  # nouns for what the person wears
    carried: str  # COCO object, or `NOTHING`
    nearby: str  # COCO object, or `NOTHING`
    backdrop: tuple[str, ...]  # wordings of weather, light or background
    people: int  # 1, 2 or 3
    clothing_colour: str  # an adjective
    main_colour: str  # an adjective
    near_colour: str  # an adjective

    @property
    def objects(self) -> frozenset[str]:
        """The COCO objects of the scene besides people: one to five."""
        return frozenset({self.activity.main, *self.others, self.carried, self.nearby} - {NOTHING})


def stage(chosen: Mapping[str, int], draws: Mapping[str, float]) -> Scene:
    """The scene of the chosen options; each of :data:`PURPOSES` has a number in [0, 1).

    Example:
        >>> scene = stage(dict.fromkeys(SLOTS, 1), dict.fromkeys(PURPOSES, 0.5))
        >>> scene.activity.name, sorted(scene.objects)
        ('skateboarding', ['bench', 'bottle', 'skateboard'])
    """
    activity = ACTIVITIES[chosen["activity"]]
    names = {kind: slot_name(kind, activity.setting) for kind in KINDS}
    option = {kind: SLOTS[slot].options[chosen[slot]] for kind, slot in names.items()}
    others = tuple(
        name for i, (name, p) in enumerate(activity.others.items()) if draws[f"other {i}"] < p
    )[:MAX_OTHERS]
    taken = {activity.main, *others}
    carried = NOTHING if option["carried"] in taken else option["carried"]
    nearby = NOTHING if option["nearby"] in {*taken, carried} else option["nearby"]
    return Scene(
        activity=activity,
        place=PLACES[_share(activity.places, draws["place"])],
        others=others,
        clothing=tuple(option["clothing"].split("|")),
        carried=carried,
        nearby=nearby,
        backdrop=tuple(option["backdrop"].split("|")),
        people=1 + sum(bound <= draws["people"] for bound in _PEOPLE),
        clothing_colour=_share(COLOURS, draws["clothing colour"]),
        main_colour=_look(activity.main, draws["main colour"]),
        near_colour=_look(nearby, draws["near colour"]),
    )


def _look(name: str, u: float) -> str:
    kind = CATEGORIES[name].supercategory if name else ""
    return _share(LOOKS.get(kind, COLOURS), u)


def _share(choices: tuple[str, ...], u: float) -> str:
    """One of several equally frequent choices."""
    return choices[int(u * len(choices))]


SIZES = ((640, 480), (640, 427), (480, 640), (612, 612))  # width, height in pixels

_PERSON = (0.24, 0.62)  # width and height of a person as shares of the picture
_SCALES = {
    "vehicle": (0.42, 0.3),
    "outdoor": (0.16, 0.24),
    "animal": (0.24, 0.22),
    "accessory": (0.12, 0.16),
    "sports": (0.16, 0.1),
    "kitchen": (0.07, 0.1),
    "food": (0.14, 0.1),
    "furniture": (0.44, 0.3),
    "electronic": (0.14, 0.1),
    "appliance": (0.2, 0.26),
    "indoor": (0.12, 0.12),
}


class Box(NamedTuple):
    name: str  # COCO category name
    x: float  # left edge, a share of the picture's width, in [0, 1]
    y: float  # upper edge, a share of the picture's height, in [0, 1]
    width: float  # a share of the picture's width; x + width <= 1
    height: float  # a share of the picture's height; y + height <= 1


def lay_out(people: int, objects: Iterable[str], draws: Mapping[str, float]) -> tuple[Box, ...]:
    """Boxes of people side by side and of objects around them; numbers in [0, 1) decide.

    Example:
        >>> draws = dict.fromkeys(LAYOUT_PURPOSES, 0.5)
        >>> [box.name for box in lay_out(1, {"dog"}, draws)]
        ['person', 'dog']
    """
    spread = 0.7 / people
    boxes = [
        _box(
            "person",
            _PERSON,
            0.05 + i * spread + 0.1 * draws["person_x"],
            0.3,
            draws["person_size"],
        )
        for i in range(people)
    ]
    for i, name in enumerate(sorted(objects)):
        scale = _SCALES[CATEGORIES[name].supercategory]
        u = draws[f"box {i}"]
        boxes.append(_box(name, scale, u, 0.4 + 0.5 * draws["ground"], (u * 7) % 1))
    return tuple(boxes)


MAX_OBJECTS = 6
LAYOUT_PURPOSES = ("person_x", "person_size", "ground", *(f"box {i}" for i in range(MAX_OBJECTS)))


def _box(name: str, scale: tuple[float, float], x: float, y: float, size: float) -> Box:
    """A box of about the given scale, moved into the picture."""
    width, height = (round(side * (0.75 + 0.5 * size), 3) for side in scale)
    left, top = round(min(x, 1 - width), 3), round(min(y, 1 - height), 3)
    return Box(name, left, top, width, height)
