"""What stands behind the numbers of a report's first screen: captions and words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bias_pipeline.errors import DataError
from bias_pipeline.explain.words import Words
from bias_pipeline.report.sheets import Cell, Sheet
from bias_pipeline.report.words import revealing
from bias_pipeline.results.store import Result, ResultStore

MISNAMED = "misnamed"
_COLUMNS = {"image_id", "labelled", "named", "caption", "wrong"}
_LONGEST = 200  # characters of a caption that are shown
ABSENT = (
    "The runs hold no captions to show: they were made by an earlier version, or without any such "
    "caption."
)


@dataclass(frozen=True)
class Behind:
    """Examples for the numbers of the first screen.

    Attributes:
        misnamed: run id to captions that name the wrong group.
        words: attribute, data set and captioner to the most revealing words.
    """

    misnamed: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict)
    words: Mapping[tuple[str, str, str], Sheet] = field(default_factory=dict)

    def of(self, kind: str, result: Result) -> list[Sheet]:
        """What stands behind the numbers of one captioner in a panel.

        Args:
            kind: of :data:`~bias_pipeline.report.plain.PANELS`.
            result: one that the panel shows.
        """
        row = result.rows[0]
        if kind == "misgendering" and result.run_id in self.misnamed:
            return [misnamed_sheet(self.misnamed[result.run_id])]
        key = (row.attribute, row.dataset, row.captioner)
        return [self.words[key]] if kind == "leakage" and key in self.words else []


NOTHING = Behind()


def misnamed_of(
    store: ResultStore, results: Sequence[Result]
) -> tuple[dict[str, list[dict[str, str]]], list[str]]:
    """Captions that name the wrong group, by run, and a sentence on each file that is damaged."""
    found, damaged = {}, []
    for result in results:
        try:
            lines = store.table(result.run_id, MISNAMED)
        except DataError as error:
            damaged.append(f"{error}. Its examples are not shown")
            continue
        if lines and lines[0].keys() >= _COLUMNS:
            found[result.run_id] = lines
    return found, damaged


def revealing_of(words: Sequence[Words]) -> dict[tuple[str, str, str], Sheet]:
    """The most revealing words by attribute, data set and captioner."""
    return {(own.attribute, own.dataset, own.captioner): revealing(own) for own in words}


def misnamed_sheet(lines: Sequence[Mapping[str, str]]) -> Sheet:
    """Captions of one captioner that name the wrong group."""
    wrong = lines[0]["wrong"]
    rows: list[list[Cell]] = [
        [own["labelled"], own["named"], _short(own["caption"]), own["image_id"]] for own in lines
    ]
    caption = f"{len(rows)} of the {wrong} captions that name the wrong group, drawn by hash"
    return Sheet(caption, ["labelled", "named", "caption", "image"], rows)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
