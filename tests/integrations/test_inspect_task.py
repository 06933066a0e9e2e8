"""The task of Inspect AI, run by the real program with its mock model and with a file."""

import csv
import hashlib
import importlib.util
import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from PIL import Image

import bias_pipeline as bp
from tests.cli.commands import wait_for
from tests.corpora import DATA, REPOSITORY
from tests.people.web.chromium import BROWSER, DRIVER, Chromium, chromedriver

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("inspect_ai") is None, reason="Inspect AI is not installed"
)

# The mock model counts tokens by a table that it would fetch.
SCRIPT = """
import base64, hashlib, json, sys, tiktoken
from types import SimpleNamespace

tiktoken.get_encoding = lambda name: SimpleNamespace(encode=lambda text, **_: text.split())

import inspect_ai
from inspect_ai.model import ModelOutput, get_model
from bias_pipeline.integrations.inspect_task import caption_bias


def write(messages, *_):  # a caption that names the picture that was sent
    _, picture = messages[-1].content
    sent = base64.b64decode(picture.image.partition(",")[2])
    text = f"<think>a woman?</think> a man, {hashlib.sha256(sent).hexdigest()}"
    return ModelOutput.from_content("mock", text)

model = sys.argv[1]
if model != "none":
    model = get_model(model, custom_outputs=write)
task = caption_bias(**json.loads(sys.argv[2]))
inspect_ai.eval(task, model=model, log_dir="logs", log_format="json", display="none")
"""

GENDERS = {str(i): ("male", "female")[i % 2] for i in range(1, 61)}
CAPTIONS = {
    i: f"a {'man' if gender == 'male' or int(i) < 9 else 'woman'} with a dog"
    for i, gender in GENDERS.items()
}
REFUSING, NEUTRAL = "2", "4"  # both male
CAPTIONS |= {REFUSING: "I'm sorry, I can't describe people.", NEUTRAL: "a smiling person"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of a user: labels, captions, human captions and photos."""
    tmp_path = tmp_path_factory.mktemp("inspect")
    with (tmp_path / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", "gender"), *GENDERS.items()])
    lines = [{"image_id": int(i), "caption": text} for i, text in CAPTIONS.items()]
    (tmp_path / "captions.json").write_text(json.dumps(lines))
    people = [
        {"image_id": int(i), "caption": f"a {'man' if gender == 'male' else 'woman'}, {k}"}
        for i, gender in GENDERS.items()
        for k in range(2)
    ]
    (tmp_path / "people.json").write_text(json.dumps(people))
    (tmp_path / "photos").mkdir()
    for i in GENDERS:
        Image.new("RGB", (8, 8), (int(i), 9, 9)).save(tmp_path / "photos" / f"{i}.png")
    return tmp_path


def run(folder: Path, model: str, **arguments: str) -> dict[str, Any]:
    """The log of the program, which runs in a process of its own."""
    chosen = {"labels": "labels.csv", "human": "people.json", **arguments}
    command = [sys.executable, "-c", SCRIPT, model, json.dumps(chosen)]
    variables = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (path,) = (folder / "logs").glob("*.json")
    log: dict[str, Any] = json.loads(path.read_text())
    assert log["status"] == "success", log["error"]
    return log


def numbers(log: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    return {
        score["name"]: {name: number["value"] for name, number in score["metrics"].items()}
        for score in log["results"]["scores"]
    }


@pytest.fixture(scope="module")
def log(folder: Path) -> dict[str, Any]:
    return run(folder, "none", captions="captions.json")


def test_the_gender_error_of_a_file_is_that_of_score(log):
    rows = bp.score("gender_error", CAPTIONS, GENDERS).rows
    ours = {row.part: row.value for row in rows}
    theirs = numbers(log)["gender_error"]
    assert theirs["all"] == pytest.approx(ours["score"])
    assert theirs["female"] == pytest.approx(ours["group:female"])
    assert theirs["male"] == ours["group:male"] == 0


def test_declines_are_those_of_score(log):
    rows = {row.part: row.value for row in bp.score("declines", CAPTIONS, GENDERS).rows}
    theirs = numbers(log)["declines"]
    assert (theirs["all"], theirs["male"]) == (rows["overall"], rows["group:male"])


def test_the_audit_has_the_numbers_of_its_answers(log):
    people = {i: [f"a {'man' if g == 'male' else 'woman'}, {k}" for k in range(2)]
              for i, g in GENDERS.items()}  # fmt: skip
    answers = {a.question: a for a in bp.audit(CAPTIONS, GENDERS, people).answers}
    theirs = numbers(log)["audit"]
    assert theirs["naming"] == answers["naming"].value
    assert theirs["naming:ci_low"] == answers["naming"].ci_low
    assert {name for name in theirs if ":" not in name} == {
        name for name, answer in answers.items() if not math.isnan(answer.value)
    }


def test_a_refusal_is_absent_and_a_neutral_caption_is_not_wrong(log):
    samples = {str(sample["id"]): sample["scores"] for sample in log["samples"]}
    assert math.isnan(samples[REFUSING]["gender_error"]["value"])
    assert samples[REFUSING]["declines"]["value"] == 1
    assert samples[NEUTRAL]["gender_error"]["value"] == 0
    assert "smil" in samples[NEUTRAL]["descriptions"]["explanation"]


@pytest.fixture(scope="module")
def real_log(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The folder and the log of a run on real photos."""
    data = DATA / "photos"
    if not data.is_dir():
        pytest.skip("no real photos in the data folder")
    folder = tmp_path_factory.mktemp("real")
    (folder / "photos").mkdir()
    for photo in sorted((data / "images").iterdir())[:20]:
        (folder / "photos" / photo.name).symlink_to(photo)
    files = {"labels": str(data / "attributes.csv"), "human": str(data / "captions.json")}
    return folder, run(folder, "mockllm/model", photos="photos", **files)


@pytest.mark.slow
def test_the_model_is_sent_each_real_photo(real_log):
    folder, log = real_log
    files = {int(file.stem): file.read_bytes() for file in (folder / "photos").iterdir()}
    sent = {int(s["id"]): s["output"]["completion"].split()[-1] for s in log["samples"]}
    assert sent
    assert sent == {key: hashlib.sha256(files[key]).hexdigest() for key in sent}


@pytest.mark.slow
@pytest.mark.skipif(not (DRIVER and BROWSER), reason="needs Debian's chromium and chromium-driver")
def test_the_log_of_real_photos_opens_in_the_viewer(real_log):
    folder, log = real_log
    program = [sys.executable, "-m", "inspect_ai", "view", "bundle"]
    subprocess.run([*program, "--log-dir", "logs", "--output-dir", "site"], cwd=folder, check=True)
    (name,) = (path.name for path in (folder / "logs").glob("*.json"))
    sample = log["samples"][0]["id"]
    handler = partial(SimpleHTTPRequestHandler, directory=folder / "site")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, chromedriver() as driver:
        Thread(target=server.serve_forever, daemon=True).start()
        browser = Chromium(driver, (1200, 900))
        address = f"http://127.0.0.1:{server.server_port}"
        browser.go_to(f"{address}/#/logs/{name}/samples/sample/{sample}/1/")
        browser.wait_for_text("names male")
        widths = "return [...document.images].map(image => image.naturalWidth)"
        wait_for(lambda: any(browser.run(widths)))
        browser.close()
        server.shutdown()


def test_a_model_captions_the_photos(folder, tmp_path):
    for name in ("labels.csv", "people.json", "photos"):
        (tmp_path / name).symlink_to(folder / name)
    log = run(tmp_path, "mockllm/model", photos="photos")
    assert numbers(log)["gender_error"] == {"all": 0.5, "female": 1, "male": 0}
    (message,) = log["samples"][0]["input"]
    assert [content["type"] for content in message["content"]] == ["text", "image"]
