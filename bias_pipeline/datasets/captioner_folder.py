"""The folder of captioners' files, each named after its captioner."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bias_pipeline.datasets.parquet_files import is_saved
from bias_pipeline.datasets.tables import SUFFIXES, check_file
from bias_pipeline.errors import DataError, UsageError, did_you_mean


@dataclass(frozen=True)
class CaptionerFolder:
    """Captioners by the names of their files."""

    dataset: str  # the data set's name, for messages
    path: Path  # the folder, which need not exist

    @classmethod
    def of(cls, dataset: str, named: str | None, root: Path) -> CaptionerFolder:
        """The named folder, else ``captioners`` in the data set's folder or beside it."""
        inside, beside = root / "captioners", root.parent / "captioners"
        usual = beside if beside.is_dir() and not inside.is_dir() else inside
        return cls(dataset, Path(named) if named else usual)

    def names(self) -> list[str]:
        """The captioners that have a file, sorted."""
        return sorted(self._stems())

    def file(self, captioner: str) -> Path:
        """The file of a captioner, given by name or by path.

        Raises:
            DataError: if two files have the name.
            ResourceError: if a path is given and the file is absent.
            UsageError: if there is no such name.
        """
        stems = self._stems()
        files = stems.get(captioner, [])
        if len(files) > 1:
            raise DataError(
                f"{self.path}: {files[0].name} and {files[1].name} are both captioner "
                f"{captioner!r}; rename one, or give its path"
            )
        if files:
            return files[0]
        place = Path(captioner)
        if place.suffix.lower() in SUFFIXES or "/" in captioner or is_saved(place):
            return check_file(place, "captioner")
        raise UsageError(
            f"captioner {captioner!r} is unknown to dataset {self.dataset!r}; "
            f"{did_you_mean(captioner, stems)} Or give a file: captioner=FILE.json"
        )

    def _stems(self) -> dict[str, list[Path]]:
        """The files of each name."""
        stems: dict[str, list[Path]] = {}
        if not self.path.is_dir():
            return stems
        for path in sorted(self.path.iterdir()):
            if path.suffix in SUFFIXES:
                stems.setdefault(path.stem, []).append(path)
        return stems
