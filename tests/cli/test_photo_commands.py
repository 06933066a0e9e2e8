"""``embed``, ``caption`` and ``data detect``: tasks, stopped and resumed, give what one gives."""

import contextlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bias_pipeline.commands.main import main
from bias_pipeline.models.merge_shards import read_embeddings
from tests.cli.commands import start, wait_for
from tests.photo_folder import break_some, swap, write_equal_sizes, write_photos
from tests.tiny_detectors import write_detector

# Networks round otherwise in batches of another size, so the last printed digit may differ.
DIGIT = 1.5e-5


@dataclass(frozen=True)
class Command:
    """A command, its model, and how it is read what it gathered."""

    words: tuple[str, ...]
    model: Path
    n_photos: int
    many: int  # photos that take long enough to be killed
    more: tuple[str, ...]
    read: Callable[[], tuple[list[Any], Any]]  # what must be equal, and what nearly
    within: float = 0.0

    def line(self, folder: Path) -> list[str]:
        options = ("--model", str(self.model), "--out", "out", "--threads", "1", *self.more)
        return [*self.words, str(folder), *options]

    def gather(self, *words: str) -> list[str]:
        return [*self.words, "--gather", "out", *words]

    def are_same(self, one: tuple[list[Any], Any], other: tuple[list[Any], Any]) -> bool:
        return one[0] == other[0] and np.allclose(one[1], other[1], rtol=0, atol=self.within)


def read_vectors() -> tuple[list[Any], Any]:
    return read_embeddings(Path("out", "embeddings.parquet"))


def read_captions() -> tuple[list[Any], Any]:
    rows = json.loads(Path("out", "captions.json").read_text())
    return [(row["image_id"], row["caption"]) for row in rows], []


def read_regions() -> tuple[list[Any], Any]:
    rows = json.loads(Path("out", "detections.json").read_text())
    return [{**row, "score": None} for row in rows], [row["score"] for row in rows]


@pytest.fixture(scope="module", params=["embed", "blip", "pair", "detect"])
def command(request, tmp_path_factory) -> Command:
    if request.param == "embed":
        model = request.getfixturevalue("clip")
        return Command(("embed",), model, 90, 1500, (), read_vectors, 1e-6)
    if request.param == "detect":
        model = write_detector(tmp_path_factory.mktemp("model"), "mask2former")
        return Command(("data", "detect"), model, 70, 600, (), read_regions, DIGIT)
    model, more = request.getfixturevalue(request.param), ("--max-new-tokens", "12")
    return Command(("caption",), model, 20, 0, more, read_captions)


@pytest.fixture(scope="module")
def photos(command, tmp_path_factory) -> Path:
    return write_photos(tmp_path_factory.mktemp("photos"), command.n_photos)


@pytest.fixture(scope="module")
def result_of_one_task(command, photos, tmp_path_factory) -> tuple[list[Any], Any]:
    """What one task gives."""
    with contextlib.chdir(tmp_path_factory.mktemp("alone")):
        assert main(command.line(photos)) == 0
        assert main(command.gather()) == 0
        return command.read()


def blocks() -> dict[Path, int]:
    """Each finished block and when it was written."""
    return {path: path.stat().st_mtime_ns for path in Path("out").glob("*/blocks/*/[!.]*")}


def test_images_stand_in_the_order_of_their_numbers(command, result_of_one_task):
    ids = [
        item["image_id"] if isinstance(item, dict) else item[0] for item in result_of_one_task[0]
    ]
    numbers = [
        int(item) for item in (result_of_one_task[0] if command.words == ("embed",) else ids)
    ]
    assert numbers == sorted(numbers)
    if command.words != ("data", "detect"):  # which may see nothing in a photo
        assert numbers == list(range(1, command.n_photos + 1))


def test_many_tasks_give_what_one_gives(ok, command, photos, result_of_one_task):
    for number in reversed(range(5)):
        ok(*command.line(photos), "--shard", f"{number}/5")
    ok(*command.gather())
    assert command.are_same(command.read(), result_of_one_task)


def test_another_number_of_tasks_goes_on_where_others_stopped(
    ok, command, photos, result_of_one_task
):
    ok(*command.line(photos), "--shard", "0/2")
    before = blocks()
    for number in range(3):
        ok(*command.line(photos), "--shard", f"{number}/3")
    assert before.items() <= blocks().items()
    ok(*command.gather())
    assert command.are_same(command.read(), result_of_one_task)


@pytest.mark.parametrize("batch", ["1", "7"])
def test_the_batch_changes_nothing(ok, command, photos, result_of_one_task, batch):
    ok(*command.line(photos), "--batch", batch)
    ok(*command.gather())
    assert command.are_same(command.read(), result_of_one_task)


def test_a_second_run_does_nothing(ok, command, photos):
    ok(*command.line(photos))
    before = blocks()
    printed = ok(*command.line(photos))
    assert f"{len(before)} of {len(before)} blocks existed already" in printed
    assert blocks() == before


def test_the_command_that_gathers_is_printed(ok, command, photos):
    ok(*ok(*command.line(photos)).splitlines()[-1].split()[3:])


def by_photo(command: Command) -> list[str]:
    """What was gathered about either of two photos."""
    discrete, numbers = command.read()
    if command.words == ("embed",):
        return [str(vector) for vector in numbers.tolist()]
    if command.words == ("caption",):
        return [caption for _, caption in discrete]
    pairs = list(zip(discrete, numbers, strict=True))
    return [str([n for row, n in pairs if row["image_id"] == image]) for image in (1, 2)]


def test_photos_that_change_places_are_described_again_and_counted(ok, command):
    """Though each name stands for as many bytes as before."""
    folder, described = write_equal_sizes(Path("two")), []
    for changed in (False, True):
        printed = ok(*command.line(folder))
        assert ("2 images have changed and were described again" in printed) == changed
        ok(*command.gather())
        described.append(by_photo(command))
        swap(folder)
    before, after = described
    assert after == before[::-1] != before


def test_a_broken_photo_is_missing_when_all_is_gathered_and_changes_no_other(
    ok, ends, command, photos, result_of_one_task
):
    folder = Path(shutil.copytree(photos, "broken"))
    break_some(folder)
    for _ in range(2):  # what was tried before is named again
        assert "3 have no result: " in ok(*command.line(folder))
    printed = ends(3, *command.gather())
    assert "3 images are missing, 0 of them not computed yet" in printed
    assert {path.name for path in Path("out").glob("*.*")} == {"missing.csv"}
    ok(*command.gather("--no-strict"))
    assert command.are_same(command.read(), result_of_one_task)


@pytest.mark.slow
def test_a_killed_task_is_resumed(ok, command, tmp_path):
    if not command.many:
        pytest.skip("its blocks are those of the others")
    many = write_photos(tmp_path / "many", command.many)
    process = start(tmp_path, *command.line(many))
    wait_for(lambda: len(blocks()) > 2)
    process.kill()
    process.wait(30)
    before = blocks()
    ok(*command.line(many))
    assert 2 < len(before) < len(blocks())
    assert before.items() <= blocks().items()
    ok(*command.gather())


@pytest.mark.slow
def test_tasks_that_look_at_the_same_photos_at_once_write_what_one_writes(
    ok, command, photos, result_of_one_task, tmp_path
):
    processes = [start(tmp_path, *command.line(photos)) for _ in range(2)]
    assert [process.wait(300) for process in processes] == [0, 0]
    ok(*command.gather())
    assert command.are_same(command.read(), result_of_one_task)


# --- runs that are never mixed


@pytest.mark.parametrize(
    ("command", "other", "messages"),
    [
        ("blip", ("--beams", "2"), ("beams=1", "beams=2")),
        ("blip", ("--dtype", "bfloat16"), ("dtype='bfloat16'",)),
        ("detect", ("--min-score", "0.3"), ("min_score=0.1", "min_score=0.3")),
    ],
    indirect=["command"],
)
def test_other_settings_are_another_run(ok, ends, command, photos, other, messages):
    for words in ((), other):
        ok(*command.line(photos), "--shard", "0/3", *words)
    printed = ends(3, *command.gather())
    assert [message in printed for message in messages] == [True] * len(messages), printed


@pytest.mark.parametrize("command", ["blip"], indirect=True)
@pytest.mark.parametrize(("words", "code"), [(("--shard", "3/3"), 2), (("--device", "none"), 2)])
def test_a_task_that_cannot_begin_leaves_no_run(ends, command, photos, words, code):
    ends(code, *command.line(photos), *words)
    assert not Path("out").exists()
