"""``embed``: any number of tasks, stopped and resumed, give the vectors of one."""

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

from bias_pipeline.commands.main import main
from bias_pipeline.encoders.language_models import Frozen
from bias_pipeline.inference.merge_shards import MISSING, _write_missing, read_embeddings
from bias_pipeline.io import digests
from bias_pipeline.models.clip import ClipPhotos
from bias_pipeline.vision.photos import UnreadableError, read_photo
from tests.cli.commands import Run, start, wait_for
from tests.photo_folder import BROKEN, break_some, swap, write_equal_sizes, write_photos
from tests.tiny_models import write_bert, write_clip

N_PHOTOS = 90
ONE_THREAD = ("--threads", "1")  # more would wait for each other on a machine that is busy
Embed = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_photos(tmp_path_factory.mktemp("photos"), N_PHOTOS)


@pytest.fixture
def embed(run: Run, clip: Path, photos: Path) -> Embed:
    """Embeds the photos into ``out``."""

    def command(*words: str, folder: Path = photos, model: Path = clip) -> tuple[int, str]:
        return run("embed", str(folder), *options_of(model), *words)

    return command


def options_of(model: Path) -> tuple[str, ...]:
    return ("--model", str(model), "--out", "out", *ONE_THREAD)


def gathered(run: Run, *words: str) -> tuple[list[str], Any]:
    code, printed = run("embed", "--gather", "out", *words)
    assert code == 0, printed
    return read_embeddings(Path("out", "embeddings.parquet"))


def blocks() -> dict[Path, int]:
    """Each finished block and when it was written."""
    return {path: path.stat().st_mtime_ns for path in Path("out").glob("*/blocks/*/[!.]*")}


@pytest.fixture(scope="module")
def alone(clip: Path, photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What one task gives."""
    with contextlib.chdir(tmp_path_factory.mktemp("alone")):
        assert main(["embed", str(photos), *options_of(clip)]) == 0
        assert main(["embed", "--gather", "out"]) == 0
        return read_embeddings(Path("out", "embeddings.parquet"))


def test_a_vector_is_what_transformers_computes(embed, run, clip):
    """By its own code for photos, one by one."""
    import torch
    from transformers import CLIPImageProcessorPil, CLIPModel

    photo = Image.new("RGB", (50, 40), (200, 30, 90))
    folder = Path("one")
    folder.mkdir()
    photo.save(folder / "1.png")
    embed(folder=folder)
    network = CLIPModel.from_pretrained(clip).eval()
    pixels = CLIPImageProcessorPil.from_pretrained(clip)(photo, return_tensors="pt")
    with torch.inference_mode():
        expected = network.get_image_features(**pixels).pooler_output[0]
    _, vectors = gathered(run)
    assert np.allclose(vectors[0], expected / expected.norm(), atol=1e-6)


def test_ids_are_text_in_the_order_of_numbers(alone):
    assert alone[0] == [str(number) for number in range(1, N_PHOTOS + 1)]


def test_vectors_have_length_one(alone):
    assert alone[1].dtype == np.float32
    assert np.allclose(np.linalg.norm(alone[1], axis=1), 1, atol=1e-6)


def test_photos_differ(alone):
    assert len(np.unique(alone[1].round(4), axis=0)) == N_PHOTOS


def test_vectors_may_stay_as_long_as_they_are(embed, run, alone):
    embed("--no-normalize")
    _, vectors = gathered(run)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    assert not np.allclose(lengths, 1, atol=0.01)
    assert np.allclose(vectors / lengths, alone[1], atol=1e-6)


@pytest.mark.parametrize("count", [2, 5])
def test_many_tasks_give_what_one_gives(count, embed, run, alone):
    for number in reversed(range(count)):
        embed("--shard", f"{number}/{count}")
    ids, vectors = gathered(run)
    assert ids == alone[0]
    assert np.allclose(vectors, alone[1], atol=1e-6)


@pytest.mark.parametrize("batch", ["1", "7", "200"])
def test_the_batch_changes_nothing(batch, embed, run, alone):
    embed("--batch", batch)
    assert np.allclose(gathered(run)[1], alone[1], atol=1e-6)


def test_tasks_of_an_array_share_the_work(embed, run, alone, monkeypatch):
    array = {"MIN": "5", "MAX": "9", "STEP": "2", "COUNT": "3"}
    for key, value in array.items():
        monkeypatch.setenv(f"SLURM_ARRAY_TASK_{key}", value)
    for task in ("5", "7", "9"):
        monkeypatch.setenv("SLURM_ARRAY_TASK_ID", task)
        embed()
    assert gathered(run)[0] == alone[0]


# --- going on


def test_photos_that_change_places_are_described_again(embed, run):
    """Though each name stands for as many bytes as before."""
    folder = write_equal_sizes(Path("two"))
    embed(folder=folder)
    before = gathered(run)[1].tolist()
    swap(folder)
    embed(folder=folder)
    assert gathered(run)[1].tolist() == before[::-1] != before


def test_of_a_block_only_what_changed_is_computed_again(embed, run, photos):
    folder = Path(shutil.copytree(photos, "some"))
    embed(folder=folder)
    shutil.copy(folder / "6.png", folder / "5.png")
    _, printed = embed(folder=folder)
    assert "1 images in " in printed
    vectors = gathered(run)[1]
    shutil.rmtree("out")
    embed(folder=folder)
    assert np.allclose(vectors, gathered(run)[1], atol=1e-6)


def test_how_many_photos_are_others_is_told(embed):
    folder = write_equal_sizes(Path("two"))
    embed(folder=folder)
    swap(folder)
    _, printed = embed(folder=folder)
    assert "2 images have changed since they were described" in printed


def test_vectors_of_an_earlier_version_are_computed_again_and_told(embed, monkeypatch):
    """It stamped each photo with its size."""
    folder = write_equal_sizes(Path("two"))
    sizes = lambda photos: [path.stat().st_size for path in photos]  # noqa: E731
    with monkeypatch.context() as earlier:
        earlier.setattr("bias_pipeline.commands.photos.photo_stamps", sizes)
        embed(folder=folder)
    _, printed = embed(folder=folder)
    assert "2 images were described by an earlier version" in printed
    assert "have changed since" not in printed


def test_unchanged_photos_are_not_read_to_be_known(embed, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = write_equal_sizes(Path("two"))
    for path in folder.iterdir():
        os.utime(path, (1e9, 1e9))
    monkeypatch.setattr(digests, "_TICK", -(10**18))  # as if they had lain there for long
    embed(folder=folder)

    def unreadable(path: Path) -> str:
        raise AssertionError(f"{path} is read")

    monkeypatch.setattr(digests, "sha256_of", unreadable)
    assert "blocks existed already" in embed(folder=folder)[1]


def test_a_second_run_does_nothing(embed, monkeypatch):
    embed()
    before = blocks()
    monkeypatch.delattr(ClipPhotos, "__init__")  # not even the model is loaded
    _, printed = embed()
    assert f"{len(before)} of {len(before)} blocks existed already" in printed
    assert blocks() == before


def test_another_number_of_tasks_goes_on_where_others_stopped(embed, run):
    embed("--shard", "0/2")
    before = blocks()
    for number in range(3):
        embed("--shard", f"{number}/3")
    assert before.items() <= blocks().items()
    assert len(gathered(run)[0]) == N_PHOTOS


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_stopped_task_keeps_what_is_finished(number, code, embed, run, alone, monkeypatch):
    describe, calls = ClipPhotos.describe, iter(range(1000))

    def stopped_at_the_third(self: ClipPhotos, batch: Any) -> Any:
        if next(calls) == 2:
            signal.raise_signal(number)
        return describe(self, batch)

    monkeypatch.setattr(ClipPhotos, "describe", stopped_at_the_third)
    # A test run in the background ignores SIGINT, and the command would go on doing so.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert embed("--batch", "20")[0] == code
    finally:
        signal.signal(signal.SIGINT, before)
    before = blocks()
    assert before
    embed("--batch", "20")
    assert before.items() <= blocks().items()
    assert np.allclose(gathered(run)[1], alone[1], atol=1e-6)


@pytest.mark.slow
def test_a_killed_task_is_resumed(run, clip, tmp_path, monkeypatch):
    many = write_photos(tmp_path / "many", 1500)
    words = ("embed", str(many), "--model", str(clip), "--out", "out", *ONE_THREAD)
    process = start(tmp_path, *words)
    wait_for(lambda: len(blocks()) > 2)
    process.kill()
    process.wait(30)
    before = blocks()
    run(*words)
    assert 2 < len(before) < len(blocks())
    assert before.items() <= blocks().items()
    assert len(gathered(run)[0]) == 1500


def test_a_photo_that_was_replaced_is_embedded_again(embed, run):
    folder = write_photos(Path("own"), 5)
    embed(folder=folder)
    before = gathered(run)[1]
    Image.new("RGB", (64, 64), (0, 255, 0)).save(folder / "3.png")
    embed(folder=folder)
    changed = np.abs(gathered(run)[1] - before).max(axis=1) > 1e-3
    assert changed.tolist() == [False, False, True, False, False]


# --- what cannot be read


def test_a_photo_that_a_disk_did_not_give_is_tried_again(embed, run, alone, monkeypatch):
    def failing(path: Path) -> Any:
        if path.stem == "7":
            raise UnreadableError("stale file handle", lasting=False)
        return read_photo(path)

    with monkeypatch.context() as patched:
        patched.setattr("bias_pipeline.inference.dual_encoders.read_photo", failing)
        assert "7 (stale file handle)" in embed()[1]
    embed()
    assert gathered(run)[0] == alone[0]


@pytest.fixture
def broken(embed: Embed, photos: Path) -> tuple[int, str]:
    """A task over a folder with broken files."""
    folder = Path(shutil.copytree(photos, "broken"))
    break_some(folder)
    return embed(folder=folder)


def test_a_broken_photo_stops_nothing(broken):
    code, printed = broken
    assert code == 0
    assert "3 have no result: " in printed
    assert "901 (the file is empty)" in printed


def test_a_broken_photo_is_missing_when_all_is_gathered(broken, run):
    code, printed = run("embed", "--gather", "out")
    assert (code, "3 images are missing, 0 of them not computed yet" in printed) == (3, True)
    assert not Path("out", "embeddings.parquet").exists()


def test_the_missing_are_listed_with_their_reasons(broken, run):
    run("embed", "--gather", "out")
    lines = Path("out", MISSING).read_text().splitlines()
    assert lines[:2] == ["image_id,reason", "901,the file is empty"]
    assert len(lines) == 1 + len(BROKEN)


def test_e9_a_list_of_missing_images_holds_no_formula(tmp_path):
    missing = {"=cmd()": "＝1\ud83d", "-5": "-x"}
    _write_missing(tmp_path / MISSING, missing)
    lines = (tmp_path / MISSING).read_text(encoding="utf-8").splitlines()
    assert sorted(lines[1:]) == ["'-5,'-x", "'=cmd(),'＝1?"]


def test_a_broken_photo_changes_no_other(embed, run, alone, photos):
    folder = Path(shutil.copytree(photos, "broken"))
    break_some(folder)
    embed(folder=folder)
    assert np.allclose(gathered(run, "--no-strict")[1], alone[1], atol=1e-6)


def test_what_is_not_computed_yet_is_told(embed, run):
    embed("--shard", "0/2")
    code, printed = run("embed", "--gather", "out")
    assert (code, "not computed yet" in printed, "Start the job again" in printed) == (
        5,
        True,
        True,
    )


def test_a_list_of_missing_images_goes_when_they_are_there(embed, run):
    embed("--shard", "0/2")
    run("embed", "--gather", "out")
    embed("--shard", "1/2")
    gathered(run)
    assert not Path("out", MISSING).exists()


# --- other models


def test_other_weights_are_never_mixed(embed, run, tmp_path):
    other = write_clip(tmp_path / "other", seed=1)
    embed("--shard", "0/2")
    embed("--shard", "1/2", model=other)
    code, printed = run("embed", "--gather", "out")
    assert (code, "2 runs that must not be mixed" in printed) == (3, True)
    assert str(other) in printed


def test_the_same_weights_elsewhere_are_the_same(embed, run, clip, tmp_path):
    embed("--shard", "0/2")
    embed("--shard", "1/2", model=Path(shutil.copytree(clip, tmp_path / "copy")))
    assert len(gathered(run)[0]) == N_PHOTOS


@pytest.mark.parametrize("name", ["preprocessor_config.json", "config.json"])
def test_changed_preprocessing_is_another_run(name, embed, clip, tmp_path):
    changed = Path(shutil.copytree(clip, tmp_path / "changed"))
    content = json.loads((changed / name).read_text())
    (changed / name).write_text(json.dumps(content | {"image_mean": [0.4, 0.4, 0.4]}))
    embed()
    embed(model=changed)
    assert len(list(Path("out").iterdir())) == 2


def test_weights_that_are_missing_are_not_made_up(embed, clip, tmp_path):
    cut = Path(shutil.copytree(clip, tmp_path / "cut"))
    weights = load_file(cut / "model.safetensors")
    del weights["visual_projection.weight"]
    save_file(weights, cut / "model.safetensors", metadata={"format": "pt"})
    code, printed = embed(model=cut)
    assert (code, "1 weights are missing, such as visual_projection.weight" in printed) == (3, True)


def test_weights_that_are_no_numbers_are_told(embed, clip, tmp_path):
    odd = Path(shutil.copytree(clip, tmp_path / "odd"))
    weights = load_file(odd / "model.safetensors")
    weights["visual_projection.weight"][:] = np.nan
    save_file(weights, odd / "model.safetensors", metadata={"format": "pt"})
    code, printed = embed(model=odd)
    assert (code, "vectors that are not numbers" in printed) == (3, True)


def test_broken_weights_are_told(embed, clip, tmp_path):
    cut = Path(shutil.copytree(clip, tmp_path / "cut"))
    (cut / "model.safetensors").write_bytes(b"short")
    code, printed = embed(model=cut)
    assert (code, "cannot be loaded" in printed, "Traceback" in printed) == (3, True, False)


def test_pickled_weights_are_refused(embed, clip, tmp_path):
    pickled = Path(shutil.copytree(clip, tmp_path / "pickled"))
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    code, printed = embed(model=pickled)
    assert (code, "other formats can run code" in printed) == (3, True)


def test_an_index_may_not_lead_elsewhere(embed, clip, tmp_path):
    odd = Path(shutil.copytree(clip, tmp_path / "odd"))
    (odd / "model.safetensors").rename(odd / "part.safetensors")
    index = {"weight_map": {"a": "../part.safetensors"}}
    (odd / "model.safetensors.index.json").write_text(json.dumps(index))
    code, printed = embed(model=odd)
    assert (code, "not safetensors in its folder" in printed) == (3, True)


def test_another_kind_of_model_is_refused(embed, blip):
    code, printed = embed(model=blip)
    assert (code, "is it a BlipForImageTextRetrieval?" in printed) == (3, True)


def test_code_that_comes_with_a_model_is_not_run(embed, clip, tmp_path):
    odd = Path(shutil.copytree(clip, tmp_path / "odd"))
    (odd / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    for name in ("config.json", "preprocessor_config.json"):
        content = json.loads((odd / name).read_text())
        content["auto_map"] = {"AutoModel": "evil.Model", "AutoImageProcessor": "evil.Processor"}
        (odd / name).write_text(json.dumps(content))
    embed(model=odd)
    assert not (tmp_path / "ran").exists()


def test_a_model_that_is_nowhere_is_told(run, photos, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    code, printed = run("embed", str(photos), "--model", "some/clip", "--out", "out")
    assert (code, "models prefetch some/clip" in printed) == (5, True)


def test_a_name_on_the_hub_is_its_folder(run, photos, clip, monkeypatch):
    requested: dict[str, Any] = {}

    def download(name: str, **options: Any) -> str:
        requested.update(options, name=name)
        return str(clip)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    words = ("--model", "some/clip", "--revision", "v2", "--out", "out", *ONE_THREAD)
    assert run("embed", str(photos), *words)[0] == 0
    assert (requested["name"], requested["revision"]) == ("some/clip", "v2")
    assert requested["local_files_only"]  # no network is asked


# --- texts


def texts(*captions: str) -> Path:
    rows = [{"image_id": k, "caption": text} for k, text in enumerate(captions)]
    path = Path("captions.json")
    path.write_text(json.dumps(rows))
    return path


def test_of_numbered_captions_the_first_is_embedded_and_told(run, clip):
    rows = [
        {"image_id": 7, "caption": text, "sample": k, "decoding": "greedy"}
        for k, text in enumerate(("a dog", "a cat"))
    ]
    Path("mine.json").write_text(json.dumps(rows))
    words = ("--model", str(clip), "--out", "out", *ONE_THREAD)
    code, printed = run("embed", "--texts", "mine.json", *words)
    assert (code, "the first caption of each image is embedded, 1 others" in printed) == (0, True)


def test_texts_get_vectors_of_the_same_space(embed, run, clip):
    """What transformers computes for each alone, so padding plays no part."""
    import torch
    from transformers import CLIPModel, CLIPTokenizer

    captions = ("a dog", "the longest of the texts", "", "x" * 90)
    path = texts(*captions)
    words = ("--model", str(clip), "--out", "out", *ONE_THREAD)
    assert run("embed", "--texts", str(path), *words)[0] == 0
    ids, vectors = gathered(run)
    network, tokens = CLIPModel.from_pretrained(clip).eval(), CLIPTokenizer.from_pretrained(clip)
    for number, text in enumerate(captions):
        built_tokens = tokens(text, truncation=True, max_length=24, return_tensors="pt")
        with torch.inference_mode():
            expected = network.get_text_features(**built_tokens).pooler_output[0]
        row = ids.index(str(number))
        assert np.allclose(vectors[row], expected / expected.norm(), atol=1e-5), text


def test_texts_get_vectors_of_a_language_model(run, tmp_path):
    """What attackers have of it, at length 1."""
    model, captions = write_bert(tmp_path / "bert"), {"1": "a dog", "2": "a man with a kite"}
    Path("own.json").write_text(json.dumps(captions))
    code, output = run("embed", "--texts", "own.json", "--model", str(model), "--out", "out")
    assert code == 0, output
    result = gathered(run)[1]
    wanted = Frozen(str(model), normalize=True, device="cpu").vectors(list(captions.values()))
    np.testing.assert_allclose(result, wanted, atol=1e-6)


def test_a_text_that_changed_is_embedded_again(run, clip):
    words = ("embed", "--texts", "captions.json", "--model", str(clip), "--out", "out", *ONE_THREAD)
    texts("a dog", "a cat")
    run(*words)
    before = gathered(run)[1]
    texts("a dog", "a cow")
    run(*words)
    assert (gathered(run)[1] == before).all(axis=1).tolist() == [True, False]


# --- words


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "name one source: FOLDER or --texts"),
        (("photos",), "--model is missing"),
        (("photos", "--model", "m"), "--out is missing"),
        (("photos", "--texts", "x.json", "--model", "m", "--out", "o"), "name one source"),
        (("photos", "--gather", "out"), "takes no other source"),
        (("photos", "--batch", "0"), "--batch"),
        (("photos", "--modle", "m"), "unrecognized arguments: --modle"),
        (("--gather", "out", "--to", "x.json"), "ending must be .parquet"),
    ],
)
def test_what_does_not_fit_together_is_refused(words, message, run):
    code, printed = run("embed", *words)
    assert (code, message in printed, "Traceback" in printed) == (2, True, False), printed


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--device", "gpu"), 2, "device 'gpu' is unknown"),
        (("--device", "cuda:99"), 5, "device cuda:99"),
        (("--shard", "2/2"), 2, "expected K/N"),
    ],
)
def test_a_wrong_device_or_shard_is_told(words, code, message, embed):
    result, printed = embed(*words)
    assert (result, message in printed) == (code, True), printed


def test_a_full_disk_is_told(embed, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("bias_pipeline.inference.blocks.replace_file", full)
    code, printed = embed()
    assert (code, "No space left on device" in printed) == (5, True)


def test_a_batch_too_large_for_the_device_is_told(embed, monkeypatch):
    import torch

    def too_large(*_: object) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(ClipPhotos, "describe", too_large)
    code, printed = embed()
    assert (code, "use --batch 16" in printed) == (5, True)


def test_the_speed_is_told_and_no_bar_drawn(embed):
    lines = embed()[1].splitlines()
    assert len(lines) == 3
    assert re.fullmatch(rf"{N_PHOTOS} images in [\d.]+ s: [\d.]+ images/s", lines[0])


def test_the_words_printed_gather(embed, run):
    last = embed()[1].splitlines()[-1].split()
    assert run(*last[3:])[0] == 0
