"""Notebooks of experiments/ as pages: text, code, and what the code gives, figures included."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from docs.builder.sources import REPOSITORY, place_on_site

Notebook = Mapping[str, Any]

FOLDER = "docs/tutorials"
_NOTEBOOKS = ("experiments/tour.ipynb", "experiments/retrieval.ipynb")
_STYLE = re.compile(r"(?s)<style.*?</style>\s*")
_TABLE = re.compile(r"<table[^>]*>")
_HEADING = re.compile(r"(?m)^#+ (.*)$")


def notebooks() -> dict[str, Notebook]:
    """The notebooks, by the path of their page."""
    return {
        f"{FOLDER}/{Path(path).stem}.md": json.loads((REPOSITORY / path).read_text("utf-8"))
        for path in _NOTEBOOKS
    }


def tutorial_page(path: str, notebook: Notebook) -> str:
    """A notebook's page.

    Args:
        path: of the page.
        notebook: with the outputs that are shown.
    """
    file = place_on_site(Path("experiments", Path(path).stem).with_suffix(".ipynb"))
    source = f"[The notebook]({'../' * path.count('/')}{file}) ran when this page was built."
    return "\n\n".join([*_blocks(notebook), source]) + "\n"


def _blocks(notebook: Notebook) -> Iterator[str]:
    heading = ""
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            heading = (_HEADING.findall(text) or [heading])[-1]
            yield text
            continue
        yield f"```python\n{text}\n```"
        yield from (_output(output, heading) for output in cell["outputs"])


def _output(output: Mapping[str, Any], heading: str) -> str:
    """What a cell printed, or its value: a figure, a table or text."""
    data = output.get("data", {})
    if "image/png" in data:
        return f"![Figure: {heading}](data:image/png;base64,{data['image/png']})"
    if "text/html" in data:
        return _TABLE.sub("<table>", _STYLE.sub("", "".join(data["text/html"])))
    return "```text\n" + "".join(output.get("text") or data["text/plain"]).rstrip() + "\n```"
