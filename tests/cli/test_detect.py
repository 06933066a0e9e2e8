"""``data detect``: any number of tasks, killed or not, write what one writes; masks read it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bias_pipeline.datasets.picture_files import regions_by_id
from tests.cli.commands import Run, start, wait_for
from tests.photo_folder import break_some, swap, write_equal_sizes, write_photos
from tests.tiny_detectors import write_detector

N_PHOTOS = 70
ONE_THREAD = ("--threads", "1")
Detect = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_photos(tmp_path_factory.mktemp("photos"), N_PHOTOS)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_detector(tmp_path_factory.mktemp("model"), "mask2former")


@pytest.fixture
def detect(run: Run, photos: Path, model: Path) -> Detect:
    """Looks at the photos; blocks go into ``out``."""

    def command(*words: str, folder: Path = photos) -> tuple[int, str]:
        options = ("--model", str(model), "--out", "out", *ONE_THREAD)
        return run("data", "detect", str(folder), *options, *words)

    return command


def gathered(run: Run, *words: str) -> list[dict[str, Any]]:
    code, output = run("data", "detect", "--gather", "out", *words)
    assert code == 0, output
    content: list[dict[str, Any]] = json.loads(Path("out", "detections.json").read_text())
    return content


def blocks() -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in Path("out").glob("*/blocks/*/[!.]*")}


def test_many_tasks_write_what_one_writes(detect, run):
    assert detect()[0] == 0
    alone = gathered(run)
    shutil.rmtree("out")
    for number in range(3):
        assert detect("--shard", f"{number}/3")[0] == 0
    shared = gathered(run)
    scores = [[item.pop("score") for item in result] for result in (shared, alone)]
    assert shared == alone
    # Networks round otherwise in batches of another size, so the last printed digit may differ.
    assert scores[0] == pytest.approx(scores[1], abs=1.5e-5)
    assert [item["image_id"] for item in alone] == sorted(item["image_id"] for item in alone)


def test_image_masking_reads_it(detect, run):
    detect()
    rows = gathered(run)
    result = regions_by_id(Path("out", "detections.json"))
    assert sum(map(len, result.values())) == len(rows)
    regions = [item for recorded in result.values() for item in recorded]
    assert {item.category for item in regions} <= {"person", "dog", "kite", "dining table"}
    assert all(item.outlined for item in regions)


def test_the_command_that_gathers_is_printed(detect, run):
    last = detect()[1].splitlines()[-1].split()
    code, output = run(*last[3:])
    assert code == 0
    assert "dataset.regions=out/detections.json" in output


def test_photos_that_change_places_are_described_again(detect, run):
    """Though each name stands for as many bytes as before."""

    def scores() -> list[list[float]]:
        rows = gathered(run)
        return [[row["score"] for row in rows if row["image_id"] == image] for image in (1, 2)]

    folder = write_equal_sizes(Path("two"))
    detect(folder=folder)
    before = scores()
    swap(folder)
    detect(folder=folder)
    assert scores() == before[::-1] != before


def test_a_second_run_does_nothing(detect):
    detect()
    assert "blocks existed already" in detect()[1]


def test_another_least_certainty_is_another_run(detect, run):
    detect()
    detect("--min-score", "0.3")
    code, output = run("data", "detect", "--gather", "out")
    assert (code, "min_score=0.1" in output, "min_score=0.3" in output) == (3, True, True)


def test_nothing_certain_enough_is_told(detect, run):
    detect("--min-score", "0.999")
    code, output = run("data", "detect", "--gather", "out")
    assert (code, "found nothing in 70 images; lower --min-score" in output) == (3, True)


def test_a_broken_photo_is_missing_when_all_is_gathered(detect, run, photos):
    folder = Path(shutil.copytree(photos, "broken"))
    break_some(folder)
    assert detect(folder=folder)[0] == 0
    code, output = run("data", "detect", "--gather", "out")
    assert (code, "3 images are missing, 0 of them not computed yet" in output) == (3, True)


@pytest.mark.slow
def test_tasks_that_look_at_the_same_photos_at_once_write_what_one_writes(
    detect, run, photos, model, tmp_path
):
    detect()
    alone = gathered(run)
    shutil.rmtree("out")
    words = ("data", "detect", str(photos), "--model", str(model), "--out", "out", *ONE_THREAD)
    processes = [start(tmp_path, *words) for _ in range(2)]
    assert [process.wait(300) for process in processes] == [0, 0]
    assert gathered(run) == alone


@pytest.mark.slow
def test_a_killed_task_is_resumed(run, model, tmp_path):
    many = write_photos(tmp_path / "many", 600)
    words = ("data", "detect", str(many), "--model", str(model), "--out", "out", *ONE_THREAD)
    process = start(tmp_path, *words)
    wait_for(lambda: len(blocks()) > 2)
    process.kill()
    process.wait(30)
    before = blocks()
    run(*words)
    assert 2 < len(before) < len(blocks())
    assert before.items() <= blocks().items()
    assert {item["image_id"] for item in gathered(run)} <= set(range(1, 601))


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("facebook/no-detr", 5, "models prefetch facebook/no-detr"),
        ("nowhere.pth", 5, "fetch torchvision's weights"),
    ],
)
def test_absent_weights_are_told(
    name,
    code,
    message,
    run,
    photos,
    tmp_path,
    monkeypatch,
):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    output, named = run("data", "detect", str(photos), "--model", name, "--out", "out")
    assert (output, message in named, "Traceback" in named) == (code, True, False), named


def test_a_model_without_people_is_a_sentence(run, photos, tmp_path):
    other = write_detector(tmp_path / "other", "detr", ("table", "kite"))
    words = ("--model", str(other), "--out", "out", *ONE_THREAD)
    code, output = run("data", "detect", str(photos), *words)
    assert (code, "is 'person', so it cannot find people" in output) == (3, True), output


def test_models_show_tells_what_takes_it(run, model):
    assert "data detect --model" in run("models", "show", str(model))[1]
