from pathlib import Path

import pytest

from tests.changed import ALWAYS, READERS, selected
from tests.corpora import REPOSITORY


def test_tests_that_import_a_changed_module_are_run():
    assert "tests/text/test_align.py" in selected(["bias_pipeline/text/align.py"])


def test_a_test_of_the_same_name_is_run():
    path = "metrics/retrieval/test_fairness.py"  # it builds the metric by its name
    assert f"tests/{path}" in selected(["bias_pipeline/metrics/retrieval/fairness.py"])


@pytest.mark.parametrize(
    ("module", "runs"), [("metrics/counting/gender_error", False), ("captioners/chat_server", True)]
)
def test_tests_of_the_door_are_run_where_no_other_imports_the_module(module, runs):
    paths = selected([f"bias_pipeline/{module}.py"])
    assert any(path.startswith("tests/cli/") for path in paths) == runs


def test_the_examples_of_a_changed_module_are_run():
    assert "bias_pipeline/text/align.py" in selected(["bias_pipeline/text/align.py"])


def test_other_tests_are_not():
    assert "tests/text/test_align.py" not in selected(["bias_pipeline/io/arrays.py"])


def test_a_changed_configuration_is_read_by_its_tests():
    assert "tests/config/test_config.py" in selected(["conf/alignment/none.yaml"])


def test_a_removed_file_is_not_run():
    assert list(selected(["tests/test_gone.py"])) == [*ALWAYS]


@pytest.mark.parametrize("path", [*ALWAYS, *(item for named in READERS.values() for item in named)])
def test_what_is_named_is_there(path):
    assert Path(REPOSITORY, path).is_file()
