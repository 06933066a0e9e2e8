"""The library's processor of a model: preprocessing of pictures and a tokenizer in one."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from bias_pipeline.errors import BiasPipelineError, DataError, ResourceError, did_you_mean
from bias_pipeline.models.folders import require_preprocessing, require_vocabulary
from bias_pipeline.models.pretrained import Pretrained, first_line, image_processor, tokenizer

# The picture's placeholder in texts, where the processor's own sign is not all of it.
_PLACES = {
    "llava": "<image>\n",
    **dict.fromkeys(("qwen2_vl", "qwen2_5_vl"), "<|vision_start|><|image_pad|><|vision_end|>"),
}
# Processors that put the placeholder there themselves.
_PLACED = ("blip", "blip-2", "florence2", "git", "instructblip", "kosmos-2", "paligemma")
# The release that brought a kind, of those that the oldest release supported here lacks.
_SINCE = {"florence2": "4.56", "internvl": "4.52"}


def require_known(model: Pretrained) -> None:
    """Check that the installed transformers has such models; its own errors are misleading.

    Raises:
        ResourceError: if it has none.
    """
    import transformers

    if model.kind not in transformers.CONFIG_MAPPING:
        later = _SINCE.get(model.kind)
        raise ResourceError(
            f"{model.name}: transformers {version('transformers')} has no {model.kind} models; "
            + (f"install {later} or later" if later else "a later version may have them")
        )


def require_image_text(model: Pretrained, others: tuple[str, ...]) -> None:
    """Check that a model of transformers writes texts about pictures.

    Args:
        model: of any kind.
        others: kinds to name in the message.

    Raises:
        DataError: if it does not.
        ResourceError: if the installed transformers does not know its kind.
    """
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES as KINDS,
    )

    require_known(model)
    if model.kind not in KINDS:
        raise DataError(
            f"{model.name}: a {model.kind!r} writes no texts about pictures; "
            f"{did_you_mean(model.kind, others)} Any other image-text model of transformers "
            f"{version('transformers')} is taken too"
        )


def processor_of(model: Pretrained) -> Any:
    """A model's own processor of pictures and texts; pictures always with Pillow.

    Raises:
        DataError: if it is broken.
        ResourceError: if a part of it, or a package that it needs, is absent.
    """
    import transformers

    require_preprocessing(model.folder, model.files)
    require_vocabulary(model.folder, model.files)
    try:
        processor = transformers.AutoProcessor.from_pretrained(  # type: ignore[no-untyped-call]
            model.folder, local_files_only=True, trust_remote_code=False
        )
        if not hasattr(processor, "image_processor"):  # a kind that has no processor of both
            return _Pair(image_processor(model), tokenizer(model))
        processor.image_processor = image_processor(model)
    except BiasPipelineError:
        raise
    except ImportError as error:  # names the package
        reason = first_line(error).partition(". ")[0]
        raise ResourceError(f"{model.name}: its processor lacks a package ({reason})") from error
    except Exception as error:  # whatever the library raises on a broken or absent file
        raise DataError(
            f"{model.name}: its processor cannot be loaded ({first_line(error)})"
        ) from error
    return processor


class _Pair:
    """Preprocessing of pictures and a tokenizer that the library does not join."""

    chat_template = None

    def __init__(self, pictures: Any, words: Any) -> None:
        self.image_processor, self.tokenizer = pictures, words

    def __call__(self, *, images: Any, return_tensors: str) -> Any:
        return self.image_processor(images=images, return_tensors=return_tensors)


def placed(kind: str, processor: Any, prompt: str) -> str:
    """A prompt with the picture's placeholder before it, for models without a template."""
    sign = "" if kind in _PLACED else str(getattr(processor, "image_token", "") or "")
    return _PLACES.get(kind, f"{sign}\n" if sign else "") + prompt


def templated(processor: Any, prompt: str) -> str | None:
    """A question about one picture in the model's chat template, None if it has none.

    Raises:
        DataError: if the template is broken.
    """
    if processor.chat_template is None:
        return None
    content = [{"type": "image"}, {"type": "text", "text": prompt}]
    try:
        text: str = processor.apply_chat_template(
            [{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False
        )
    except Exception as error:  # whatever a template makes of it
        raise DataError(f"its chat template cannot be used ({first_line(error)})") from error
    return text
