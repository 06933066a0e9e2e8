"""Reads the texts in a cell, also if Python, NumPy or JSON printed a list or mapping into it.

``DataFrame.to_csv`` prints whatever a cell holds: ``['a dog' 'a cat']`` (NumPy, without commas),
``array(['a dog', None], dtype=object)``, ``('a dog', 'a cat')``, ``[{'generated_text': 'a dog'}]``,
``b'a dog'``. Language models write JSON between the signs of a block of code. A printed value is
read completely or not at all, and nothing is executed.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bias_pipeline.corpus.encoding import without_half_pairs
from bias_pipeline.data.columns import HUMAN, MODEL, plain_name

_STRING = r"""[bBuU]?(?:'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")"""
_NAME = r"(?:(?:np|numpy|builtins)\.)?(?:array|list|tuple|set|frozenset|str_|bytes_|object_)"
_TOKEN = re.compile(
    rf"(?P<string>{_STRING})|(?P<opens>{_NAME}\s*\(|[\[({{])|(?P<closes>[\])}}])"
    r"|(?P<dtype>,\s*dtype\s*=\s*(?:'[^']*'|[\w.]+))|(?P<between>[,:])|(?P<cut>\.\.\.|\u2026)"
    r"|(?P<gap>(?:None|null|nan|NaN|<NA>|NaT)\b|<NA>)"
    r"|(?P<plain>(?:True|False|true|false)\b|[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|\s+",
    re.DOTALL,
)
_CLOSING = {"[": "]", "(": ")", "{": "}"}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_FENCED = re.compile(r"\s*```(?:json|text)?\s*\n(.*\S)\s*```\s*", re.DOTALL | re.IGNORECASE)
_CAPTIONS = MODEL.names | HUMAN.names
_DEPTH = 8
_NEAR = 60  # characters in a message

# How a print begins. A caption may begin with a bracket, as "(left) a dog", but hardly with a
# square bracket and a quotation mark. A print may begin with `b'`, `("` or `{"`.
_GAP = r"(?:None|null|nan|NaN|<NA>)"
_MARK = r"[bBuU]?['\"]"
_ITEM = rf"(?:{_MARK}|\{{\s*{_MARK}|{_GAP}\s*(?:[,\]'\"]|{_GAP})|{_NAME}\s*\(|\]\s*(?:$|[,)]))"
_LIST = re.compile(rf"\s*(?:{_NAME}\s*\(\s*)?\[\s*(?:[\[(]\s*)*{_ITEM}")
_PERHAPS = re.compile(rf"\s*(?:{_NAME}\s*\(|[bB]['\"]|\(\s*{_ITEM}|\{{\s*{_MARK})")
_SURELY = re.compile(
    rf"\{{\s*{_STRING}\s*[:,]|\(\s*(?:{_STRING}|None)\s*,\s*(?:{_MARK}|None|\.\.\.|\u2026)",
    re.DOTALL,
)
_FIRST_TWO = frozenset(
    {f"{opening}{sign}" for opening in "[({" for sign in "'\"bBuU[({Nn<als \n\r\t]f"}
    | {
        "``",
        "b'",
        'b"',
        "B'",
        'B"',
        "np",
        "nu",
        "bu",
        "ar",
        "li",
        "tu",
        "se",
        "fr",
        "st",
        "by",
        "ob",
    }
)


class NotWholeError(Exception):
    """The error for a print that lacks texts or cannot be read; the message says which."""


class _Pairs(NamedTuple):
    items: list[tuple[Any, Any]]


def may_be_printed(text: str) -> bool:
    """Whether a cell may hold a printed value; this is fast, and false for nearly every caption.

    Example:
        >>> may_be_printed("['a dog' 'a cat']"), may_be_printed("array of dogs")
        (True, False)
    """
    if text[:2] not in _FIRST_TWO and not text[:1].isspace():  # nearly all captions return here
        return False
    return bool(_LIST.match(text) or _PERHAPS.match(text) or _FENCED.fullmatch(text))


def any_printed(texts: Sequence[str]) -> bool:
    heads = {text[:2] for text in texts}
    begun = {head for head in heads if head in _FIRST_TWO or head[:1].isspace()}
    return bool(begun) and any(may_be_printed(text) for text in texts if text[:2] in begun)


def printed_texts(text: str) -> list[str] | None:
    r"""The texts of a print, with a blank for each gap (None, nan); None for a cell of plain text.

    Example:
        >>> printed_texts('''['a dog' "a man's cat"]''')
        ['a dog', "a man's cat"]
        >>> printed_texts("[{'generated_text': 'a dog'}]"), printed_texts("b'a dog'")
        (['a dog'], ['a dog'])
        >>> printed_texts('```json\n{"caption": "a dog"}\n```')
        ['a dog']
        >>> printed_texts("('left') a dog")
    """
    if not may_be_printed(text):
        return None
    if fenced := _FENCED.fullmatch(text):
        inside = printed_texts(fenced[1])
        return [fenced[1]] if inside is None else inside
    text = text.strip()
    try:
        value = _value_of(text)
    except NotWholeError:
        if _LIST.match(text) or _SURELY.match(text):
            raise
        return None
    return texts_in(value)


def _value_of(text: str) -> Any:
    if text[0] in "[{":
        try:
            return json.loads(text, object_pairs_hook=_Pairs)
        except (ValueError, RecursionError):
            pass  # a print of Python or NumPy
    tokens = _tokens(text)
    value = _read(next(tokens), tokens, 0)
    rest = next(tokens)
    if rest.lastgroup is not None:
        raise NotWholeError(
            f"has more behind its end, near {rest.string[rest.start() :][:_NEAR]!r}"
        )
    return value


def _tokens(text: str) -> Iterator[re.Match[str]]:
    """The tokens of a print, followed by an empty match."""
    place = 0
    while place < len(text):
        token = _TOKEN.match(text, place)
        if token is None:
            cut = text[place] in "'\"" and text.count(text[place], place) == 1
            fault = "is cut off" if cut else "cannot be read"
            raise NotWholeError(f"{fault}, near {text[place:][:_NEAR]!r}")
        place = token.end()
        if token.lastgroup is not None:
            yield token
    end = re.compile("$").search(text)
    while end is not None:
        yield end


def _read(token: re.Match[str], tokens: Iterator[re.Match[str]], depth: int) -> Any:
    match token.lastgroup:
        case "string":
            return _string(token[0])
        case "gap":
            return None
        case "plain":
            return 0  # a number or a truth value: no text, and never shown
        case "opens":
            if depth < _DEPTH:
                return _items(token[0], tokens, depth + 1)
            raise NotWholeError(f"nests deeper than {_DEPTH} levels")
        case "cut":
            raise NotWholeError("was shortened with '...': texts are lost")
        case None:
            raise NotWholeError(f"is cut off, near {token.string[-_NEAR:]!r}")
    raise NotWholeError(f"cannot be read, near {token.string[token.start() :][:_NEAR]!r}")


def _items(opening: str, tokens: Iterator[re.Match[str]], depth: int) -> Any:
    """The value between brackets; for a call such as ``array([...])``, the argument of the call."""
    items: list[Any] = []
    keys: list[Any] = []
    commas = 0
    for token in tokens:
        if token[0] == _CLOSING[opening[-1]]:
            break
        commas += token[0] == ","
        if token[0] == ":" and items:
            keys.append(items.pop())
        elif token[0] != "," and token.lastgroup != "dtype":
            items.append(_read(token, tokens, depth))
    if keys:
        if len(keys) != len(items):
            raise NotWholeError("cannot be read: keys and values differ in number")
        return _Pairs(list(zip(keys, items, strict=True)))
    is_list = opening in ("[", "{") or (opening == "(" and commas)
    return items if is_list or len(items) != 1 else items[0]


def _string(written: str) -> str:
    """A string in Python's notation; a line end within the string stays."""
    if "\\" not in written and written[0] in "'\"":
        return written[1:-1]
    escaped = _ESCAPE.sub(_python_escape, written).replace("\r", "\\r").replace("\n", "\\n")
    try:
        value = ast.literal_eval(escaped)
        return value.decode() if isinstance(value, bytes) else str(value)
    except (ValueError, SyntaxError, MemoryError) as error:
        raise NotWholeError(f"has a text that cannot be read, {written[:_NEAR]!r}") from error


def _python_escape(match: re.Match[str]) -> str:
    """Decode a known escape of Python; for any other escape, treat the backslash as a character."""
    return match[0] if match[1] in "\\'\"abfnrtvxuUN01234567" else f"\\{match[0]}"


def texts_in(value: Any) -> list[str]:
    """The texts of a value, which is a text, a mapping with a text, or a list of these.

    Example:
        >>> texts_in(["a dog", None, {"caption": "a cat", "conf": 0.9}]), texts_in(b"a dog")
        (['a dog', '', 'a cat'], ['a dog'])
        >>> texts_in({"raw": ["a dog", "a cat"], "sentid": [7, 8]})
        ['a dog', 'a cat']
        >>> texts_in({"caption": "a dog", "tokens": ["a", "dog"]})
        ['a dog']
    """
    if isinstance(value, Mapping):  # Hugging Face's datasets make a mapping of a list of mappings
        lists = [
            part
            for name, part in value.items()
            if isinstance(part, list) and plain_name(str(name)) in _CAPTIONS
        ]
        alone = len(lists) == 1 and not any(isinstance(part, str) for part in value.values())
        value = lists[0] if alone else value
    while isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    return [_text_of(item) for item in (value if isinstance(value, list) else [value])]


def _text_of(item: Any) -> str:
    if isinstance(item, bytes):
        return _string(repr(item))
    if isinstance(item, _Pairs):
        item = {str(key): value for key, value in item.items}
    if isinstance(item, Mapping):
        item = _text_in(item)
    if item is None or item != item:  # NaN, which JSON files may have
        return ""
    if not isinstance(item, str):
        raise NotWholeError("has an item that is not a text")
    return without_half_pairs(item)


def _text_in(mapping: Mapping[str, Any]) -> object:
    """The caption in ``{"caption": "a dog", "conf": 1}``: its only or its usual key's text.

    Example:
        >>> _text_in({"raw": "a dog", "tokens": ["a", "dog"]})
        'a dog'
        >>> _text_in({"caption": "a dog", "model": "blip"}), _text_in({"a": "x", "b": "y"})
        ('a dog', 0)
    """
    texts = {name: value for name, value in mapping.items() if isinstance(value, str)}
    for names in (frozenset(texts), *MODEL.usual, *HUMAN.usual):
        named = [text for name, text in texts.items() if name in names or plain_name(name) in names]
        if len(named) == 1:
            return named[0]
    return 0  # no text
