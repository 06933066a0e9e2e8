"""docs/variants.md has every variant that is tested, with what happens to it.

``python -m tests.variants.test_page`` writes its lists anew.
"""

from tests.corpora import REPOSITORY
from tests.variants import (
    test_captions,
    test_ids,
    test_labels,
    test_people,
    test_programs,
    test_texts,
)
from tests.variants.files import Variant

TESTED: dict[str, list[Variant]] = {
    "Image ids": test_ids.VARIANTS,
    "Captions of the model": test_captions.VARIANTS,
    "Labels": test_labels.VARIANTS,
    "Human captions": test_people.VARIANTS,
    "Files of other programs": test_programs.VARIANTS,
    "Traces in captions": test_texts.VARIANTS,
}
PAGE = REPOSITORY / "docs" / "variants.md"
READ = "## Read\n"


def lists() -> str:
    """What is read, and what is refused, in the order of the tests."""
    variants = [variant for group in TESTED.values() for variant in group]
    refused = [variant.line() for variant in variants if variant.code]
    lines = [READ]
    for title, group in TESTED.items():
        lines += [f"### {title}\n", *(variant.line() for variant in group if not variant.code), ""]
    lines += ["## Refused\n", *refused]
    return "\n".join(lines) + "\n"


def test_the_page_has_the_variants_that_are_tested():
    _, start, rest = PAGE.read_text(encoding="utf-8").partition(READ)
    assert start + rest == lists()


def test_there_are_forty():
    assert sum(map(len, TESTED.values())) >= 40


if __name__ == "__main__":
    written = PAGE.read_text(encoding="utf-8").partition(READ)[0]
    PAGE.write_text(written + lists(), encoding="utf-8")
