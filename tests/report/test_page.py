"""The report: one page that holds every finished run and nothing foreign."""

import math
import re
import time
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pytest

from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.metrics.catalogue import bibtex, infos, metric_names
from bias_pipeline.report.figures import PRINT, forest, scatter
from bias_pipeline.report.page import page, write_page
from bias_pipeline.report.sections import directions
from bias_pipeline.results.rows import Result
from bias_pipeline.results.store import ResultStore
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


MANIFEST = {"metric": LOWER, "notes": []}


def directional(captioner: str, metric: str = "dbac") -> Result:
    rows = [
        row(captioner=captioner, metric=metric, part=part, value=value)
        for part, value in (("a_to_t", 0.2), ("t_to_a", -0.1))
    ]
    return Result(captioner, rows, MANIFEST)


# --- what is on the page


PAIR = [directional("sat"), directional("oscar")]


@pytest.mark.parametrize(
    ("results", "words"),
    [
        ([result("sat"), result("oscar")], "sat"),
        ([result("sat"), result("oscar")], "oscar"),
        ([result(value=0.123, ci_low=0.1, ci_high=0.15)], "12.3 [10.0, 15.0] ↑"),
        ([result()], "50.0 [50.0, 50.0]"),  # though it cannot be compared
        ([result(note="read this")], "cap: read this"),
        ([result()], "cap †"),  # of unknown training
        ([result()], "hirota2022lic"),
        (PAIR, 'aria-label="dbac: directions, x, x"'),
        (PAIR, "The numbers of the figure"),
    ],
)
def test_it_is_on_the_page(results, words):
    assert words in page(results, {})


def test_captioners_are_put_into_groups_that_differ_the_fairest_first():
    results = [result("unfair", value=0.5), result("fair", value=0.1)]
    draws = {"run-fair": {"score": draw(0.1)}, "run-unfair": {"score": draw(0.5)}}
    text = page(results, draws)
    standings = text.partition("Fairest first")[2]
    assert re.findall(r"<td>([ab])</td>", text) == ["a", "b"]
    assert standings.index("fair<") < standings.index("unfair<")


def test_no_figure_has_one_dot():
    assert "<figure>" not in page([directional("sat"), result("sat")], {})


def test_there_are_at_most_fifteen_headings_of_the_second_level():
    results = [
        replace(directional(str(name), f"m{i}"), run_id=f"{i}-{name}")
        for i in range(16)
        for name in range(21)  # too many for figures, which would take long
    ]
    lines = [tag for tag, _ in Elements(page(results, {})).elements]
    assert lines.count("h3") > 15 >= lines.count("h2")


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


NASTY = [*HOSTILE, '"><img src=x onerror=alert(1)>', "$\\frac{1}{"]


def test_hostile_text_makes_no_element():
    harmless = page([result(f"cap{i}", f"note {i}") for i in range(len(NASTY))], {})
    hostile = page([result(text, f"a note {text}") for text in NASTY], {})
    tags = [[tag for tag, _ in Elements(text).elements] for text in (harmless, hostile)]
    assert tags[0] == tags[1]


@pytest.mark.parametrize("sign", ["\u202e", "\u2066", "\x1b", "\x00", "\ud800"])
def test_signs_that_turn_text_around_are_written_out(sign):
    assert sign not in page([result(f"a{sign}b", f"a{sign}b")], {})


def test_the_page_asks_for_nothing_from_elsewhere_and_embeds_nothing():
    elements = Elements(page([result(), directional("sat")], {})).elements
    links = [
        str(value)
        for tag, attributes in elements
        for key, value in attributes.items()
        if key in ("src", "href", "action", "data") and tag != "use"
    ]
    policies = [str(a["content"]) for tag, a in elements if tag == "meta" and "content" in a]
    assert [link for link in links if not link.startswith("#")] == []
    assert not {tag for tag, _ in elements} & {"iframe", "object", "embed", "form"}
    assert any(policy.startswith("default-src 'none'") for policy in policies)


def test_the_same_results_make_the_same_page():
    assert page([result(), directional("sat")], {}) == page([result(), directional("sat")], {})


@pytest.mark.parametrize("name", ["a $x^2$ b", "a_b^c", "\\alpha"])
def test_a_name_in_a_figure_is_no_formula(name):
    assert name in Elements(forest([row(captioner=name)], 0.0, "t").inline()).text


def test_a_plane_has_its_lines_where_there_is_no_bias():
    ratios = {**MANIFEST, "metric": {**LOWER, "neutral": {"a_to_t": 1.0, "t_to_a": 1.0}}}
    pair = [replace(directional(name), manifest=ratios) for name in ("sat", "oscar")]
    (section,) = directions(pair)
    with section.figures[0]._draw(PRINT) as figure:
        across, up = (line.get_xydata() for line in figure.axes[0].lines[:2])
    assert (across[:, 0].tolist(), up[:, 1].tolist()) == ([100.0] * 2,) * 2  # per cent


def test_a_figure_takes_its_colours_from_the_page():
    svg = scatter([(row(), row())], "t", ("a", "b")).inline()
    colours = {"none", "var(--ink)", "var(--faint)", "var(--mark)"}
    assert set(re.findall(r"(?:fill|stroke): ([^;\"]+)", svg)) <= colours


# --- legible


@cache
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


LEGIBLE = [(text, "paper", 4.5) for text in ("ink", "faint", "mark", "up", "down")]
LEGIBLE += [("ink", ground, 4.5) for ground in ("shade", "to", "from")]
LEGIBLE += [("faint", ground, 3) for ground in ("paper", "shade")]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("sign", "ground", "ratio"), LEGIBLE)
def test_text_is_legible_and_the_border_of_a_control_is_seen(theme, sign, ground, ratio):
    """WCAG AA: 4.5 to 1 for text of any size, 3 to 1 for what tells a control."""
    colours = themes()[theme]
    assert contrast(colours[sign], colours[ground]) >= ratio


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


def test_the_page_of_a_folder_is_written_and_may_be_read_by_others(tmp_path):
    for cell in (result("c0", value=0.0), result("c1", value=0.5)):
        ResultStore(tmp_path / "runs").save(cell)
    path = tmp_path / "new" / "page.html"
    write_page(tmp_path / "runs", path)
    (tmp_path / "plain").write_text("")
    assert "c1" in path.read_text(encoding="utf-8")
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_folder_above_that_of_runs_is_refused_with_the_fix(tmp_path):
    ResultStore(tmp_path / "outputs").save(result("c0"))
    with pytest.raises(DataError, match=r"but .*outputs does; name that"):
        write_page(tmp_path, tmp_path / "report.html")


def test_the_folder_of_one_run_is_refused_with_the_fix(tmp_path):
    ResultStore(tmp_path).save(cell := result("c0"))
    with pytest.raises(DataError, match="name the folder that contains it"):
        write_page(tmp_path / cell.run_id, tmp_path / "page.html")


@pytest.mark.parametrize(
    ("folder", "error", "message"),
    [(".", DataError, "no finished run"), ("nowhere", ResourceError, "nowhere")],
)
def test_a_folder_without_runs_is_refused(folder, error, message, tmp_path):
    with pytest.raises(error, match=message):
        write_page(tmp_path / folder, tmp_path / "page.html")


def test_a_thousand_rows_stay_small_and_quick():
    results = []
    for i in range(500):
        fields = {"captioner": f"c{i // 10}", "metric": f"m{i % 10}", "value": i // 10 / 50}
        headline = row(**fields, run_id=f"run-{i}")
        rows = [headline, replace(headline, part="group:a")]
        results.append(Result(headline.run_id, rows, MANIFEST))
    draws = {result.run_id: {"score": draw(result.rows[0].value)} for result in results}
    started = time.process_time()
    html = page(results, draws)
    assert (len(html) < 5_000_000, time.process_time() - started < 10) == (True, True)


# --- in a real browser; pages that answer are in test_interaction.py


@pytest.mark.skipif(PROGRAM is None, reason="no Chromium here")
def test_a_browser_shows_a_page_without_complaint(tmp_path):
    path = tmp_path / "page.html"
    path.write_text(page(PAIR, {}), encoding="utf-8")
    with browser() as opened:
        opened.show(path)
        opened.run("document.querySelectorAll('details').forEach(own => own.open = true)")
        assert opened.run("document.querySelector('figure svg').checkVisibility()")
        assert (opened.complaints, opened.requests) == ([], [path.as_uri()])
