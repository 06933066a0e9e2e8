"""The page ``papers``: a row for every table and figure of the five papers.

Numbers are read from the rows of studies and from the printed tables, both in experiments/.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from docs.builder.sources import REPOSITORY

EXPERIMENTS = REPOSITORY / "experiments"
STANDINGS = ("replicated", "other data", "toy", "none")  # what each means: see papers.yaml
LIST = Path(__file__).with_name("papers.yaml")
DOOR = "python -m bias_pipeline"


@dataclass(frozen=True)
class Comparison:
    """Numbers of a study beside printed ones; see papers.yaml."""

    what: str
    rows: str
    where: Mapping[str, str]
    factor: float
    printed: Mapping[str, str]
    line: str = "captioner"
    rename: Mapping[str, str] = field(default_factory=dict)

    def pairs(self, published: str) -> pd.DataFrame:
        """Columns ``ours`` and ``printed``, a line for each name that both have.

        Args:
            published: the paper's file of printed numbers.
        """
        ours = select_rows(EXPERIMENTS / self.rows, self.where).set_index(self.line)["value"]
        ours = ours.rename(index=dict(self.rename))
        printed = select_rows(EXPERIMENTS / "published" / f"{published}.csv", self.printed)
        both = {"ours": ours[~ours.index.duplicated(keep="last")] * self.factor}
        both["printed"] = printed.set_index("row")["value"].astype(float)
        return pd.DataFrame(both).dropna()

    def seeds(self) -> str:
        """Of how many seeds our numbers are, such as `3 seeds`; empty where nothing is drawn.

        Example:
            >>> where = {"preset": "dbac_table9", "part": "a_to_t"}
            >>> Comparison("", "encoder_sensitivity/preset_rows.csv", where, 1, {}).seeds()
            '1 seed'
        """
        rows = select_rows(EXPERIMENTS / self.rows, self.where)
        counts = {int(n) for n in rows.get("n_seeds", ())} - {0}
        span = " to ".join(map(str, sorted({min(counts), max(counts)}))) if counts else ""
        return f"{span} seed{'s' if span != '1' else ''}" if span else ""


def select_rows(path: Path, where: Mapping[str, str]) -> pd.DataFrame:
    """The rows of a file that have these texts in these columns."""
    rows = pd.read_csv(path, keep_default_na=False, na_values={"value": [""]}, dtype=_dtypes(where))
    for column, text in where.items():
        rows = rows[rows[column] == text]
    return rows


def _dtypes(where: Mapping[str, str]) -> dict[str, type]:
    return dict.fromkeys(where, str)


@dataclass(frozen=True)
class Item:
    """A table or figure; see papers.yaml."""

    item: str
    shows: str
    commands: tuple[str, ...]
    needs: str
    study: str
    standing: str
    ours: tuple[Comparison, ...] = ()
    differs: str = ""
    why_not: str = ""


@dataclass(frozen=True)
class Paper:
    """A paper and all its tables and figures."""

    title: str
    source: str
    published: str
    items: tuple[Item, ...]


def papers() -> list[Paper]:
    """The five papers, as papers.yaml lists them."""
    listed: dict[str, Any] = yaml.safe_load(LIST.read_text(encoding="utf-8"))
    return [
        Paper(**{**paper, "items": tuple(_item(item) for item in paper["items"])})
        for paper in listed.values()
    ]


def _item(listed: dict[str, Any]) -> Item:
    ours = tuple(Comparison(**comparison) for comparison in listed.get("ours", ()))
    return Item(**{**listed, "commands": tuple(listed["commands"]), "ours": ours})


def count_standings(listed: Iterable[Paper]) -> str:
    """How many tables and figures have which standing, as README prints it."""
    counted = Counter(item.standing for paper in listed for item in paper.items)
    numbers = ", ".join(f"{counted[name]} {name}" for name in STANDINGS)
    return f"{counted.total()} tables and figures: {numbers}"


def papers_page() -> str:
    """The page in Markdown."""
    listed = papers()
    head = (
        "---\nhide: [navigation, toc]\n---\n\n# The papers, table by table\n\n"
        "Every table and figure of the five papers: the command that makes it here, what that "
        "needs, and our numbers "
        "beside the printed ones, or why there are none. Written from "
        "`docs/builder/papers.yaml`, the rows of "
        "[studies](../experiments/README.md) and the [printed "
        "numbers](../experiments/published/README.md); a test composes "
        "every command. `DIR` and `FILE` are yours. `report --export paper/ --error seeds` "
        "writes tables with means and "
        "standard deviations over seeds, as RELIC prints them, `--error interval` with "
        "half-widths of 95 % intervals over "
        "runs, as DBAC does.\n\n"
        f"{count_standings(listed)}. *Replicated*: the paper's captions, measure and attackers. "
        "*Other data*: real data, but other images, captions, labels or attackers. *Toy*: drawn "
        "scenes or networks of known bias. *None*: a drawing, a list of words, or nothing that "
        "we ran.\n"
    )
    return "\n".join([head, *(_section(paper) for paper in listed)])


def _section(paper: Paper) -> str:
    lines = [
        f"## {paper.title}\n",
        f"{paper.source}.\n",
        f"| table or figure | standing | after `{DOOR}`, or in full | needs | "
        "ours / printed, or why not |",
        "| --- | --- | --- | --- | --- |",
        *(_line(item, paper.published) for item in paper.items),
    ]
    return "\n".join(lines) + "\n"


def _line(item: Item, published: str) -> str:
    commands = "<br>".join(f"`{command}`" for command in item.commands) or "–"
    cells = [
        f"**{item.item}**: {item.shows}",
        item.standing,
        commands,
        item.needs,
        " ".join(_numbers(item, published)),
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _numbers(item: Item, published: str) -> Iterator[str]:
    for comparison in item.ours:
        pairs = comparison.pairs(published)
        cells = [f"{name} {_text(x.ours)} / {_text(x.printed)}" for name, x in pairs.iterrows()]
        seeds = f", {comparison.seeds()}" if comparison.seeds() else ""
        yield f"**{comparison.what}{seeds}**: {'; '.join(cells)}.<br>"
    if item.differs:
        yield f"What differs: {item.differs}."
    if item.why_not:
        yield f"{item.why_not[0].upper()}{item.why_not[1:]}."
    yield f"More: [{item.study}](../experiments/{item.study}/README.md)."


def _text(value: float) -> str:
    """Three significant digits, as a table has room for.

    Example:
        >>> _text(2.626), _text(0.0405), _text(-30.11)
        ('2.63', '0.0405', '-30.1')
    """
    return f"{value:#.3g}"
