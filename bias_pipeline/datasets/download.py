"""Downloads archives from their makers' addresses and checks their SHA-256."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

from bias_pipeline.errors import ResourceError
from bias_pipeline.io.progress import bar, track

if TYPE_CHECKING:
    from http.client import HTTPResponse

_CHUNK = 1 << 20
_PATIENCE_S = 30.0


@dataclass(frozen=True)
class Archive:
    """A zip file that anyone may download.

    Attributes:
        url: where it is.
        sha256: of the whole file, hex.
        size: in bytes.
        members: path in the archive to path under ``dataset.root``.
    """

    url: str
    sha256: str
    size: int
    members: Mapping[str, str]


def download(archive: Archive, root: Path) -> list[Path]:
    """Download an archive and unpack its members; anything unexpected is deleted.

    Args:
        archive: what and from where.
        root: the data set's folder; made where it is missing. Files that are there stay.

    Returns:
        The files that were written; none if all were there, and then nothing is downloaded.

    Raises:
        ResourceError: if it cannot be downloaded, is not the expected file, or cannot be written.
    """
    wanted = {
        m: root / target for m, target in archive.members.items() if not (root / target).exists()
    }
    if not wanted:
        return []
    try:
        root.mkdir(parents=True, exist_ok=True)
        _check_room(archive, root)
        with tempfile.TemporaryDirectory(prefix=".download-", dir=root) as folder:
            packed = Path(folder, "archive.zip")
            _fetch(archive, packed)
            return [_unpack(packed, member, place) for member, place in wanted.items()]
    except (OSError, HTTPException, zipfile.BadZipFile, KeyError) as error:
        raise ResourceError(
            f"{archive.url} cannot be downloaded ({getattr(error, 'strerror', None) or error}); "
            f"nothing was kept. Download it by other means and unpack {', '.join(archive.members)}"
        ) from error


def _check_room(archive: Archive, root: Path) -> None:
    free = shutil.disk_usage(root).free
    needed = 3 * archive.size  # packed, and what comes out of it
    if free < needed:
        raise ResourceError(
            f"{root} has {free / 1e9:.1f} GB free; {archive.url} needs {needed / 1e9:.1f} GB"
        )


def _fetch(archive: Archive, place: Path) -> None:
    sha = hashlib.sha256()
    with (
        urlopen(archive.url, timeout=_PATIENCE_S) as answer,  # noqa: S310  (addresses are ours)
        place.open("wb") as file,
        bar(archive.url.rpartition("/")[2] + " (MB)"),
    ):
        for chunk in track(_chunks(answer, archive.size), total=-(-archive.size // _CHUNK)):
            sha.update(chunk)
            file.write(chunk)
    if sha.hexdigest() != archive.sha256:
        raise ResourceError(
            f"{archive.url} is not the file expected: its SHA-256 is {sha.hexdigest()}, not "
            f"{archive.sha256}; nothing was kept"
        )


def _chunks(answer: HTTPResponse, size: int) -> Iterator[bytes]:
    """The chunks of an answer, stopping soon after the expected size: a server may never end."""
    left = size + _CHUNK
    while left > 0 and (chunk := answer.read(_CHUNK)):
        left -= len(chunk)
        yield chunk


def _unpack(packed: Path, member: str, place: Path) -> Path:
    """Write one member to its place, completely or not at all."""
    place.parent.mkdir(parents=True, exist_ok=True)
    part = packed.with_name("member")
    with (
        zipfile.ZipFile(packed) as archive,
        archive.open(member) as source,
        part.open("wb") as target,
    ):
        shutil.copyfileobj(source, target, _CHUNK)
    return part.replace(place)
