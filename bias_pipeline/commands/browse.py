"""``browse``: finished runs in a browser, from their table to what is behind a number."""

from __future__ import annotations

from pathlib import Path

from bias_pipeline.commands.arguments import PROGRAM, Parser
from bias_pipeline.commands.serving import (
    add_address_options,
    check_address,
    hosts_of,
    listening,
    serve,
    token_of,
)
from bias_pipeline.io.optional_dependencies import WEB
from bias_pipeline.io.terminal import warn


def parser() -> Parser:
    """The options and their help."""
    parser = Parser(
        f"{PROGRAM} browse",
        description="Look through finished runs in a browser; nothing is changed and nothing "
        "leaves the machine",
    )
    parser.add_argument(
        "folder", type=Path, nargs="?", default=Path("outputs"), help="folder of runs (outputs)"
    )
    add_address_options(parser, "readers")
    return parser


def command(words: list[str]) -> int:
    """Serve pages until the process is ended; returns the exit code.

    Raises:
        BiasPipelineError: if there is nothing to show, or the address cannot be used.
    """
    options = parser().parse_args(words)
    check_address(options)
    WEB.require()
    from bias_pipeline.web.browsing import BrowsePages
    from bias_pipeline.web.run_folder import RunFolder

    folder = RunFolder(options.folder)
    for fault in folder.faults:
        warn(fault)
    token = token_of(options)
    pages = BrowsePages(folder, token)
    with listening(options) as listener:
        about = f"({len(folder.runs)} runs)"
        application = pages.application(hosts_of(options))
        serve(application, listener, options, token, about=about, stop="nothing was changed")
    return 0
