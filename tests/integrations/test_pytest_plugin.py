"""The fixture ``bias_gate``, in a pytest of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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


def outcomes(folder: Path, new: str, old: str, *words: str, text: str = FILE) -> tuple[int, str]:
    """How pytest ends, and what it prints."""
    (folder / "test_gate.py").write_text(text.replace("NEW", new).replace("OLD", old))
    plugin = "bias_pipeline.integrations.pytest_plugin"
    command = [sys.executable, "-m", "pytest", "-p", plugin, "-rs", "--strict-markers", *words]
    variables = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


def test_a_captioner_that_is_less_fair_fails(tmp_path):
    code, text = outcomes(tmp_path, "wrong", "right")
    assert (code, "1 failed, 1 passed" in text) == (1, True), text
    assert "new is less fair than old" in text
    assert "Traceback" not in text


def test_a_mistake_fails_with_its_sentence_alone(tmp_path):
    mistaken = FILE.replace("bias_gate(NEW, OLD, labels,", "bias_gate('new.json', OLD, labels,")
    code, text = outcomes(tmp_path, "", "right", text=mistaken)
    assert (code, "1 failed, 1 passed" in text) == (1, True), text
    assert "bias_gate: new: the file 'new.json' is absent" in text
    assert "api.py" not in text


def test_objects_are_the_fifth_argument_as_of_compare(tmp_path):
    text = """
def test_gate(bias_gate):
    labels = {i: ["male", "female"][i % 2] for i in range(200)}
    captions = {i: ["a man, a dog", "a woman, a cake"][i % 2] for i in labels}
    objects = {i: ["dog", "cake"] for i in labels}
    data = (captions, captions, labels, captions, objects)
    assert bias_gate(*data, metric="cooccurrence", stats={"resamples": 100}).decided
"""
    code, text = outcomes(tmp_path, "", "", text=text)
    assert code == 0, text


def test_a_metric_that_does_not_apply_does_not_end_the_others(tmp_path):
    several = FILE.replace('"gender_error"', '["cooccurrence", "gender_error"]')
    code, text = outcomes(tmp_path, "wrong", "right", text=several)
    assert (code, "new is less fair than old" in text) == (1, True), text


@pytest.mark.slow
def test_a_captioner_that_is_fairer_passes(tmp_path):
    code, text = outcomes(tmp_path, "right", "wrong", "-m", "bias_gate")
    assert (code, "1 passed, 1 deselected" in text) == (0, True), text


@pytest.mark.slow
def test_what_cannot_be_decided_is_skipped_with_the_reason(tmp_path):
    quieter = FILE.replace(
        "def test_gate",
        'quieter = {**right, **dict.fromkeys(range(150), "a person")}\n\ndef test_gate',
    )
    code, text = outcomes(tmp_path, "quieter", "wrong", text=quieter)
    assert (code, "1 passed, 1 skipped" in text) == (0, True), text
    assert "no verdict on new and old" in text


def test_the_plugin_imports_nothing_heavy():
    code = "import sys, bias_pipeline.integrations.pytest_plugin; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=REPOSITORY)
    assert not {"numpy", "pandas", "hydra", "torch"} & set(done.stdout.split())
