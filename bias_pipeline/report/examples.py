"""Examples for the numbers of a report's first screen: captions and words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bias_pipeline.errors import DataError
from bias_pipeline.explain.words import RevealingWords
from bias_pipeline.report.report_tables import Cell, Sheet
from bias_pipeline.report.word_attribution import revealing
from bias_pipeline.results.store import Result, ResultStore

MISNAMED = "misnamed"
_COLUMNS = {"image_id", "labelled", "named", "caption", "wrong"}
_LONGEST = 200  # characters of a caption that are shown
ABSENT = (
    "There are no captions to show: an earlier version made these runs, or no caption names the "
    "wrong group."
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
        """Examples for one captioner in a panel.

        Args:
            kind: of :data:`~bias_pipeline.report.question_texts.PANELS`.
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
    misnamed, damaged = {}, []
    for result in results:
        try:
            lines = store.table(result.run_id, MISNAMED)
        except DataError as error:
            damaged.append(f"{error}. Its examples are not shown")
            continue
        if lines and lines[0].keys() >= _COLUMNS:
            misnamed[result.run_id] = lines
    return misnamed, damaged


def revealing_of(words: Sequence[RevealingWords]) -> dict[tuple[str, str, str], Sheet]:
    """The most revealing words by attribute, data set and captioner."""
    return {
        (explanation.attribute, explanation.dataset, explanation.captioner): revealing(explanation)
        for explanation in words
    }


def misnamed_sheet(lines: Sequence[Mapping[str, str]]) -> Sheet:
    """Captions of one captioner that name the wrong group."""
    wrong = lines[0]["wrong"]
    rows: list[list[Cell]] = [
        [line["labelled"], line["named"], _short(line["caption"]), line["image_id"]]
        for line in lines
    ]
    caption = f"{len(rows)} of the {wrong} captions that name the wrong group, chosen at random"
    return Sheet(caption, ["labelled", "named", "caption", "image"], rows)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
