"""Labels in one column a group, such as ``male`` and ``female`` with 0 and 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.data.columns import plain_name, same_name
from bias_pipeline.data.tables import Rows

NO_GROUP, SEVERAL = "no group", "several groups"
_YES = frozenset({"1", "true", "yes", "y", "x"})
_NO = frozenset({"0", "false", "no", "n", ""})
_MINUS = "-1"  # no, unless 0 is


def column_names(labels: LabelMap, attribute: Attribute) -> list[dict[str, str]]:
    """Group to the plain name of its column, in each way of writing it.

    The name is the group's, perhaps behind the attribute's (``gender_male``, as
    ``pandas.get_dummies`` writes it) or behind ``is``.
    """
    prefixes = ("", "is", plain_name(attribute.name), plain_name(labels.field))
    return [
        {group: prefix + plain_name(group) for group in attribute.groups} for prefix in prefixes
    ]


def group_columns(columns: Sequence[str], labels: LabelMap, attribute: Attribute) -> dict[str, str]:
    """The column of each group; empty unless every group has one.

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
    """Options that read a column of one of two groups, such as CelebA's ``Male``; else empty.

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
    """The only group whose cell says yes; ``no group``, or ``several groups``.

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
    """Number and content of each row, with one column of labels made from the groups' columns."""
    written: set[str] = set()
    for number, row in rows.items:
        cells = {group: rows.label(number, row, column) for group, column in columns.items()}
        written.update(cells.values())
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
