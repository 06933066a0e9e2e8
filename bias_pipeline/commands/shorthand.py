"""The flags ``--limit N``, ``--quick`` and ``--dry-run``; the first two are short for keys."""

from __future__ import annotations

from collections.abc import Sequence

from bias_pipeline.errors import UsageError

LIMIT, QUICK, DRY_RUN = "--limit", "--quick", "--dry-run"
QUICK_IMAGES = 500
_QUICK = {"limit": f"{QUICK_IMAGES}", "seeds": "2"}


def expand_flags(words: Sequence[str]) -> list[str]:
    """Words with ``--limit`` and ``--quick`` replaced by their keys; a given key wins.

    Raises:
        UsageError: if ``--limit`` comes without its number.

    Example:
        >>> expand_flags(["metric=lic", "--limit", "300"]), expand_flags(["--quick", "seeds=3"])
        (['metric=lic', 'limit=300'], ['limit=500', 'seeds=3'])
    """
    expanded: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        flag, equals, value = word.partition("=")
        if flag != LIMIT:
            expanded.append(word)
            continue
        if not equals and not left:
            raise UsageError(f"{LIMIT} needs a number of images, as {LIMIT} 300")
        expanded.append(f"limit={value if equals else left.pop(0)}")
    if QUICK not in expanded:
        return expanded
    given = {word.partition("=")[0] for word in expanded}
    quick = [f"{key}={value}" for key, value in _QUICK.items() if key not in given]
    return [*quick, *(word for word in expanded if word != QUICK)]
