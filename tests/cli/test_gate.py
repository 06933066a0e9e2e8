"""The page on CI, as it is printed: a baseline, a gate, and what CI is told."""

import io
import json
import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bias_pipeline.commands import audit
from bias_pipeline.commands.main import main
from bias_pipeline.run.audit import Plan
from bias_pipeline.scenes.captioners import CAPTIONERS
from bias_pipeline.scenes.dataset import write_scenes
from bias_pipeline.scenes.world import generate
from tests.corpora import REPOSITORY
from tests.test_docs import blocks, commands

PAGE = (REPOSITORY / "docs" / "ci.md").read_text(encoding="utf-8")
PAIR, BASELINE, GATE = (shlex.split(line)[3:] for line in commands(PAGE))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A team's files as the page has them; the captioner in use is the unbiased one."""
    root = tmp_path_factory.mktemp("team") / "files"
    names = {"current": "faithful", "new": "stereotyper"}
    write_scenes(
        generate(n_images=400),
        root,
        {file_name: CAPTIONERS[name] for file_name, name in names.items()},
    )
    (root / "captioners").rename(root / "captions")
    (root / "annotations" / "captions.json").rename(root / "people.json")
    lines = (root / "attributes.csv").read_text().splitlines()
    (root / "labels.csv").write_text("\n".join(",".join(x.split(",")[:2]) for x in lines))
    return root


@pytest.fixture(scope="module")
def baseline(folder: Path) -> Iterator[Path]:
    """The baseline of the page; of the audit only what trains nothing, for the sake of time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(audit, "save_page", lambda *_: None)
        patch.setattr("bias_pipeline.run.audit.plan_for", _counts)
        assert main(BASELINE) == 0
        yield folder / "baseline.json"


def _counts(corpora: object, seconds: float, **more: object) -> Plan:
    del more
    return Plan(["gender_error", "group_accuracy"], (), 2, seconds)  # as many as an audit


def run(*words: str) -> tuple[int, str]:
    """A command's exit code and what it printed."""
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        code = main([*words, "logger=csv"])
    return code, output.getvalue()


@pytest.fixture(scope="module")
def gate_result(baseline: Path) -> tuple[int, str]:
    """The gate of the page."""
    return run(*GATE)


def test_the_gate_says_no(gate_result):
    code, text = gate_result
    assert (code, "gate failed: new is worse in naming" in text) == (1, True), text


@pytest.mark.usefixtures("gate_result")
def test_junit_names_what_is_lost(folder):
    suite = ElementTree.parse(folder / "result.xml").getroot()
    assert (suite.tag, suite.get("failures"), suite.get("skipped")) == ("testsuite", "1", "1")
    (failure,) = suite.iter("failure")
    assert "new is less fair than current" in str(failure.get("message"))


@pytest.mark.usefixtures("gate_result")
def test_the_result_is_the_next_baseline(folder):
    changed = {"baseline.json": "result.json", "result.json": "again.json"}
    assert run(*(changed.get(word, word) for word in GATE))[0] == 0  # against itself
    decisions = json.loads((folder / "again.json").read_text())["decisions"]
    assert [line["other"] for line in decisions] == ["new (baseline)"] * 2


def test_a_baseline_decides_as_captions_do(gate_result):
    words = [word for word in GATE if word != "--baseline"]
    words[words.index("baseline.json")] = "captions/current.json"
    code, text = run(*words)
    start = "gender: A new, B current"
    assert (code, text.partition(start)[1:]) == (1, gate_result[1].partition(start)[1:])


@pytest.mark.usefixtures("gate_result")
def test_captions_of_both_need_no_baseline():
    assert run(*PAIR, "--metrics", "gender_error", "--fail-if-worse")[0] == 1


@pytest.mark.parametrize("option", ["--json", "--junit"])
def test_a_file_in_a_read_only_folder_costs_no_work(monkeypatch, option):
    monkeypatch.setattr("bias_pipeline.io.files.os.access", lambda *_: False)
    code, text = run(*PAIR, option, "x")
    assert (code, text.startswith("error: cannot write x: . is read-only")) == (5, True), text


@pytest.mark.parametrize("option", ["--json", "--junit"])
def test_a_file_that_cannot_be_written_costs_no_work(option):
    code, text = run(*PAIR, option, "nowhere/x")
    assert (code, "error: nowhere/x: the folder nowhere does not exist" in text) == (5, True), text


def test_the_workflow_runs_the_gate_of_the_page():
    steps = [re.search(r"(?s)run: >\n(.*?)\n      -", block) for block in blocks(PAGE, "yaml")]
    (run,) = filter(None, steps)  # the other block uses the ready-made step
    assert shlex.split(run[1])[3:] == GATE


def test_the_sixth_version_on_the_same_pictures_is_undecided(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    """Each version has one caption more that is another; every gate before the limit passes."""
    monkeypatch.chdir(folder)
    lines = json.loads((folder / "captions" / "current.json").read_text())
    codes = []
    for number in range(1, 5):
        lines[number]["caption"] = "a photo"
        version = tmp_path / "version.json"
        version.write_text(json.dumps(lines))
        words = ["compare", str(version), "captions/current.json", "--attributes", "labels.csv"]
        words += ["--metrics", "gender_error", "--fail-if-worse", "--out", str(tmp_path / "runs")]
        codes.append(main([*words, "--history", str(tmp_path / "looks"), "--looks", "3"]))
    assert codes == [0, 0, 0, 6]
    printed = capsys.readouterr()
    assert "This is look 3 on these pictures: a pass found by retrying is no" in printed.out
    assert "this is look 4 on these pictures" in printed.err
