"""Installed packages that announce metrics by entry points: known by name, run only if included."""

import json
import sys
from pathlib import Path

import pytest

import bias_pipeline as bp
from bias_pipeline.errors import UsageError
from bias_pipeline.io import plugins
from bias_pipeline.io.paths import VARIABLE
from bias_pipeline.metrics import catalogue
from bias_pipeline.run import targets
from tests.cli.commands import results
from tests.documents import own_package

CELL = ("dataset.n_images=200", "seeds=1", "stats.resamples=20", "logger=csv")
ENTRIES = """\
[bias_pipeline]
metric.silence = mine.silence:Silence
attribute.mood = mine
encoder.bag = mine
no_group = mine
metric.\x1b[31m = mine
metric.odd = ../mine

[console_scripts]
mine = mine:main
"""


@pytest.fixture(autouse=True)
def site(tmp_path_factory, monkeypatch):
    """A folder of installed packages with one that announces what CONTRIBUTING.md adds."""
    folder = tmp_path_factory.mktemp("site")
    own_package(folder, "mine")
    record = folder / "mine_of_bias-1.2.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: mine-of-bias\nVersion: 1.2\n")
    (record / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "mine"]:
        del sys.modules[name]
    for known in (targets._defined_class, targets.parameters_of, catalogue.metric_class):
        known.cache_clear()


def test_what_is_announced_is_known_by_name_without_its_code():
    release = "mine-of-bias 1.2"
    assert [plugin for plugin in plugins.announced_plugins() if plugin.package == "mine"] == [
        ("attribute", "mood", "mine", release),
        ("encoder", "bag", "mine", release),
        ("metric", "silence", "mine", release),
    ]
    assert "mine" not in sys.modules


@pytest.mark.parametrize("words", [["metrics"], ["--help"], ["doctor"]], ids=" ".join)
def test_it_is_listed_with_how_to_include_it(ok, words):
    assert "metric=silence: --include mine (mine-of-bias 1.2)\n" in ok(*words)
    assert "mine" not in sys.modules


def test_nothing_is_listed_where_nothing_is_announced(ok, monkeypatch, site):
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(site)])
    assert "announced" not in ok("metrics") + ok("--help")


@pytest.mark.parametrize(
    "word", ["metric=silence", "attribute=mood", "encoder=bag", "metric=lic,silence"]
)
def test_it_runs_only_if_the_user_names_the_package(ends, word):
    printed = ends(2, word, *CELL)
    assert (
        "in the package mine (mine-of-bias 1.2), whose code runs only if you include it" in printed
    )
    assert "add --include mine" in printed
    assert "mine" not in sys.modules


def test_from_python_the_variable_is_named(monkeypatch):
    captions, labels = ["a man", "a woman"], ["male", "female"]
    with pytest.raises(UsageError, match=f"set the variable {VARIABLE}=mine"):
        bp.score("silence", captions, labels)
    monkeypatch.setenv(VARIABLE, "mine")
    assert bp.score("silence", captions, labels, captions, stats={"resamples": 5}).rows


def test_an_included_package_is_in_the_manifest_with_its_version(ok, tmp_path, site):
    ok("--include", "mine", "metric=silence", *CELL)
    manifest = json.loads(results(tmp_path)[0].read_text())["manifest"]
    assert manifest["included"] == {"mine": str(site / "mine")}
    assert manifest["plugins"] == {"mine": "mine-of-bias 1.2"}
    assert "mine" not in ok("--include", "mine", "--help").partition("announced")[2]


def test_a_run_that_includes_nothing_names_no_plugins(ok, tmp_path: Path):
    ok("metric=gender_error", *CELL)
    assert "plugins" not in json.loads(results(tmp_path)[0].read_text())["manifest"]
