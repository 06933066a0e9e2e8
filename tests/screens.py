"""The screens of docs/screens.md, each made by the command above it.

``python -m tests.screens`` makes them anew, for a change that is meant to change what audits print.
"""

import contextlib
import io
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from bias_pipeline.commands.main import main
from tests.corpora import REPOSITORY

PAGE = REPOSITORY / "docs" / "screens.md"
_COMMAND = re.compile(
    r"```sh\npython -m bias_pipeline (.*)\n```\n(?:\n```text\n((?:.*\n)*?)```\n)?"
)


def shown_screens() -> list[tuple[list[str], str]]:
    """The words of each command, and what the page says that it prints; empty for nothing."""
    text = PAGE.read_text(encoding="utf-8")
    return [(shlex.split(command), screen or "") for command, screen in _COMMAND.findall(text)]


def print_screen(words: list[str]) -> str:
    """What a command prints on standard output, in a pipe."""
    screen = io.StringIO()
    with contextlib.redirect_stdout(screen):
        code = main(words)
    assert code == 0, words
    return screen.getvalue()


def make_screens() -> Iterator[str]:
    """What each command prints, in a folder of its own."""
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        for words, _ in shown_screens():
            yield print_screen(words)


def _write() -> None:
    texts = iter([*make_screens()][1:])  # the first command draws the data
    page = PAGE.read_text(encoding="utf-8")
    page = re.sub(r"```text\n(?:.*\n)*?```\n", lambda _: f"```text\n{next(texts)}```\n", page)
    Path(PAGE).write_text(page, encoding="utf-8")


if __name__ == "__main__":
    os.environ.pop("COLUMNS", None)
    _write()
