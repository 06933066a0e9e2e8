"""Translates ``attribute=[gender,race]`` for Hydra."""

from __future__ import annotations

from collections.abc import Sequence

from bias_pipeline.errors import UsageError

CHOICE = "_intersection"


def expand_intersections(words: Sequence[str]) -> list[str]:
    """Command-line words with ``attribute=[a,b]`` replaced by the choices of an intersection.

    Raises:
        UsageError: if it does not name two attributes.

    Example:
        >>> expand_intersections(["attribute=[gender,race]", "seeds=3"])[:2]
        ['attribute=_intersection', 'attribute@attribute.parts.first=gender']
    """
    expanded = []
    for word in words:
        key, _, value = word.partition("=")
        if key != "attribute" or not (value.startswith("[") and value.endswith("]")):
            expanded.append(word)
            continue
        names = [name.strip() for name in value[1:-1].split(",")]
        if len(names) != 2:
            raise UsageError(f"{word}: name two attributes, as attribute=[gender,race]")
        expanded += [
            f"attribute={CHOICE}",
            f"attribute@attribute.parts.first={names[0]}",
            f"attribute@attribute.parts.second={names[1]}",
        ]
    return expanded
