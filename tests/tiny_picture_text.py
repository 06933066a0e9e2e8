"""Image-text models of a few thousand random weights, written as published ones are."""

import json
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.tiny_models import TEXT, VISION

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[BOS]", "[MASK]")
WORDS = (
    *("a", "person", "dog", "rides", "horse", "on", "the", "beach", "red", "small", "with"),
    *("therefore", "gender", "is", "of", "male", "female", "young", "old"),
)
PICTURE = "<image>"
QWEN = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
N_WORDS = len(SPECIAL) + len(WORDS)
LANGUAGE: dict[str, Any] = {
    **TEXT,
    "vocab_size": N_WORDS,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 4,
    "eos_token_id": 3,
    "initializer_range": 0.5,
}


def _words(extra: Sequence[str] = (), *, ends: bool = False) -> Any:
    """A tokenizer of whole words; with a sign at the end of each text, if asked."""
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    numbers = {word: number for number, word in enumerate((*SPECIAL, *WORDS, *extra))}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens([AddedToken(word, special=True) for word in extra])
    if ends:
        tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        bos_token="[BOS]",
        eos_token="[SEP]",
        additional_special_tokens=list(extra),
        model_input_names=["input_ids", "attention_mask"],
    )


def _squares() -> Any:
    from transformers import CLIPImageProcessor

    return CLIPImageProcessor(
        size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}, resample=3
    )


def write_blip(folder: Path) -> Path:
    """BLIP, with BERT's tokenizer."""
    from transformers import (
        BertTokenizerFast,
        BlipConfig,
        BlipForConditionalGeneration,
        BlipImageProcessor,
        BlipProcessor,
    )

    text = {**LANGUAGE, "encoder_hidden_size": 32, "sep_token_id": 3}
    vision = {**VISION, "initializer_range": 0.5}
    config = BlipConfig(text_config=text, vision_config=vision, projection_dim=16)
    BlipForConditionalGeneration(config).save_pretrained(folder)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join((*SPECIAL, *WORDS)) + "\n")
    tokenizer = BertTokenizerFast.from_pretrained(folder)
    BlipProcessor(BlipImageProcessor(size={"height": 32, "width": 32}), tokenizer).save_pretrained(
        folder
    )
    return folder


def write_git(folder: Path) -> Path:
    """GIT, whose texts have a sign at their end."""
    from transformers import GitConfig, GitForCausalLM, GitProcessor

    config = GitConfig(vision_config=dict(VISION), **LANGUAGE)
    GitForCausalLM(config).save_pretrained(folder)
    GitProcessor(_squares(), _words(ends=True)).save_pretrained(folder)
    return folder


def _blip2(folder: Path, text: dict[str, Any], tokenizer: Any) -> Path:
    import torch
    from torch.nn import Parameter
    from transformers import (
        Blip2Config,
        Blip2ForConditionalGeneration,
        Blip2Processor,
        BlipImageProcessor,
    )

    config = Blip2Config(
        vision_config=dict(VISION),
        qformer_config={**TEXT, "encoder_hidden_size": 32, "vocab_size": N_WORDS},
        text_config=text,
        num_query_tokens=4,
        image_token_index=N_WORDS,
    )
    network = Blip2ForConditionalGeneration(config)
    network.language_projection.weight.data.normal_()  # so that pictures matter
    head = network.language_model.lm_head
    head.weight = Parameter(torch.randn_like(head.weight))  # or T5 repeats its first token
    network.save_pretrained(folder)
    pictures = BlipImageProcessor(size={"height": 32, "width": 32})
    Blip2Processor(pictures, tokenizer, num_query_tokens=4).save_pretrained(folder)
    return folder


def write_blip2(folder: Path) -> Path:
    """BLIP-2 with an OPT."""
    text = {
        **{key: LANGUAGE[key] for key in ("max_position_embeddings", "pad_token_id")},
        "model_type": "opt",
        "vocab_size": N_WORDS + 1,
        "hidden_size": 32,
        "word_embed_proj_dim": 32,
        "ffn_dim": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "bos_token_id": 4,
        "eos_token_id": 3,
        "init_std": 0.5,
    }
    return _blip2(folder, text, _words([PICTURE]))


def write_blip2_t5(folder: Path) -> Path:
    """BLIP-2 with a T5, which reads the prompt and writes the answer."""
    text = {
        "model_type": "t5",
        "vocab_size": N_WORDS + 1,
        "d_model": 32,
        "d_kv": 16,
        "d_ff": 48,
        "num_layers": 2,
        "num_heads": 2,
        "decoder_start_token_id": 0,
        "pad_token_id": 0,
        "eos_token_id": 3,
        "initializer_factor": 1.0,
        "tie_word_embeddings": False,
    }
    return _blip2(folder, text, _words([PICTURE], ends=True))


def write_llava(folder: Path) -> Path:
    """LLaVA with a Llama."""
    from transformers import (
        CLIPVisionConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
    )

    config = LlavaConfig(
        vision_config=CLIPVisionConfig(**VISION),
        text_config=LlamaConfig(**{**LANGUAGE, "vocab_size": N_WORDS + 1}),
        image_token_index=N_WORDS,
    )
    LlavaForConditionalGeneration(config).save_pretrained(folder)
    LlavaProcessor(
        _squares(),
        _words([PICTURE]),
        patch_size=8,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    ).save_pretrained(folder)
    return folder


def write_qwen(folder: Path) -> Path:
    """Qwen2-VL, whose pictures have as many tokens as their size asks for."""
    from transformers import Qwen2VLConfig, Qwen2VLForConditionalGeneration

    config = Qwen2VLConfig(
        **{**LANGUAGE, "vocab_size": N_WORDS + len(QWEN), "max_position_embeddings": 256},
        num_key_value_heads=2,
        rope_scaling={"type": "mrope", "mrope_section": [2, 3, 3], "rope_type": "default"},
        vision_config={
            "depth": 2,
            "embed_dim": 32,
            "num_heads": 2,
            "hidden_size": 32,
            "patch_size": 4,
            "mlp_ratio": 2,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "in_channels": 3,
        },
        vision_start_token_id=N_WORDS,
        vision_end_token_id=N_WORDS + 1,
        image_token_id=N_WORDS + 2,
        video_token_id=N_WORDS + 3,
    )
    Qwen2VLForConditionalGeneration(config).save_pretrained(folder)
    _words(QWEN).save_pretrained(folder)
    settings = {
        "image_processor_type": "Qwen2VLImageProcessor",
        "processor_class": "Qwen2VLProcessor",
        "patch_size": 4,
        "merge_size": 2,
        "temporal_patch_size": 2,
        "min_pixels": 32 * 32,
        "max_pixels": 48 * 48,
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    return folder


def write_florence(folder: Path) -> Path:
    """Florence-2, of a BART that is made to write one sign first."""
    from transformers import (
        CLIPImageProcessor,
        Florence2Config,
        Florence2ForConditionalGeneration,
        Florence2Processor,
        PreTrainedTokenizerFast,
    )

    ends = {"pad_token_id": 0, "bos_token_id": 4, "eos_token_id": 3, "decoder_start_token_id": 3}
    layers = {
        f"{side}_{name}": number
        for side in ("encoder", "decoder")
        for name, number in (("layers", 1), ("attention_heads", 2), ("ffn_dim", 48))
    }
    text = {"model_type": "bart", "vocab_size": N_WORDS + 1, "d_model": 32, "init_std": 0.5}
    vision = {
        "depths": [1, 1],
        "patch_size": [7, 3],
        "patch_stride": [4, 2],
        "patch_padding": [3, 1],
        "patch_prenorm": [False, True],
        "embed_dim": [16, 32],
        "num_heads": [2, 2],
        "num_groups": [2, 2],
        "window_size": 4,
        "projection_dim": 32,
        "drop_path_rate": 0.0,
        "max_position_embeddings": 8,
        "initializer_range": 0.5,
    }
    config = Florence2Config(
        vision_config=vision,
        text_config={**text, **layers, **ends, "max_position_embeddings": 64},
        image_token_id=N_WORDS,
        **ends,
    )
    network = Florence2ForConditionalGeneration(config)
    network.generation_config.forced_bos_token_id = 4
    network.generation_config.decoder_start_token_id = 3
    network.save_pretrained(folder)
    words = PreTrainedTokenizerFast(
        tokenizer_object=_words([PICTURE])._tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        bos_token="[BOS]",
        eos_token="[SEP]",
        extra_special_tokens={"image_token": PICTURE},
    )
    pictures = CLIPImageProcessor(
        size={"height": 32, "width": 32}, do_center_crop=False, resample=3
    )
    pictures.image_seq_length = 17
    Florence2Processor(pictures, words).save_pretrained(folder)
    return folder


WRITERS: dict[str, Callable[[Path], Path]] = {
    "blip": write_blip,
    "git": write_git,
    "blip-2": write_blip2,
    "blip-2-t5": write_blip2_t5,
    "llava": write_llava,
    "qwen2_vl": write_qwen,
    **({"florence2": write_florence} if find_spec("transformers.models.florence2") else {}),
}
# Those that read a text and write the answer apart; of the others it is one sequence.
APART = ("blip-2-t5", "florence2")


def write(folder: Path, kind: str, seed: int = 0) -> Path:
    """A model of a kind."""
    import torch

    torch.manual_seed(seed)
    return WRITERS[kind](folder)
