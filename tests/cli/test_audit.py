"""``audit`` and ``report``, from the command line, on files of the embedded data set."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from bias_pipeline.commands.main import main
from bias_pipeline.config.compose import cell
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.datasets.rating_tables import write_label_errors
from bias_pipeline.datasets.scenes.captioners import CAPTIONERS
from bias_pipeline.datasets.scenes.dataset import write_scenes
from bias_pipeline.datasets.scenes.world import generate
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.results.store import Result
from bias_pipeline.sweeps import audit as auditing
from bias_pipeline.sweeps import planning
from bias_pipeline.sweeps.audit import plan_for
from tests.cli.commands import SMALL


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of COCO files, with a captioner whose bias is known."""
    folder = tmp_path_factory.mktemp("scenes")
    write_scenes(generate(n_images=700), folder, {"amplifier": CAPTIONERS["amplifier"]})
    return folder


@dataclass(frozen=True)
class Audited:
    """What an audit left."""

    code: int
    text: str
    folder: Path


def audit(folder: Path, *words: str) -> Audited:
    """Run an audit in its own folder, in next to no time."""
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        code = main(["audit", *words, "--out", str(folder), "--minutes", "0.01"])
    return Audited(code, output.getvalue(), folder)


def captions(scenes: Path) -> str:
    return str(scenes / "captioners" / "amplifier.json")


def labels_of_gender(scenes: Path) -> str:
    """Write a label file of gender alone."""
    lines = (scenes / "attributes.csv").read_text().splitlines()
    path = scenes / "gender.csv"
    path.write_text("\n".join(",".join(line.split(",")[:2]) for line in lines))
    return str(path)


@pytest.fixture(scope="module")
def labels(scenes: Path) -> str:
    """A label file of gender alone."""
    return labels_of_gender(scenes)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with few images, where size plays no part."""
    folder = tmp_path_factory.mktemp("few")
    write_scenes(generate(n_images=300), folder, {"amplifier": CAPTIONERS["amplifier"]})
    return folder


@pytest.fixture(scope="module")
def few_labels(few: Path) -> str:
    """A label file of gender alone."""
    return labels_of_gender(few)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Audits that plan one metric, which trains nothing, whatever the time."""
    plan = auditing.Plan(["gender_error"], [], 1, 1.0)
    monkeypatch.setattr(auditing, "plan_for", lambda *_, **__: plan)


@pytest.fixture(scope="module")
def whole(scenes: Path, tmp_path_factory: pytest.TempPathFactory) -> Audited:
    """An audit with all there is: three attributes, about 30 s."""
    folder = tmp_path_factory.mktemp("whole")
    files = ["--captions", str(scenes / "annotations" / "captions.json")]
    files += ["--objects", str(scenes / "annotations" / "instances.json")]
    return audit(folder, captions(scenes), "--attributes", str(scenes / "attributes.csv"), *files)


@pytest.fixture(scope="module")
def alone(few: Path, few_labels: str, tmp_path_factory: pytest.TempPathFactory) -> Audited:
    """An audit without people's captions, from a file of an odd name.

    It has no captions of some images, and names the wrong group in some others.
    """
    rows = json.loads(Path(captions(few)).read_text())
    for row in rows[::10]:
        row["caption"] = "a woman with a dog"
    odd = tmp_path_factory.mktemp("odd") / "my cap's, [x]=1.json"
    odd.write_text(json.dumps(rows[:250]))
    return audit(tmp_path_factory.mktemp("alone"), str(odd), "--attributes", few_labels)


@pytest.mark.slow
def test_an_audit_ends_well(whole):
    assert whole.code == 0, whole.text


@pytest.mark.slow
def test_it_writes_a_report(whole):
    assert "amplifier" in (whole.folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_it_prints_where(whole):
    assert whole.text.splitlines()[-1] == str(whole.folder / "report.html")


@pytest.mark.slow
def test_it_finds_the_planted_bias(whole):
    (message,) = (line for line in whole.text.splitlines() if line.startswith("Does it give the"))
    assert "Yes, beyond chance: lic matched (gender" in message
    assert "leakage matched (gender" in message


@pytest.mark.slow
@pytest.mark.parametrize("attribute", ["gender", "race", "age"])
def test_every_attribute_of_the_labels_is_audited(whole, attribute):
    assert list(whole.folder.glob(f"lic-coco-amplifier-{attribute}-*/result.json"))


@pytest.mark.slow
def test_an_attribute_with_unknown_labels_is_passed_over(whole):
    assert "emotion is not audited" in whole.text


@pytest.mark.slow
def test_it_announces_its_time(whole):
    assert "seeds, about" in whole.text


@pytest.mark.slow
def test_it_says_what_there_is_no_time_for(whole):
    assert "no time for dbac" in whole.text


def test_a_path_with_blanks_and_quotes_is_a_path(alone):
    assert alone.code == 0, alone.text


def test_without_human_captions_it_says_what_cannot_be_said(alone):
    text = "Without human captions of the same images nothing can be said about amplification"
    assert text in alone.text


@pytest.mark.slow
def test_ids_that_fit_by_accident_permit_no_conclusion(scenes, labels, tmp_path):
    content = json.loads(Path(captions(scenes)).read_text())
    moved = [row if i % 12 == 0 else {**row, "image_id": f"x{i}"} for i, row in enumerate(content)]
    path = tmp_path / "accident.json"
    path.write_text(json.dumps(moved))
    people = ("--captions", str(scenes / "annotations" / "captions.json"))
    result = audit(tmp_path / "out", str(path), "--attributes", labels, *people)
    assert "There is no answer on gender" in result.text, result.text
    assert "of its images, less than 50%" in result.text
    assert "§ covers less than 50% of its images: no verdict" in result.text


@pytest.mark.slow
def test_blank_captions_are_announced(scenes, labels, tmp_path):
    content = json.loads(Path(captions(scenes)).read_text())
    for row in content[::10]:
        row["caption"] = "NaN"
    path = tmp_path / "blank.json"
    path.write_text(json.dumps(content))
    result = audit(tmp_path / "out", str(path), "--attributes", labels)
    assert "blank captions: 70 model, 0 human" in result.text, result.text
    assert "warning: 70 of 700 model captions (10.0%) are blank" in result.text


@pytest.mark.slow
def test_no_has_the_bound_that_is_asked_for(whole, scenes):
    files = ["--attributes", str(scenes / "attributes.csv")]
    files += ["--captions", str(scenes / "annotations" / "captions.json")]
    files += ["--objects", str(scenes / "annotations" / "instances.json")]
    wide = audit(whole.folder, captions(scenes), *files, "--negligible", "1")
    answers = [text.split("Does it name")[0] for text in (whole.text, wide.text)]
    assert ["No on " in answer for answer in answers] == [False, True], answers


@pytest.mark.slow
def test_a_report_of_an_audit_has_the_bound_that_is_asked_for(whole, tmp_path, run):
    cards = []
    for bound in ("0.02", "1"):
        card = tmp_path / f"{bound}.md"
        page = ("--out", str(tmp_path / "page.html"), "--card", str(card))
        assert run("report", str(whole.folder), "--negligible", bound, *page)[0] == 0
        cards.append("does not give " in card.read_text())
    assert cards == [False, True]


@pytest.mark.slow
def test_it_says_beforehand_how_small_a_bias_stays_unseen(run, scenes, labels):
    people = ("--captions", str(scenes / "annotations" / "captions.json"))
    _, text = run("audit", captions(scenes), "--attributes", labels, *people, "--dry-run")
    (line,) = (line for line in text.splitlines() if "stays unseen" in line)
    assert "points (lic matched)" in line
    assert "points (gender_error (named))" in line


@pytest.mark.slow
def test_a_dry_run_leaves_settings_blank_where_a_cell_has_the_default(run, few, few_labels):
    _, text = run("audit", captions(few), "--attributes", few_labels, "--dry-run")
    (line,) = (line for line in text.splitlines() if line.startswith("  declines"))
    assert line.split()[1:3] == ["to", "run"]


@pytest.mark.slow
def test_it_says_what_nothing_is_concluded_from(whole):
    (message,) = (line for line in whole.text.splitlines() if line.startswith("Not used: "))
    assert "ba_directional A→T (" in message
    assert "it changes when captions say more or less" in message


@pytest.mark.slow
def test_the_ratio_is_told_and_not_judged(whole):
    (message,) = (line for line in whole.text.splitlines() if line.startswith("How often does it"))
    assert "gender_ratio (" in message


def test_labels_of_nothing_known_are_refused(run, few, tmp_path):
    (tmp_path / "labels.csv").write_text("id,colour\n1,red\n")
    code, text = run("audit", captions(few), "--attributes", str(tmp_path / "labels.csv"))
    assert (code, "it has id ('1'), colour ('red')" in text) == (2, True), text


@pytest.mark.usefixtures("counting")
def test_a_table_without_a_known_column_is_told_once_what_it_has(run, few, few_labels, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(Path(few_labels).read_text().replace("bb_gender", "who"))
    words = ("audit", captions(few), "--attributes", str(path), "--dry-run")
    code, text = run(*words)
    assert (code, text.count("--label-column COLUMN"), text.count("Name yours")) == (2, 1, 1), text
    assert run(*words, "--label-column", "who")[0] == 0  # as the message advises


def test_without_peoples_captions_errors_are_told_all_the_same(alone):
    lines = alone.text.splitlines()
    (message,) = (line for line in lines if line.startswith("Does it name the wrong group?"))
    assert "gender_error (named) (gender " in message
    assert "give their captions (--captions FILE)" in message


def test_objects_are_asked_for_by_options_that_an_audit_has(alone):
    assert "(audit --objects FILE)" in alone.text
    assert "union" not in alone.text


def test_an_audit_asks_nobody_for_a_setting_that_they_did_not_make(alone):
    assert "labelled images have no caption" in alone.text
    assert "strict" not in alone.text


def test_captions_of_another_language_fail_no_job(few, few_labels, tmp_path):
    rows = json.loads(Path(captions(few)).read_text())
    for row in rows:
        row["caption"] = "ein Mensch mit einem Hund am Strand"
    path = tmp_path / "german.json"
    path.write_text(json.dumps(rows))
    people = str(few / "annotations" / "captions.json")
    result = audit(tmp_path / "out", str(path), "--attributes", few_labels, "--captions", people)
    assert (result.code, "jobs failed" in result.text) == (0, False), result.text
    assert "\n100% of the captioner's captions hold no English word" in result.text


@pytest.mark.usefixtures("counting")
def test_a_third_label_is_mapped_as_the_refusal_advises(run, few, few_labels, tmp_path):
    lines = Path(few_labels).read_text().splitlines()
    mixed = [
        f"{line.split(',')[0]},Non-binary" if i % 20 == 1 else line for i, line in enumerate(lines)
    ]
    path = tmp_path / "labels.csv"
    path.write_text("\n".join(mixed))
    words = ("audit", captions(few), "--attributes", str(path), "--dry-run")
    assert "--map Non-binary=GROUP" in run(*words)[1]
    for meaning in ("Unsure", "Both", "female"):
        code, text = run(*words, "--map", f"Non-binary={meaning}")
        assert (code, "Non-binary 15" in text) == (0, meaning != "female"), text


def test_a_table_of_one_group_is_told_how_many_there_are(run, few, few_labels, tmp_path):
    path = tmp_path / "men.csv"
    path.write_text(Path(few_labels).read_text().replace(",Female", ",Male"))
    code, text = run("audit", captions(few), "--attributes", str(path), "--dry-run")
    assert (code, " male, 0 female" in text) == (2, True), text


@pytest.mark.usefixtures("counting")
def test_captions_that_are_none_are_counted_by_group(few, few_labels, tmp_path):
    rows = json.loads(Path(captions(few)).read_text())
    for row in rows[::2]:
        row["caption"] = "I'm sorry, but I can't identify the people."
    path = tmp_path / "declining.json"
    path.write_text(json.dumps(rows))
    text = audit(tmp_path / "out", str(path), "--attributes", few_labels).text
    assert "decline to describe or are errors of a service: " in text
    assert "(male), " in text


def test_an_absent_file_is_named(run, few):
    code, text = run("audit", "nowhere.json", "--attributes", str(few / "attributes.csv"))
    assert (code, "nowhere.json is absent" in text, "captioner=" in text) == (5, True, False), text


@pytest.mark.parametrize("option", ["", "--attributes", "--captions", "--objects"])
def test_an_absent_file_is_answered_with_the_nearest_beside_it(run, few, option):
    near = few / "attributes.csv"
    absent = str(near.with_name("atributes.csv"))
    words = ["audit", absent if not option else captions(few), "--attributes", str(near)]
    code, text = run(*words, *([option, absent] if option else []))
    assert (code, f"{absent} is absent" in text, f"did you mean '{near}'" in text) == (
        5,
        True,
        True,
    )


def test_a_broken_file_is_refused(run, few, tmp_path):
    (tmp_path / "cut.json").write_text(json.dumps([{"image_id": 1, "caption": "a man"}])[:-5])
    code, text = run("audit", "cut.json", "--attributes", str(few / "attributes.csv"))
    assert (code, "cut.json" in text) == (3, True), text


def test_without_labels_it_says_how_it_is_used(run):
    code, text = run("audit", "captions.json")
    assert (code, "--attributes" in text) == (2, True)


@pytest.fixture
def three_angry(few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An audit whose label file has a group that is too small to be split."""
    ids = [caption["image_id"] for caption in json.loads(Path(captions(few)).read_text())]
    moods = ["anger"] * 3 + ["awe"] * 60 + ["fear"] * 60
    lines = [f"{image},{mood}" for image, mood in zip(ids, moods, strict=False)]
    (tmp_path / "moods.csv").write_text("\n".join(["id,emotion", *lines]))
    plan = auditing.Plan(["gender_error", "leakage"], [], 1, 1.0)
    monkeypatch.setattr(auditing, "plan_for", lambda *_, **__: plan)
    return ["audit", captions(few), "--attributes", str(tmp_path / "moods.csv")]


def test_e5_an_audit_scores_the_other_groups_and_names_the_tiny_one(run, three_angry):
    code, text = run(*three_angry)
    assert (code, "skipped: metric=leakage" in text) == (0, False), text
    assert "anger (3)" in text
    assert "attackers leave out groups of fewer than 20 images" in text


NO_CAPTIONS = Captions.from_texts([])


@pytest.mark.parametrize(("seconds", "dbac"), [(1e6, True), (0.0, False)])
def test_less_time_means_fewer_metrics(seconds, dbac, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    corpus = cell(["dataset.n_images=300"]).corpus()
    assert ("dbac" in plan_for(corpus, seconds).metrics) == dbac


def test_attackers_of_captions_are_run_at_equal_speech_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    corpus = cell(["dataset.n_images=300"]).corpus()
    plans = [plan_for(item, 1e6) for item in (corpus, corpus.rewrite({"human": NO_CAPTIONS}))]
    assert [plan.matched for plan in plans] == [("lic", "leakage"), ()]


def test_without_objects_tasks_are_attacked_at_equal_speech_in_the_time_of_the_metric(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    corpus = cell(["dataset.n_images=300"]).corpus()
    bare = replace(corpus, objects=None)
    assert plan_for(bare, 1e6).matched == ("lic", "leakage", "dbac")
    assert plan_for(bare, 0.0).matched == ("lic", "leakage")


@dataclass(frozen=True)
class Columns:
    """Cells of scenes whose label file has some attributes; nothing is run."""

    attributes: tuple[str, ...]

    def corpus(self, attribute: str) -> Corpus:
        if attribute not in self.attributes:
            raise NotApplicableError("no such column")
        return cell(["dataset.n_images=300", f"attribute={attribute}"]).corpus()

    def noisy(self, attribute: str) -> bool:
        del attribute
        return False

    def scored(self, attribute: str, plan: auditing.Plan) -> tuple[list[Result], int]:
        raise AssertionError(attribute, plan)


MINUTES = 0.01  # too few for all metrics


@pytest.mark.slow  # 200 draws a metric
def test_it_says_in_one_sentence_what_more_label_errors_would_move(scenes, labels, tmp_path):
    path = tmp_path / "errors.csv"
    write_label_errors(path, "gender", ("male", "female"), np.array([[0.7, 0.3], [0.3, 0.7]]))
    words = (captions(scenes), "--attributes", labels, "--label-noise", str(path))
    audited = audit(tmp_path / "out", *words)
    about_errors = [
        line for line in audited.text.splitlines() if line.startswith("If gender labels erred")
    ]
    assert len(about_errors) == 1
    assert "gender_error by +" in about_errors[0]
    assert "gender labels erred that often more" in (tmp_path / "out/report.html").read_text()


def test_a_table_of_errors_of_no_attribute_is_refused(run, scenes, labels, tmp_path):
    path = tmp_path / "errors.csv"
    path.write_text("attribute,group,label,share\nsex,male,male,1\n")
    words = (captions(scenes), "--attributes", labels, "--label-noise", str(path))
    code, text = run("audit", *words)
    assert code == 3
    assert f"{path}: says nothing of an attribute" in text


def test_a_further_column_of_labels_changes_nothing_of_what_is_run_for_gender(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    _, alone = auditing.planned(Columns(("gender",)), MINUTES)
    _, beside = auditing.planned(Columns(("gender", "race", "age")), MINUTES)
    assert alone["gender"].left_out
    assert beside["gender"] == alone["gender"]


def test_it_names_the_command_of_what_there_is_no_time_for(run, few, tmp_path, monkeypatch):
    plan = auditing.Plan(["gender_error"], ["dbac"], 1, 1.0)
    monkeypatch.setattr(auditing, "plan_for", lambda *_, **__: plan)
    monkeypatch.setattr(planning, "print_plan", lambda *_, **__: 0)  # what is printed before it
    table = [line.split(",") for line in (few / "attributes.csv").read_text().splitlines()]
    (tmp_path / "labels.csv").write_text("\n".join(",".join(row[:3]) for row in table))
    people = str(few / "annotations" / "captions.json")
    words = ["audit", captions(few), "--attributes", "labels.csv", "--captions", people]
    _, text = run(*words, "--dry-run")
    assert "race: no time for dbac; --minutes gives more, or: " in text, text
    assert "python -m bias_pipeline metric=dbac dataset=coco" in text, text


# --- report


def test_a_report_is_written_beside_the_runs(run, tmp_path):
    run(*SMALL)
    code, text = run("report")
    assert (code, text.strip()) == (0, "outputs/report.html")
    assert (tmp_path / "outputs" / "report.html").is_file()


@pytest.mark.parametrize("name", ["bias.pdf", "bias", "bias.html.gz", "."])
def test_a_report_is_a_page_and_says_so(run, name):
    code, text = run("report", "--out", name)
    assert (code, "is written as HTML; end it in .html" in text) == (2, True), text


def test_a_report_of_nothing_is_refused(run, tmp_path):
    (tmp_path / "empty").mkdir()
    assert run("report", "empty")[0] == 3


def test_a_wrong_flag_is_refused_with_the_usage(run):
    code, text = run("report", "--what")
    assert (code, "--out FILE" in text) == (2, True), text


def unseen(scenes: Path, tmp_path: Path, *, known: bool) -> Audited:
    """An audit of a captioner that calls everybody a man; ``known``: everybody's group is."""
    table = [line.split(",") for line in (scenes / "attributes.csv").read_text().splitlines()]
    lines = [",".join(row[:2]) for row in table if not (known and row[1] == "Unsure")]
    (tmp_path / "labels.csv").write_text("\n".join(lines))
    images = {line.split(",")[0] for line in lines[1:]}
    content = json.loads(Path(captions(scenes)).read_text())
    man = [{**row, "caption": "a man"} for row in content if str(row["image_id"]) in images]
    (tmp_path / "man.json").write_text(json.dumps(man))
    people = ("--captions", str(scenes / "annotations" / "captions.json"))
    words = ("--attributes", str(tmp_path / "labels.csv"), *people)
    return audit(tmp_path / "out", str(tmp_path / "man.json"), *words)


@pytest.mark.slow
def test_who_assumes_what_nobody_can_see_is_told(scenes, tmp_path):
    sentence = unseen(scenes, tmp_path, known=False)
    text = "Does it assume what nobody can see? Yes, beyond chance: assumed_group (model) (gender 1"
    assert (sentence.code, text in sentence.text) == (0, True), sentence.text


@pytest.mark.slow
def test_where_everybodys_group_is_known_the_audit_goes_on(scenes, tmp_path):
    sentence = unseen(scenes, tmp_path, known=True)
    assert sentence.code == 0
    assert "annotators could not tell the group of 'gender'" in sentence.text
    assert "Does it assume" not in sentence.text
    assert "Does it name the wrong group? " in sentence.text
