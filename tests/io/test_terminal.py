"""What data say is shown on a terminal and in logs, never obeyed."""

import ast
import io
import logging
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from bias_pipeline.io import terminal
from bias_pipeline.io.progress import Bar, _Screen
from bias_pipeline.io.terminal import guard, print_out, printable, warn
from tests.test_layers import FILES, PACKAGE

# Colour, a title, another line, a line written over, reversed, hidden, joined, invisible letters,
# half a sign, rich's own markup.
HOSTILE = (
    "a\x1b[31mb\x1b]0;x\x07\nerror: c\rd\x9b2J\u202ee\u2066f\u200bg"
    "\u200dh\ufeffi\u3164j\u115fk\ud83dl"
)
SHOWN = (
    r"a\x1b[31mb\x1b]0;x\x07\nerror: c\rd\x9b2J\u202ee\u2066f\u200bg"
    r"\u200dh\ufeffi\u3164j\u115fk\ud83dl"
)
MARKUP = "[red]:dog:[/] [/no]"


def test_signs_that_a_terminal_obeys_are_written_out():
    assert printable(HOSTILE) == SHOWN


@given(st.text(st.characters(exclude_categories=())))
def test_nothing_but_signs_that_show_is_left(text):
    left = {unicodedata.category(sign) for sign in printable(text)}
    assert left.isdisjoint({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


@given(st.text(st.characters(categories=["L", "N", "P", "S"], exclude_characters="\u2800\u3164")))
def test_writing_of_people_stays(text):
    assert printable("Ḿ 日本 عربي -½" + text).startswith("Ḿ 日本 عربي -½")


def test_lines_are_lines(capsys):
    print_out(HOSTILE, 1)
    warn(HOSTILE)
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == (f"{SHOWN}\n1\n", f"{SHOWN}\n")


def test_a_bar_obeys_no_label(monkeypatch):
    monkeypatch.setattr("bias_pipeline.io.progress.PATIENCE_S", 0.0)
    screen = _Screen(Bar(HOSTILE + MARKUP))
    screen.show()
    drawn = screen._drawn
    assert drawn is not None
    drawn.stop()
    label = drawn.columns[0](drawn.tasks[0])
    assert isinstance(label, Text)
    assert label.plain == SHOWN + MARKUP


@pytest.fixture
def captured_log() -> Iterator[io.StringIO]:
    """What a handler wrote while the log is guarded."""
    before = logging.getLogRecordFactory()
    guard()
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logging.getLogger("a.library").addHandler(handler)
    yield stream
    logging.getLogger("a.library").removeHandler(handler)
    logging.setLogRecordFactory(before)


def test_logs_are_lines(captured_log):
    logging.getLogger("a.library").warning("of %s", HOSTILE)
    assert captured_log.getvalue() == f"of {SHOWN}\n"


def test_the_text_of_a_logged_exception_is_shown(captured_log):
    try:
        raise ValueError("x\x1b[8my\u202e")
    except ValueError:
        logging.getLogger("a.library").exception("failed")
    assert "ValueError: x\\x1b[8my\\u202e\n" in captured_log.getvalue()
    assert "\x1b" not in captured_log.getvalue()


def test_the_text_of_the_last_exception_is_shown(capsys):
    error = ValueError("x\x1b[8my")
    terminal._excepthook(ValueError, error, None)
    assert capsys.readouterr().err == "ValueError: x\\x1b[8my\n"


# Children that answer their parent on stdout; what they say is read there, not shown.
ANSWERING = {"published/_unpickle_child.py", "run/workspace.py"}
TOO_OLD = "io/installation.py"  # a Python that is too old cannot import the terminal


def names_that_write(path: Path) -> set[str]:
    """What a file calls that writes to a terminal."""
    text = path.read_text()
    if not re.search(r"\b(print|write)\(", text):  # parsing all files takes a second
        return set()
    tree = ast.parse(text)
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = {func.id for func in called if isinstance(func, ast.Name)}
    streams = {
        ast.unparse(func.value)
        for func in called
        if isinstance(func, ast.Attribute) and func.attr in ("write", "print")
    }
    return names & {"print"} | streams & {"sys.stdout", "sys.stderr", "console", "Console()"}


def test_nothing_else_writes_to_a_terminal():
    names = {str(path.relative_to(PACKAGE)): path for path in FILES.values()}
    assert {
        name: calls
        for name, path in names.items()
        if path.stem != "terminal"
        and name not in {*ANSWERING, TOO_OLD}
        and (calls := names_that_write(path))
    } == {}


@pytest.mark.parametrize(
    "source", ["print(1)", "sys.stderr.write('a')", "console.print(1)", "f = lambda: print()"]
)
def test_what_writes_to_a_terminal_is_noticed(source, tmp_path):
    (tmp_path / "a.py").write_text(source)
    assert names_that_write(tmp_path / "a.py")
