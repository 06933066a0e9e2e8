"""What length, preambles, refusals and samples do to every metric of captions.

Usage: python -m experiments.long_captions.study [OUTPUTS]

With OUTPUTS (a folder for caches) everything missing in rows.csv is computed, so a stopped study
resumes. Without it, the tables are made from rows.csv.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.errors import DataError
from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.run import compose
from bias_pipeline.run.cell import run_cell
from bias_pipeline.scenes.captioners import world_captions
from bias_pipeline.scenes.slots import BiasSettings
from bias_pipeline.scenes.world import generate, uniforms
from bias_pipeline.text.scored_text import ScoredText
from experiments.study import cell as cell_text
from experiments.study import markdown, read_rows, write_results

HERE = Path(__file__).resolve().parent
ROWS = HERE / "rows.csv"
N_IMAGES = 2000
BIASES = {
    "none": BiasSettings(),
    "a_to_t 0.5": BiasSettings(a_to_t=0.5),
    "t_to_a 0.4": BiasSettings(t_to_a=0.4),
}
_ATTACK = ("metric.positions=2", "seeds=2")
METRICS: Mapping[str, Sequence[str]] = {
    "declines": ("metric=declines",),
    "gender_error": ("metric=gender_error",),
    "group_accuracy": ("metric=group_accuracy",),
    "gender_ratio": ("metric=gender_ratio",),
    "assumed_group": ("metric=assumed_group",),
    "ba_mals": ("metric=ba_mals",),
    "ba_directional": ("metric=ba_directional",),
    "multi_directional": ("metric=multi_directional",),
    "differential_fairness": ("metric=differential_fairness",),
    "cooccurrence": ("metric=cooccurrence",),
    "quality": ("metric=quality",),
    "lic": ("metric=lic", "metric.learning_curve=false", *_ATTACK),
    "lic, equal style": (
        "metric=lic", "alignment=matched", "encoder.order=1", "metric.learning_curve=false",
        *_ATTACK,
    ),
    "lic, both sides": (
        "metric=lic", "alignment=matched_both", "encoder.order=1", "metric.learning_curve=false",
        *_ATTACK,
    ),
    "leakage": ("metric=leakage", "metric.learning_curve=false", *_ATTACK),
    "dpa": ("metric=dpa", "seeds=2"),
    "dbac": ("metric=dbac", *_ATTACK),
    "dbac, both sides": ("metric=dbac", "alignment=matched_both", "encoder.order=1", *_ATTACK),
}  # fmt: skip
# The parts that are shown: headlines, and the part that decides where that is another.
PARTS = (
    *(*HEADLINES, "named", "model", "group:male", "group:female"),
    *("matched:reach", "matched:retained"),
)
_STREAM = 900  # of random numbers; no captioner has it
SORRY = "I'm sorry, but I can't identify the people in this image."


AS_READ, KEEP = ScoredText(), ScoredText(declined="keep")
CUT = ScoredText(preambles="cut")


@dataclass(frozen=True)
class Speaker:
    """How a captioner of known bias writes, and what of it is scored.

    Attributes:
        sentences: of a caption.
        samples: which of its captions of each picture are scored.
        preambles: share of captions that open with "The image depicts".
        refusals: share of captions of men and of women that decline.
        scored: what of the captions is scored.
    """

    sentences: int = 1
    samples: Sequence[int] = (0,)
    preambles: float = 0.0
    refusals: tuple[float, float] = (0.0, 0.0)
    scored: ScoredText = AS_READ

    def corpus(self, people: Corpus, dials: BiasSettings) -> Corpus:
        """Its captions beside those of people."""
        world = generate(N_IMAGES)
        dials = replace(dials, sentences=self.sentences)
        drawn = [
            self.scored.apply(self._speak(people, world_captions(world, dials, sample)), 0.9)
            for sample in self.samples
        ]
        return replace(drawn[0], samples=tuple(drawn[1:]))

    def _speak(self, people: Corpus, texts: Mapping[int, str]) -> Corpus:
        keys = [int(identifier) for identifier in people.ids]
        opening, refusing = uniforms(0, keys, _STREAM, ("preamble", "refusal")).T
        codes = people.groupings["gender"].codes
        rate = np.where(codes == 1, self.refusals[1], self.refusals[0])
        captions = [
            SORRY
            if refuses
            else f"The image depicts {text[0].lower()}{text[1:]}"
            if opens
            else text
            for text, opens, refuses in zip(
                map(texts.__getitem__, keys),
                opening < self.preambles,
                refusing < rate,
                strict=True,
            )
        ]
        return people.rewrite({"model": Captions.from_texts(captions)})


def _unit(unit: str) -> ScoredText:
    scored: ScoredText = compose.cell([f"text.unit={unit}"]).build("text").scored
    return scored


SPEAKERS: Mapping[str, Callable[[], Speaker]] = {
    "plain": Speaker,
    "another draw": lambda: Speaker(samples=(1,)),
    "three sentences": lambda: Speaker(sentences=3),
    "ten sentences": lambda: Speaker(sentences=10),
    "ten, the first": lambda: Speaker(sentences=10, scored=_unit("sentence")),
    "ten, on persons": lambda: Speaker(sentences=10, scored=_unit("subject")),
    "preambles": lambda: Speaker(preambles=1.0),
    "preambles, cut": lambda: Speaker(preambles=1.0, scored=CUT),
    "refusals 20 %, kept": lambda: Speaker(refusals=(0.2, 0.2), scored=KEEP),
    "refusals 20 %": lambda: Speaker(refusals=(0.2, 0.2)),
    "refusals 10 and 30 %, kept": lambda: Speaker(refusals=(0.1, 0.3), scored=KEEP),
    "refusals 10 and 30 %": lambda: Speaker(refusals=(0.1, 0.3)),
    "five samples": lambda: Speaker(samples=(0, 1, 2, 3, 4)),
}
# Biases beside none, where not both: what one sentence shows needs no more.
FEWER: Mapping[str, Sequence[str]] = {
    "preambles": ("a_to_t 0.5",),
    "preambles, cut": ("a_to_t 0.5",),
    "refusals 20 %, kept": (),
    "refusals 20 %": (),
    "refusals 10 and 30 %, kept": ("a_to_t 0.5",),
    "refusals 10 and 30 %": ("a_to_t 0.5",),
    "five samples": ("a_to_t 0.5",),
}


def measure(outputs: Path) -> pd.DataFrame:
    """All rows; missing ones are computed and stored after each captioner."""
    rows = read_rows(ROWS) if ROWS.exists() else pd.DataFrame(columns=["speaker", "bias", "metric"])
    done = set(map(tuple, rows[["speaker", "bias", "metric"]].to_numpy()))
    people = compose.cell(["captioner=faithful", f"dataset.n_images={N_IMAGES}"]).corpus()
    for name, speaker in SPEAKERS.items():
        for bias in ("none", *FEWER.get(name, list(BIASES)[1:])):
            lacking = [metric for metric in METRICS if (name, bias, metric) not in done]
            if not lacking:
                continue
            corpus = speaker().corpus(people, BIASES[bias])
            fresh = [
                {"speaker": name, "bias": bias, "metric": metric, **line}
                for metric in lacking
                for line in _score_rows(metric, corpus, outputs)
            ]
            rows = pd.concat([rows, pd.DataFrame(fresh)], ignore_index=True)
            rows.to_csv(ROWS, index=False, float_format="%.6g")
            print(f"{name}, {bias}", flush=True)
    return rows


def _score_rows(name: str, corpus: Corpus, outputs: Path) -> Iterator[dict[str, object]]:
    here = compose.cell([*METRICS[name], f"paths.outputs={outputs}"])
    try:
        result = run_cell(corpus, here.build("metric"), here.seeds, run_id=name)
    except DataError as error:
        yield {"part": f"refused: {error}"}
        return
    words = result.manifest["speech"]["model"]["words"]  # type: ignore[index,call-overload]
    for row in result.rows:
        if row.part in PARTS:
            yield {
                "part": row.part,
                "metric_version": row.metric_version,
                "value": row.value,
                "ci_low": row.ci_low,
                "ci_high": row.ci_high,
                "p_value": row.p_value,
                "unit": row.unit,
                "n_images": row.n_images,
                "coverage": row.coverage,
                "words": words,
            }


def tables(rows: pd.DataFrame) -> dict[str, str]:
    """Title to Markdown."""
    without = rows[rows["bias"] == "none"]
    units = dict(zip(_names(rows), rows["unit"], strict=True))
    return {
        "Without bias: a plain captioner, and how much each manner changes its numbers": _text(
            _changes(without), units
        ),
        **{
            f"What planted bias adds to the numbers of each manner: {bias}": _text(
                _added_by_bias(rows, bias), units
            )
            for bias in list(BIASES)[1:]
        },
        "Refusals": markdown(_refusals(without)),
        "Words a caption, and the share of them that people reach at equal style": _words(without),
    }


# Where the headline is not what is shown.
_SHOWN = {
    "gender_ratio": ("model",),
    "gender_error": ("score", "named"),
    "assumed_group": ("model",),
    "declines": (),
}


def _names(rows: pd.DataFrame) -> pd.Series:
    """Metric and part of each row."""
    return rows["metric"] + " `" + rows["part"] + "`"


def _numbers(rows: pd.DataFrame) -> pd.DataFrame:
    """Numbers (lines) of manners (columns); fractions in points."""
    shown = dict.fromkeys(METRICS, HEADLINES) | _SHOWN
    mask = [part in shown[name] for name, part in zip(rows["metric"], rows["part"], strict=True)]
    chosen = rows[mask]
    chosen = chosen.assign(
        number=_names(chosen),
        points=chosen["value"] * np.where(chosen["unit"] == "fraction", 100, 1),
    )
    table = chosen.pivot_table(index="number", columns="speaker", values="points", sort=False)
    return table[[name for name in SPEAKERS if name in table]]


def _changes(rows: pd.DataFrame) -> pd.DataFrame:
    """The number of a plain captioner with half of its interval, and each manner's change."""
    table = _numbers(rows)
    halves = rows.assign(value=(rows["ci_high"] - rows["ci_low"]) / 2)
    half = _numbers(halves)["plain"].reindex(table.index)
    changes = table.drop(columns="plain").sub(table["plain"], axis=0)
    return pd.concat([table["plain"], half.rename("±"), changes], axis=1)


def _added_by_bias(rows: pd.DataFrame, bias: str) -> pd.DataFrame:
    """What the bias adds to each number of the same manner."""
    biased, none = (_numbers(rows[rows["bias"] == name]) for name in (bias, "none"))
    return biased - none[biased.columns]


def _text(table: pd.DataFrame, units: Mapping[str, str]) -> str:
    """A table of numbers: points with one digit, all others with two."""
    lines = {
        name: [
            "–"
            if np.isnan(value)
            else f"{value + 0.0:.{1 if units[str(name)] == 'fraction' else 2}f}"
            for value in line
        ]
        for name, line in zip(table.index, table.to_numpy(), strict=True)
    }
    text = pd.DataFrame.from_dict(lines, orient="index", columns=list(table.columns))
    return markdown(text.rename_axis("number"))


def _words(rows: pd.DataFrame) -> str:
    words = rows.groupby("speaker", sort=False)["words"].mean().map("{:.1f}".format)
    level = rows[(rows["part"] == "matched:reach") & (rows["metric"] == "lic, equal style")]
    reach = level.set_index("speaker")["value"]
    table = pd.DataFrame({"words": words, "reach": reach.map("{:.3f}".format)})
    return markdown(table.reindex(list(SPEAKERS)).rename_axis("captioner"))


def _refusals(rows: pd.DataFrame) -> pd.DataFrame:
    """Declined shares with intervals, p, and the coverage of another metric."""
    lines = {}
    for name in (name for name in SPEAKERS if "refusals" in name):
        spoken = rows[rows["speaker"] == name]
        declined = spoken[spoken["metric"] == "declines"].set_index("part")
        parts = {
            part: cell_text(declined.loc[part]) for part in ("score", "group:male", "group:female")
        }
        error = spoken[(spoken["metric"] == "gender_error") & (spoken["part"] == "score")].iloc[0]
        lines[name] = {
            **parts,
            "p": f"{declined.loc['score', 'p_value']:.2g}",
            "coverage of gender_error": f"{100 * error['coverage']:.0f} %",
        }
    return pd.DataFrame(lines).T.rename_axis("captioner")


def main(arguments: Sequence[str]) -> None:
    """Compute the missing rows, or only make the tables."""
    rows = measure(Path(arguments[0])) if arguments else read_rows(ROWS)
    write_results(HERE, tables(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
