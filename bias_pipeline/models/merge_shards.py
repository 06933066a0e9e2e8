"""Gathers the finished blocks of all tasks into one file if nothing is missing."""

from __future__ import annotations

import json
from argparse import Namespace
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bias_pipeline.array_types import Float32Array, IntArray
from bias_pipeline.corpus.image_ids import id_key
from bias_pipeline.data.columns import DECODING, MASKED, SAMPLE
from bias_pipeline.errors import DataError, ResourceError, UsageError, cannot_write, inflect
from bias_pipeline.io.files import csv_text, replacing, write_file
from bias_pipeline.io.terminal import warn
from bias_pipeline.models.blocks import (
    NOT_YET,
    BlockStore,
    block_notes,
    find_store,
    vectors_of,
)
from bias_pipeline.models.runner import first_reasons

if TYPE_CHECKING:
    import pyarrow as pa

MISSING = "missing.csv"
_ROWS = 1 << 16  # rows of a row group


@dataclass(frozen=True)
class Gathered:
    store: BlockStore  # the store of the blocks
    tables: list[pa.Table]  # columns `id` and `value`, no image twice
    out: Path  # the file to write

    def ids(self) -> list[str]:
        """The ids of all images, in the order of the tables."""
        return [image for table in self.tables for image in table["id"].to_pylist()]


def gather(options: Namespace, job: str, name: str) -> Gathered:
    """Read the finished blocks; list missing images in ``missing.csv`` beside the blocks."""
    out = options.to or options.gather / name
    if out.suffix != Path(name).suffix:
        raise UsageError(f"--to {out}: the file's ending must be {Path(name).suffix}")
    store = find_store(options.gather, job, options.run)
    tables, missing, open_ids = store.gather()
    if missing:
        lines = [("image_id", "reason"), *sorted(missing.items(), key=_by_id)]
        content = csv_text(lines).encode("utf-8", "replace")
        write_file(options.gather / MISSING, content, sync=True)
        _report_missing(options.gather, missing, open_ids, strict=not options.no_strict)
    else:
        (options.gather / MISSING).unlink(missing_ok=True)
    if not tables:
        raise ResourceError(f"{options.gather}: nothing is finished yet")
    return Gathered(store, tables, out)


def _by_id(pair: tuple[str, object]) -> tuple[int, int, str]:
    return id_key(pair[0])


def _report_missing(
    folder: Path, missing: Mapping[str, str], open_ids: Collection[str], *, strict: bool
) -> None:
    absent = sum(reason == NOT_YET for reason in missing.values())
    failed = len(open_ids) - absent  # a server gave no answer, or a disk failed
    counts = f"{absent} of them not computed yet" + (f" and {failed} unanswered" if failed else "")
    message = (
        f"{folder}: {inflect(len(missing), 'images are')} missing, {counts}: "
        f"{first_reasons(missing)}; all are in {folder / MISSING}"
    )
    if not strict:
        warn(message)
        return
    if open_ids:
        raise ResourceError(
            f"{message}. Start the job again, or gather the others with --no-strict"
        )
    raise DataError(
        f"{message}. Repair or remove the files and start the job again, or gather the others with "
        "--no-strict"
    )


def write_gathered_captions(gathered: Gathered) -> str:
    """Write captions as COCO's results, ``[{"image_id": 139, "caption": "a dog"}, ...]``.

    Each row says how the caption was decoded, and which of several captions of an image it is (from
    0). A row also says why a server's caption is cut or empty (``note``), and how the photo was
    masked, if it was.
    """
    values = [value for table in gathered.tables for value in table["value"].to_pylist()]
    texts = [text for value in values for text in value]
    empty = sum(not text.strip() for text in texts)
    if empty == len(texts):
        raise all_empty(gathered.store, empty)
    settings = gathered.store.settings
    several = settings.get("n", 1) != 1
    notes = [note for table in gathered.tables for note in block_notes(table)]
    noted = [
        zip(captions, note or [""] * len(captions), strict=True)
        for captions, note in zip(values, notes, strict=True)
    ]
    lines = [
        json.dumps(
            {
                "image_id": _number(image),
                "caption": text,
                **({SAMPLE: number} if several else {}),
                **({"note": note} if note else {}),
                DECODING: settings.get(DECODING, ""),
                **({MASKED: settings[MASKED]} if MASKED in settings else {}),
            },
            ensure_ascii=False,
        )
        for image, captions in sorted(zip(gathered.ids(), noted, strict=True), key=_by_id)
        for number, (text, note) in enumerate(captions)
    ]
    write_file(gathered.out, ("[\n" + ",\n".join(lines) + "\n]\n").encode(), sync=True)
    counts = Counter(note for of_image in notes for note in of_image or () if note)
    words = [inflect(len(lines), "captions")]
    words += [f"{empty} of them empty"] if empty else []
    words += [f"{count} noted as {note!r}" for note, count in sorted(counts.items())]
    return ", ".join(words)


def all_empty(store: BlockStore, count: int) -> DataError:
    """The error for a captioner that wrote only empty captions."""
    return DataError(
        f"{store.folder}: all {inflect(count, 'captions are')} empty: {store.model} declines, "
        "thinks for longer than --max-new-tokens, or its tokenizer or weights are broken"
    )


def _number(image: str) -> int | str:
    """An image id in COCO's form, which is a number if the id has only digits."""
    return int(image) if image.isascii() and image.isdigit() and len(image) < 19 else image


def write_detections(gathered: Gathered) -> tuple[int, int]:
    """Write detections as COCO's results, one per line, with the most confident first per image."""
    values = [value for table in gathered.tables for value in table["value"].to_pylist()]
    results = [
        (image, json.loads(value)) for image, value in zip(gathered.ids(), values, strict=True)
    ]
    lines = [
        json.dumps({"image_id": _number(image), **detection})
        for image, detections in sorted(results, key=_by_id)
        for detection in detections
    ]
    if not lines:
        raise DataError(
            f"{gathered.store.folder}: {gathered.store.model} found nothing in {len(results)} "
            "images; lower --min-score, or choose another model"
        )
    write_file(gathered.out, ("[\n" + ",\n".join(lines) + "\n]\n").encode(), sync=True)
    return len(lines), sum(not detections for _, detections in results)


def write_embeddings(gathered: Gathered) -> tuple[int, int]:
    """Write vectors as Parquet, sorted by id: ``id`` (text) and ``embedding`` (D float32)."""
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
        raise cannot_write(gathered.out, error) from error
    return len(ids), size


def _matrix(tables: list[pa.Table], places: IntArray) -> Float32Array:
    """(N, D) the vectors, each at its place; tables are emptied on the way, to save memory."""
    size = len(tables[0]["value"][0])
    matrix = np.empty((len(places), size), np.float32)
    row = len(places)
    while tables:
        vectors = vectors_of(tables.pop()["value"])
        row -= len(vectors)
        matrix[places[row : row + len(vectors)]] = vectors
    return matrix


def read_embeddings(path: Path) -> tuple[list[str], Float32Array]:
    """The N ids and the (N, D) vectors that ``embed --gather`` wrote."""
    import pyarrow.parquet as pq

    table = pq.ParquetFile(path).read()
    return table["id"].to_pylist(), vectors_of(table["embedding"])
