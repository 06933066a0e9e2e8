"""A corpus with only some of an attribute's groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bias_pipeline.corpus.corpus import NO_GROUP, Corpus, Grouping
from bias_pipeline.errors import UsageError, did_you_mean


def check_groups(names: Sequence[str]) -> None:
    """Refuse fewer than two groups.

    Raises:
        UsageError: naming the key.
    """
    if len({_plain(name) for name in names}) < max(2, len(names)):
        raise UsageError(f"metric.groups={list(names)}: name two or more, each once")


def of_groups(corpus: Corpus, attribute: str, names: Sequence[str]) -> Corpus:
    """The corpus, in which images of an attribute's other groups have no group.

    Args:
        corpus: whose images.
        attribute: whose groups.
        names: of the groups that stay, in their new order; capitals and blanks (``East Asian``)
            make no difference.

    Raises:
        UsageError: on an unknown group.
    """
    full_grouping = corpus.groupings[attribute]
    known = {_plain(name): number for number, name in enumerate(full_grouping.names)}
    for name in names:
        if _plain(name) not in known:
            raise UsageError(
                f"metric.groups: {name!r} is no group of {attribute!r} here; "
                f"{did_you_mean(_plain(name), full_grouping.names)}"
            )
    wanted = [known[_plain(name)] for name in names]
    numbers = np.full(len(full_grouping.names), NO_GROUP)
    numbers[wanted] = np.arange(len(wanted))
    codes = np.where(
        full_grouping.labelled, numbers[np.maximum(full_grouping.codes, 0)], full_grouping.codes
    )
    chosen = tuple(full_grouping.names[number] for number in wanted)
    grouping = Grouping(chosen, codes, full_grouping.strata)
    return replace(corpus, groupings={**corpus.groupings, attribute: grouping})


def _plain(name: str) -> str:
    """A group's name, however it is written."""
    return name.lower().replace(" ", "_")
