"""A page that is sent tells nothing of the machine it was made on."""

import socket
from pathlib import Path

from tests.cli.commands import SMALL


def test_a_report_names_no_place_host_or_process(ok, tmp_path):
    place = tmp_path / "somewhere" / "deep"
    ok(*SMALL, f"dataset.root={place / 'scenes'}", f"paths.cache={place}")
    ok("report", "outputs", "--out", "page.html")
    text = Path("page.html").read_text()
    assert (str(tmp_path) in text, socket.gethostname() in text, '"pid"' in text) == (
        False,
        False,
        False,
    )
