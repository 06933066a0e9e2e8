"""Removes decoder marks, chat templates and sub-word marks, which are no words of captions.

Sub-words are joined to words by the marks of fairseq (``wo@@ man``), BERT (``wo ##man``),
SentencePiece (``▁a ▁wo man``), GPT-2 (``Ġa Ġwo man``), CLIP (``wo man</w>``) and OpenNMT (``wo
￭man``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from bias_pipeline.corpus.captions import is_blank
from bias_pipeline.errors import DataError
from bias_pipeline.text.encoding import changes, holding

NO_CAPTION = "no caption"  # replaces a text that is nothing but tags; counts as declining

_NAMES = (
    "s|bos|sos|eos|eot|eoc|start|end|pad|cls|sep|mask_token|endofseq|startofseq|extra_id_[0-9]+|"
    "(?:begin|start|end)_of_(?:text|sentence|sequence|turn|utterance|caption|image)|"
    "im_(?:start|end|patch)"
)
_MARK = re.compile(
    rf"</?(?:{_NAMES})\s*/?>"
    r"|\[/?(?:SEP|CLS|PAD|BOS|EOS|SOS|MASK|start|end|sos|eos|bos|pad)\]"
    r"|</?(?:p|br|div|span|ul|ol|li|b|i|em|strong|h[1-6])\s*/?>"
    r"|<box>.{0,80}?</box>|</?(?:ref|phrase|object)>|<(?:patch_index|loc)_?\d+>|\{(?:<\d+>)+\}"
    r"|\b(?:startseq|endseq|startofseq|endofseq)\b"
    # GLM's signs of an answer and gpt-oss's sign of a thought are read with a model's thoughts
    r"|<[|｜](?!(?:begin|end)_of_box|channel\|>\s*(?:analysis|commentary)\b)[^<>|｜\n]{1,40}[|｜]>",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"</?(?:img|image|images|imagehere|image_placeholder|image_token|video|"
    r"fake_token_around_image|global-img|row_\d+_col_\d+|(?:more_)?(?:detailed_)?caption)\s*/?>"
    r"|<\|?(?:image|vision)[\w-]*\|?>|\[/?(?:IMG|IMAGE)\]",
    re.IGNORECASE,
)
# Where a model's turn of a chat begins, and where another speaker's turn begins.
_ANSWERS = re.compile(
    r"(?i:<\|im_start\|>\s*(?:assistant|model)\b|<start_of_turn>\s*model\b"
    r"|<\|start_header_id\|>\s*assistant\s*<\|end_header_id\|>"
    r"|<\|(?:assistant|model|bot)\|>|\[/INST\]|(?:^|\n|###)\s*(?:assistant|gpt|bot|response)\s*:"
    r"|^\s*question\s*:[^\n]*?\banswer\s*:)|\bASSISTANT\s*:"
)
_ASKS = re.compile(
    r"(?i:<\|im_start\|>\s*(?:user|system|human)\b|<start_of_turn>\s*user\b"
    r"|<\|start_header_id\|>\s*(?:user|system)\s*<\|end_header_id\|>"
    r"|<\|(?:user|system|human)\|>|\[INST\]|(?:^|\n|###)\s*(?:human|user|system|instruction)\s*:)"
    r"|\bUSER\s*:"
)
_FINAL = re.compile(r"<\|channel\|>\s*final\s*<\|message\|>")  # gpt-oss, behind its thoughts
_BEGIN = re.compile(r"(?i)<(?:s|start|bos|sos)>|\bstartseq\b")
_END = re.compile(
    r"(?i)</s>|<(?:end|eos|eot|end_of_\w+)>|\bendseq\b"
    r"|<\|(?:endoftext|im_end|eot_id|end|end_of_text|endofchunk)\|>"
)
_SYSTEM = re.compile(r"(?i)\W*(?:<s>\s*)?(?:a chat between|you are|below is|the following|give)\b")


def without_marks(texts: Sequence[str]) -> dict[str, str]:
    """Map each text that has decoder marks or template tags to the text without marks and tags.

    Only the first answer of a chat is kept. A text that contains only tags becomes ``no caption``.

    Example:
        >>> texts = ["<s> a man</s><pad>", "USER: Who? ASSISTANT: a dog", "</Img>", "a <unk>"]
        >>> list(without_marks(texts).values())
        ['a man', 'a dog', 'no caption']
    """
    return changes(holding(texts, "<", "[", "###", "seq", ":"), _content)


def _content(text: str) -> str:
    answer = _answer_of_chat(text)
    tagless = _TAG.sub(" ", answer)
    content = _MARK.sub(" ", tagless)
    if content == text:
        return text
    if is_blank(content):
        return "" if tagless == text else NO_CAPTION
    return content.strip()


def _answer_of_chat(text: str) -> str:
    """The model's first answer in a chat, or the text before another speaker's first turn."""
    text = _FINAL.split(text)[-1]
    first = _first_turn(text)
    begun = _ANSWERS.search(text)
    if first and begun:
        before = text[: first.start()]
        asked_later = first.start() < begun.start() or _END.search(before) is not None
        begun = None if asked_later and _has_words(before) and not _SYSTEM.match(before) else begun
    answer = text[begun.end() :] if begun else text
    turn = _first_turn(answer)
    if turn is None:
        return answer
    return answer[: turn.start()] if _has_words(answer[: turn.start()]) else answer[turn.end() :]


def _first_turn(text: str) -> re.Match[str] | None:
    turns = [turn for sign in (_ANSWERS, _ASKS) if (turn := sign.search(text))]
    return min(turns, key=lambda turn: turn.start(), default=None)


def _has_words(text: str) -> bool:
    return not is_blank(_MARK.sub(" ", text))


def written_on(texts: Sequence[str]) -> list[str]:
    """Texts with further words after the mark that ends a caption, but without another caption.

    Example:
        >>> written_on(["a man</s> a dog", "<s> a man </s> <s> he runs </s>", "</s> a man"])
        ['a man</s> a dog']
    """
    return [text for text in holding(texts, "<", "endseq") if _writes_on(_answer_of_chat(text))]


def _writes_on(text: str) -> bool:
    ends = (end for end in _END.finditer(text) if _has_words(text[: end.start()]))
    rest = text[end.end() :] if (end := next(ends, None)) else ""
    return _has_words(rest) and not _BEGIN.search(rest)


class UncertainTextError(DataError):
    """The error that is raised for a text whose marks can be read in two ways.

    Attributes:
        text: the text.
    """

    def __init__(self, text: str, mark: str) -> None:
        super().__init__(
            f"{text[:80]!r} has {mark!r}, the mark of sub-words, but most words lack it, so where "
            "words end is unknown; write the captions anew with the model's own tokenizer: "
            "tokenizer.decode(ids, skip_special_tokens=True)"
        )
        self.text = text


def joined_subwords(texts: Sequence[str]) -> dict[str, str]:
    """Map each text of sub-words to whole words, if over 1 % of the texts have sub-word marks.

    Example:
        >>> list(joined_subwords(["a wo@@ man", "a wo ##man", "▁a ▁wo man", "ĠcafÃ©"]).values())
        ['a woman', 'a woman', 'a woman', 'café']
    """
    joined: dict[str, str] = {}
    for mark, (sign, rule) in _SUBWORDS.items():
        marked = [text for text in holding(texts, mark) if sign.search(text)]
        if len(marked) > _OFTEN * len(texts):
            joined |= rule(list(dict.fromkeys(marked)))
    return joined


def _join(texts: Sequence[str], sign: re.Pattern[str]) -> dict[str, str]:
    return {text: sign.sub("", text) for text in texts}


def _words(texts: Sequence[str], mark: str, *, at_end: bool = False) -> dict[str, str]:
    """Join pieces to words. A mark shows where a word begins or ends; other pieces continue a word.

    If every text has only one mark, at its beginning or end, the words are already whole.
    """
    pieces = {text: sum(piece != mark for piece in text.split()) for text in texts}
    outside = str.endswith if at_end else str.startswith
    once = all(text.count(mark) == 1 and outside(text.strip(), mark) for text in texts)
    if once and sum(pieces.values()) > 2 * len(texts):
        return {text: text.replace(mark, "").strip() for text in texts}
    if 2 * sum(text.count(mark) for text in texts) < sum(pieces.values()):
        raise UncertainTextError(max(texts, key=lambda text: pieces[text] - text.count(mark)), mark)
    return {text: "".join(text.split()).replace(mark, " ").strip() for text in texts}


# GPT-2's signs of the bytes that are no printable sign of Latin-1: the blank is Ġ.
_BYTE_OF = {
    chr(256 + number): byte
    for number, byte in enumerate((*range(0x21), 0x7F, *range(0x80, 0xA1), 0xAD))
} | {chr(byte): byte for byte in range(0xA1, 0x100) if byte != 0xAD}
_BYTES = re.compile("[\u00a1-\u00ac\u00ae-\u00ff\u0121-\u0143]{2,}")


def _from_bytes(texts: Sequence[str]) -> dict[str, str]:
    """Join pieces of GPT-2, and decode their bytes beyond ASCII."""
    spaced = {text: text.replace("Ċ", "Ġ").replace("ĉ", "Ġ") for text in texts}
    words = _words(list(spaced.values()), "Ġ")
    return {text: _BYTES.sub(_decode, words[blank]) for text, blank in spaced.items()}


def _decode(run: re.Match[str]) -> str:
    try:
        return bytes(map(_BYTE_OF.__getitem__, run[0])).decode("utf-8")
    except UnicodeDecodeError:
        return run[0]  # it was decoded before


def _rule_for_mark(sign: str) -> _Subwords:
    """The rule for a mark that joins the pieces before and after the mark."""
    return re.compile(sign), partial(_join, sign=re.compile(sign))


_OFTEN = 0.01  # share of the texts that must have a mark
_Subwords = tuple[re.Pattern[str], Callable[[Sequence[str]], dict[str, str]]]
# Mark to a pattern that distinguishes the mark from ordinary signs, and a function that turns texts
# with the mark into words
_SUBWORDS: Mapping[str, _Subwords] = {
    "@@": _rule_for_mark(r"(?<=\w)@@\s*|\s*@@(?=\w)"),
    "##": _rule_for_mark(r"(?<=\w)[^\S\n]*##(?=\w)"),
    "￭": _rule_for_mark(r"\s*￭\s*"),
    "▁": (re.compile("▁"), partial(_words, mark="▁")),
    "</w>": (re.compile("</w>"), partial(_words, mark="</w>", at_end=True)),
    "Ġ": (re.compile("Ġ"), _from_bytes),
}
