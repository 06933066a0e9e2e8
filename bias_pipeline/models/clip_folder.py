"""The tokenizer and preprocessing files of a fitted CLIP's folder."""

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
    """Write a tokenizer of lower-case words, those that occur at least twice in the texts.

    Args:
        folder: of the model.
        texts: any number.
        longest: tokens of a text that are read, its beginning and end among them.

    Returns:
        The tokenizer itself, as the library ``tokenizers`` has it.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordLevel(unk_token=SPECIAL.unknown))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    # Sorted by frequency, then alphabetically: the order of texts does not matter.
    trainer = trainers.WordLevelTrainer(
        special_tokens=[*SPECIAL], min_frequency=2, show_progress=False
    )
    tokenizer.train_from_iterator(sorted(texts), trainer)
    ends = [(name, tokenizer.token_to_id(name)) for name in (SPECIAL.start, SPECIAL.end)]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{SPECIAL.start} $A {SPECIAL.end}", special_tokens=ends
    )
    PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        pad_token=SPECIAL.pad,
        bos_token=SPECIAL.start,
        unk_token=SPECIAL.unknown,
        eos_token=SPECIAL.end,
        model_max_length=longest,
    ).save_pretrained(folder)
    tokenizer.enable_truncation(longest)
    return tokenizer


def write_preprocessing(folder: Path, side: int) -> None:
    """Write the preprocessing: pictures become squares of ``side`` pixels, values from -1 to 1."""
    settings = {
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
    (folder / "preprocessor_config.json").write_text(json.dumps(settings, indent=1))
