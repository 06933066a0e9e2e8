"""A cache of arrays: the key says what was computed, a checksum that it is intact.

Writers never wait for each other. A damaged entry counts as absent.
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.errors import ResourceError
from bias_pipeline.io.atomic import replace_file

log = logging.getLogger(__name__)


class ArrayCache:
    """Arrays of finite float64 on disk.

    Args:
        root: the folder; created when first needed.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     cache = ArrayCache(folder)
        ...     cache.put("ab12", np.ones((2, 3)))
        ...     cache.get("ab12").shape, cache.get("cd34")
        ((2, 3), None)
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def get(self, key: str) -> Float64Array | None:
        """The array stored under a key, None if there is none or it is damaged."""
        path = self._path(key)
        try:
            return _unpacked(path.read_bytes(), key)
        except FileNotFoundError:
            return None
        except (ValueError, IndexError, OSError) as error:
            log.warning("cache entry %s is damaged (%s) and will be computed again", path, error)
            return None

    def put(self, key: str, array: Float64Array) -> None:
        """Store an array, unless it has NaN or infinities.

        Raises:
            ResourceError: if the folder cannot be written.
        """
        if not np.isfinite(array).all():
            return
        header = np.array([array.ndim, *array.shape], "<i8").tobytes()
        body = header + np.ascontiguousarray(array, "<f8").tobytes()
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, hashlib.sha256(key.encode() + body).digest() + body, sync=False)
        except OSError as error:
            raise ResourceError(
                f"cannot write the cache at {self.root}: {error.strerror}"
            ) from error

    def _path(self, key: str) -> Path:
        return self.root / key[:2] / key


def _unpacked(raw: bytes, key: str) -> Float64Array:
    """An entry: its checksum, the number of axes, their lengths, and the numbers."""
    checksum, body = raw[:32], raw[32:]
    if hashlib.sha256(key.encode() + body).digest() != checksum:
        raise ValueError("its checksum does not fit")
    n_axes = int(np.frombuffer(body[:8], "<i8")[0])
    shape = np.frombuffer(body[8 : 8 + 8 * n_axes], "<i8")
    array = np.frombuffer(body[8 + 8 * n_axes :], "<f8").reshape(shape).astype(np.float64)
    if not np.isfinite(array).all():
        raise ValueError("it has a value that is no number")
    return array
