"""Options that say which column of your own files holds what, and what your labels mean."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from bias_pipeline.config.overrides import quoted

_KEYS = {
    "id_column": "of image ids, in every file that has it",
    "caption_column": "of captions in the captioner's file",
    "human_caption_column": "of captions in people's file",
    "label_column": "of labels",
}


def add_options(parser: ArgumentParser) -> None:
    """The options, in a group of their own."""
    group = parser.add_argument_group("your own columns and labels, where they are not known")
    for key, what in _KEYS.items():
        group.add_argument(f"--{key.replace('_', '-')}", metavar="COLUMN", help=what)
    group.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="LABEL=GROUP",
        help="what a label means, a group or a known label of no group: M=male; again for others",
    )


def overrides_of(options: Namespace) -> list[str]:
    """What the options are in a configuration.

    Example:
        >>> print(*overrides_of(Namespace(id_column="photo id", map=["M=male"])))
        dataset.id_column='photo id' dataset.label_map=['M=male']
    """
    named = {key: getattr(options, key, None) for key in _KEYS}
    found = [f"dataset.{key}={quoted(name)}" for key, name in named.items() if name is not None]
    if options.map:
        found.append(f"dataset.label_map=[{','.join(map(quoted, options.map))}]")
    return found
