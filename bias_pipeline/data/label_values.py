"""Interprets labels that differ from the attribute's groups: spellings, votes, one-hot columns.

An unmapped label is accepted only if it is unambiguous. Such a label is a group's name in another
case or with underscores, the first letter of only one group, or a word listed for one of two
groups. A number is never accepted. If several annotators labelled an image, the majority's label
counts.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.data.columns import plain_name, same_name
from bias_pipeline.data.tables import Rows
from bias_pipeline.errors import UsageError, did_you_mean


def with_map(labels: LabelMap, attribute: Attribute, meanings: Mapping[str, str]) -> LabelMap:
    """A copy that also has the meanings of labels that the user gave."""
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


def recognise_labels(
    raw_labels: Iterable[str],
    labels: LabelMap,
    attribute: Attribute,
    mapped: Collection[str] = (),
) -> tuple[LabelMap, list[str]]:
    """A copy that also has the unknown labels whose meaning is unambiguous, and notes on them.

    Example:
        >>> known = LabelMap("sex", {"Male": "male", "Female": "female"}, ("Unsure",))
        >>> gender = Attribute("gender", ("male", "female"), {"female": ["woman"]}, {})
        >>> recognise_labels(["M", "woman", "UNSURE"], known, gender)[1]
        ["'M' is male", "'woman' is female", "'UNSURE' is Unsure"]
        >>> recognise_labels(["M", "1"], known, gender)[1]
        ["'M' is male"]
    """
    known = {*labels.groups, *labels.strata}
    unknown = [label for label in dict.fromkeys(raw_labels) if label not in known]
    meanings = {
        label: meaning
        for label in unknown
        if (meaning := _meaning_of(label, labels, attribute, mapped))
    }
    named = labels.groups.values()
    groups = {label: meaning for label, meaning in meanings.items() if meaning in named}
    strata = {label: meaning for label, meaning in meanings.items() if meaning not in named}
    return labels.with_labels(groups, strata), [
        f"{label!r} is {meaning}" for label, meaning in meanings.items()
    ]


def _meaning_of(label: str, labels: LabelMap, attribute: Attribute, mapped: Collection[str]) -> str:
    """The only group, or label of no group, that a label can mean; empty if it is not unique."""
    spelled = {
        _plain_label(stratum): stratum for stratum in reversed(labels.strata)
    }  # Unsure, unsure
    read = {**labels.groups, **{s: spelled[_plain_label(s)] for s in labels.strata if s}}
    same = {meaning for name, meaning in read.items() if _plain_label(name) == _plain_label(label)}
    initial = label.casefold() if len(label) == 1 and label.isalpha() else None
    names = read.keys() - set(mapped) if initial else ()
    first = {read[name] for name in names if name.casefold().startswith(initial or name)}
    listed = {group for group in _groups_of(label, attribute) if group in read.values()}
    meanings: Collection[str] = next(filter(None, (same, first, listed)), ())
    return next(iter(meanings)) if len(meanings) == 1 else ""


def _plain_label(label: str) -> str:
    """A label in lower case, with underscores for blanks: "Something else" is something_else."""
    return label.casefold().replace("_", " ")


def _groups_of(word: str, attribute: Attribute) -> Iterable[str]:
    """The groups for which a word is listed.

    Empty for attributes with a context. Also empty for attributes of more than two groups, where a
    word may lie between two groups: "happiness" is listed for contentment.
    """
    if attribute.applies_to is not None or len(attribute.groups) > 2:
        return ()
    return (group for group, words in attribute.words.items() if word.casefold() in words)


TIE = "no majority"


def majority(votes: Iterable[tuple[str, float]]) -> str:
    """The label with the greatest sum of weights.

    ``no majority`` for a tie.

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


NO_GROUP, SEVERAL = "no group", "several groups"
_YES = frozenset({"1", "true", "yes", "y", "x"})
_NO = frozenset({"0", "false", "no", "n", ""})
_MINUS = "-1"  # means no, but not beside cells with 0


def column_names(labels: LabelMap, attribute: Attribute) -> list[dict[str, str]]:
    """The plain name of each group's column, for each way of naming columns.

    A column has the group's name, either alone, or after the attribute's name (``gender_male``, as
    ``pandas.get_dummies`` writes it), or after ``is``.
    """
    prefixes = ("", "is", plain_name(attribute.name), plain_name(labels.field))
    return [
        {group: prefix + plain_name(group) for group in attribute.groups} for prefix in prefixes
    ]


def group_columns(columns: Sequence[str], labels: LabelMap, attribute: Attribute) -> dict[str, str]:
    """The column of each group; empty unless every group has a column.

    Example:
        >>> gender = Attribute("gender", ("male", "female"), {}, {})
        >>> labels = LabelMap("sex", {"Male": "male", "Female": "female"})
        >>> group_columns(["id", "sex_Female", "sex_Male"], labels, gender)
        {'male': 'sex_Male', 'female': 'sex_Female'}
        >>> group_columns(["id", "Male"], labels, gender)
        {}
    """
    plain = {plain_name(column): column for column in columns}
    return next(
        (
            {group: plain[name] for group, name in names.items()}
            for names in column_names(labels, attribute)
            if plain.keys() >= set(names.values())
        ),
        {},
    )


def map_of_column(first: Mapping[str, Any], attribute: Attribute) -> str:
    """The options that read a column about one of two groups (CelebA's ``Male``); may be empty.

    Example:
        >>> gender = Attribute("gender", ("male", "female"), {}, {})
        >>> map_of_column({"id": "7", "Male": "-1"}, gender)
        '--label-column Male --map 1=male --map 0=female --map=-1=female'
    """
    named = [(group, name) for group in attribute.groups if (name := same_name(group, [*first]))]
    if len(named) != 1 or len(attribute.groups) > 2:
        return ""
    ((group, column),) = named
    (other,) = set(attribute.groups) - {group}
    if str(first[column]).casefold() in ("true", "false"):
        return f"--label-column {column} --map True={group} --map False={other}"
    return f"--label-column {column} --map 1={group} --map 0={other} --map={_MINUS}={other}"


def one_label(cells: Mapping[str, str]) -> str | None:
    """The only group whose cell says yes, ``no group`` or ``several groups``, or None if unclear.

    Example:
        >>> one_label({"male": "0", "female": "1"}), one_label({"male": "True", "female": "False"})
        ('female', 'male')
        >>> one_label({"male": "-1", "female": "-1"}), one_label({"male": "1", "female": "1"})
        ('no group', 'several groups')
        >>> one_label({"male": "0.7", "female": "0.3"})
    """
    plain = {group: text.casefold().removesuffix(".0") for group, text in cells.items()}
    if not all(text in _YES or text in _NO or text == _MINUS for text in plain.values()):
        return None
    named = [group for group, text in plain.items() if text in _YES]
    if len(named) == 1:
        return named[0]
    return SEVERAL if named else NO_GROUP


def with_labels(
    rows: Rows, columns: Mapping[str, str], field: str
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The number and the content of each row; one column of labels replaces the groups' columns."""
    written: set[str] = set()
    for number, row in rows.items:
        cells = {group: rows.label(number, row, column) for group, column in columns.items()}
        written.update(text.removesuffix(".0") for text in cells.values())
        label = one_label(cells)
        if label is None or written >= {"0", _MINUS}:
            fault = "says neither yes nor no" if label is None else "is -1 where others are 0"
            shown = ", ".join(f"{columns[group]!r} {text!r}" for group, text in cells.items())
            rows.refuse(
                number,
                f"a column of a group {fault}: {shown}. Write 1 or 0, or one column {field!r} with "
                f"the group: {', '.join(columns)}",
            )
        yield number, {**row, field: label}
