"""Studies: one folder each, with its command, its rows and a comparison with published numbers."""

import ast
import sys
from importlib.util import find_spec
from pathlib import Path


def _help_of(module: str) -> str:
    """The docstring of a script that reads no options, where its usage is; empty for others.

    Such a script would take ``--help`` for its data, begin, and write its committed rows.
    """
    spec = find_spec(module)
    source = Path(spec.origin).read_text(encoding="utf-8") if spec and spec.origin else ""
    return "" if "ArgumentParser" in source else ast.get_docstring(ast.parse(source)) or ""


if sys.argv[:1] == ["-m"] and {"-h", "--help"} & {*sys.argv}:  # as Python has it under -m
    _script = sys.orig_argv[sys.orig_argv.index("-m") + 1]
    if _text := _help_of(_script):
        print(_text)
        raise SystemExit(0)
