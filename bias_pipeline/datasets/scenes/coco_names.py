"""Maps a detector's label to a COCO category by its name: numbers differ between label sets."""

from __future__ import annotations

from collections.abc import Sequence

from bias_pipeline.corpus.pictures import PERSON
from bias_pipeline.datasets.scenes.categories import CATEGORIES
from bias_pipeline.errors import DataError
from bias_pipeline.vision.labels import plain_label

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
