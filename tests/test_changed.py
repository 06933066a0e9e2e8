from pathlib import Path

import pytest

from tests.changed import ALWAYS, METRICS, READERS, select_tests
from tests.corpora import REPOSITORY

RETRIEVAL = "retrieval"


@pytest.mark.parametrize(
    ("changed", "test"),
    [
        ("bias_pipeline/text/align.py", "tests/text/test_align.py"),
        ("bias_pipeline/text/align.py", "bias_pipeline/text/align.py"),  # its examples
        # a test of the same name builds the metric by its name
        (f"bias_pipeline/{RETRIEVAL}/fairness.py", f"tests/{RETRIEVAL}/test_fairness.py"),
        ("conf/alignment/none.yaml", "tests/run/test_config.py"),
        ("conf/attribute/age.yaml", "tests/corpus/test_word_lists.py"),
        *(("conf/metric/lic.yaml", test) for test in METRICS),
        *(("bias_pipeline/metrics/quality.py", test) for test in METRICS),
    ],
)
def test_what_a_change_touches_is_run(changed, test):
    assert test in select_tests([changed])


@pytest.mark.parametrize(
    ("module", "runs"),
    [("metrics/counting/gender_error", False), ("pictures/captioners/chat_server", True)],
)
def test_tests_of_the_door_are_run_where_no_other_imports_the_module(module, runs):
    paths = select_tests([f"bias_pipeline/{module}.py"])
    assert any(path.startswith("tests/cli/") for path in paths) == runs


def test_other_tests_are_not():
    assert "tests/text/test_align.py" not in select_tests(["bias_pipeline/io/arrays.py"])


def test_a_removed_file_is_not_run():
    assert list(select_tests(["tests/test_gone.py"])) == [*ALWAYS]


@pytest.mark.parametrize("path", [*ALWAYS, *(item for named in READERS.values() for item in named)])
def test_what_is_named_is_there(path):
    file, _, name = path.partition("::")
    assert name in Path(REPOSITORY, file).read_text(encoding="utf-8")
