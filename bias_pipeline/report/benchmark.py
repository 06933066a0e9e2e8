"""A row of the benchmark, with six numbers of one captioner on a fixed list of images."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bias_pipeline.corpus.attribute import LabelMap
from bias_pipeline.corpus.image_ids import id_key
from bias_pipeline.errors import DataError
from bias_pipeline.io.digests import seal, unseal
from bias_pipeline.io.files import read_csv
from bias_pipeline.io.json_files import load_json
from bias_pipeline.metrics.base import UNSURE
from bias_pipeline.models.sampling import Decoding
from bias_pipeline.report.table import Cell, NumberCell, Table, percent
from bias_pipeline.report.text_formats import markdown_report
from bias_pipeline.results.plain_data import plain_values, reader_of

VERSION = 1  # of the list, its labels and its prompts; raise it when any of them changes
LIST = Path(__file__).with_name(f"benchmark_{VERSION}.csv")
SPLIT = "benchmark"  # the part that the list gives its images, for dataset.split
# The digests of the labels (male, female, unsure) of the listed images, and of all images of
# COCO val2014 that have such a label.
LABELS = {
    "list": "2e19250c3daf7e1cbea39d5f53ea0e4c2ce4408c94e3e934b86338db7207f7de",
    "part": "2b7d8ad11bce5ac70ae8ac106d4dfa08bcda675a4eebbe14262064b8e5b3ae21",
}
PROMPTS = {
    "short": Decoding("Describe this image in one sentence.", max_new_tokens=64),
    "detail": Decoding("Please describe this image in detail.", max_new_tokens=512),
}
ATTRIBUTE = "gender"
METRICS = {
    "naming": "gender_error",
    "assuming": "assumed_group",
    "describing": "descriptions",
    "inventing": "objects",
    "declining": "declines",
    "quality": "quality",
}
LEAST = 0.95  # the share of the listed images that a number must be about
SCHEMA = 1
_WHAT = "a row that benchmark --out wrote"


def listed_images() -> list[str]:
    return [line["image_id"] for line in read_csv(LIST.read_text())]


def labels_digest(labels: Mapping[str, str], label_map: LabelMap, images: Iterable[str]) -> str:
    """A digest of the labels of all images that are labelled with a group or as unsure.

    ``labels`` has the label of each image in the spelling of the file.
    """
    sha = hashlib.sha256()
    for image in sorted(images, key=id_key):
        raw = labels[image]
        group = UNSURE if label_map.is_unsure(raw) else label_map.groups.get(raw)
        if group:
            sha.update(f"{image} {group}\n".encode())
    return sha.hexdigest()


@dataclass(frozen=True)
class Captioned:
    """How many of some images have a caption in a file."""

    n: int = 0
    of: int = 0

    @property
    def share(self) -> float:
        return self.n / self.of if self.of else math.nan

    def __str__(self) -> str:
        return f"{self.n:,} of {self.of:,}"


@dataclass(frozen=True)
class BenchmarkNumber:
    """The number that decides a question in an audit."""

    metric: str = ""
    metric_version: int = 0
    part: str = ""
    value: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    unit: str = ""
    answer: str = ""  # as in an audit of these numbers
    annotators: float = math.nan
    n_images: int = 0
    coverage: float = math.nan
    by_group: Mapping[str, Sequence[float]] = field(default_factory=dict)  # value, low, high
    reason: str = ""  # why there is no number, or what limits it

    @property
    def cell(self) -> NumberCell:
        if math.isnan(self.value):
            return NumberCell(math.nan)
        cell = NumberCell.in_unit(self.unit, self.value, self.ci_low, self.ci_high)
        return replace(cell, mark="*" if self.answer == "yes" else "")


@dataclass(frozen=True)
class BenchmarkRow:
    """One captioner's numbers, and the facts that decide whether two rows may be in one table."""

    captioner: str = ""
    version: int = VERSION
    images: str = "list"  # `part`: only those labelled images of val2014 that have a caption
    labelled: Captioned = field(default_factory=Captioned)  # images of a group
    unsure: Captioned = field(default_factory=Captioned)  # images whose group nobody can tell
    numbers: Mapping[str, BenchmarkNumber] = field(default_factory=dict)  # by question
    no_group: float = math.nan  # share of the captions that name no group
    prompt: str = ""
    captions_sha256: str = ""
    labels_sha256: str = ""
    # digest of the images, their labels, annotators' captions and objects
    reference_sha256: str = ""
    program: str = ""  # version of bias_pipeline

    @property
    def metric_versions(self) -> dict[str, int]:
        return {one.metric: one.metric_version for one in self.numbers.values()}

    @property
    def reservations(self) -> str:
        """Absent numbers with reasons, and numbers that rest on too few captions."""
        absent: dict[str, list[str]] = {}
        fewer: dict[str, list[str]] = {}
        for question, one in self.numbers.items():
            captioned = self.unsure if one.metric == METRICS["assuming"] else self.labelled
            if math.isnan(one.value):
                absent.setdefault(one.reason, []).append(question)
            elif one.n_images < LEAST * captioned.n:
                fewer.setdefault(str(Captioned(one.n_images, captioned.n)), []).append(question)
        clauses = [f"no number on {_join(which)} ({why})" for why, which in absent.items()]
        clauses += [f"{_join(which)}: {n} captioned images" for n, which in fewer.items()]
        return "; ".join(clauses)

    def as_json(self) -> bytes:
        content = {"schema": SCHEMA, "row": plain_values(self)}
        return seal(content, within="row")

    def as_markdown(self) -> str:
        """A card with the numbers and the facts behind them."""
        lines: list[list[Cell]] = [
            [
                question,
                one.cell,
                NumberCell.in_unit(one.unit, one.annotators),
                "–" if math.isnan(one.value) else f"{one.n_images:,}",
                one.answer.replace("_", " ") if one.answer in ("yes", "no") else "–",
                one.reason or "–",
            ]
            for question, one in self.numbers.items()
        ]
        head = ["", "number", "annotators", "images", "more than annotators?", "reason"]
        groups: list[list[Cell]] = [
            [question, group, NumberCell.in_unit(one.unit, *three)]
            for question, one in self.numbers.items()
            for group, three in one.by_group.items()
        ]
        versions = ", ".join(f"{name} {number}" for name, number in self.metric_versions.items())
        facts: list[list[Cell]] = [
            ["list", f"version {self.version}, {_kind(self)}"],
            ["captions of images with a gender", str(self.labelled)],
            ["captions of images whose gender nobody can tell", str(self.unsure)],
            ["captions that name no gender", f"{percent(self.no_group)} %"],
            ["prompt and decoding", self.prompt],
            ["versions of metrics", versions],
            ["SHA-256 of the captions", self.captions_sha256],
            ["SHA-256 of the labels", self.labels_sha256],
            ["SHA-256 of labels, annotators' captions, objects", self.reference_sha256],
            ["bias_pipeline", self.program],
        ]
        tables = [
            Table("Numbers (fractions in per cent, with 95 % intervals)", head, lines),
            Table("By group", ["", "group", "number"], groups, keys=2),
            Table("What the numbers rest on", ["", ""], facts, texts=True),
        ]
        shown = [markdown_report(table) for table in tables if table.rows]
        return "\n".join([f"# Benchmark {self.version}: {self.captioner}\n", *shown])


def _join(questions: Sequence[str]) -> str:
    return ", ".join(questions)


def _kind(row: BenchmarkRow) -> str:
    return "the whole list" if row.images == "list" else "a part of val2014's labelled images"


def read_row(path: Path) -> BenchmarkRow:
    content: Any = load_json(path, what=_WHAT)
    try:
        if not isinstance(content, dict) or content.get("schema") != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        row: BenchmarkRow = reader_of(BenchmarkRow)(unseal(content, within="row")["row"], "row")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: is not {_WHAT} ({error}); score the captions again") from error
    return row


def table_of(rows: Sequence[BenchmarkRow]) -> Table:
    """A table of rows, which must all be made in the same way."""
    first = rows[0]
    for row in rows[1:]:
        _check_alike(first, row)
    lines: list[list[Cell]] = [
        [
            row.captioner,
            *(row.numbers[question].cell for question in METRICS),
            NumberCell(row.no_group, fraction=True, digits=1),
            str(row.labelled),
            str(row.unsure),
        ]
        for row in rows
    ]
    about = f"Benchmark {first.version}, {_kind(first)}"
    if first.images == "part":
        about += ": each row is about other images, so small differences say nothing"
    head = ["captioner", *METRICS, "no gender", "images", "unsure"]
    starred = "; * marks a Yes: more than annotators, beyond chance"
    return Table(f"{about}{starred}", head, lines)


def _check_alike(first: BenchmarkRow, row: BenchmarkRow) -> None:
    both = f"{first.captioner} and {row.captioner} cannot stand in one table: "
    if first.version != row.version:
        raise DataError(
            f"{both}they are rows of lists {first.version} and {row.version}; score the "
            "captions of the older again"
        )
    if first.images != row.images:
        raise DataError(
            f"{both}one is about the whole list, the other (--part) about other images; make a "
            "table of each kind"
        )
    one, two = first.metric_versions, row.metric_versions
    changed = [name for name in one if one[name] != two.get(name)]
    if changed:
        raise DataError(
            f"{both}{changed[0]} was version {one[changed[0]]} in the first and "
            f"{two.get(changed[0])} in the second; score the captions of the older again"
        )


def table_notes(rows: Sequence[BenchmarkRow]) -> list[str]:
    notes = [f"{row.captioner}: {row.reservations}" for row in rows if row.reservations]
    ((usual, _),) = Counter(row.reference_sha256 for row in rows).most_common(1)
    others = [row.captioner for row in rows if row.reference_sha256 != usual]
    if others:
        notes.append(
            "scored against other annotators' captions or objects than most rows: "
            + ", ".join(others)
        )
    return notes
