"""A Stable Diffusion of random weights, in the layout that diffusers writes."""

from pathlib import Path

from tests.tiny_models import TEXT, write_clip


def write_diffusion(folder: Path, seed: int = 0) -> Path:
    """Pictures of 16 x 16 pixels, in a few steps of a few thousand weights."""
    import torch
    from diffusers import (
        AutoencoderKL,
        DDIMScheduler,
        StableDiffusionPipeline,
        UNet2DConditionModel,
    )
    from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

    torch.manual_seed(seed)
    clip = write_clip(folder.parent / f"{folder.name}-clip", seed)
    text = CLIPTextModel(CLIPTextConfig.from_pretrained(clip))
    network = UNet2DConditionModel(
        sample_size=8,
        block_out_channels=(8, 16),
        layers_per_block=1,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        norm_num_groups=4,
        cross_attention_dim=TEXT["hidden_size"],
        attention_head_dim=2,
    )
    pictures = AutoencoderKL(
        block_out_channels=(4, 8),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        norm_num_groups=4,
        latent_channels=4,
        sample_size=16,
    )
    StableDiffusionPipeline(
        vae=pictures,
        text_encoder=text,
        tokenizer=CLIPTokenizer.from_pretrained(clip, model_max_length=24),
        unet=network,
        scheduler=DDIMScheduler(steps_offset=1, clip_sample=False),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    ).save_pretrained(folder)
    return folder
