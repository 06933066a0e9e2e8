"""Applies a fitted debiasing to vectors of pictures and texts, and to prompts of generators.

``bias_pipeline fit debias`` writes this file, which needs only PyTorch and safetensors.

Example::

    edits = load("my_debias")
    pictures = edits["image"](clip.get_image_features(**inputs))
    texts = edits["text"](clip.get_text_features(**inputs))

    handle = debias_prompts(pipeline, "my_debias")  # a StableDiffusionPipeline of diffusers
    pipeline("a photo of a doctor").images
    handle.remove()  # the pipeline is as it was
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

SIDES = ("image", "text")
FILE = "debias.safetensors"


def load(folder: str | Path) -> dict[str, Callable[[Any], Any]]:
    """The edit of (N, D) vectors for each side; a side without an edit is scaled to length 1."""
    numbers, again = _read(folder)

    def edit(side: str) -> Callable[[Any], Any]:
        def edit_vectors(vectors: Any) -> Any:
            result = vectors / vectors.norm(dim=-1, keepdim=True)
            if f"{side}.weight" not in numbers:
                return result
            result = _affine(numbers, side, result)
            return result / result.norm(dim=-1, keepdim=True).clamp(min=1e-12) if again else result

        return edit_vectors

    return {side: edit(side) for side in SIDES}


def debias_prompts(pipeline: Any, folder: str | Path) -> Any:
    """Let an image generator use debiased prompts; ``remove()`` of the result undoes this.

    The generator is an object with a ``text_encoder``, such as a StableDiffusionPipeline of
    diffusers, or a CLIPTextModel of transformers itself.

    The states of all tokens are changed in the same way after the text encoder's last norm. The
    tokens include the prompt, the negative or empty prompt, and padding. Nothing else changes, and
    the weights stay the same. With ``fit debias --prompts=outputs``, the change is the smallest
    after which CLIP's projection gives the debiased vector. With ``states``, it is a debiasing that
    is fitted to states.
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

    def change_states(module: Any, given: Any, states: Any) -> Any:
        del module, given
        return change(states.float()).to(states.dtype)

    return model.final_layer_norm.register_forward_hook(change_states)


def _read(folder: str | Path) -> tuple[dict[str, Any], bool]:
    from safetensors import safe_open

    with safe_open(Path(folder) / FILE, framework="pt") as file:
        numbers = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return numbers, file.metadata()["renormalise"] == "true"


def _affine(numbers: dict[str, Any], side: str, vectors: Any) -> Any:
    weight, bias = (numbers[f"{side}.{part}"].to(vectors) for part in ("weight", "bias"))
    return vectors @ weight + bias


def _check_model(model: Any, mark: Any, folder: str | Path) -> None:
    """Refuse a model for which the debiasing was not fitted; rounded weights are accepted."""
    import torch

    embedding = model.embeddings.position_embedding.weight[0].detach().float().cpu()
    if embedding.shape != mark.shape or not torch.allclose(embedding, mark, rtol=0.02, atol=1e-4):
        raise ValueError(
            f"{folder} was fitted to another text model than the generator's; fit it with "
            "encoder.model=the CLIP that has the generator's text model"
        )


def _change(numbers: dict[str, Any]) -> Callable[[Any], Any]:
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
