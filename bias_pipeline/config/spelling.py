"""``attribute=[gender,race]``, in words that Hydra knows."""

from __future__ import annotations

from collections.abc import Sequence

from bias_pipeline.errors import UsageError

CHOICE = "_intersection"


def spelled_out(words: Sequence[str]) -> list[str]:
    """Command-line words with ``attribute=[a,b]`` as the choices that it stands for.

    Raises:
        UsageError: if it does not name two attributes.

    Example:
        >>> spelled_out(["attribute=[gender,race]", "seeds=3"])[:2]
        ['attribute=_intersection', 'attribute@attribute.parts.first=gender']
    """
    found = []
    for word in words:
        key, _, value = word.partition("=")
        if key != "attribute" or not (value.startswith("[") and value.endswith("]")):
            found.append(word)
            continue
        names = [name.strip() for name in value[1:-1].split(",")]
        if len(names) != 2:
            raise UsageError(f"{word}: name two attributes, as attribute=[gender,race]")
        found += [
            f"attribute={CHOICE}",
            f"attribute@attribute.parts.first={names[0]}",
            f"attribute@attribute.parts.second={names[1]}",
        ]
    return found
