"""The words that give an attribute away: files, terminal and report.

``words-RUN.csv`` has a line for each n-gram, side and group, ``word_examples-RUN.csv`` a line for
each word of each example, ``words-RUN.sha256`` their checksums. Gains and weights are log-odds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.explain.linear import Example, Gram
from bias_pipeline.explain.words import EXACT, Interval, Word, Words, groups_told
from bias_pipeline.io.atomic import replace_file
from bias_pipeline.io.csv_text import read_csv, table_csv
from bias_pipeline.io.grid import print_table, print_text
from bias_pipeline.io.sealed import read_unchanged, sha256
from bias_pipeline.io.terminal import say
from bias_pipeline.report.sheets import Cell, Number, Section, Sheet, Weighted, cell_text

SHOWN = 20
MOST_REVEALING = 8
_ENDS = ("", "_ci_low", "_ci_high")
_SIDES = ("model", "human", "difference")
NETWORK = (
    "What a word adds depends on the words around it and on the baseline; intervals cover seeds "
    "and the images tested."
)


def save_words(folder: Path, name: str, found: Words) -> Path:
    """Write both files, and beside them their checksums; returns the first.

    Args:
        folder: made where it is missing.
        name: of the run whose attackers these are.
        found: what is written.

    Raises:
        ResourceError: if they cannot be written.
    """
    tables = {f"words-{name}": _lines(found), f"word_examples-{name}": _example_lines(found)}
    files = {
        f"{stem}.csv": table_csv(list(lines)).encode("utf-8", "replace")
        for stem, lines in tables.items()
    }
    sums = "".join(f"{sha256(content)}  {file}\n" for file, content in files.items())
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, content in {**files, f"words-{name}.sha256": sums.encode()}.items():
            replace_file(folder / file, content)
    except OSError as error:
        raise ResourceError(
            f"cannot write {folder}: {error.strerror}; choose another folder with paths.outputs=..."
        ) from error
    return folder / f"words-{name}.csv"


def _lines(found: Words) -> Iterator[dict[str, object]]:
    for word in found.words:
        for group, coefficient in word.coefficients.items():
            yield {
                "attribute": found.attribute,
                "dataset": found.dataset,
                "captioner": found.captioner,
                "groups": " ".join(found.groups),
                "n_seeds": found.n_seeds,
                "method": found.method,
                "side": word.side,
                "ngram": " ".join(word.gram),
                "captions": word.captions,
                "group": group,
                **_written("coefficient", coefficient),
                **_written("gain", word.gain),
            }


def _written(name: str, own: Interval) -> dict[str, object]:
    ends = (own.value, own.low, own.high)
    return {f"{name}{end}": number for end, number in zip(_ENDS, ends, strict=True)}


def _example_lines(found: Words) -> Iterator[dict[str, object]]:
    for number, example in enumerate(found.examples):
        for place, (word, weight) in enumerate(example.words):
            yield {
                "example": number,
                "side": example.side,
                "image": example.image,
                "group": example.group,
                "log_odds": example.log_odds,
                "place": place,
                "word": word,
                "weight": weight,
            }


def read_words(path: Path) -> Words:
    """What :func:`save_words` wrote.

    Raises:
        DataError: if it is not as it was written.
        ValueError: if it is not such a file.
    """
    sums = _sums(path.with_suffix(".sha256"))
    lines = _read(path, sums)
    if not lines:
        raise ValueError("it is empty")
    first = lines[0]
    beside = path.with_name(path.name.replace("words-", "word_examples-", 1))
    try:
        found = [
            _word(list(own)) for _, own in groupby(lines, key=lambda x: (x["side"], x["ngram"]))
        ]
        told = _read(beside, sums) if beside.is_file() else []
        groups = tuple(first["groups"].split())
        _check_whole(found, groups)
        return Words(
            attribute=first["attribute"],
            dataset=first["dataset"],
            captioner=first["captioner"],
            groups=groups,
            n_seeds=int(first["n_seeds"]),
            method=first["method"],
            words=found,
            examples=[_example(list(own)) for _, own in groupby(told, key=lambda x: x["example"])],
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it lacks {error}") from error


def _check_whole(found: Sequence[Word], groups: Sequence[str]) -> None:
    """Every side has the model's n-grams, all together among them, each a coefficient a group.

    Raises:
        ValueError: otherwise.
    """
    sides: dict[str, set[Gram]] = {"model": set()}
    for word in found:
        sides.setdefault(word.side, set()).add(word.gram)
        if set(word.coefficients) != set(groups_told(groups)):
            raise ValueError(f"{' '.join(word.gram)!r} is not told of {' and '.join(groups)}")
    if any(() not in own or own != sides["model"] for own in sides.values()):
        raise ValueError("its sides have other n-grams")


def _sums(path: Path) -> dict[str, str]:
    """File name to checksum, as ``sha256sum`` writes them."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ValueError(f"{path.name} cannot be read: {error.strerror}") from error
    return {name: checksum for checksum, _, name in (line.partition("  ") for line in lines)}


def _read(path: Path, sums: Mapping[str, str]) -> list[dict[str, str]]:
    text = read_unchanged(path, sums.get(path.name)).decode("utf-8")
    return read_csv(text)


def _word(lines: Sequence[dict[str, str]]) -> Word:
    first = lines[0]
    return Word(
        side=first["side"],
        gram=tuple(first["ngram"].split()),
        captions=int(first["captions"]),
        coefficients={line["group"]: _interval(line, "coefficient") for line in lines},
        gain=_interval(first, "gain"),
    )


def _interval(line: dict[str, str], name: str) -> Interval:
    return Interval(*(float(line[f"{name}{end}"] or "nan") for end in _ENDS))


def _example(lines: Sequence[dict[str, str]]) -> Example:
    first = lines[0]
    words = tuple((line["word"], float(line["weight"])) for line in lines)
    log_odds = float(first["log_odds"])
    return Example(first["side"], first["image"], first["group"], log_odds, words)


def word_files(folder: Path) -> tuple[list[Words], list[str]]:
    """What a folder's files of words hold, and a sentence on each that cannot be read."""
    found, unread = [], []
    for path in sorted(folder.glob("words-*.csv")):
        try:
            found.append(read_words(path))
        except DataError as error:
            unread.append(f"{error}. It is not reported")
        except (ValueError, LookupError) as error:
            unread.append(f"{path} is not a whole file of words ({error}); it is not reported")
    return found, unread


def revealing(found: Words) -> Sheet:
    """The words that give most away in the model's captions, in short."""
    first = _sheet(found, "model", f"The {MOST_REVEALING} words that give most away")
    return replace(first, rows=first.rows[1 : MOST_REVEALING + 1])


def section(found: Words) -> Section:
    """The words of one captioner as a section of a report."""
    tables = sheets(found)
    exact = found.method == EXACT
    unit, rest = ("n-gram", "the intercept") if exact else ("word", "the baseline")
    attacker = "(ngram) " if exact else "(a network) "
    told = (
        f"What each {unit} adds to the log-odds that an attacker {attacker}gives the true group, "
        f"mean over test captions and {found.n_seeds} seeds. All {unit}s and {rest} "
        "together make the first line. Words that name the group are masked. "
        f"The {unit}s are the largest of thousands, and intervals do not pay for that choice."
    )
    texts = [told] if exact else [told, f"By {found.method}. {NETWORK}"]
    return Section(
        title=f"Words that give {found.attribute} away: {found.captioner}, {found.dataset}"
        + ("" if exact else " (network)"),
        texts=texts,
        sheets=[*tables[:2], *_examples(found), *tables[2:]],
        captioner=found.captioner,
        chapter="Words that give the group away",
    )


def sheets(found: Words) -> list[Sheet]:
    """What gives most away: in the model's captions, as the captioner added it, in people's."""
    captions = {
        "model": f"What gives {found.attribute} away in the captions of {found.captioner}",
        "difference": "What the captioner added: model minus human",
        "human": f"What gives {found.attribute} away in people's captions",
    }
    sides = dict.fromkeys(word.side for word in found.words)
    return [_sheet(found, side, caption) for side, caption in captions.items() if side in sides]


def _sheet(found: Words, by: str, caption: str) -> Sheet:
    own = {(word.side, word.gram): word for word in found.words}
    ranked = [word for word in found.words if word.side == by and word.gram]
    if by == "difference":
        ranked.sort(key=lambda word: -abs(word.gain.value))
    else:
        ranked.sort(key=lambda word: -word.gain.value)
    sides = [side for side in _SIDES if (side, ()) in own]
    rows: list[list[Cell]] = []
    for word in [own[by, ()], *ranked[:SHOWN]]:
        gains = (own[side, word.gram].gain for side in sides)
        numbers = [Number(gain.value, gain.low, gain.high, digits=3) for gain in gains]
        pointing = own["model" if by == "difference" else by, word.gram]
        name = " ".join(word.gram) or "all together"
        rows.append([name, towards(pointing, found.groups), *numbers])
    unit = "n-gram" if found.method == EXACT else "word"
    return Sheet(caption, [unit, "towards", *sides], rows, folded=by == "human")


def towards(word: Word, groups: Sequence[str]) -> str | None:
    """The group that an n-gram speaks for on its side, None for all n-grams together.

    Example:
        >>> speaks = Interval(-0.5, -0.6, -0.4)
        >>> towards(Word("model", ("tie",), 9, {"female": speaks}, speaks), ("male", "female"))
        'male'
    """
    if not word.gram:
        return None
    values = {group: own.value for group, own in word.coefficients.items()}
    if len(groups) == 2:
        return groups[1] if values[groups[1]] > 0 else groups[0]
    return max(values, key=lambda group: values[group])


def _examples(found: Words) -> list[Sheet]:
    if not found.examples:
        return []
    two = len(found.groups) == 2
    pointing = (
        f"dotted to {found.groups[1]}, plain to {found.groups[0]}"
        if two
        else ("dotted to the true group, plain away from it")
    )
    shared = ", the weight of an n-gram shared by its words" if found.method == EXACT else ""
    rows: list[list[Cell]] = [
        [
            example.image,
            example.side,
            example.group,
            Number(example.log_odds),
            Weighted(example.words),
        ]
        for example in found.examples
    ]
    caption = (
        f"Test captions that give most away{shared}. Underlined words point {pointing}; "
        "thick from 0.9, thin from 0.3"
    )
    return [Sheet(caption, ["image", "side", "group", "log-odds", "caption"], rows)]


def print_words(found: Words) -> None:
    """Print what gives most away."""
    for sheet in sheets(found):
        print_text(sheet.caption)
        lines = [[cell_text(cell) for cell in row] for row in sheet.rows]
        print_table(sheet.head, lines, keys=2)
        say()
    unit = "an n-gram" if found.method == EXACT else "a word"
    print_text(
        f"log-odds of the true group that {unit} adds to a test caption, mean over captions; "
        f"intervals cover seeds and images, not the choice of the largest {unit.split()[-1]}s"
    )
    if found.method != EXACT:
        print_text(f"{found.method}. {NETWORK}")
