"""The finished blocks of all tasks as one file, once it is known that nothing is missing."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.corpus import id_key
from bias_pipeline.errors import DataError, ResourceError, UsageError
from bias_pipeline.inference.blocks import NOT_YET, BlockStore, find_store, vectors_of
from bias_pipeline.inference.runner import named
from bias_pipeline.io.atomic import replace_file, replacing
from bias_pipeline.io.csv_text import csv_text
from bias_pipeline.io.terminal import warn

if TYPE_CHECKING:
    import pyarrow as pa

MISSING = "missing.csv"
_ROWS = 1 << 16  # of a row group


@dataclass(frozen=True)
class Gathered:
    """Everything that was described.

    Attributes:
        store: whose blocks they are.
        tables: columns ``id`` and ``value``, no image twice.
        out: the file to write.
    """

    store: BlockStore
    tables: list[pa.Table]
    out: Path

    def ids(self) -> list[str]:
        """In the order of the tables."""
        return [image for table in self.tables for image in table["id"].to_pylist()]


def gather(options: Namespace, job: str, name: str) -> Gathered:
    """Find what is finished; say what is missing in ``missing.csv`` beside the blocks.

    Args:
        options: ``gather``, ``run``, ``to`` and ``no_strict``.
        job: what the blocks must be of.
        name: of the file, where ``to`` names none; its ending is asked for.

    Raises:
        DataError: if images cannot be read, and there is no ``no_strict``.
        ResourceError: if something is not computed yet, likewise, or nothing is.
        UsageError: if ``to`` has another ending.
    """
    out = options.to or options.gather / name
    if out.suffix != Path(name).suffix:
        raise UsageError(f"--to {out}: the file's ending must be {Path(name).suffix}")
    store = find_store(options.gather, job, options.run)
    tables, missing = store.gather()
    _write_missing(options.gather / MISSING, missing)
    if missing:
        _tell_missing(options.gather, missing, strict=not options.no_strict)
    if not tables:
        raise ResourceError(f"{options.gather}: nothing is finished yet")
    return Gathered(store, tables, out)


def _write_missing(path: Path, missing: Mapping[str, str]) -> None:
    if not missing:
        path.unlink(missing_ok=True)
        return
    lines = [("image_id", "reason"), *sorted(missing.items(), key=_by_id)]
    write(path, csv_text(lines).encode("utf-8", "replace"))


def _by_id(pair: tuple[str, object]) -> tuple[int, int, str]:
    return id_key(pair[0])


def _tell_missing(folder: Path, missing: Mapping[str, str], *, strict: bool) -> None:
    absent = sum(reason == NOT_YET for reason in missing.values())
    told = (
        f"{folder}: {len(missing)} images are missing, {absent} of them not computed yet: "
        f"{named(missing)}; all are in {folder / MISSING}"
    )
    if not strict:
        warn(told)
        return
    if absent:
        raise ResourceError(f"{told}. Start the job again, or gather the others with --no-strict")
    raise DataError(f"{told}. Mend or remove the files, or gather the others with --no-strict")


def write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all.

    Raises:
        ResourceError: if it cannot be written.
    """
    try:
        replace_file(path, content)
    except OSError as error:
        raise ResourceError(f"cannot write {path}: {error.strerror}") from error


def write_captions(gathered: Gathered) -> tuple[int, int]:
    """Write captions as COCO's results, ``[{"image_id": 139, "caption": "a dog"}, ...]``.

    Returns:
        How many, and how many of them are empty.

    Raises:
        DataError: if all are empty.
        ResourceError: if the file cannot be written.
    """
    values = [value for table in gathered.tables for value in table["value"].to_pylist()]
    empty = sum(not value.strip() for value in values)
    if empty == len(values):
        raise all_empty(gathered.store, empty)
    captions = sorted(zip(gathered.ids(), values, strict=True), key=_by_id)
    lines = [
        json.dumps({"image_id": _number(image), "caption": caption}, ensure_ascii=False)
        for image, caption in captions
    ]
    write(gathered.out, ("[\n" + ",\n".join(lines) + "\n]\n").encode())
    return len(lines), empty


def all_empty(store: BlockStore, count: int) -> DataError:
    """The refusal of a captioner that wrote nothing."""
    return DataError(
        f"{store.folder}: all {count} captions are empty; the tokenizer or the weights of "
        f"{store.model} are broken"
    )


def _number(image: str) -> int | str:
    """Ids of digits as numbers, as COCO has them."""
    return int(image) if image.isascii() and image.isdigit() and len(image) < 19 else image


def write_detections(gathered: Gathered) -> tuple[int, int]:
    """Write what is where as COCO's results: a line each, those of an image the surest first.

    Returns:
        How many, and in how many images there is nothing.

    Raises:
        DataError: if nothing was found anywhere.
        ResourceError: if the file cannot be written.
    """
    values = [value for table in gathered.tables for value in table["value"].to_pylist()]
    seen = [(image, json.loads(value)) for image, value in zip(gathered.ids(), values, strict=True)]
    lines = [
        json.dumps({"image_id": _number(image), **own})
        for image, found in sorted(seen, key=_by_id)
        for own in found
    ]
    if not lines:
        raise DataError(
            f"{gathered.store.folder}: {gathered.store.model} found nothing in {len(seen)} images; "
            "lower --min-score, or choose another model"
        )
    write(gathered.out, ("[\n" + ",\n".join(lines) + "\n]\n").encode())
    return len(lines), sum(not found for _, found in seen)


def write_embeddings(gathered: Gathered) -> tuple[int, int]:
    """Write vectors as Parquet: ``id`` (text) and ``embedding`` (D float32), in the order of ids.

    Returns:
        N and D.

    Raises:
        ResourceError: if the file cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    ids = gathered.ids()
    order = sorted(range(len(ids)), key=lambda row: id_key(ids[row]))
    matrix = _matrix(gathered.tables, np.argsort(order))
    size = matrix.shape[1]
    schema = pa.schema(
        [("id", pa.string()), ("embedding", pa.list_(pa.float32(), size))],
        metadata={"model": gathered.store.model, "signature": gathered.store.signature},
    )
    try:
        with (
            replacing(gathered.out) as file,
            pq.ParquetWriter(file, schema, use_dictionary=False, compression="none") as writer,
        ):
            for first in range(0, len(ids), _ROWS):
                names = [ids[row] for row in order[first : first + _ROWS]]
                vectors = pa.FixedSizeListArray.from_arrays(
                    pa.array(matrix[first : first + _ROWS].ravel()), size
                )
                writer.write_table(pa.table([pa.array(names), vectors], schema=schema))
    except OSError as error:
        raise ResourceError(f"cannot write {gathered.out}: {error.strerror}") from error
    return len(ids), size


def _matrix(tables: list[pa.Table], places: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """(N, D) the vectors, each at its place; tables are used up, so that none is held twice."""
    size = len(tables[0]["value"][0])
    matrix = np.empty((len(places), size), np.float32)
    row = len(places)
    while tables:
        vectors = vectors_of(tables.pop()["value"])
        row -= len(vectors)
        matrix[places[row : row + len(vectors)]] = vectors
    return matrix


def read_embeddings(path: Path) -> tuple[list[str], npt.NDArray[np.float32]]:
    """Read what ``embed --gather`` wrote.

    Returns:
        N ids, and (N, D) their vectors.
    """
    import pyarrow.parquet as pq

    table = pq.ParquetFile(path).read()
    return table["id"].to_pylist(), vectors_of(table["embedding"])
