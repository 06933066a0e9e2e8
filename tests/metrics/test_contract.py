"""What every metric must hold, whatever it measures; a new one is tested from its YAML alone.

Each metric is built as a user would (``metric=NAME``) and computed on a few hundred scenes whose
captioner speaks as annotators do.
"""

import inspect
import json
import math
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import astuple, replace
from functools import cache
from pathlib import Path

import pytest

from bias_pipeline.corpus.attribute import LabelMap
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.corpus.split import Split
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.io.paths import choices_of, conf_dir
from bias_pipeline.metrics.base import HEADLINES, Metric, MetricInfo, Number, Score
from bias_pipeline.metrics.catalogue import infos, settings_of
from bias_pipeline.metrics.counting.gender_error import GenderError
from bias_pipeline.report.gate import decisions
from bias_pipeline.report.table import NumberCell
from bias_pipeline.report.tables import headline_table, print_results
from bias_pipeline.report.text_formats import markdown_report
from bias_pipeline.results.rows import Result, rows_csv
from bias_pipeline.results.store import ResultStore
from bias_pipeline.run import compose
from bias_pipeline.run.cell import run_cell
from tests.all_modules import all_modules
from tests.tiny_models import tiny_clip, tiny_weights

NAMES = choices_of(conf_dir() / "metric")
SEEDS = (0, 12)
WORDS = (
    "captioner=faithful",
    "dataset.n_images=400",
    "stats.resamples=50",
    "probe.cache=null",
)
# What a metric needs to have a value on so few images, and to be neutral where the captioner is:
# as published, BA-> and Multi-> compare one caption with all objects in the image, so that whoever
# writes one caption, people too, scores below 0; and DPA adds noise to the labels of rare tasks, so
# that whoever names them as rarely as annotators do scores above 0.
ALIKE = ("metric.labels=each", "metric.denominator=named")
# A small captioner that is shown lists of objects, for tests that do not ask how well it sees.
QUICK_CAPTIONER = (
    *("encoder.backbone=annotations", "encoder.hidden_dim=16", "trainer.max_epochs=1"),
    *("probe.processes=1", "metric.leaks=[masked]", "metric.learning_curve=false"),
    "split=ic2",  # one training for each seed
)
FURTHER: dict[str, tuple[str, ...]] = {
    "dbac": ("metric.min_support=5", "metric.positions=2"),
    "dpa": ("metric.labels=first", "metric.equalise=none", "metric.min_support=20"),
    "ba_directional": ALIKE,
    "multi_directional": (*ALIKE, "metric.absolute=false", "metric.min_support=5"),
    "ba_mals": ("metric.labels=each",),
    "differential_fairness": ("metric.min_support=20",),
    "cooccurrence": ("metric.min_support=20",),
    "imagecaptioner2": QUICK_CAPTIONER,
    "gender_ratio": ("metric.numerator=male",),  # else the first group, whichever that is
    "counterfactual": ("dataset.twins=60", "dataset.twin_captions=1"),
}


# What no caption decides has nothing to say of captioners.
OF_CAPTIONERS = [name for name in NAMES if name != "retrieval_fairness"]


CAPTIONS_ALONE = [name for name in OF_CAPTIONERS if "pictures" not in infos()[name].needs]


def further(name: str) -> tuple[str, ...]:
    if name == "retrieval_fairness":
        return (f"encoder.model={tiny_clip()}", "encoder.cache=null", "metric.k=20")
    return tiny_weights() if name == "gender_score" else FURTHER.get(name, ())


@cache
def cell(name: str, *words: str) -> compose.Cell:
    return compose.cell([f"metric={name}", *WORDS, *further(name), *words])


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def rebuilt(corpus: Corpus, records: list[Record]) -> Corpus:
    """A corpus of the same images, given in another order."""
    groups = {
        name: (
            grouping.names,
            LabelMap(name, {group: group for group in grouping.names}, ("?",), ("?",)),
        )
        for name, grouping in corpus.groupings.items()
    }
    unsure = {
        corpus.ids[row]: {name: "?"}
        for name, grouping in corpus.groupings.items()
        for row in grouping.unsure.nonzero()[0]
    }
    return Corpus.build(
        [
            replace(grouping, labels={**grouping.labels, **unsure.get(grouping.id, {})})
            for grouping in records
        ],
        dataset=corpus.dataset,
        captioner=corpus.captioner,
        groups=groups,
        trained_on_reference=corpus.trained_on_reference,
    )


def compute(name: str, corpus: Corpus, *words: str) -> Score:
    metric = cell(name, *words).build("metric")
    return metric.compute(corpus, splits=metric.draw_splits(corpus, SEEDS))


@cache
def run(name: str) -> tuple[Score, Result]:
    """What a metric computes in a run, and what the run makes of it."""
    metric, corpus, scores = cell(name).build("metric"), cell(name).corpus(), []
    plain = type(metric).compute

    def record_score(self: Metric, corpus: Corpus, *, splits: Sequence[Split]) -> Score:
        scores.append(plain(self, corpus, splits=splits))
        return scores[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(metric), "compute", record_score)
        result = run_cell(corpus, metric, SEEDS, run_id="run")
    return scores[0], result


def score(name: str) -> Score:
    return run(name)[0]


def result(name: str) -> Result:
    return run(name)[1]


def info(name: str) -> MetricInfo:
    return cell(name).build("metric").info


def headlines(score: Score) -> dict[str, Number]:
    return {part: score.parts[part] for part in HEADLINES if part in score.parts}


def estimates(score: Score) -> dict[str, list[float | None]]:
    """Every number of a score; NaN as None, so that equal scores compare equal."""
    return {
        name: [
            None if isinstance(x, float) and math.isnan(x) else x
            for x in astuple(replace(part, draws=None))
        ]
        for name, part in score.parts.items()
    }


def metric_classes() -> Iterator[type[Metric]]:
    for module in all_modules():  # wings have metrics too
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if issubclass(kind, Metric) and "info" in vars(kind) and kind is not Metric:
                yield kind


def test_every_metric_class_has_a_yaml_of_its_own_and_the_other_way_round():
    kinds = set(metric_classes())
    assert sorted(kind.info.name for kind in kinds) == sorted(NAMES)


def test_a_yaml_builds_the_metric_that_it_is_named_after():
    built = {name: cell(name).build("metric") for name in NAMES}
    assert all(isinstance(metric, Metric) for metric in built.values())
    assert {name: metric.info.name for name, metric in built.items()} == {n: n for n in NAMES}


def test_versions_are_whole_numbers_from_one():
    versions = {name: info(name).version for name in NAMES}
    assert {name: v for name, v in versions.items() if type(v) is not int or v < 1} == {}


def test_a_reader_is_told_title_unit_direction_and_reference():
    fields = ("title", "unit", "direction", "reference")
    blank = [(n, field) for n in NAMES for field in fields if not getattr(info(n), field).strip()]
    assert blank == []


def test_ranges_are_ordered_and_hold_the_neutral_value():
    ranges = {name: (*info(name).range, info(name).neutral) for name in NAMES}
    wrong = {n: r for n, r in ranges.items() if not (r[0] < r[1] and r[0] <= r[2] <= r[1])}
    assert wrong == {}


def every_part() -> dict[tuple[str, str], Number]:
    """All parts of all metrics."""
    return {(name, part): value for name in NAMES for part, value in score(name).parts.items()}


def every_headline() -> dict[tuple[str, str], Number]:
    """All headlines that have a value."""
    return {
        where: part
        for where, part in every_part().items()
        if where[1] in HEADLINES and math.isfinite(part.value)
    }


@pytest.mark.parametrize("name", NAMES)
def test_there_is_a_headline_with_a_value(name):
    values = headlines(score(name)).values()
    assert any(math.isfinite(part.value) for part in values)


def test_headlines_lie_in_the_range():
    values = {where: part.value for where, part in every_headline().items()}
    ranges = {where: info(where[0]).range for where in values}
    assert {w: x for w, x in values.items() if not ranges[w][0] <= x <= ranges[w][1]} == {}


def test_headlines_have_the_unit_of_the_metric():
    units = {(name, part.unit) for name in NAMES for part in headlines(score(name)).values()}
    assert units == {(name, info(name).unit) for name in NAMES}


@pytest.mark.parametrize("name", OF_CAPTIONERS)
def test_a_captioner_that_speaks_like_people_is_neutral(name):
    lines = [p for p in headlines(score(name)).values() if math.isfinite(p.value)]
    neutral = info(name).neutral
    # One that is exactly neutral in every resampling has no interval.
    assert all(e.value == neutral or e.ci_low <= neutral <= e.ci_high for e in lines)


@pytest.mark.parametrize("name", NAMES)
def test_input_order_never_matters(name):
    """So the same corpus gives the same numbers again, too."""
    corpus = cell(name).corpus()
    records = list(corpus)
    random.Random(7).shuffle(records)
    assert estimates(compute(name, rebuilt(corpus, records))) == estimates(score(name))


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_the_groups_does_not_matter(name):
    turned = "attribute.groups=[female,male]"
    outcome = headlines(compute(name, cell(name, turned).corpus(), turned))
    values = {part: headline.value for part, headline in headlines(score(name)).items()}
    assert {part: headline.value for part, headline in outcome.items()} == pytest.approx(
        values, abs=1e-3, nan_ok=True
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_corpus_is_left_as_it_was(name):
    corpus = cell(name).corpus()
    score(name)
    fresh = rebuilt(corpus, list(corpus))
    assert (corpus.model.digest, corpus.human.digest) == (fresh.model.digest, fresh.human.digest)


@pytest.mark.parametrize("need", ["human captions", "objects"])
@pytest.mark.parametrize("name", CAPTIONS_ALONE)
def test_a_headline_is_absent_only_without_what_it_needs(name, need):
    gone: dict[str, object] = {"human captions": {"human": ()}, "objects": {"objects": None}}[need]
    corpus = rebuilt(cell(name).corpus(), [replace(image, **gone) for image in cell(name).corpus()])
    words = ["metric.labels=objects"] if "labels" in settings_of(name) else []  # the default
    if need in info(name).needs:
        with pytest.raises(NotApplicableError):
            compute(name, corpus, *words)
        return
    parts = compute(name, corpus, *words).parts
    known = {part for part, item in parts.items() if math.isfinite(item.value)}
    left = info(name).without.get(need)
    assert known & {left, *HEADLINES} == ({left} if left else {*headlines(score(name))})


def test_a_counting_metric_refuses_a_corpus_without_the_human_captions_it_declares(monkeypatch):
    corpus = cell("gender_error").corpus()
    monkeypatch.setattr(GenderError, "info", replace(GenderError.info, needs=("human captions",)))
    with pytest.raises(NotApplicableError, match="no captioned image of a group has human"):
        compute("gender_error", rebuilt(corpus, [replace(image, human=()) for image in corpus]))


def test_every_part_says_how_many_images_it_rests_on():
    labelled = {n: sum(bool(record.labels) for record in cell(n).corpus()) for n in NAMES}
    counts = {where: part.n_images for where, part in every_part().items()}
    wrong = {w: n for w, n in counts.items() if type(n) is not int or not 0 <= n <= labelled[w[0]]}
    assert wrong == {}


@pytest.mark.parametrize("share", ["coverage", "neutral_rate"])
def test_shares_lie_between_zero_and_one(share):
    values = {where: getattr(part, share) for where, part in every_part().items()}
    assert {w: x for w, x in values.items() if not (math.isnan(x) or 0 <= x <= 1)} == {}


def test_an_interval_holds_its_value():
    known = {w: p for w, p in every_part().items() if math.isfinite(p.ci_low)}
    assert {w: e for w, e in known.items() if not e.ci_low <= e.value <= e.ci_high} == {}


def test_p_values_are_probabilities():
    values = {where: part.p_value for where, part in every_part().items()}
    assert {w: p for w, p in values.items() if not (math.isnan(p) or 0 < p <= 1)} == {}


def test_a_number_without_a_value_has_no_interval_and_no_p():
    lines = {w: p for w, p in every_part().items() if math.isnan(p.value)}
    rest = {w: (e.ci_low, e.ci_high, e.p_value) for w, e in lines.items()}
    assert {w: numbers for w, numbers in rest.items() if not all(map(math.isnan, numbers))} == {}


ONE_SIDE = re.compile(r"^(model|human)(:paired)?$|:(model|human)$|mentions|quality|:?gap$|^named$")


@pytest.mark.parametrize("name", NAMES)
def test_intervals_stay_where_numbers_can_be(name):
    """A share is not above 1, and neither a share nor a gap is below 0."""
    for row in result(name).rows:
        low = 0.0 if ONE_SIDE.search(row.part) else -1.0
        if row.unit == "fraction" and math.isfinite(row.ci_low):
            assert low <= row.ci_low <= row.ci_high <= 1, row.part
        elif ONE_SIDE.search(row.part) and math.isfinite(row.ci_low):
            assert low <= row.ci_low, row.part


@pytest.mark.parametrize("name", NAMES)
def test_the_arrow_and_p_are_one_test(name):
    reading = result(name).manifest["metric"]
    for row in result(name).rows:
        if row.part in HEADLINES and math.isfinite(row.p_value):
            neutral = reading["neutral"][row.part]
            assert (row.p_value < 0.05) == (not row.ci_low <= neutral <= row.ci_high)


@pytest.mark.parametrize("name", ["dbac", "ba_directional"])
def test_a_part_that_decides_has_the_p_of_its_interval(name):
    rules = result(name).manifest["metric"]["readings"].values()
    for row in result(name).rows:
        if row.part in {rule["part"] for rule in rules}:
            assert (row.p_value < 0.05) == (not row.ci_low <= 0 <= row.ci_high)
            assert row.p_value >= 0


def without_values(result: Result) -> Result:
    nan = dict.fromkeys(
        ("value", "seed_std", "ci_low", "ci_high", "p_value", "coverage", "neutral_rate"), math.nan
    )
    return replace(result, rows=[replace(row, **nan) for row in result.rows])


def test_the_interval_of_a_headline_stays_in_the_range():
    rows = [(name, row) for name in NAMES for row in result(name).rows if row.part in HEADLINES]
    ranges = {name: info(name).range for name in NAMES}
    wrong = [
        (name, row)
        for name, row in rows
        if row.ci_low < ranges[name][0] or row.ci_high > ranges[name][1]
    ]
    assert wrong == []


def test_a_result_says_how_it_is_read():
    readings = {name: result(name).manifest["metric"] for name in NAMES}
    assert all(isinstance(reading, dict) for reading in readings.values())
    directions = {name: reading["direction"] for name, reading in readings.items()}
    assert directions == {name: info(name).direction for name in NAMES}


def test_nan_is_a_dash_or_an_empty_cell_in_every_format():
    rows, cells = [], set()
    for name in NAMES:
        empty = without_values(result(name))
        rows += empty.rows
        header, line, *_ = rows_csv(empty.rows).splitlines()
        cells.add(line.split(",")[header.split(",").index("value")])
        assert "nan" not in markdown_report(headline_table([empty])), name
    assert ({NumberCell.of_row(row).text for row in rows}, cells) == ({"– [–, –]"}, {""})


@pytest.mark.parametrize("name", NAMES)
def test_a_table_of_nan_holds_no_number_but_counts(name, capsys):
    empty = without_values(result(name))
    print_results([empty])
    (line,) = (row for row in capsys.readouterr().out.splitlines() if "faithful  " in row)
    headline = next(row for row in empty.rows if row.part in HEADLINES)
    assert re.findall(r"\d+", line) == [str(headline.n_images)]


@pytest.mark.parametrize("name", NAMES)
def test_the_result_is_strict_json(name, tmp_path):
    ResultStore(tmp_path).save(result(name))
    text = (tmp_path / "run" / "result.json").read_text(encoding="utf-8")
    content = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} in JSON"))
    assert set(content) == {"schema", "rows", "manifest"}


@pytest.mark.parametrize("name", NAMES)
def test_the_rows_come_back_as_they_were(name, tmp_path):
    store = ResultStore(tmp_path)
    store.save(result(name))
    loaded = store.load("run")
    assert loaded is not None
    assert rows_csv(loaded.rows) == rows_csv(result(name).rows)


# --- blank captions make nobody fair


TEXTS = ("", " . ", "NaN", "None", "null")
EVERY = 10


@cache
def blank_result(name: str) -> Result:
    """The same captioner with three in ten captions blank, under another name."""
    corpus = cell(name).corpus()
    spoiled = [
        replace(record, model=TEXTS[i % len(TEXTS)]) if i % EVERY < 3 else record
        for i, record in enumerate(corpus)
    ]
    blanked = replace(rebuilt(corpus, spoiled), captioner="blank")
    return run_cell(blanked, cell(name).build("metric"), SEEDS, run_id="blank")


@pytest.mark.parametrize("name", OF_CAPTIONERS)
def test_blanks_lower_the_coverage_of_every_headline(name):
    whole, spoiled = (
        {row.part: row.coverage for row in one.rows if row.part in HEADLINES}
        for one in (result(name), blank_result(name))
    )
    assert all(spoiled[part] < 0.8 * whole[part] for part in spoiled), (whole, spoiled)


def test_blanks_are_noted_and_counted():
    for name in NAMES:
        manifest = blank_result(name).manifest
        assert any("captions (30.0%) are blank" in note for note in manifest["notes"]), name
        corpus = manifest["corpus"]
        assert corpus["blanks"]["model"] == 0.3 * corpus["n_images"], name


@pytest.mark.parametrize("name", NAMES)
def test_a_captioner_with_blanks_wins_nothing(name):
    pair = [blank_result(name), result(name)]
    outcome = decisions(pair, {item.run_id: item.draws for item in pair})
    assert {decision.winner for decision in outcome} == {""}
    assert all(decision.doubts for decision in outcome)


def test_the_table_marks_blanks(capsys):
    print_results([blank_result("gender_error")])
    out = capsys.readouterr().out
    assert "70 ‡" in out
    assert "‡ blank captions" in out
