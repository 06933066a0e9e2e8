"""``compare``, from the command line."""

import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bias_pipeline.commands import results as command_results
from bias_pipeline.errors import TooFewImagesError, UndecidedError
from bias_pipeline.metrics.counting.gender_error import GroupAccuracy
from bias_pipeline.report.gate import Comparison, Decision
from bias_pipeline.scenes.captioners import CAPTIONERS
from bias_pipeline.scenes.dataset import write_scenes
from bias_pipeline.scenes.world import generate
from bias_pipeline.stats.bootstrap import Estimate
from tests.cli.commands import COUNTING, SMALL, results
from tests.report.test_tables import result

LIC = ("metric.positions=1", "metric.learning_curve=false", "seeds=2")
ERRORS = ("metric=gender_error", "--fail-if-worse")


def test_folders_of_finished_runs_are_compared_and_not_run_again(ok, tmp_path):
    words = (*SMALL[1:], "dataset.n_images=300", "seeds=2")
    ok(*words, "captioner=amplifier,faithful")
    folders = [str(path.parent) for path in results(tmp_path)]
    assert "between amplifier and faithful" in ok("compare", *folders)
    assert "cached, not run again: 2 of 2" in ok("compare", "faithful", "amplifier", *words)


def test_folders_of_several_runs_are_told_from_captioners(ok, ends):
    ok("captioner=faithful,amplifier", "metric=gender_error", *SMALL)
    assert "outputs: holds 2 runs, and compare takes" in ends(2, "compare", "outputs", "x")


def test_cells_of_different_metrics_are_not_compared(ok, ends, tmp_path):
    ok(*COUNTING, "captioner=faithful", "metric=gender_error,gender_ratio")
    ends(3, "compare", *(str(path.parent) for path in results(tmp_path)))


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("faithful", 2, "needs two captioners"),
        ("faithful faithful", 2, "or one and --baseline; you gave faithful alone"),
        ("faithful amplfier", 2, "did you mean 'amplifier'"),
        ("faithful amplifier --margin -1", 2, "--margin"),
        (
            "faithful amplifier --margin 5 metric=gender_error",
            2,
            "margin 5: no difference of gender",
        ),
        (
            "faithful amplifier --margin 5 metric=gender_ratio,gender_error",
            2,
            "margin 5: no difference of gender_error",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused_before_any_work(ends, tmp_path, words, code, message):
    assert message in ends(code, "compare", *words.split(), *SMALL)
    assert results(tmp_path) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "compare a.csv b.csv metric=gender_error",
            "for a file add dataset=coco dataset.attributes=LABELS",
        ),
        (
            "dataset=coco dataset.attributes=labels.csv captioner=mine metric=gender_error",
            "mine: the name of a file of captions ends in .json, .jsonl",
        ),
        (
            "compare faithful --config-dir folder",
            "compare needs two captioners or more, or one and --baseline; you gave 1",
        ),
        ("audit -x.csv --attributes l.csv", "write ./-x.csv for the file -x.csv"),
        ("compare -x.csv b.csv", "write ./-x.csv for the file -x.csv"),
    ],
)
def test_files_that_are_named_wrongly_are_refused_with_the_way_to_name_them(
    ends, tmp_path, words, message
):
    for name in ("a.csv", "b.csv", "-x.csv", "mine"):
        (tmp_path / name).write_text("image_id,caption\n1,a man\n")
    (tmp_path / "labels.csv").write_text("id,bb_gender\n1,Male\n")
    (tmp_path / "folder" / "attribute").mkdir(parents=True)
    (tmp_path / "folder" / "attribute" / "mood.yaml").write_text("name: mood\n")
    assert message in ends(2, *words.split())


UNDECIDED = Decision(
    *("lic", "score", "score", "gender", "a", "b"),
    *(Estimate(0.1, *[math.nan] * 5, n_seeds=0), "fraction", None, ("doubt",)),
)


@pytest.mark.parametrize(
    ("used", "alignment", "ways"),
    [
        ("gender_error", "", ["ba_mals"]),
        ("lic", "constant", ["ba_mals", "gender_error", "alignment=matched"]),
        ("lic", "matched", ["ba_mals", "gender_error"]),
    ],
)
def test_a_gate_without_a_decision_advises_what_was_not_tried(used, alignment, ways):
    tried = [result(metric=used, alignment=alignment)]
    with pytest.raises(UndecidedError) as refusal:
        command_results._gate(Comparison([], [UNDECIDED]), tried)
    known = ("ba_mals", "gender_error", "alignment=matched")
    assert [way for way in known if way in str(refusal.value)] == ways


@pytest.mark.parametrize(("reach", "advised"), [(0.89, False), (0.9, True), (0.96, False)])
def test_a_gate_advises_to_remove_words_that_people_cannot_reach(reach, advised):
    one = result(metric="lic", alignment="matched")
    rows = [*one.rows, replace(one.rows[0], part="matched:reach", value=reach)]
    with pytest.raises(UndecidedError) as refusal:
        command_results._gate(Comparison([], [UNDECIDED]), [replace(one, rows=rows)])
    assert ("(alignment=matched_both)" in str(refusal.value)) is advised


def test_a_run_that_a_setting_does_not_change_is_compared_under_it(ok):
    ok(*COUNTING, "captioner=faithful")  # of one sentence: the same run by first sentences
    printed = ok("compare", "faithful", "verbose", *COUNTING, "text.unit=sentence")
    assert "cached, not run again: 1 of 2 jobs" in printed
    assert "gender_error (by named): no significant difference" in printed


def test_runs_are_not_compared_with_captioners(ok, ends, tmp_path):
    ok(*COUNTING, "captioner=faithful")
    (path,) = results(tmp_path)
    printed = ends(2, "compare", str(path.parent), "amplifier", *COUNTING)
    assert "is the folder of a run and amplifier is not" in printed


def test_without_a_score_it_says_what_is_needed(ends):
    words = ("faithful", "amplifier", "metric.sides=[model]", *SMALL)
    assert "dataset.captions" in ends(3, "compare", *words)


# --- a gate


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """A folder of COCO files, with captioners as files of one name in folders of their own."""
    root = tmp_path_factory.mktemp("files")
    names = ("faithful", "amplifier", "stereotyper")
    write_scenes(generate(n_images=600), root, {name: CAPTIONERS[name] for name in names})
    for name in names:
        (root / name).mkdir()
        (root / "captioners" / f"{name}.json").rename(root / name / "results.json")
    rewrite(root, "person", "a person")
    rewrite(root, "blank", "NaN", every=10)
    rewrite(root, "few", "a person")
    rows = json.loads((root / "few" / "results.json").read_text())
    (root / "few" / "results.json").write_text(json.dumps(rows[:2]))
    shutil.copytree(root / "faithful", root / "copy")
    return root


def rewrite(root: Path, name: str, caption: str, every: int = 1) -> None:
    """The captions of ``faithful``, every so many of them another."""
    content = json.loads((root / "faithful" / "results.json").read_text())
    for row in content[::every]:
        row["caption"] = caption
    (root / name).mkdir()
    (root / name / "results.json").write_text(json.dumps(content))


@pytest.fixture
def words(files) -> list[str]:
    """Words of a small cell of the files; tests share their runs, which have one folder."""
    return [
        "dataset=coco",
        f"dataset.attributes={files / 'attributes.csv'}",
        f"dataset.captions={files / 'annotations' / 'captions.json'}",
        "logger=csv",
        "seeds=2",
        "stats.resamples=100",
        f"paths.outputs={files / 'outputs'}",
    ]


BIASED, ERRING = ("amplifier", "faithful"), ("stereotyper", "faithful")


@pytest.mark.parametrize(
    ("pair", "more", "code", "message"),
    [
        (BIASED, LIC, 0, "lic: amplifier_results is less fair than faithful_results"),
        (BIASED, (*LIC, "--fail-if-worse"), 1, ""),
        (BIASED[::-1], (*LIC, "--fail-if-worse"), 0, ""),
        (("faithful", "person"), (*LIC, "--fail-if-worse"), 6, "no verdict on"),
        (("faithful", "person"), ERRORS, 6, "too few to measure which groups it names"),
        (("blank", "amplifier"), LIC, 0, "of the captions of blank_results are blank"),
        (ERRING, ERRORS, 1, "gate failed: stereotyper_results is worse in 1 of 1"),
        (
            ERRING,
            (*ERRORS, "--margin", "0.5"),
            0,
            "stereotyper_results is worse by more than the margin in 0 of 1 comparison",
        ),
        (BIASED[::-1], (*ERRORS, "--margin", "0.0001"), 6, "cannot be decided by this margin"),
        (("faithful", "copy"), LIC, 3, "have the same captions"),
    ],
    ids=[
        "a biased captioner is less fair",
        "and can fail a team's CI",
        "its rival passes",
        "the unbiased does not lose to one who says a person",
        "nor in errors",
        "blanks do not win",
        "a misgendering captioner does not pass",
        "a difference below the margin passes",
        "what the margin cannot decide does not pass",
        "one captioner under two names is refused",
    ],
)
def test_what_a_gate_says(ends, files, words, pair, more, code, message):
    captioners = [str(files / name / "results.json") for name in pair]
    assert message in ends(code, "compare", *captioners, *words, *more)


LEAKS_AND_ERRS = ("metric=lic,gender_error", "dataset.strict=false")


def test_a_metric_that_does_not_apply_to_one_is_named_and_the_rest_compared(ok, files, words):
    captioners = [str(files / name / "results.json") for name in ("faithful", "few", "stereotyper")]
    written = ("--junit", "x.xml", "--json", "x.json")
    output = ok("compare", *captioners, *words, *LEAKS_AND_ERRS, *written)
    assert re.search(r"skipped: lic \(captioner=.*few.*\): .*: attackers need two groups", output)
    assert re.search(r"\nlic: .*faithful_results.*stereotyper_results", output)
    assert "gender_error (by named): faithful_results is fairer than stereotyper_res" in output
    (skipped,) = json.loads(Path("x.json").read_text())["skipped"]
    assert skipped["cell"] == "metric=lic captioner='…/results.json'"
    assert "attackers need two groups" in skipped["reason"]
    suite = ElementTree.parse("x.xml").getroot()
    case = next(one for one in suite if str(one.get("name")).startswith("metric=lic captioner="))
    (reason,) = case.iter("skipped")
    assert "attackers need two groups" in str(reason.get("message"))
    n_skipped = sum(1 for _ in suite.iter("skipped"))
    assert (suite.get("tests"), suite.get("skipped")) == (str(len(suite)), str(n_skipped))


def test_a_file_whose_name_contains_an_equals_sign_is_a_captioner(ok, files, words, tmp_path):
    shutil.copy(files / "stereotyper" / "results.json", tmp_path / "step=9, new.json")
    other = str(files / "faithful" / "results.json")
    output = ok("compare", "step=9, new.json", other, *words, "metric=gender_error")
    assert "gender_error (by named): step_9_new is less fair than" in output


@pytest.fixture
def refusal(monkeypatch) -> str:
    """The pattern of what is said where ``group_accuracy`` has too few images of ``amplifier``."""
    computed = GroupAccuracy.compute

    def compute(self, corpus, *, splits):
        if "amplifier" in corpus.file:
            raise TooFewImagesError("metric.k=1000: only 4 images are retrieved from")
        return computed(self, corpus, splits=splits)

    monkeypatch.setattr(GroupAccuracy, "compute", compute)
    return r"skipped: (group_accuracy \(|metric=group_accuracy )captioner=.*: metric\.k="


def test_a_metric_that_asks_for_too_many_images_of_one_is_skipped(ok, files, words, refusal):
    captioners = [str(files / name / "results.json") for name in BIASED[::-1]]
    output = ok("compare", *captioners, *words, "metric=gender_error,group_accuracy")
    assert re.search(refusal, output)


def test_a_baseline_that_skipped_a_metric_decides_as_captions_do(ok, files, words, refusal):
    old, new = (str(files / name / "results.json") for name in BIASED)
    words = [*words, "metric=gender_error,group_accuracy", "stats.resamples=120"]
    ok("compare", old, new, *words, "--json", "x.json")
    outputs = [ok("compare", new, *pair, *words) for pair in [(old,), ("--baseline", "x.json")]]
    assert [bool(re.search(refusal, output)) for output in outputs] == [True, True]
    decided = [re.findall(r"\(difference .*\)", output) for output in outputs]
    assert decided[0] == decided[1] != []


def test_a_metric_that_does_not_apply_to_the_first_decides_nothing(ok, files, words):
    captioners = [str(files / name / "results.json") for name in ("few", "faithful", "stereotyper")]
    output = ok("compare", *captioners, *words, *LEAKS_AND_ERRS)
    assert not re.search(r"\nlic: .*faithful_results.*stereotyper_results", output)
    assert "gender_error (by named): no verdict on few_results and faithful_results" in output


@pytest.mark.parametrize("names", [("few", "faithful"), ("faithful", "few")])
def test_where_no_metric_applies_to_both_nothing_is_compared(ends, files, words, names):
    captioners = [str(files / name / "results.json") for name in names]
    text = ends(3, "compare", *captioners, *words, *LIC, LEAKS_AND_ERRS[1])
    assert re.search(r"error: no metric can be compared \(captioner=.*few.*: attackers need", text)


def test_a_metric_without_its_model_is_not_passed_over(ends, files, words):
    captioners = [str(files / name / "results.json") for name in ("faithful", "stereotyper")]
    metrics = ("metric=gender_error,lic", "encoder=minilm", "encoder.model=nowhere")
    text = ends(3, "compare", *captioners, *words, *metrics)
    assert "not every captioner could be scored; see above" in text


def test_an_absent_file_costs_no_work(ends, files, words, tmp_path):
    pair = (str(files / "faithful" / "results.json"), "v2/results.json")
    assert "v2/results.json" in ends(5, "compare", *pair, *words[:-1])
    assert results(tmp_path) == []


def test_attributes_are_swept(ok, files, words):
    captioners = [str(files / name / "results.json") for name in ERRING]
    swept = ("metric=gender_error,gender_ratio", "attribute=gender,age")
    text = ok("compare", *captioners, *words, *swept)
    assert "age: gender_ratio: no verdict" in text
    assert "no conclusion is drawn" in text
    assert "gender_error score (age)" in text
