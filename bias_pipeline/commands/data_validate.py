"""``data validate``: read a data set as a run would, and print what it contains."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bias_pipeline.commands import column_options
from bias_pipeline.commands.arguments import PROGRAM, Parser
from bias_pipeline.errors import BiasPipelineError, DataError, SweepError
from bias_pipeline.io.digests import digest_mismatch
from bias_pipeline.io.progress import bar, track
from bias_pipeline.io.terminal import warn
from bias_pipeline.vision.photos import fault_of

if TYPE_CHECKING:
    from bias_pipeline.corpus.corpus import Corpus

_SHOWN = 5  # broken pictures by name


def command(words: Sequence[str]) -> int:
    """Read a data set as a run would, pictures included, and print what it contains.

    Args:
        words: overrides, and options of :mod:`.column_options`; ``captioner=``
            may name several, or ``all``.

    Returns:
        0, or the exit code of the fault; 4 if some of several captioners have one.
    """
    from bias_pipeline.analysis.inventory import print_inventory
    from bias_pipeline.config import compose

    options, words = parser().parse_known_args(list(words))
    words = [*words, *column_options.overrides_of(options)]
    wanted = [w.partition("=")[2] for w in words if w.startswith("captioner=")]
    cell = compose.cell([word for word in words if not word.startswith("captioner=")])
    dataset, attribute = cell.build("dataset"), cell.build("attribute")
    names = wanted[-1].split(",") if wanted else [dataset.captioners()[0]]
    if names == ["all"]:
        names = dataset.everyone(attribute)
    corpora, faults = [], []
    for name in names:
        try:
            limit = cell.tree.get("limit")
            corpora.append(compose.corpus_of(dataset, name, attribute, limit))
        except BiasPipelineError as error:
            if len(names) == 1:
                raise
            faults.append(f"captioner={name}: {error}")
    if corpora:
        print_inventory(corpora)
    for fault in faults:
        warn(f"error: {fault}")
    _check_pictures(corpora)
    return SweepError.exit_code if faults else 0


def _check_pictures(corpora: Sequence[Corpus]) -> None:
    """Look for broken and for changed pictures; a run would find them one by one.

    Raises:
        DataError: naming the first broken ones.
    """
    file_lists = [corpus.pictures.files for corpus in corpora if corpus.pictures is not None]
    files = sorted({file for paths in file_lists for file in paths if isinstance(file, Path)})
    with bar("pictures' digests"):
        changed = digest_mismatch(track(files, len(files)))
    if changed:
        warn(
            f"{len(changed)} of {len(files)} pictures have changed since they were last read, "
            "although "
            f"nobody wrote to them: {_named(changed)}; run again what was made from them, and have "
            "the disk checked"
        )
    with bar("pictures"):
        faults = {file: fault_of(file) for file in track(files, len(files))}
    broken = [f"{file} ({fault})" for file, fault in faults.items() if fault]
    if broken:
        raise DataError(
            f"{len(broken)} of {len(files)} pictures are broken: {_named(broken)}; mend or remove "
            "them"
        )


def _named(some: Sequence[object]) -> str:
    return ", ".join([*map(str, some[:_SHOWN]), *(["..."] if len(some) > _SHOWN else [])])


def parser() -> Parser:
    """The options and their help."""
    parser = Parser(
        f"{PROGRAM} data validate",
        usage="%(prog)s [key=value ...] [options]",
        description="Read a data set as a run would, and print what it contains",
        allow_abbrev=False,
    )
    column_options.add_options(parser)
    return parser
