"""Writes and shows the words that leak an attribute, in files, on the terminal and in the report.

``words-RUN.csv`` has a line for each n-gram, side and group. ``word_examples-RUN.csv`` has a line
for each word of each example. ``words-RUN.sha256`` has the checksums of both files. Gains and
weights are log-odds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from bias_pipeline.errors import DataError, inflect, unwritable
from bias_pipeline.io.digests import read_unchanged, sha256
from bias_pipeline.io.files import read_csv, replace_file, table_csv
from bias_pipeline.io.terminal import print_out, print_text
from bias_pipeline.report.added_words import AddedWord
from bias_pipeline.report.explain.linear import Example, Gram
from bias_pipeline.report.explain.words import (
    EXACT,
    RevealingWord,
    RevealingWords,
    coefficient_groups,
)
from bias_pipeline.report.screen import print_table
from bias_pipeline.report.section import Section
from bias_pipeline.report.table import Cell, NumberCell, Table, Weighted
from bias_pipeline.stats.bootstrap import Interval

SHOWN = 20
MOST_ADDED = 10
MOST_REVEALING = 8
_ENDS = ("", "_ci_low", "_ci_high")
_SIDES = ("model", "human", "difference")
NETWORK = (
    "What a word adds depends on the words around it and on the baseline; intervals cover seeds "
    "and the images tested."
)


def save_words(folder: Path, name: str, words: RevealingWords) -> Path:
    """Write both files and their checksums; returns the path of the file with the words."""
    tables = {f"words-{name}": _lines(words), f"word_examples-{name}": _example_lines(words)}
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
        raise unwritable(folder, error) from error
    return folder / f"words-{name}.csv"


def _lines(words: RevealingWords) -> Iterator[dict[str, object]]:
    for word in words.words:
        for group, coefficient in word.coefficients.items():
            yield {
                "attribute": words.attribute,
                "dataset": words.dataset,
                "captioner": words.captioner,
                "groups": _join_groups(words.groups),
                "n_seeds": words.n_seeds,
                "method": words.method,
                "side": word.side,
                "ngram": " ".join(word.gram),
                "captions": word.captions,
                "group": group,
                **_interval_columns("coefficient", coefficient),
                **_interval_columns("gain", word.gain),
            }


def _interval_columns(name: str, interval: Interval) -> dict[str, object]:
    ends = (interval.value, interval.low, interval.high)
    return {f"{name}{end}": number for end, number in zip(_ENDS, ends, strict=True)}


def _example_lines(explanation: RevealingWords) -> Iterator[dict[str, object]]:
    for number, example in enumerate(explanation.examples):
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


def read_words(path: Path) -> RevealingWords:
    """The words that :func:`save_words` wrote to a file."""
    sums = _sums(path.with_suffix(".sha256"))
    lines = _read(path, sums)
    if not lines:
        raise ValueError("it is empty")
    first = lines[0]
    examples_path = path.with_name(path.name.replace("words-", "word_examples-", 1))
    try:
        words = [
            _word(list(group_lines))
            for _, group_lines in groupby(lines, key=lambda x: (x["side"], x["ngram"]))
        ]
        example_lines = _read(examples_path, sums) if examples_path.is_file() else []
        text = first["groups"]
        groups = tuple(json.loads(text) if text.startswith("[") else text.split())
        _check_whole(words, groups)
        return RevealingWords(
            attribute=first["attribute"],
            dataset=first["dataset"],
            captioner=first["captioner"],
            groups=groups,
            n_seeds=int(first["n_seeds"]),
            method=first["method"],
            words=words,
            examples=[
                _example(list(group_lines))
                for _, group_lines in groupby(example_lines, key=lambda x: x["example"])
            ],
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it lacks {error}") from error


def _join_groups(groups: Sequence[str]) -> str:
    """Names of groups, separated by blanks, or as JSON if a name has blanks or resembles JSON.

    Example:
        >>> _join_groups(["male", "female"]), _join_groups(["east asian", "white"])
        ('male female', '["east asian", "white"]')
    """
    text = " ".join(groups)
    plain = text.split() == list(groups) and not text.startswith("[")
    return text if plain else json.dumps(list(groups), ensure_ascii=False)


def _check_whole(words: Sequence[RevealingWord], groups: Sequence[str]) -> None:
    """Check that all sides have the same n-grams, and each n-gram a coefficient for every group."""
    sides: dict[str, set[Gram]] = {"model": set()}
    for word in words:
        sides.setdefault(word.side, set()).add(word.gram)
        if set(word.coefficients) != set(coefficient_groups(groups)):
            raise ValueError(
                f"{' '.join(word.gram)!r} lacks a coefficient of {' or '.join(groups)}"
            )
    if any(() not in grams or grams != sides["model"] for grams in sides.values()):
        raise ValueError("its sides have different n-grams")


def _sums(path: Path) -> dict[str, str]:
    """The checksums of files by name, in the format of ``sha256sum``."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ValueError(f"{path.name} cannot be read: {error.strerror}") from error
    return {name: checksum for checksum, _, name in (line.partition("  ") for line in lines)}


def _read(path: Path, sums: Mapping[str, str]) -> list[dict[str, str]]:
    text = read_unchanged(path, sums.get(path.name)).decode("utf-8")
    return read_csv(text)


def _word(lines: Sequence[dict[str, str]]) -> RevealingWord:
    first = lines[0]
    return RevealingWord(
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


def word_files(folder: Path) -> tuple[list[RevealingWords], list[str]]:
    """The words of all files in a folder, and a sentence on each file that cannot be read."""
    explanations, unread = [], []
    for path in sorted(folder.glob("words-*.csv")):
        try:
            explanations.append(read_words(path))
        except DataError as error:
            unread.append(f"{error}. It is not reported")
        except (ValueError, LookupError) as error:
            unread.append(f"{path} is not a complete file of words ({error}); it is not reported")
    return explanations, unread


def revealing(words: RevealingWords) -> Table:
    """A short table of the words in the model's captions that leak most."""
    first = _table(words, "model", f"The {MOST_REVEALING} words that leak most")
    return replace(first, rows=first.rows[1 : MOST_REVEALING + 1])


def section(words: RevealingWords) -> Section:
    """A section of a report on the words of one captioner."""
    tables = word_tables(words)
    exact = words.method == EXACT
    unit, rest = ("n-gram", "the intercept") if exact else ("word", "the baseline")
    attacker = "(ngram) " if exact else "(a network) "
    explanation = (
        f"What each {unit} adds to the log-odds that an attacker {attacker}gives the true group, "
        f"mean over test captions and {inflect(words.n_seeds, 'seeds')}. All {unit}s and {rest} "
        "together make the first line. Words that name the group are masked. "
        f"The {unit}s are the largest of thousands; intervals do not account for that choice."
    )
    texts = [explanation] if exact else [explanation, f"By {words.method}. {NETWORK}"]
    return Section(
        title=f"Words that leak {words.attribute}: {words.captioner}, {words.dataset}"
        + ("" if exact else " (network)"),
        texts=texts,
        tables=[*tables[:2], *_examples(words), *tables[2:]],
        captioner=words.captioner,
        chapter="Words that leak the group",
    )


def word_tables(words: RevealingWords) -> list[Table]:
    """Tables of the words that leak most: added words, the model's words, annotators' words."""
    captions = {
        "difference": "What the captioner added, then what it left out: model minus human",
        "model": f"What leaks {words.attribute} in the captions of {words.captioner}",
        "human": f"What leaks {words.attribute} in human captions",
    }
    sides = dict.fromkeys(word.side for word in words.words)
    return [_table(words, side, caption) for side, caption in captions.items() if side in sides]


def _table(words: RevealingWords, by: str, caption: str) -> Table:
    by_gram = {(word.side, word.gram): word for word in words.words}
    ranked = [word for word in words.words if word.side == by and word.gram]
    ranked.sort(key=lambda word: -word.gain.value)
    if by == "difference":
        # First added words, then words that were left out
        largest = sorted(ranked, key=lambda word: -abs(word.gain.value))[:SHOWN]
        ranked = sorted(largest, key=lambda word: (word.gain.value < 0, -abs(word.gain.value)))
    sides = [side for side in _SIDES if (side, ()) in by_gram]
    rows: list[list[Cell]] = []
    for word in [by_gram[by, ()], *ranked[:SHOWN]]:
        gains = (by_gram[side, word.gram].gain for side in sides)
        numbers = [NumberCell(gain.value, gain.low, gain.high, digits=3) for gain in gains]
        pointing = by_gram["model" if by == "difference" else by, word.gram]
        name = " ".join(word.gram) or "all together"
        rows.append([name, towards(pointing, words.groups), *numbers])
    unit = "n-gram" if words.method == EXACT else "word"
    return Table(caption, [unit, "towards", *sides], rows, folded=by == "human", keys=2)


def towards(word: RevealingWord, groups: Sequence[str]) -> str | None:
    """The group that an n-gram points to, or None in the line for the sum of all n-grams.

    Example:
        >>> speaks = Interval(-0.5, -0.6, -0.4)
        >>> tie = RevealingWord("model", ("tie",), 9, {"female": speaks}, speaks)
        >>> towards(tie, ("male", "female"))
        'male'
    """
    if not word.gram:
        return None
    values = {group: interval.value for group, interval in word.coefficients.items()}
    if len(groups) == 2:
        return groups[1] if values[groups[1]] > 0 else groups[0]
    return max(values, key=lambda group: values[group])


def _examples(words: RevealingWords) -> list[Table]:
    if not words.examples:
        return []
    first, second = words.groups if len(words.groups) == 2 else ("another group", "the true group")
    shared = ", the weight of an n-gram shared by its words" if words.method == EXACT else ""
    rows: list[list[Cell]] = [
        [
            example.image,
            example.side,
            example.group,
            NumberCell(example.log_odds),
            Weighted(example.words),
        ]
        for example in words.examples
    ]
    caption = f"Test captions that leak most{shared}"
    head = ["image", "side", "group", "log-odds", "caption"]
    return [Table(caption, head, rows, towards=(first, second))]


def print_added(words: Sequence[AddedWord], captioner: str) -> None:
    """Print, for each group, words that a captioner uses for persons more than annotators do."""
    for group in dict.fromkeys(word.group for word in words):
        caption = f"Said of {group} by {captioner} more often than by annotators, per cent"
        rows: list[list[Cell]] = [
            [
                word.word,
                word.concept,
                NumberCell(word.model, fraction=True, digits=1),
                NumberCell(word.human, fraction=True, digits=1),
                NumberCell(word.excess, word.excess - word.half, word.excess + word.half,
                           fraction=True, digits=1),
            ]
            for word in [word for word in words if word.group == group][:MOST_ADDED]
        ]  # fmt: skip
        head = ["word", "concept", captioner, "annotators", "more"]
        print_table(Table(caption, head, rows, keys=2))
        print_out()


def print_words(words: RevealingWords) -> None:
    """Print the words that leak most, where words that the captioner added come first."""
    for table in word_tables(words):
        print_table(table)
        print_out()
    unit = "an n-gram" if words.method == EXACT else "a word"
    print_text(
        f"log-odds of the true group that {unit} adds to a test caption, mean over captions; "
        f"intervals cover seeds and images, not the choice of the largest {unit.split()[-1]}s"
    )
    if words.method != EXACT:
        print_text(f"{words.method}. {NETWORK}")
