"""What labels mean that are written in another way than the attribute knows.

A label is read without being mapped only where it can be read in one way: the same word in another
case, the first letter of one group alone, or a word that is listed for one of two groups. Numbers
never are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.errors import UsageError, did_you_mean


def with_map(labels: LabelMap, attribute: Attribute, own: Mapping[str, str]) -> LabelMap:
    """The same with what a user says that labels mean.

    Args:
        labels: how the data set writes the attribute.
        attribute: whose groups are meant.
        own: label to group, or to a known label of no group ("Unsure").

    Raises:
        UsageError: if it maps to neither.
    """
    groups, strata = dict(labels.groups), list(labels.strata)
    known = {**{group: group for group in attribute.groups}, **labels.groups}
    for label, meant in own.items():
        if meant in known:
            groups[label] = known[meant]
        elif meant in labels.strata:
            strata.append(label)
            groups.pop(label, None)
        else:
            raise UsageError(
                f"dataset.label_map: {label}={meant}: attribute {attribute.name!r} has no group "
                f"{meant!r}; {did_you_mean(meant, {*known, *filter(None, labels.strata)})}"
            )
    return LabelMap(labels.field, groups, tuple(dict.fromkeys(strata)))


def recognised(
    seen: Iterable[str], labels: LabelMap, attribute: Attribute
) -> tuple[LabelMap, list[str]]:
    """The same with the unknown labels that can be read in one way.

    Args:
        seen: the labels of a file.
        labels: those that are known.
        attribute: whose words and groups are looked up.

    Returns:
        The map, and how each of these labels is read; the others stay unknown.

    Example:
        >>> known = LabelMap("sex", {"Male": "male", "Female": "female"}, ("Unsure",))
        >>> gender = Attribute("gender", ("male", "female"), {"female": ["woman"]}, {})
        >>> recognised(["M", "woman", "UNSURE"], known, gender)[1]
        ["'M' is male", "'woman' is female", "'UNSURE' is Unsure"]
        >>> recognised(["M", "1"], known, gender)[1]
        ["'M' is male"]
    """
    unknown = [label for label in dict.fromkeys(seen) if not _known(label, labels)]
    meant = {label: own for label in unknown if (own := _meant(label, labels, attribute))}
    groups = {label: own for label, own in meant.items() if own in attribute.groups}
    strata = [label for label, own in meant.items() if own not in attribute.groups]
    whole = LabelMap(labels.field, {**labels.groups, **groups}, (*labels.strata, *strata))
    return whole, [f"{label!r} is {own}" for label, own in meant.items()]


def _known(label: str, labels: LabelMap) -> bool:
    return label in labels.groups or label in labels.strata


def _meant(label: str, labels: LabelMap, attribute: Attribute) -> str:
    """The group, or the label of no group, that this label can only be; empty if there is none."""
    read = {**labels.groups, **{stratum: stratum for stratum in labels.strata if stratum}}
    same = {own for name, own in read.items() if name.casefold() == label.casefold()}
    first = {own for name, own in read.items() if _begins(name, label)}
    listed = {group for group in _groups_of(label, attribute) if group in read.values()}
    return next((_only(own) for own in (same, first, listed) if own), "")


def _begins(name: str, letter: str) -> bool:
    return len(letter) == 1 and letter.isalpha() and name.casefold().startswith(letter.casefold())


def _groups_of(word: str, attribute: Attribute) -> Iterable[str]:
    """The groups that a word is listed for.

    Words that need a context name nobody alone, and of many groups a word may lie between two:
    "happiness" is listed for contentment, but a label that says so means neither for certain.
    """
    if attribute.applies_to is not None or len(attribute.groups) > 2:
        return ()
    return (group for group, words in attribute.words.items() if word.casefold() in words)


def _only(found: Collection[str]) -> str:
    return next(iter(found)) if len(found) == 1 else ""
