"""Run a notebook in this process, as Jupyter would, and store the outputs of its cells.

``python -m experiments.notebook experiments/tour.ipynb`` writes the outputs into the file; a figure
is stored as PNG.
"""

from __future__ import annotations

import ast
import base64
import io
import json
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

Output = dict[str, Any]


def execute(notebook: Mapping[str, Any]) -> dict[str, Any]:
    """The same notebook with new outputs of its code cells."""
    scope: dict[str, Any] = {"__name__": "__main__"}
    cells, count = [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            outputs = _outputs("".join(cell["source"]), scope, count)
            cell = {**cell, "execution_count": count, "outputs": outputs}
        cells.append(cell)
    return {**notebook, "cells": cells}


def cell_outputs(notebook: Mapping[str, Any]) -> list[str]:
    """The outputs of a notebook's cells, as plain text."""
    return [
        "".join(output.get("text") or output["data"]["text/plain"])
        for cell in notebook["cells"]
        for output in cell.get("outputs", ())
    ]


def _outputs(source: str, scope: dict[str, Any], count: int) -> list[Output]:
    """Run a cell; what it prints, and the value of its last line."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(io.StringIO()):  # progress is not kept
        exec(compile(tree, "cell", "exec"), scope)  # noqa: S102 - that is what a notebook is
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), scope)  # noqa: S307
    text = printed.getvalue()
    outputs: list[Output] = []
    if text:
        lines = text.splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines})
    if value is not None:
        outputs.append(_result(value, count))
    return outputs


def _result(value: Any, count: int) -> Output:
    data: dict[str, Any] = {"text/plain": repr(value).splitlines(keepends=True)}
    if hasattr(value, "savefig"):  # a figure of matplotlib
        picture = io.BytesIO()
        value.savefig(picture, format="png", dpi=100, metadata={"Software": None})
        data["image/png"] = base64.b64encode(picture.getvalue()).decode()
    elif hasattr(value, "_repr_html_"):
        data["text/html"] = value._repr_html_().splitlines(keepends=True)
    return {
        "data": data,
        "execution_count": count,
        "metadata": {},
        "output_type": "execute_result",
    }


def main(path: Path) -> None:
    notebook = execute(json.loads(path.read_text(encoding="utf-8")))
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
