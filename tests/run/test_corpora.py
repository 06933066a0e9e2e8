"""A process reads a corpus once, and its helpers take it over."""

from pathlib import Path

import pytest

from bias_pipeline.run import corpora
from bias_pipeline.run.compose import Cell, cell

TABLE = "image_id,caption,gender\n1,a man sits,male\n2,a woman sits,female\n"


@pytest.fixture
def mine(tmp_path: Path) -> Cell:
    """A cell of a table of one's own."""
    file = tmp_path / "mine.csv"
    file.write_text(TABLE)
    corpora._corpora.clear()
    words = ["dataset=coco", f"captioner={file}", f"dataset.attributes={file}"]
    return cell([*words, "metric=gender_error"])


def test_a_corpus_is_read_once(mine):
    assert mine.corpus() is mine.corpus()


def test_a_corpus_is_read_anew_once_a_file_changed(mine, tmp_path):
    before = mine.corpus().digest
    (tmp_path / "mine.csv").write_text(TABLE.replace("a man sits", "a man runs"))
    assert mine.corpus().digest != before


def test_a_helper_takes_over_what_was_read(mine, monkeypatch):
    read = mine.corpus()
    content = corpora.pickled_corpora()
    corpora._corpora.clear()
    corpora.take_over(content)
    monkeypatch.setattr("bias_pipeline.run.compose.read_corpus", lambda _: pytest.fail("is read"))
    taken = mine.corpus()
    assert taken.digest == read.digest
    assert [*taken] == [*read]


def test_a_helper_reads_what_cannot_be_handed_over(mine, monkeypatch):
    corpus = mine.corpus()
    corpus.__dict__["local"] = lambda: None
    assert corpora.pickled_corpora() == b""
    corpora.take_over(b"")
    assert mine.corpus() is corpus


def test_a_relative_path_is_read_from_where_one_is(tmp_path, monkeypatch):
    corpora._corpora.clear()
    digests = set()
    for name in ("man", "woman"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "mine.csv").write_text(TABLE.replace("a man", f"a {name}"))
        monkeypatch.chdir(folder)
        words = ["dataset=coco", "captioner=mine.csv", "dataset.attributes=mine.csv"]
        digests.add(cell([*words, "metric=gender_error"]).corpus().digest)
    assert len(digests) == 2
