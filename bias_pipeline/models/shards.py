"""Divides a large job: images into blocks, blocks among independent tasks.

A hash of an image's id decides its block, so neither the order of files nor the number of tasks
matters: a job may be stopped with four tasks and continue with seven. A stamp, a photo's content as
one number, shows that a file has changed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bias_pipeline.errors import UsageError
from bias_pipeline.io.digests import digests_of
from bias_pipeline.io.hashing import hash_ids
from bias_pipeline.io.progress import bar, track

LARGEST_BLOCK = 128  # on average
FEWEST_BLOCKS = 64  # so that small jobs can be divided too


@dataclass(frozen=True)
class Shard:
    """Task ``number`` (from 0) of ``count``."""

    number: int = 0
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read ``K/N``.

        Example:
            >>> Shard.parse("3/16")
            Shard(number=3, count=16)
        """
        match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
        if not match or int(match[1]) >= int(match[2]):
            raise UsageError(f"--shard {text}: expected K/N with K from 0 to N-1, such as 0/16")
        return cls(int(match[1]), int(match[2]))

    @classmethod
    def of_slurm(cls, variables: Mapping[str, str] = os.environ) -> Shard:
        """This task of a Slurm array, whatever its first number; outside an array, the only one.

        Example:
            >>> array = {"ID": "12", "MIN": "10", "MAX": "14", "STEP": "2", "COUNT": "3"}
            >>> Shard.of_slurm({f"SLURM_ARRAY_TASK_{key}": value for key, value in array.items()})
            Shard(number=1, count=3)
        """
        settings = {k: variables.get(f"SLURM_ARRAY_TASK_{k}", "") for k in _ARRAY}
        if not settings["ID"]:
            return cls()
        if not all(value.isdecimal() for value in settings.values()):
            raise UsageError(f"SLURM_ARRAY_TASK_* is incomplete ({settings}); give --shard K/N")
        task, first, last, step, count = (int(settings[key]) for key in _ARRAY)
        if step < 1 or count != (last - first) // step + 1 or (task - first) % step:
            raise UsageError(
                f"the Slurm array has gaps ({count} tasks from {first} to {last}), so its "
                'shards are unknown; give --shard "$SLURM_ARRAY_TASK_ID/N"'
            )
        return cls((task - first) // step, count)

    def share(self, blocks: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
        """The blocks of this task.

        Example:
            >>> Shard(1, 2).share([["a"], ["b"], ["c"]])
            [['b']]
        """
        return blocks[self.number :: self.count]


_ARRAY = ("ID", "MIN", "MAX", "STEP", "COUNT")


def blocks_of(ids: Iterable[str]) -> list[tuple[str, ...]]:
    """Spread images over blocks by a hash of their ids.

    The number of blocks is a power of two, with ``LARGEST_BLOCK`` images on average at most, so
    that one more image changes only one block.

    Example:
        >>> blocks = blocks_of(map(str, range(100_000)))
        >>> len(blocks), max(map(len, blocks))
        (1024, 130)
    """
    ordered = sorted(ids)
    wanted = max(FEWEST_BLOCKS, -(-len(ordered) // LARGEST_BLOCK))
    bits = (wanted - 1).bit_length()
    numbers = (hash_ids(ordered) >> np.uint64(64 - bits)).astype(np.int64)
    blocks: list[list[str]] = [[] for _ in range(1 << bits)]
    for identifier, number in zip(ordered, numbers.tolist(), strict=True):
        blocks[number].append(identifier)
    return [tuple(block) for block in blocks if block]


GONE = 0  # of a photo that cannot be read
_OF_CONTENT = 1 << 60  # added to a part of a digest; above any size in bytes
_DIGITS = 15  # hexadecimal digits of a digest; with the above it fits into a signed 64-bit integer


def photo_stamps(photos: Sequence[Path]) -> list[int]:
    """A number for each photo's content.

    Example:
        >>> photo_stamps([Path("nowhere.jpg")])
        [0]
    """
    with bar("reading photos"):
        digests = digests_of(track(photos, len(photos)))
    return [
        GONE if digest is None else _OF_CONTENT | int(digest[:_DIGITS], 16) for digest in digests
    ]


def is_of_content(stamp: int) -> bool:
    """Whether a stamp is of content; earlier versions wrote sizes in bytes.

    Example:
        >>> is_of_content(123456), is_of_content(-1)
        (False, False)
    """
    return stamp >= _OF_CONTENT


def by_name(sources: Sequence[object]) -> list[int]:
    """Stamps of sources whose names are digests: a source that changes has another name.

    Example:
        >>> by_name(["a", "b"])
        [0, 0]
    """
    return [0] * len(sources)
