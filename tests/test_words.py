"""Texts for users have the field's words: the house's older words stay out (docs/glossary.md)."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
OLD_WORDS = {  # the word to write, to the older words
    "annotators, human captions": r"people's|people (?:write|wrote|say|said|use|used|reach)",
    "style": r"speech|speeches",
    "score, number": r"readings|(?:an?|the|one|each|every|this|that|no|which|its) reading(?! of)",
    "leak": r"(?:give|gives|gave|given|giving) (?:\w+ ){0,3}away",
    "longer or shorter captions": r"(?:say|says|said|saying) (?:\w+ )?(?:more|less)",
    "coverage of the vocabulary": r"(?:the|its|their|whose|low) reach|reached by",
    "no-bias value, share of captions that name no group": r"neutral",
}
OLD = re.compile(rf"(?i)(?<![\w-])(?:{'|'.join(OLD_WORDS.values())})(?![\w-])")
# What the field itself calls neutral: captions, words and queries that name no group.
OF_THE_FIELD = re.compile(
    r"(?i)\b(gender-neutral|neutral (words?|captions?|nouns?|names?|texts?|quer(y|ies)|prompts?))\b"
)
# Fields of the manifest and columns, which scripts read: strings without a space.
STORED = re.compile(r"\S*")
# A file, to what it may say and why.
ALLOWED = {
    "bias_pipeline/metrics/base.py": ("neutral", "readings"),  # fields of MetricInfo, documented
    "bias_pipeline/metrics/functional/attack.py": ("neutral",),  # a field of Relation
    "bias_pipeline/results/rows.py": ("readings",),  # names the manifest's key in an error
    "bias_pipeline/stats/bootstrap.py": ("neutral",),  # an argument of two functions
}
CODE = re.compile(r"(?ms)^ *```.*?^ *```|``?[^`\n]+``?|\]\([^)]*\)|\{\{.*?\}\}")
EXAMPLE = re.compile(r"(?ms)^ *>>> .*?(?=^\s*$|\Z)")


def texts_of_module(path: Path) -> Iterator[tuple[int, str]]:
    """Strings and docstrings without their examples and code, with their lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, EXAMPLE.sub("", node.value)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """What a file tells users: strings, comments of a configuration, or prose."""
    if path.suffix == ".py":
        yield from texts_of_module(path)
        return
    for number, line in enumerate(without_code(path.read_text(encoding="utf-8")), 1):
        yield number, line.partition("#")[2] if path.suffix == ".yaml" else line


def without_code(text: str) -> list[str]:
    """The lines of a text without its code, each line in its place."""
    return CODE.sub(lambda code: "\n" * code.group().count("\n"), text).split("\n")


def old_words(path: Path) -> Iterator[tuple[int, str]]:
    """The older words that a file says outside code, with their lines."""
    for line, text in texts(path):
        if not STORED.fullmatch(text):
            for word in OLD.finditer(OF_THE_FIELD.sub("", CODE.sub("", text))):
                yield line, word.group().lower()


def files() -> list[Path]:
    """All that users read, but the history in the changelog and the reports of studies."""
    trees = [REPOSITORY / tree for tree in ("bias_pipeline", "conf", "docs")]
    kinds = (".py", ".yaml", ".md", ".j2", ".html")
    inside = [path for tree in trees for path in tree.rglob("*") if path.suffix in kinds]
    return sorted([*inside, REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md"])


def test_texts_have_the_words_of_the_field():
    words_said = {path.relative_to(REPOSITORY).as_posix(): [*old_words(path)] for path in files()}
    assert [
        f"{name}:{line}: {word}"
        for name, words in words_said.items()
        for line, word in words
        if word not in ALLOWED.get(name, ())
    ] == []


@pytest.mark.parametrize("name", ALLOWED)
def test_what_is_allowed_is_said(name):
    """A file that no longer says an older word leaves the list."""
    assert {*ALLOWED[name]} <= {word for _, word in old_words(REPOSITORY / name)}


@pytest.mark.parametrize(
    "text",
    [
        "more than people's captions", "people use fewer words", "at equal speech",
        "a reading that decides", "it gives the group away", "captions that say much more",
        "the reach is 0.9", "above neutral",
    ],
)  # fmt: skip
def test_an_older_word_is_noticed(text):
    assert OLD.search(text)


@pytest.mark.parametrize(
    "text",
    ["people in the picture", "after reading a file", "gender-neutral queries", "reach the server"],
)
def test_plain_english_is_not_an_older_word(text):
    assert not OLD.search(OF_THE_FIELD.sub("", text))


def test_the_glossary_is_short_and_has_sources():
    glossary = (REPOSITORY / "docs" / "glossary.md").read_text(encoding="utf-8")
    lines = [
        line.strip("| ").split(" | ") for line in glossary.split("\n") if line.startswith("| ")
    ]
    terms = [cells for cells in lines if cells[0] not in ("term", "---")]
    assert 30 <= len(terms) <= 40
    assert all(len(cells) == 3 and cells[2] for cells in terms)


@pytest.mark.parametrize("page", ["README.md", "docs/start.md", "docs/audit.md"])
def test_the_glossary_is_linked_where_users_look(page):
    assert "glossary.md)" in (REPOSITORY / page).read_text(encoding="utf-8")
