"""The door, within the test's own process and folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bias_pipeline.door import main
from tests.cli.commands import Run


@pytest.fixture
def run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Run]:
    """Run a command in its own folder; returns exit code and what was printed."""
    monkeypatch.chdir(tmp_path)

    def command(*words: str) -> tuple[int, str]:
        code = main([*words])
        printed = capfd.readouterr()
        return code, printed.out + printed.err

    yield command
    if "joblib.externals.loky" in sys.modules:  # its workers would keep this folder for the next
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor().shutdown(kill_workers=True)
