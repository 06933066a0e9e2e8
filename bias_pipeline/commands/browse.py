"""``browse``: finished runs in a browser, from their table to what is behind a number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bias_pipeline.commands.arguments import PROGRAM, Parser
from bias_pipeline.commands.serving import (
    add_address_options,
    check_address,
    hosts_of,
    listening,
    serve,
    token_of,
)
from bias_pipeline.config import compose
from bias_pipeline.config.overrides import quoted
from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.io.machine import WEB
from bias_pipeline.io.terminal import warn

if TYPE_CHECKING:
    from bias_pipeline.results.store import Result
    from bias_pipeline.web.captions_behind import CaptionsBehind

_ALIGNMENT = "alignment"  # it changes people's captions, by the words of all of the captioner's


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
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="folder with the files that were scored, where they are no longer where they were",
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
    if options.data and not options.data.is_dir():
        raise ResourceError(f"--data {options.data} is not a folder")
    WEB.require()
    from bias_pipeline.web.browsing import BrowsePages
    from bias_pipeline.web.captions_behind import Library
    from bias_pipeline.web.run_folder import RunFolder

    folder = RunFolder(options.folder)
    for fault in folder.faults:
        warn(fault)
    token = token_of(options)
    pages = BrowsePages(folder, Library(ScoredFiles(options.data)), token)
    with listening(options) as listener:
        about = f"({len(folder.runs)} runs)"
        application = pages.application(hosts_of(options))
        serve(application, listener, options, token, about=about, stop="nothing was changed")
    return 0


@dataclass(frozen=True)
class ScoredFiles:
    """Reads what runs scored, from the files that their manifests name."""

    # Folder in which files of the same name are taken instead; None for none
    data: Path | None = None

    def __call__(self, result: Result) -> CaptionsBehind:
        """What a run scored, not yet checked against its digest.

        Raises:
            BiasPipelineError: if its files cannot be read.
        """
        from bias_pipeline.web.captions_behind import CaptionsBehind

        given = result.manifest.get("overrides")
        if not isinstance(given, list) or not all(isinstance(word, str) for word in given):
            raise DataError(
                "this run was made in Python and names no files, so only its numbers are shown"
            )
        words = [word for word in given if not word.startswith("-")]
        cell = compose.cell([*map(self._here, words), *self._root(words)])
        keys = cell.keys
        transforms = getattr(cell.build("metric"), "transforms", ())
        of_captions = [
            transform
            for number, transform in enumerate(transforms)
            if keys.get(f"transforms.{number}") != _ALIGNMENT
        ]
        return CaptionsBehind(cell.corpus(), cell.build("attribute"), of_captions)

    def _here(self, word: str) -> str:
        """An override of a file, with the file of that name in the folder if there is one."""
        key, equals, value = word.partition("=")
        name = Path(value.strip("'\"")).name
        file = key.startswith("dataset.") or key == "captioner"
        known = self.data is not None and name not in ("", "..") and (self.data / name).exists()
        if not (self.data and equals and file and known):
            return word
        return f"{key}={quoted(str((self.data / name).absolute()))}"

    def _root(self, words: Sequence[str]) -> list[str]:
        """The override of the data set's own folder, if it has one."""
        if self.data is None or "root" not in compose.cell(words).tree["dataset"]:
            return []
        return [f"dataset.root={quoted(str(self.data.absolute()))}"]
