"""Options that name the columns of your own files and the meaning of your labels."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from bias_pipeline.config.overrides import quoted

_KEYS = {
    "id_column": "column of image ids, in every file that has it",
    "caption_column": "column of captions in the captioner's file",
    "human_caption_column": "column of captions in people's file",
    "label_column": "column of labels",
}


def add_options(parser: ArgumentParser) -> None:
    """Add the options, as a group."""
    group = parser.add_argument_group("your own columns and labels, if their names are not known")
    for key, what in _KEYS.items():
        group.add_argument(f"--{key.replace('_', '-')}", metavar="COLUMN", help=what)
    group.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="LABEL=GROUP",
        help="the group of a label, or a known label without a group: M=male; repeat for others",
    )


def overrides_of(options: Namespace) -> list[str]:
    """Options as overrides of the configuration.

    Example:
        >>> print(*overrides_of(Namespace(id_column="photo id", map=["M=male"])))
        dataset.id_column='photo id' dataset.label_map=['M=male']
    """
    named = {key: getattr(options, key, None) for key in _KEYS}
    overrides = [f"dataset.{key}={quoted(name)}" for key, name in named.items() if name is not None]
    if options.map:
        overrides.append(f"dataset.label_map=[{','.join(map(quoted, options.map))}]")
    return overrides
