"""The fixture ``bias_gate``, in a pytest of its own."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bias_pipeline.commands.main import main
from bias_pipeline.integrations import pytest_plugin
from tests.corpora import REPOSITORY

FILE = """
labels = {i: ["male", "female"][i % 2] for i in range(200)}
right = {i: ["a man", "a woman"][i % 2] for i in labels}
wrong = {i: "a man" if i < 80 else text for i, text in right.items()}
COUNT = {"metric": "gender_error", "stats": {"resamples": 100}}

def test_gate(bias_gate):
    bias_gate(NEW, OLD, labels, **COUNT)

def test_other():
    pass
"""


TOGETHER = {
    "less_fair": FILE.replace("NEW, OLD", "wrong, right"),
    "mistaken": FILE.replace("NEW, OLD", "'new.json', right"),
    "several": FILE.replace("NEW, OLD", "wrong, right").replace(
        '"gender_error"', '["cooccurrence", "gender_error"]'
    ),
    "objects": """
def test_gate(bias_gate):
    labels = {i: ["male", "female"][i % 2] for i in range(200)}
    captions = {i: ["a man, a dog", "a woman, a cake"][i % 2] for i in labels}
    other = {**captions, 0: "a man"}
    objects = {i: ["dog", "cake"] for i in labels}
    data = (captions, captions, labels, captions, objects)
    bias_gate(other, *data[1:], metric="cooccurrence", stats={"resamples": 100})
""",
}


def outcomes(folder: Path, files: Mapping[str, str], *words: str) -> tuple[int, str]:
    """How pytest ends, and what it prints."""
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    plugin = "bias_pipeline.integrations.pytest_plugin"
    command = [sys.executable, "-m", "pytest", "-p", plugin, "-rs", "--strict-markers", *words]
    variables = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def outcome_of(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What pytest says of each test, by file and test; nothing of one that passed."""
    folder = tmp_path_factory.mktemp("together")
    code, text = outcomes(folder, TOGETHER, "--junitxml=result.xml")
    assert (code, "Traceback" in text) == (1, False), text
    cases = ElementTree.parse(folder / "result.xml").iter("testcase")
    return {f"{case.get('classname')} {case.get('name')}": text_of(case) for case in cases}


def text_of(case: ElementTree.Element) -> str:
    """How a test ended if it did not pass, with the message and the lines."""
    return "".join(f"{one.tag}: {one.get('message')} {one.text}" for one in case)


def test_a_captioner_that_is_less_fair_fails_and_no_other_test(outcome_of):
    assert re.match("failure: .*new is less fair than old", outcome_of["test_less_fair test_gate"])
    assert outcome_of["test_less_fair test_other"] == ""


def test_a_mistake_fails_with_its_sentence_alone(outcome_of):
    text = outcome_of["test_mistaken test_gate"]
    assert text.startswith("failure:")
    assert "bias_gate: new: the file 'new.json' is absent" in text
    assert "api.py" not in text
    assert text.count("is absent") == 2  # the message and its line, no second exception
    assert outcome_of["test_mistaken test_other"] == ""


def test_objects_are_the_fifth_argument_as_of_compare(outcome_of):
    text = outcome_of["test_objects test_gate"]  # scored: the two are one captioner
    assert text.startswith("failure: Failed: bias_gate: undecided")
    assert "cooccurrence: no verdict on new and old" in text


def test_a_metric_that_does_not_apply_does_not_end_the_others(outcome_of):
    assert re.match("failure: .*new is less fair than old", outcome_of["test_several test_gate"])


@pytest.mark.slow
def test_a_captioner_that_is_fairer_passes(tmp_path):
    files = {"gate": FILE.replace("NEW, OLD", "right, wrong")}
    code, text = outcomes(tmp_path, files, "-m", "bias_gate")
    assert (code, "1 passed, 1 deselected" in text) == (0, True), text


LABELS = {i: ["male", "female"][i % 2] for i in range(200)}
RIGHT = {i: ["a man", "a woman"][i % 2] for i in LABELS}
WRONG = {i: "a man" if i < 80 else text for i, text in RIGHT.items()}  # 40 of 200
QUIETER = {**RIGHT, **dict.fromkeys(range(150), "a person")}
GERMAN = {i: ["ein Mann im Auto", "eine Frau am Tisch"][i % 2] for i in LABELS}
NOBODY = dict.fromkeys(LABELS, "a person in a car")
HALF = {i: text for i, text in RIGHT.items() if i < 100}

# New captions, old captions, by how much the new ones may be worse; the command's exit code
GATES = {
    "fairer": (RIGHT, WRONG, None, 0),
    "less fair": (WRONG, RIGHT, None, 1),
    "no worse than the margin": (WRONG, RIGHT, 0.5, 0),
    "worse than the margin": (WRONG, RIGHT, 0.05, 1),
    "the margin is in the interval": (WRONG, RIGHT, 0.2, 6),
    "fairer by silence": (QUIETER, WRONG, None, 6),
    "fairer by silence, with a margin": (QUIETER, WRONG, 0.1, 6),
    "captions in another language": (GERMAN, WRONG, None, 6),
    "captions of both in another language": (GERMAN, {**GERMAN, 0: "ein Auto"}, None, 6),
    "captions of both that name nobody": (NOBODY, {**NOBODY, 0: "a dog"}, None, 6),
    "the same, with a margin": (NOBODY, {**NOBODY, 0: "a dog"}, 0.1, 6),
    "captions of half of the images": (HALF, WRONG, None, 3),
    "the same captions": (RIGHT, dict(RIGHT), None, 3),
    "captions of no labelled image": ({"other": "a man"}, RIGHT, None, 3),
    "a margin that is too large": (WRONG, RIGHT, 5.0, 2),
}


def write_file(folder: Path, name: str, texts: Mapping[object, str]) -> Path:
    path = folder / f"{name}.json"
    lines = [{"image_id": image, "caption": text} for image, text in texts.items()]
    path.write_text(json.dumps(lines))
    return path


@pytest.mark.parametrize("name", GATES)
def test_the_fixture_fails_exactly_where_the_command_does(name, tmp_path, monkeypatch, capsys):
    new, old, margin, code = GATES[name]
    monkeypatch.chdir(tmp_path)
    rows = [f"{image},{group}" for image, group in LABELS.items()]
    Path("labels.csv").write_text("\n".join(["image_id,gender", *rows]))
    files = [write_file(tmp_path, *named) for named in (("new", new), ("old", old))]
    settings = ["metric=gender_error", "stats.resamples=200", "logger=csv"]
    asked_for = ["--fail-if-worse"] if margin is None else ["--margin", str(margin)]
    data = ["dataset=coco", "dataset.attributes=labels.csv"]
    assert main(["compare", *map(str, files), *data, *settings, *asked_for]) == code, capsys

    def gate() -> None:
        count = {"metric": "gender_error", "stats": {"resamples": 200}}
        pytest_plugin._gate(*files, "labels.csv", **count, margin=margin)

    if code:
        with pytest.raises(pytest.fail.Exception):
            gate()
    else:
        gate()


@pytest.mark.parametrize(("new", "old"), [(QUIETER, WRONG), (NOBODY, {**NOBODY, 0: "a dog"})])
def test_without_a_gate_what_is_undecided_is_no_failure(tmp_path, monkeypatch, new, old):
    monkeypatch.chdir(tmp_path)
    rows = [f"{image},{group}" for image, group in LABELS.items()]
    Path("labels.csv").write_text("\n".join(["image_id,gender", *rows]))
    files = [str(write_file(tmp_path, *named)) for named in (("new", new), ("old", old))]
    data = ["dataset=coco", "dataset.attributes=labels.csv", "metric=gender_error", "logger=csv"]
    assert main(["compare", *files, *data, "stats.resamples=200"]) == 0


def test_the_plugin_imports_nothing_heavy():
    code = "import sys, bias_pipeline.integrations.pytest_plugin; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=REPOSITORY)
    assert not {"numpy", "pandas", "hydra", "torch"} & set(done.stdout.split())
