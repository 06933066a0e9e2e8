"""docs/variants.md has every variant that is tested, with what happens to it."""

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

TESTED: list[Variant] = [
    *test_ids.VARIANTS,
    *test_captions.VARIANTS,
    *test_labels.VARIANTS,
    *test_people.VARIANTS,
    *test_programs.VARIANTS,
    *test_texts.VARIANTS,
]
PAGE = REPOSITORY / "docs" / "variants.md"


def test_the_page_has_the_variants_that_are_tested():
    text = PAGE.read_text(encoding="utf-8")
    shown = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert [line for line in shown if "---" not in line] == [item.line() for item in TESTED]


def test_there_are_forty():
    assert len(TESTED) >= 40
