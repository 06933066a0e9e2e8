"""The process that reads a pickle is not trusted, and can do little."""

import subprocess
import sys
from collections.abc import Callable

import pytest

from bias_pipeline.published import pickles
from bias_pipeline.published.pickles import UnpicklingLimits
from tests.published.test_pickles import refuse


@pytest.fixture
def message_of_reader(tmp_path, monkeypatch) -> Callable[..., str]:
    """What a reader that is this code makes of a file: the message of the refusal."""

    def run(code: str, **limits: float) -> str:
        (tmp_path / "child.py").write_text(code)
        monkeypatch.setattr(pickles, "_CHILD", tmp_path / "child.py")
        return refuse(tmp_path, b"N.", UnpicklingLimits(**limits))

    return run


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("print('{nonsense')", "no readable answer"),
        ("print('+{nonsense')", "no readable answer"),
        ("print('+' + '[' * 100000)", "no readable answer"),
        ("import sys; sys.stdout.buffer.write(b'+\"\\xff\"')", "no readable answer"),
        ("print('-[1, 2]')", "no readable answer"),
        ('print(\'-{"code": "surprise"}\')', "no readable answer"),
        ("print('+[]'); raise SystemExit(3)", "ended early (exit code 3)"),
        ("import os; os.kill(os.getpid(), 11)", "ended early (signal 11)"),
        ("print('+\"' + 'x' * 9999999)", "too large when written out"),
    ],
)
def test_subverted_reader_is_not_trusted(message_of_reader, code, message):
    assert message in message_of_reader(code, data_bytes=1 << 20)


@pytest.mark.parametrize("code", ["", "import os; os.close(1)"])
def test_reader_that_hangs_is_ended(message_of_reader, code):
    hanging = f"{code}\nimport time; time.sleep(60)"
    assert "not read within 0.5 s" in message_of_reader(hanging, wall_seconds=0.5)


def test_subverted_reader_cannot_write_to_the_terminal(message_of_reader):
    text = r'-{"code": "type", "found": "\u001b[31m", "where": "\u202e", "offset": null}'
    assert message_of_reader(f"print({text!r})").isprintable()


@pytest.mark.parametrize(
    "deed",
    [
        "open('file', 'w').write('x' * 100_000)",
        "[os.dup(0) for _ in range(20)]",
        "bytearray(2 << 30)",
    ],
)
def test_subverted_reader_can_do_little(tmp_path, deed):
    code = (
        f"import os, sys; sys.path.insert(0, {str(pickles._CHILD.parent)!r}); "
        f"import _unpickle_child as child; child._restrict(1 << 30, 5)\n"
        f"try: {deed}\n"
        "except (OSError, MemoryError): print('failed')"
    )
    command = [sys.executable, "-I", "-S", "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "failed\n"


def test_nothing_that_the_reader_prints_reaches_the_terminal(message_of_reader, capfd):
    message_of_reader("raise ValueError('a traceback')")
    assert capfd.readouterr() == ("", "")
