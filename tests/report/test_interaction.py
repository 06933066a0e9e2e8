"""The page answers, to its own script alone: in a real Chromium, with hostile names in it."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bias_pipeline.report.figures import forest, scatter
from bias_pipeline.report.page import page
from bias_pipeline.results.rows import Result
from experiments.browser import PROGRAM, Browser, browser
from tests.report.test_page import Elements, directional, draw, result
from tests.report.test_tables import row

HOSTILE = "</script><script>window.harmed = 1</script><img src=x onerror='harmed = 1'>"
TURNED = "a\u202eb"
WAYS = "a[href], button, input, select, summary, [tabindex='0']"


# --- what is written


def test_the_policy_permits_the_script_of_the_page_and_no_other():
    text = page([result(), directional("sat")], {})
    permitted = re.search(r"script-src ([^\"]*)\"", text)
    assert permitted
    (script,) = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert permitted[1] == f"'sha256-{digest}'"
    assert "unsafe-eval" not in text


@pytest.mark.parametrize(
    "plot", [forest([row()], 0.5, "t"), scatter([(row(), row())], "t", ("a", "b"))]
)
def test_pointing_at_a_mark_or_a_name_tells_the_numbers(plot):
    text = plot.inline()
    groups = re.findall(r'<g data-captioner="x"><title>([^<]*)</title>', text)
    assert len(groups) > 2  # the point, an interval and the name
    assert all(title.startswith("x: ") and "50.0 [50.0, 50.0]" in title for title in groups)


def test_files_of_figures_have_no_marks_for_pages():
    assert "data-captioner" not in forest([row()], 0.5, "t").svg()


def test_a_name_cannot_end_the_marks_of_a_figure():
    name = '"></title><img src=x>'
    text = scatter([(row(captioner=name), row())], "t", ("a", "b")).inline()
    assert "img" not in {tag for tag, _ in Elements(text).elements}


# --- in a browser


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    if PROGRAM is None:
        pytest.skip("no Chromium here")
    with browser(300) as running:
        yield running


@pytest.fixture(scope="module")
def written_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of two metrics and four captioners, two of them hostile."""
    names = ("sat", "oscar", HOSTILE, TURNED)
    plain = [result(name, value=0.1 + i / 10) for i, name in enumerate(names)]
    directed = []
    for i, name in enumerate(names):
        rows = [
            row(captioner=name, metric="dbac", part=part, value=sign * (0.1 + i / 10))
            for part, sign in (("a_to_t", 1), ("t_to_a", -1))
        ]
        directed.append(Result(f"dbac-{i}", rows, directional(name).manifest))
    draws = {item.run_id: {"score": draw(item.rows[0].value)} for item in plain}
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page([*plain, *directed], draws), encoding="utf-8")
    return path


@pytest.fixture
def shown_page(chromium: Browser, written_page: Path) -> Browser:
    """The page, all of it unfolded."""
    chromium.show(written_page)
    _unfold(chromium)
    return chromium


def _unfold(chromium: Browser) -> None:
    chromium.run("document.querySelectorAll('details').forEach(own => own.open = true)")


def _visible(chromium: Browser, selector: str) -> list[str]:
    """Texts of the elements that are shown."""
    texts = chromium.run(
        f"[...document.querySelectorAll({json.dumps(selector)})]"
        ".filter(own => own.checkVisibility()).map(own => own.textContent)"
    )
    return list(texts)


def _names(chromium: Browser) -> list[str]:
    """Captioners of the overview."""
    return _visible(chromium, "#c1 ~ section > details > .scroll tbody th")


def _find(chromium: Browser, text: str) -> None:
    chromium.run("document.getElementById('find').focus()")
    chromium.write(text)


def _choose(chromium: Browser, metric: str) -> None:
    chromium.run(f"metric.value = {json.dumps(metric)}; metric.dispatchEvent(new Event('change'))")


def test_figures_answer_without_complaint_or_request(shown_page, written_page):
    _find(shown_page, "sat")
    _choose(shown_page, "dbac")
    assert (shown_page.complaints, shown_page.requests) == ([], [written_page.as_uri()])


TEXTS = "[...document.querySelectorAll('figure svg text')].map(own => own.textContent)"
FIELDS = "[...document.querySelectorAll('input, select')]"
DRAWN = {  # a script, and what it must give
    "controls have names": (f"{FIELDS}.filter(own => !own.labels.length).length", 0),
    "a hostile name runs nothing": ("String(window.harmed)", "undefined"),
    "it is text in a figure": (f"{TEXTS}.some(text => text.startsWith('</script>'))", True),
    "it turns no text around": ("document.documentElement.outerHTML.includes('\\u202e')", False),
}


@pytest.fixture(scope="module")
def facts(chromium: Browser, written_page: Path) -> dict[str, object]:
    """What the scripts give, and the captioners of the overview."""
    chromium.show(written_page)
    _unfold(chromium)
    given = {name: chromium.run(script) for name, (script, _) in DRAWN.items()}
    return {**given, "captioners": _names(chromium)}


@pytest.mark.parametrize("name", DRAWN)
def test_of_a_page(name, facts):
    assert facts[name] == DRAWN[name][1]


def test_a_hostile_name_is_text_in_the_overview(facts):
    assert facts["captioners"][2] == HOSTILE + " †"


@pytest.mark.parametrize("opened", [False, True])
def test_the_keyboard_reaches_every_control(shown_page, opened):
    shown_page.run(
        f"document.querySelectorAll('details').forEach(own => own.open = {json.dumps(opened)})"
    )
    shown_page.run(
        f"window.ways = [...document.querySelectorAll({json.dumps(WAYS)})]"
        ".filter(own => own.checkVisibility())"
    )
    shown_page.run("ways[0].focus()")
    reached = [0]
    for _ in range(shown_page.run("ways.length - 1")):
        shown_page.press("Tab", 9)
        reached.append(shown_page.run("ways.indexOf(document.activeElement)"))
    assert reached == list(range(len(reached)))


def test_focus_is_seen(shown_page):
    shown_page.press("Tab", 9)
    assert shown_page.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_captioners_are_found_by_parts_of_their_names_and_come_back(shown_page):
    _find(shown_page, "SA, osc")
    assert _names(shown_page) == ["sat †", "oscar †"]
    for _ in "SA, osc":
        shown_page.press("Backspace", 8)
    assert len(_names(shown_page)) == 4


def test_it_is_told_how_many_are_left(shown_page):
    _find(shown_page, "sat")
    assert _visible(shown_page, "#told") == ["1 of 4 captioners"]


@pytest.mark.parametrize("figure", [0, 1])
def test_figures_show_the_captioners_that_are_left(shown_page, figure):
    _find(shown_page, "oscar")
    marks = f"document.querySelectorAll('figure')[{figure}].querySelectorAll('[data-captioner]')"
    names = shown_page.run(
        f"[...{marks}].filter(own => getComputedStyle(own).display != 'none')"
        ".map(own => own.dataset.captioner)"
    )
    assert set(names) == {"oscar"}


def test_a_metric_leaves_its_own_sections_columns_and_links(shown_page):
    assert "Directions" in _visible(shown_page, "nav a")
    _choose(shown_page, "dbac")
    assert [text for text in _visible(shown_page, ".chapter h3") if text.startswith("lic")] == []
    _choose(shown_page, "lic")
    head = _visible(shown_page, "#c1 ~ section > details > .scroll thead th")
    assert head == ["captioner", "lic", "images", "coverage", "no group"]
    assert "Directions" not in _visible(shown_page, "nav a")


@pytest.mark.parametrize(
    ("dark", "colour"), [(False, "rgb(11, 87, 164)"), (True, "rgb(125, 184, 245)")]
)
def test_figures_are_light_or_dark_with_the_page(chromium, written_page, dark, colour):
    chromium.show(written_page, dark=dark)
    _unfold(chromium)
    dot = "document.querySelector('figure [data-captioner] use')"
    assert chromium.run(f"getComputedStyle({dot}).fill") == colour


def test_a_phone_shows_the_page_without_scrolling_sideways(chromium, written_page):
    chromium.show(written_page, width=390, height=844)
    _unfold(chromium)
    assert chromium.run("document.documentElement.scrollWidth") <= 390


def test_print_has_everything_but_controls_and_the_settings_of_runs(shown_page):
    _find(shown_page, "sat")
    shown_page.ask("Emulation.setEmulatedMedia", media="print")
    assert len(_names(shown_page)) == 4
    assert _visible(shown_page, "#filter, #runs ~ details pre") == []
    assert len(_visible(shown_page, "figure")) == shown_page.run(
        "document.querySelectorAll('figure').length"
    )
    shown_page.ask("Emulation.setEmulatedMedia", media="")


def test_printed_tables_fit_on_paper(chromium, written_page):
    chromium.show(written_page, width=718, height=1000)  # A4 less its margins, in CSS pixels
    chromium.ask("Emulation.setEmulatedMedia", media="print")
    wide = "[...document.querySelectorAll('table')].filter(t => t.offsetWidth > 718).length"
    assert chromium.run(wide) == 0
    chromium.ask("Emulation.setEmulatedMedia", media="")


def test_without_scripts_the_figures_stand_still(chromium, written_page):
    chromium.ask("Emulation.setScriptExecutionDisabled", value=True)
    try:
        chromium.show(written_page)
        chromium.run("document.querySelectorAll('details').forEach(own => own.open = true)")
        assert _visible(chromium, "#filter") == []
        assert len(_visible(chromium, "figure")) > 0
    finally:
        chromium.ask("Emulation.setScriptExecutionDisabled", value=False)
