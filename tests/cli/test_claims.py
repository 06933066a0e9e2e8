"""``analysis claims`` through the door."""

from bias_pipeline.io.paths import experiments_dir


def test_the_committed_table_is_what_the_command_prints(run):
    """Else: python -m bias_pipeline analysis claims > experiments/claims/RESULTS.md."""
    committed = (experiments_dir() / "claims" / "RESULTS.md").read_text(encoding="utf-8")
    assert run("analysis", "claims") == (0, committed)


def test_the_command_takes_no_options(ends):
    ends(2, "analysis", "claims", "seeds=3")
