"""The one form of an image id, and the order of ids."""

from __future__ import annotations

import numpy as np

from bias_pipeline.errors import DataError


def canonical_id(raw: object) -> str:
    """The one form of an image id: digits lose their leading zeros, other text is kept.

    So ``42``, ``"42"`` and ``"000042"`` are one image, and ``"a042"`` is another.

    Raises:
        DataError: if ``raw`` is neither a whole number nor a non-empty string.

    Example:
        >>> canonical_id("000042") == canonical_id(42) == "42"
        True
    """
    if isinstance(raw, bool) or not isinstance(raw, int | str | np.integer):
        raise DataError(f"image id {raw!r} is neither a whole number nor text")
    text = str(raw).strip()
    if not text:
        raise DataError("an image id is empty")
    return text.lstrip("0") or "0" if text.isascii() and text.isdigit() else text


def id_key(identifier: str) -> tuple[int, int, str]:
    """Sort key of canonical ids: numbers by value (they have no leading zeros), then other text."""
    numeric = identifier.isascii() and identifier.isdigit()
    return (0, len(identifier), identifier) if numeric else (1, 0, identifier)
