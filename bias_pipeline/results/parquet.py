"""Reads and writes the Parquet files of a run: attackers' predictions, and draws of headlines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.corpus.captions import dense_ranks
from bias_pipeline.corpus.predictions import Predictions
from bias_pipeline.io.files import hashed_file
from bias_pipeline.stats.bootstrap import Draws

EXCLUSIVE, TASKS = "predictions.parquet", "task_predictions.parquet"
DRAWS = "draws.parquet"
_COUNTED, _SHARE, _ALL_IMAGES = "counted", "share of ", " of all images"


def write_predictions(
    folder: Path, predictions: Sequence[Predictions], ids: Sequence[str]
) -> dict[str, str]:
    """Write ``predictions.parquet`` and, if tasks were guessed, ``task_predictions.parquet``.

    Both files have the columns side, seed and image. ``predictions.parquet`` also has the true
    group, and a probability for each group. ``task_predictions.parquet`` also has, for each task,
    whether the image has the task, and the task's probability. The function returns checksums by
    file name.
    """
    exclusive = [p for p in predictions if p.truth[0].ndim == 1]
    tasks = [p for p in predictions if p.truth[0].ndim == 2]
    origin, groups = _origin(exclusive, ids), _groups(exclusive)
    # Dictionary encoding of all probabilities would take half of the time.
    written = {EXCLUSIVE: _write(folder / EXCLUSIVE, origin | groups, [*origin, "truth"])}
    if tasks:
        origin = _origin(tasks, ids)
        written[TASKS] = _write(folder / TASKS, origin | _tasks(tasks), [*origin])
    return written


def read_predictions(content: bytes, ids: Sequence[str]) -> list[Predictions]:
    """The predictions of exclusive groups, read from ``predictions.parquet``."""
    import pandas as pd

    table = pd.read_parquet(BytesIO(content))
    rows = pd.Series(range(len(ids)), index=list(ids))
    table = table[table["image_id"].isin(rows.index)]
    columns = [str(name) for name in table.columns if str(name).startswith("p_")]
    groups = tuple(name.removeprefix("p_") for name in columns)
    blocks_by_side: dict[str, dict[int, tuple[Any, Any, Any]]] = {}
    for key, block in table.groupby(["side", "seed"], sort=False):
        side, seed = key
        images = rows[block["image_id"]].to_numpy(np.int64)
        truth = np.array([groups.index(name) for name in block["truth"]], np.int64)
        probs = block[columns].to_numpy(np.float64)
        blocks_by_side.setdefault(str(side), {})[int(str(seed))] = (images, truth, probs)
    return [
        Predictions(side, tuple(blocks), *_columns(blocks.values()), groups)
        for side, blocks in blocks_by_side.items()
    ]


def write_draws(path: Path, draws: Mapping[str, Draws]) -> str:
    """Write a column for each headline and seed, such as ``score:0``; returns the file's checksum.

    The first line is the estimate. A count has the column ``score:counted``. A share of 500
    observations has the column ``score:share of 500.0``. ``score:0 of all images`` is the column of
    a seed that tested all images.
    """
    columns = {
        f"{part}:{_column(one, k)}": np.concatenate([one.per_seed[k : k + 1], one.resampled[:, k]])
        for part, one in draws.items()
        for k in range(len(one.per_seed))
    }
    return _write(path, columns)


def _column(draws: Draws, seed: int) -> str:
    """The ending of a column's name, which stands behind the name of the part."""
    if draws.is_share:
        return f"{_SHARE}{draws.trials!r}"
    if not draws.trained:
        return _COUNTED
    return f"{seed}{_ALL_IMAGES}" if draws.cross_fitted else str(seed)


def read_draws(content: bytes) -> dict[str, Draws]:
    """The draws of each part, read from ``draws.parquet``."""
    from pyarrow.parquet import ParquetFile

    table = ParquetFile(BytesIO(content)).read()  # read_table would import pandas
    columns: dict[str, list[str]] = {}
    for name in table.column_names:
        columns.setdefault(name.rpartition(":")[0], []).append(name)
    return {
        part: _draws(
            np.stack([_floats(table[name]) for name in names]).T,
            names[0].rpartition(":")[2],
        )
        for part, names in columns.items()
    }


def _floats(column: Any) -> Float64Array:
    numbers = column.combine_chunks().cast("float64")
    if numbers.null_count:
        raise ValueError("a number is absent")
    return np.frombuffer(numbers.buffers()[1])[numbers.offset :][: len(numbers)]


def _draws(values: Float64Array, kind: str) -> Draws:
    """The draws in the columns of a part; ``kind`` is the first column's ending."""
    share = kind.startswith(_SHARE)
    trials = float(kind.removeprefix(_SHARE)) if share else math.nan
    return Draws(
        values[0],
        values[1:],
        trained=not share and kind != _COUNTED,
        trials=trials,
        cross_fitted=kind.endswith(_ALL_IMAGES),
    )


def _columns(blocks: Iterable[tuple[Any, Any, Any]]) -> tuple[Any, Any, Any]:
    images, truth, probs = zip(*blocks, strict=True)
    return images, truth, probs


def _origin(predictions: Sequence[Predictions], ids: Sequence[str]) -> dict[str, Any]:
    sizes = [len(images) for p in predictions for images in p.images]
    sides = np.array([k for k, p in enumerate(predictions) for _ in p.seeds], np.int64)
    seeds = np.array([seed for p in predictions for seed in p.seeds], np.int64)
    images = _concatenate([i for p in predictions for i in p.images])
    return {
        "side": _words([p.name for p in predictions], np.repeat(sides, sizes)),
        "seed": np.repeat(seeds, sizes),
        "image_id": _words(ids, images),
    }


def _groups(predictions: Sequence[Predictions]) -> dict[str, Any]:
    classes = predictions[0].classes if predictions else ()
    truth = _concatenate([t for p in predictions for t in p.truth])
    columns = {"truth": _words(classes, truth)}
    return columns | {
        f"p_{group}": np.concatenate([probs[:, k] for p in predictions for probs in p.probs])
        for k, group in enumerate(classes)
    }


def _tasks(predictions: Sequence[Predictions]) -> dict[str, Any]:
    truth = [t for p in predictions for t in p.truth]
    probs = [q for p in predictions for q in p.probs]
    classes = predictions[0].classes  # column by column: a table of all tasks would be large
    there = {
        f"true_{task}": np.concatenate([t[:, k].astype(np.int8) for t in truth])
        for k, task in enumerate(classes)
    }
    return there | {
        f"p_{task}": np.concatenate([q[:, k] for q in probs]) for k, task in enumerate(classes)
    }


def _words(words: Sequence[str], codes: IntArray) -> Any:
    """(N,) the word of each code, as an Arrow array.

    The array is made from buffers, since ``pyarrow.array`` would import pandas. Importing pandas
    takes a tenth of the time that a small cell needs to start.
    """
    import pyarrow as pa

    used = np.flatnonzero(np.bincount(codes))
    encoded = [words[code].encode() for code in used.tolist()]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    texts = pa.StringArray.from_buffers(
        len(used), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))
    )
    return texts.take(_numbers(dense_ranks(codes)))


def _numbers(values: npt.NDArray[Any]) -> Any:
    import pyarrow as pa

    kind, data = pa.from_numpy_dtype(values.dtype), pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(kind, len(values), [None, data])


def _concatenate(arrays: Sequence[IntArray]) -> IntArray:
    return np.concatenate(arrays) if arrays else np.empty(0, np.int64)


def _write(path: Path, columns: Mapping[str, Any], repeated: Sequence[str] | bool = True) -> str:
    """Write a column for each name; the columns in ``repeated``, or all, are dictionary-encoded."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = {k: _numbers(v) if isinstance(v, np.ndarray) else v for k, v in columns.items()}
    with hashed_file(path) as file:  # probabilities hardly compress, so the bytes would be many
        pq.write_table(pa.table(arrays), file, use_dictionary=repeated)
    return file.sha.hexdigest()
