"""The options of ``audit`` for the settings that its messages advise."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from typing import Annotated, Any, get_args

from bias_pipeline.commands.arguments import PROGRAM, number
from bias_pipeline.corpus.corpus import BLANK_LIMIT
from bias_pipeline.data.joined_captions import Separator
from bias_pipeline.declared import Range, Share
from bias_pipeline.text.scored_text import Declined, Preambles, Stock, Unit

# By option, its key in the configuration and its reader
_SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "--preambles": (
        "text.preambles",
        {
            "choices": get_args(Preambles),
            "help": "cut openings such as 'Here is a caption:' that language models write, on "
            "both sides (default: keep)",
        },
    ),
    "--unit": (
        "text.unit",
        {
            "choices": get_args(Unit),
            "help": "score each caption as a whole, its first sentence, or its sentences that "
            "have a word for a person (default: caption)",
        },
    ),
    "--declined": (
        "text.declined",
        {
            "choices": get_args(Declined),
            "help": "whether captions that decline to describe the image count as absent or as "
            "captions (default: absent)",
        },
    ),
    "--stock": (
        "text.stock",
        {
            "choices": get_args(Stock),
            "help": "whether human captions that describe nothing, such as stock sentences and "
            "copies, are dropped (default: drop)",
        },
    ),
    "--blank-limit": (
        "dataset.blank_limit",
        {
            "type": number(Share),
            "metavar": "SHARE",
            "help": "refuse the model's or the human captions if a larger share of them is blank "
            f"or declines (default: {BLANK_LIMIT})",
        },
    ),
    "--multi-caption": (
        "dataset.multi_caption",
        {
            "action": "store_const",
            "const": "true",
            "help": "the file may have several captions of an image, of which the first is scored",
        },
    ),
    "--caption-index": (
        "dataset.caption_index",
        {
            "type": number(Annotated[int, Range(low=0)]),
            "metavar": "N",
            "help": "which of several captions of an image is scored, counted from 0 (default: 0)",
        },
    ),
    "--separator": (
        "dataset.separator",
        {
            "choices": get_args(Separator),
            "help": "the character between several captions in one cell; none: each cell is one "
            "caption",
        },
    ),
}
_FLAGS = {key: flag for flag, (key, _) in _SETTINGS.items()}
_KEY = re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, _FLAGS))})(?:=(\w(?:[\w.]*\w)?))?")


def add_settings(parser: ArgumentParser) -> None:
    """Add a group of options for the settings."""
    group = parser.add_argument_group("what of the captions is scored")
    for flag, (key, how) in _SETTINGS.items():
        group.add_argument(flag, dest=key, **how)


def setting_overrides(options: Namespace) -> list[str]:
    """The options that were given, as overrides of the configuration."""
    given = {key: getattr(options, key) for key in _FLAGS}
    return [f"{key}={value}" for key, value in given.items() if value is not None]


def in_options(text: str) -> str:
    """A message in which options replace keys; commands in the message stay as they are.

    Example:
        >>> in_options("text.preambles=cut removes them; or raise dataset.blank_limit")
        '--preambles cut removes them; or raise --blank-limit'
        >>> in_options("choose one with dataset.multi_caption=true")
        'choose one with --multi-caption'
    """
    message, program, command = text.partition(f"{PROGRAM} ")
    return f"{_KEY.sub(_option, message)}{program}{command}"


def _option(match: re.Match[str]) -> str:
    key, value = match.groups()
    flag = _FLAGS[key]
    constant = _SETTINGS[flag][1].get("const")
    return flag if value in (None, constant) else f"{flag} {value}"
