"""Does an audit accuse speakers without bias at equal style, and find planted bias?

Usage: python -m experiments.flatness.draws [DATA_ROOT [DRAWS]]

With DATA_ROOT (the folder that holds lic/bias_data) every draw that is missing in draws.csv is
computed, so a stopped study resumes. Without it, DRAWS.md is made from the rows.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.metrics.value_names import ALIKE, BEYOND
from bias_pipeline.report.conclusion_checks import LIMITS
from bias_pipeline.report.verdict import verdict
from bias_pipeline.results.rows import Result
from bias_pipeline.run import compose
from bias_pipeline.run.audit import AT_EQUAL_SPEECH, EQUAL_SPEECH, MATCHED_BOTH, word_reach
from bias_pipeline.run.cell import run_cell
from experiments.flatness.speakers import MANNERS, People, relabel, sample
from experiments.study import markdown, read_rows, write_page

HERE = Path(__file__).resolve().parent
ROWS, PAGE = HERE / "draws.csv", HERE / "DRAWS.md"
N_DRAWS, N_IMAGES = 50, 4000
UNBIASED = (*MANNERS, "three joined")
# Speakers, and in how many per cent of their captions a word of the group is planted.
SPEAKERS = (*((manner, 0) for manner in UNBIASED), ("whole", 20), ("two joined", 20))
# As an audit runs LIC and Leakage; the learning curve changes no score.
_CELL = ("seeds=2", "metric.learning_curve=false", *(f"{k}={v}" for k, v in EQUAL_SPEECH.items()))
ANSWERS = {"more": "yes", "none": "not beyond chance", "no": "no", "unknown": "cannot tell"}


def speakers(corpus: Corpus, number: int) -> Iterator[tuple[str, int, Corpus]]:
    """Style, per cent planted and captions of each speaker of a draw.

    Args:
        corpus: the images with their human captions, of which a draw takes some.
        number: of the draw. It decides which images, and which person speaks.
    """
    attribute = compose.cell(["dataset=lic"]).build("attribute")
    random_ = np.random.default_rng(number)
    records = [
        _shuffle_captions(relabel(record), random_)
        for record in sample(corpus, N_IMAGES, seed=number)
    ]
    people = People(records, frozenset(attribute.all_words), attribute.name)
    for manner, planted in SPEAKERS:
        yield (
            manner,
            planted,
            Corpus.build(
                people.speaking(manner, planted),
                dataset="lic",
                captioner=manner,
                groups={attribute.name: (attribute.groups, attribute.labels["lic"])},
                trained_on_reference=True,
            ),
        )


def _shuffle_captions(record: Record, random_: np.random.Generator) -> Record:
    """The image with its human captions in a drawn order."""
    return replace(record, human=tuple(random_.permutation(record.human[:5]).tolist()))


def run(data: Path, rows: pd.DataFrame, n_draws: int) -> pd.DataFrame:
    """All rows; missing ones are computed and stored after each draw."""
    done = set(rows["draw"])
    root = f"dataset.root={data / 'lic' / 'bias_data'}"
    corpus = compose.cell(["dataset=lic", root, "captioner=sat"]).corpus()
    for number in range(n_draws):
        if number in done:
            continue
        with TemporaryDirectory() as folder:  # attackers of LIC serve Leakage
            cells = audited_cells(Path(folder))
            fresh = [
                {"draw": number, "speaker": manner, "planted": planted, **line}
                for manner, planted, captions in speakers(corpus, number)
                for line in _score_lines(captions, cells)
            ]
        rows = pd.concat([rows, pd.DataFrame(fresh)], ignore_index=True)
        rows.to_csv(ROWS, index=False, float_format="%.5g")
        print(f"draw {number}", flush=True)
    return rows


def audited_cells(folder: Path) -> dict[tuple[str, str], compose.Cell]:
    """Alignment and metric to the cell that an audit runs."""
    alignments = EQUAL_SPEECH["alignment"], MATCHED_BOTH
    settings = [*_CELL, f"paths.outputs={folder}"]
    return {
        (alignment, metric): compose.cell([f"metric={metric}", *settings, f"alignment={alignment}"])
        for alignment, metric in product(alignments, AT_EQUAL_SPEECH)
    }


def _score_lines(
    captions: Corpus, cells: Mapping[tuple[str, str], compose.Cell]
) -> Iterator[dict[str, object]]:
    """A line for each metric, with the answer that an audit gives from both."""
    alignment = EQUAL_SPEECH["alignment"]
    if word_reach(cells[alignment, "lic"], captions) < LIMITS.reach:
        alignment = MATCHED_BOTH
    results = [
        run_cell(captions, cell.build("metric"), cell.seeds, run_id=metric)
        for metric in AT_EQUAL_SPEECH
        for cell in [cells[alignment, metric]]
    ]
    answers = {
        "answer": _answer(results),
        "answer_by_score": _answer([_without_beyond(result) for result in results]),
    }
    for result in results:
        parts = {row.part: row for row in result.rows}
        beyond, retained = parts[BEYOND], parts.get("matched:retained")
        yield {
            "alignment": alignment,
            "metric": beyond.metric,
            "metric_version": beyond.metric_version,
            "reach": parts["matched:reach"].value,
            "retained": 1.0 if retained is None else retained.value,
            "score": parts["score"].value,
            "alike": parts[ALIKE].value,
            "beyond": beyond.value,
            "ci_low": beyond.ci_low,
            "ci_high": beyond.ci_high,
            "p_value": beyond.p_value,
            **answers,
        }


def _answer(results: Sequence[Result]) -> str:
    return ANSWERS[verdict(results).answer("leakage", results[0].rows[0].attribute)]


def _without_beyond(result: Result) -> Result:
    """The result as it was without an annotator at the captioner's length."""
    return replace(result, rows=[row for row in result.rows if row.part not in (ALIKE, BEYOND)])


def accusations(rows: pd.DataFrame) -> pd.DataFrame:
    """Speakers as lines: how many draws answer yes, by both rules, and LIC's means."""
    lines = {}
    for (speaker, planted), cells in rows.groupby(["speaker", "planted"], sort=False):
        lic = cells[cells["metric"] == "lic"]
        lines[f"{speaker}, {planted} % planted" if planted else speaker] = {
            "draws": len(lic),
            "yes": int((lic["answer"] == "yes").sum()),
            "yes, by the score alone": int((lic["answer_by_score"] == "yes").sum()),
            "no": int((lic["answer"] == "no").sum()),
            "cannot tell": int((lic["answer"] == "cannot tell").sum()),
            "LIC": _points(lic["score"]),
            "annotator alike": _points(lic["alike"]),
            "beyond": _points(lic["beyond"]),
            "half of the interval": _points((lic["ci_high"] - lic["ci_low"]) / 2),
            "reach": _points(lic["reach"]),
        }
    return pd.DataFrame(lines).T


def _points(values: pd.Series) -> str:
    mean = values.mean()
    return "–" if math.isnan(mean) else f"{100 * mean:z.1f}"


def texts(rows: pd.DataFrame) -> dict[str, str]:
    """Title to text of DRAWS.md."""
    unbiased = rows[(rows["planted"] == 0) & (rows["metric"] == "lic")]
    accused = int((unbiased["answer"] == "yes").sum())
    before = int((unbiased["answer_by_score"] == "yes").sum())
    summary = (
        f"{rows['draw'].nunique()} of {N_DRAWS} draws, each of {N_IMAGES:,} images. {accused} of "
        f"{len(unbiased)} speakers without bias are accused "
        f"({100 * accused / len(unbiased):.1f} %), by the score alone {before}."
    )
    return {"Accused": f"{summary}\n\n{markdown(accusations(rows))}"}


def main(arguments: Sequence[str]) -> None:
    """Compute the missing draws, or only make the page."""
    rows = read_rows(ROWS) if ROWS.is_file() else pd.DataFrame(columns=["draw"])
    if arguments:
        n_draws = int(arguments[1]) if len(arguments) > 1 else N_DRAWS
        rows = run(Path(arguments[0]), rows, n_draws)
    write_page(PAGE, "Speakers without bias at equal style, draw by draw", __file__, texts(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
