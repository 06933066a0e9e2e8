"""Faults of a package of one's own: each is one sentence that names it, and ends no sweep."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import bias_pipeline as bp
from bias_pipeline.errors import UsageError
from bias_pipeline.io.paths import VARIABLE
from bias_pipeline.metrics import catalogue
from bias_pipeline.run import targets
from bias_pipeline.run.presets import preset
from tests.cli.commands import results
from tests.documents import own_package

INCLUDE = ("--include", "mine")
CELL = ("metric=silence", "dataset.n_images=100", "logger=csv")
IMPORT = "from dataclasses import dataclass\n"
COMPUTE = """
    def compute(self, corpus, *, splits):
        parts = super().compute(corpus, splits=splits).parts
        {line}
"""


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package, in the folder that commands start in."""
    own_package(tmp_path, "mine")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path / "mine"
    for name in [name for name in sys.modules if name.partition(".")[0] == "mine"]:
        del sys.modules[name]
    for known in (targets._defined_class, targets.parameters_of, catalogue.metric_class):
        known.cache_clear()


def returns(value: str, name: str = "model") -> str:
    """A line that returns the score with another value of a number."""
    return f"return Score({{**parts, {name!r}: replace(parts[{name!r}], value={value})}})"


def computes(mine: Path, line: str) -> None:
    """Let the metric return what a line does with its numbers."""
    path = mine / "silence.py"
    text = path.read_text()
    assert IMPORT in text
    imports = (
        "from dataclasses import dataclass, replace\n\nimport numpy as np\n\n"
        "from bias_pipeline.metrics.base import Score\n"
    )
    path.write_text(text.replace(IMPORT, imports) + COMPUTE.format(line=line))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("return 0.25", "compute returns 0.25; it must return a Score"),
        ("return Score({})", "its score has no part"),
        (returns("np.zeros(2)"), "'model' has value=array([0., 0.]), which is no"),
        (returns("np.array(0.5)"), "'model' has value=array(0.5), which is no"),
        (returns("'0.5'"), "'model' has value='0.5', which is no number"),
        (
            returns("3.0, range=None"),
            "outside its range [-1, 1]; correct the value, or the range in Number(range=...)",
        ),
        (returns("-2.0", "score"), "in MetricInfo(range=...)"),
    ],
    ids=["a number", "nothing", "an array", "an array of one", "text", "too high", "too low"],
)
def test_what_is_no_score_is_refused_and_not_stored(ends, tmp_path, mine, line, message):
    computes(mine, line)
    printed = " ".join(ends(2, *INCLUDE, *CELL).split())
    assert "metric 'silence' (mine.silence.Silence)" in printed
    assert message in printed
    assert not results(tmp_path)


def test_numbers_of_numpy_are_numbers(ok, tmp_path, mine):
    computes(mine, returns("np.float32(0.5)"))
    ok(*INCLUDE, *CELL)
    assert len(results(tmp_path)) == 1


@pytest.mark.parametrize(
    ("line", "error"),
    [("raise ValueError('too few')", "ValueError: too few"), ("raise SystemExit(7)", "SystemExit")],
    ids=["an error", "an exit"],
)
def test_an_error_of_ones_own_ends_no_sweep_and_is_not_called_ours(
    ends, tmp_path, mine, line, error
):
    computes(mine, line)
    words = [*INCLUDE, *CELL[1:], "metric=silence,gender_error"]
    printed = " ".join(ends(4, *words).split())
    assert "an error in your package 'mine'" in printed
    assert error in printed
    assert "a bug, please report it" not in printed
    assert len(results(tmp_path)) == 1  # the other metric's


def test_a_class_that_the_module_lacks_is_named_with_those_it_has(ends, mine):
    path = mine / "conf" / "metric" / "silence.yaml"
    path.write_text(path.read_text().replace("silence.Silence", "silence.Silent"))
    printed = " ".join(ends(2, *INCLUDE, *CELL).split())
    assert "mine.silence has no class 'Silent'; did you mean 'Silence'?" in printed


def test_a_class_that_a_module_of_ours_lacks_is_named_too(ends, tmp_path):
    path = tmp_path / "cfg" / "masking" / "dogs.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("_target_: bias_pipeline.text.mask.MaskWord\nwords: [dog]\ntoken: <dog>\n")
    printed = " ".join(ends(2, "--config-dir", "cfg", "masking=dogs", *CELL[1:]).split())
    assert "bias_pipeline.text.mask has no class 'MaskWord'; did you mean 'MaskWords'?" in printed


@pytest.mark.parametrize("option", ["--include", "--config-dir"])
def test_a_file_that_is_not_read_is_named(ok, mine, option):
    path = mine / "conf" / "metric" / "gender_error.yaml"
    path.write_text("# Mine.\n_target_: mine.silence.Silence\nattribute: ${attribute}\n")
    where = "mine" if option == "--include" else "mine/conf"
    printed = " ".join(ok(option, where, *CELL[1:], "metric=gender_error").split())
    assert f"warning: {path} is not read" in printed


@pytest.mark.parametrize("content", ["- a\n- b\n", "a: [b\nc: d\n"], ids=["a list", "broken"])
def test_a_file_that_is_no_mapping_is_named(ends, mine, content, monkeypatch):
    path = mine / "conf" / "metric" / "silence.yaml"
    path.write_text(content)
    assert str(path) in "".join(ends(2, *INCLUDE, *CELL).split("\n"))
    monkeypatch.setenv(VARIABLE, "mine")
    with pytest.raises(UsageError, match=str(path)):
        bp.score("silence", ["a man"], ["male"])


def test_a_file_that_changed_is_read_again(mine, monkeypatch):
    monkeypatch.setenv(VARIABLE, "mine")
    path = mine / "conf" / "attribute" / "mood.yaml"
    text = path.read_text()
    for word in ("sad", "gloomy"):
        path.write_text(text.replace("[sad,", f"[{word},"))
        assert preset({"attribute": "mood"}).tree["attribute"]["words"]["low"][0] == word
