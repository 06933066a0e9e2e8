"""E19 through the door: damaged run folders are told of, left by readers, made again by runs."""

from __future__ import annotations

from pathlib import Path

from tests.cli.commands import SMALL, Run, results

WORDS = (*SMALL, "metric=gender_error", "captioner=faithful,stereotyper")


def test_a_cell_whose_draws_are_cut_is_run_again(run: Run, tmp_path: Path) -> None:
    run(*WORDS)
    (path, _) = results(tmp_path)
    draws = path.with_name("draws.parquet")
    content = draws.read_bytes()
    draws.write_bytes(content[:-9])
    code, printed = run(*WORDS)
    assert code == 0
    assert "draws.parquet is damaged or absent; the run is done again" in printed
    assert "not run again, the same cells were there: 1 of 2" in printed
    assert draws.read_bytes() == content


def test_a_report_passes_over_what_is_damaged_and_says_so(run: Run, tmp_path: Path) -> None:
    run(*WORDS)
    (path, other) = results(tmp_path)
    path.write_bytes(path.read_bytes()[:-9])
    other.with_name("draws.parquet").write_bytes(b"PAR1")
    code, printed = run("report", "outputs")
    assert code == 0
    assert "1 of 2 runs cannot be read." in printed
    assert "Its numbers are shown, but not compared" in printed
    assert path.is_file()
    assert "1 runs" in (tmp_path / "outputs" / "report.html").read_text()


def test_a_comparison_of_damaged_draws_ends_with_3(run: Run, tmp_path: Path) -> None:
    run(*WORDS)
    paths = results(tmp_path)
    paths[0].with_name("draws.parquet").write_bytes(b"PAR1")
    code, printed = run("compare", *(str(path.parent) for path in paths))
    assert (code, "draws.parquet: is damaged" in printed, "Traceback" in printed) == (
        3,
        True,
        False,
    )
