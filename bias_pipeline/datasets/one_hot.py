"""Labels in one column a group, such as ``male`` and ``female`` with 0 and 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.datasets.columns import plain_name, same_name

NEITHER, BOTH = "no group", "several groups"
_YES = frozenset({"1", "true", "yes", "y", "x"})
_NO = frozenset({"0", "false", "no", "n", ""})
_MINUS = "-1"  # no, unless 0 is


def group_columns(columns: Sequence[str], labels: LabelMap, attribute: Attribute) -> dict[str, str]:
    """The column of each group, called as the group; empty unless every group has one.

    The name may follow the attribute's (``gender_male``), as ``pandas.get_dummies`` writes it, or
    ``is``.

    Args:
        columns: of the table.
        labels: how the attribute is labelled.
        attribute: whose groups are looked for.

    Example:
        >>> gender = Attribute("gender", ("male", "female"), {}, {})
        >>> labels = LabelMap("sex", {"Male": "male", "Female": "female"})
        >>> group_columns(["id", "sex_Female", "sex_Male"], labels, gender)
        {'male': 'sex_Male', 'female': 'sex_Female'}
        >>> group_columns(["id", "Male"], labels, gender)
        {}
    """
    plain = {plain_name(column): column for column in columns}
    prefixes = ("", "is", plain_name(attribute.name), plain_name(labels.field))
    by_prefix = [
        {group: plain.get(prefix + plain_name(group), "") for group in attribute.groups}
        for prefix in prefixes
    ]
    return next((places for places in by_prefix if all(places.values())), {})


def group_column(columns: Sequence[str], attribute: Attribute) -> tuple[str, str] | None:
    """A column that is called as a group, and the group; None if there is none, or several."""
    named = [
        (column, group) for group in attribute.groups if (column := same_name(group, columns) or "")
    ]
    return named[0] if len(named) == 1 else None


def one_label(cells: Mapping[str, str]) -> str | None:
    """The only group whose cell says yes; ``no group``, or ``several groups``.

    Args:
        cells: group to the text of its cell.

    Returns:
        None if a cell says neither yes nor no.

    Example:
        >>> one_label({"male": "0", "female": "1"}), one_label({"male": "True", "female": "False"})
        ('female', 'male')
        >>> one_label({"male": "-1", "female": "-1"}), one_label({"male": "1", "female": "1"})
        ('no group', 'several groups')
        >>> one_label({"male": "0.7", "female": "0.3"})
    """
    plain = {group: text.casefold() for group, text in cells.items()}
    if not all(text in _YES or text in _NO or text == _MINUS for text in plain.values()):
        return None
    named = [group for group, text in plain.items() if text in _YES]
    if len(named) == 1:
        return named[0]
    return BOTH if named else NEITHER
