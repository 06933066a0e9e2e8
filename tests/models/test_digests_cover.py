"""Whatever a loader opens in a model's folder is part of the model's identity.

The kernel tells of every opening (inotify), also of those by libraries written in Rust, which
Python's audit hooks do not see.
"""

import ctypes
import json
import os
import shutil
import struct
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.io.machine import ADAPTERS
from bias_pipeline.language import likelihoods
from bias_pipeline.language.likelihoods import Likelihoods
from bias_pipeline.language.vectors import digests, word_vectors
from bias_pipeline.models import detection, picture_text, pretrained, recognition, sentences
from bias_pipeline.models.generation import KINDS as CAPTIONERS
from bias_pipeline.models.generation import Captioner
from bias_pipeline.models.picture_text import PictureText
from bias_pipeline.models.pretrained import Pretrained, find_pretrained
from bias_pipeline.models.sampling import Decoding
from bias_pipeline.models.sentences import Sentences, pooling_of
from bias_pipeline.models.timm_networks import find_timm
from bias_pipeline.pictures.captioners.fitted import KINDS as FITTED
from bias_pipeline.pictures.captioners.fitted import FittedCaptioner
from bias_pipeline.retrieval.dual_encoders import KINDS as DUAL
from bias_pipeline.retrieval.dual_encoders import towers_of
from bias_pipeline.retrieval.fiber.folder import find_fiber
from bias_pipeline.retrieval.open_clip_folder import find_open_clip
from tests import tiny_chat_models, tiny_detectors, tiny_models, tiny_picture_text
from tests.fiber_files import write_fiber
from tests.open_clip_files import write_of_words, write_open_clip
from tests.pictures.captioners import test_fitted

CPU = torch.device("cpu")
_OPENED, _OF_FOLDER = 0x20, 0x40000000
_HEAD = struct.Struct("iIII")


@contextmanager
def openings(folder: Path) -> Iterator[set[str]]:
    """The names, from the folder on, of all files in it that are opened meanwhile."""
    libc = ctypes.CDLL(None, use_errno=True)
    handle = libc.inotify_init1(os.O_NONBLOCK)
    inside = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    places = {libc.inotify_add_watch(handle, os.fsencode(path), _OPENED): path for path in inside}
    assert handle >= 0
    assert min(places) >= 0
    opened: set[str] = set()
    try:
        yield opened
        for place, name in _events(handle):
            opened.add((places[place] / name).relative_to(folder).as_posix())
    finally:
        os.close(handle)


def _events(handle: int) -> Iterator[tuple[int, str]]:
    while True:
        try:
            read = os.read(handle, 1 << 20)
        except BlockingIOError:
            return
        place = 0
        while place < len(read):
            watch, mask, _, size = _HEAD.unpack_from(read, place)
            name = read[place + _HEAD.size :][:size].rstrip(b"\0")
            place += _HEAD.size + size
            if not mask & _OF_FOLDER and name:
                yield watch, os.fsdecode(name)


def load_halves(model: Pretrained) -> None:
    towers = towers_of(str(model.folder), "", "cpu")
    towers.photos(normalize=True)
    towers.texts()


def load_sentences(model: Pretrained) -> None:
    Sentences(model, CPU, pooling_of(model, None, None))


def load_likelihoods(model: Pretrained) -> None:
    Likelihoods(model, "causal" if model.kind == "gpt2" else "masked", False, CPU)


Load = Callable[[Pretrained], Any]
LOADERS: dict[str, tuple[Callable[[Path], Any], Sequence[str], Load]] = {
    "clip": (tiny_models.write_clip, DUAL, load_halves),
    "siglip": (tiny_models.write_siglip, DUAL, load_halves),
    "matching blip": (tiny_models.write_matching_blip, DUAL, load_halves),
    "bert": (tiny_models.write_bert, sentences.KINDS, load_sentences),
    "gpt2": (tiny_models.write_gpt2, sentences.KINDS, load_sentences),
    "causal": (tiny_models.write_causal, likelihoods.CAUSAL, load_likelihoods),
    "masked": (tiny_models.write_masked, likelihoods.MASKED, load_likelihoods),
}
RECOGNIZERS = {
    "resnet": tiny_models.write_resnet,
    "clip that recognises": tiny_models.write_clip,
}
for name, write in RECOGNIZERS.items():
    LOADERS[name] = write, recognition.KINDS, lambda m: recognition.recognizer(m, ["a dog"], CPU)
for kind in tiny_detectors.KINDS:
    write = partial(tiny_detectors.write_detector, kind=kind)
    LOADERS[kind] = write, detection.KINDS, lambda model: detection.detector(model, 0.1, CPU)
for kind, write in tiny_picture_text.WRITERS.items():
    LOADERS[kind] = write, picture_text.KINDS, lambda model: PictureText(model, CPU, 48)
DECODING = Decoding("a dog", max_new_tokens=3)
for kind, write in tiny_chat_models.WRITERS.items():
    LOADERS[f"captioner {kind}"] = write, CAPTIONERS, lambda m: Captioner(m, CPU, DECODING)


def add_neighbours(folder: Path) -> None:
    """What published models have beside their weights, whether or not it is used."""
    beside = {
        "generation_config.json": json.dumps({"max_new_tokens": 7}),
        "chat_template.jinja": "{{ messages }}",
        "README.md": "a card",
        "custom_generate/generate.py": "raise SystemExit",
        "notes.yaml": "a: 1",
    }
    for name, content in beside.items():
        (folder / name).parent.mkdir(exist_ok=True)
        if not (folder / name).exists():
            (folder / name).write_text(content)


def add_adapter(folder: Path, seed: int = 0) -> None:
    """A LoRA of a language model beside its weights, which changes what it computes."""
    import peft
    from transformers import AutoModel

    torch.manual_seed(seed)
    (folder / "adapter_config.json").unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as draft, warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # between peft and transformers
        tuned = peft.get_peft_model(
            AutoModel.from_pretrained(folder),
            peft.LoraConfig(r=2, target_modules=["query"], init_lora_weights=False),
        )
        tuned.save_pretrained(draft)
        for name in ("adapter_config.json", "adapter_model.safetensors"):
            shutil.copy(Path(draft, name), folder / name)


def files_left_out(model: Pretrained, load: Load) -> set[str]:
    """The files that are opened and are no part of a model's identity."""
    with openings(model.folder) as opened:
        load(model)
    assert {name for name in opened if name.endswith((".safetensors", ".bin"))}, opened
    return opened - set(model.files)


# Of PaliGemma's processor, with NumPy 2.
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("kind", LOADERS)
def test_all_that_a_loader_of_transformers_opens_is_in_the_digest(tmp_path, kind):
    write, kinds, load = LOADERS[kind]
    write(tmp_path)
    add_neighbours(tmp_path)
    assert files_left_out(find_pretrained(str(tmp_path), kinds), load) == set()


def test_an_adapter_that_is_opened_is_in_the_digest(tmp_path):
    pytest.importorskip("peft")
    add_adapter(tiny_models.write_bert(tmp_path))
    model = find_pretrained(str(tmp_path), sentences.KINDS)
    with openings(tmp_path) as opened:
        load_sentences(model)
    assert "adapter_model.safetensors" in opened
    assert opened - set(model.files) == set()


def test_another_adapter_is_another_model(tmp_path):
    pytest.importorskip("peft")
    add_adapter(tiny_models.write_bert(tmp_path))
    first = find_pretrained(str(tmp_path), sentences.KINDS)
    add_adapter(tmp_path, seed=1)
    assert find_pretrained(str(tmp_path), sentences.KINDS).files != first.files


def test_an_adapter_that_cannot_be_applied_is_refused(tmp_path, monkeypatch):
    """Without peft, transformers passes over it and computes what the weights alone give."""
    tiny_models.write_bert(tmp_path)
    (tmp_path / "adapter_config.json").write_text("{}")
    (tmp_path / "adapter_model.safetensors").touch()
    absent = replace(ADAPTERS, modules=("no_such_module",))
    monkeypatch.setattr(pretrained, "ADAPTERS", absent)
    with pytest.raises(ResourceError, match="beside its weights needs the package no-such"):
        find_pretrained(str(tmp_path), sentences.KINDS)


def test_an_adapter_in_another_format_is_refused(tmp_path):
    tiny_models.write_bert(tmp_path)
    (tmp_path / "adapter_config.json").write_text("{}")
    (tmp_path / "adapter_model.bin").touch()
    with pytest.raises(DataError, match=r"adapter_model\.safetensors is absent"):
        find_pretrained(str(tmp_path), sentences.KINDS)


@pytest.mark.parametrize("write", [write_open_clip, write_of_words])
def test_all_that_open_clip_opens_is_in_the_digest(tmp_path, write):
    write(tmp_path)
    add_neighbours(tmp_path)
    model = find_open_clip(str(tmp_path))
    assert files_left_out(model, load_halves) == set()


def test_all_that_fiber_opens_is_in_the_digest(tmp_path):
    write_fiber(tmp_path)
    add_neighbours(tmp_path)
    model = find_fiber(str(tmp_path))
    with openings(tmp_path) as opened:
        load_halves(model)
    assert {next(iter(model.files))} <= opened <= set(model.files)


@pytest.mark.parametrize("kind", FITTED)
def test_all_that_a_fitted_captioner_opens_is_in_the_digest(tmp_path, kind):
    folder = test_fitted.write(tmp_path / "mine", kind)
    add_neighbours(folder)
    model = find_pretrained(str(folder), FITTED)
    assert files_left_out(model, lambda model: FittedCaptioner(model, CPU, Decoding())) == set()


def test_all_that_static_vectors_are_read_from_is_in_the_digest(tmp_path):
    model2vec = pytest.importorskip("model2vec")
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "[PAD]": 1, "dog": 2}, "[UNK]"))
    numbers = np.array([[0, 0], [0, 0], [3, 0]], np.float32)
    model2vec.StaticModel(numbers, tokenizer).save_pretrained(tmp_path)
    add_neighbours(tmp_path)
    with openings(tmp_path) as opened:
        word_vectors(str(tmp_path), {"dog"})
    opened -= {"README.md"}  # the card, of which it takes the language
    assert {"model.safetensors"} <= opened <= set(digests(str(tmp_path)))


def test_all_that_a_network_of_timm_opens_is_in_the_digest(tmp_path):
    from tests.pictures.captioners.test_timm_backbone import network

    model = find_timm(network(tmp_path, "resnet10t", 64))
    add_neighbours(model.folder)
    with openings(model.folder) as opened:
        model.build()
    assert {"model.safetensors"} <= opened <= set(model.files)
