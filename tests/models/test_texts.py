"""Every text is embedded once, whoever asks and however it ends."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from bias_pipeline.array_types import Float32Array
from bias_pipeline.models import text_vectors as module
from bias_pipeline.models.blocks import BlockStore
from bias_pipeline.models.text_vectors import Embedded, embed_missing, vectors_from

TEXTS = tuple(f"caption {number}" for number in range(40))


class Lengths:
    """A text's vector is its length and its first sign; remembers what it was asked."""

    def __init__(self) -> None:
        self.embedded: list[str] = []
        self.cut: frozenset[int] = frozenset()

    def embed(self, texts: Sequence[str]) -> Float32Array:
        self.embedded += texts
        self.cut = frozenset(place for place, text in enumerate(texts) if text.endswith("7"))
        return np.array([[len(text), ord(text[0])] for text in texts], np.float32)


@pytest.fixture
def model() -> Lengths:
    return Lengths()


@pytest.fixture
def store(tmp_path: Path) -> BlockStore:
    return BlockStore(tmp_path, {"files": {"a": "b"}}, "a model")


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", 8)


def fail_to_load() -> Lengths:
    raise AssertionError("the model was loaded")


def test_repeated_texts_are_embedded_once_and_come_back_in_the_order_of_the_texts(store, model):
    embed_missing([*TEXTS, *TEXTS], store, lambda: model)
    assert sorted(model.embedded) == sorted(TEXTS)
    np.testing.assert_array_equal(vectors_from(TEXTS, store), Lengths().embed(TEXTS))


def test_what_is_there_is_not_embedded_again(store, model):
    embed_missing(TEXTS[:25], store, lambda: model)
    took = embed_missing(TEXTS, store, lambda: model)
    assert (took.fresh, took.reused) == (15, 25)
    assert sorted(model.embedded) == sorted(TEXTS)


def test_where_nothing_is_missing_the_model_is_not_loaded(store, model):
    embed_missing(TEXTS, store, lambda: model)
    assert embed_missing(TEXTS[5:], store, fail_to_load) == Embedded(reused=35, cut=4)
    assert embed_missing([], store, fail_to_load) == Embedded()


def test_texts_that_were_cut_are_counted_every_time(store, model):
    took = [
        embed_missing(item, store, lambda: model).cut for item in (TEXTS[:20], TEXTS, TEXTS[:9])
    ]
    assert took == [2, 4, 1]


def test_a_killed_task_is_resumed(store, model):
    class Dying(Lengths):
        def embed(self, texts: Sequence[str]) -> Float32Array:
            if len(self.embedded) >= 16:
                raise KeyboardInterrupt
            return super().embed(texts)

    with pytest.raises(KeyboardInterrupt):
        embed_missing(TEXTS, store, Dying)
    took = embed_missing(TEXTS, store, lambda: model)
    assert (took.fresh, took.reused) == (24, 16)


def test_a_block_of_another_process_is_not_computed_again(store, model, monkeypatch):
    """Both saw the same texts missing; the other was quicker with all but the first block."""
    embed_missing(TEXTS, store, Lengths)
    monkeypatch.setattr(module, "known_names", lambda _: set())
    assert embed_missing(TEXTS, store, lambda: model).fresh == 0


def test_processes_begin_in_different_places(monkeypatch):
    firsts = set()
    for process in range(5):
        monkeypatch.setattr(module.os, "getpid", lambda item=process: item)
        firsts.add(module._blocks({text: text for text in TEXTS})[0][0])
    assert len(firsts) == 5


def test_a_damaged_block_is_embedded_again(store, model):
    embed_missing(TEXTS, store, Lengths)
    path = next(store.folder.glob("blocks/*/[!.]*"))
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    assert embed_missing(TEXTS, store, lambda: model).fresh == 8
    np.testing.assert_array_equal(vectors_from(TEXTS, store), Lengths().embed(TEXTS))


def test_another_model_keeps_its_own_with_its_settings_in_the_clear(store, model):
    embed_missing(TEXTS, store, Lengths)
    other = BlockStore(store.root, {"files": {"a": "c"}}, "another")
    assert embed_missing(TEXTS, other, lambda: model).fresh == len(TEXTS)
    assert '"another"' in (other.folder / "settings.json").read_text()


def test_vectors_that_are_not_there_are_an_error(store, model):
    embed_missing(TEXTS[:3], store, lambda: model)
    with pytest.raises(KeyError, match="lacks 1 of 2"):
        vectors_from([TEXTS[0], TEXTS[9]], store)
