"""``analysis claims`` through the door."""

from __future__ import annotations

from bias_pipeline.io.paths import experiments_dir
from tests.cli.commands import Run


def test_the_committed_table_is_what_the_command_prints(run: Run) -> None:
    """Else: python -m bias_pipeline analysis claims > experiments/claims/RESULTS.md."""
    committed = (experiments_dir() / "claims" / "RESULTS.md").read_text(encoding="utf-8")
    assert run("analysis", "claims") == (0, committed)


def test_the_command_takes_no_options(run: Run) -> None:
    assert run("analysis", "claims", "seeds=3")[0] == 2
