"""``audit`` and ``report``, from the command line, on files of the embedded data set."""

import io
import json
import re
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from bias_pipeline.commands.main import main
from bias_pipeline.data.rating_tables import write_label_errors
from bias_pipeline.run import planning
from bias_pipeline.scenes.captioners import CAPTIONERS
from bias_pipeline.scenes.dataset import write_scenes
from bias_pipeline.scenes.world import generate
from tests.cli.commands import SMALL
from tests.cli.test_check_lists import LISTS


@dataclass(frozen=True)
class Audited:
    """What an audit left."""

    code: int
    text: str
    folder: Path


def audit(folder: Path, *words: str) -> Audited:
    """Run an audit in its own folder, in next to no time, with an answer in a sentence each."""
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        code = main(["audit", *words, "--notes", "--out", str(folder), "--minutes", "0.01"])
    return Audited(code, output.getvalue(), folder)


@dataclass(frozen=True)
class Files:
    """A folder of COCO files, with a captioner whose bias is known."""

    root: Path

    def __post_init__(self) -> None:
        (self.root / "gender.csv").write_text("\n".join(",".join(row) for row in self.columns(2)))

    def __getattr__(self, name: str) -> str:
        places = {
            "captions": "captioners/amplifier.json",
            "people": "annotations/captions.json",
            "objects": "annotations/instances.json",
            "attributes": "attributes.csv",
            "labels": "gender.csv",  # of gender alone
        }
        return str(self.root / places[name])

    def columns(self, n: int) -> list[list[str]]:
        """The first columns of the labels, with their head."""
        lines = (self.root / "attributes.csv").read_text().splitlines()
        return [line.split(",")[:n] for line in lines]

    def change_captions(
        self, path: Path, caption: Callable[[int, str], str], every: int = 1
    ) -> str:
        """Write the captions, some of them others; returns the file."""
        rows = json.loads(Path(self.captions).read_text())
        for number in range(0, len(rows), every):
            rows[number]["caption"] = caption(number, rows[number]["caption"])
        path.write_text(json.dumps(rows))
        return str(path)


def files(folder: Path, n_images: int) -> Files:
    write_scenes(generate(n_images=n_images), folder, {"amplifier": CAPTIONERS["amplifier"]})
    return Files(folder)


@pytest.fixture(scope="module")
def scenes(tmp_path_factory) -> Files:
    return files(tmp_path_factory.mktemp("scenes"), 700)


@pytest.fixture(scope="module")
def few_scenes(tmp_path_factory) -> Files:
    """The same with few images, where size plays no part."""
    return files(tmp_path_factory.mktemp("few"), 300)


@pytest.fixture
def counting(plan) -> None:
    """Audits that train nothing."""
    plan("gender_error")


# --- an audit with all there is


@pytest.fixture(scope="module")
def whole_audit(scenes, tmp_path_factory) -> Audited:
    """Three attributes, about 30 s."""
    words = ("--attributes", scenes.attributes, "--captions", scenes.people)
    folder = tmp_path_factory.mktemp("whole")
    return audit(folder, scenes.captions, *words, "--objects", scenes.objects)


def lines(audited: Audited, start: str) -> str:
    """The lines that start so."""
    return "\n".join(line for line in audited.text.splitlines() if line.startswith(start))


@pytest.mark.slow
def test_an_audit_ends_well_with_a_report_whose_place_is_printed(whole_audit):
    assert (whole_audit.code, whole_audit.text.splitlines()[-1]) == (
        0,
        str(whole_audit.folder / "report.html"),
    )
    assert "amplifier" in (whole_audit.folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "message"),
    [
        pytest.param("Does it leak gender? Yes: ", "lic ", id="bias"),
        pytest.param("gender: Does it leak the", "leakage matched ", id="leakage"),
        pytest.param("gender: Not used: ", "ba_directional A→T ", id="no conclusion"),
        pytest.param("gender: Not used: ", "they change with longer or shorter", id="and why"),
        pytest.param("How often does it", "gender_ratio ", id="the ratio is not judged"),
    ],
)
def test_each_question_has_its_answer(whole_audit, start, message):
    assert message in lines(whole_audit, start)


@pytest.mark.slow
def test_no_has_the_bound_that_is_asked_for(whole_audit, scenes):
    words = ("--attributes", scenes.attributes, "--captions", scenes.people)
    words += ("--objects", scenes.objects, "--negligible", "1")
    wide = audit(whole_audit.folder, scenes.captions, *words)
    answers = [" ".join(audited.text.split()) for audited in (whole_audit, wide)]
    assert ["Does it leak age? No: at most " in answer for answer in answers] == [False, True]
    assert "(100.0 points count as none)" in answers[1]


@pytest.mark.slow
def test_a_report_of_an_audit_has_the_bound_that_is_asked_for(whole_audit, tmp_path, ok):
    cards = []
    for bound in ("0.02", "1"):
        card = tmp_path / f"{bound}.md"
        page = ("--out", str(tmp_path / "page.html"), "--card", str(card))
        ok("report", str(whole_audit.folder), "--negligible", bound, *page)
        cards.append("Does it leak age? | No: at most " in card.read_text())
    assert cards == [False, True]


# --- an audit of the captioner alone


@pytest.mark.slow
def test_each_attribute_has_a_block_of_answers(whole_audit):
    blocks = re.findall(r"(?m)^(age|gender|race): [\d,]+ \w+, [\d,]+ \w+$", whole_audit.text)
    assert blocks == ["age", "gender", "race"]
    for attribute in blocks:
        assert list(whole_audit.folder.glob(f"lic-coco-amplifier-{attribute}-*/result.json"))
    for announced in ("emotion is not audited", "seeds, about", "no time for dbac"):
        assert announced in whole_audit.text


@pytest.fixture(scope="module")
def audit_alone(few_scenes, tmp_path_factory) -> Audited:
    """Without human captions, from a file of an odd name.

    It has no captions of some images, and names the wrong group in some others.
    """
    odd = tmp_path_factory.mktemp("odd") / "my cap's, [x]=1.json"
    few_scenes.change_captions(odd, lambda *_: "a woman with a dog", every=10)
    odd.write_text(json.dumps(json.loads(odd.read_text())[:250]))
    return audit(tmp_path_factory.mktemp("alone"), str(odd), "--attributes", few_scenes.labels)


def test_a_path_with_blanks_and_quotes_is_a_path(audit_alone):
    assert audit_alone.code == 0, audit_alone.text


def test_without_human_captions_it_says_what_cannot_be_said(audit_alone):
    text = "Without human captions of the same images amplification cannot be measured"
    assert text in " ".join(audit_alone.text.split())


def test_without_human_captions_errors_are_told_all_the_same(audit_alone):
    assert "Cannot tell: no annotators' captions; gender_error " in audit_alone.text
    message = lines(audit_alone, "Does it name the wrong group?")
    assert "(--captions FILE, in Python human=...)" in message


def test_metrics_that_do_not_apply_are_in_the_json_file(ok, plan, few_scenes, tmp_path):
    plan("gender_error", "dpa")
    labels = ("--attributes", few_scenes.labels)
    ok("audit", few_scenes.captions, *labels, "--json", str(tmp_path / "x.json"), "--out", "out")
    (skipped,) = json.loads((tmp_path / "x.json").read_text())["skipped"]
    assert skipped["cell"] == "metric=dpa"
    assert "has no objects for these images" in skipped["reason"]


@pytest.mark.parametrize(
    ("there", "absent"),
    [("(audit --objects FILE)", "union"), ("labelled images have no caption", "strict")],
)
def test_an_audit_asks_for_options_that_it_has(audit_alone, there, absent):
    assert (there in audit_alone.text, absent in audit_alone.text) == (True, False)


# --- what captions and labels are


@pytest.mark.usefixtures("counting")
def test_ids_that_fit_by_accident_permit_no_conclusion(scenes, tmp_path):
    content = json.loads(Path(scenes.captions).read_text())
    moved = [row if i % 12 == 0 else {**row, "image_id": f"x{i}"} for i, row in enumerate(content)]
    (tmp_path / "accident.json").write_text(json.dumps(moved))
    words = ("--attributes", scenes.labels, "--captions", scenes.people)
    text = audit(tmp_path / "out", str(tmp_path / "accident.json"), *words, "--tables").text
    assert "Not tested: whether it names the wrong gender" in text, text
    assert "of its images; 50% are needed" in text


@pytest.mark.usefixtures("counting")
def test_blank_captions_are_announced(few_scenes, tmp_path):
    path = few_scenes.change_captions(tmp_path / "blank.json", lambda *_: "NaN", every=10)
    text = audit(tmp_path / "out", path, "--attributes", few_scenes.labels).text
    assert "blank captions: 30 model, 0 human" in text, text
    assert "warning: 30 of 300 model captions (10.0%) are blank" in text
    assert re.search(r"(?m)^30 of 300 model captions", text)  # below the answers


def test_captions_of_another_language_fail_no_job(few_scenes, tmp_path):
    german = few_scenes.change_captions(
        tmp_path / "german.json", lambda *_: "ein Mensch mit einem Hund am Strand"
    )
    words = ("--attributes", few_scenes.labels, "--captions", few_scenes.people)
    result = audit(tmp_path / "out", german, *words)
    assert (result.code, "jobs failed" in result.text) == (0, False), result.text
    reason = "the word lists are English, and 0% of the captioner's captions are"
    assert f" gender cannot be tested: {reason}; translate" in " ".join(result.text.split())
    assert result.text.count("Cannot tell: the word lists are English") >= 2
    assert f"? The{reason.removeprefix('the')}" in " ".join(result.text.split())
    assert "Not used: " not in result.text
    assert "name no group" not in result.text


def test_of_words_that_people_cannot_reach_the_others_are_scored(ok, plan, few_scenes, tmp_path):
    plan(matched=("lic",))
    longer = few_scenes.change_captions(
        tmp_path / "long.json", lambda _, text: f"{text} calmly", every=2
    )
    words = ("--attributes", few_scenes.labels, "--captions", few_scenes.people)
    text = ok("audit", longer, *words, "--notes")
    removed = "% of the model's words as often as the model: the other words are removed for scores"
    assert f"{removed} at equal style (lic; alignment=matched_both)" in " ".join(text.split())
    assert re.search(r"on the \d\d % of its words that annotators use as often", text)


PARAGRAPH = "The image depicts {}. Everything looks calm and bright, with soft colors in the scene."


@pytest.mark.parametrize("options", [(), ("--unit", "caption")])
def test_paragraphs_are_compared_by_their_first_sentence_too(
    options, ok, plan, few_scenes, tmp_path
):
    """Unless the user says what is scored."""
    plan(matched=("lic",))
    longer = few_scenes.change_captions(
        tmp_path / "long.json", lambda _, text: PARAGRAPH.format(text.rstrip("."))
    )
    words = ("--attributes", few_scenes.labels, "--captions", few_scenes.people, *options)
    text = ok("audit", longer, *words, "--notes")
    tried = "first sentences are compared too (lic, without preambles): annotators use"
    assert (tried in " ".join(text.split())) is (not options)
    assert ("--unit sentence" in text) is (not options)


@pytest.mark.usefixtures("counting")
def test_captions_that_are_none_are_counted_by_group(few_scenes, tmp_path):
    declined = "I'm sorry, but I can't identify the people."
    path = few_scenes.change_captions(tmp_path / "declining.json", lambda *_: declined, every=2)
    text = audit(tmp_path / "out", path, "--attributes", few_scenes.labels).text
    assert "decline to describe or are errors of a service: " in text
    assert "(male), " in text


@pytest.mark.usefixtures("counting")
def test_a_third_label_is_mapped_as_the_refusal_advises(ok, ends, few_scenes, tmp_path):
    rows = few_scenes.columns(2)
    for row in rows[1::20]:
        row[1] = "Non-binary"
    (tmp_path / "labels.csv").write_text("\n".join(",".join(row) for row in rows))
    words = ("audit", few_scenes.captions, "--attributes", "labels.csv", "--dry-run")
    assert "--map Non-binary=GROUP" in ends(3, *words)
    for meaning in ("Unsure", "Both", "female"):
        text = ok(*words, "--map", f"Non-binary={meaning}")
        assert ("Non-binary 15" in text) == (meaning != "female"), text


@pytest.mark.usefixtures("counting")
@pytest.mark.parametrize(("third", "code"), [("Non-binary", 0), ("Unsure", 2)])
def test_a_map_of_one_attribute_leaves_the_others_as_they_are(
    run, few_scenes, tmp_path, third, code
):
    lines = [[*row, ("Light", "Dark")[k % 2]] for k, row in enumerate(few_scenes.columns(2))]
    lines[0][2] = "bb_skin"
    for line in lines[1::20]:
        line[1] = third
    path = tmp_path / "labels.csv"
    path.write_text("\n".join(map(",".join, lines)))
    words = ("--attributes", str(path), "--dry-run", "--map", "Non-binary=Unsure")
    ended, text = run("audit", few_scenes.captions, *words)
    assert (ended, "race (light 150, dark 150)" in text) == (code, not code), text


@pytest.mark.usefixtures("counting")
def test_a_table_without_a_known_column_is_told_once_what_it_has(ok, ends, few_scenes, tmp_path):
    text = Path(few_scenes.labels).read_text().replace("bb_gender", "who")
    (tmp_path / "labels.csv").write_text(text)
    words = ("audit", few_scenes.captions, "--attributes", "labels.csv", "--dry-run")
    text = ends(2, *words)
    assert (text.count("--label-column COLUMN"), text.count("Name yours")) == (1, 1), text
    ok(*words, "--label-column", "who")  # as the message advises


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("id,colour\n1,red\n", "it has id ('1'), colour ('red')"),
        ("men", " male, 0 female"),
    ],
)
def test_labels_of_no_two_groups_are_refused(ends, few_scenes, tmp_path, table, message):
    men = Path(few_scenes.labels).read_text().replace(",Female", ",Male")
    (tmp_path / "labels.csv").write_text(men if table == "men" else table)
    words = ("audit", few_scenes.captions, "--attributes", "labels.csv", "--dry-run")
    assert message in ends(2, *words)


def test_an_audit_scores_the_other_groups_and_names_the_tiny_one(ok, plan, few_scenes, tmp_path):
    moods = ["anger"] * 3 + ["awe"] * 60 + ["fear"] * 60
    ids = [row["image_id"] for row in json.loads(Path(few_scenes.captions).read_text())]
    lines = [f"{image},{mood}" for image, mood in zip(ids, moods, strict=False)]
    (tmp_path / "moods.csv").write_text("\n".join(["id,emotion", *lines]))
    plan("gender_error", "leakage")
    text = ok("audit", few_scenes.captions, "--attributes", "moods.csv", "--tables")
    assert "skipped: metric=leakage" not in text
    assert "anger (3)" in text
    assert "attackers leave out groups of fewer than 20 images" in text


@pytest.mark.parametrize("known", [False, True], ids=["some unknown", "everybody known"])
def test_who_assumes_what_nobody_can_see_is_told(scenes, plan, tmp_path, known):
    """A captioner that calls everybody a man, where everybody's group is known or not."""
    plan("gender_error", "assumed_group")
    rows = [row for row in scenes.columns(2) if not (known and row[1] == "Unsure")]
    (tmp_path / "labels.csv").write_text("\n".join(",".join(row) for row in rows))
    images = {row[0] for row in rows[1:]}
    content = json.loads(Path(scenes.captions).read_text())
    man = [{**row, "caption": "a man"} for row in content if str(row["image_id"]) in images]
    (tmp_path / "man.json").write_text(json.dumps(man))
    words = ("--attributes", str(tmp_path / "labels.csv"), "--captions", scenes.people)
    audited = audit(tmp_path / "out", str(tmp_path / "man.json"), *words)
    yes = "Does it assume gender that nobody can see? Yes: assumed_group "
    shown = yes in " ".join(audited.text.split())
    assert (audited.code, shown) == (0, not known), audited.text
    unknown = "annotators could tell gender in all described images"
    assert (unknown in audited.text) == known
    assert "Does it name the wrong gender?" in audited.text


@pytest.mark.usefixtures("counting")
def test_it_says_in_one_sentence_what_more_label_errors_would_move(scenes, tmp_path):
    path = tmp_path / "errors.csv"
    write_label_errors(path, "gender", ("male", "female"), np.array([[0.7, 0.3], [0.3, 0.7]]))
    words = (scenes.captions, "--attributes", scenes.labels, "--label-noise", str(path))
    audited = audit(tmp_path / "out", *words)
    assert "gender_error by +" in lines(audited, "If more gender labels were wrong")
    assert "more gender labels were wrong" in (tmp_path / "out/report.html").read_text()


# --- files


@pytest.mark.parametrize("option", ["", "--attributes", "--captions", "--objects"])
def test_an_absent_file_is_answered_with_the_nearest_beside_it(ends, few_scenes, option):
    absent = str(few_scenes.root / "atributes.csv")
    words = [
        "audit",
        few_scenes.captions if option else absent,
        "--attributes",
        few_scenes.attributes,
    ]
    text = ends(5, *words, *([option, absent] if option else []))
    assert "captioner=" not in text
    assert f"{absent} is absent" in text
    assert f"did you mean '{few_scenes.attributes}'" in text


# --- what is planned


def test_it_names_the_command_of_what_there_is_no_time_for(
    run, plan, few_scenes, tmp_path, monkeypatch
):
    plan("gender_error", left_out=("dbac",))
    monkeypatch.setattr(planning, "print_plan", lambda *_, **__: 0)  # what is printed before it
    (tmp_path / "labels.csv").write_text("\n".join(",".join(row) for row in few_scenes.columns(3)))
    words = (
        "audit",
        few_scenes.captions,
        "--attributes",
        "labels.csv",
        "--captions",
        few_scenes.people,
    )
    _, text = run(*words, "--dry-run")
    assert "race: no time for dbac; --minutes gives more, or: " in text, text
    assert "python -m bias_pipeline metric=dbac dataset=coco" in text, text


def test_captions_of_all_samples_are_announced(ok, plan, few_scenes, tmp_path):
    rows = json.loads(Path(few_scenes.captions).read_text())
    samples = [{**row, "sample": k, "decoding": "hot"} for k in range(3) for row in rows]
    (tmp_path / "samples.json").write_text(json.dumps(samples))
    plan("gender_error")
    text = ok("audit", "samples.json", "--attributes", few_scenes.labels, "--dry-run")
    assert f"samples.json: {len(samples)} captions of labelled images" in text, text


def test_the_plan_lists_no_metric_that_needs_what_is_not_there(ok, plan, few_scenes):
    plan("gender_error", "dpa")  # which needs objects
    text = ok("audit", few_scenes.captions, "--attributes", few_scenes.labels, "--dry-run")
    assert ("gender_error" in text, "dpa" in text) == (True, False), text


@pytest.mark.slow
def test_it_says_beforehand_how_small_a_bias_stays_unseen(ok, scenes):
    words = ("--attributes", scenes.labels, "--captions", scenes.people, "--dry-run")
    text = ok("audit", scenes.captions, *words)
    (line,) = (line for line in text.splitlines() if "the smallest biases" in line)
    assert "points (lic matched)" in line
    assert "points (gender_error (named))" in line


@pytest.mark.slow
def test_a_dry_run_leaves_settings_blank_where_a_cell_has_the_default(ok, few_scenes):
    text = ok("audit", few_scenes.captions, "--attributes", few_scenes.labels, "--dry-run")
    (line,) = (line for line in text.splitlines() if line.startswith("  declines"))
    assert line.split()[1:3] == ["to", "run"]


# --- report


def test_a_report_is_written_beside_the_runs(ok, tmp_path):
    ok(*SMALL)
    assert ok("report").strip() == "outputs/report.html"
    assert (tmp_path / "outputs" / "report.html").is_file()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        *(
            (f"--out {name}", 2, "is written as HTML; its name must end in .html")
            for name in ("bias.pdf", "bias", "bias.html.gz", ".")
        ),
        ("empty", 3, "empty"),
        ("--what", 2, "--out FILE"),
    ],
)
def test_a_report_that_cannot_be_is_refused(ends, tmp_path, words, code, message):
    (tmp_path / "empty").mkdir()
    assert message in ends(code, "report", *words.split())


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("captions.json", 2, "--attributes"),
        ("cut.json --attributes LABELS", 3, "cut.json"),
        ("FILE --attributes LABELS --config-dir=nowhere", 2, "=nowhere is not a folder"),
        ("FILE --attributes LABELS --config-dir evil --only evil", 2, "os.system"),
        ("FILE --attributes LABELS --json .", 5, "is a folder; name a file in it"),
        ("FILE --attributes LABELS --label-noise errors.csv", 3, "has none of the attributes"),
        ("FILE --attributes LABELS --limit 5", 2, "labelled images: gender: "),
    ],
    ids=[
        *("no labels", "cut", "no such folder", "code as data", "a folder", "errors of none"),
        "a limit",
    ],
)
def test_an_audit_that_cannot_be_is_refused_before_anything_runs(
    ends, few_scenes, tmp_path, words, code, message
):
    (tmp_path / "cut.json").write_text('[{"image_id": 1, "caption": "a ')
    (tmp_path / "errors.csv").write_text("attribute,group,label,share\nsex,male,male,1\n")
    evil = tmp_path / "evil" / "attribute" / "evil.yaml"
    evil.parent.mkdir(parents=True)
    evil.write_text(LISTS.replace("bias_pipeline.corpus.attribute.Attribute", "os.system"), "utf-8")
    places = {"FILE": few_scenes.captions, "LABELS": few_scenes.labels}
    text = ends(code, "audit", *(places.get(word, word) for word in words.split()), "--out", "out")
    assert message in " ".join(text.split()), text
    assert "label file" not in text  # it is to blame for none of these
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("counting")
def test_exchanged_labels_get_no_verdict_until_they_are_mapped_as_advised(few_scenes, tmp_path):
    text = Path(few_scenes.labels).read_text()
    text = text.replace("Female", "?").replace("Male", "Female").replace("?", "Male")
    (tmp_path / "labels.csv").write_text(text)
    words = [few_scenes.captions, "--attributes", str(tmp_path / "labels.csv")]
    words += ["--captions", few_scenes.people]
    exchanged = audit(tmp_path / "exchanged", *words).text
    assert "Cannot tell: labels contradict human captions in 100% of images." in exchanged
    assert "--map LABEL=GROUP" in exchanged
    mapped = audit(tmp_path / "mapped", *words, "--map", "Female=male", "--map", "Male=female").text
    assert "labels contradict" not in mapped
