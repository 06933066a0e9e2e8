"""Labels of images: one line an image, or one line an image, attribute and annotator."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.datasets.annotators import TIE, agreement, majority
from bias_pipeline.datasets.columns import IMAGE, Layout, plain_name, same_name, shown
from bias_pipeline.datasets.label_values import recognised, with_map
from bias_pipeline.datasets.tables import Rows, open_rows
from bias_pipeline.errors import DataError, NotApplicableError, UsageError, did_you_mean

WHAT = "labels: a table with id and a column for each attribute, or image_id, attribute, value"
MAJORITY = "majority"

_IDS = ("id", "image_id", "img_id")
_LONG = ("image_id", "attribute", "value")
_BESIDE = ("split", "annotator", "confidence")
_UNDECIDED = ("Unsure", "Both", "unsure", "both", "")
_SHOWN = 8
_CUT = 40  # characters of a label in a message


@dataclass(frozen=True)
class Labels:
    """The labels of one attribute.

    Attributes:
        raw: canonical image id to label as it is written, for every image of the file.
        map: how these labels are read; with a stratum for images that annotators disagree on.
        groups: the groups the labels can name, in the attribute's order.
        parts: canonical image id to the file's own column ``split``; empty if there is none.
        notes: what a reader of the result must know.
        annotators: who labelled; empty if the file does not say.
    """

    raw: Mapping[str, str]
    map: LabelMap
    groups: tuple[str, ...]
    parts: Mapping[str, str]
    notes: tuple[str, ...]
    annotators: tuple[str, ...] = ()


def label_map(
    dataset: str, attribute: Attribute, own: Mapping[str, LabelMap]
) -> tuple[tuple[str, ...], LabelMap]:
    """The groups that a file of labels can hold, and how it writes them.

    The data set's own map comes first, then what the attribute knows of the data set. An attribute
    that neither knows is read plainly, so a new one needs no map: a column of its name that holds
    the names of its groups. Those names are always understood.

    Raises:
        UsageError: if a map names a group that the attribute does not have.
    """
    plain = LabelMap(attribute.name, {group: group for group in attribute.groups}, _UNDECIDED)
    found = own.get(attribute.name) or attribute.labels.get(dataset) or plain
    held = set(found.groups.values())
    for group in sorted(held - set(attribute.groups)):
        raise UsageError(
            f"dataset.labels.{attribute.name}: attribute {attribute.name!r} has no group "
            f"{group!r}; {did_you_mean(group, attribute.groups)}"
        )
    groups = tuple(group for group in attribute.groups if group in held)
    return groups, LabelMap(
        found.field, {**{group: group for group in groups}, **found.groups}, found.strata
    )


def read_labels(
    path: Path,
    dataset: str,
    attribute: Attribute,
    own: Mapping[str, LabelMap],
    annotator: str = MAJORITY,
    layout: Layout | None = None,
) -> Labels:
    """Read the labels of one attribute.

    Args:
        path: CSV, TSV, Parquet, JSON or JSON Lines.
        dataset: whose label map of the attribute is used.
        attribute: which labels.
        own: the data set's own label maps by attribute name.
        annotator: ``majority``, or the one annotator whose labels are used.
        layout: what the user says of the file, and where it is told what was recognised in it.

    Raises:
        DataError: on a broken file, two different labels of an image, or an unknown label.
        UsageError: if the annotator, a column or a group is unknown.
    """
    layout = layout or Layout()
    groups, labels = label_map(dataset, attribute, own)
    labels = with_map(labels, attribute, layout.label_map)
    named = [layout.label_column] if layout.label_column else []
    wanted = (*_LONG, *_BESIDE, *layout.wanted(IMAGE), *named, labels.field, attribute.name)
    rows = open_rows(path, what=WHAT, wanted=wanted, held="label")
    if rows.shape:
        layout.tell(path, rows.shape)
    first, rows = rows.begun()
    if not first or all(value is None for value in first.values()):
        raise DataError(f"{path}: holds no labels; expected {WHAT}")
    if all(name in first for name in _LONG) and layout.label_column is None:
        return _long(rows, groups, labels, attribute, annotator, layout)
    if annotator != MAJORITY:
        raise UsageError(f"dataset.annotator={annotator}: {path} does not name annotators")
    return _wide(rows, first, groups, labels, attribute, layout)


def _wide(
    rows: Rows,
    first: Mapping[str, Any],
    groups: tuple[str, ...],
    labels: LabelMap,
    attribute: Attribute,
    layout: Layout,
) -> Labels:
    key = _id_column(rows, first, layout)
    field = _label_column(rows, first, labels, layout, attribute)
    raw: dict[str, str] = {}
    parts: dict[str, str] = {}
    repeated = 0
    for number, row in rows.items:
        identifier, label = rows.id(number, row, key), _label(rows, number, row, field)
        if identifier in raw:
            repeated += 1
            _check_same(rows, number, identifier, raw[identifier], label)
        raw[identifier] = label
        if isinstance(row.get("split"), str):
            parts[identifier] = row["split"]
    labels = _understood(rows.path, field, list(raw.items()), labels, attribute, layout)
    return Labels(raw, labels, groups, parts, _collapsed(repeated))


def _id_column(rows: Rows, first: Mapping[str, Any], layout: Layout) -> str:
    known = next((name for name in _IDS if name in first), None)
    if known is not None and layout.id_column not in first:
        return known
    try:
        return layout.column(rows.path, first, IMAGE)
    except DataError as error:
        named = [name for name in first if plain_name(name) in IMAGE.names]
        if named:
            raise
        raise DataError(
            f"{rows.path}: no column of ids ({', '.join(_IDS)}); found {shown(first)}. Name yours "
            f"with {IMAGE.option}"
        ) from error


def _label_column(
    rows: Rows, first: Mapping[str, Any], labels: LabelMap, layout: Layout, attribute: Attribute
) -> str:
    own = layout.label_column
    if own is not None:
        if own in first:
            return own
        raise UsageError(
            f"{rows.path}: dataset.label_column={own} is absent; {did_you_mean(own, first)}"
        )
    names = (labels.field, attribute.name)
    found = next((near for name in names if (near := same_name(name, list(first)))), None)
    if found is None:
        raise NotApplicableError(
            f"{rows.path}: no column {labels.field!r} for attribute {attribute.name!r}; "
            f"{did_you_mean(labels.field, first)} Name yours with --label-column COLUMN "
            f"(dataset.label_column=COLUMN); found {shown(first)}"
        )
    if found not in names:
        layout.tell(rows.path, f"labels of {attribute.name} from {found!r}")
    return found


def _understood(
    path: Path,
    field: str,
    said: Sequence[tuple[str, str]],
    labels: LabelMap,
    attribute: Attribute,
    layout: Layout,
) -> LabelMap:
    """The label map, with all labels that occur."""
    whole, read = recognised((label for _, label in said), labels, attribute)
    _check_known(path, field, said, labels, whole, attribute)
    _check_occurs(path, field, [label for _, label in said], layout)
    for fact in read:
        layout.tell(path, fact)
    return whole


def _long(
    rows: Rows,
    groups: tuple[str, ...],
    labels: LabelMap,
    attribute: Attribute,
    annotator: str,
    layout: Layout,
) -> Labels:
    votes: dict[str, dict[str, tuple[str, float]]] = defaultdict(dict)
    others: set[str] = set()
    repeated = 0
    images: dict[str, None] = {}
    for number, row in rows.items:
        image, named = rows.id(number, row, "image_id"), rows.text(number, row, "attribute")
        images[image] = None
        if named not in (attribute.name, labels.field):
            others.add(named)
            continue
        who = str(row.get("annotator") or "")
        label = _label(rows, number, row, "value")
        if who in votes[image]:
            repeated += 1
            _check_same(rows, number, image, votes[image][who][0], label)
        votes[image][who] = (label, _confidence(rows, number, row))
    if not votes:
        raise NotApplicableError(
            f"{rows.path}: no line is about attribute {attribute.name!r}; "
            f"{did_you_mean(attribute.name, others)}"
        )
    said = [(image, label) for image, own in votes.items() for label, _ in own.values()]
    labels = _understood(rows.path, labels.field, said, labels, attribute, layout)
    return _counted(_alike(votes, labels), images, groups, labels, annotator, _collapsed(repeated))


def _alike(
    votes: Mapping[str, Mapping[str, tuple[str, float]]], labels: LabelMap
) -> dict[str, dict[str, tuple[str, float]]]:
    """The votes with one spelling a group, so that "M" and "Male" are one vote."""
    first: dict[str | None, str] = {}
    for own in votes.values():
        for label, _ in own.values():
            first.setdefault(labels.group_of(label), label)
    first.pop(None, None)
    return {
        image: {
            who: (first.get(labels.group_of(label), label), weight)
            for who, (label, weight) in own.items()
        }
        for image, own in votes.items()
    }


def _counted(
    votes: Mapping[str, Mapping[str, tuple[str, float]]],
    images: Mapping[str, None],
    groups: tuple[str, ...],
    labels: LabelMap,
    annotator: str,
    notes: tuple[str, ...],
) -> Labels:
    """One label an image: the majority's, or one annotator's."""
    names = sorted({who for own in votes.values() for who in own})
    if annotator == MAJORITY:
        chosen = {image: majority(own.values()) for image, own in votes.items()}
    elif annotator in names:
        chosen = {i: own[annotator][0] for i, own in votes.items() if annotator in own}
    else:
        raise UsageError(
            f"dataset.annotator={annotator} is unknown; {did_you_mean(annotator, names)}"
        )
    whole = LabelMap(labels.field, labels.groups, tuple(dict.fromkeys([*labels.strata, "", TIE])))
    raw = {image: chosen.get(image, "") for image in images}
    if len(names) > 1:
        notes = (*notes, _disagreement(votes, chosen, len(names), annotator))
    return Labels(raw, whole, groups, {}, notes, tuple(filter(None, names)))


def _disagreement(
    votes: Mapping[str, Mapping[str, tuple[str, float]]],
    chosen: Mapping[str, str],
    n_annotators: int,
    annotator: str,
) -> str:
    ballots = [[label for label, _ in own.values()] for own in votes.values()]
    split = sum(len(set(own)) > 1 for own in ballots)
    ties = sum(label == TIE for label in chosen.values())
    used = "the majority's label is used" if annotator == MAJORITY else f"{annotator}'s are used"
    return (
        f"{n_annotators} annotators: Fleiss' kappa {agreement(ballots):.2f}, {split} of "
        f"{len(ballots)} images judged differently, {ties} without a majority (not scored); {used}"
    )


def _label(rows: Rows, number: int, row: Mapping[str, Any], field: str) -> str:
    """The label as text; what is absent is the empty label."""
    value = rows.value(number, row, field)
    if value is None or value != value:  # NaN: a gap in a table of numbers
        return ""
    if isinstance(value, float) and value.is_integer():  # numbers beside a gap
        value = int(value)
    if not isinstance(value, str | int):
        rows.refuse(number, f"label {value!r} of {field!r} is not text")
    return str(value).strip()


def _confidence(rows: Rows, number: int, row: Mapping[str, Any]) -> float:
    """The weight of a vote; 1 where none is given."""
    value = row.get("confidence")
    if value in (None, ""):
        return 1.0
    try:
        weight = float(value)
    except (TypeError, ValueError):
        weight = -1.0
    if not 0 <= weight < float("inf"):
        rows.refuse(number, f"confidence {value!r} is no number of at least 0")
    return weight


def _check_same(rows: Rows, number: int, identifier: str, first: str, second: str) -> None:
    if first != second:
        rows.refuse(
            number,
            f"image id {identifier} stands twice with different labels ({first!r} and "
            f"{second!r}); keep one, or name who said which in a column 'annotator'",
        )


def _check_known(
    path: Path,
    field: str,
    said: Sequence[tuple[str, str]],
    labels: LabelMap,
    whole: LabelMap,
    attribute: Attribute,
) -> None:
    counts = Counter(label for _, label in said)
    allowed = [*labels.groups, *labels.strata]
    unknown = sorted(set(counts) - {*whole.groups, *whole.strata})
    if not unknown:
        return
    example = next(image for image, label in said if label == unknown[0])
    listed = ", ".join(repr(label[:_CUT]) for label in unknown[:_SHOWN])
    seen = ", ".join(f"{label[:_CUT]!r} {n}" for label, n in counts.most_common(_SHOWN))
    meant = " ".join(f"--map {shlex.quote(f'{label[:_CUT]}=GROUP')}" for label in unknown[:_SHOWN])
    raise DataError(
        f"{path}: unknown labels in {field!r}: {listed} (image {example}); seen: {seen}; "
        f"{did_you_mean(unknown[0], map(repr, allowed))} Correct them, or say what they mean: "
        f"{meant} (dataset.label_map={{{unknown[0][:_CUT]}: GROUP}}), GROUP one of "
        f"{', '.join([*attribute.groups, *filter(None, labels.strata)])}"
    )


def _check_occurs(path: Path, field: str, said: Sequence[str], layout: Layout) -> None:
    """Note mapped labels that the file does not hold; other files of the user's may."""
    counts = Counter(said)
    idle = [label for label in layout.label_map if label not in counts]
    if not idle:
        return
    if len(idle) == len(layout.label_map):
        seen = [label[:_CUT] for label, _ in counts.most_common(_SHOWN)]
        raise UsageError(
            f"--map {shlex.quote(f'{idle[0]}={layout.label_map[idle[0]]}')}: no label in {field!r} "
            f"of {path} is {idle[0]!r}; {did_you_mean(idle[0], seen)}"
        )
    layout.tell(path, f"no label in {field!r} is {', '.join(map(repr, idle))}, though mapped")


def _collapsed(repeated: int) -> tuple[str, ...]:
    return (f"{repeated} repeated labels were collapsed",) if repeated else ()


def strata_note(raw: Iterable[str], labels: LabelMap) -> tuple[str, ...]:
    """How many images carry a label of no group, by label; they are kept and not scored."""
    counts = Counter(label for label in raw if labels.group_of(label) is None)
    if not counts:
        return ()
    listed = ", ".join(f"{label or 'empty'} {n}" for label, n in sorted(counts.items()))
    return (f"{sum(counts.values())} images belong to no group and are not scored: {listed}",)
