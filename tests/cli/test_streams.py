"""Standard streams that are closed, full or not read, and a working folder that is gone."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.commands import COUNTING, SMALL, results, start, wait_for
from tests.corpora import REPOSITORY


def shell(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Run a line in which ``$COMMAND`` is ours; its exit code is that of the command."""
    variables = {"COMMAND": f"{sys.executable} -m bias_pipeline", "PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_full_output_loses_no_table(tmp_path):
    done = shell(tmp_path, f"$COMMAND {' '.join(COUNTING)} > /dev/full")
    assert done.returncode == 5
    assert done.stderr.splitlines()[-1] == (
        "error: standard output is not complete: No space left on device; files are complete"
    )
    assert (tmp_path / "outputs" / "table.csv").is_file()


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("$COMMAND --help | true", 0),
        ("$COMMAND --version >&-", 0),
        ("$COMMAND --version 2>&- <&- >/dev/null", 0),
        ("$COMMAND nonsense 2>&-", 2),
        ("$COMMAND nonsense 2>/dev/full", 2),
    ],
)
def test_a_stream_that_takes_nothing_is_no_reason_to_fail(tmp_path, line, code):
    done = shell(tmp_path, line)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


def test_a_slow_reader_that_nobody_waits_for_gets_all_lines():
    code = "from bias_pipeline.io.terminal import *; open_streams(); print_out(*range(30000))"
    read, write = os.pipe()
    os.set_blocking(write, False)
    variables = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    child = subprocess.Popen([sys.executable, "-c", code], stdout=write, env=variables)
    os.close(write)
    time.sleep(1)
    with os.fdopen(read) as lines:
        n_lines = sum(1 for _ in lines)
    assert (child.wait(), n_lines) == (0, 30000)


@pytest.mark.slow
def test_helpers_end_with_a_parent_that_is_killed(tmp_path):
    words = ("devices=[a,b]", "captioner=faithful,terse")
    parent = start(tmp_path, *SMALL, "dataset.n_images=3000", "seeds=200", *words)
    claims = tmp_path / "outputs" / ".claims"
    wait_for(lambda: len([path for path in claims.glob("*") if path.read_text()]) == 2)
    workers = [int(path.read_text().split()[1]) for path in claims.glob("*")]
    parent.kill()
    parent.wait()
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers), 15)


def test_a_command_in_a_folder_that_is_gone_has_no_traceback(tmp_path):
    (tmp_path / "gone").mkdir()
    ended = shell(tmp_path / "gone", "rmdir ../gone; $COMMAND metric=gender_error")
    assert (ended.returncode, ended.stderr.count("\n")) == (5, 1)
    assert "the working folder" in ended.stderr


def test_a_finished_cell_waits_for_no_claim(ok, tmp_path):
    ok(*COUNTING)
    (path,) = results(tmp_path)
    claim = tmp_path / "outputs" / ".claims" / path.parent.name
    claim.write_text("elsewhere 1")
    assert "not run again" in ok(*COUNTING)
    assert claim.exists()  # nobody waited until it was stale
