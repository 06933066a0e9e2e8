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
def test_real_faces_are_retrieved_with_named_weights(ok, clip, faces, tmp_path):
    ok(*SMALL, "dataset=fairface", faces, f"encoder.model={clip}")
    lines = rows(tmp_path)
    assert len([part for part in lines if part.startswith("concept:")]) == 145
    assert 0 < lines["score"]["value"] < lines["null"]["ci_high"] <= 1


def test_seven_groups_are_compared_in_the_same_command(ok, clip, faces, tmp_path):
    words = ("dataset=fairface", faces, f"encoder.model={clip}", "attribute=ethnicity")
    ok(*SMALL, *words, "metric.concepts=[nurse,doctor]")
    (table,) = tmp_path.glob("outputs/[!.]*/concepts.csv")
    with table.open() as file:
        lines = list(csv.DictReader(file))
    shares = [float(line) for key, line in lines[0].items() if key.startswith("share:")]
    assert (len(shares), sum(shares)) == (7, pytest.approx(1))


def test_without_weights_the_command_that_fetches_them_is_told(ends, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "empty"))
    assert "models prefetch openai/clip-vit-base-patch32" in ends(
        5, *SMALL, "dataset=fairface", "dataset.root=anywhere"
    )


def test_debiasings_are_swept_beside_none(ok, clip, tmp_path):
    words = ("debias=none,subspace", "debias.k=4", f"encoder.model={clip}")
    ok(*SMALL, *SCENES, *words)
    scores = [rows(tmp_path, debias=name)["score"]["value"] for name in ("Untouched", "Subspace")]
    assert scores[0] != scores[1]


def test_settings_of_other_debiasings_make_no_other_run_and_a_report_shows_queries(
    run, ok, clip, tmp_path
):
    for k in (4, 5):
        run(*SMALL, *SCENES, f"debias.k={k}", f"encoder.model={clip}")
    assert len(results(tmp_path)) == 1
    ok("report")
    assert "Queries by gender, scenes" in (tmp_path / "outputs" / "report.html").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [("debias=subspaces", "did you mean 'subspace'"), ("metric.k=500", "metric.k=500: only")],
)
def test_what_cannot_be_is_refused(ends, clip, words, message):
    assert message in ends(2, *SMALL, *SCENES, words, f"encoder.model={clip}")


def test_a_clip_that_is_fitted_to_a_captioners_captions_is_taken(ok, tmp_path):
    words = ("captioner=amplifier", "--captions", "model", "--epochs", "1", "--batch-size", "25")
    ok("fit", "clip", "dataset=scenes", "dataset.n_images=60", *words, "--out", "mine")
    assert '"captioner": "amplifier"' in Path("mine", "README.md").read_text()
    ok(*SMALL, *SCENES, "encoder.model=mine", "seeds=1")
    assert "score" in rows(tmp_path)


def test_a_fit_needs_a_new_folder(ends, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    assert "already exists" in ends(5, "fit", "clip", "--out", "mine")


def test_a_fit_needs_pictures(ends, tmp_path):
    (tmp_path / "labels.csv").write_text("id,gender\n1,male\n2,female\n")
    (tmp_path / "mine.json").write_text('[{"image_id": 1, "caption": "a man"}]')
    words = ("dataset=coco", "dataset.attributes=labels.csv", "captioner=mine.json")
    printed = ends(3, "fit", "clip", *words, "dataset.strict=false", "--out", "clip")
    assert "has no pictures" in printed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("dataset=fairface",), "openai/clip-vit-base-patch32"),
        ((), "needs no published weights"),
    ],
)
def test_models_show_knows_what_is_needed(run, words, message):
    assert message in run("models", "show", "metric=retrieval_fairness", *words)[1]
