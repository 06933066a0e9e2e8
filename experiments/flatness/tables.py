"""Tables of the study: what changes each metric."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from bias_pipeline.io.files import table_csv
from experiments.flatness.figure import UNBIASED

# The numbers shown of each metric; other headlines change with caption length for all speakers.
_SHOWN = {
    ("dbac", "a_to_t:shared"), ("dbac", "t_to_a:shared"),
    ("dbac, equal style", "a_to_t:shared"), ("dbac, equal style", "t_to_a:shared"),
    ("gender_error", "named:increase"), ("gender_ratio", "captions:increase"),
}  # fmt: skip
_REPLACED = {metric for metric, _ in _SHOWN}


_SHIPPED = Path(__file__).resolve().parents[2] / "bias_pipeline" / "report" / "flatness.csv"
_ALIGNMENTS = {"": "constant", "equal style": "matched"}
_PLAIN = {"people": "whole", "scenes": "faithful"}  # the speaker that others are held against
_BIASED = {
    "people": [("whole", 20)],
    "scenes": [("amplifies 25 %", 0), ("misgenders 40 %", 0)],
}


def shipped_text(rows: pd.DataFrame) -> str:
    """What moves each number, as the package ships it: a line for each number and world."""
    return table_csv([line for _, part in _by_part(rows) for line in _movements(part)])


def _by_part(rows: pd.DataFrame) -> Iterator[tuple[object, pd.DataFrame]]:
    names = rows["metric"].str.partition(", ")
    known = rows.assign(metric=names[0], alignment=names[2].map(_ALIGNMENTS))
    known = known[known["alignment"].notna() & ~known["part"].str.endswith("matched:reach")]
    yield from known.groupby(["metric", "alignment", "part", "unit", "world"], sort=False)


def _movements(rows: pd.DataFrame) -> Iterator[dict[str, object]]:
    """The largest change between speakers without bias, and the largest by planted bias."""
    first = rows.iloc[0]
    by_speaker = rows.set_index(["speaker", "planted"])
    values, plain = by_speaker["value"], _PLAIN[first["world"]]
    changes = values - values[plain, 0]
    unbiased = [(name, 0) for name in UNBIASED[first["world"]] if not name.startswith("misgenders")]
    moved = changes.reindex(unbiased).abs().dropna()
    planted = changes.reindex(_BIASED[first["world"]]).dropna()
    if moved.empty or planted.empty:
        return
    speaker, bias = moved.idxmax(), planted.abs().idxmax()
    yield {
        **first[["metric", "alignment", "part", "unit", "world"]].to_dict(),
        "moved": round(float(moved[speaker]), 4),
        "half_width": round(float(by_speaker["half_width"][speaker]), 4),
        "speaker": speaker[0],
        "planted": round(float(planted[bias]), 4),
        "bias": f"{bias[1]} % planted words" if bias[1] else bias[0],
    }


def write_tables(rows: pd.DataFrame, folder: Path) -> None:
    """TABLE.md, a metric by speaker in points, and the figures that the package ships."""
    shown = rows[
        [_is_shown(m, p) for m, p in zip(rows["metric"], rows["part"], strict=True)]
    ].copy()
    shown["line"] = [_line(m, p) for m, p in zip(shown["metric"], shown["part"], strict=True)]
    shown["text"] = [_text(v, h) for v, h in zip(shown["value"], shown["half_width"], strict=True)]
    texts = []
    for world, of_world in shown.groupby("world", sort=False):
        for planted, part in of_world.groupby("planted", sort=False):
            title = f"## {world}" + (
                f", {planted} % of captions with a planted word" * bool(planted)
            )
            table = part.pivot(index="line", columns="speaker", values="text")
            order = list(dict.fromkeys(part["speaker"]))
            texts.append(f"{title}\n\n{_markdown(table[order])}\n")
    head = (
        "# What changes each score\n\nPoints (value times 100) and half of the 95 % interval.\n\n"
    )
    (folder / "TABLE.md").write_text(head + "\n".join(texts), encoding="utf-8")
    _SHIPPED.write_text(shipped_text(rows), encoding="utf-8")


def _is_shown(metric: str, part: str) -> bool:
    if metric in _REPLACED:
        return (metric, part) in _SHOWN
    return part in ("score", "a_to_t", "t_to_a")


def _line(metric: str, part: str) -> str:
    arrow = {"a_to_t": " A→T", "t_to_a": " T→A"}.get(part.partition(":")[0], "")
    name, _, how = metric.partition(", ")
    return f"{name}{arrow}" + (f", {how}" if how else "")


def _text(value: float, half_width: float) -> str:
    if math.isnan(value):
        return "–"
    half = "" if math.isnan(half_width) else f" ±{100 * half_width:.1f}"
    return f"{100 * value:.1f}{half}"


def _markdown(table: pd.DataFrame) -> str:
    lines = [f"| metric | {' | '.join(table.columns)} |", "| --- " * (1 + len(table.columns)) + "|"]
    for name, row in table.iterrows():
        lines.append(f"| {name} | {' | '.join('–' if pd.isna(x) else str(x) for x in row)} |")
    return "\n".join(lines)
