"""Claims: whoever holds one is waited for, said, and for no longer than it lives."""

import logging
import os
import threading
import time
from pathlib import Path

import pytest

from bias_pipeline.results import run_lock
from bias_pipeline.results.run_lock import hold_claim, is_claimed


@pytest.fixture
def claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where one may be; what is not renewed for 0.4 s is stale."""
    for name, seconds in {"STALE_S": 0.4, "HEARTBEAT_S": 0.05, "LOGGED_S": 0.1}.items():
        monkeypatch.setattr(run_lock, name, seconds)
    return tmp_path / "run"


def seconds_to_claim(path: Path) -> float:
    started = time.monotonic()
    with hold_claim(path):
        return time.monotonic() - started


def test_a_claim_of_the_future_is_taken_over(claim):
    claim.write_text("elsewhere 1")
    os.utime(claim, (time.time() + 9e6,) * 2)
    assert 0.3 < seconds_to_claim(claim) < 10


@pytest.mark.parametrize("content", ["", "elsewhere 999999999999999999999", "\0" * 9])
def test_a_claim_that_names_nobody_is_taken_over(claim, content):
    claim.write_text(content)
    assert seconds_to_claim(claim) < 10


def test_a_dangling_link_is_no_claim(claim, monkeypatch):
    monkeypatch.setattr(run_lock, "STALE_S", 60)
    claim.symlink_to("nowhere")
    assert seconds_to_claim(claim) < 10


def test_a_folder_is_no_claim(claim):
    claim.mkdir()
    assert seconds_to_claim(claim) < 10


def test_a_claim_that_is_renewed_is_waited_for(claim):
    others: list[float] = []
    with hold_claim(claim):
        waiting = threading.Thread(target=lambda: others.append(seconds_to_claim(claim)))
        waiting.start()
        waiting.join(1)
        assert others == []
    waiting.join(10)
    assert len(others) == 1


def test_a_wait_says_whom_it_is_for(claim, caplog):
    claim.write_text("elsewhere 12")
    with caplog.at_level(logging.WARNING):
        seconds_to_claim(claim)
    (message,) = caplog.messages
    assert message.startswith("run: waiting for process 12 on elsewhere")


def test_a_claim_is_seen_without_waiting(claim):
    with hold_claim(claim):
        assert is_claimed(claim)
    assert not is_claimed(claim)
