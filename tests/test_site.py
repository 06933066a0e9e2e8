"""The site: generated pages are those of the code, pages have a place, nothing is fetched."""

import doctest
import importlib
import re
import shlex
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from itertools import islice
from pathlib import Path
from statistics import median
from xml.etree import ElementTree

import pandas as pd
import pytest

from benchmarks.peers import peer_rows
from bias_pipeline.commands.main import WORDS, resolve_command
from bias_pipeline.metrics.catalogue import metric_names
from bias_pipeline.run import compose, overrides
from bias_pipeline.run.launch import parse_sweep
from docs.builder.__main__ import generated_pages
from docs.builder.benchmarks import benchmarks_page
from docs.builder.formulas import FORMULAS
from docs.builder.nav import Nav, nav
from docs.builder.papers import EXPERIMENTS, STANDINGS, count_standings, papers, select_rows
from docs.builder.sources import pages
from experiments.browser import PROGRAM, browser
from tests.corpora import REPOSITORY

PAPERS = papers()
ITEMS = [(paper, item) for paper in PAPERS for item in paper.items]
NAMES = [f"{paper.title} {item.item}" for paper, item in ITEMS]
LISTED = {command for _, item in ITEMS for command in item.commands}
PROGRAMS = sorted(command for command in LISTED if command.startswith("python -m "))
COMMANDS = sorted(LISTED - {*PROGRAMS})


def test_every_table_and_figure_of_the_papers_has_a_row():
    counts = {}
    for paper in PAPERS:
        kinds = Counter(item.item.partition(" ")[0] for item in paper.items)
        counts[paper.title] = (kinds["Table"], kinds["Figure"])
    assert counts == {
        "RELIC": (4, 1),
        "ImageCaptioner2": (8, 4),
        "DBAC": (17, 1),
        "Gender Score": (5, 2),
        "Vision-language models": (0, 11),
    }
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("paper", PAPERS, ids=[paper.title for paper in PAPERS])
def test_a_row_has_numbers_of_ours_or_says_why_not(paper):
    for item in paper.items:
        assert bool(item.ours) != bool(item.why_not), item
        assert bool(item.ours) == bool(item.differs), item
        for comparison in item.ours:
            assert len(comparison.pairs(paper.published)) >= 2, item
        assert (REPOSITORY / "experiments" / item.study / "README.md").is_file(), item


def test_numbers_stand_beside_those_of_the_same_captioner():
    (ratio, *_) = next(item for _, item in ITEMS if item.shows.startswith("gender bias of")).ours
    pairs = ratio.pairs("imagecaptioner2")
    assert pairs.loc["nic_plus"].round(2).to_dict() == {"ours": 2.89, "printed": 2.89}


def test_the_readme_counts_what_is_replicated():
    assert count_standings(PAPERS) in " ".join((REPOSITORY / "README.md").read_text().split())


@pytest.mark.parametrize(("paper", "item"), ITEMS, ids=NAMES)
def test_numbers_of_ours_have_a_standing(paper, item):
    assert item.standing in STANDINGS
    if item.ours:
        assert item.standing in ("replicated", "other data")


# Printed tables whose numbers are of another kind than the rows of the same metric.
OTHER_NUMBERS = {
    "DBAC Table 5": "coefficients over the encoders of tables 10 to 12",
    "DBAC Table 6": "coefficients over the encoders of tables 13 to 15",
    "ImageCaptioner2 Table 5": "judgements of people",
}


@cache
def rows_of_studies() -> pd.DataFrame:
    """Metric, attribute and captioner of all committed rows of studies, without printed numbers."""
    tables = []
    for path in sorted((REPOSITORY / "experiments").glob("*/*rows.csv")):
        rows = pd.read_csv(path, dtype=str)
        if {"metric", "attribute", "captioner"} <= set(rows) and "scenes" not in rows.get(
            "dataset", pd.Series(dtype=str)
        ).str.cat(sep=" "):
            tables.append(rows[["metric", "attribute", "captioner"]])
    return pd.concat(tables).drop_duplicates()


@pytest.mark.parametrize(("paper", "item"), ITEMS, ids=NAMES)
def test_a_reason_why_not_stands_only_where_no_study_has_rows(paper, item):
    """Rows of the item's metric and attribute for two of the captioners that it prints."""
    if item.ours or f"{paper.title} {item.item}" in OTHER_NUMBERS:
        return
    printed = pd.read_csv(
        REPOSITORY / "experiments" / "published" / f"{paper.published}.csv", dtype=str
    )
    of_item = printed["table"].str.fullmatch(re.escape(item.item.removeprefix("Table ")) + "[a-z]?")
    captioners = set(printed.loc[of_item, "row"])
    rows = rows_of_studies()
    for command in {*item.commands} & {*COMMANDS}:
        for words in islice(choices(command), 1):
            cell = compose_cell(*words)
            same = (rows["metric"] == cell.metric.name) & (
                rows["attribute"] == cell.tree["attribute"]["name"]
            )
            assert len(captioners & set(rows.loc[same, "captioner"])) < 2, command


def test_numbers_of_ours_say_their_seeds_by_the_rows():
    (item,) = (item for paper, item in ITEMS if f"{paper.title} {item.item}" == "RELIC Table 1")
    assert [comparison.seeds() for comparison in item.ours] == ["3 seeds", "10 seeds"]
    assert not [
        name for name, (_, item) in zip(NAMES, ITEMS, strict=True) if "seed" in item.differs
    ]


def test_what_differs_says_aligned_where_rows_of_imagecaptioner2_are():
    for paper, item in ITEMS:
        rows = [select_rows(EXPERIMENTS / one.rows, one.where) for one in item.ours]
        alignments = {
            alignment
            for table in rows
            if "alignment" in table
            for alignment in table.loc[table["metric"] == "imagecaptioner2", "alignment"]
        }
        if alignments:
            assert ("aligned" in item.differs) == (alignments != {"none"}), (paper.title, item.item)


@cache
def compose_cell(*words: str) -> compose.Cell:
    """A cell; several commands have some cells in common."""
    return compose.cell(words)


def choices(command: str) -> Iterator[tuple[str, ...]]:
    """The words of a command's first cell, then those of its other choices, one after another.

    Words that need a value of the reader's are left out.
    """
    word, words = resolve_command(shlex.split(command))
    assert word is not None
    settings = [text for text in words if "=" in text and not text.startswith("--")]
    if settings:
        options = overrides.options_of(settings)
        overrides.check_names(options)
        yield tuple(overrides.representative_overrides(options.overrides))
        yield from map(tuple, overrides.other_overrides(options.overrides))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_papers_composes(command):
    for first in islice(choices(command), 1):
        compose_cell(*first)


@pytest.mark.slow
def test_every_other_choice_of_the_papers_composes():
    for command in COMMANDS:
        for other in islice(choices(command), 1, None):
            compose_cell(*other)


def test_every_other_experiment_composes():
    names = {path.stem for path in (REPOSITORY / "conf" / "experiment").glob("[!_]*.yaml")}
    composed = {name for text in COMMANDS for name in re.findall(r"experiment=(\w+)", text)}
    assert composed <= names
    for name in names - composed:
        assert parse_sweep([f"experiment={name}"]).config


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_of_the_papers_is_there_and_its_cell_composes(program):
    study = importlib.import_module(shlex.split(program)[2])
    assert 'if __name__ == "__main__":' in Path(study.__file__ or "").read_text(encoding="utf-8")
    compose.cell([*study.CELL])


def test_a_formula_is_that_of_a_metric():
    """A metric may have none: its page then has no section of a formula."""
    assert {*FORMULAS} - {*metric_names()} == set()


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_an_example_by_hand_gives_what_it_says(name):
    example = doctest.DocTestParser().get_doctest(FORMULAS[name].code, {}, name, None, None)
    assert doctest.DocTestRunner(verbose=False).run(example).failed == 0
    numbers = re.findall(r"\d+\.\d+|\d+", FORMULAS[name].code.splitlines()[-1])
    sentence = FORMULAS[name].by_hand
    assert [number for number in numbers if number.rstrip("0").rstrip(".") not in sentence] == []


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_a_formula_is_well_formed(name):
    for line in FORMULAS[name].lines:
        assert ElementTree.fromstring(line).tag.startswith("m")


def listed_paths(entries: Nav | list[object]) -> Iterator[str]:
    """The paths of a navigation."""
    for entry in entries:
        match entry:
            case str():
                yield entry
            case dict():
                for below in entry.values():
                    yield from listed_paths(below if isinstance(below, list) else [below])


@pytest.fixture(scope="module")
def made_pages() -> dict[str, str]:
    return generated_pages()


def test_every_page_has_one_place(made_pages):
    places = Counter(listed_paths(nav(list(made_pages))))
    assert set(places) == {str(page) for page in pages()} | set(made_pages)
    assert [path for path, count in places.items() if count > 1] == []


def test_the_reference_has_every_command(made_pages):
    text = made_pages["docs/commands.md"]
    assert [word.name for word in WORDS if f"\n## `{word.name}`\n" not in text] == []


def test_a_tutorial_has_the_figures_of_its_notebook(made_pages):
    text = made_pages["docs/tutorials/retrieval.md"]
    assert text.startswith("# Retrieval")
    assert text.count("(data:image/png;base64,") == 4
    assert "<style" not in text


def test_the_page_of_benchmarks_has_the_recorded_ratios():
    ratios = defaultdict(list)
    for row in peer_rows():
        ratios[row["package"]].append(float(row["theirs"]) / float(row["ours"]))
    for package, values in ratios.items():
        (line,) = [line for line in benchmarks_page().splitlines() if f"| {package} " in line]
        assert f"| {median(values):.1f} [{min(values):.1f}, {max(values):.1f}] |" in line


class Requests(HTMLParser):
    """What a browser fetches to show a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        shown = tag != "a" and (
            tag != "link" or values.get("rel") not in ("canonical", "prev", "next")
        )
        addresses = [values.get(name) for name in ("src", "href", "srcset", "data")]
        self.addresses += [text for text in addresses if text and shown]


def fetched_addresses(folder: Path) -> set[str]:
    """The addresses elsewhere that pages and style sheets of a folder fetch."""
    addresses: set[str] = set()
    for path in folder.rglob("*.html"):
        parser = Requests()
        parser.feed(path.read_text(encoding="utf-8"))
        addresses.update(parser.addresses)
    for path in folder.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        addresses.update(re.findall(r"url\(['\"]?([^'\")]+)", text))
        addresses.update(re.findall(r"@import ['\"]([^'\"]+)", text))
    return {text for text in addresses if re.match(r"(https?:)?//", text)}


def test_a_font_of_another_server_would_be_noticed(tmp_path):
    (tmp_path / "a.html").write_text('<link rel="stylesheet" href="//fonts.example/a.css">')
    (tmp_path / "b.css").write_text("@font-face { src: url(https://fonts.example/a.woff) }")
    assert fetched_addresses(tmp_path) == {"//fonts.example/a.css", "https://fonts.example/a.woff"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly: a broken link or a page without a place would end the build."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "docs.builder", str(folder)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return folder


@pytest.mark.slow
def test_the_site_fetches_nothing(site):
    assert (site / "docs" / "metrics" / "lic.html").is_file()
    assert fetched_addresses(site) == set()


SEARCH = """
const field = document.querySelector('.md-search__input');
field.focus();
field.value = 'misgender';
for (const kind of ['input', 'keyup']) field.dispatchEvent(new Event(kind, {bubbles: true}));
"""


@pytest.mark.slow
@pytest.mark.skipif(PROGRAM is None, reason="no Chromium")
def test_search_works_in_a_page_opened_from_disk(site):
    with browser(120) as opened:
        opened.show(site / "index.html")
        opened.run(SEARCH)
        opened.wait_for("document.querySelectorAll('.md-search-result__item').length > 2", 60)
        elsewhere = [address for address in opened.requests if address.startswith("http")]
    assert (elsewhere, opened.complaints) == ([], [])
