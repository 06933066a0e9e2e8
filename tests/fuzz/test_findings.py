"""What fuzzing found stays mended, and a few hundred mutated files end as they should.

``make fuzz`` tries for ten minutes. Each folder of ``findings/KIND`` holds one file that once ended
a command, or the process.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fuzz.hunt import CANARY, Finding, Hunter

FINDINGS = Path(__file__).parent / "findings"
FINDING_FILES = sorted(path for path in FINDINGS.rglob("*") if path.is_file())
SEED = 20261122
TRIALS = {
    "captions": 80,
    "programs": 80,
    "labels": 80,
    "instances": 40,
    "humans": 40,
    "convert": 30,
    "runs": 20,
    "pickles": 10,
    "configurations": 5,
    "pixels": 40,
    "masks": 80,
    "keys": 5,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("path", FINDING_FILES, ids=lambda path: str(path.relative_to(FINDINGS)))
def test_what_was_found_is_mended(folder, path):
    hunter = Hunter(path.relative_to(FINDINGS).parts[0], folder)
    assert hunter.fault(path.name, path.read_bytes()) == ""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", TRIALS)
def test_mutated_files_are_read_or_refused_in_a_sentence(folder, kind):
    hunter = Hunter(kind, folder)
    findings = [hunter.trial(f"{SEED}-{number}") for number in range(TRIALS[kind])]
    assert [finding.report() for finding in findings if finding] == []


def hunter_of(folder: Path, read: object) -> Hunter:
    """A hunter whose reader does something else."""
    hunter = Hunter("pickles", folder)
    object.__setattr__(hunter.reader, "read", read)
    return hunter


def fail(path: Path) -> None:
    if b"!" in path.read_bytes():
        raise KeyError(path)


def test_a_crash_is_found(folder):
    assert hunter_of(folder, fail).fault("a", b"!").startswith("KeyError at ")


def test_code_that_ran_is_found(folder):
    leave = (folder / CANARY).touch
    assert hunter_of(folder, lambda _: leave()).fault("a", b"") == "code ran"


def test_a_hang_is_found(folder, monkeypatch):
    @contextmanager
    def at_once() -> Iterator[None]:
        from tests.fuzz.hunt import Hang

        raise Hang
        yield

    monkeypatch.setattr("tests.fuzz.hunt.time_limit", at_once)
    assert "longer than" in hunter_of(folder, fail).fault("a", b"")


def test_a_finding_is_cut_to_what_matters(folder):
    hunter = hunter_of(folder, fail)
    fault = hunter.fault("a", b"!")
    finding = Finding("pickles", "a", b"x" * 40 + b"!" + b"y" * 40, "1-2", fault)
    assert hunter.smallest(finding).content == b"!"


def test_a_trial_is_the_same_again(folder):
    hunter = hunter_of(folder, lambda path: 1 / 0)
    first, second = hunter.trial("7-1"), hunter.trial("7-1")
    assert first == second
    assert first is not None
    assert "--only pickles --again 7-1" in first.report()
