"""``metric=retrieval_fairness`` and ``fit clip`` through the door."""

import csv
import json
from pathlib import Path

import pytest

from tests.cli.commands import results
from tests.corpora import DATA

SMALL = ("metric=retrieval_fairness", "stats.resamples=50", "seeds=2", "logger=csv")
SCENES = ("dataset=scenes", "dataset.n_images=100", "metric.k=10", "metric.concepts=[nurse,doctor]")


@pytest.fixture
def faces() -> str:
    """Real faces; skips where they are absent."""
    if not (DATA / "faces").is_dir():
        pytest.skip(f"no faces at {DATA / 'faces'}; set BIAS_PIPELINE_DATA to have this test run")
    return f"dataset.root={DATA / 'faces'}"


def rows(folder: Path, *, debias: str = "") -> dict[str, dict]:
    """The rows of the one result, or of that with a debiasing, by part."""
    for path in results(folder):
        read = json.loads(path.read_text())
        if debias in read["manifest"]["config"]["debias"]["_target_"]:
            return {row["part"]: row for row in read["rows"]}
    raise AssertionError(f"no result with {debias}")


@pytest.mark.slow
def test_real_faces_are_retrieved_with_named_weights(run, clip, faces, tmp_path):
    code, output = run(*SMALL, "dataset=fairface", faces, f"encoder.model={clip}")
    assert code == 0, output
    lines = rows(tmp_path)
    assert len([part for part in lines if part.startswith("concept:")]) == 145
    assert 0 < lines["score"]["value"] < lines["null"]["ci_high"] <= 1


def test_seven_groups_are_compared_in_the_same_command(run, clip, faces, tmp_path):
    words = ("dataset=fairface", faces, f"encoder.model={clip}", "attribute=ethnicity")
    code, output = run(*SMALL, *words, "metric.concepts=[nurse,doctor]")
    assert code == 0, output
    (table,) = tmp_path.glob("outputs/[!.]*/concepts.csv")
    with table.open() as file:
        lines = list(csv.DictReader(file))
    shares = [float(line) for key, line in lines[0].items() if key.startswith("share:")]
    assert (len(shares), sum(shares)) == (7, pytest.approx(1))


def test_without_weights_the_command_that_fetches_them_is_told(run, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "empty"))
    code, output = run(*SMALL, "dataset=fairface", "dataset.root=anywhere")
    assert code == 5
    assert "models prefetch openai/clip-vit-base-patch32" in output


def test_debiasings_are_swept_beside_none(run, clip, tmp_path):
    words = ("debias=none,subspace", "debias.k=4", f"encoder.model={clip}")
    code, output = run(*SMALL, *SCENES, *words)
    assert code == 0, output
    scores = [rows(tmp_path, debias=name)["score"]["value"] for name in ("Untouched", "Subspace")]
    assert scores[0] != scores[1]


def test_settings_of_other_debiasings_make_no_other_run_and_a_report_shows_queries(
    run, clip, tmp_path
):
    for k in (4, 5):
        run(*SMALL, *SCENES, f"debias.k={k}", f"encoder.model={clip}")
    assert len(results(tmp_path)) == 1
    code, output = run("report")
    assert code == 0, output
    assert "Queries by gender, scenes" in (tmp_path / "outputs" / "report.html").read_text()


def test_a_debiasing_that_is_unknown_is_refused_with_the_near_one(run):
    code, output = run(*SMALL, *SCENES, "debias=subspaces")
    assert (code, "did you mean 'subspace'" in output) == (2, True)


def test_more_than_there_is_ends_with_a_sentence(run, clip):
    code, output = run(*SMALL, *SCENES, "metric.k=500", f"encoder.model={clip}")
    assert (code, "metric.k=500: only" in output) == (2, True)


def test_a_fitted_clip_is_taken(run, tmp_path):
    words = ("dataset=scenes", "dataset.n_images=60", "--epochs", "1", "--batch-size", "25")
    code, output = run("fit", "clip", *words, "--out", "mine")
    assert code == 0, output
    code, output = run(*SMALL, *SCENES, "encoder.model=mine")
    assert code == 0, output
    assert "score" in rows(tmp_path)


def test_a_clip_is_fitted_to_a_captioners_captions(run):
    words = ("captioner=amplifier", "--captions", "model", "--epochs", "1", "--batch-size", "25")
    code, output = run("fit", "clip", "dataset.n_images=60", *words, "--out", "mine")
    assert code == 0, output
    assert '"captioner": "amplifier"' in Path("mine", "README.md").read_text()


def test_a_fit_needs_a_new_folder(run, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    code, output = run("fit", "clip", "--out", "mine")
    assert (code, "already exists" in output) == (5, True)


def test_a_fit_needs_pictures(run, tmp_path):
    (tmp_path / "labels.csv").write_text("id,gender\n1,male\n2,female\n")
    (tmp_path / "mine.json").write_text('[{"image_id": 1, "caption": "a man"}]')
    words = ("dataset=coco", "dataset.attributes=labels.csv", "captioner=mine.json")
    code, output = run("fit", "clip", *words, "dataset.strict=false", "--out", "clip")
    assert (code, "has no pictures" in output) == (3, True)


def test_models_show_knows_what_faces_need(run):
    _, output = run("models", "show", "metric=retrieval_fairness", "dataset=fairface")
    assert "openai/clip-vit-base-patch32" in output


def test_models_show_knows_that_scenes_need_nothing(run):
    code, output = run("models", "show", "metric=retrieval_fairness")
    assert (code, "needs no published weights" in output) == (0, True)
