"""Counts how often versions of a captioner were compared on the same pictures.

A version that was tried again until a gate passed is no evidence, since earlier tests on the same
pictures chose this version. A file has a line for each comparison.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from bias_pipeline.errors import DataError, UndecidedError, UsageError, unwritable
from bias_pipeline.io.terminal import warn
from bias_pipeline.report.gate import Comparison

FILE = "looks.jsonl"
MOST = 5  # the most looks on the same pictures at which a gate decides
_FALSE = 0.025  # the share of gates on new pictures that fail if both captioners are equally fair


@dataclass(frozen=True)
class Look:
    """A recorded comparison of two captioners by one metric."""

    time: str  # when the comparison was made, in UTC
    pictures: str  # a digest of images, labels, objects and human captions
    baseline: str  # a digest of the captions of the other captioner
    metric: str
    attribute: str
    captions: str  # a digest of the captions that are tested
    verdict: str  # passed, worse or undecided


@dataclass(frozen=True)
class LookCount:
    """How many versions, including this version, were compared on the same pictures."""

    number: int  # this version's place among the versions compared on these pictures, from 1
    n_pictures: int  # how many sets of pictures the history has

    def sentences(self) -> list[str]:
        lines = []
        if self.number > 1:
            lines.append(
                f"This is look {self.number} on these pictures: a pass found by retrying is no "
                "evidence."
            )
        if self.n_pictures > 1:
            lines.append(
                f"{self.n_pictures} sets of pictures were looked at so far: if captioners were "
                f"equally fair, {_FALSE * self.n_pictures:.1g} gates would fail by chance."
            )
        return lines

    def check(self, most: int) -> None:
        """Refuse to decide after too many comparisons on the same pictures."""
        if self.number > most:
            raise UndecidedError(
                f"undecided: this is look {self.number} on these pictures, and after {most} "
                "(--looks) no gate on them decides; caption and label new pictures"
            )


def counted_look(folder: Path, comparison: Comparison) -> LookCount:
    """Record a comparison in a folder, and count the versions compared on the same pictures."""
    looks = _looks_of(comparison)
    with _lock(folder) as handle:
        earlier = _read(folder / FILE)
        if earlier and looks[0].time < earlier[-1].time:
            warn(
                f"the clock says {looks[0].time}, before the last look of {folder / FILE} "
                f"({earlier[-1].time}); looks count in the order of their lines"
            )
        lines = "".join(f"{json.dumps(asdict(look))}\n" for look in looks)
        os.lseek(handle, 0, os.SEEK_END)
        try:
            os.write(handle, lines.encode())
            os.fsync(handle)
        except OSError as error:
            raise unwritable(f"to {folder / FILE}", error) from error
    every = [*earlier, *looks]
    return LookCount(
        max(_place(look, every) for look in looks), len({look.pictures for look in every})
    )


def _place(look: Look, every: Sequence[Look]) -> int:
    """The place of these captions, from 1, among all captions compared on their pictures."""
    captions = dict.fromkeys(one.captions for one in every if one.pictures == look.pictures)
    return 1 + list(captions).index(look.captions)


def _looks_of(comparison: Comparison) -> list[Look]:
    name = comparison.results[0].rows[0].captioner
    first = [result for result in comparison.results if result.rows[0].captioner == name]
    others = [result for result in comparison.results if result not in first]
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    baselines = {result.facts.corpus.digest for result in others}
    verdicts: dict[tuple[str, str], str] = {}
    for decision in comparison.decisions:
        verdicts[decision.metric, decision.attribute] = decision.outcome
    looks = {
        Look(
            now,
            result.facts.corpus.reference or "",
            " ".join(sorted(baselines)),
            row.metric,
            row.attribute,
            result.facts.corpus.digest,
            verdicts.get((row.metric, row.attribute), "undecided"),
        ): None
        for result in first
        for row in result.rows[:1]
    }
    return list(looks)


@contextmanager
def _lock(folder: Path) -> Iterator[int]:
    """The open file of looks; other processes wait until it is closed."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--history {folder} is a file; name a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / FILE, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise unwritable(f"to {folder}", error) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)


def _read(path: Path) -> list[Look]:
    content = path.read_bytes()
    lines = content.decode("utf-8", "replace").split("\n")
    if lines.pop():
        raise DataError(
            f"{path}, line {len(lines) + 1}: has no line end, so it was not, or not wholly, "
            "written by compare --history; correct or remove the line"
        )
    return [_look(path, number, line) for number, line in enumerate(lines, 1)]


def _look(path: Path, number: int, line: str) -> Look:
    try:
        record = json.loads(line)
    except ValueError:
        record = None
    names = {field.name for field in fields(Look)}
    if (
        not isinstance(record, Mapping)
        or record.keys() != names
        or not all(isinstance(value, str) for value in record.values())
    ):
        raise DataError(
            f"{path}, line {number}: was not written by compare --history; another program "
            "writes to this folder, and looks would be counted wrong: name another folder"
        )
    return Look(**record)
