"""Reads word vectors from the installed GloVe, text files, FastText or static models.

Files of vectors are large and a corpus has few words, so readers load only the needed words. A
vector of zeros has no direction and counts as absent.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import Float64Array
from bias_pipeline.errors import DataError, ResourceError, UsageError, inflect
from bias_pipeline.io.digests import digest_of
from bias_pipeline.io.machine import FASTTEXT, GLOVE, STATIC, package_folder

GLOVE_NAME = "glove"
_TEXT = ("txt", "vec")  # endings
WIDEST = 10_000  # numbers of a vector
_LONGEST_LINE = 1 << 20
_FASTTEXT_MAGIC = (793712314).to_bytes(4, "little")


@dataclass(frozen=True, eq=False)
class WordVectors:
    """The directions of V words.

    Example:
        >>> table = {"cat": np.array([0.0, 2.0]), "dog": np.array([3.0, 0.0])}
        >>> vectors = WordVectors.from_table(table)
        >>> vectors.words, vectors.units.tolist()
        (('cat', 'dog'), [[0.0, 1.0], [1.0, 0.0]])
    """

    words: tuple[str, ...]  # the words, in alphabetical order
    units: Float64Array  # (V, D) float64 vectors of length 1

    @classmethod
    def from_table(cls, table: Mapping[str, npt.NDArray[np.floating]]) -> WordVectors:
        """Vectors by word, scaled to length 1; zero vectors are left out."""
        if not table:
            return cls((), np.zeros((0, 0)))
        words = sorted(table)
        matrix = np.array([table[word] for word in words], np.float64).reshape(len(words), -1)
        broken = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
        if len(broken):
            raise ValueError(
                f"the vector of {words[broken[0]]!r} contains a number that is not finite"
            )
        lengths = np.linalg.norm(matrix, axis=1)
        nonzero = np.flatnonzero(lengths > 0)
        return cls(tuple(words[i] for i in nonzero), matrix[nonzero] / lengths[nonzero, None])

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Map each word to its row."""
        return {word: i for i, word in enumerate(self.words)}

    def rows(self, words: Sequence[str]) -> Float64Array:
        """(len(words), D) the directions of the words that have a direction."""
        return self.units[[self.places[word] for word in words]]


def word_vectors(source: str, words: Collection[str]) -> WordVectors:
    r"""The vectors of some words.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "tiny.txt")
        ...     _ = path.write_text("dog 3 0\ncat 0 2\n")
        ...     word_vectors(str(path), {"cat", "cow"}).words
        ('cat',)
    """
    try:
        return WordVectors.from_table(_read(source, frozenset(words)))
    except (ValueError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{source}: {error}") from error
    except OSError as error:
        raise ResourceError(f"{source}: cannot be read ({error.strerror or error})") from error


def files_of(source: str) -> list[Path]:
    """The files on which the vectors of a source depend."""
    if source == GLOVE_NAME:
        return [*_glove_files()]
    path = Path(source).expanduser()
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.suffix in (".json", ".safetensors"))
    if not path.is_file():
        raise ResourceError(
            f"vectors={source}: no such file or folder (relative paths start at "
            f"{Path.cwd()}); {GLOVE_NAME} is the installed package"
        )
    if path.suffix != ".bin" and path.name.removesuffix(".gz").rpartition(".")[2] not in _TEXT:
        raise UsageError(
            f"vectors={source}: a file of vectors ends in .txt, .vec, .txt.gz, .vec.gz or .bin"
        )
    return [path]


def digests(source: str) -> dict[str, str]:
    """The SHA-256 (hex) of each file on which the vectors of a source depend, by file name."""
    return {path.name: digest_of(path) for path in files_of(source)}


def _read(source: str, words: frozenset[str]) -> Mapping[str, npt.NDArray[np.floating]]:
    files = files_of(source)
    if source == GLOVE_NAME:
        import pyarrow.parquet as pq

        known = pq.read_table(files[0], columns=["index"])["index"].to_pylist()
        numbers = np.load(files[1], mmap_mode="r", allow_pickle=False)
        return {word: numbers[i] for i, word in enumerate(known) if word in words}
    path = Path(source).expanduser()
    if path.is_dir():
        STATIC.require()
        from model2vec import StaticModel

        ordered = sorted(words)
        try:
            vectors = StaticModel.from_pretrained(path).encode(ordered, show_progress_bar=False)
        except Exception as error:  # whatever the library raises on a broken folder
            raise ValueError(f"cannot be read as a static model ({error})") from error
        return dict(zip(ordered, vectors, strict=True))
    return _read_binary(path, words) if path.suffix == ".bin" else _read_text(path, words)


def _glove_files() -> tuple[Path, Path]:
    GLOVE.require()
    package = package_folder(GLOVE.modules[0])
    assert package is not None
    folder = package / "data"
    return folder / "glove_6B_index.parquet", folder / "glove_6B_50d_emb.npy"


def _read_text(path: Path, words: frozenset[str]) -> Mapping[str, npt.NDArray[np.floating]]:
    """The vectors of a text file with a word in each line; the first line of a word counts."""
    wanted = {word.encode("utf-8", "surrogatepass"): word for word in words}
    vectors: dict[str, npt.NDArray[np.floating]] = {}
    with closing(gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")) as file:
        width = 0
        for number, line in enumerate(_lines(file), start=1):
            head, _, rest = line.partition(b" ")
            if number == 1 and head.isdigit() and rest.isdigit():  # counts of words and numbers
                continue
            width = width or _width(rest)
            word = wanted.get(head)
            if word is not None and word not in vectors:
                vectors.update(_vector(word, rest, width, number))
    if not width:
        raise ValueError("no vectors; a line is a word and its numbers, with blanks between them")
    return vectors


def _lines(file: IO[bytes] | gzip.GzipFile) -> Iterator[bytes]:
    while line := file.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE:
            raise ValueError(f"a line of {_LONGEST_LINE:,} bytes or more is no vector")
        if stripped := line.rstrip():
            yield stripped


def _width(rest: bytes) -> int:
    width = len(rest.split())
    if not 1 <= width <= WIDEST:
        raise ValueError(f"its first vector has {width} numbers; it must have 1 to {WIDEST:,}")
    return width


def _vector(
    word: str, rest: bytes, width: int, line: int
) -> Mapping[str, npt.NDArray[np.floating]]:
    """The vector of a word; empty if the line has a longer word that begins with this word."""
    fields = rest.split()
    if len(fields) > width and not _is_number(fields[0]):
        return {}
    if len(fields) != width:
        raise ValueError(
            f"line {line}: {word!r} has {inflect(len(fields), 'numbers')} where others have {width}"
        )
    try:
        return {word: np.array(fields, np.float64)}
    except ValueError:
        raise ValueError(f"line {line}: the vector of {word!r} is not made of numbers") from None


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _read_binary(path: Path, words: frozenset[str]) -> Mapping[str, npt.NDArray[np.floating]]:
    """Vectors of a binary file; FastText also builds vectors of unknown words from their parts."""
    FASTTEXT.require()
    from gensim.models import KeyedVectors
    from gensim.models.fasttext import load_facebook_vectors

    with path.open("rb") as file:
        fasttext = file.read(4) == _FASTTEXT_MAGIC
    try:
        read = (
            load_facebook_vectors(str(path))
            if fasttext
            else KeyedVectors.load_word2vec_format(str(path), binary=True)
        )
    except Exception as error:  # whatever the library raises on a broken file
        raise ValueError(f"cannot be read as FastText or word2vec ({error})") from error
    known = words if fasttext else [word for word in words if word in read.key_to_index]
    return {word: read[word] for word in known}
