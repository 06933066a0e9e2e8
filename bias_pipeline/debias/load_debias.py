"""Vectors of pictures and texts without what tells groups apart, and prompts of generators.

Written by ``bias_pipeline fit debias`` and needing nothing of it: PyTorch and safetensors alone.

Example::

    edits = load("my_debias")
    pictures = edits["image"](clip.get_image_features(**inputs))
    texts = edits["text"](clip.get_text_features(**inputs))

    handle = debias_prompts(pipeline, "my_debias")  # a StableDiffusionPipeline of diffusers
    pipeline("a photo of a doctor").images
    handle.remove()  # as it was
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

SIDES = ("image", "text")
FILE = "debias.safetensors"


def load(folder: str | Path) -> dict[str, Callable[[Any], Any]]:
    """The edits of a folder, by side; a side that was left as it is only gets length 1.

    Args:
        folder: with debias.safetensors.

    Returns:
        ``image`` and ``text`` to what takes (N, D) vectors as the model gives them, of any length,
        on any device, and returns theirs.
    """
    numbers, again = _read(folder)

    def edit(side: str) -> Callable[[Any], Any]:
        def edited(vectors: Any) -> Any:
            found = vectors / vectors.norm(dim=-1, keepdim=True)
            if f"{side}.weight" not in numbers:
                return found
            found = _affine(numbers, side, found)
            return found / found.norm(dim=-1, keepdim=True).clamp(min=1e-12) if again else found

        return edited

    return {side: edit(side) for side in SIDES}


def debias_prompts(pipeline: Any, folder: str | Path) -> Any:
    """Have a generator of pictures read debiased prompts.

    The states of all tokens are changed alike where its text encoder hands them on, after the last
    norm: those of the prompt, of the negative or empty one, and of what fills them up. Nothing else
    of the generator is touched, and no weight changes. ``fit debias --prompts`` said how: with
    ``outputs`` by the least change after which CLIP's projection gives the debiased vector, with
    ``states`` by a debiasing that was fitted to states.

    Args:
        pipeline: what has a ``text_encoder``, such as a StableDiffusionPipeline of diffusers, or a
            CLIPTextModel of transformers itself.
        folder: with debias.safetensors, fitted to the same text model with ``--prompts``.

    Returns:
        A handle whose ``remove()`` ends it.

    Raises:
        ValueError: if the folder has nothing of prompts, the text model is another one, or the
            generator reads states from elsewhere.
    """
    numbers, _ = _read(folder)
    if "prompt.mark" not in numbers:
        raise ValueError(f"{folder} has nothing for prompts; fit it with fit debias --prompts")
    if getattr(pipeline, "text_encoder_2", None) is not None:
        raise ValueError(
            "this generator has two text encoders and reads states before the last norm (as Stable "
            "Diffusion XL does), where this debiasing does not hold"
        )
    encoder = getattr(pipeline, "text_encoder", pipeline)
    model = getattr(encoder, "text_model", encoder)
    _check_model(model, numbers["prompt.mark"], folder)

    change = _change(numbers)

    def changed(module: Any, given: Any, states: Any) -> Any:
        del module, given
        return change(states.float()).to(states.dtype)

    return model.final_layer_norm.register_forward_hook(changed)


def _read(folder: str | Path) -> tuple[dict[str, Any], bool]:
    from safetensors import safe_open

    with safe_open(Path(folder) / FILE, framework="pt") as file:
        numbers = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return numbers, file.metadata()["renormalise"] == "true"


def _affine(numbers: dict[str, Any], side: str, vectors: Any) -> Any:
    weight, bias = (numbers[f"{side}.{own}"].to(vectors) for own in ("weight", "bias"))
    return vectors @ weight + bias


def _check_model(model: Any, mark: Any, folder: str | Path) -> None:
    """Refuse another model than the one that was fitted to; what was rounded is the same."""
    import torch

    own = model.embeddings.position_embedding.weight[0].detach().float().cpu()
    if own.shape != mark.shape or not torch.allclose(own, mark, rtol=0.02, atol=1e-4):
        raise ValueError(
            f"{folder} was fitted to another text model than the generator's; fit it with "
            "encoder.model=MODEL, whose text model the generator has"
        )


def _change(numbers: dict[str, Any]) -> Callable[[Any], Any]:
    """What changes (..., H) states."""
    if "prompt.projection" not in numbers:
        return lambda states: _affine(numbers, "prompt", states)
    import torch

    projection = numbers["prompt.projection"]  # (D, H)
    back = torch.linalg.pinv(projection.double()).float()  # (H, D)

    def change(states: Any) -> Any:
        vectors = states @ projection.T.to(states)
        length = vectors.norm(dim=-1, keepdim=True).clamp(min=1e-12)
        apart = length * _affine(numbers, "text", vectors / length) - vectors
        return states + apart @ back.T.to(states)

    return change
