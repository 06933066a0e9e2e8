"""Captioners of random weights of every kind that is tested, written as published ones are."""

from atexit import register
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from tests import tiny_models, tiny_picture_text
from tests.tiny_models import VISION
from tests.tiny_picture_text import LANGUAGE, N_WORDS, SPECIAL, WORDS

# Llamas and Qwens of random weights, which read long texts.
_LANGUAGE = {**LANGUAGE, "max_position_embeddings": 512, "num_key_value_heads": 2}
_LOUD = {**VISION, "initializer_range": 0.5}
RECENT = int(version("transformers").partition(".")[0]) >= 5
_TEMPLATE = (
    "{{{{ bos_token if {begins} else '' }}}}{{% for message in messages %}}{{% for item in "
    "message['content'] %}}{{% if item['type'] == 'image' %}}{picture}{{% else %}}"
    "{{{{ item['text'] }}}}{{% endif %}}{{% endfor %}}{{% endfor %}}"
    "{{% if add_generation_prompt %}} therefore{{% endif %}}"
)


def _words(signs: Mapping[str, str], kind: str = "PreTrainedTokenizerFast") -> Any:
    """A tokenizer of whole words with signs of its own, each under a name."""
    import transformers
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

    numbers = {word: number for number, word in enumerate((*SPECIAL, *WORDS, *signs.values()))}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens([AddedToken(sign, special=True) for sign in signs.values()])
    return getattr(transformers, kind)(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        bos_token="[BOS]",
        eos_token="[SEP]",
        extra_special_tokens=dict(signs),
        model_input_names=["input_ids", "attention_mask"],
    )


def _chat(folder: Path, picture: str, *, begins: bool = False) -> Path:
    """Add a template: the picture, the question, and a word before the answer."""
    template = _TEMPLATE.format(picture=picture, begins="true" if begins else "false")
    (folder / "chat_template.jinja").write_text(template)
    return folder


def _pictures(kind: str, **settings: Any) -> Any:
    """Preprocessing with Pillow, of squares of 32 pixels."""
    import transformers

    pillow = getattr(transformers, f"{kind}Pil", None) or getattr(transformers, kind)
    return pillow(**{"size": {"height": 32, "width": 32}, **settings})


def write_llava(folder: Path) -> Path:
    """LLaVA with its template."""
    return _chat(tiny_picture_text.write_llava(folder), "<image>\n")


def write_qwen(folder: Path) -> Path:
    """Qwen2-VL with its template."""
    place = "<|vision_start|><|image_pad|><|vision_end|>"
    return _chat(tiny_picture_text.write_qwen(folder), place)


def write_onevision(folder: Path) -> Path:
    """LLaVA-OneVision, which cuts large pictures into pieces."""
    from transformers import (
        LlavaOnevisionConfig,
        LlavaOnevisionForConditionalGeneration,
        LlavaOnevisionProcessor,
        LlavaOnevisionVideoProcessor,
        Qwen2Config,
        SiglipVisionConfig,
    )

    pieces = [[32, 32], [32, 64], [64, 32]]
    config = LlavaOnevisionConfig(
        vision_config=SiglipVisionConfig(**VISION),
        text_config=Qwen2Config(**{**_LANGUAGE, "vocab_size": N_WORDS + 2}),
        image_token_index=N_WORDS,
        video_token_index=N_WORDS + 1,
        image_grid_pinpoints=pieces,
        vision_feature_layer=-1,
    )
    LlavaOnevisionForConditionalGeneration(config).save_pretrained(folder)
    LlavaOnevisionProcessor(
        _pictures("LlavaOnevisionImageProcessor", image_grid_pinpoints=pieces),
        _words({"image_token": "<image>", "video_token": "<video>"}),
        LlavaOnevisionVideoProcessor(size={"height": 32, "width": 32}),
        num_image_tokens=16,
        vision_feature_select_strategy="full",
    ).save_pretrained(folder)
    return _chat(folder, "<image>\n")


def write_internvl(folder: Path) -> Path:
    """InternVL, whose pictures are one to several pieces."""
    from transformers import (
        InternVLConfig,
        InternVLForConditionalGeneration,
        InternVLProcessor,
        InternVLVideoProcessor,
        Qwen2Config,
    )

    signs = {
        "start_image_token": "<img>",
        "end_image_token": "</img>",
        "context_image_token": "<IMG_CONTEXT>",
        "video_token": "<video>",
    }
    config = InternVLConfig(
        vision_config={**_LOUD, "image_size": [32, 32], "patch_size": [8, 8]},
        text_config=Qwen2Config(**{**_LANGUAGE, "vocab_size": N_WORDS + len(signs)}),
        image_token_id=N_WORDS + 2,
        image_seq_length=4,
    )
    InternVLForConditionalGeneration(config).save_pretrained(folder)
    InternVLProcessor(
        _pictures("GotOcr2ImageProcessor", min_patches=1, max_patches=3, crop_to_patches=True),
        _words(signs),
        InternVLVideoProcessor(size={"height": 32, "width": 32}),
        image_seq_length=4,
    ).save_pretrained(folder)
    return _chat(folder, "<IMG_CONTEXT>\n")


def write_idefics3(folder: Path) -> Path:
    """Idefics3, whose pictures are shown in pieces and as a whole."""
    from transformers import (
        Idefics3Config,
        Idefics3ForConditionalGeneration,
        Idefics3Processor,
        LlamaConfig,
    )

    signs = {
        "image_token": "<image>",
        "fake_image_token": "<fake_token_around_image>",
        "global_image_token": "<global-img>",
        "end_of_utterance_token": "<end_of_utterance>",
        **{f"row_{r}_{c}": f"<row_{r}_col_{c}>" for r in (1, 2) for c in (1, 2)},
    }
    config = Idefics3Config(
        vision_config=dict(_LOUD),
        text_config=LlamaConfig(**{**_LANGUAGE, "vocab_size": N_WORDS + len(signs)}),
        image_token_id=N_WORDS,
        scale_factor=2,
        pad_token_id=0,
    )
    Idefics3ForConditionalGeneration(config).save_pretrained(folder)
    edge = {"size": {"longest_edge": 64}, "max_image_size": {"longest_edge": 32}}
    Idefics3Processor(
        _pictures("Idefics3ImageProcessor", **edge), _words(signs), image_seq_len=4
    ).save_pretrained(folder)
    return _chat(folder, "<image>", begins=True)


def write_paligemma(folder: Path) -> Path:
    """PaliGemma, which has no template."""
    from transformers import (
        GemmaConfig,
        PaliGemmaConfig,
        PaliGemmaForConditionalGeneration,
        PaliGemmaProcessor,
        SiglipVisionConfig,
    )

    config = PaliGemmaConfig(
        vision_config=SiglipVisionConfig(**VISION, projection_dim=32, vision_use_head=False),
        text_config=GemmaConfig(**{**_LANGUAGE, "vocab_size": N_WORDS + 1 + 1152, "head_dim": 16}),
        image_token_index=N_WORDS,
        vocab_size=N_WORDS + 1,
        projection_dim=32,
        hidden_size=32,
    )
    PaliGemmaForConditionalGeneration(config).save_pretrained(folder)
    pictures = _pictures("SiglipImageProcessor")
    pictures.image_seq_length = 16
    # The earlier major accepts no other tokenizer, the later builds this one from other files.
    kind = "PreTrainedTokenizerFast" if RECENT else "GemmaTokenizerFast"
    tokenizer = _words({"image_token": "<image>"}, kind)
    PaliGemmaProcessor(pictures, tokenizer).save_pretrained(folder)
    return folder


def write_gemma3(folder: Path) -> Path:
    """Gemma 3, whose template begins with a sign of its own."""
    from transformers import (
        Gemma3Config,
        Gemma3ForConditionalGeneration,
        Gemma3Processor,
        Gemma3TextConfig,
        SiglipVisionConfig,
    )

    signs = {
        "image_token": "<image_soft_token>",
        "boi_token": "<start_of_image>",
        "eoi_token": "<end_of_image>",
    }
    config = Gemma3Config(
        vision_config=SiglipVisionConfig(**VISION, vision_use_head=False),
        text_config=Gemma3TextConfig(
            **{**_LANGUAGE, "vocab_size": N_WORDS + len(signs), "head_dim": 16},
            sliding_window=16,
            query_pre_attn_scalar=16,
            tie_word_embeddings=False,  # or it repeats its last word
        ),
        mm_tokens_per_image=4,
        image_token_index=N_WORDS,
        boi_token_index=N_WORDS + 1,
        eoi_token_index=N_WORDS + 2,
        initializer_range=0.5,
        tie_word_embeddings=False,
    )
    network = Gemma3ForConditionalGeneration(config)
    for name, weight in network.named_parameters():
        if name.endswith("mm_input_projection_weight"):  # nothing, unless it is learnt
            weight.data.normal_()
    network.save_pretrained(folder)
    Gemma3Processor(
        _pictures("Gemma3ImageProcessor"), _words(signs), image_seq_length=4
    ).save_pretrained(folder)
    return _chat(folder, "<start_of_image>", begins=True)


# Kind to what writes it, of those that the installed transformers has.
WRITERS: dict[str, Callable[[Path], Path]] = {
    "blip": tiny_picture_text.write_blip,
    "git": tiny_picture_text.write_git,
    "blip-2": tiny_picture_text.write_blip2,
    "blip-2-t5": tiny_picture_text.write_blip2_t5,
    "vision-encoder-decoder": tiny_models.write_pair,
    "llava": write_llava,
    "llava_onevision": write_onevision,
    "qwen2_vl": write_qwen,
    "idefics3": write_idefics3,
    "paligemma": write_paligemma,
    "gemma3": write_gemma3,
    **({"internvl": write_internvl} if find_spec("transformers.models.internvl") else {}),
    **({"florence2": w} if (w := tiny_picture_text.WRITERS.get("florence2")) else {}),
}


@cache
def tiny_captioner(kind: str, seed: int = 0) -> Path:
    """The folder of a captioner of a kind, written once a session."""
    import torch

    folder = Path(mkdtemp(prefix=f"tiny-{kind}-"))
    register(rmtree, folder, ignore_errors=True)
    torch.manual_seed(seed)
    return WRITERS[kind](folder)
