"""``make docs``: collect and generate the pages, and build the site from them.

Usage: python -m docs.builder [FOLDER]
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from pathlib import Path

from docs.builder.benchmarks import benchmarks_page
from docs.builder.metric_pages import metric_pages
from docs.builder.nav import nav
from docs.builder.papers import papers_page
from docs.builder.reference import commands_page, configuration_pages, python_pages
from docs.builder.sources import REPOSITORY, stage, write
from docs.builder.tutorials import notebooks, tutorial_page
from experiments.notebook import execute

STAGED = REPOSITORY / ".site"
HERE = REPOSITORY / "docs"


def generated_pages() -> dict[str, str]:
    """The pages that are made from code, by path, some in place of the repository's.

    Those of notebooks have the outputs that are stored in them.
    """
    return {
        **metric_pages(),
        "docs/commands.md": commands_page(),
        "docs/papers.md": papers_page(),
        "docs/benchmarks.md": benchmarks_page(),
        **configuration_pages(),
        **python_pages(),
        **{path: tutorial_page(path, notebook) for path, notebook in notebooks().items()},
    }


def main(site: Path) -> int:
    """Build the site into a folder; returns the exit code."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config
    from mkdocs.exceptions import Abort

    logging.basicConfig(format="%(levelname)s: %(message)s")  # there mkdocs says what is broken
    os.environ["COLUMNS"] = "100"  # of the commands' help
    os.environ["NO_MKDOCS_2_WARNING"] = "1"
    pages = generated_pages()
    pages |= {path: tutorial_page(path, execute(each)) for path, each in notebooks().items()}
    shutil.rmtree(STAGED, ignore_errors=True)
    stage(STAGED)
    shutil.copytree(HERE / "builder" / "assets", STAGED / "assets")
    for path, text in pages.items():
        write(STAGED / path, text)
    config = load_config(str(HERE / "mkdocs.yml"), nav=nav(list(pages)), site_dir=str(site))
    config.plugins.on_startup(command="build", dirty=False)
    try:
        build(config)
    except Abort:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(*sys.argv[1:2] or [REPOSITORY / "site"]).resolve()))
