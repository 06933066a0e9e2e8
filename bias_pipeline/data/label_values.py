"""Interprets labels written differently from the attribute's own, and annotators' votes.

An unmapped label is accepted only if it is unambiguous: the same words in another case or with
underscores, the first letter of only one group, or a word listed for one of two groups. Numbers
never are. Of several annotators the majority's label counts.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.errors import UsageError, did_you_mean


def with_map(labels: LabelMap, attribute: Attribute, meanings: Mapping[str, str]) -> LabelMap:
    """A copy with the user's meanings of labels."""
    groups: dict[str, str] = {}
    strata: dict[str, str] = {}
    known = {**{group: group for group in attribute.groups}, **labels.groups}
    for label, meaning in meanings.items():
        if meaning in known:
            groups[label] = known[meaning]
        elif meaning in labels.strata:
            strata[label] = meaning
        else:
            raise UsageError(
                f"dataset.label_map: {label}={meaning}: attribute {attribute.name!r} has no group "
                f"{meaning!r}; {did_you_mean(meaning, {*known, *filter(None, labels.strata)})}"
            )
    return labels.with_labels(groups, strata)


def recognised(
    raw_labels: Iterable[str],
    labels: LabelMap,
    attribute: Attribute,
    mapped: Collection[str] = (),
) -> tuple[LabelMap, list[str]]:
    """A copy with the unknown labels that are unambiguous.

    Example:
        >>> known = LabelMap("sex", {"Male": "male", "Female": "female"}, ("Unsure",))
        >>> gender = Attribute("gender", ("male", "female"), {"female": ["woman"]}, {})
        >>> recognised(["M", "woman", "UNSURE"], known, gender)[1]
        ["'M' is male", "'woman' is female", "'UNSURE' is Unsure"]
        >>> recognised(["M", "1"], known, gender)[1]
        ["'M' is male"]
    """
    unknown = [label for label in dict.fromkeys(raw_labels) if not _is_known(label, labels)]
    meanings = {
        label: meaning
        for label in unknown
        if (meaning := _meaning_of(label, labels, attribute, mapped))
    }
    known = labels.groups.values()
    groups = {label: meaning for label, meaning in meanings.items() if meaning in known}
    strata = {label: meaning for label, meaning in meanings.items() if meaning not in known}
    return labels.with_labels(groups, strata), [
        f"{label!r} is {meaning}" for label, meaning in meanings.items()
    ]


def _is_known(label: str, labels: LabelMap) -> bool:
    return label in labels.groups or label in labels.strata


def _meaning_of(label: str, labels: LabelMap, attribute: Attribute, mapped: Collection[str]) -> str:
    """The only group, or label of no group, that this label can mean; empty if there is none."""
    spelled = {
        _plain_label(stratum): stratum for stratum in reversed(labels.strata)
    }  # Unsure, unsure
    read = {**labels.groups, **{s: spelled[_plain_label(s)] for s in labels.strata if s}}
    same = {meaning for name, meaning in read.items() if _plain_label(name) == _plain_label(label)}
    initial = label.casefold() if len(label) == 1 and label.isalpha() else None
    names = read.keys() - set(mapped) if initial else ()
    first = {read[name] for name in names if name.casefold().startswith(initial or name)}
    listed = {group for group in _groups_of(label, attribute) if group in read.values()}
    return next((_only_one(candidates) for candidates in (same, first, listed) if candidates), "")


def _plain_label(label: str) -> str:
    """A label in lower case, blanks for underscores: "Something else" is something_else."""
    return label.casefold().replace("_", " ")


def _groups_of(word: str, attribute: Attribute) -> Iterable[str]:
    """The groups that a word is listed for.

    Empty for attributes with context words and for more than two groups, where a word may lie
    between two: "happiness" is listed for contentment.
    """
    if attribute.applies_to is not None or len(attribute.groups) > 2:
        return ()
    return (group for group, words in attribute.words.items() if word.casefold() in words)


def _only_one(candidates: Collection[str]) -> str:
    return next(iter(candidates)) if len(candidates) == 1 else ""


TIE = "no majority"


def majority(votes: Iterable[tuple[str, float]]) -> str:
    """The label with the greatest sum of weights, ``no majority`` for a tie.

    Example:
        >>> majority([("Male", 1), ("Male", 1), ("Female", 1)])
        'Male'
        >>> majority([("Male", 1), ("Female", 1)])
        'no majority'
    """
    sums: defaultdict[str, float] = defaultdict(float)
    for label, weight in votes:
        sums[label] += weight
    most = max(sums.values())
    winners = [label for label, total in sums.items() if math.isclose(total, most)]
    return winners[0] if len(winners) == 1 else TIE
