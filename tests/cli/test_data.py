"""``data validate``, ``data convert`` and ``data fetch``, through the door."""

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from bias_pipeline.io import digests, kept_files
from bias_pipeline.io.paths import choices_of, conf_dir
from tests.coco_folder import LABELS, MINE, labels, results, write_folder

VALIDATE = ("data", "validate", "dataset=coco")


def lines_of(printed: str) -> list[str]:
    """What was printed, with one blank between words."""
    return [" ".join(line.split()) for line in printed.splitlines()]


def test_validate_tells_what_is_there(ok, tmp_path):
    printed = ok(*VALIDATE, f"dataset.root={write_folder(tmp_path / 'data')}")
    assert set(lines_of(printed)) >= {
        "images 60",
        "model captions 60 of 60 images",
        "human captions 100 of 50 images",
        "gender male 29",
        "gender female 28",
        "gender: Unsure (no group) 1",
        "labelled, with model and human captions 50 of 57 (88%)",
        "images with objects 60",
    }


def blank(n: int, *texts: str) -> list[dict[str, Any]]:
    """Captions of which the first n are blank."""
    captions = results()
    return [{**c, "caption": texts[i % len(texts)]} if i < n else c for i, c in enumerate(captions)]


def test_validate_counts_blank_captions(ok, tmp_path):
    root = write_folder(tmp_path / "data", {MINE: blank(6, "", "NaN", " . ")})
    printed = ok(*VALIDATE, f"dataset.root={root}")
    assert "blank model captions 6 (10.0%)" in lines_of(printed)
    assert "mine: warning: 6 of 60 model captions (10.0%) are blank" in printed


def test_validate_refuses_mostly_blank_captions_unless_more_may_be(ok, ends, tmp_path):
    words = (
        *VALIDATE,
        f"dataset.root={write_folder(tmp_path / 'data', {MINE: blank(40, 'none')})}",
    )
    assert "40 of 60 model captions (66.7%) are blank" in ends(3, *words)
    ok(*words, "dataset.blank_limit=0.7")


def with_photos(folder: Path) -> tuple[str, ...]:
    """A data set whose images have a small picture each."""
    write_folder(folder / "coco")
    (folder / "photos").mkdir()
    for number in range(100, 160):
        Image.new("RGB", (4, 4)).save(folder / "photos" / f"{number}.png")
    words = ("dataset=coco", f"dataset.root={folder / 'coco'}")
    return (*words, f"dataset.images={folder / 'photos'}")


def test_validate_looks_into_pictures(run, ends, tmp_path):
    shown = with_photos(tmp_path)
    assert run("data", "validate", *shown)[0] == 0
    (tmp_path / "photos" / "107.png").write_bytes(b"\x89PNG")
    output = ends(3, "data", "validate", *shown)
    assert "1 of 60 pictures is broken" in output
    assert "107.png" in output


def test_validate_reads_every_picture_anew(run, ok, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(digests, "_WORTH", 1)
    monkeypatch.setattr(kept_files, "TICK", -(10**12))  # else what was just written is not noted
    shown = with_photos(tmp_path)
    run("data", "validate", *shown)
    (ledger,) = (tmp_path / "cache/bias_pipeline/digests").iterdir()
    noted = json.loads(ledger.read_text())
    noted["107.png"][-1] = "0" * 64
    ledger.write_text(json.dumps(noted))
    digests._ledger.cache_clear()
    output = ok("data", "validate", *shown)
    assert "1 of 60 pictures has changed since the last reading" in output
    assert "107.png" in output


def test_validate_writes_nothing(ok, tmp_path):
    ok("data", "validate", "dataset.n_images=100")
    assert list(tmp_path.glob("outputs/[!.]*")) == []


@pytest.mark.parametrize(
    ("files", "code", "messages"),
    [
        ({LABELS: labels().replace("Female", "Femal")}, 3, ["'Femal'"]),
        ({"captioners/part.json": results()[6:]}, 4, ["error: captioner=part: ", "mine"]),
    ],
    ids=["labels", "one of several captioners"],
)
def test_validate_ends_with_the_code_of_the_fault(ends, tmp_path, files, code, messages):
    root = write_folder(tmp_path / "data", files)
    printed = ends(code, *VALIDATE, f"dataset.root={root}", "captioner=all")
    assert [message for message in messages if message not in printed] == []


@pytest.mark.parametrize("name", choices_of(conf_dir() / "dataset"))
def test_fetch_knows_every_data_set(ok, name):
    assert f"dataset={name}" in ok("data", "fetch", name)


def test_fetch_tells_of_all(ok):
    n_data_sets = len(choices_of(conf_dir() / "dataset"))
    assert ok("data", "fetch").count("How to get it:") == n_data_sets


def test_convert_names_what_it_wrote(ok, tmp_path):
    root = write_folder(tmp_path / "data")
    printed = ok("data", "convert", str(root / MINE), "--out", "tables")
    assert printed.strip() == "tables/mine.parquet"


def test_a_captioner_is_named_as_for_run(ok):
    words = shlex.split(ok("data", "draw", "--out", "d", "--n-images", "40").splitlines()[-1])[4:-1]
    names = ["my (x), y.json", "é.json"]
    for name in names:
        shutil.copy("d/captioners/amplifier.json", name)
    first, second = (
        ok("data", "validate", "dataset=coco", *words, f"captioner={name}")
        for name in (f"'{names[0]}'", names[1])
    )
    assert ("my_x_y" in first, "é" in second) == (True, True)
    explained = ("seeds=1", "--resamples", "2", f"captioner='{names[0]}'")
    assert "my_x_y" in ok("analysis", "words", "dataset=coco", *words, *explained)


def test_what_is_drawn_is_read_as_it_says(ok):
    printed = ok("data", "draw", "--out", "my (new), scenes", "--n-images", "60", "--side", "32")
    words = shlex.split(printed.splitlines()[-1])[3:]
    assert "dataset coco" in ok(*words, "metric=gender_ratio", "stats.resamples=10", "logger=csv")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("draw --out scenes --side 16", "--side"),
        ("draw --world affect --leak 0.5 --out x", "--leak is for --world people only"),
        ("fetch cocoo", "did you mean 'coco'"),
        ("convert", "data convert [-h] [--out OUT] FILE"),
        ("validat", "did you mean 'validate'"),
    ],
)
def test_what_cannot_be_is_refused(ends, words, message):
    assert message in ends(2, "data", *words.split())
