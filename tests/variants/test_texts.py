"""Captions with traces of the programs that wrote them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.variants.files import CAPTIONS, Variant, check


def spoil(how: Callable[[str], str]) -> dict[str, str]:
    return {
        "mine.json": json.dumps([{"image_id": i, "caption": how(CAPTIONS[i])} for i in CAPTIONS])
    }


VARIANTS = [
    Variant(
        "special tokens of a decoder (`<start>`, `</s>`, `[PAD]`, `<|endoftext|>`)",
        spoil(lambda text: f"<start> {text} </s> [PAD]"),
        "marks of a decoder or a chat were taken out in 12 of 12 captions",
    ),
    Variant(
        "marks of a chat (`USER:`, `ASSISTANT:`, `<image>`, `<|im_start|>`)",
        spoil(lambda text: f"USER: <image>\nWho is it? ASSISTANT: {text}"),
        "marks of a decoder or a chat were taken out in 12 of 12 captions",
    ),
    Variant(
        "thoughts of gpt-oss before its answer (`<|channel|>final`)",
        spoil(
            lambda text: (
                "<|channel|>analysis<|message|>A man?<|end|><|start|>assistant"
                f"<|channel|>final<|message|>{text}<|return|>"
            )
        ),
        "marks of a decoder or a chat were taken out in 12 of 12 captions",
    ),
    Variant(
        "JSON in a block of code, as language models write it",
        spoil(lambda text: f'```json\n{{"caption": "{text}"}}\n```'),
        "mine.json:",
    ),
    Variant(
        "sub-words (`wo@@ man`, `wo ##man`, `▁wo man`, `Ġwo man`, `wo man</w>`, or `wo ￭man`)",
        spoil(lambda text: text.replace("woman", "wo@@ man")),
        "sub-words were joined in 6 of 12 captions: 'wo@@ man' is 'woman'",
    ),
    Variant(
        "a mark of sub-words on only a few words",
        spoil(lambda text: text.replace("man", "▁man")),
        "the mark of sub-words, but most words lack it",
        code=3,
    ),
    Variant(
        "words cut at a line's end",
        spoil(lambda text: text.replace("woman", "wo-\nman")),
        "words cut at a line's end were joined in 6 of 12 captions",
    ),
    Variant(
        "text in UTF-8 that was read as CP1252 (mojibake)",
        spoil(lambda text: text.replace("man ", "manÂ\xa0")),
        "mojibake (text read in another encoding) was mended in 12 of 12 captions",
    ),
    Variant(
        "zero-width blanks between words",
        spoil(lambda text: text.replace(" ", "\u200b")),
        "blanks of no width between words were made ordinary in 12 of 12 captions",
    ),
    Variant(
        "characters written as escapes (`&#32;`, `\\u0020`, `<0x20>`)",
        spoil(lambda text: text.replace(" a ", "&#32;a ").replace(" with", r"\u0020with")),
        "signs written out for HTML, JSON or bytes were decoded in 12 of 12 captions",
    ),
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_a_variant_is_what_it_says(tmp_path: Path, variant: Variant) -> None:
    check(tmp_path, variant)
