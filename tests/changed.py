"""The tests that a change touches, for ``make check``: ``python -m tests.changed``.

Prints the paths of changed tests, of tests that import a changed module or bear its name, of
changed modules' own examples, and of those that hold the layout. Tests of the door, which take
longest, are run where no other test imports the module. A change of configuration, of a metric or
of a study adds the tests that read it (``READERS``). Changed is what differs from where the branch
left ``origin/main`` (where there is none: from the last commit), and what git does not know yet. It
is a selection for the minute after an edit, not a proof: modules two imports away are left to
``make test``.
"""

import ast
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from tests.corpora import REPOSITORY

ALWAYS = ("tests/test_layers.py",)
METRICS = (  # what a metric owes, whichever it is
    *("tests/metrics/test_contract.py", "tests/metrics/test_added.py"),
    *("tests/metrics/test_silence.py", "tests/metrics/counting/test_null.py"),
    "tests/test_docs.py::test_the_metric_cards_are_those_of_the_code",
    "tests/test_studies.py::test_the_page_that_advises_on_metrics_is_that_of_the_figures",
)
READERS = {  # by the folder of a changed path
    "conf": ("tests/run/test_config.py",),
    "conf/attribute": ("tests/corpus/test_word_lists.py",),
    "conf/metric": METRICS,
    "bias_pipeline/metrics": METRICS,
    "experiments": ("tests/test_studies.py",),
}


def changed_paths(base: str = "origin/main") -> list[str]:
    """Paths that differ from where this branch began, whether committed or not."""
    known = _git("rev-parse", "--verify", "--quiet", base) or _git("rev-parse", "HEAD")
    start = _git("merge-base", "HEAD", known[0])[0]
    return [*_git("diff", "--name-only", start), *_git("ls-files", "-o", "--exclude-standard")]


def _git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=REPOSITORY, capture_output=True, text=True)
    return done.stdout.split()


def select_tests(paths: Iterable[str]) -> Iterator[str]:
    """What to run for changed paths."""
    there = [path for path in paths if (REPOSITORY / path).is_file()]
    modules = {_module(path) for path in there if path.startswith("bias_pipeline/")}
    for path in there:
        checked = path.startswith("bias_pipeline/") or Path(path).name.startswith("test_")
        if checked and path.endswith(".py"):
            yield path
        for folder, readers in READERS.items():
            yield from readers if path.startswith(f"{folder}/") else ()
    tests = sorted((REPOSITORY / "tests").rglob("test_*.py"))
    importing = [test for test in tests if modules & imported_names(test)]
    inside = [test for test in importing if test.parent.name != "cli"]
    namesakes = [test for test in tests if _tested_module(test) in modules]
    yield from (str(test.relative_to(REPOSITORY)) for test in [*namesakes, *(inside or importing)])
    yield from ALWAYS


def _tested_module(test: Path) -> str:
    """The module that a test is named after."""
    path = test.relative_to(REPOSITORY / "tests").with_name(test.name.removeprefix("test_"))
    return _module(f"bias_pipeline/{path.as_posix()}")


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@cache
def imported_names(test: Path) -> frozenset[str]:
    """The names that a test imports from, and what it imports of them."""
    modules = set()
    for node in ast.walk(ast.parse(test.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(modules)


if __name__ == "__main__":
    print(*dict.fromkeys(select_tests(changed_paths())))
