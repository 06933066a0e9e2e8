"""The small CLIP of scenes: made once, said so, and as biased as it was made."""

import csv
import shutil
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.retrieval.clip_fitting import ClipOfScenes, ClipRecipe
from bias_pipeline.retrieval.encoders import Clip
from bias_pipeline.scenes.activities import ACTIVITIES
from bias_pipeline.scenes.pixels import SceneDrawing
from bias_pipeline.scenes.slots import shares, table_by_group, typical, world_tables
from bias_pipeline.scenes.world import generate
from tests.cli.commands import main

SMALL = ClipOfScenes(0.5, ClipRecipe(side=32, width=32, epochs=1, batch_size=20), n_images=40)


@pytest.fixture(scope="module")
def made_twice(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[int], Path, str]:
    """When the weights were written, each time; the folder; what was told."""
    root, messages = tmp_path_factory.mktemp("made"), StringIO()
    with redirect_stderr(messages):
        folders = [SMALL.fit_once(root) for _ in range(2)]
        times = [(folder / "model.safetensors").stat().st_mtime_ns for folder in folders]
    return times, folders[0], messages.getvalue()


def test_it_is_made_and_announced_once_and_leaves_nothing_unfinished(made_twice):
    times, folder, messages = made_twice
    assert times[0] == times[1]
    assert messages.count("a small CLIP is fitted to 40 scenes") == 1
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_one_whose_bytes_changed_is_made_anew(made_twice, tmp_path):
    shutil.copytree(made_twice[1], SMALL.folder(tmp_path))
    weights = SMALL.folder(tmp_path) / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    SMALL.fit_once(tmp_path)
    assert weights.read_bytes() != content


def test_another_association_lies_elsewhere(tmp_path):
    other = ClipOfScenes(0.6, SMALL.recipe, SMALL.n_images)
    assert other.folder(tmp_path) != SMALL.folder(tmp_path)


def scene_pictures(seed: int, rows: range = range(60)) -> Pictures:
    """Pictures of scenes, as a data set of that seed has them."""
    images = generate(rows.stop, seed).images
    return Pictures(tuple(SceneDrawing(image, "gender") for image in images)).take(np.array(rows))


@pytest.mark.parametrize(
    ("seed", "rows", "learnt"),
    [(1000, range(60), 40), (1000, range(30, 60), 10), (0, range(60), 0), (1001, range(60), 0)],
)
def test_pictures_that_it_learnt_from_are_known(seed, rows, learnt):
    assert SMALL.n_learnt(scene_pictures(seed, rows)) == learnt
    assert SMALL.n_learnt(Pictures((Path("a.jpg"), None))) == 0  # no scenes


SCENES = "bias_pipeline.scenes.dataset.ScenesDataset"


def test_that_the_scored_pictures_were_learnt_from_is_said():
    (note,) = Clip(SCENES).notes_of(scene_pictures(1000))
    assert note.startswith("the CLIP was fitted to 60 of these 60 pictures")
    assert Clip(SCENES).notes_of(scene_pictures(0)) == []
    assert Clip(SCENES, model="models/clip").notes_of(scene_pictures(1000)) == []


def share_of_men(association: float) -> dict[str, float]:
    """P(male | task) in the captions that the CLIP is fitted to, from the tables of the world."""
    world = world_tables()["activity"]
    typical_share = (1 - association) * world + association * typical("gender", world)
    joint = shares("gender")[:, None] * table_by_group("gender", typical_share)
    men = joint[0] / joint.sum(axis=0)
    return {activity.name: float(share) for activity, share in zip(ACTIVITIES, men, strict=True)}


@pytest.mark.slow
def test_the_metric_finds_what_was_planted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["metric=retrieval_fairness", "encoder=clip", "logger=csv"]) == 0
    (path,) = tmp_path.glob("outputs/[!.]*/concepts.csv")
    with path.open() as file:
        least = list(csv.DictReader(file))[:10]
    truth, base = share_of_men(0.5), float(shares("gender")[0])
    right = [
        (float(line["share:male"]) > base) == (truth[line["concept"]] > base)
        and abs(truth[line["concept"]] - base) > 0.1
        for line in least
    ]
    assert sum(right) >= 9
