"""What a corpus knows of its pictures."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.corpus.pictures import Pictures
from tests.corpora import make_corpus


def write_pictures(folder: Path, **contents: str) -> list[Path]:
    paths = [folder / f"{name}.jpg" for name in contents]
    for path, content in zip(paths, contents.values(), strict=True):
        path.write_text(content)
    return paths


def corpus(*files: Path | None) -> Corpus:
    return make_corpus([Record(str(n), "a dog", image=path) for n, path in enumerate(files)])


def test_a_record_has_its_picture(tmp_path):
    one, two = write_pictures(tmp_path, one="1", two="2")
    assert [record.image for record in corpus(one, two)] == [one, two]
    assert corpus(None, None).pictures is None


def test_a_corpus_is_another_without_its_picture_with_another_one_and_where_it_is_gone(tmp_path):
    (path,) = write_pictures(tmp_path, one="1")
    digests = [corpus(None).digest, corpus(path).digest]
    path.write_text("2")
    os.utime(path, ns=(0, 0))
    digests.append(corpus(path).digest)
    path.unlink()
    digests.append(corpus(path).digest)
    assert len(set(digests)) == 4


def test_where_pictures_lie_does_not_matter(tmp_path):
    folders = [tmp_path / name for name in ("here", "there")]
    for folder in folders:
        folder.mkdir()
    one, two = (write_pictures(folder, one="1")[0] for folder in folders)
    assert corpus(one).digest == corpus(two).digest


def test_equal_files_are_copies(tmp_path):
    files = write_pictures(tmp_path, one="same", two="else", three="same")
    assert [rows.tolist() for rows in Pictures((*files, None)).copies()] == [[0, 2]]


def test_pictures_follow_their_images(tmp_path):
    pictures = Pictures(tuple(write_pictures(tmp_path, one="1", two="2")))
    taken = pictures.take(np.array([1]))
    assert taken.contents == (pictures.contents[1],)


def test_pictures_are_read_only_where_something_asks(tmp_path):
    changed = replace(corpus(*write_pictures(tmp_path, one="1")), notes=("x",))
    assert changed.pictures is not None
    assert "contents" not in vars(changed.pictures)
