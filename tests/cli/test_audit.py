"""``audit`` and ``report``, from the command line, on files of the embedded data set."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from bias_pipeline.commands import auditing
from bias_pipeline.commands.auditing import plan_for
from bias_pipeline.commands.main import main
from bias_pipeline.config.compose import cell
from bias_pipeline.datasets.scenes.captioners import CAPTIONERS
from bias_pipeline.datasets.scenes.files import write
from bias_pipeline.datasets.scenes.world import generate
from tests.cli.commands import SMALL, Run


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of COCO files, with a captioner whose bias is known."""
    folder = tmp_path_factory.mktemp("scenes")
    write(generate(n_images=700), folder, {"amplifier": CAPTIONERS["amplifier"]})
    return folder


@dataclass(frozen=True)
class Audited:
    """What an audit left."""

    code: int
    text: str
    folder: Path


def audit(folder: Path, *words: str) -> Audited:
    """Run an audit in its own folder, in next to no time."""
    told = io.StringIO()
    with redirect_stdout(told), redirect_stderr(told):
        code = main(["audit", *words, "--out", str(folder), "--minutes", "0.01"])
    return Audited(code, told.getvalue(), folder)


def captions(scenes: Path) -> str:
    return str(scenes / "captioners" / "amplifier.json")


@pytest.fixture(scope="module")
def labels(scenes: Path) -> str:
    """A label file of gender alone."""
    lines = (scenes / "attributes.csv").read_text().splitlines()
    path = scenes / "gender.csv"
    path.write_text("\n".join(",".join(line.split(",")[:2]) for line in lines))
    return str(path)


@pytest.fixture(scope="module")
def whole(scenes: Path, tmp_path_factory: pytest.TempPathFactory) -> Audited:
    """An audit with all there is: three attributes, about 30 s."""
    folder = tmp_path_factory.mktemp("whole")
    files = ["--captions", str(scenes / "annotations" / "captions.json")]
    files += ["--objects", str(scenes / "annotations" / "instances.json")]
    return audit(folder, captions(scenes), "--attributes", str(scenes / "attributes.csv"), *files)


@pytest.fixture(scope="module")
def alone(scenes: Path, labels: str, tmp_path_factory: pytest.TempPathFactory) -> Audited:
    """An audit of captions and labels alone, from a file of an odd name."""
    odd = tmp_path_factory.mktemp("odd") / "my cap's, [x]=1.json"
    odd.write_bytes(Path(captions(scenes)).read_bytes())
    return audit(tmp_path_factory.mktemp("alone"), str(odd), "--attributes", labels)


@pytest.mark.slow
def test_an_audit_ends_well(whole: Audited) -> None:
    assert whole.code == 0, whole.text


@pytest.mark.slow
def test_it_writes_a_report(whole: Audited) -> None:
    assert "amplifier" in (whole.folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_it_prints_where(whole: Audited) -> None:
    assert whole.text.splitlines()[-1] == str(whole.folder / "report.html")


@pytest.mark.slow
def test_it_finds_the_planted_bias(whole: Audited) -> None:
    (told,) = (line for line in whole.text.splitlines() if line.startswith("Does it give the"))
    assert "Yes, beyond chance: leakage (gender" in told
    assert "lic (gender" in told


@pytest.mark.slow
@pytest.mark.parametrize("attribute", ["gender", "race", "age"])
def test_every_attribute_of_the_labels_is_audited(whole: Audited, attribute: str) -> None:
    assert list(whole.folder.glob(f"lic-coco-amplifier-{attribute}-*/result.json"))


@pytest.mark.slow
def test_an_attribute_with_unknown_labels_is_passed_over(whole: Audited) -> None:
    assert "emotion is not audited" in whole.text


@pytest.mark.slow
def test_it_announces_its_time(whole: Audited) -> None:
    assert "seeds, about" in whole.text


@pytest.mark.slow
def test_it_says_what_there_is_no_time_for(whole: Audited) -> None:
    assert "no time for dbac" in whole.text


def test_a_path_with_blanks_and_quotes_is_a_path(alone: Audited) -> None:
    assert alone.code == 0, alone.text


def test_without_human_captions_it_says_what_cannot_be_said(alone: Audited) -> None:
    told = "Without human captions of the same images nothing can be said of amplification"
    assert told in alone.text


@pytest.mark.slow
def test_ids_that_fit_by_accident_permit_no_conclusion(
    scenes: Path, labels: str, tmp_path: Path
) -> None:
    told = json.loads(Path(captions(scenes)).read_text())
    moved = [row if i % 12 == 0 else {**row, "image_id": f"x{i}"} for i, row in enumerate(told)]
    path = tmp_path / "accident.json"
    path.write_text(json.dumps(moved))
    people = ("--captions", str(scenes / "annotations" / "captions.json"))
    found = audit(tmp_path / "out", str(path), "--attributes", labels, *people)
    assert "It cannot be told on gender" in found.text, found.text
    assert "of the labelled images, less than 50%" in found.text
    assert "§ rests on less than 50% of the labelled images: no verdict" in found.text


@pytest.mark.slow
def test_blank_captions_are_announced(scenes: Path, labels: str, tmp_path: Path) -> None:
    told = json.loads(Path(captions(scenes)).read_text())
    for row in told[::10]:
        row["caption"] = "NaN"
    path = tmp_path / "blank.json"
    path.write_text(json.dumps(told))
    found = audit(tmp_path / "out", str(path), "--attributes", labels)
    assert "blank captions: 70 model, 0 human" in found.text, found.text
    assert "warning: 70 of 700 model captions (10.0%) are blank" in found.text


@pytest.mark.slow
def test_it_says_what_nothing_is_concluded_from(whole: Audited) -> None:
    (told,) = (line for line in whole.text.splitlines() if line.startswith("Nothing is concluded"))
    assert "ba_directional A→T (" in told
    assert "moved by how much it says" in told


@pytest.mark.slow
def test_the_ratio_is_told_and_not_judged(whole: Audited) -> None:
    (told,) = (line for line in whole.text.splitlines() if line.startswith("How often does it"))
    assert "gender_ratio (" in told


def test_labels_of_nothing_known_are_refused(run: Run, scenes: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("id,colour\n1,red\n")
    code, text = run("audit", captions(scenes), "--attributes", str(tmp_path / "labels.csv"))
    assert (code, "no column 'bb_gender'" in text) == (2, True), text


@pytest.mark.parametrize("meaning", ["Unsure", "Both", "female"])
def test_a_third_label_is_mapped_as_the_refusal_advises(
    run: Run, scenes: Path, labels: str, tmp_path: Path, meaning: str
) -> None:
    lines = Path(labels).read_text().splitlines()
    mixed = [
        f"{line.split(',')[0]},Non-binary" if i % 20 == 1 else line for i, line in enumerate(lines)
    ]
    path = tmp_path / "labels.csv"
    path.write_text("\n".join(mixed))
    words = ("audit", captions(scenes), "--attributes", str(path), "--dry-run")
    assert "--map Non-binary=GROUP" in run(*words)[1]
    code, text = run(*words, "--map", f"Non-binary={meaning}")
    assert (code, "Non-binary 35" in text) == (0, meaning != "female"), text


def test_a_table_of_one_group_is_told_how_many_there_are(
    run: Run, scenes: Path, labels: str, tmp_path: Path
) -> None:
    path = tmp_path / "men.csv"
    path.write_text(Path(labels).read_text().replace(",Female", ",Male"))
    code, text = run("audit", captions(scenes), "--attributes", str(path), "--dry-run")
    assert (code, " male, 0 female" in text) == (2, True), text


def test_captions_that_are_none_are_counted_by_group(
    scenes: Path, labels: str, tmp_path: Path
) -> None:
    rows = json.loads(Path(captions(scenes)).read_text())
    for row in rows[::2]:
        row["caption"] = "I'm sorry, but I can't identify the people."
    path = tmp_path / "declining.json"
    path.write_text(json.dumps(rows))
    text = audit(tmp_path / "out", str(path), "--attributes", labels).text
    assert "captions decline to describe or are errors of a service: " in text
    assert "(male), " in text


def test_an_absent_file_is_named(run: Run, scenes: Path) -> None:
    code, text = run("audit", "nowhere.json", "--attributes", str(scenes / "attributes.csv"))
    assert (code, "nowhere.json is absent" in text, "captioner=" in text) == (5, True, False), text


@pytest.mark.parametrize("option", ["", "--attributes", "--captions", "--objects"])
def test_an_absent_file_is_answered_with_the_nearest_beside_it(
    run: Run, scenes: Path, option: str
) -> None:
    near = scenes / "attributes.csv"
    absent = str(near.with_name("atributes.csv"))
    words = ["audit", absent if not option else captions(scenes), "--attributes", str(near)]
    code, text = run(*words, *([option, absent] if option else []))
    assert (code, f"{absent} is absent" in text, f"did you mean '{near}'" in text) == (
        5,
        True,
        True,
    )


def test_a_broken_file_is_refused(run: Run, scenes: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.json").write_text(json.dumps([{"image_id": 1, "caption": "a man"}])[:-5])
    code, text = run("audit", "cut.json", "--attributes", str(scenes / "attributes.csv"))
    assert (code, "cut.json" in text) == (3, True), text


def test_without_labels_it_says_how_it_is_used(run: Run) -> None:
    code, text = run("audit", "captions.json")
    assert (code, "--attributes" in text) == (2, True)


@pytest.fixture
def three_angry(scenes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An audit whose label file has a group that is too small to be split."""
    ids = [own["image_id"] for own in json.loads(Path(captions(scenes)).read_text())]
    moods = ["anger"] * 3 + ["awe"] * 60 + ["fear"] * 60
    lines = [f"{image},{mood}" for image, mood in zip(ids, moods, strict=False)]
    (tmp_path / "moods.csv").write_text("\n".join(["id,emotion", *lines]))
    plan = auditing.Plan(["gender_error", "leakage"], [], 1, 1.0)
    monkeypatch.setattr(auditing, "plan_for", lambda *_: plan)
    return ["audit", captions(scenes), "--attributes", str(tmp_path / "moods.csv")]


def test_e5_an_audit_passes_over_what_a_tiny_group_does_not_permit(
    run: Run, three_angry: list[str]
) -> None:
    code, text = run(*three_angry)
    assert (code, "skipped: metric=leakage" in text, "anger 3" in text) == (0, True, True), text


@pytest.mark.parametrize(
    ("seconds", "dbac", "seeds"), [(1e6, True, 5), (80.0, True, 3), (0.0, False, 3)]
)
def test_less_time_means_fewer_seeds_then_fewer_metrics(
    seconds: float, dbac: bool, seeds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    corpus = cell(["dataset.n_images=8000"]).corpus()
    plan = plan_for({"gender": corpus}, seconds)
    assert ("dbac" in plan.metrics, plan.seeds) == (dbac, seeds)


# --- report


def test_a_report_is_written_beside_the_runs(run: Run, tmp_path: Path) -> None:
    run(*SMALL)
    code, text = run("report")
    assert (code, text.strip()) == (0, "outputs/report.html")
    assert (tmp_path / "outputs" / "report.html").is_file()


@pytest.mark.parametrize("name", ["bias.pdf", "bias", "bias.html.gz", "."])
def test_a_report_is_a_page_and_says_so(run: Run, name: str) -> None:
    code, text = run("report", "--out", name)
    assert (code, "is written as HTML; end it in .html" in text) == (2, True), text


def test_a_report_of_nothing_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert run("report", "empty")[0] == 3


def test_a_wrong_flag_is_refused_with_the_usage(run: Run) -> None:
    code, text = run("report", "--what")
    assert (code, "--out FILE" in text) == (2, True), text
