"""``compare``, from the command line."""

import json
from pathlib import Path

import pytest

from bias_pipeline.datasets.scenes.captioners import CAPTIONERS
from bias_pipeline.datasets.scenes.dataset import write_scenes
from bias_pipeline.datasets.scenes.world import generate
from tests.cli.commands import COUNTING, SMALL, results


def test_folders_of_finished_runs_are_compared_and_not_run_again(run, tmp_path):
    words = (*SMALL[1:], "dataset.n_images=300", "seeds=2")
    run(*words, "captioner=amplifier,faithful")
    folders = [str(path.parent) for path in results(tmp_path)]
    code, text = run("compare", *folders)
    assert (code, "lic: amplifier" in text) == (0, True), text
    assert "cached, not run again: 2 of 2" in run("compare", "faithful", "amplifier", *words)[1]


def test_one_captioner_is_too_few(run):
    code, text = run("compare", "faithful", *SMALL)
    assert (code, "needs two captioners" in text) == (2, True)


def test_an_unknown_captioner_is_refused_before_any_work(run, tmp_path):
    code, text = run("compare", "faithful", "amplfier", *SMALL)
    assert (code, "did you mean 'amplifier'" in text) == (2, True)
    assert results(tmp_path) == []


def test_its_help_names_the_flag(run):
    code, text = run("compare", "--help")
    assert (code, "--fail-if-worse" in text) == (0, True)


def test_cells_of_different_metrics_are_not_compared(run, tmp_path):
    run(*COUNTING, "captioner=faithful", "metric=gender_error,gender_ratio")
    folders = [str(path.parent) for path in results(tmp_path)]
    assert run("compare", *folders)[0] == 3


def test_without_a_score_it_says_what_is_needed(run):
    code, text = run("compare", "faithful", "amplifier", "metric.sides=[model]", *SMALL)
    assert (code, "dataset.captions" in text) == (3, True), text


# --- a gate


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of COCO files, with captioners as files of one name in folders of their own."""
    root = tmp_path_factory.mktemp("files")
    names = ("faithful", "amplifier", "stereotyper")
    write_scenes(generate(n_images=600), root, {name: CAPTIONERS[name] for name in names})
    for name in names:
        place = root / name
        place.mkdir()
        (root / "captioners" / f"{name}.json").rename(place / "results.json")
    return root


def dataset_words(files: Path) -> list[str]:
    """Words of a small cell of the files; tests share their runs, which have one folder."""
    return [*words_alone(files), f"paths.outputs={files / 'outputs'}"]


def words_alone(files: Path) -> list[str]:
    """The same in the test's own folder."""
    return [
        "dataset=coco",
        f"dataset.attributes={files / 'attributes.csv'}",
        f"dataset.captions={files / 'annotations' / 'captions.json'}",
        "logger=csv",
        "seeds=2",
        "stats.resamples=100",
    ]


def rewritten(files: Path, folder: Path, caption: str, every: int = 1) -> str:
    """The captions of ``faithful``, every so many of them another."""
    content = json.loads((files / "faithful" / "results.json").read_text())
    for row in content[::every]:
        row["caption"] = caption
    folder.mkdir()
    (folder / "results.json").write_text(json.dumps(content))
    return str(folder / "results.json")


def named(files: Path, name: str) -> str:
    return str(files / name / "results.json")


def test_a_biased_captioner_is_less_fair_and_can_fail_a_teams_ci(run, files):
    pair = named(files, "amplifier"), named(files, "faithful")
    words = dataset_words(files)
    code, text = run("compare", *pair, *words)
    message = "lic: amplifier_results is less fair than faithful_results"  # of one file name
    assert (code, message in text) == (0, True), text
    assert run("compare", *pair, "--fail-if-worse", *words)[0] == 1
    assert run("compare", *pair[::-1], "--fail-if-worse", *words)[0] == 0


@pytest.mark.parametrize("metric", ["lic", "gender_error"])
def test_the_unbiased_does_not_lose_to_one_who_says_a_person(run, files, tmp_path, metric):
    person = rewritten(files, tmp_path / "person", "a person")
    words = (*dataset_words(files), f"metric={metric}", "--fail-if-worse")
    code, text = run("compare", named(files, "faithful"), person, *words)
    why = {"lic": "no verdict on", "gender_error": "nothing can be said of whom it names"}[metric]
    assert (code, why in text) == (3, True), text


def test_blanks_do_not_win(run, files, tmp_path):
    blank = rewritten(files, tmp_path / "blank", "NaN", every=10)
    code, text = run("compare", blank, named(files, "amplifier"), *dataset_words(files))
    assert (code, "of the captions of blank_results are blank" in text) == (0, True), text


def test_a_misgendering_captioner_does_not_pass(run, files):
    pair = named(files, "stereotyper"), named(files, "faithful")
    code, text = run(
        "compare", *pair, *dataset_words(files), "metric=gender_error", "--fail-if-worse"
    )
    assert (code, "gate failed: stereotyper_results is worse in 1 of 1" in text) == (1, True), text


def test_a_difference_below_the_margin_passes(run, files):
    pair = named(files, "stereotyper"), named(files, "faithful")
    words = (*dataset_words(files), "metric=gender_error", "--fail-if-worse", "--margin", "0.5")
    code, text = run("compare", *pair, *words)
    assert (code, "gate passed: stereotyper_results is worse in none of 1" in text) == (0, True), (
        text
    )


def test_what_the_margin_cannot_decide_does_not_pass(run, files):
    pair = named(files, "faithful"), named(files, "amplifier")
    words = (*dataset_words(files), "metric=gender_error", "--fail-if-worse", "--margin", "0.0001")
    code, text = run("compare", *pair, *words)
    assert (code, "cannot be decided by this margin" in text) == (3, True), text


def test_a_margin_below_nothing_is_refused(run, files):
    pair = named(files, "faithful"), named(files, "amplifier")
    code, text = run("compare", *pair, *dataset_words(files), "--margin", "-1")
    assert (code, "--margin" in text) == (2, True), text


def test_an_absent_file_costs_no_work(run, files, tmp_path):
    code, text = run("compare", named(files, "faithful"), "v2/results.json", *words_alone(files))
    assert (code, "v2/results.json" in text) == (5, True), text
    assert results(tmp_path) == []


def test_one_captioner_under_two_names_is_refused(run, files, tmp_path):
    copy = tmp_path / "copy.json"
    copy.write_bytes(Path(named(files, "faithful")).read_bytes())
    code, text = run("compare", named(files, "faithful"), str(copy), *dataset_words(files))
    assert (code, "have the same captions" in text) == (3, True), text


def test_attributes_are_swept(run, files):
    pair = named(files, "stereotyper"), named(files, "faithful")
    code, text = run(
        "compare",
        *pair,
        *dataset_words(files),
        "metric=gender_error,gender_ratio",
        "attribute=gender,age",
    )
    assert (code, "age: gender_ratio: no verdict" in text, "not judged" in text) == (0, True, True)
    assert "gender_error score (age)" in text
