"""The report: one page that holds every finished run and nothing foreign."""

import math
import re
import sys
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.metrics.catalogue import bibtex, infos, metric_names
from bias_pipeline.report.figures import forest, quadrants
from bias_pipeline.report.page import page, write_page
from bias_pipeline.results.store import Result, ResultStore
from bias_pipeline.stats.bootstrap import Draws
from experiments.browser import PROGRAM, browser
from tests.report.test_tables import HOSTILE, row

LOWER = {"title": "Leakage", "direction": "lower is fairer", "neutral": {"score": 0.0}}


class Elements(HTMLParser):
    """Every element of a page with its attributes, and the text outside of styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def result(captioner: str = "cap", note: str = "", **more: object) -> Result:
    headline = row(captioner=captioner, metric="lic", run_id=f"run-{captioner}", **more)
    manifest = {"metric": LOWER, "notes": [note] if note else [], "config": None}
    return Result(headline.run_id, [headline, replace(headline, part="group:a")], manifest)


def draw(value: float) -> Draws:
    return Draws(np.full(2, value), value + 0.01 * np.random.default_rng(0).normal(size=(50, 2)))


def directional(captioner: str) -> Result:
    rows = [
        row(captioner=captioner, metric="dbac", part=part, value=value)
        for part, value in (("a_to_t", 0.2), ("t_to_a", -0.1))
    ]
    return Result(captioner, rows, {"metric": LOWER, "notes": []})


# --- what is on the page


def test_every_captioner_is_on_the_page():
    text = Elements(page([result("sat"), result("oscar")], {})).text
    assert "sat" in text
    assert "oscar" in text


def test_a_headline_stands_with_its_interval():
    assert "12.3 [10.0, 15.0] ↑" in page([result(value=0.123, ci_low=0.1, ci_high=0.15)], {})


def test_captioners_are_put_into_groups_that_differ():
    results = [result("fair", value=0.1), result("unfair", value=0.5)]
    draws = {"run-fair": {"score": draw(0.1)}, "run-unfair": {"score": draw(0.5)}}
    cells = re.findall(r"<td>([ab])</td>", page(results, draws))
    assert cells == ["a", "b"]


def test_the_fairest_stands_first():
    results = [result("unfair", value=0.5), result("fair", value=0.1)]
    draws = {"run-fair": {"score": draw(0.1)}, "run-unfair": {"score": draw(0.5)}}
    standings = page(results, draws).partition("Fairest first")[2]
    assert standings.index("fair<") < standings.index("unfair<")


def test_what_cannot_be_compared_is_in_the_overview():
    assert "50.0 [50.0, 50.0]" in page([result()], {})


def test_directions_have_a_figure():
    text = page([directional("sat"), directional("oscar")], {})
    assert 'aria-label="dbac: directions, x, x"' in text


def test_no_figure_has_one_dot():
    assert "<figure>" not in page([directional("sat"), result("sat")], {})


def test_every_figure_has_its_numbers_in_a_table():
    result = page([directional("sat"), directional("oscar")], {}).partition("dbac: directions")[2]
    assert "The numbers of the figure" in result


def test_metrics_are_correlated_over_enough_captioners():
    results = [result(f"c{i}", value=i / 10) for i in range(4)]
    more = [
        Result(f"l{i}", [row(captioner=f"c{i}", metric="leakage", value=i / 9)], {})
        for i in range(4)
    ]
    assert "Rank correlation (Spearman) of headlines over 4 captioners" in page(results + more, {})


def test_there_are_at_most_fifteen_headings_of_the_second_level():
    results = [
        replace(item, run_id=f"{i}-{name}", rows=[replace(r, metric=f"m{i}") for r in item.rows])
        for i in range(16)
        for name in map(str, range(21))  # too many for figures, which would take long
        for item in [directional(name)]
    ]
    lines = [tag for tag, _ in Elements(page(results, {})).elements]
    assert lines.count("h3") > 15 >= lines.count("h2")


def test_notes_of_runs_are_told():
    assert "cap: read this" in page([result(note="read this")], {})


def test_an_absent_number_is_a_dash():
    nan = dict.fromkeys(("value", "ci_low", "ci_high", "p_value"), math.nan)
    assert "nan" not in Elements(page([result(**nan)], {})).text.lower()


def test_a_part_that_no_captioner_has_is_left_to_the_rows():
    whole = result()
    absent = replace(whole.rows[0], part="object:tie", value=math.nan)
    results = [replace(whole, rows=[*whole.rows, absent])]
    text = Elements(page(results, {whole.run_id: {"score": draw(0.5)}})).text
    assert "group:a" in text
    assert "object:tie" not in text
    assert "1 more in rows.csv" in text


def test_captioners_of_unknown_training_are_marked():
    assert "cap †" in page([result()], {})


def test_metrics_are_cited():
    assert "hirota2022lic" in page([result()], {})


@pytest.mark.parametrize("metric", [name for name in metric_names() if infos()[name].sources])
def test_a_source_has_all_that_a_citation_needs(metric):
    for entry in bibtex([metric]).split("\n@"):
        assert [name for name in ("author", "title", "year") if f"  {name} = {{" not in entry] == []
        assert re.search("  (booktitle|journal|howpublished) = {", entry), entry


@pytest.mark.parametrize("metric", metric_names())
def test_every_source_has_an_entry_with_a_title(metric):
    assert bibtex([metric]).count("\n  title = {") == len(infos()[metric].sources)


def test_a_source_is_cited_once():
    assert bibtex(["gender_error", "gender_ratio"]).count("{hendricks2018snowboard,") == 1


# --- nothing foreign


@pytest.mark.parametrize("text", [*HOSTILE, '"><img src=x onerror=alert(1)>', "$\\frac{1}{"])
def test_e9_hostile_text_makes_no_element(text):
    harmless = [tag for tag, _ in Elements(page([result("cap", "note")], {})).elements]
    hostile = [tag for tag, _ in Elements(page([result(text, text)], {})).elements]
    assert hostile == harmless


@pytest.mark.parametrize("sign", ["\u202e", "\u2066", "\x1b", "\x00", "\ud800"])
def test_e7_signs_that_turn_text_around_are_written_out(sign):
    assert sign not in page([result(f"a{sign}b", f"a{sign}b")], {})


def test_the_page_asks_for_nothing_from_elsewhere():
    links = [
        value
        for tag, attributes in Elements(page([result(), directional("sat")], {})).elements
        for key, value in attributes.items()
        if key in ("src", "href", "action", "data") and tag != "use"
    ]
    assert [link for link in links if not str(link).startswith("#")] == []


def test_the_page_embeds_nothing():
    tags = {tag for tag, _ in Elements(page([result()], {})).elements}
    assert not tags & {"iframe", "object", "embed", "form"}


def test_without_altair_the_page_runs_nothing(monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    text = page([result(), directional("sat")], {})
    tags = {tag for tag, _ in Elements(text).elements}
    assert not tags & {"script", "input", "select", "button"}
    assert "script-src" not in text


def test_without_altair_it_is_said_what_is_lacking(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "altair", None)
    page([result()], {})
    assert "bias_pipeline[report]" in caplog.text


def test_the_browser_is_told_to_load_nothing():
    policy = [
        a for tag, a in Elements(page([result()], {})).elements if tag == "meta" and "content" in a
    ]
    assert any(str(a["content"]).startswith("default-src 'none'") for a in policy)


def test_the_same_results_make_the_same_page():
    assert page([result(), directional("sat")], {}) == page([result(), directional("sat")], {})


@pytest.mark.parametrize("name", ["a $x^2$ b", "a_b^c", "\\alpha"])
def test_a_name_in_a_figure_is_no_formula(name):
    assert name in Elements(forest([row(captioner=name)], 0.0, "t").inline()).text


def test_a_figure_takes_its_colours_from_the_page():
    svg = quadrants([(row(), row())], "t").inline()
    assert set(re.findall(r"(?:fill|stroke): ([^;\"]+)", svg)) <= {
        "none",
        "var(--ink)",
        "var(--faint)",
        "var(--mark)",
    }


# --- legible


def themes() -> dict[str, dict[str, str]]:
    """Light and dark: the page's colours by name."""
    (light, dark) = re.findall(r":root \{([^}]*)\}", page([result()], {}))
    return {
        name: dict(re.findall(r"--([a-z]+): (#[0-9a-f]+);", text))
        for name, text in (("light", light), ("dark", dark))
    }


def contrast(one: str, other: str) -> float:
    """Of two colours, as WCAG 2.2 defines it."""

    def luminance(colour: str) -> float:
        digits = colour[1:] if len(colour) == 7 else "".join(2 * sign for sign in colour[1:])
        parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
        return sum(weight * x for weight, x in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_that_of_the_standard():
    assert (contrast("#fff", "#000000"), contrast("#777", "#777")) == (21, 1)


TEXT_ON = [(text, "paper") for text in ("ink", "faint", "mark", "up", "down")]
TEXT_ON += [("ink", ground) for ground in ("shade", "to", "from")]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("text", "ground"), TEXT_ON)
def test_text_is_legible(theme, text, ground):
    """WCAG AA: 4.5 to 1 for text of any size."""
    colours = themes()[theme]
    assert contrast(colours[text], colours[ground]) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("ground", ["paper", "shade"])
def test_controls_have_a_border_that_is_seen(theme, ground):
    """WCAG AA: 3 to 1 for what tells a control."""
    colours = themes()[theme]
    assert contrast(colours["faint"], colours[ground]) >= 3


def test_a_theme_lacks_no_colour():
    light, dark = themes().values()
    assert light.keys() == dark.keys()
    assert set(re.findall(r"var\(--([a-z]+)\)", page([result()], {}))) <= light.keys()


def test_whatever_scrolls_or_folds_is_reached_by_keyboard():
    elements = Elements(page([result(), directional("sat")], {})).elements
    scrolling = [item for tag, item in elements if tag == "pre" or item.get("class") == "scroll"]
    assert scrolling
    assert all(item.get("tabindex") == "0" for item in scrolling)


# --- files


def store(folder: Path, count: int = 2) -> Path:
    for i in range(count):
        ResultStore(folder).save(result(f"c{i}", value=i / count))
    return folder


def test_the_page_of_a_folder_is_written(tmp_path):
    write_page(store(tmp_path / "runs"), tmp_path / "new" / "page.html")
    assert "c1" in (tmp_path / "new" / "page.html").read_text(encoding="utf-8")


def test_a_page_may_be_read_by_others(tmp_path):
    write_page(store(tmp_path / "runs"), tmp_path / "page.html")
    (tmp_path / "plain").write_text("")
    assert (tmp_path / "page.html").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_an_empty_folder_has_nothing_to_report(tmp_path):
    with pytest.raises(DataError, match="no finished run"):
        write_page(tmp_path, tmp_path / "page.html")


def test_an_absent_folder_is_named(tmp_path):
    with pytest.raises(ResourceError, match="nowhere"):
        write_page(tmp_path / "nowhere", tmp_path / "page.html")


def test_a_thousand_rows_stay_small_and_quick():
    def one(metric: str, captioner: int) -> Result:
        name = f"{metric}-{captioner}"
        headline = row(captioner=f"c{captioner}", metric=metric, run_id=name, value=captioner / 50)
        return Result(
            name, [headline, replace(headline, part="group:a")], {"metric": LOWER, "notes": []}
        )

    results = [one(f"m{i % 10}", i // 10) for i in range(500)]
    draws = {result.run_id: {"score": draw(result.rows[0].value)} for result in results}
    started = time.process_time()
    html = page(results, draws)
    assert (len(html) < 5_000_000, time.process_time() - started < 10) == (True, True)


# --- in a real browser; pages that answer are in test_interaction.py


@pytest.mark.skipif(PROGRAM is None, reason="no Chromium here")
def test_a_browser_shows_a_page_without_altair_without_complaint(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    path = tmp_path / "page.html"
    pair = [directional("sat"), directional("oscar")]
    path.write_text(page(pair, {}), encoding="utf-8")
    with browser() as opened:
        opened.show(path)
        opened.run("document.querySelectorAll('details').forEach(own => own.open = true)")
        assert opened.run("document.querySelector('.still svg').checkVisibility()")
        assert (opened.complaints, opened.requests) == ([], [path.as_uri()])
