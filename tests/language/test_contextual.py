import math
from pathlib import Path

import numpy as np
import pytest

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.language.contextual import ContextualAlignment, nearest_directions
from bias_pipeline.run import compose
from bias_pipeline.text.mask import MaskWords
from tests.corpora import make_corpus

VECTORS = """\
dog 1 0 0
puppy 1 0.1 0
surfboard 0 1 0
wave 0.3 1 0
cloud 0 0 1
. 1 0.01 0
the 0.2 0.2 0.2
"""


@pytest.fixture
def vectors(tmp_path: Path) -> str:
    path = tmp_path / "tiny.txt"
    path.write_text(VECTORS)
    return str(path)


def corpus(*human: str, model: str = "a dog on a surfboard") -> Corpus:
    return make_corpus([Record("1", model, human)])


@pytest.mark.parametrize(
    ("human", "delta", "expected"),
    [
        ("a puppy on a wave", 0.4, "a dog on a surfboard"),
        ("a cloud", 0.4, "a <unk>"),
        ("a xyzzy", 0.4, "a <unk>"),
        ("a wave", 1 - 1 / math.hypot(0.3, 1), "a <unk>"),
        ("a dog .", 0.4, "a dog <unk>"),
    ],
    ids=["the nearest", "none near", "no vector", "at delta exactly", "a sign"],
)
def test_a_word_becomes_the_nearest_that_the_captioner_uses(human, delta, expected, vectors):
    assert ContextualAlignment(vectors, delta)(corpus(human)).human.text(0) == expected


def test_masks_stay_and_replace_nothing(vectors, tmp_path):
    Path(vectors).write_text(VECTORS + "<gender> 1 0.1 0\n")
    masked = MaskWords(["man"], "<gender>")(corpus("a puppy man", model="a man on a cloud"))
    assert ContextualAlignment(vectors)(masked).human.text(0) == "a <unk> <gender>"


def test_the_model_side_is_left_alone(vectors):
    raw = corpus("a puppy")
    assert ContextualAlignment(vectors)(raw).model.digest == raw.model.digest


def test_what_was_replaced_is_told(vectors):
    table = ContextualAlignment(vectors)(corpus("a puppy puppy xyzzy")).tables["substitutions"]
    lines = [(one["word"], one["replacement"], one["count"], one["near"]) for one in table]
    assert lines == [("puppy", "dog", 2, True), ("xyzzy", "<unk>", 1, False)]
    assert math.isnan(float(str(table[1]["distance"])))


def test_words_that_stand_in_masked_phrases_alone_are_not_replaced(vectors):
    masked = MaskWords(["hot dog"], "<food>")(corpus("a hot dog puppy"))
    table = ContextualAlignment(vectors)(masked).tables["substitutions"]
    assert [one["word"] for one in table] == ["puppy"]


def test_vectors_that_know_few_words_are_told(vectors):
    aligned = ContextualAlignment(vectors)(corpus("un chien puppy"))
    assert "67% of the 3 words to be replaced have no vector" in aligned.notes[-1]


@pytest.mark.parametrize(
    ("delta", "human", "model", "message"),
    [
        (0.4, "a puppy", "un chien surfe", "none of its 3 words has a vector"),
        ("auto", "a puppy xyzzy xyzzy", "a dog", r"needs .* 60% of the 3 words.*alignment\.delta"),
    ],
)
def test_vectors_of_too_few_words_are_refused(delta, human, model, message, vectors):
    with pytest.raises(DataError, match=message):
        ContextualAlignment(vectors, delta)(corpus(human, model=model))


def test_a_captioner_without_a_word_left_is_refused(vectors):
    masked = Captions.from_texts(["<gender>"])
    with pytest.raises(DataError, match="its captions contain no word once masked"):
        ContextualAlignment(vectors)(corpus("a puppy").rewrite({"model": masked}))


@pytest.mark.parametrize("delta", [0, -0.1, 2.1, math.nan])
def test_delta_is_a_cosine_distance(delta):
    with pytest.raises(UsageError, match="must be auto or above 0 and at most 2"):
        ContextualAlignment(delta=delta)


# Cosine distances to "dog", the captioner's one word with a vector: puppy .1, cat .4, far 1.
GRADED = "dog 1 0\npuppy 0.9 0.435889894354\ncat 0.6 0.8\nfar 0 1\n"


@pytest.mark.parametrize(
    ("human", "aligned"),
    [
        ("puppy puppy puppy cat far", "dog dog dog <unk> <unk>"),  # 3 of 5 at .1
        ("puppy puppy cat far far", "dog dog dog <unk> <unk>"),  # 2 of 5 at .1, 3 at .4
        ("puppy cat far far far", "dog dog dog dog dog"),  # 2 of 5 at .4, all at 1
        ("puppy puppy puppy cat far . . .", "dog dog dog <unk> <unk> <unk> <unk> <unk>"),
    ],
)
def test_auto_is_the_smallest_delta_of_sixty_per_cent(vectors, human, aligned):
    Path(vectors).write_text(GRADED)
    align = ContextualAlignment(vectors, "auto")
    assert align(corpus(human, model="dog")).human.text(0) == aligned


def test_auto_notes_its_delta(vectors):
    Path(vectors).write_text(GRADED)
    align = ContextualAlignment(vectors, "auto")
    notes = align(corpus("puppy puppy cat far far", model="dog")).notes
    assert notes == ("alignment: delta=auto is a distance of 0.400",)


def test_auto_with_nothing_to_replace_changes_nothing(vectors):
    raw = corpus("a dog")
    assert ContextualAlignment(vectors, "auto")(raw).human.digest == raw.human.digest


def test_the_cache_changes_nothing(vectors, tmp_path):
    align = ContextualAlignment(vectors, cache=str(tmp_path / "cache"))
    raw = corpus("a puppy on a xyzzy wave")
    assert align(raw).human.digest == align(raw).human.digest


def test_the_cache_is_by_content(vectors, tmp_path):
    align = ContextualAlignment(vectors, cache=str(tmp_path / "cache"))
    before = align(corpus("a puppy")).human.text(0)
    Path(vectors).write_text(VECTORS.replace("puppy 1 0.1 0", "puppy 0.1 1 0.01"))
    assert (before, align(corpus("a puppy")).human.text(0)) == ("a dog", "a surfboard")


def test_nearest_words_are_those_of_brute_force():
    numbers = np.random.default_rng(5).normal(size=(88, 6))
    units = numbers / np.linalg.norm(numbers, axis=1, keepdims=True)
    requested, known = units[:57], units[57:]
    rows, distances = nearest_directions(requested, known, at_once=10)
    for word, row, distance in zip(requested, rows, distances, strict=True):
        by_hand = [1 - sum(a * b for a, b in zip(word, other, strict=True)) for other in known]
        assert (int(np.argmin(by_hand)), min(by_hand)) == (row, pytest.approx(distance))


def identity(raw: Corpus, source: str) -> str:
    return compose.cell(["alignment=contextual", f"alignment.vectors={source}"]).run_id(raw)


def test_moved_vectors_are_the_same_run_and_changed_ones_another(vectors, tmp_path):
    raw, before = corpus("a puppy"), identity(corpus("a puppy"), vectors)
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    (moved / "tiny.txt").write_text(VECTORS)
    assert identity(raw, str(moved / "tiny.txt")) == before
    Path(vectors).write_text(VECTORS + "cow 1 1 1\n")
    assert identity(raw, vectors) != before


def test_several_vectors_are_alternatives(vectors):
    alternatives = ContextualAlignment([vectors, "other.vec.gz"]).alternatives
    sources = {name: alternative.vectors for name, alternative in alternatives.items()}
    assert sources == {"tiny": vectors, "other": "other.vec.gz"}


def test_captions_have_one_form_with_each_of_several_vectors(vectors):
    align = ContextualAlignment([vectors, "glove"])
    with pytest.raises(UsageError, match="only scores are averaged over several sets"):
        align(corpus("a puppy"))


@pytest.mark.parametrize("vectors", [[], ["glove", "glove"]])
def test_vectors_are_named_once(vectors):
    with pytest.raises(UsageError, match="name one or more, each once"):
        ContextualAlignment(vectors)
