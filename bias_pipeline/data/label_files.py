"""Reads labels: a line for each image, or a line for each image, attribute and annotator."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.corpus.image_ids import canonical_id
from bias_pipeline.data.blocks import blocks_of
from bias_pipeline.data.columns import IMAGE, Layout, plain_name, quoted_columns, same_name
from bias_pipeline.data.frames import is_absent
from bias_pipeline.data.image_numbers import noting_names
from bias_pipeline.data.label_values import (
    NO_GROUP,
    SEVERAL,
    TIE,
    column_names,
    group_columns,
    majority,
    map_of_column,
    recognise_labels,
    with_labels,
    with_map,
)
from bias_pipeline.data.tables import Opener, Rows, is_whole, open_rows
from bias_pipeline.errors import (
    AbsentLabelError,
    DataError,
    NotApplicableError,
    UsageError,
    did_you_mean,
    inflect,
)
from bias_pipeline.stats.raters import answer_counts, fleiss

WHAT = "labels: a table with id and a column for each attribute, or image_id, attribute, value"
MAJORITY = "majority"

_IDS = ("id", "image_id", "img_id")
_LONG = ("image_id", "attribute", "value")
_WHO = ("annotator", "rater")  # the second is how rate writes it
_SET, EDIT = "set", "edit"
_PARTS = frozenset(("train", "training", "val", "valid", "validation", "dev", "test", "restval"))
BESIDE = ("split", _SET, EDIT, *_WHO, "confidence")  # columns that are not attributes
_UNSURE = ("Unsure", "unsure")
_UNDECIDED = (*_UNSURE, "Both", "both", "")
_SHOWN = 8
_MOST_MAPPED = 30  # labels for which a message advises maps
_CUT = 40  # characters of a label in a message


@dataclass(frozen=True)
class Labels:
    # By canonical image id, the label as the file writes it, for every image of the file
    raw: Mapping[str, str]
    # How these labels are read, with a stratum for images on which annotators disagree
    map: LabelMap
    groups: tuple[str, ...]  # the groups the labels can name, in the attribute's order
    # By canonical image id, the part in the file's column `split`; empty without the column
    parts: Mapping[str, str]
    notes: tuple[str, ...]  # what a reader of the result must know
    annotators: tuple[str, ...] = ()  # who labelled; empty if the file does not say
    # By canonical image id, its set of pictures that differ only in a person's group (column `set`)
    sets: Mapping[str, str] = field(default_factory=dict)
    # By canonical id of an edited picture, such as a crop, the id of its picture (column `edit`,
    # read only beside a column `set`)
    edits: Mapping[str, str] = field(default_factory=dict)

    def with_ids(
        self, raw: Mapping[str, str], rename: Callable[[Mapping[str, str]], Mapping[str, str]]
    ) -> Labels:
        """The labels under other image ids; ``raw`` is replaced, and everything else is renamed."""
        originals = {old: new for new, old in rename({i: i for i in self.edits.values()}).items()}
        edits = {image: originals.get(old, old) for image, old in rename(self.edits).items()}
        return replace(self, raw=raw, sets=rename(self.sets), edits=edits)


def label_map(
    dataset: str, attribute: Attribute, label_maps: Mapping[str, LabelMap]
) -> tuple[tuple[str, ...], LabelMap]:
    """The groups that a label file can contain, and how the file writes them.

    The data set's own map comes first, then the attribute's map of the data set. Without a map, the
    column has the attribute's name and contains group names, so a new attribute needs no map. Group
    names are always recognised.
    """
    names = {group: group for group in attribute.groups}
    plain = LabelMap(attribute.name, names, _UNDECIDED, _UNSURE)
    labels = label_maps.get(attribute.name) or attribute.labels.get(dataset) or plain
    labelled = set(labels.groups.values())
    for group in sorted(labelled - set(attribute.groups)):
        raise UsageError(
            f"dataset.labels.{attribute.name}: attribute {attribute.name!r} has no group "
            f"{group!r}; {did_you_mean(group, attribute.groups)}"
        )
    groups = tuple(group for group in attribute.groups if group in labelled)
    return groups, replace(labels, groups={**{group: group for group in groups}, **labels.groups})


class NoLabelColumnError(NotApplicableError):
    """The error for a table that has no column with labels of the attribute.

    Attributes:
        path: the table.
        columns: the table's columns, for messages.
    """

    def __init__(self, path: Path, columns: str, text: str) -> None:
        super().__init__(text)
        self.path, self.columns = path, columns


def read_labels(
    path: Path,
    dataset: str,
    attribute: Attribute,
    label_maps: Mapping[str, LabelMap],
    annotator: str = MAJORITY,
    layout: Layout | None = None,
) -> Labels:
    layout = layout or Layout()
    rows, first, groups, labels = _open_labels(path, dataset, attribute, label_maps, layout)
    if _is_long(first, layout):
        rows = noting_names(rows, first, IMAGE.name, layout)
        return _read_votes(rows, groups, labels, attribute, annotator, layout)
    if annotator != MAJORITY:
        raise UsageError(f"dataset.annotator={annotator}: {path} does not name annotators")
    columns = _label_columns(rows, first, groups, labels, attribute, layout)
    rows = noting_names(columns.rows, first, columns.key, layout)
    read = columns.read(rows)
    labels = columns.interpret(Counter(read.raw.values()), read.first_with, layout)
    whole = Labels(read.raw, labels, groups, read.parts, repetition_note(read.repeated))
    return _with_sets(whole, read.sets, read.edits, rows.path)


def _is_long(first: Mapping[str, Any], layout: Layout) -> bool:
    """Whether a table has a row for each image, attribute and annotator."""
    return all(name in first for name in _LONG) and layout.label_column is None


def _open_labels(
    path: Path,
    dataset: str,
    attribute: Attribute,
    label_maps: Mapping[str, LabelMap],
    layout: Layout,
    opened: Opener = open_rows,
) -> tuple[Rows, Mapping[str, Any], tuple[str, ...], LabelMap]:
    """The rows, the first row, the possible groups, and the map from labels to groups."""
    groups, labels = label_map(dataset, attribute, label_maps)
    labels = with_map(labels, attribute, layout.label_map)
    named = [layout.label_column] if layout.label_column else []
    one_hot = [name for names in column_names(labels, attribute) for name in names.values()]
    wanted = (
        *(*_LONG, *BESIDE, *layout.columns_wanted(IMAGE), *named),
        *(labels.field, attribute.name, *one_hot),
    )
    rows = opened(path, what=WHAT, wanted=wanted, column="label")
    if rows.shape:
        layout.add_note(path, rows.shape)
    first, rows = rows.peek()
    if not first or all(value is None for value in first.values()):
        raise DataError(f"{path}: holds no labels; expected {WHAT}")
    return rows, first, groups, labels


class RawLabels(NamedTuple):
    """The labels of a table, or of a part of the table, in the spelling of the table."""

    raw: dict[str, str]  # canonical image id to its label
    parts: dict[str, str]  # to its part in the column `split`
    sets: dict[str, object]  # to the cell of the column `set`
    edits: dict[str, object]  # to the cell of the column `edit`
    repeated: int  # equal repetitions that were collapsed

    def first_with(self, label: str) -> str:
        return next(image for image, written in self.raw.items() if written == label)


@dataclass(frozen=True)
class LabelColumns:
    """A table with a row for each image, whose labels are in one column."""

    rows: Rows
    key: str  # column of ids
    field: str  # column of labels
    groups: tuple[str, ...]  # groups that the labels can name
    labels: LabelMap  # how labels are read
    attribute: Attribute

    def read(self, rows: Rows) -> RawLabels:
        """The labels of the table's rows, or of some of them."""
        raw: dict[str, str] = {}
        parts: dict[str, str] = {}
        sets: dict[str, object] = {}
        edits: dict[str, object] = {}
        n_rows = 0
        for block, ids, read in rows.read(
            partial(rows.ids, name=self.key), partial(rows.labels, name=self.field)
        ):
            more = dict(zip(ids, read, strict=True))
            if len(more) < len(ids) or not raw.keys().isdisjoint(more):
                for number, identifier, label in zip(block.numbers, ids, read, strict=True):
                    _check_same(rows, number, identifier, raw.setdefault(identifier, label), label)
            n_rows += len(ids)
            raw |= more
            named = zip(ids, block.columns.get("split", ()), strict=False)
            parts.update((identifier, part) for identifier, part in named if isinstance(part, str))
            sets.update(zip(ids, block.columns.get(_SET, ()), strict=False))
            edits.update(zip(ids, block.columns.get(EDIT, ()), strict=False))
        return RawLabels(raw, parts, sets, edits, n_rows - len(raw))

    def interpret(
        self, counts: Counter[str], first_with: Callable[[str], str], layout: Layout
    ) -> LabelMap:
        self.rows.note_mended(layout)
        path, field = self.rows.path, self.field
        return _interpret(path, field, counts, first_with, self.labels, self.attribute, layout)


def open_label_columns(
    path: Path,
    dataset: str,
    attribute: Attribute,
    label_maps: Mapping[str, LabelMap],
    layout: Layout,
    opened: Opener,
) -> LabelColumns | None:
    """The columns of a table with a row for each image; None for a table of annotators' answers."""
    rows, first, groups, labels = _open_labels(path, dataset, attribute, label_maps, layout, opened)
    if _is_long(first, layout):
        return None
    return _label_columns(rows, first, groups, labels, attribute, layout)


def _label_columns(
    rows: Rows,
    first: Mapping[str, Any],
    groups: tuple[str, ...],
    labels: LabelMap,
    attribute: Attribute,
    layout: Layout,
) -> LabelColumns:
    key = _id_column(rows, first, layout)
    try:
        field = _label_column(rows, first, labels, layout, attribute)
    except NoLabelColumnError:
        columns = group_columns(list(first), labels, attribute)
        if not columns:
            raise
        field = attribute.name
        labels = labels.with_labels({}, {NO_GROUP: NO_GROUP, SEVERAL: SEVERAL})
        rows = replace(rows, blocks=blocks_of(with_labels(rows, columns, field)))
        listed = ", ".join(map(repr, columns.values()))
        layout.add_note(rows.path, f"labels of {attribute.name} from the columns {listed}")
    return LabelColumns(rows, key, field, groups, labels, attribute)


def _with_sets(
    labels: Labels, sets: Mapping[str, object], edits: Mapping[str, object], path: Path
) -> Labels:
    """The labels with the columns of sets and of edits, if these name sets."""
    named = named_sets(sets)
    originals = {
        image: canonical_id(int(cell) if is_whole(cell) else cell)
        for image, cell in edits.items()
        if named and not is_absent(cell) and str(cell).strip()
    }
    group_of = labels.map.group_of
    for image, original in originals.items():
        if original not in labels.raw or original in originals:
            what = "itself an edit" if original in originals else "not in the file"
            raise DataError(
                f"{path}: image {image} is an edit of {original}, which is {what}; the column "
                "'edit' has the id of the picture that was edited, and is empty for a "
                "picture that is no edit"
            )
        label, edited = (group_of(labels.raw[one]) for one in (original, image))
        if edited not in (label, None):
            raise DataError(
                f"{path}: image {image} is labelled {edited}, but it is an edit of "
                f"{original}, which is labelled {label}; an edit must not change the group"
            )
    return replace(labels, sets=named, edits=originals)


def named_sets(sets: Mapping[str, object]) -> dict[str, str]:
    """The set of each image; empty if the column names parts of a split and no sets."""
    named = {image: str(name).strip() for image, name in sets.items() if not is_absent(name)}
    named = {image: name for image, name in named.items() if name}
    return {} if {name.casefold() for name in named.values()} <= _PARTS else named


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
            f"{rows.path}: no column of ids ({', '.join(_IDS)}); found "
            f"{quoted_columns(first)}. Name yours "
            f"with {IMAGE.option}"
        ) from error


def _label_column(
    rows: Rows, first: Mapping[str, Any], labels: LabelMap, layout: Layout, attribute: Attribute
) -> str:
    chosen = layout.label_column
    if chosen is not None:
        if chosen in first:
            return chosen
        raise UsageError(
            f"{rows.path}: dataset.label_column={chosen} is absent; {did_you_mean(chosen, first)}"
        )
    names = (labels.field, attribute.name)
    column = next((near for name in names if (near := same_name(name, list(first)))), None)
    if column is None:
        options = map_of_column(first, attribute)
        fix = (
            f"to read the column {options.split()[1]!r} alone, add {options}"
            if options
            else f"{did_you_mean(labels.field, first)} Name yours with --label-column COLUMN "
            "(dataset.label_column=COLUMN)"
        )
        raise NoLabelColumnError(
            rows.path,
            quoted_columns(first),
            f"{rows.path}: no column {labels.field!r} for attribute {attribute.name!r}; "
            f"{fix}; found {quoted_columns(first)}",
        )
    if column not in names:
        layout.add_note(rows.path, f"labels of {attribute.name} from {column!r}")
    return column


def _interpret(
    path: Path,
    field: str,
    counts: Counter[str],
    first_with: Callable[[str], str],
    labels: LabelMap,
    attribute: Attribute,
    layout: Layout,
) -> LabelMap:
    whole, read = recognise_labels(counts, labels, attribute, layout.label_map)
    if unknown := sorted(counts.keys() - {*whole.groups, *whole.strata}):
        example = first_with(unknown[0])
        _refuse_unknown(path, field, (unknown, example), counts, labels, attribute)
    _check_occurs(path, field, counts, layout)
    emptied = [label for label in layout.label_map if counts[label] and not whole.group_of(label)]
    for fact in (
        *read,
        *(f"{inflect(counts[e], 'labels')} {e!r} taken out by the map" for e in emptied),
    ):
        layout.add_note(path, fact)
    return whole


def _read_votes(
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
    sets: dict[str, object] = {}
    edits: dict[str, object] = {}
    for number, row in rows.items:
        image, named = rows.id(number, row, "image_id"), rows.text(number, row, "attribute")
        images[image] = None
        sets[image], edits[image] = row.get(_SET), row.get(EDIT)
        if named not in (attribute.name, labels.field):
            others.add(named)
            continue
        who = next(filter(None, (rows.label(number, row, n) for n in _WHO if n in row)), "")
        label = rows.label(number, row, "value")
        if who in votes[image]:
            repeated += 1
            _check_same(rows, number, image, votes[image][who][0], label, who)
        votes[image][who] = (label, _confidence(rows, number, row))
    if not votes:
        raise NotApplicableError(
            f"{rows.path}: no line is about attribute {attribute.name!r}; "
            f"{did_you_mean(attribute.name, others)}"
        )
    rows.note_mended(layout)
    labelled = [(image, label) for image, ballot in votes.items() for label, _ in ballot.values()]
    labels_given = Counter(map(itemgetter(1), labelled))

    def first_with(label: str) -> str:
        return next(image for image, given in labelled if given == label)

    labels = _interpret(rows.path, "value", labels_given, first_with, labels, attribute, layout)
    counts = _count_votes(
        _unify_spellings(votes, labels),
        images,
        groups,
        labels,
        annotator,
        repetition_note(repeated),
    )
    return _with_sets(counts, sets, edits, rows.path)


def _unify_spellings(
    votes: Mapping[str, Mapping[str, tuple[str, float]]], labels: LabelMap
) -> dict[str, dict[str, tuple[str, float]]]:
    """The votes with one spelling for each group, so that "M" and "Male" are the same vote."""
    first: dict[str | None, str] = {}
    for ballot in votes.values():
        for label, _ in ballot.values():
            first.setdefault(labels.group_of(label), label)
    first.pop(None, None)
    return {
        image: {
            who: (first.get(labels.group_of(label), label), weight)
            for who, (label, weight) in ballot.items()
        }
        for image, ballot in votes.items()
    }


def _count_votes(
    votes: Mapping[str, Mapping[str, tuple[str, float]]],
    images: Mapping[str, None],
    groups: tuple[str, ...],
    labels: LabelMap,
    annotator: str,
    notes: tuple[str, ...],
) -> Labels:
    """One label for each image, of the majority or of one annotator."""
    names = sorted({who for ballot in votes.values() for who in ballot})
    if annotator == MAJORITY:
        chosen = {image: majority(ballot.values()) for image, ballot in votes.items()}
    elif annotator in names:
        chosen = {i: ballot[annotator][0] for i, ballot in votes.items() if annotator in ballot}
    else:
        raise UsageError(
            f"dataset.annotator={annotator} is unknown; {did_you_mean(annotator, names)}"
        )
    whole = replace(labels, strata=tuple(dict.fromkeys([*labels.strata, "", TIE])))
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
    ballots = [[label for label, _ in ballot.values()] for ballot in votes.values()]
    kappa = fleiss(answer_counts(ballots, list(dict.fromkeys(chain.from_iterable(ballots)))))
    split = sum(len(set(ballot)) > 1 for ballot in ballots)
    ties = sum(label == TIE for label in chosen.values())
    used = "the majority's label is used" if annotator == MAJORITY else f"{annotator}'s are used"
    return (
        f"{n_annotators} annotators: Fleiss' kappa {kappa:.2f}, {split} of "
        f"{len(ballots)} images judged differently, {ties} without a majority (not scored); {used}"
    )


def _confidence(rows: Rows, number: int, row: Mapping[str, Any]) -> float:
    """The weight of a vote; 1 if the file gives no weight."""
    value = row.get("confidence")
    if value in (None, ""):
        return 1.0
    try:
        weight = float(value)
    except (TypeError, ValueError, OverflowError):
        weight = -1.0
    if not 0 <= weight < float("inf"):
        rows.refuse(number, f"confidence {value!r} is not a number of at least 0")
    return weight


def _check_same(
    rows: Rows, number: int, identifier: str, first: str, second: str, annotator: str = ""
) -> None:
    if first != second:
        by = f" by {annotator!r}" if annotator else ""
        several = "keep one, or name the columns image_id, attribute, value and annotator"
        fix = "keep one" if annotator else several
        rows.refuse(
            number,
            f"image id {identifier} occurs twice with different labels{by} ({first!r} and "
            f"{second!r}); {fix}",
        )


def _refuse_unknown(
    path: Path,
    field: str,
    labelled: tuple[Sequence[str], str],
    counts: Counter[str],
    labels: LabelMap,
    attribute: Attribute,
) -> NoReturn:
    """Raise the DataError for unknown labels; the message names an image with the first label."""
    unknown, example = labelled
    allowed = [label or "(empty)" for label in (*labels.groups, *labels.strata)]
    listed = ", ".join(repr(label[:_CUT]) for label in unknown[:_SHOWN])
    common = ", ".join(f"{label[:_CUT]!r} {n}" for label, n in counts.most_common(_SHOWN))
    options = " ".join(map_option(label[:_CUT], "GROUP") for label in unknown[:_MOST_MAPPED])
    raise DataError(
        f"{path}: unknown labels in {field!r}: {listed} (image {example}); labels: {common}; "
        f"{did_you_mean(unknown[0], allowed)} Correct them, or map them: "
        f"{options} (dataset.label_map={{{unknown[0][:_CUT]}: GROUP}}), GROUP one of "
        f"{', '.join([*attribute.groups, *filter(None, labels.strata)])}"
    )


def map_option(label: str, group: str) -> str:
    """The option that maps a label, as a user types it; a label may begin with a hyphen.

    Example:
        >>> map_option("M", "male"), map_option("-1", "female")
        ('--map M=male', '--map=-1=female')
    """
    sign = "=" if label.startswith("-") else " "
    return f"--map{sign}{shlex.quote(f'{label}={group}')}"


def _check_occurs(path: Path, field: str, counts: Counter[str], layout: Layout) -> None:
    """Note mapped labels that the file lacks; refuse a file that lacks all of them."""
    idle = [label for label in layout.label_map if label not in counts]
    if not idle:
        return
    if len(idle) == len(layout.label_map):
        common = [label[:_CUT] or "(empty)" for label, _ in counts.most_common(_SHOWN)]
        raise AbsentLabelError(
            f"{map_option(idle[0], layout.label_map[idle[0]])}: no label in {field!r} "
            f"of {path} is {idle[0]!r}; {did_you_mean(idle[0], common)}"
        )
    layout.add_note(
        path, f"the map has {', '.join(map(repr, idle))}, but no label in {field!r} is written so"
    )


def repetition_note(repeated: int, what: str = "labels") -> tuple[str, ...]:
    return (inflect(repeated, f"repeated {what} were collapsed"),) if repeated else ()


def strata_note(raw: Iterable[str], labels: LabelMap) -> tuple[str, ...]:
    """A note on how many images have a label of no group, by label.

    Only ``metric=assumed_group`` scores images whose annotators were unsure of the group.
    """
    written = Counter(raw)
    counts = {label: n for label, n in written.items() if labels.group_of(label) is None}
    if not counts:
        return ()
    listed = ", ".join(
        f"{label or 'empty'} {n}{' (except by assumed_group)' if labels.is_unsure(label) else ''}"
        for label, n in sorted(counts.items())
    )
    return (
        f"{inflect(sum(counts.values()), 'images belong to no group and are not scored')}: "
        f"{listed}",
    )
