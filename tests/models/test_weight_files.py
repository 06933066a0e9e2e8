"""Files of weights with objects beside them: read without running code, or refused."""

import os
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf

from bias_pipeline.errors import DataError
from bias_pipeline.models.weight_files import read_numbers
from tests.corpora import REPOSITORY

PACKAGE = REPOSITORY / "bias_pipeline"

SETTINGS = OmegaConf.create(
    {"exp": {"name": "x", "n": 3, "on": True}, "list": [1e-4, None], "ref": "${exp.name}"}
)
BESIDE = {
    "a number of numpy": np.float64(1.5),
    "numbers of numpy": {"BLEU": [np.float32(0.1), np.int64(3)], "sure": np.bool_(True)},
    "settings": SETTINGS,
    "part of settings": SETTINGS.list,
    "a dictionary with a default": defaultdict(dict, {"a": {"b": 1}}),
    "types": [dict, str],
}


def save_file(path: Path, beside: Any, zipped: bool = True) -> Path:
    content = {"beside": beside, "state_dict": {"a": torch.arange(3.0)}}
    torch.save(content, path, _use_new_zipfile_serialization=zipped)
    return path


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("beside", BESIDE.values(), ids=list(BESIDE))
def test_numbers_beside_harmless_objects_are_read(tmp_path, beside, zipped):
    numbers = read_numbers(save_file(tmp_path / "a.pth", beside, zipped))
    assert numbers["state_dict"]["a"].tolist() == [0, 1, 2]


def test_names_of_numpy_before_its_second_major_are_read(tmp_path):
    path = save_file(tmp_path / "a.pth", np.float64(1.5), zipped=False)
    path.write_bytes(path.read_bytes().replace(b"numpy._core.", b"numpy.core."))
    assert b"numpy.core.multiarray\nscalar" in path.read_bytes()
    assert read_numbers(path)["state_dict"]["a"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("beside", [SETTINGS, np.float64(1.5)], ids=["settings", "a number"])
def test_no_object_of_such_a_class_is_made(tmp_path, beside):
    result = read_numbers(save_file(tmp_path / "a.pth", beside))["beside"]
    assert not isinstance(result, type(beside))
    assert vars(result) == {}


class Calls:
    """Pickled as a call."""

    def __init__(self, function: Any, *arguments: object) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize(
    "call",
    [
        Calls(os.mkdir, "made"),
        Calls(eval, "open('made', 'w')"),
        Calls(getattr, SETTINGS, "exp"),
        Calls(np.fromfile, "a.pth"),
        Calls(__import__, "antigravity"),
    ],
    ids=["os", "eval", "getattr", "numpy", "import"],
)
def test_other_calls_are_refused(tmp_path, monkeypatch, call, zipped):
    monkeypatch.chdir(tmp_path)
    path = save_file(tmp_path / "a.pth", [SETTINGS, call], zipped)
    with pytest.raises(DataError, match="reading it could run code"):
        read_numbers(path)
    assert [item.name for item in tmp_path.iterdir()] == ["a.pth"]


@pytest.mark.parametrize(
    ("last", "damaged"),
    [(b"a/data.pkl", b"\xff/data.pkl"), (b"PK\x01\x02\0\0\0", b"PK\x01\x02\0\0\xff")],
    ids=["a name that is not UTF-8", "a version that nobody reads"],
)
def test_a_damaged_directory_of_an_archive_is_refused(tmp_path, last, damaged):
    path = save_file(tmp_path / "a.pth", {})
    before, _, after = path.read_bytes().rpartition(last)
    path.write_bytes(before + damaged + after)
    with pytest.raises(DataError, match=r"cut short|could run code"):
        read_numbers(path)


def archive(path: Path) -> Path:
    """As OpenAI's files of CLIP are: a program with its numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is deprecated
        torch.jit.trace(torch.nn.Linear(3, 2), torch.zeros(1, 3)).save(str(path))
    return path


def test_a_torchscript_archive_is_refused_with_what_makes_it_readable(tmp_path):
    with pytest.raises(DataError, match=r"a TorchScript archive, .*torch\.jit\.load\(FILE\)"):
        read_numbers(archive(tmp_path / "ViT-B-32.pt"))
    path, new = archive(tmp_path / "ViT-B-32.pt"), tmp_path / "new.pt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.save(torch.jit.load(path).state_dict(), new)
    assert read_numbers(new)["weight"].shape == (2, 3)


def test_what_users_allow_to_be_read_stays_as_it_was(tmp_path):
    """The list of such classes is one for the whole process."""
    before = torch.serialization.get_safe_globals()
    read_numbers(save_file(tmp_path / "a.pth", SETTINGS))
    assert Counter(map(id, torch.serialization.get_safe_globals())) == Counter(map(id, before))


def test_weights_are_unpickled_in_two_modules_alone():
    """So what is refused here is refused in every file of weights; checkpoints are our own."""
    sources = {path for path in PACKAGE.rglob("*.py") if "torch.load(" in path.read_text("utf-8")}
    assert {path.name for path in sources} == {"weight_files.py", "checkpoints.py"}
