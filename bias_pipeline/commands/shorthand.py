"""Flags for the hurried: ``--limit N``, ``--quick`` and ``--dry-run`` as keys, or taken out."""

from __future__ import annotations

from collections.abc import Sequence

from bias_pipeline.errors import UsageError

LIMIT, QUICK, DRY_RUN = "--limit", "--quick", "--dry-run"
QUICK_IMAGES = 500
_QUICK = {"limit": f"{QUICK_IMAGES}", "seeds": "2"}


def keys_of(words: Sequence[str]) -> list[str]:
    """Words with ``--limit`` and ``--quick`` as the keys they stand for; a key that is given wins.

    Raises:
        UsageError: if ``--limit`` comes without its number.

    Example:
        >>> keys_of(["metric=lic", "--limit", "300"]), keys_of(["--quick", "seeds=3"])
        (['metric=lic', 'limit=300'], ['limit=500', 'seeds=3'])
    """
    found: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        flag, equals, value = word.partition("=")
        if flag != LIMIT:
            found.append(word)
            continue
        if not equals and not left:
            raise UsageError(f"{LIMIT} needs a number of images, as {LIMIT} 300")
        found.append(f"limit={value if equals else left.pop(0)}")
    if QUICK not in found:
        return found
    given = {word.partition("=")[0] for word in found}
    quick = [f"{key}={value}" for key, value in _QUICK.items() if key not in given]
    return [*quick, *(word for word in found if word != QUICK)]
