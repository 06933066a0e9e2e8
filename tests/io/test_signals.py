"""A request to stop is never lost, whatever a library makes of the exception."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from bias_pipeline.commands import main
from bias_pipeline.errors import UsageError
from bias_pipeline.io import signals
from tests.cli.commands import REPOSITORY


@pytest.fixture(autouse=True)
def own_handlers() -> Iterator[None]:
    """The handlers of the test run come back."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR2)
    before = {number: signal.getsignal(number) for number in numbers}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    signals._requested = None


def swallow(_: list[str]) -> int:
    with contextlib.suppress(BaseException):
        signal.raise_signal(signal.SIGTERM)
    return 0


def swallow_and_continue(_: list[str]) -> int:
    swallow([])
    signals.stop_if_requested()
    return 0


def disguise(_: list[str]) -> int:
    try:
        signal.raise_signal(signal.SIGTERM)
    except BaseException as error:
        raise UsageError("nonsense") from error
    return 0


def break_down(_: list[str]) -> int:
    try:
        signal.raise_signal(signal.SIGTERM)
    finally:
        raise KeyError("half-built")


def leave(_: list[str]) -> int:
    try:
        signal.raise_signal(signal.SIGTERM)
    finally:
        sys.exit(1)


LIBRARIES = [swallow_and_continue, disguise, break_down, leave]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 143), (signal.SIGINT, 130)]
)
def test_the_exit_code_follows_the_request(monkeypatch, library, number, code):
    monkeypatch.setattr(main, "_command", library)
    raise_signal = signal.raise_signal
    monkeypatch.setattr(signal, "raise_signal", lambda _: raise_signal(number))
    assert main.main([]) == code


def test_a_closed_terminal_stops_once():
    """The shell and the system both send the signal; the second must not end the storing."""
    signals.listen()
    with pytest.raises(signals.Stopped):
        signal.raise_signal(signal.SIGHUP)
    signal.raise_signal(signal.SIGHUP)


def test_nohup_is_respected():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signals.listen()
    signal.raise_signal(signal.SIGHUP)
    assert not signals.stop_is_requested()


def interrupt(_: list[str]) -> int:
    raise KeyboardInterrupt


def refuse(_: list[str]) -> int:
    raise UsageError("wrong")


@pytest.mark.parametrize(
    ("work", "code"),
    [(interrupt, 130), (swallow, 0), (refuse, 2)],
    ids=["ctrl-c that another handler saw", "finished all the same", "an error without a request"],
)
def test_the_exit_code_of_other_ends(monkeypatch, work, code):
    monkeypatch.setattr(main, "_command", work)
    assert main.main([]) == code


def test_under_slurm_the_job_asks_to_be_queued_again(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    monkeypatch.setattr(main, "_command", disguise)
    assert main.main([]) == 75


def test_an_interrupt_within_exec_exits_with_its_code(tmp_path):
    (tmp_path / "interrupted.py").write_text(
        "import signal, sys\n"
        "from bias_pipeline.commands import main\n"
        "interrupt = 'signal.raise_signal(signal.SIGINT)'\n"
        "main.run_command = lambda _: exec(interrupt, {'signal': signal})\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "sys.exit(main.main([]))\n"
    )
    command = [sys.executable, "-m", "interrupted"]  # whoever is started with -c is never killed
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert done.returncode == signals.INTERRUPTED


def test_a_closed_terminal_does_not_end_the_tracker_of_semaphores(tmp_path):
    """Its end would print tracebacks of a stopped training into a log."""
    (tmp_path / "tracked.py").write_text(
        "import os, signal, sys, time\n"
        "from multiprocessing.resource_tracker import _resource_tracker as tracker\n"
        "from bias_pipeline.attack.lightning_loop import context\n"
        "context()\n"
        "os.kill(tracker._pid, signal.SIGHUP)\n"
        "time.sleep(0.2)\n"
        "sys.exit(not tracker._check_alive())\n"
    )
    command, path = [sys.executable, "tracked.py"], str(REPOSITORY)
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 0
