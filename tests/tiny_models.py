"""Models of a few thousand random weights, written as published ones are."""

import json
from atexit import register
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from bias_pipeline.models.torchvision import make_importable

WORDS = ("a", "man", "woman", "dog", "rides", "horse", "on", "the", "beach", "red", "small", "with")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[BOS]")
TEXT: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}
VISION: dict[str, Any] = {**TEXT, "image_size": 32, "patch_size": 8}
ENDS = {"pad_token_id": 0, "bos_token_id": 4, "eos_token_id": 3}
# A text tower that reads pictures.
READER = {**TEXT, "encoder_hidden_size": 32, **ENDS, "sep_token_id": 3, "initializer_range": 0.5}
DETR: dict[str, Any] = {
    "d_model": 16,
    "num_queries": 8,
    **{f"{side}_layers": 1 for side in ("encoder", "decoder")},
    **{f"{side}_attention_heads": 2 for side in ("encoder", "decoder")},
    **{f"{side}_ffn_dim": 16 for side in ("encoder", "decoder")},
}
PLAIN = {"use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None}


def write_clip(folder: Path, seed: int = 0) -> Path:
    """A CLIP with a tokenizer that knows letters."""
    make_importable()
    import torch
    from transformers import CLIPConfig, CLIPModel

    torch.manual_seed(seed)
    letters = [chr(k) for k in range(33, 127)]
    tokens = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", END]
    text = {
        **TEXT,
        "vocab_size": len(tokens),
        "max_position_embeddings": 24,
        "bos_token_id": len(tokens) - 2,
        "eos_token_id": len(tokens) - 1,
    }
    config = CLIPConfig(text_config=text, vision_config=VISION, projection_dim=16)
    CLIPModel(config).save_pretrained(folder)
    write_preprocessing(folder, "CLIPImageProcessor")
    (folder / "vocab.json").write_text(json.dumps({token: k for k, token in enumerate(tokens)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    signs = {"tokenizer_class": "CLIPTokenizer", "bos_token": "<|startoftext|>"}
    signs |= dict.fromkeys(("eos_token", "unk_token", "pad_token"), END)
    (folder / "tokenizer_config.json").write_text(json.dumps(signs))
    return folder


END = "<|endoftext|>"


def write_blip(folder: Path, seed: int = 0) -> Path:
    """A BLIP whose captions differ from photo to photo."""
    import torch
    from transformers import BlipConfig, BlipForConditionalGeneration

    torch.manual_seed(seed)
    text = {**READER, "vocab_size": len(SPECIAL) + len(WORDS), "max_position_embeddings": 64}
    vision = {**VISION, "initializer_range": 0.5}
    config = BlipConfig(text_config=text, vision_config=vision, projection_dim=16)
    model = BlipForConditionalGeneration(config)
    with torch.no_grad():  # no caption is of signs that are not shown
        model.text_decoder.cls.predictions.bias[: len(SPECIAL)] = -1e4
        model.text_decoder.cls.predictions.bias[3] = -1  # but may end
    model.save_pretrained(folder)
    write_preprocessing(folder, "BlipImageProcessor")
    write_words(folder)
    return folder


def write_matching_blip(folder: Path, seed: int = 0) -> Path:
    """A BLIP for retrieval; [ENC], the last of its words, is none of the tokenizer's."""
    import torch
    from transformers import BlipConfig, BlipForImageTextRetrieval

    torch.manual_seed(seed)
    text = {**READER, "vocab_size": len(SPECIAL) + len(WORDS) + 2, "max_position_embeddings": 24}
    vision = {**VISION, "initializer_range": 0.5}
    config = BlipConfig(
        text_config=text, vision_config=vision, projection_dim=16, image_text_hidden_size=16
    )
    BlipForImageTextRetrieval(config).save_pretrained(folder)
    write_preprocessing(folder, "BlipImageProcessor")
    write_words(folder)
    return folder


def write_pair(folder: Path, seed: int = 0) -> Path:
    """A ViT with a GPT-2, as the best-known VisionEncoderDecoder is."""
    import torch
    from transformers import (
        GPT2Config,
        VisionEncoderDecoderConfig,
        VisionEncoderDecoderModel,
        ViTConfig,
    )

    torch.manual_seed(seed)
    n_words = len(SPECIAL) + len(WORDS)
    decoder = GPT2Config(
        n_embd=32,
        n_layer=2,
        n_head=2,
        vocab_size=n_words,
        n_positions=64,
        bos_token_id=4,
        eos_token_id=3,
        add_cross_attention=True,
        is_decoder=True,
        initializer_range=0.5,
    )
    config = VisionEncoderDecoderConfig.from_encoder_decoder_configs(
        ViTConfig(**VISION, initializer_range=0.5), decoder
    )
    config.decoder_start_token_id = 4
    config.pad_token_id = 0
    model = VisionEncoderDecoderModel(config=config)
    model.generation_config.decoder_start_token_id = 4
    model.generation_config.eos_token_id = 3
    model.generation_config.pad_token_id = 0
    model.generation_config.suppress_tokens = [0, 1, 2, 4]
    model.save_pretrained(folder)
    write_preprocessing(folder, "ViTImageProcessor")
    write_words(folder)
    return folder


def write_preprocessing(folder: Path, name: str, size: int = 32) -> None:
    """Square pictures."""
    settings: dict[str, Any] = {
        "image_processor_type": name,
        "do_resize": True,
        "do_normalize": True,
        "do_rescale": True,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.25, 0.25, 0.25],
        "size": {"height": size, "width": size},
        "resample": 3,
    }
    if name == "ConvNextImageProcessor":
        settings |= {"size": {"shortest_edge": size}, "crop_pct": 0.875}
    if name == "CLIPImageProcessor":
        settings |= {
            "size": {"shortest_edge": size},
            "do_center_crop": True,
            "crop_size": {"height": size, "width": size},
        }
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))


def write_siglip(folder: Path, seed: int = 0) -> Path:
    """A SigLIP with a tokenizer of whole words."""
    make_importable()
    import torch
    from transformers import SiglipConfig, SiglipModel

    torch.manual_seed(seed)
    sizes = {"vocab_size": len(SPECIAL) + len(WORDS), "max_position_embeddings": 12}
    config = SiglipConfig(text_config={**TEXT, **sizes, **ENDS}, vision_config=VISION)
    SiglipModel(config).save_pretrained(folder)
    write_preprocessing(folder, "SiglipImageProcessor")
    write_words(folder)
    return folder


def write_words(folder: Path, mask: str | None = None, eos: str | None = None) -> None:
    """A tokenizer of whole words, with BERT's signs around them; the mask is the last."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = {word: number for number, word in enumerate((*SPECIAL, *WORDS))}
    words |= {mask: len(words)} if mask else {}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        bos_token="[BOS]",
        eos_token=eos,
        mask_token=mask,
    ).save_pretrained(folder)


def write_bert(folder: Path, seed: int = 0, **changes: Any) -> Path:
    """A BERT with a tokenizer of whole words."""
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(seed)
    n_words = len(SPECIAL) + len(WORDS) + 1
    settings = {"vocab_size": n_words, "max_position_embeddings": 24, "initializer_range": 0.5}
    BertModel(BertConfig(**{**TEXT, **settings, "pad_token_id": 0, **changes})).save_pretrained(
        folder
    )
    write_words(folder, "[MASK]")
    return folder


def write_gpt2(folder: Path, seed: int = 0) -> Path:
    """A GPT-2 with the same tokenizer."""
    import torch
    from transformers import GPT2Config, GPT2Model

    torch.manual_seed(seed)
    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 24, "initializer_range": 0.5}
    GPT2Model(GPT2Config(vocab_size=len(SPECIAL) + len(WORDS), **sizes)).save_pretrained(folder)
    write_words(folder)
    return folder


def write_sentence_parts(
    folder: Path, mode: str = "mean_tokens", *, normalize: bool = True
) -> None:
    """What makes a sentence model of a language model."""
    (folder / "1_Pooling").mkdir(exist_ok=True)
    pooling = {"word_embedding_dimension": 32, f"pooling_mode_{mode}": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    parts = [
        {"path": path, "type": f"sentence_transformers.models.{kind}"}
        for path, kind in kinds.items()
    ]
    (folder / "modules.json").write_text(json.dumps(parts))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 16}))


def write_causal(folder: Path, seed: int = 0, **changes: Any) -> Path:
    """A GPT-2 with a head over its vocabulary, which ends texts with a token of its own."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(seed)
    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 64, "initializer_range": 0.5}
    sizes |= {"vocab_size": len(SPECIAL) + len(WORDS), "bos_token_id": 4, "eos_token_id": 3}
    GPT2LMHeadModel(GPT2Config(**{**sizes, **changes})).save_pretrained(folder)
    write_words(folder, eos="[SEP]")
    return folder


def write_masked(folder: Path, seed: int = 0) -> Path:
    """A BERT that fills gaps."""
    import torch
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(seed)
    n_words = len(SPECIAL) + len(WORDS) + 1
    settings = {"vocab_size": n_words, "max_position_embeddings": 24, "initializer_range": 0.5}
    BertForMaskedLM(BertConfig(**{**TEXT, **settings, "pad_token_id": 0})).save_pretrained(folder)
    write_words(folder, "[MASK]")
    return folder


@cache
def language_models() -> tuple[Path, Path]:
    """A causal model and an encoder of sentences, for tests of what is built on such."""
    folder = Path(mkdtemp(prefix="tiny-models-"))
    register(rmtree, folder, ignore_errors=True)
    return write_causal(folder / "causal"), write_bert(folder / "bert", max_position_embeddings=64)


def tiny_weights() -> tuple[str, ...]:
    """What sets a metric of language models up with them."""
    causal, bert = language_models()
    return (
        f"metric.language_model={causal}",
        f"metric.sentence_encoder={bert}",
        "metric.device=cpu",
        "metric.cache=null",
    )


@cache
def tiny_clip() -> Path:
    """A CLIP of random weights, for tests of what is built on one."""
    folder = Path(mkdtemp(prefix="tiny-clip-"))
    register(rmtree, folder, ignore_errors=True)
    return write_clip(folder)


LABELS = ("dog, hound", "kite", "sports_ball", "person", "N/A")


def _name_config(config: Any) -> Any:
    config.id2label = dict(enumerate(LABELS))
    config.label2id = {name: k for k, name in enumerate(LABELS)}
    return config


def write_resnet(folder: Path, seed: int = 0) -> Path:
    """A ResNet that is surer of some labels than of others."""
    import torch
    from transformers import ResNetConfig, ResNetForImageClassification

    torch.manual_seed(seed)
    sizes: dict[str, Any] = {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]}
    config = ResNetConfig(**sizes, layer_type="basic", num_labels=len(LABELS))
    model = ResNetForImageClassification(_name_config(config))
    with torch.no_grad():
        model.classifier[1].weight.mul_(10)
    model.save_pretrained(folder)
    write_preprocessing(folder, "ConvNextImageProcessor")
    return folder


def write_detector(folder: Path, kind: str = "yolos", seed: int = 0) -> Path:
    """A YOLOS, or a Conditional DETR, of a few queries."""
    import torch
    import transformers

    torch.manual_seed(seed)
    settings: dict[str, Any] = {"num_labels": len(LABELS)}
    if kind == "yolos":
        sizes = {**VISION, "image_size": [32, 32], "num_detection_tokens": 4}
        config: Any = transformers.YolosConfig(**sizes, **settings, initializer_range=0.5)
        model: Any = transformers.YolosForObjectDetection(_name_config(config))
    else:
        backbone = transformers.ResNetConfig(
            embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], out_features=["stage2"]
        )
        config = transformers.ConditionalDetrConfig(
            backbone_config=backbone, **{**PLAIN, **DETR, **settings, "num_queries": 4}
        )
        model = transformers.ConditionalDetrForObjectDetection(_name_config(config))
    model.save_pretrained(folder)
    write_preprocessing(folder, "YolosImageProcessor" if kind == "yolos" else "DetrImageProcessor")
    path = folder / "preprocessor_config.json"
    size = {"shortest_edge": 32, "longest_edge": 48}
    path.write_text(json.dumps({**json.loads(path.read_text()), "size": size}))
    return folder
