"""``analysis feature_sensitivity``: pictures changed, captioned anew, scored anew."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

from bias_pipeline.analysis.feature_sensitivity import (
    CHANGES,
    TITLES,
    WHOLE,
    Shift,
    is_steady,
    shifts,
)
from bias_pipeline.commands import caption
from bias_pipeline.commands.arguments import PROGRAM, Parser
from bias_pipeline.commands.auditing import AT_EQUAL_SPEECH, EQUAL_SPEECH
from bias_pipeline.config.overrides import quoted
from bias_pipeline.errors import NotApplicableError, UsageError
from bias_pipeline.io.files import replace_file, table_csv
from bias_pipeline.io.terminal import print_out, print_table
from bias_pipeline.metrics.base import PICTURES, WEIGHTS
from bias_pipeline.metrics.catalogue import infos
from bias_pipeline.report.tables import number, percent
from bias_pipeline.results.store import Result

TABLE = "feature_sensitivity.csv"
_ABOUT = (
    "Caption photos as they are, with the background slightly blurred, and with one annotated "
    "object in ten hidden, and score all three with every metric of captions: a number is steady "
    "if it stays within its interval. Options are those of caption, key=value those of run (labels "
    "and people's captions: dataset.attributes=, dataset.captions=); image_masking.blur= and "
    "image_masking.share= say how much is changed."
)


def feature_sensitivity_parser() -> Parser:
    """The options and their help: those of ``caption``."""
    parser = caption.parser()
    parser.prog = f"{PROGRAM} analysis feature_sensitivity"
    parser.usage = (
        "%(prog)s PHOTOS --model MODEL --regions FILE --out DIR [key=value ...] [options]"
    )
    parser.description = _ABOUT
    return parser


def feature_sensitivity_command(words: Sequence[str]) -> int:
    """Caption, score and compare; returns the exit code.

    Raises:
        BiasPipelineError: if something is missing or cannot be read.
    """
    masking = [word for word in words if word.startswith("image_masking.")]
    overrides = [word for word in words if _is_setting(word) and word not in masking]
    options = [word for word in words if not _is_setting(word)]
    given = feature_sensitivity_parser().parse_args(options)
    for flag in ("gather", "image_masking", "crop", "shard", "to", "run"):
        if getattr(given, flag):
            raise UsageError(f"--{flag.replace('_', '-')}: this analysis sets it; leave it out")
    if given.regions is None or given.out is None:
        raise UsageError("--regions FILE and --out DIR are needed; see --help")
    files = _captions(given.out, options, masking)
    lines = shifts(_scored(given.out, overrides, files))
    if not lines:
        raise NotApplicableError(
            f"{given.out}: no metric has a number with an interval; give labels of groups "
            "(dataset.attributes=FILE)"
        )
    replace_file(given.out / TABLE, table_csv([asdict(line) for line in lines]).encode())
    _print_shifts(lines)
    print_out(given.out / TABLE)
    return 0


def _is_setting(word: str) -> bool:
    return "=" in word and not word.startswith("-")


def _captions(folder: Path, options: Sequence[str], masking: Sequence[str]) -> list[Path]:
    """The files of captions, of pictures as they are and as they are changed.

    Args:
        folder: for everything.
        options: of ``caption``.
        masking: settings of the changes.
    """
    (folder / "captioners").mkdir(parents=True, exist_ok=True)
    files = []
    for name, choice in {WHOLE: "none", **CHANGES}.items():
        file, blocks = folder / "captioners" / f"{name}.json", str(folder / f"written_{name}")
        files.append(file)
        if not file.exists():
            changed = [] if name == WHOLE else masking
            shown = [f"image_masking={choice}", *changed]
            caption.command([*options, "--out", blocks, *shown])
            caption.command(["--gather", blocks, "--to", str(file), "--no-strict"])
    return files


def _scored(folder: Path, overrides: Sequence[str], files: Sequence[Path]) -> list[Result]:
    """The results of every metric of captions that the data permit, with their draws."""
    from bias_pipeline.sweeps import launch

    known = infos()
    metrics = [
        name
        for name, info in known.items()
        if not info.image and not {PICTURES, WEIGHTS} & set(info.needs)
    ]
    swept = any(word.startswith("metric=") for word in overrides)
    captioners = f"captioner={','.join(quoted(str(file)) for file in files)}"
    read = [] if any(word.startswith("dataset=") for word in overrides) else ["dataset=coco"]
    shared = [*read, "logger=csv", f"paths.outputs={quoted(str(folder / 'runs'))}"]
    at_equal_speech = [f"{key}={value}" for key, value in EQUAL_SPEECH.items()]
    sweeps = [
        [f"metric={','.join(metrics)}"],
        [f"metric={','.join(AT_EQUAL_SPEECH)}", *at_equal_speech],
    ]
    results: list[Result] = []
    for words in [[]] if swept else sweeps:
        finished = launch.run([*shared, *words, *overrides, captioners], lenient=True)
        results += finished.with_draws()
    return results


def _print_shifts(lines: Sequence[Shift]) -> None:
    """Each number with its shifts, in per cent where it is a fraction."""
    table = []
    for (metric, alignment, part), both in groupby(
        lines, key=lambda line: (line.metric, line.alignment, line.part)
    ):
        numbers = list(both)
        cells = {line.change: _text(line.shift, line.shift_low, line.shift_high, line.unit)
                 for line in numbers}  # fmt: skip
        first = numbers[0]
        table.append(
            [
                metric,
                alignment,
                part,
                _text(first.score, first.ci_low, first.ci_high, first.unit),
                *(cells.get(change, "") for change in CHANGES),
                "steady" if is_steady(numbers) else "not",
            ]
        )
    print_out("Score, and by how much it shifts; per cent where it is a fraction")
    header = ["metric", "alignment", "number", "score", *_titles(CHANGES), ""]
    print_table(header, table, keys=1, left=len(header))


def _titles(changes: Iterable[str]) -> list[str]:
    return [TITLES[change] for change in changes]


def _text(value: float, low: float, high: float, unit: str) -> str:
    written = percent if unit == "fraction" else number
    return f"{written(value)} [{written(low)}, {written(high)}]"
