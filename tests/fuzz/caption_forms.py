"""Odd forms of ids and captions: own numbers, lists in cells, encodings, marks of programs."""

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence

from tests.fuzz.truth import LABELS, MINE, OBJECTS, PEOPLE, Files

Rule = Callable[[str], str]


def _name(image: str) -> str:
    return f"COCO_val2014_{int(image):012d}"


# Forms of issue A: the file's own numbers.


def own_numbers(files: Files, generator: random.Random) -> None:
    """Human captions and objects in COCO's form, with numbers that a program gave pictures.

    They are those of the names in another order, or 1, 2, ...; other files have names.
    """
    truth, ids = files.truth, list(files.truth.groups)
    other = generator.sample(range(1, 1000), len(ids))
    shifted = dict(zip(ids, [*ids[1:], ids[0]] if generator.random() < 0.5 else other, strict=True))
    images = [{"id": int(shifted[i]), "file_name": f"{_name(i)}.jpg"} for i in ids]
    ending = generator.choice(["", ".jpg"])
    files.table(
        LABELS,
        "odd_labels.csv",
        [("image_id", "gender"), *((_name(i) + ending, g) for i, g in truth.groups.items())],
    )
    results = [{"image_id": _name(i) + ending, "caption": t} for i, t in truth.mine.items()]
    files.write(MINE, "odd_mine.json", json.dumps(results))
    captions = [
        {"id": number, "image_id": int(shifted[image]), "caption": text}
        for number, (image, text) in enumerate(_pairs(truth.people))
    ]
    files.write(PEOPLE, "odd_people.json", json.dumps({"images": images, "annotations": captions}))
    names = sorted({name for listed in truth.objects.values() for name in listed})
    regions = [
        {"image_id": int(shifted[image]), "category_id": names.index(name)}
        for image, name in _pairs(truth.objects)
    ]
    categories = [{"id": number, "name": name} for number, name in enumerate(names)]
    content = {"images": images, "categories": categories, "annotations": regions}
    files.write(OBJECTS, "odd_objects.json", json.dumps(content))


def _pairs(lists: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    return [(image, item) for image, items in lists.items() for item in items]


# Forms of issue B: lists in cells.


def _numpy(texts: Sequence[str]) -> str:
    return f"[{' '.join(map(repr, texts))}]"


def _over_lines(texts: Sequence[str]) -> str:
    return "[" + "\n ".join(map(repr, texts)) + "]"


def _array(texts: Sequence[str]) -> str:
    return f"array([{', '.join(map(repr, texts))}], dtype=object)"


def _mappings(texts: Sequence[str]) -> str:
    return repr([{"caption": text, "conf": 0.5} for text in texts])


_PRINTS: Sequence[Callable[[Sequence[str]], str]] = (
    *(_numpy, _over_lines, _array, _mappings),
    lambda texts: repr(list(texts)),
    lambda texts: repr(tuple(texts)),
    lambda texts: json.dumps(list(texts)),
)
_PRINTS_OF_ONE: Sequence[Rule] = (
    lambda text: repr([{"generated_text": text}]),
    lambda text: json.dumps([text]),
    lambda text: repr(text.encode()),
    lambda text: _numpy([text]),
    lambda text: json.dumps({"caption": text, "conf": 0.5}),
)


def lists_of_people(files: Files, generator: random.Random) -> None:
    """Human captions of an image in one cell, as a program printed them."""
    printed = generator.choice(_PRINTS)
    lines = [(image, printed(texts)) for image, texts in files.truth.people.items()]
    files.table(PEOPLE, "odd.csv", [("image_id", "caption"), *lines])


def shortened_lists(files: Files, generator: random.Random) -> None:
    """The same, of which some are shortened."""
    images = set(generator.sample(list(files.truth.people), 5))
    lines = [
        (image, f"[{texts[0]!r} ... {texts[-1]!r}]" if image in images else _numpy(texts))
        for image, texts in files.truth.people.items()
    ]
    files.table(PEOPLE, "odd.csv", [("image_id", "caption"), *lines])


def lists_of_one(files: Files, generator: random.Random) -> None:
    """The captioner's caption in a list or mapping in a cell."""
    printed = generator.choice(_PRINTS_OF_ONE)
    lines = [(image, printed(text)) for image, text in files.truth.mine.items()]
    files.table(MINE, "odd.csv", [("image_id", "caption"), *lines])


# Forms of issues D, E and H: texts that a program changed.


def _rewrite(files: Files, generator: random.Random, rule: Rule) -> None:
    """Write the captions of one side by a rule."""
    truth = files.truth
    if generator.random() < 0.5:
        files.people({image: [*map(rule, texts)] for image, texts in truth.people.items()})
        return
    results = [{"image_id": int(i), "caption": rule(text)} for i, text in truth.mine.items()]
    files.write(MINE, "odd.json", json.dumps(results))


def mojibake(files: Files, generator: random.Random) -> None:
    """UTF-8 read as CP1252, once or twice."""
    times = generator.choice([1, 2])

    def rule(text: str) -> str:
        for _ in range(times):
            text = text.encode().decode("cp1252")
        return text

    _rewrite(files, generator, rule)


def invisible_signs(files: Files, generator: random.Random) -> None:
    """Signs of no width within words, and other blanks between them."""
    signs = generator.sample(["\u200b", "\u00ad", "\ufeff", "\u2060"], 2)
    blank = generator.choice([" ", "\u00a0", "\u2009", "\t", "\r\n"])

    def rule(text: str) -> str:
        words = [
            word[:2] + generator.choice(signs) + word[2:]
            if len(word) > 2 and generator.random() < 0.4
            else word
            for word in text.split()
        ]
        return blank.join(words)

    _rewrite(files, generator, rule)


def blanks_of_no_width(files: Files, generator: random.Random) -> None:
    """No other blank between words."""
    _rewrite(files, generator, lambda text: "\u200b".join(text.split()))


def sub_words(files: Files, generator: random.Random) -> None:
    """Words in pieces, as tokenizers of networks mark them."""
    style = generator.choice(["@@", "##", "\u2581", "\u0120", "</w>"])

    def cut(word: str) -> list[str]:
        place = generator.randint(1, len(word) - 1) if word.isalpha() and len(word) > 2 else 0
        return [word[:place], word[place:]] if place and generator.random() < 0.7 else [word]

    def mark_pieces(number: int, pieces: list[str]) -> list[str]:
        if style == "@@":
            return [*(f"{piece}@@" for piece in pieces[:-1]), pieces[-1]]
        if style == "##":
            return [pieces[0], *(f"##{piece}" for piece in pieces[1:])]
        if style == "</w>":
            return [*pieces[:-1], f"{pieces[-1]}</w>"]
        first = pieces[0] if style == "\u0120" and not number else style + pieces[0]
        return [first, *pieces[1:]]

    def rule(text: str) -> str:
        words = enumerate(map(cut, text.split()))
        return " ".join(piece for number, pieces in words for piece in mark_pieces(number, pieces))

    _rewrite(files, generator, rule)


def cut_words(files: Files, generator: random.Random) -> None:
    """Words that a line's end cuts."""
    _rewrite(files, generator, lambda text: re.sub(r"\b(wo|mar|gar)([a-z]{2,})", r"\1-\n\2", text))


_AROUND: Sequence[Rule] = (
    lambda text: f"<start> {text} <end>",
    lambda text: f"<s>{text}</s>",
    lambda text: f"{text}<|endoftext|>",
    lambda text: f"[CLS] {text} [SEP] [PAD] [PAD]",
    lambda text: f"{text} </s> <pad> <pad>",
    lambda text: f"<|im_start|>assistant\n{text}<|im_end|>",
    lambda text: f"<Img><ImageHere></Img> {text}",
    lambda text: f"USER: <image>\nDescribe it. ASSISTANT: {text}",
)


def decoder_marks(files: Files, generator: random.Random) -> None:
    """Marks of a decoder or of a chat around the captioner's captions."""
    rule = generator.choice(_AROUND)
    results = [{"image_id": int(i), "caption": rule(t)} for i, t in files.truth.mine.items()]
    files.write(MINE, "odd.json", json.dumps(results))


# Forms of issue G: quotation marks.


def tabs(files: Files, generator: random.Random) -> None:
    """Tables with tabs and without quoting; some captions begin with a quotation mark."""
    if generator.random() < 0.5:
        _write_unquoted(files, MINE, "odd.tsv", "\t", list(files.truth.mine.items()))
    else:
        _write_unquoted(files, PEOPLE, "odd.tsv", "\t", _pairs(files.truth.people))


def unclosed_marks(files: Files, generator: random.Random) -> None:
    """Tables with commas whose quotation marks enclose nothing."""
    del generator
    _write_unquoted(files, MINE, "odd.csv", ",", list(files.truth.mine.items()))


def _write_unquoted(
    files: Files, setting: str, name: str, sign: str, rows: Sequence[tuple[str, str]]
) -> None:
    lines = [f"image_id{sign}caption", *(f"{image}{sign}{text}" for image, text in rows)]
    files.write(setting, name, "\n".join(lines) + "\n")


# Several captions in a cell, ids as spreadsheets write numbers, capitals (issue I), labels.


def joined_captions(files: Files, generator: random.Random) -> None:
    """Human captions of an image in one cell, between separators or numbered."""
    sign = generator.choice(["; ", ";", " | ", " || ", " /// ", "\n", "<sep>", "<br>", ""])
    lines = [
        (image, sign.join(texts) if sign else _number_texts(texts))
        for image, texts in files.truth.people.items()
    ]
    files.table(PEOPLE, "odd.csv", [("image_id", "caption"), *lines])


def _number_texts(texts: Sequence[str]) -> str:
    return " ".join(f"{number}. {text}" for number, text in enumerate(texts, 1))


def _in_powers(image: str) -> str:
    return f"{image[0]}.{image[1:]}E+{len(image) - 1:02d}"


_NUMBERS: Sequence[Rule] = (
    lambda image: f"{int(image):,}",
    lambda image: f"{int(image):,}".replace(",", "."),
    lambda image: f"{int(image):,}".replace(",", "\u202f"),
    lambda image: f"{float(image):.2E}",
    _in_powers,
    lambda image: f"'{image}",
    lambda image: f"{image}.0",
)


def written_numbers(files: Files, generator: random.Random) -> None:
    """Ids of one file as spreadsheets write numbers; some lose their last digits."""
    rule, truth = generator.choice(_NUMBERS), files.truth
    if generator.random() < 0.5:
        lines = [("image_id", "gender"), *((rule(i), group) for i, group in truth.groups.items())]
        files.table(LABELS, "odd.csv", lines)
        return
    lines = [("image_id", "caption"), *((rule(i), text) for i, text in truth.mine.items())]
    files.table(MINE, "odd.csv", lines)


def capitals(files: Files, generator: random.Random) -> None:
    """Captions in capitals."""
    _rewrite(files, generator, str.upper)


def hidden_signs_in_labels(files: Files, generator: random.Random) -> None:
    """Signs that nobody sees in labels."""
    sign = generator.choice(["\u200b", "\u00ad", "\ufeff"])
    labels = [(i, f"{group[:2]}{sign}{group[2:]}") for i, group in files.truth.groups.items()]
    files.table(LABELS, "odd.csv", [("image_id", "gender"), *labels])


Form = Callable[[Files, random.Random], None]
CAPTION_FORMS: Mapping[str, Sequence[Form]] = {
    "numbers": (own_numbers,),
    "lists": (lists_of_people, shortened_lists, lists_of_one),
    "encodings": (mojibake, invisible_signs, blanks_of_no_width),
    "sub_words": (sub_words, cut_words),
    "decoders": (decoder_marks,),
    "quotes": (tabs, unclosed_marks),
    "joined": (joined_captions,),
    "written": (written_numbers,),
    "capitals": (capitals,),
    "marks in labels": (hidden_signs_in_labels,),
}
