"""Vectors of pictures and texts without what tells groups apart.

Written by ``bias_pipeline fit debias`` and needing nothing of it: PyTorch and safetensors alone.

Example::

    edits = load("my_debias")
    pictures = edits["image"](clip.get_image_features(**inputs))
    texts = edits["text"](clip.get_text_features(**inputs))
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

SIDES = ("image", "text")


def load(folder: str | Path) -> dict[str, Callable[[Any], Any]]:
    """The edits of a folder, by side; a side that was left as it is only gets length 1.

    Args:
        folder: with debias.safetensors.

    Returns:
        ``image`` and ``text`` to what takes (N, D) vectors as the model gives them, of any length,
        on any device, and returns theirs.
    """
    from safetensors import safe_open

    with safe_open(Path(folder) / "debias.safetensors", framework="pt") as file:
        numbers = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        again = file.metadata()["renormalise"] == "true"

    def edit(side: str) -> Callable[[Any], Any]:
        def edited(vectors: Any) -> Any:
            found = vectors / vectors.norm(dim=-1, keepdim=True)
            if f"{side}.weight" not in numbers:
                return found
            weight, bias = (numbers[f"{side}.{own}"].to(found) for own in ("weight", "bias"))
            found = found @ weight + bias
            return found / found.norm(dim=-1, keepdim=True).clamp(min=1e-12) if again else found

        return edited

    return {side: edit(side) for side in SIDES}
