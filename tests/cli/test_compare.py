"""``compare``, from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.commands import SMALL, Run, results

QUICK = ("dataset.n_images=1500", "seeds=3", "logger=csv")


def test_a_biased_captioner_is_less_fair(run: Run) -> None:
    code, text = run("compare", "amplifier", "faithful", *QUICK)
    assert (code, "lic: amplifier is less fair than faithful" in text) == (0, True), text


@pytest.mark.parametrize(
    ("order", "code"), [(("amplifier", "faithful"), 1), (("faithful", "amplifier"), 0)]
)
def test_a_teams_ci_can_fail(run: Run, order: tuple[str, str], code: int) -> None:
    assert run("compare", *order, "--fail-if-worse", *QUICK)[0] == code


def test_folders_of_finished_runs_are_compared(run: Run, tmp_path: Path) -> None:
    run(*SMALL, "captioner=amplifier,faithful")
    folders = [str(path.parent) for path in results(tmp_path)]
    code, text = run("compare", *folders)
    assert (code, "lic: amplifier" in text) == (0, True), text


def test_finished_cells_are_not_run_again(run: Run) -> None:
    run(*SMALL, "captioner=amplifier,faithful")
    assert (
        "not run again, the same cells were there: 2 of 2"
        in run("compare", "faithful", "amplifier", *SMALL)[1]
    )


def test_one_captioner_is_too_few(run: Run) -> None:
    code, text = run("compare", "faithful", *SMALL)
    assert (code, "needs two captioners" in text) == (2, True)


def test_an_unknown_captioner_is_refused(run: Run) -> None:
    code, text = run("compare", "faithful", "amplfier", *SMALL)
    assert (code, "did you mean 'amplifier'" in text) == (2, True)


def test_its_help_names_the_flag(run: Run) -> None:
    code, text = run("compare", "--help")
    assert (code, "--fail-if-worse" in text) == (0, True)


def test_cells_of_different_metrics_are_not_compared(run: Run, tmp_path: Path) -> None:
    run(*SMALL, "captioner=faithful", "metric=lic,leakage")
    folders = [str(path.parent) for path in results(tmp_path)]
    assert run("compare", *folders)[0] == 3


def test_without_a_score_it_says_what_is_needed(run: Run) -> None:
    code, text = run("compare", "faithful", "amplifier", "metric.sides=[model]", *SMALL)
    assert (code, "dataset.captions" in text) == (3, True), text
