"""Formulas as MathML, which browsers draw without any script or font of ours.

A formula is a text of words between blanks: letters are names, digits numbers, all else operators;
``{}`` takes the next argument, which is a formula again. Brackets have the height of a line, ``((``
and ``))`` that of what they hold.
"""

from __future__ import annotations

import html

_BRACKETS = ("(", ")", "[", "]", "|")
_TALL = {"((": "(", "))": ")"}


def row(text: str, *parts: str) -> str:
    """A formula in one line.

    Args:
        text: see the module.
        parts: MathML for each ``{}``.

    Example:
        >>> row("a = {}", frac("1", "N"))
        '<mrow><mi>a</mi><mo>=</mo><mfrac><mn>1</mn><mi>N</mi></mfrac></mrow>'
    """
    left = list(parts)
    elements = [left.pop(0) if word == "{}" else _element(word) for word in text.split()]
    return elements[0] if len(elements) == 1 else f"<mrow>{''.join(elements)}</mrow>"


def _element(word: str) -> str:
    name, _, below = word.partition("_")
    if below and name:
        return sub(name, below)
    if word in ("log", "ln", "max", "min"):
        return f'<mi>{word}</mi><mspace width="0.2em"/>'
    if word in _BRACKETS:
        return f'<mo stretchy="false">{word}</mo>'
    if word in _TALL:
        return f"<mo>{_TALL[word]}</mo>"
    kind = "mn" if word[0].isdigit() else "mi" if word[0].isalpha() else "mo"
    return f"<{kind}>{html.escape(word)}</{kind}>"


def text(words: str) -> str:
    """Words, with their blanks."""
    return f"<mtext>{html.escape(words)}</mtext>"


def frac(over: str, under: str) -> str:
    """A fraction of two formulas or pieces of MathML."""
    return f"<mfrac>{_piece(over)}{_piece(under)}</mfrac>"


def sub(name: str, below: str) -> str:
    """A name with an index."""
    return f"<msub>{_piece(name)}{_piece(below)}</msub>"


def sup(base: str, exponent: str) -> str:
    """A power."""
    return f"<msup>{_piece(base)}{_piece(exponent)}</msup>"


def total(below: str, sign: str = "∑") -> str:
    """A sum, or another operator, with what it runs over."""
    return f"<munder><mo>{sign}</mo>{_piece(below)}</munder>"


def _piece(text: str) -> str:
    return text if text.startswith("<") else row(text)


def block(formula: str) -> str:
    """A formula as a paragraph of a page."""
    return (
        '<div class="formula"><math display="block" xmlns="http://www.w3.org/1998/Math/MathML">'
        f"{formula}</math></div>"
    )
