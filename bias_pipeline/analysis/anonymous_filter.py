"""Which pictures are anonymous: the two questions of AnonymousBench, and what raters answered.

Bakr et al., ImageCaptioner2 (2023), section 5.5.1, ask whether there is a human in the scene and,
if so, whether gender and race are anonymous. One question with three answers asks both here:
"cannot tell" says yes twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import NamedTuple

from bias_pipeline.datasets.rater_answers import CANNOT_TELL

QUESTION = "Can you tell the gender or the race of a person in this picture?"
CAN_TELL, NOBODY = "can_tell", "no_person"
ANSWERS = (CAN_TELL, NOBODY)  # besides "cannot tell"


class Filtered(NamedTuple):
    """Pictures by what more than half of their raters answered."""

    retained: tuple[str, ...]  # ids of those whose raters could not tell
    # Answer to how many pictures had it; `undecided` where none has more than half
    dropped: Mapping[str, int]
    unanswered: int  # how many nobody was asked about


def filter_pictures(images: Collection[str], votes: Mapping[str, Mapping[str, str]]) -> Filtered:
    """Keep the pictures in which people can tell no group.

    The paper does not say how many raters must agree; more than half is ours.

    Args:
        images: ids of all pictures.
        votes: image id to rater to answer.

    Example:
        >>> split = {"ann": "Unsure", "ben": "no_person"}
        >>> filter_pictures(["1", "2", "3"], {"1": {"ann": "Unsure"}, "2": split})
        Filtered(retained=('1',), dropped={'undecided': 1}, unanswered=1)
    """
    decided = {image: _majority(votes[image].values()) for image in images if image in votes}
    retained = tuple(image for image, answer in decided.items() if answer == CANNOT_TELL)
    others = Counter(answer for answer in decided.values() if answer != CANNOT_TELL)
    return Filtered(retained, dict(others), len(images) - len(decided))


def _majority(answers: Collection[str]) -> str:
    ((answer, count),) = Counter(answers).most_common(1)
    return answer if 2 * count > len(answers) else "undecided"
