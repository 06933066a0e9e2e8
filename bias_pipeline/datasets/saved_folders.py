"""Folders that stand for one file of rows: a saved Hugging Face data set, samples of lmms-eval."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bias_pipeline.datasets.parquet_files import broken, columns_to_read, rows_of_batches
from bias_pipeline.errors import DataError
from bias_pipeline.io.json_files import expect, load_json, open_input

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Schema

_STATE, _PARTS = "state.json", "dataset_dict.json"  # of a saved data set, of one in parts
_WHAT = "a data set as save_to_disk of Hugging Face's datasets writes it"
_MAX_BYTES = 1 << 40  # of an Arrow file: pictures are in it, and only what is asked for is read
_SAMPLES = re.compile(r"(?:[\d-]+_)*samples_(?P<task>.+?)(?:_\d{4}-?\d\d-?\d\d.*)?\.jsonl")


def is_saved(path: Path) -> bool:
    """Whether it is a folder that can be read as a file of rows."""
    return path.is_dir() and (_is_data_set(path) or bool(_samples(path)))


def stem(path: Path) -> str:
    """A file's name without its ending; a folder's whole name.

    Example:
        >>> stem(Path("mine.json")), stem(Path("/tmp"))
        ('mine', 'tmp')
    """
    return path.resolve().name if path.is_dir() else path.stem


def file_of(path: Path) -> Path:
    """The one file of samples in a folder; any other path as it is.

    Raises:
        DataError: if the folder has several files of samples.
    """
    if not path.is_dir() or _is_data_set(path):
        return path
    samples = _samples(path)
    if len(samples) < 2:
        return next(iter(samples), path)
    tasks = sorted(set(samples.values()))
    what = f"the tasks {', '.join(tasks)}" if len(tasks) > 1 else f"several runs of {tasks[0]}"
    names = ", ".join(sorted(file.name for file in samples))
    raise DataError(f"{path}: has samples of {what}; name one of its files ({names})")


def _samples(folder: Path) -> dict[Path, str]:
    """File of samples to its task."""
    matches = {path: _SAMPLES.fullmatch(path.name) for path in folder.iterdir()}
    return {path: match["task"] for path, match in matches.items() if match}


def _is_data_set(folder: Path) -> bool:
    return (folder / _STATE).is_file() or (folder / _PARTS).is_file()


def saved_rows(
    folder: Path, wanted: Sequence[str] | None
) -> tuple[list[str], Iterator[tuple[int, Mapping[str, Any]]]]:
    """Read a saved data set, a batch of rows at a time.

    Args:
        folder: of the data set.
        wanted: see :func:`~bias_pipeline.datasets.parquet_files.parquet_rows`.

    Returns:
        The names of all columns; and number and content of each row, in the columns that are read.

    Raises:
        DataError: if the data set has several parts, or a file is broken or too large (while going
            through the rows, too).
    """
    if not (folder / _STATE).is_file():
        folder = _only_part(folder)
    state = expect(load_json(folder / _STATE, what=_WHAT), dict, folder / _STATE, "")
    if state.get("_indices_data_files"):
        raise DataError(
            f"{folder}: a file of indices chooses its rows; save it again after flatten_indices()"
        )
    listed: list[Any] = expect(state.get("_data_files"), list, folder / _STATE, "_data_files")
    files = [_data_file(folder, entry, number) for number, entry in enumerate(listed)]
    if not files:
        raise DataError(f"{folder / _STATE}: names no data file; expected {_WHAT}")
    schema = _schema(files[0])
    columns = columns_to_read(folder, schema, wanted)
    batches = (batch for file in files for batch in _batches(file, schema, columns))
    return list(schema.names), rows_of_batches(folder, batches)


def _only_part(folder: Path) -> Path:
    path = folder / _PARTS
    content = expect(load_json(path, what=_WHAT), dict, path, "")
    parts: list[Any] = expect(content.get("splits"), list, path, "splits")
    names = [expect(part, str, path, f"splits[{k}]") for k, part in enumerate(parts)]
    if len(names) != 1:
        listed = ", ".join(str(folder / name) for name in names) or "nothing"
        raise DataError(f"{folder}: has {len(names)} parts; name one of them ({listed})")
    return _inside(folder, names[0])


def _data_file(folder: Path, entry: object, number: int) -> Path:
    path = folder / _STATE
    fields = expect(entry, dict, path, f"_data_files[{number}]")
    name = expect(fields.get("filename"), str, path, f"_data_files[{number}].filename")
    return _inside(folder, name)


def _inside(folder: Path, name: str) -> Path:
    """A file or folder of that name in a folder; never one elsewhere."""
    if name in ("", ".", "..") or set(name) & set("/\\\0"):
        raise DataError(f"{folder}: {name!r} is not in the folder; save the data set again")
    return folder / name


def _schema(path: Path) -> Schema:
    """The columns of an Arrow file."""
    import pyarrow as pa
    from pyarrow import ipc

    open_input(path, what=_WHAT, max_bytes=_MAX_BYTES).close()
    try:
        with pa.memory_map(str(path)) as source, ipc.open_stream(source) as reader:
            return reader.schema
    except (pa.ArrowException, OSError, ValueError) as error:
        raise broken(path, error) from error


def _batches(path: Path, schema: Schema, columns: Mapping[str, bool]) -> Iterator[RecordBatch]:
    """The batches of an Arrow file with some of its columns; of pictures only their paths.

    Arrow trusts the positions in a file, so they are checked before they are used.
    """
    import pyarrow as pa
    from pyarrow import ipc

    open_input(path, what=_WHAT, max_bytes=_MAX_BYTES).close()
    try:
        with pa.memory_map(str(path)) as source, ipc.open_stream(source) as reader:
            if not reader.schema.equals(schema):
                raise DataError(f"{path}: its columns are not those of the folder's first file")
            for batch in reader:
                arrays = []
                for name, has_pictures in columns.items():
                    array = batch.column(name)
                    arrays.append(array.field("path") if has_pictures else array)
                    arrays[-1].validate(full=True)
                yield pa.record_batch(arrays, names=list(columns))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise broken(path, error) from error
