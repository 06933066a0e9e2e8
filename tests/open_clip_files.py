"""Folders of open_clip's layout with a few random weights, written by the library itself."""

import json
import shutil
from pathlib import Path
from typing import Any

from bias_pipeline.models.torchvision import make_importable
from bias_pipeline.retrieval.open_clip_folder import CONFIG
from tests.tiny_models import SPECIAL, WORDS, write_words

WEIGHTS = "open_clip_model.safetensors"
VISION: dict[str, Any] = {
    "image_size": 32,
    "layers": 2,
    "width": 32,
    "head_width": 16,
    "patch_size": 8,
}
TEXT: dict[str, Any] = {"context_length": 16, "width": 32, "heads": 2, "layers": 2}


def write_open_clip(
    folder: Path, seed: int = 0, text: dict[str, Any] | None = None, **model: Any
) -> Path:
    """A CLIP; ``model`` and ``text`` change its configuration and that of its text tower."""
    make_importable()
    import open_clip
    import torch
    from open_clip.push_to_hf_hub import save_config_for_hf
    from safetensors.torch import save_file

    torch.manual_seed(seed)
    own_text = {**TEXT, **(text or {})}
    config = {"embed_dim": 16, "vision_cfg": VISION, "text_cfg": own_text, **model}
    built = {key: value for key, value in config.items() if key != "custom_text"}
    kind = open_clip.CustomTextCLIP if config.get("custom_text") else open_clip.CLIP
    network = kind(**json.loads(json.dumps(built)))
    with torch.no_grad():  # what GELU and QuickGELU make of small numbers hardly differs
        for name, weight in network.named_parameters():
            if ".mlp." in name:
                weight.mul_(6)
    shown = {"mean": (0.4, 0.5, 0.6), "std": (0.2, 0.25, 0.3)}
    open_clip.set_model_preprocess_cfg(network, shown)
    folder.mkdir(exist_ok=True)
    save_file(network.state_dict(), folder / WEIGHTS)
    save_config_for_hf(network, folder / CONFIG, config)
    return folder


def write_of_words(folder: Path, **model: Any) -> Path:
    """One with a tokenizer of transformers, as SigLIP's are."""
    n_words = len(SPECIAL) + len(WORDS)
    named = {"hf_tokenizer_name": "nobody/words", "vocab_size": n_words, "pool_type": "last"}
    write_open_clip(folder, text=named, custom_text=True, **model)
    write_words(folder)
    return folder


def copy_changed(folder: Path, to: Path, **changes: Any) -> Path:
    """A copy whose configuration has other parts."""
    shutil.copytree(folder, to)
    if changes:
        content = json.loads((to / CONFIG).read_text())
        parts = {part: {**content[part], **more} for part, more in changes.items()}
        (to / CONFIG).write_text(json.dumps({**content, **parts}))
    return to
