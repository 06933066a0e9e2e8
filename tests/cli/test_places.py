"""A page that is sent tells nothing of the machine it was made on."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.cli.commands import SMALL, Run


@pytest.mark.parametrize("suffix", ["html", "md"])
def test_a_report_names_no_place_host_or_process(run: Run, tmp_path: Path, suffix: str) -> None:
    place = tmp_path / "somewhere" / "deep"
    code, told = run(*SMALL, f"dataset.root={place / 'scenes'}", f"paths.cache={place}")
    assert code == 0, told
    code, told = run("report", "outputs", "--out", f"page.{suffix}")
    text = Path(f"page.{suffix}").read_text() if code == 0 else pytest.skip(told)
    assert (str(tmp_path) in text, socket.gethostname() in text, '"pid"' in text) == (
        False,
        False,
        False,
    )
