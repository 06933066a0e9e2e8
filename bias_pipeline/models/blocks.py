"""Divides a large job into blocks, and stores each finished block in a file named by its inputs.

A hash of an image's id decides its block. Independent tasks share the blocks. So the order of files
and the number of tasks do not matter. A job that was stopped with four tasks may continue with
seven. A stamp is a number made of a photo's content, which shows that a file has changed.

``OUT/<signature>/`` belongs to one model with its preprocessing and settings, and any difference
gives another folder. The folder contains ``settings.json``, ``plans/`` with the images of each
folder of photos, and ``blocks/``. Any number of processes may write into it: a block appears
completely or not at all, and two writers of one block write the same content.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from bias_pipeline.errors import DataError, ResourceError, UsageError, cannot_write, did_you_mean
from bias_pipeline.io.digests import digests_of
from bias_pipeline.io.files import DRAFTS, clear_drafts, replace_file
from bias_pipeline.io.hashing import hash_ids
from bias_pipeline.io.json_files import expect, load_json
from bias_pipeline.io.progress import bar, track

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

log = logging.getLogger(__name__)

SETTINGS = "settings.json"
NOT_YET = "not computed yet"
UNSETTLED = -1  # the stamp of temporary failures, which no source has
_NOTE = "note"
_SIGNATURE = 16  # hexadecimal digits


@dataclass(frozen=True)
class Block:
    """The results of some images."""

    ids: Sequence[str]  # the N images
    stamps: Sequence[int]  # (N,) numbers that change with the content of an image
    # (N,) a text, a list of texts, a float32 or float16 vector of D numbers, or None if there is a
    # reason
    values: Sequence[Any]
    reasons: Sequence[str | None]  # (N,) why there is no value, None if there is one
    # (N,) a note on each text of a list, None if there is nothing to note; may be empty
    notes: Sequence[Sequence[str] | None] = ()


class BlockStore:
    """The finished blocks of one model under its settings.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = BlockStore(Path(folder), {"prompt": ""}, "a model")
        ...     store.put(Block(["1", "2"], [10, 20], ["a dog", None], [None, "empty"]))
        ...     store.has(["1", "2"], [10, 20]), store.has(["1", "2"], [10, 21])
        (True, False)
    """

    def __init__(self, root: Path, settings: Mapping[str, object], model: str) -> None:
        self.root, self.settings, self.model = root, settings, model
        text = json.dumps(settings, sort_keys=True)
        self.signature = hashlib.sha256(text.encode()).hexdigest()[:_SIGNATURE]
        self.folder = root / self.signature

    def plan(self, ids: Sequence[str]) -> None:
        """Write the list of images; only the images of the latest list are gathered."""
        for pattern in (DRAFTS, f"plans/{DRAFTS}", f"blocks/*/{DRAFTS}"):
            clear_drafts(self.folder.glob(pattern))
        text = json.dumps(sorted(ids), ensure_ascii=False)
        path = self.folder / "plans" / f"{hashlib.sha256(text.encode()).hexdigest()}.json"
        self._renew(path, text)
        self.introduce()
        try:
            os.utime(path)
        except OSError as error:
            raise cannot_write(f"to {self.root}", error) from error

    def introduce(self) -> None:
        text = json.dumps({"model": self.model, "settings": self.settings}, indent=1)
        self._renew(self.folder / SETTINGS, text)

    def _renew(self, path: Path, text: str) -> None:
        if _content(path) != text.encode():  # absent, or damaged
            self._write(path, text.encode())

    def has(self, ids: Sequence[str], stamps: Sequence[int]) -> bool:
        """Whether a finished block has exactly these images with these contents."""
        return [stamp for stamp, _ in self.outcomes(ids).values()] == list(stamps)

    def outcomes(self, ids: Sequence[str]) -> dict[str, tuple[int, str | None]]:
        """The stamp of each image, and why it has no value; empty if there is no intact block."""
        table = self.read(ids)
        if table is None:
            return {}
        fields = zip(table["stamp"].to_pylist(), table["reason"].to_pylist(), strict=True)
        return dict(zip(ids, fields, strict=True))

    def read(self, ids: Sequence[str]) -> pa.Table | None:
        """The columns ``id stamp value reason`` of a block; None if the block is absent or damaged.

        There is a column ``note`` if a text of the block has a note.
        """
        table = read_block(self._path(ids))
        return table if table is not None and table["id"].to_pylist() == list(ids) else None

    def index(self) -> dict[Path, dict[str, int]]:
        """The ids and stamps in every intact block, by the block's path and in a fixed order.

        A process reads a block again only if the file's size or time has changed.
        """
        blocks: dict[Path, dict[str, int]] = {}
        for path in sorted(self.folder.glob("blocks/*/*.block")):
            with suppress(FileNotFoundError):
                status = path.stat()
                blocks[path] = _stamps_of_version(path, status.st_size, status.st_mtime_ns)
        return {path: stamps for path, stamps in blocks.items() if stamps}

    def names_with(self, stamp: int) -> set[str]:
        """The ids that have this stamp in any intact block."""
        return {
            name for stamps in self.index().values() for name, one in stamps.items() if one == stamp
        }

    def put(self, block: Block) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = {
            "id": pa.array(block.ids, pa.string()),
            "stamp": pa.array(block.stamps, pa.int64()),
            "value": _column(block.values),
            "reason": pa.array(block.reasons, pa.string()),
        }
        if any(block.notes):
            columns[_NOTE] = pa.array(block.notes, pa.list_(pa.string()))
        content = BytesIO()
        pq.write_table(
            pa.table(columns),
            content,
            compression="none",
            use_dictionary=False,
            write_statistics=False,
        )
        sealed = hashlib.sha256(content.getvalue()).digest() + content.getvalue()
        self._write(self._path(block.ids), sealed)

    def _path(self, ids: Sequence[str]) -> Path:
        name = hashlib.sha256(json.dumps([self.signature, *ids]).encode()).hexdigest()
        return self.folder / "blocks" / name[:2] / f"{name}.block"

    def _write(self, path: Path, content: bytes) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, content)
        except OSError as error:
            raise cannot_write(f"to {self.root}", error) from error

    @cached_property
    def planned_images(self) -> list[str]:
        plans = list(self.folder.glob("plans/*.json"))
        if not plans:
            raise ResourceError(f"{self.folder}: has no plan; start the job again")
        latest = max(plans, key=lambda path: path.stat().st_mtime_ns)
        content = _content(latest)
        if hashlib.sha256(content).hexdigest() != latest.stem:
            raise DataError(f"{latest}: is damaged; start the job again, which rewrites it")
        return expect(load_json(latest, what="a list of image ids"), list, latest, "")

    def gather(self) -> tuple[list[pa.Table], dict[str, str], set[str]]:
        """Tables of values, the reasons why images have no value, and the images to try again."""
        tables: list[pa.Table] = []
        missing: dict[str, str] = {}
        open_ids: set[str] = set()
        for ids in blocks_of(self.planned_images):
            table = self.read(ids)
            if table is None:
                missing |= dict.fromkeys(ids, NOT_YET)
                open_ids.update(ids)
                continue
            stamps, reasons = table["stamp"].to_pylist(), table["reason"].to_pylist()
            for image, stamp, reason in zip(ids, stamps, reasons, strict=True):
                if reason is not None:
                    missing[image] = reason
                    open_ids |= {image} if stamp == UNSETTLED else set()
            readable = table.filter(table["reason"].is_null()).drop_columns(["stamp", "reason"])
            tables += [readable] if len(readable) else []
        return tables, missing, open_ids


@contextmanager
def store_in(cache: str | None, settings: Mapping[str, object], model: str) -> Iterator[BlockStore]:
    if cache is not None:
        yield BlockStore(Path(cache), settings, model)
        return
    with TemporaryDirectory() as folder:
        yield BlockStore(Path(folder), settings, model)


def read_block(path: Path) -> pa.Table | None:
    """The columns ``id stamp value reason`` of a file, or None if it is absent or damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # Without threads: a thread pool that is still starting aborts an ending process.
        raw = path.read_bytes()
        checksum, content = raw[:32], raw[32:]
        if hashlib.sha256(content).digest() != checksum:
            raise ValueError("its checksum does not fit")
        table = pq.ParquetFile(BytesIO(content), pre_buffer=False).read(use_threads=False)
        noted = [_NOTE] if _NOTE in table.column_names else []
        return table.select(["id", "stamp", "value", "reason", *noted])
    except FileNotFoundError:
        return None
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        log.warning("%s is damaged and counts as absent: %s", path, error)
        return None


@lru_cache(maxsize=100_000)
def _stamps_of_version(path: Path, size: int, changed: int) -> dict[str, int]:
    """A block's ids with their stamps; size and time identify the version of the file."""
    del size, changed
    table = read_block(path)
    if table is None:
        return {}
    return dict(zip(table["id"].to_pylist(), table["stamp"].to_pylist(), strict=True))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _column(values: Sequence[Any]) -> pa.Array:
    """A column of texts, of lists of texts, or of vectors as lists.

    The lists have no fixed size, since pyarrow before 26 cannot read lists of a fixed size if one
    is missing.
    """
    import pyarrow as pa

    first = next((value for value in values if value is not None), "")
    if isinstance(first, str):
        return pa.array(values, pa.string())
    if isinstance(first, list):
        return pa.array(values, pa.list_(pa.string()))
    half = getattr(first, "dtype", None) == "float16"
    return pa.array(values, pa.list_(pa.float16() if half else pa.float32()))


def block_notes(table: pa.Table) -> list[Sequence[str] | None]:
    """(N,) the notes on each image's texts, with None where nothing is noted."""
    return table[_NOTE].to_pylist() if _NOTE in table.column_names else [None] * len(table)


def block_values(table: pa.Table) -> list[Any]:
    """(N,) the values in their stored form: texts, lists of texts, vectors, or None."""
    column: Any = table["value"]
    number = {"float": np.float32, "halffloat": np.float16}.get(
        str(getattr(column.type, "value_type", None))
    )
    values: list[Any] = column.to_pylist()
    return [value if number is None or value is None else number(value) for value in values]


def vectors_of(column: Any) -> npt.NDArray[np.floating]:
    """(N, D) the vectors of a column in their stored precision, without gaps."""
    array = column.combine_chunks()
    n_vectors = len(array) - array.null_count
    vectors: npt.NDArray[np.floating] = array.flatten().to_numpy().reshape(n_vectors, -1)
    return vectors


def find_store(root: Path, job: str, signature: str = "") -> BlockStore:
    """The only run in a folder, or the run with a given signature."""
    stores, damaged = _stores(root)
    by_signature = {store.signature: store for store in stores if store.settings.get("job") == job}
    if not by_signature and damaged:
        raise damaged[0]
    if not by_signature:
        raise ResourceError(f"{root}: has no blocks of '{job}'; start it with --out {root}")
    chosen = [store for name, store in by_signature.items() if name.startswith(signature)]
    if not chosen:
        raise ResourceError(
            f"{root}: no run {signature!r}; {did_you_mean(signature, by_signature)}"
        )
    if len(chosen) > 1:
        raise DataError(
            f"{root}: {len(chosen)} runs that must not be mixed: "
            f"{'; '.join(_differences(chosen))}; choose one with --run"
        )
    return chosen[0]


def _stores(root: Path) -> tuple[list[BlockStore], list[DataError]]:
    """All runs in a folder, and for every other folder the error that says why it is no run."""
    stores, damaged = [], []
    for path in sorted(root.glob(f"*/{SETTINGS}")):
        try:
            stores.append(_read_store(path))
        except DataError as error:
            log.warning("%s", error)
            damaged.append(error)
    return stores, damaged


def _read_store(path: Path) -> BlockStore:
    read = expect(load_json(path, what="settings of a run"), dict, path, "")
    settings = expect(read.get("settings"), dict, path, "settings")
    store = BlockStore(path.parent.parent, settings, expect(read.get("model"), str, path, "model"))
    if store.folder != path.parent:
        raise DataError(f"{path}: the settings were changed; start the job again")
    return store


def _differences(stores: Sequence[BlockStore]) -> list[str]:
    """A line for each run, with its model and the settings in which runs differ."""
    keys = {key: None for store in stores for key in store.settings if key != "files"}
    differ = [k for k in keys if len({json.dumps(store.settings.get(k)) for store in stores}) > 1]
    return [
        ", ".join(
            [
                f"{store.signature} (model {store.model}",
                *(f"{k}={store.settings.get(k)!r}" for k in differ),
            ]
        )
        + ")"
        for store in stores
    ]


LARGEST_BLOCK = 128  # most images of a block, on average
FEWEST_BLOCKS = 64  # so many blocks let small jobs be divided, too


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
        """This task of a Slurm array, whose numbers may start anywhere; otherwise the only task.

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


GONE = 0  # the stamp of a photo that cannot be read
_OF_CONTENT = 1 << 60  # added to a part of a digest, so that no readable photo has the stamp GONE
_DIGITS = 15  # hexadecimal digits of the digest; the sum fits into a signed 64-bit integer


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


def by_name(sources: Sequence[object]) -> list[int]:
    """Stamps for sources whose names are digests, since a changed source has another name.

    Example:
        >>> by_name(["a", "b"])
        [0, 0]
    """
    return [0] * len(sources)
