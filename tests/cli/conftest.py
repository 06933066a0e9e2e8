"""The door, within the test's own process and folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from bias_pipeline.door import main
from tests.cli.commands import Run


@pytest.fixture
def run(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in its own folder; returns exit code and what was printed."""
    monkeypatch.chdir(tmp_path)

    def command(*words: str) -> tuple[int, str]:
        code = main([*words])
        printed = capfd.readouterr()
        return code, printed.out + printed.err

    return command
