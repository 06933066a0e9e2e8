"""What a CLIP's folder holds beside weights: a vocabulary of whole words, and its preprocessing."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple


class _Special(NamedTuple):
    pad: str = "[PAD]"
    start: str = "[START]"
    unknown: str = "[UNKNOWN]"
    end: str = "[END]"


SPECIAL = _Special()


def write_tokenizer(folder: Path, texts: Iterable[str], longest: int) -> Any:
    """Write a tokenizer of lower-case words, those that stand at least twice in texts.

    Args:
        folder: of the model.
        texts: any number.
        longest: tokens of a text that are read, its beginning and end among them.

    Returns:
        The tokenizer itself, as the library ``tokenizers`` has it.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    own = Tokenizer(models.WordLevel(unk_token=SPECIAL.unknown))
    own.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    own.pre_tokenizer = pre_tokenizers.Whitespace()
    # Sorted by frequency, then as they are written: the order of texts plays no part.
    trainer = trainers.WordLevelTrainer(
        special_tokens=[*SPECIAL], min_frequency=2, show_progress=False
    )
    own.train_from_iterator(sorted(texts), trainer)
    ends = [(name, own.token_to_id(name)) for name in (SPECIAL.start, SPECIAL.end)]
    own.post_processor = processors.TemplateProcessing(
        single=f"{SPECIAL.start} $A {SPECIAL.end}", special_tokens=ends
    )
    PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=own,
        pad_token=SPECIAL.pad,
        bos_token=SPECIAL.start,
        unk_token=SPECIAL.unknown,
        eos_token=SPECIAL.end,
        model_max_length=longest,
    ).save_pretrained(folder)
    own.enable_truncation(longest)
    return own


def write_preprocessing(folder: Path, side: int) -> None:
    """Write that pictures are squeezed into a square of so many pixels a side, from -1 to 1."""
    told = {
        "image_processor_type": "CLIPImageProcessor",
        "do_resize": True,
        "size": {"height": side, "width": side},
        "resample": 3,
        "do_center_crop": False,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
        "do_convert_rgb": True,
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(told, indent=1))
