"""The folders that store results."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from bias_pipeline.corpus.predictions import Predictions
from bias_pipeline.errors import DataError, ResourceError, unwritable
from bias_pipeline.io.digests import read_unchanged, seal, sha256_of, unseal
from bias_pipeline.io.files import read_csv, table_csv, write_hashed
from bias_pipeline.io.json_files import load_json
from bias_pipeline.io.terminal import redacted_data
from bias_pipeline.results.parquet import (
    DRAWS,
    EXCLUSIVE,
    read_draws,
    read_predictions,
    write_draws,
    write_predictions,
)
from bias_pipeline.results.plain_data import plain_values
from bias_pipeline.results.rows import Result, check_draws, result_of, row_of, rows_csv
from bias_pipeline.results.run_lock import STALE_S, hold_claim, is_claimed
from bias_pipeline.stats.bootstrap import Draws

log = logging.getLogger(__name__)

SCHEMA = 1
RESULT = "result.json"
LOGGED = ".logged"
UNFINISHED = ".tmp"  # the ending of a folder that is being written

_WHAT = "a finished result: {schema, rows, manifest}"
_MAX_DEPTH = 50


class ResultStore:
    """A folder of results with a sub-folder for each run; any number of processes may share it.

    A result appears complete or not at all, because its folder is written under a temporary name,
    flushed to disk, and then renamed. A process that computes a run holds a claim on the run. The
    claim of a dead process is taken over.

    Args:
        root: the folder; it is created when it is first needed.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def read(self, run_id: str) -> Result | None:
        """A finished result without its predictions, or None if the run is not finished.

        Raises:
            DataError: if the result is damaged.
        """
        path = self.root / run_id / RESULT
        if not os.path.lexists(path):
            return None
        try:
            content = load_json(path, what=_WHAT, max_depth=_MAX_DEPTH)
            return _parse(content, run_id, path.read_bytes())
        except (ResourceError, OSError) as error:
            raise DataError(str(error)) from error
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise DataError(f"{path}: is damaged ({error}); run the job again") from error

    def load(self, run_id: str) -> Result | None:
        """A finished result, or None if the run is not finished or, with a warning, damaged."""
        try:
            return self.read(run_id)
        except DataError as error:
            log.warning("%s", error)
            return None

    def load_unchanged(self, run_id: str) -> Result | None:
        """A finished result if all its files are unchanged, otherwise None: the run is repeated.

        Reading all files once takes a second for a gigabyte.
        """
        result = self.load(run_id)
        for name, checksum in _files(result).items():
            path = self.root / run_id / name
            try:
                whole = sha256_of(path) == checksum
            except OSError:
                whole = False
            if not whole:
                log.warning("%s is damaged or absent; the run will be done again", path)
                return None
        return result

    def predictions(self, run_id: str, ids: Sequence[str]) -> list[Predictions]:
        """The stored predictions of a finished run.

        Args:
            run_id: the run's name.
            ids: image ids in the order of the returned image rows; predictions on other images
                are left out.

        Raises:
            ResourceError: if the run is absent.
            DataError: if the run is damaged.
        """
        result = self.read(run_id)
        content = self._content(result, EXCLUSIVE) if result else None
        if content is None:
            raise ResourceError(f"{self.root / run_id / EXCLUSIVE} is absent; run the job first")
        with self._reading(run_id, EXCLUSIVE):
            return read_predictions(content, ids)

    def draws(self, result: Result) -> dict[str, Draws]:
        """The values under every resampling of each headline of a finished run.

        There are no values for a run without a headline, such as LIC without human captions. Draws
        that the result still has in memory are not read from disk.

        Raises:
            DataError: if the draws are damaged, or not of this run.
        """
        if result.draws:
            return {**result.draws}
        content = self._content(result, DRAWS)
        if content is None:
            return {}
        with self._reading(result.run_id, DRAWS):
            draws = read_draws(content)
            check_draws(draws, result)
        return draws

    def table(self, result: Result, name: str) -> list[dict[str, str]]:
        """The lines of a further table of a finished run; empty if the run has no such table.

        A table that the result still has in memory is not read from disk.

        Raises:
            DataError: if the table is damaged.
        """
        if name in result.tables:
            return read_csv(table_csv(result.tables[name]))
        content = self._content(result, f"{name}.csv") or b""
        with self._reading(result.run_id, f"{name}.csv"):
            return read_csv(content.decode("utf-8"))

    @contextmanager
    def _reading(self, run_id: str, name: str) -> Iterator[None]:
        """Turn any error in reading into a DataError, since a right checksum proves little."""
        try:
            yield
        except (
            ArithmeticError,
            LookupError,
            OSError,
            RuntimeError,
            TypeError,
            ValueError,
        ) as error:
            path = self.root / run_id / name
            first = (str(error).splitlines() or [""])[0][:200]
            raise DataError(f"{path}: is damaged ({first}); run the job again") from error

    def _content(self, result: Result, name: str) -> bytes | None:
        """The content of a file of a finished run, after a check; None if there is no such file."""
        checksum = _files(result).get(name)
        if checksum is None:
            return None
        return read_unchanged(self.root / result.run_id / name, checksum)

    def save(self, result: Result) -> Result:
        """Write a result, and return what its file would give when it is read.

        An existing result stays; a damaged result is renamed.

        Raises:
            ResourceError: if the folder cannot be written.
        """
        temporary = self.root / f".{result.run_id}.{uuid.uuid4().hex}{UNFINISHED}"
        try:
            temporary.mkdir(parents=True)
            files = write_predictions(temporary, result.predictions, result.ids)
            if result.draws:
                files[DRAWS] = write_draws(temporary / DRAWS, result.draws)
            texts = {"rows.csv": rows_csv(result.rows)}
            texts |= {f"{name}.csv": table_csv(lines) for name, lines in result.tables.items()}
            for name, text in texts.items():
                files[name] = _write(temporary / name, text)
            content = _json(result, dict(sorted(files.items())))
            write_hashed(temporary / RESULT, content)
            self._name(temporary, result.run_id)
        except OSError as error:
            raise unwritable(f"results to {self.root}", error) from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        stored = json.loads(content)
        del stored["manifest"]["checksum"]
        return replace(result, rows=[*map(row_of, stored["rows"])], manifest=stored["manifest"])

    def _name(self, temporary: Path, run_id: str) -> None:
        """Give a finished folder the name of its run."""
        final = self.root / run_id
        if os.path.lexists(final) and self.load_unchanged(run_id) is None:
            aside = self.root / f".{run_id}.damaged.{uuid.uuid4().hex}"
            log.warning("%s is damaged; it is renamed to %s", final, aside.name)
            final.rename(aside)
        _rename_folder(temporary, final)

    def is_logged(self, run_id: str) -> bool:
        """Whether a finished run is marked as logged."""
        return (self.root / run_id / LOGGED).exists()

    def mark_logged(self, run_id: str) -> None:
        """Mark a run as logged; if the mark cannot be written, the run is logged again later."""
        with contextlib.suppress(OSError):
            (self.root / run_id / LOGGED).touch()

    @contextmanager
    def claim(self, run_id: str) -> Iterator[None]:
        """Claim a run; waits, with a warning, while another living process holds the claim."""
        with ExitStack() as stack:
            try:
                stack.enter_context(hold_claim(self._claim(run_id)))
                self._sweep(run_id)
            except OSError as error:
                raise unwritable(f"results to {self.root}", error) from error
            yield

    def is_claimed(self, run_id: str) -> bool:
        """Whether a process that seems alive is working on a run."""
        return is_claimed(self._claim(run_id))

    def _claim(self, run_id: str) -> Path:
        return self.root / ".claims" / run_id

    def _sweep(self, claimed_run: str) -> None:
        """Remove the unfinished folders of killed processes.

        Such folders belong to the run that this process claims, or are old folders of runs that no
        process claims.
        """
        for path in self.root.glob(f".*{UNFINISHED}"):
            run_id = path.name.removesuffix(UNFINISHED)[1:].rpartition(".")[0]
            if run_id == claimed_run or (_is_old(path) and not is_claimed(self._claim(run_id))):
                shutil.rmtree(path, ignore_errors=True)


def _json(result: Result, files: Mapping[str, str]) -> bytes:
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "rows": plain_values(result.rows),
        "manifest": {**redacted_data(plain_values(result.manifest)), "files": files},
    }
    return seal(content, within="manifest")


def _parse(content: Any, run_id: str, written: bytes) -> Result:
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise ValueError(f"its schema is not {SCHEMA}")
    content = unseal(content, within="manifest", written=written)
    return result_of(content["rows"], content["manifest"], run_id)


def _files(result: Result | None) -> Mapping[str, str]:
    """The checksums of the files beside ``result.json``, by name."""
    return {} if result is None else result.facts.files or {}


def _is_old(path: Path) -> bool:
    """Whether a folder has not changed for a while."""
    with contextlib.suppress(OSError):
        return time.time() - path.lstat().st_mtime > STALE_S
    return False


def _write(path: Path, text: str) -> str:
    """Write a file; returns the checksum of the file."""
    return write_hashed(path, text.encode("utf-8", "replace"))


def _rename_folder(temporary: Path, final: Path) -> None:
    try:
        temporary.rename(final)
    except OSError:
        if not (final / RESULT).exists():
            raise
        log.info("%s was finished by another process in the meantime; its folder stays", final.name)
    handle = os.open(final.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
