"""The runs of a folder, read again only where something changed."""

from __future__ import annotations

import threading
from pathlib import Path

from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.report.catalogue import info_of
from bias_pipeline.results.settings import with_settings
from bias_pipeline.results.store import RESULT, UNFINISHED, Result, ResultStore

_OF_A_RUN = ("rows.csv", "predictions.parquet")  # what a run writes before its result


class RunFolder:
    """Finished runs, and what is wrong with the others.

    Args:
        root: the folder.

    Attributes:
        runs: run id to result, with the settings in which it differs from others.
        faults: a sentence on each thing that is left out.

    Raises:
        ResourceError: if there is no such folder.
        DataError: if it holds no finished run that can be read.
    """

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise ResourceError(
                f"{root} is not a folder; name the folder that runs were written to"
            )
        self.store = ResultStore(root)
        self.runs: dict[str, Result] = {}
        self.faults: list[str] = []
        self._read: dict[str, tuple[int, Result | str]] = {}
        self._lock = threading.Lock()
        self.refresh()
        if not self.runs:
            why = f" that can be read ({self.faults[0]})" if self.faults else ""
            raise DataError(f"{root} contains no finished run{why}; run one first")

    def refresh(self) -> None:
        """Read the runs that came or changed since the last time."""
        with self._lock:
            paths = sorted(self.store.root.glob(f"[!.]*/{RESULT}"))
            self._read = {path.parent.name: self._entry(path) for path in paths}
            entries = [entry for _, entry in self._read.values()]
            results = with_settings(entry for entry in entries if isinstance(entry, Result))
            self.runs = {result.run_id: result for result in results}
            damaged = [entry for entry in entries if isinstance(entry, str)]
            self.faults = [*damaged, *self._unfinished()]

    def _entry(self, path: Path) -> tuple[int, Result | str]:
        """When a result was written, and the result or a sentence on it."""
        run_id, written = path.parent.name, path.lstat().st_mtime_ns
        known = self._read.get(run_id)
        if known and known[0] == written:
            return known
        try:
            result = self.store.read(run_id)
        except DataError as error:
            return written, str(error)
        return written, result or f"{path} is absent; run its cell again"

    def _unfinished(self) -> list[str]:
        """A sentence on each run that is being computed or was not finished."""
        temporary = sorted(self.store.root.glob(f".*{UNFINISHED}"))
        visible = [
            path
            for path in sorted(self.store.root.glob("[!.]*"))
            if not (path / RESULT).exists() and any((path / name).exists() for name in _OF_A_RUN)
        ]
        return [
            *(self._state(path.name.removesuffix(UNFINISHED)[1:]) for path in temporary),
            *(f"{path.name} has no {RESULT}; run its cell again" for path in visible),
        ]

    def _state(self, name: str) -> str:
        """A sentence on a run in the folder that it is written to."""
        run_id = name.rpartition(".")[0]
        if self.store.is_claimed(run_id):
            return f"{run_id} is being written"
        return f"{run_id} was not finished; run its cell again"


def version_note(result: Result) -> str:
    """A sentence if this version of the metric would give other numbers; else empty."""
    row = result.rows[0]
    info = info_of(row.metric)
    if info is not None and info.version == row.metric_version:
        return ""
    today = "there is no such metric now" if info is None else f"today's is {info.version}"
    return (
        f"These numbers are of version {row.metric_version} of {row.metric}; {today}. Run the cell "
        "again before you compare them with others."
    )
