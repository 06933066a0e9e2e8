"""Your own captions, through the door."""

import csv
import json
from pathlib import Path

import pytest

from tests.cli.commands import part, results
from tests.coco_folder import CAPTIONS, INSTANCES, LABELS, MINE, write_folder
from tests.coco_folder import results as captions
from tests.relic_file import write_table

QUICK = ("seeds=1", "stats.resamples=20", "logger=csv")


def table(folder: Path) -> list[dict[str, str]]:
    with (folder / "outputs" / "table.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """All files named one by one, as in the README."""
    root = write_folder(tmp_path / "data")
    keys = {"captions": CAPTIONS, "attributes": LABELS, "instances": INSTANCES}
    named = [f"dataset.{key}={root / name}" for key, name in keys.items()]
    return ["dataset=coco", *named, f"captioner={root / MINE}", *QUICK]


def test_files_named_one_by_one_are_scored(ok, words, tmp_path):
    printed = ok(*words, "metric=leakage,gender_error")
    text = "3 images belong to no group and are not scored: empty 1, Both 1, Unsure 1"
    assert f"{text} (except by assumed_group)" in printed
    assert {row["captioner"] for row in table(tmp_path)} == {"mine"}


def test_a_captioner_that_does_not_fit_ends_with_3(ends, words, tmp_path):
    write_folder(tmp_path / "data", {MINE: captions()[6:]})
    assert "6 of 60 labelled images have no caption" in ends(3, *words)


def test_without_strict_the_table_is_marked(ok, words, tmp_path):
    write_folder(tmp_path / "data", {MINE: captions()[6:]})
    assert "mine: 6 of 60 labelled images have no caption" in ok(*words, "dataset.strict=false")
    assert part(results(tmp_path)[0], "model")["coverage"] < 1


def test_a_sweep_of_files_is_a_sweep(ok, words, tmp_path):
    write_folder(tmp_path / "data", {"captioners/other.json": captions()})
    both = f"captioner={tmp_path / 'data' / MINE},{tmp_path / 'data/captioners/other.json'}"
    ok(*words[:-4], both, "metric=gender_error", *QUICK)
    assert {row["captioner"] for row in table(tmp_path)} == {"mine", "other"}


def test_captioner_all_is_the_folder(ok, tmp_path):
    names = ("other", "Modèle (v1,2)")
    root = write_folder(tmp_path / "data", {f"captioners/{n}.json": captions() for n in names})
    words = ("dataset=coco", f"dataset.root={root}", "metric=gender_error", *QUICK)
    ok(*words, "captioner=all")
    assert len(results(tmp_path)) == 3


def test_a_run_an_annotator_shows_what_their_disagreement_moves(ok, words, tmp_path):
    lines = ["image_id,attribute,value,annotator"]
    for i in range(60):
        pair = ("male", "female")[i % 2], ("male", "female")[i % 2 if i % 5 else 1]
        lines += [f"{100 + i},gender,{value},{who}" for value, who in zip(pair, "ab", strict=True)]
    (tmp_path / "judged.csv").write_text("\n".join(lines))
    others = [word for word in words if not word.startswith("dataset.attributes")]
    others.append(f"dataset.attributes={tmp_path}/judged.csv")
    printed = ok(*others, "dataset.annotator=all", "metric.positions=1")
    assert "2 annotators: Fleiss' kappa 0.80, 6 of 60 images judged differently" in printed
    assert "mine: lic lies between " in printed
    assert len({row["value"] for row in table(tmp_path) if row["part"] == "model"}) == 3


def test_an_absent_captioner_file_ends_with_5(ends, words, tmp_path):
    assert "nowhere.json is absent" in ends(5, *words, f"captioner={tmp_path}/nowhere.json")


def test_both_sides_of_relic_are_printed(ok, tmp_path):
    root = write_table(tmp_path / "data")
    words = ["dataset=relic", f"dataset.root={root}", "attribute=age", "captioner=all"]
    printed = ok(*words, "seeds=2", "stats.resamples=20", "logger=csv")
    assert "–" not in next(line for line in printed.splitlines() if " sat " in line)


def test_an_override_may_refer_to_another_key(ok, tmp_path):
    """As the study of age does to add words to a published list."""
    words = "masking.words=['${attribute.presets.lic.words}',somebody]"
    ok("dataset.n_images=300", words, *QUICK)
    (path,) = results(tmp_path)
    manifest = json.loads(path.read_text(encoding="utf-8"))["manifest"]
    assert words in manifest["overrides"]


@pytest.mark.parametrize(
    "command",
    [
        ("data", "validate", "dataset=coco", "dataset.attributes={labels}", "captioner={folder}"),
        (
            *("dataset=coco", "dataset.attributes={labels}", "captioner={folder}"),
            *("metric=gender_ratio", *QUICK),
        ),
        pytest.param(
            ("audit", "{folder}", "--attributes", "{labels}", "--dry-run"), marks=pytest.mark.slow
        ),
    ],
    ids=["validate", "run", "audit"],
)
def test_a_folder_of_samples_is_read_with_people_s_captions(ok, tmp_path, command):
    labels, folder = write_folder(tmp_path / "data") / LABELS, tmp_path / "llava-1.5-7b"
    folder.mkdir()
    samples = [
        {
            "doc_id": k,
            "filtered_resps": [row["caption"]],
            "coco_CIDEr": {"answer": ["a man"], "pred": row["caption"], "image_id": 100 + k},
        }
        for k, row in enumerate(captions())
    ]
    path = folder / "20260630_153532_samples_coco2014_cap_val.jsonl"
    path.write_text("\n".join(map(json.dumps, samples)))
    assert "human captions from 'answer'" in ok(
        *(word.format(labels=labels, folder=folder) for word in command)
    )
