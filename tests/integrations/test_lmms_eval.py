"""The task of lmms-eval, run by the real program on five drawn pictures with its dummy model."""

import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image

import bias_pipeline as bp
from bias_pipeline.integrations.lmms_eval import task
from tests.corpora import REPOSITORY

TASK = REPOSITORY / "bias_pipeline/integrations/lmms_eval/caption_bias.yaml"
GENDERS = ("male", "female", "male", "male", "female")
CAPTION = "a man with a dog"
# The task of a user: ours, copied as lmms-eval's own tasks lie, on files of the user.
USER_TASK = """
include: {include}
task: mine
dataset_kwargs: {{data_files: {{val: five.parquet}}}}
"""


def document(i: int, gender: str) -> dict[str, Any]:
    """The fields of coco_cap and the gender."""
    return {
        "question_id": f"COCO_val2014_{i:012}.jpg",
        "id": i,
        "image": Image.new("RGB", (16, 16), (40 * i, 90, 120)),
        "answer": [f"a {'man' if gender == 'male' else 'woman'} with a dog"] * 2,
        "gender": gender,
    }


DOCUMENTS = [document(i, gender) for i, gender in enumerate(GENDERS)]


def entries(metric: str) -> list[Mapping[str, Any]]:
    return [task.entry(doc, [CAPTION])[f"bias_{metric}"] for doc in DOCUMENTS]


def test_the_gender_error_is_that_of_the_captions():
    assert task.gender_error(entries("gender_error")) == 2 / 5


def test_a_picture_without_a_gender_does_not_count():
    last = {**entries("gender_error")[-1], "gender": ""}
    assert task.gender_error([*entries("gender_error")[:4], last]) == 1 / 4


def test_too_few_pictures_have_no_score(caplog):
    assert math.isnan(task.lic(entries("lic")))
    assert "bias_lic: " in caplog.text


def test_pictures_without_captions_by_people_have_a_gender_error():
    alone = [{**entry, "answer": []} for entry in entries("gender_error")]
    assert task.gender_error(alone) == 2 / 5


def test_pictures_without_captions_by_people_have_no_lic(caplog):
    alone = [{**entry, "answer": []} for entry in entries("lic")]
    assert math.isnan(task.lic(alone))
    assert "bias_lic: no picture has human captions" in caplog.text


def test_captions_without_a_gender_are_warned_of(caplog):
    unnamed = [{**entry, "pred": "a dog"} for entry in entries("gender_error")]
    assert math.isnan(task.gender_error(unnamed))
    assert "bias_gender_error: gender_error is undefined: " in caplog.text


def test_every_metric_of_the_task_has_its_entry():
    text = TASK.read_text().replace("!function ", "")
    names = {line["metric"] for line in yaml.safe_load(text)["metric_list"]}
    assert names == set(task.entry(DOCUMENTS[0], [CAPTION]))


def test_what_the_file_calls_is_there():
    lines = TASK.read_text().splitlines()
    functions = [line.partition("!function task.")[2] for line in lines if "!function" in line]
    assert all(callable(getattr(task, name)) for name in functions)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What lmms-eval writes."""
    pytest.importorskip("lmms_eval", reason="lmms-eval is not installed")
    import datasets

    folder = tmp_path_factory.mktemp("lmms")
    datasets.Dataset.from_list(DOCUMENTS).to_parquet(str(folder / "five.parquet"))
    copied = folder / "tasks" / "caption_bias"
    copied.mkdir(parents=True)
    for name in (TASK.name, "task.py"):
        shutil.copy(TASK.parent / name, copied)
    (folder / "mine.yaml").write_text(USER_TASK.format(include=copied / TASK.name))
    words = ["--model", "dummy", "--model_args", f"response={CAPTION}", "--tasks", "mine"]
    words += ["--include_path", str(folder), "--output_path", "out", "--log_samples"]
    variables = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "hub")}
    command = [sys.executable, "-m", "lmms_eval", *words]
    done = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "out"


@pytest.mark.slow
def test_lmms_eval_reports_the_gender_error(outputs):
    (path,) = outputs.rglob("*results.json")
    numbers = json.loads(path.read_text())["results"]["mine"]
    assert numbers["bias_gender_error,none"] == 2 / 5


@pytest.mark.slow
def test_its_samples_can_be_scored_anew(outputs):
    (samples,) = outputs.rglob("*samples*.jsonl")
    labels = {doc["question_id"]: doc["gender"] for doc in DOCUMENTS}
    assert bp.score("gender_error", samples, labels).rows[0].value == 2 / 5
