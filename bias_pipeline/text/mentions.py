"""How attributes are read from captions."""

from __future__ import annotations

from bias_pipeline.attribute import Attribute
from bias_pipeline.captions import Captions
from bias_pipeline.text.tokenize import tokenize_word


def neutral_rate(captions: Captions, attribute: Attribute) -> float:
    """Share of captions that name no group of the attribute, in [0, 1]; NaN without captions.

    A captioner that always says "person" is neutral throughout and must not look fair for free.

    Args:
        captions: raw captions; they are tokenised and lower-cased here.
        attribute: whose groups' words count.
    """
    if not len(captions):
        return float("nan")
    tokens = captions.rewrite(
        lambda word: tokenize_word(word.lower(), keep_punctuation=False, keep_unknown=True)
    )
    words = [word for group in attribute.words.values() for word in group]
    return float(1 - tokens.mentions(words).mean())
