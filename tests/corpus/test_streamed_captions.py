"""Captions whose words are in a file are those in memory, read a block of images at a time."""

import pickle

import numpy as np
import pytest

from bias_pipeline.corpus import streamed_captions
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.streamed_captions import CaptionsWriter
from bias_pipeline.text.caption_language import in_language
from bias_pipeline.text.scored_text import shared_opening

TEXTS = ["ein Mann auf einer Bank", "a man on a bench", "un homme sur un banc", "Hund", "a dog"] * 9


@pytest.fixture
def in_memory() -> Captions:
    return Captions.from_texts(TEXTS, np.arange(len(TEXTS)) // 2)


@pytest.fixture
def in_file(in_memory, monkeypatch) -> Captions:
    monkeypatch.setattr(streamed_captions, "_WORDS", 20)
    monkeypatch.setattr(streamed_captions, "_STEP", 4)
    writer = CaptionsWriter()
    for begin in range(0, len(TEXTS), 10):
        some = Captions.from_texts(
            TEXTS[begin : begin + 10], np.arange(10)[: len(TEXTS) - begin] // 2
        )
        writer.add(some, first=begin // 2)
    return writer.finish()


def test_blocks_have_whole_images_and_all_captions(in_memory, in_file):
    blocks = [*in_file.blocks()]
    images = [set(block.image_rows.tolist()) for block in blocks]
    assert len(blocks) > 5
    assert sum(map(len, images)) == len(set.union(*images))
    assert sum(map(len, blocks)) == len(in_memory)


def test_words_and_digest_are_those_in_memory(in_memory, in_file):
    assert [in_file.text(row) for row in range(len(in_memory))] == TEXTS
    assert in_file.digest == in_memory.digest


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_language_is_decided_alike(language, in_memory, in_file):
    expected = in_language(in_memory, language)
    assert 0 < expected.sum() < len(expected)
    assert in_language(in_file, language).tolist() == expected.tolist()


def test_some_captions_are_taken_alike(in_memory, in_file):
    flags = np.arange(len(in_memory)) % 3 > 0
    assert in_file.take(flags).digest == in_memory.take(flags).digest


def test_the_captions_of_some_images_are_read_into_memory_alike(in_memory, in_file):
    place = np.where(np.arange(23) % 4, -1, np.arange(23) // 4)
    some = in_file.of_images_at(place)
    assert some.in_memory
    assert some.digest == in_memory.of_images_at(place).digest
    assert [some.text(row) for row in range(4)] == [TEXTS[row] for row in (0, 1, 8, 9)]


def test_other_texts_take_their_rows(in_memory, in_file):
    texts = {1: "a cat", 44: "a bus"}
    assert in_file.with_texts(texts).digest == in_memory.with_texts(texts).digest


def test_an_opening_that_only_one_block_has_is_not_shared(monkeypatch):
    monkeypatch.setattr(streamed_captions, "_WORDS", 100)
    texts = ["a nice view of a dog"] * 60 + [f"{n} cats sleep" for n in range(140)]
    writer = CaptionsWriter()
    writer.add(Captions.from_texts(texts))
    assert shared_opening(writer.finish()) == shared_opening(Captions.from_texts(texts)) == ("", 0)


def test_captions_are_all_alike_only_if_all_blocks_are(monkeypatch):
    monkeypatch.setattr(streamed_captions, "_WORDS", 10)
    alike = []
    for texts in (["a dog"] * 30, ["a dog"] * 29 + ["a cat"]):
        writer = CaptionsWriter()
        writer.add(Captions.from_texts(texts))
        alike.append(writer.finish().all_alike)
    assert alike == [True, False]


def test_a_caption_takes_eight_bytes_beside_its_words():
    writer = CaptionsWriter()
    writer.add(Captions.from_texts(TEXTS * 100))
    captions = writer.finish()
    arrays = [column for column in vars(captions).values() if isinstance(column, np.ndarray)]
    assert sum(column.nbytes for column in arrays) <= 8.2 * len(captions)


def test_another_process_reads_the_same_file(in_file):
    assert pickle.loads(pickle.dumps(in_file)).digest == in_file.digest


def test_the_file_goes_with_its_captions(in_file):
    writer = CaptionsWriter()
    writer.add(Captions.from_texts(TEXTS))
    captions = writer.finish()
    path = captions.file.path
    assert path.exists()
    del writer, captions
    assert not path.exists()
