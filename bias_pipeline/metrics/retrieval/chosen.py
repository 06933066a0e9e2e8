"""Some of an attribute's groups, as if there were no others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bias_pipeline.corpus.corpus import Corpus, Grouping
from bias_pipeline.errors import UsageError, did_you_mean


def check_groups(names: Sequence[str]) -> None:
    """Refuse fewer than two groups.

    Raises:
        UsageError: naming the key.
    """
    if len({_plain(name) for name in names}) < max(2, len(names)):
        raise UsageError(f"metric.groups={list(names)}: name two or more, each once")


def of_groups(corpus: Corpus, attribute: str, names: Sequence[str]) -> Corpus:
    """The corpus, the images of an attribute's other groups without a group.

    Args:
        corpus: whose images.
        attribute: whose groups.
        names: of those that stay, in the order in which they are to come; capitals and blanks
            as data sets write them (``East Asian``) make no difference.

    Raises:
        UsageError: on a group that there is not.
    """
    own = corpus.groupings[attribute]
    known = {_plain(name): number for number, name in enumerate(own.names)}
    for name in names:
        if _plain(name) not in known:
            raise UsageError(
                f"metric.groups: {name!r} is no group of {attribute!r} here; "
                f"{did_you_mean(_plain(name), own.names)}"
            )
    wanted = [known[_plain(name)] for name in names]
    numbers = np.full(len(own.names) + 1, -1)  # the last is that of images of no group, -1
    numbers[wanted] = np.arange(len(wanted))
    chosen = tuple(own.names[number] for number in wanted)
    grouping = Grouping(chosen, numbers[own.codes], own.strata)
    return replace(corpus, groupings={**corpus.groupings, attribute: grouping})


def _plain(name: str) -> str:
    """A group's name, however it is written."""
    return name.lower().replace(" ", "_")
