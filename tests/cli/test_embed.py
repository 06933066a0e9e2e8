"""``embed``: vectors of photos and texts, and models that cannot be used.

What it shares with other commands of photos is in ``test_photo_commands.py``.
"""

import contextlib
import json
import os
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file, save_file

from bias_pipeline.attack.language_models import Frozen
from bias_pipeline.commands.main import main
from bias_pipeline.data.photos import UnreadableError, read_photo
from bias_pipeline.io import digests, kept_files
from bias_pipeline.models.clip import ClipPhotos
from bias_pipeline.models.merge_shards import MISSING, read_embeddings
from tests.photo_folder import BROKEN, break_some, write_equal_sizes, write_photos
from tests.tiny_models import write_bert, write_clip

N_PHOTOS = 90
OUT = ("--out", "out", "--threads", "1")  # more would wait for each other on a busy machine


@pytest.fixture(scope="module")
def photos(tmp_path_factory) -> Path:
    return write_photos(tmp_path_factory.mktemp("photos"), N_PHOTOS)


@pytest.fixture
def embed(ends, clip, photos) -> Callable[..., str]:
    """Embeds the photos into ``out``; returns what was printed."""

    def command(*words: str, folder: Path = photos, model: Path = clip, code: int = 0) -> str:
        return ends(code, "embed", str(folder), "--model", str(model), *OUT, *words)

    return command


@pytest.fixture
def gather(ok) -> Callable[..., tuple[list[str], Any]]:
    """Ids and vectors."""

    def command(*words: str) -> tuple[list[str], Any]:
        ok("embed", "--gather", "out", *words)
        return read_embeddings(Path("out", "embeddings.parquet"))

    return command


def blocks() -> dict[Path, int]:
    """Each finished block and when it was written."""
    return {path: path.stat().st_mtime_ns for path in Path("out").glob("*/blocks/*/[!.]*")}


@pytest.fixture(scope="module")
def vectors_of_one_task(clip, photos, tmp_path_factory) -> tuple[list[str], Any]:
    """What one task gives."""
    with contextlib.chdir(tmp_path_factory.mktemp("alone")):
        assert main(["embed", str(photos), "--model", str(clip), *OUT]) == 0
        assert main(["embed", "--gather", "out"]) == 0
        return read_embeddings(Path("out", "embeddings.parquet"))


def test_pytorchs_threads_sleep_while_photos_are_read(embed, monkeypatch):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    embed()
    assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"


def test_a_vector_is_what_transformers_computes(embed, gather, clip):
    """By its own code for photos, one by one."""
    import torch
    from transformers import CLIPImageProcessorPil, CLIPModel

    photo = Image.new("RGB", (50, 40), (200, 30, 90))
    Path("one").mkdir()
    photo.save("one/1.png")
    embed(folder=Path("one"))
    network = CLIPModel.from_pretrained(clip).eval()
    pixels = CLIPImageProcessorPil.from_pretrained(clip)(photo, return_tensors="pt")
    with torch.inference_mode():
        expected = network.get_image_features(**pixels).pooler_output[0]
    assert np.allclose(gather()[1][0], expected / expected.norm(), atol=1e-6)


def test_vectors_have_length_one_and_differ(vectors_of_one_task):
    assert vectors_of_one_task[0] == [str(number) for number in range(1, N_PHOTOS + 1)]
    assert vectors_of_one_task[1].dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors_of_one_task[1], axis=1), 1, atol=1e-6)
    assert len(np.unique(vectors_of_one_task[1].round(4), axis=0)) == N_PHOTOS


def test_vectors_may_stay_as_long_as_they_are(embed, gather, vectors_of_one_task):
    embed("--no-normalize")
    _, vectors = gather()
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    assert not np.allclose(lengths, 1, atol=0.01)
    assert np.allclose(vectors / lengths, vectors_of_one_task[1], atol=1e-6)


def test_tasks_of_an_array_share_the_work(embed, gather, vectors_of_one_task, monkeypatch):
    for key, value in {"MIN": "5", "MAX": "9", "STEP": "2", "COUNT": "3"}.items():
        monkeypatch.setenv(f"SLURM_ARRAY_TASK_{key}", value)
    for task in ("5", "7", "9"):
        monkeypatch.setenv("SLURM_ARRAY_TASK_ID", task)
        embed()
    assert gather()[0] == vectors_of_one_task[0]


# --- going on


def test_of_a_block_only_what_changed_is_computed_again(embed, gather, photos):
    folder = Path(shutil.copytree(photos, "some"))
    embed(folder=folder)
    shutil.copy(folder / "6.png", folder / "5.png")
    assert "1 image in " in embed(folder=folder)
    vectors = gather()[1]
    shutil.rmtree("out")
    embed(folder=folder)
    assert np.allclose(vectors, gather()[1], atol=1e-6)


def test_unchanged_photos_are_not_read_to_be_known(embed, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = write_equal_sizes(Path("two"))
    for path in folder.iterdir():
        os.utime(path, (1e9, 1e9))
    monkeypatch.setattr(kept_files, "TICK", -(10**18))  # as if they had lain there for long
    embed(folder=folder)
    monkeypatch.setattr(digests, "sha256_of", lambda path: pytest.fail(f"{path} is read"))
    assert "blocks existed already" in embed(folder=folder)


def test_a_second_run_does_not_even_load_the_model(embed, monkeypatch):
    embed()
    monkeypatch.delattr(ClipPhotos, "__init__")
    assert "blocks existed already" in embed()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 143), (signal.SIGINT, 130)]
)
def test_a_stopped_task_keeps_what_is_finished(
    number, code, embed, gather, vectors_of_one_task, monkeypatch
):
    describe, calls = ClipPhotos.describe, iter(range(1000))

    def stopped_at_the_third(self: ClipPhotos, batch: Any) -> Any:
        if next(calls) == 2:
            signal.raise_signal(number)
        return describe(self, batch)

    monkeypatch.setattr(ClipPhotos, "describe", stopped_at_the_third)
    # A test run in the background ignores these, and the command would go on doing so.
    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler),
        signal.SIGHUP: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    }
    try:
        embed("--batch", "20", code=code)
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
    before = blocks()
    assert before
    embed("--batch", "20")
    assert before.items() <= blocks().items()
    assert np.allclose(gather()[1], vectors_of_one_task[1], atol=1e-6)


# --- what cannot be read


def test_a_photo_that_a_disk_did_not_give_is_tried_again(
    embed, gather, vectors_of_one_task, monkeypatch
):
    def failing(path: Path) -> Any:
        if path.stem == "7":
            raise UnreadableError("stale file handle", lasting=False)
        return read_photo(path)

    with monkeypatch.context() as patched:
        patched.setattr("bias_pipeline.retrieval.dual_encoders.read_photo", failing)
        assert "7 (stale file handle)" in embed()
    embed()
    assert gather()[0] == vectors_of_one_task[0]


def test_the_missing_are_told_and_listed_with_their_reasons(embed, ends):
    break_some(write_photos(Path("broken"), 3))
    assert "901 (the file is empty)" in embed(folder=Path("broken"))
    ends(3, "embed", "--gather", "out")
    lines = Path("out", MISSING).read_text().splitlines()
    assert lines[:2] == ["image_id,reason", "901,the file is empty"]
    assert len(lines) == 1 + len(BROKEN)


def test_a_list_of_missing_images_holds_no_formula(embed, ends):
    folder = write_photos(Path("broken"), 3)
    (folder / "=cmd().jpg").write_bytes(b"")
    embed(folder=folder)
    ends(3, "embed", "--gather", "out")
    lines = Path("out", MISSING).read_text(encoding="utf-8").splitlines()
    assert lines[1:] == ["'=cmd(),the file is empty"]


def test_what_is_not_computed_yet_is_told_and_listed_until_it_is_there(embed, ends, gather):
    embed("--shard", "0/2")
    printed = ends(5, "embed", "--gather", "out")
    assert "not computed yet" in printed
    assert "Start the job again" in printed
    assert Path("out", MISSING).exists()
    embed("--shard", "1/2")
    gather()
    assert not Path("out", MISSING).exists()


# --- other models


def test_other_weights_are_never_mixed(embed, ends, tmp_path):
    other = write_clip(tmp_path / "other", seed=1)
    embed("--shard", "0/2")
    embed("--shard", "1/2", model=other)
    printed = ends(3, "embed", "--gather", "out")
    assert "2 runs that must not be mixed" in printed
    assert str(other) in printed


@pytest.fixture
def copy_of_model(clip, tmp_path) -> Path:
    """A copy of the model, to be changed."""
    return Path(shutil.copytree(clip, tmp_path / "copied"))


def test_the_same_weights_elsewhere_are_the_same(embed, gather, copy_of_model):
    embed("--shard", "0/2")
    embed("--shard", "1/2", model=copy_of_model)
    assert len(gather()[0]) == N_PHOTOS


def update(path: Path, **items: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | items))


@pytest.mark.parametrize("name", ["preprocessor_config.json", "config.json"])
def test_changed_preprocessing_is_another_run(name, embed, copy_of_model):
    update(copy_of_model / name, image_mean=[0.4, 0.4, 0.4])
    embed()
    embed(model=copy_of_model)
    assert len(list(Path("out").iterdir())) == 2


def without_a_weight(weights: dict[str, Any]) -> None:
    del weights["visual_projection.weight"]


def not_a_number(weights: dict[str, Any]) -> None:
    weights["visual_projection.weight"][:] = np.nan


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without_a_weight, "1 weight is missing, such as visual_projection.weight"),
        (not_a_number, "vectors that are not numbers"),
    ],
)
def test_weights_that_are_not_whole_are_told(embed, copy_of_model, change, message):
    weights = load_file(copy_of_model / "model.safetensors")
    change(weights)
    save_file(weights, copy_of_model / "model.safetensors", metadata={"format": "pt"})
    assert message in embed(model=copy_of_model, code=3)


ELSEWHERE = json.dumps({"weight_map": {"a": "../part.safetensors"}}).encode()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.safetensors", b"short", "cannot be loaded"),
        ("pytorch_model.bin", b"short", "other formats can run code"),
        ("model.safetensors.index.json", ELSEWHERE, "not safetensors in its folder"),
    ],
)
def test_files_of_weights_that_cannot_be_are_refused(embed, copy_of_model, name, content, message):
    (copy_of_model / "model.safetensors").unlink()
    (copy_of_model / name).write_bytes(content)
    assert message in embed(model=copy_of_model, code=3)


def test_a_name_on_the_hub_is_its_folder(ok, photos, clip, monkeypatch):
    requested: dict[str, Any] = {}

    def download(name: str, **options: Any) -> str:
        requested.update(options, name=name)
        return str(clip)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    ok("embed", str(photos), "--model", "some/clip", "--revision", "v2", *OUT)
    assert (requested["name"], requested["revision"]) == ("some/clip", "v2")
    assert requested["local_files_only"]  # no network is asked


# --- texts


def write_texts(*captions: str) -> None:
    rows = [{"image_id": k, "caption": text} for k, text in enumerate(captions)]
    Path("captions.json").write_text(json.dumps(rows))


@pytest.fixture
def texts(clip) -> tuple[str, ...]:
    return ("embed", "--texts", "captions.json", "--model", str(clip), *OUT)


def test_of_numbered_captions_the_first_is_embedded_and_told(ok, texts):
    rows = [
        {"image_id": 7, "caption": text, "sample": k, "decoding": "greedy"}
        for k, text in enumerate(("a dog", "a cat"))
    ]
    Path("captions.json").write_text(json.dumps(rows))
    assert "the first caption of each image is embedded, 1 other is not" in ok(*texts)


def test_texts_get_vectors_of_the_same_space(ok, gather, texts, clip):
    """What transformers computes for each alone, so padding plays no part."""
    import torch
    from transformers import CLIPModel, CLIPTokenizer

    captions = ("a dog", "the longest of the texts", "", "x" * 90)
    write_texts(*captions)
    ok(*texts)
    ids, vectors = gather()
    network, tokens = CLIPModel.from_pretrained(clip).eval(), CLIPTokenizer.from_pretrained(clip)
    for number, text in enumerate(captions):
        built_tokens = tokens(text, truncation=True, max_length=24, return_tensors="pt")
        with torch.inference_mode():
            expected = network.get_text_features(**built_tokens).pooler_output[0]
        row = vectors[ids.index(str(number))]
        assert np.allclose(row, expected / expected.norm(), atol=1e-5), text


def test_texts_get_vectors_of_a_language_model(ok, gather, tmp_path):
    """What attackers have of it, at length 1."""
    model, captions = write_bert(tmp_path / "bert"), {"1": "a dog", "2": "a man with a kite"}
    Path("own.json").write_text(json.dumps(captions))
    ok("embed", "--texts", "own.json", "--model", str(model), *OUT)
    wanted = Frozen(str(model), normalize=True, device="cpu").vectors(list(captions.values()))
    np.testing.assert_allclose(gather()[1], wanted, atol=1e-6)


def test_a_text_that_changed_is_embedded_again(ok, gather, texts):
    write_texts("a dog", "a cat")
    ok(*texts)
    before = gather()[1]
    write_texts("a dog", "a cow")
    ok(*texts)
    assert (gather()[1] == before).all(axis=1).tolist() == [True, False]


# --- words


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "name one source: FOLDER or --texts"),
        ("photos", "--model is missing"),
        ("photos --model m", "--out is missing"),
        ("photos --texts x.json --model m --out o", "name one source"),
        ("photos --gather out", "takes neither another source"),
        ("photos --model m --out o --to all.parquet", "--to belongs to --gather OUT"),
        ("photos --batch 0", "--batch"),
        ("photos --modle m", "unrecognized arguments: --modle"),
        ("--gather out --to x.json", "ending must be .parquet"),
    ],
)
def test_what_does_not_fit_together_is_refused(words, message, ends):
    assert message in ends(2, "embed", *words.split())


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("--device gpu", 2, "device 'gpu' is unknown"),
        ("--device cuda:99", 5, "device cuda:99"),
        ("--shard 2/2", 2, "expected K/N"),
    ],
)
def test_a_wrong_device_or_shard_is_told(words, code, message, embed):
    assert message in embed(*words.split(), code=code)


def test_a_full_disk_is_told(embed, monkeypatch):
    def fill_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("bias_pipeline.models.blocks.replace_file", fill_disk)
    assert "No space left on device" in embed(code=5)


def test_a_batch_too_large_for_the_device_is_told(embed, monkeypatch):
    import torch

    def too_large(*_: object) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(ClipPhotos, "describe", too_large)
    assert "use --batch 16" in embed(code=5)


def test_the_speed_is_told_and_no_bar_drawn(embed):
    lines = embed().splitlines()
    assert len(lines) == 3
    assert re.fullmatch(rf"{N_PHOTOS} images in [\d.]+ s: [\d.]+ images/s", lines[0])
