"""What a report answers first: in the HTML itself, with people's value, and what stays open."""

import math
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from bias_pipeline.io.paths import choices_of, conf_dir
from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.report.conclusion_checks import Limits
from bias_pipeline.report.examples import ScreenExamples
from bias_pipeline.report.page import html, page, report_of, report_of_folder
from bias_pipeline.report.panels import Axis
from bias_pipeline.report.verdict_sentences import ANSWER_CLAUSES, PANELS
from bias_pipeline.results.rows import Result, mapping_in
from bias_pipeline.results.store import ResultStore
from bias_pipeline.run import compose
from bias_pipeline.stats.bootstrap import Draws
from experiments.browser import PROGRAM, Browser, browser
from tests.report.test_page import Elements
from tests.report.test_tables import row

REFRESH = '"><meta http-equiv="refresh" content="0;url=https://refresh.invalid/">'
ALIKE = {"words": 10.0, "vocabulary": 100.0, "neutral": 0.3}
ERROR = {
    "title": "Gender error",
    "direction": "lower is fairer",
    "question": "misgendering",
    "readings": {"score": {"part": "named", "follows": [], "named": True}},
    "neutral": {"score": 0.0},
    "range": {"score": [0.0, 1.0]},
}
LEAK = {
    **ERROR,
    "title": "Leakage",
    "question": "leakage",
    "readings": {"score": {"part": "score", "follows": ["words"], "named": False}},
    "range": {"score": [-1.0, 1.0]},
}
GOOD = {**LEAK, "direction": "higher is better", "question": "quality"}


def result(
    metric: str = "gender_error",
    captioner: str = "sat",
    value: float = 0.11,
    metric_manifest: dict[str, object] | None = None,
    words: float = 10.0,
    **more: object,
) -> Result:
    """A cell whose captioner is ``value`` above people, who are at one per cent."""
    metric_manifest = metric_manifest or {"gender_error": ERROR, "quality": GOOD}.get(metric, LEAK)
    fields = {"metric": metric, "captioner": captioner, "run_id": f"{metric}-{captioner}"}
    base = row(
        **{
            **fields,
            "p_value": math.nan,
            "attribute": "gender",
            "neutral_rate": 0.3,
            "coverage": 1.0,
            **more,
        }
    )
    numbers = {"score": value, "named": value + 0.01, "named:increase": value}
    rows = [
        replace(base, part=part, value=v, ci_low=v - 0.005, ci_high=v + 0.005)
        for part, v in numbers.items()
    ]
    rows.append(replace(base, part="named:human", value=0.01))
    manifest = {
        "metric": metric_manifest,
        "speech": {"model": {**ALIKE, "words": words}, "human": ALIKE},
        "corpus": {"captioned": 1.0, "blanks": {"model": 0}, "trained_on_reference": True},
        "started": "2026-01-02T03:04",
    }
    return Result(base.run_id, rows, {**manifest, "notes": [], "config": None})


def first_screen(results: list[Result]) -> str:
    """What stands before the chapters, without scripts."""
    return page(results, {}).partition("<nav")[0].partition("<body>")[2]


def words_of(text: str) -> str:
    return " ".join(unescape(re.sub("<[^>]+>", " ", text)).split())


def lines_of(text: str) -> list[str]:
    return re.findall(r'<div class="line[^"]*">(?=<div>)(.*?)(?=<div class="line)', text, re.DOTALL)


# --- the verdict


def at_equal_speech(metric: str, headline: str, people: float) -> Result:
    """A cell whose number of one person as the captioner is ``people``."""
    readings = {headline: {"part": headline, "follows": ["words"], "named": False, "matched": True}}
    built_result = result(metric, metric_manifest={**LEAK, "readings": readings})
    score = built_result.rows[0]
    before = "" if headline == "score" else f"{headline}:"
    null = replace(score, value=people, ci_low=people - 0.02, ci_high=people + 0.02)
    rows = [
        replace(score, part=headline),
        replace(null, part=f"{before}matched:people"),
        replace(score, part=f"{before}matched:reach", value=1.0),
    ]
    return replace(built_result, rows=rows)


ALONE = replace(result(), rows=result().rows[:2])  # without human captions
TWO = [result(captioner="a", value=0.1), result(captioner="b", value=0.2)]
MORE_HUMAN = [replace(row, value=0.03) if row.part == "named:human" else row for row in TWO[1].rows]
OTHER_PEOPLE = [TWO[0], replace(TWO[1], rows=MORE_HUMAN)]
FAIR = [result(captioner=name, value=0.001) for name in ("a", "b")]
RACE = result(attribute="race", run_id="r")
BLANKS = {**mapping_in(result().manifest, "corpus"), "blanks": {"model": 0, "human": 5}}
BLANK_PEOPLE = replace(result(), manifest={**result().manifest, "corpus": BLANKS})


@pytest.mark.parametrize(
    ("results", "sentence"),
    [
        (
            [result()],
            "BIAS: it names the wrong gender more often than annotators do (gender_error 11.0 "
            "points [10.5, 11.5]).",
        ),
        ([result()], "It needs human captions of the same images"),
        ([result()], "Run 2026-01-02 Labelled images 10 With a caption 100 % Blank captions 0"),
        ([result()], "There are no captions to show"),
        ([result(value=0.001)], "At most 0.6 points of bias in naming (2.0 points count as none)."),
        (
            [result("lic", words=5.0)],
            "It changes with the style of captions: it writes 5.0 words a caption and annotators",
        ),
        (
            [result("lic", words=5.0), result("leakage", words=5.0)],
            "they change with the style of captions: it writes 5.0 words",
        ),
        (
            [
                result(metric, captioner, coverage=0.02)
                for metric in ("lic", "leakage")
                for captioner in "ab"
            ],
            "leakage and lic: for 2 captioners they cover only 2% of their images; 50% are needed.",
        ),
        ([ALONE], "To compare it with annotators, give human captions"),
        (FAIR, "None, beyond chance, names the wrong gender more often than annotators do"),
        (
            [*FAIR, result("quality", "c")],
            "names the wrong gender more often than annotators do; no run tests it for c.",
        ),
        ([*TWO, result("quality", "c")], "a and b name the wrong gender"),
        (
            [result("lic", "a", words=5.0), result("quality", "b")],
            "It is unknown whether a leaks gender more than annotators do; no run tests it for b.",
        ),
        ([BLANK_PEOPLE], "Blank captions 0 (annotators 5) ‡"),
        (TWO, "All 2 name the wrong gender more often than annotators do"),
        (TWO, "a 10.0 points to b 20.0 points, annotators 1.0 %; largest p <0.001)"),
        (OTHER_PEOPLE, "20.0 points, annotators 1.0 % to 3.0 %; largest p <0.001)"),
        ([result(), RACE], "gender, data set x BIAS: it names the wrong gender more"),
        ([result(), RACE], "race, data set x BIAS: it names the wrong race more"),
        ([result(), RACE], "(race error 11.0 points"),
        ([result(), RACE], "Does it name the wrong group? Yes Yes"),
        ([*TWO, RACE], "Does it name the wrong group? Yes 2 Yes"),
    ],
)
def test_the_verdict_says(results, sentence):
    assert sentence in words_of(first_screen(results))


@pytest.mark.parametrize("names", [("sat",), ("sat", "oscar")])
def test_captions_that_decline_are_told_with_the_verdict(names):
    note = "109 of 600 captions decline: 0 of 360 (male), 109 of 218 (female)"
    results = [result(captioner=name) for name in names]
    manifest = {**results[0].manifest, "notes": [f"warning: {note}"]}
    results[0] = replace(results[0], manifest=manifest)
    whose = "sat: " * (len(names) > 1)
    assert f'<p class="verdict">{whose}{note}.</p>' in first_screen(results)


@pytest.mark.parametrize("names", [("none",), ("sat", "oscar")])
def test_of_runs_of_retrieval_it_is_not_said_that_nothing_was_tested(names):
    runs = [
        result("retrieval_fairness", name, metric_manifest={**LEAK, "question": "retrieval"})
        for name in names
    ]
    assert "These runs test retrieval, not captions." in words_of(first_screen(runs))


def test_the_page_concludes_within_the_limits_that_the_audit_was_given():
    strict = html(report_of([result()], {}, limits=Limits(coverage=1.01)))
    assert "Not tested: whether it names the wrong gender" in words_of(strict)


@pytest.mark.parametrize(
    ("metric", "headline"),
    [
        ("lic", "score"),
        ("leakage", "score"),
        ("imagecaptioner2", "score"),
        ("dbac", "a_to_t"),
        ("dbac", "t_to_a"),
    ],
)
def test_the_figure_has_a_mark_for_people_against_people(metric, headline):
    screen = first_screen([at_equal_speech(metric, headline, 0.01)])
    assert screen.count('<g class="people">') == 1


def test_the_mark_of_people_lies_at_their_value():
    screen = first_screen([at_equal_speech("lic", "score", 0.11)])  # people have the score itself
    (score,) = re.findall(r'<circle cx="([^"]+)" cy="50%"', screen)
    (people,) = re.findall(r'<circle cx="([^"]+)" cy="84%"', screen)
    assert score == people


def test_the_axis_includes_people():
    screen = first_screen([at_equal_speech("lic", "score", -0.4)])
    (place,) = re.findall(r'<circle cx="([^"]+)%" cy="84%"', screen)
    assert 0 <= float(place) <= 100


def test_without_a_second_person_there_is_no_mark_of_people():
    assert 'class="people"' not in first_screen([result("lic")])


def test_the_verdict_needs_no_script():
    tags = {tag for tag, _ in Elements(first_screen([result()])).elements}
    assert "script" not in tags


# --- the figure


def test_metrics_are_lines_of_one_captioner():
    lines = lines_of(first_screen([result(), result("lic"), result("leakage")]))
    names = [re.search("<small>([a-z_]+)", line)[1] for line in lines]
    assert names == ["gender_error", "lic", "leakage"]


def test_captioners_are_lines_of_several_the_fairest_first():
    screen = first_screen([result(captioner="a", value=0.3), result(captioner="b", value=0.2)])
    assert [words_of(line)[0] for line in lines_of(screen)] == ["b", "a"]


def test_the_answers_about_two_directions_are_told_apart():
    readings = {
        name: {"part": name, "follows": [], "named": False} for name in ("a_to_t", "t_to_a")
    }
    results = []
    for captioner in "ab":
        manifest = {**LEAK, "readings": readings}
        built = result("dbac", captioner=captioner, metric_manifest=manifest)
        rows = [replace(built.rows[0], part=name) for name in readings]
        results.append(replace(built, rows=rows))
    headings = re.findall("<header><h3>(.*?)</h3>", first_screen(results))
    assert [heading.rpartition(" ")[2] for heading in headings] == ["A→T", "T→A"]


def test_what_follows_how_much_is_said_is_grey_and_says_so():
    outcome = first_screen([result("lic", words=5.0)])
    assert '<div class="line doubt">' in outcome
    assert "it changes with the style of captions" in lines_of(outcome)[0]


@pytest.mark.parametrize(("value", "tone"), [(0.2, "better"), (-0.2, "worse")])
def test_colours_follow_the_sense_of_quality(value, tone):
    assert f'<div class="strip {tone}">' in first_screen([result("quality", value=value)])


def test_arrows_follow_the_corrected_p_of_the_answers():
    alone, beside = (
        [result("lic", value=0.0053), *more] for more in ([], [result("leakage", value=0)])
    )
    for results, mark in ((alone, "↑"), (beside, "≈")):
        report = page(results, {})
        table = report.partition("All headlines")[2]
        assert mark in lines_of(report)[0], results
        assert f"0.5 [0.0, 1.0] {mark}" in words_of(table), results


def test_of_many_captioners_some_are_shown_and_it_is_said():
    text = first_screen([result(captioner=f"c{i}", value=i / 100) for i in range(30)])
    assert len(lines_of(text)) == 12
    assert "The first 6 and the last 6 of 30" in text


def test_an_axis_holds_every_interval():
    text = first_screen([result("lic", value=v, captioner=f"c{v}") for v in (-0.9, 0.0, 0.9)])
    places = [float(item) for item in re.findall(r'(?:x1|x2|cx)="([-0-9.]+)%"', text)]
    assert min(places) >= 0
    assert max(places) <= 100


def test_what_has_no_value_has_no_place():
    assert Axis(0.0, 1.0, False, ()).place_of(float("nan")) is None


@pytest.mark.parametrize("mark", ["‡", "§", "¶"])
def test_marks_are_explained(mark):
    built_result = result(coverage=0.4)
    built_result.rows[0] = replace(built_result.rows[0], ci_low=0.0, ci_high=0.0)
    built_result.manifest["corpus"]["blanks"]["model"] = 3
    assert f"<li>{mark} " in first_screen([built_result])


@pytest.mark.parametrize("metric", choices_of(conf_dir() / "metric"))
def test_every_metric_is_told_in_plain_words(metric):
    """Those of ours; of others the report tells the title."""
    says = compose.cell([f"metric={metric}"]).metric.says
    assert set(says) <= set(HEADLINES)
    assert says


def test_every_deed_belongs_to_a_question():
    assert set(ANSWER_CLAUSES) - {"tasks"} <= set(PANELS)


# --- examples


def first_screen_of(folder: Path, built: Result) -> str:
    ResultStore(folder).save(built)
    return html(report_of_folder(folder)).partition("<nav")[0]


def test_misnamed_captions_stand_behind_the_number_as_text(tmp_path):
    line = {"image_id": "1", "labelled": "male", "named": "female", "wrong": 7}
    table = [{**line, "caption": "a <b>woman</b>"}]
    text = first_screen_of(tmp_path, replace(result(), tables={"misnamed": table}))
    assert "1 of the 7 captions that name the wrong group" in text
    assert "a &lt;b&gt;woman&lt;/b&gt;" in text


@pytest.mark.parametrize(
    ("question", "table", "lines", "shown"),
    [
        (
            "misgendering",
            "misnamed",
            [{"labelled": "male", "named": "female"}] * 2 + [{"labelled": "female", "named": "m"}],
            [["male", "female", "a 0", "0"], ["female", "m", "a 2", "2"]],
        ),
        ("assuming", "assumed", [{"named": "male"}] * 2, [["male", "a 0", "0"]]),
        (
            "inventing",
            "invented_captions",
            [{"object": thing, "group": "male"} for thing in ("dog", "tie", "tie")],
            [["tie", "male", "a 1", "1"]],
        ),
    ],
)
def test_a_card_has_one_caption_of_each_kind(question, table, lines, shown):
    run = [{**x, "caption": f"a {i}", "image_id": str(i)} for i, x in enumerate(lines)]
    behind = ScreenExamples({table: {"r": run}})
    one = replace(result(), run_id="r")
    assert [x.rows for x in behind.one_of_each(question, one, ["tie"])] == [shown]


def test_three_captions_of_equal_speech_stand_behind_the_number_as_text(tmp_path):
    lines = [{"image_id": str(i), "before": f"a <b>{i}</b>", "after": f"a {i}"} for i in range(10)]
    built = replace(result("lic"), tables={"equal_speech_examples": lines})
    text = first_screen_of(tmp_path, built)
    title = "3 human captions before and after they were brought to equal style"
    assert title in unescape(text)
    assert [f"a &lt;b&gt;{i}&lt;/b&gt;" in text for i in range(4)] == [True, True, True, False]


# --- many


def test_five_hundred_captioners_end_in_time():
    noise = np.random.default_rng(0).normal(scale=0.01, size=(200, 2))
    results, draws = [], {}
    for i in range(500):
        one = result("lic", captioner=f"c{i}", value=i / 1000)
        results.append(one)
        draws[one.run_id] = {"score": Draws(np.full(2, i / 1000), i / 1000 + noise)}
    started = time.process_time()
    text = page(results, draws)
    assert time.process_time() - started < 10
    assert "500 are tested against it only" in text
    assert "<figure>" not in text


# --- in a browser


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    if PROGRAM is None:
        pytest.skip("no Chromium here")
    with browser(120) as running:
        yield running


@pytest.fixture(scope="module")
def written_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of one captioner with a hostile name, by long and short readings."""
    names = ("gender_error", "lic", "leakage", "quality")
    results = [
        result(name, captioner=REFRESH, words=5.0 if name == "lic" else 10) for name in names
    ]
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page(results, {}), encoding="utf-8")
    return path


def test_a_name_that_would_refresh_cannot_leave_the_page(chromium, written_page):
    chromium.show(written_page)
    time.sleep(0.3)
    assert chromium.run("document.querySelectorAll('meta[http-equiv=refresh]').length") == 0
    address = written_page.as_uri()
    assert (chromium.run("location.href"), chromium.requests) == (address, [address])


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)])
@pytest.mark.parametrize("dark", [False, True])
def test_the_answer_is_on_the_first_screen(chromium, written_page, width, height, dark):
    chromium.show(written_page, width, height, dark)
    bottom = chromium.run(
        "[...document.querySelectorAll('.verdict')].at(-1).getBoundingClientRect().bottom"
    )
    assert 0 < bottom < height
    assert chromium.run("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [1440, 800, 390])
def test_labels_neither_collide_nor_vanish(chromium, written_page, width):
    chromium.show(written_page, width, 900)
    boxes = chromium.run(
        "[...document.querySelectorAll('.line:not(.axis)')].map(line => [...line.children]"
        ".map(own => own.getBoundingClientRect().toJSON()))"
    )
    assert boxes
    for label, strip, value in boxes:
        for one, other in ((label, value), (strip, value), (label, strip)):
            apart_x = one["right"] <= other["left"] + 1 or other["right"] <= one["left"] + 1
            apart_y = one["bottom"] <= other["top"] + 5 or other["bottom"] <= one["top"] + 5
            assert apart_x or apart_y
        assert min(box[side] for box in (label, strip, value) for side in ("width", "height")) > 10


def test_print_has_the_answer_and_the_figure(chromium, written_page):
    chromium.show(written_page, 718, 1000)
    chromium.ask("Emulation.setEmulatedMedia", media="print")
    visible = "[...document.querySelectorAll('.verdict, .panel')].every(x => x.checkVisibility())"
    assert chromium.run(visible)
    assert chromium.run("document.documentElement.scrollWidth") <= 718
    chromium.ask("Emulation.setEmulatedMedia", media="")
