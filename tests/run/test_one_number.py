"""Ten audits: every surface shows the same number for a question."""

import csv
import json
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import pytest

import bias_pipeline as bp
from bias_pipeline.report import baseline
from bias_pipeline.report.answer_texts import deciding_number
from bias_pipeline.report.answers import Answer
from bias_pipeline.report.exports import export
from bias_pipeline.report.page import html, report_of_folder
from bias_pipeline.run import audit as auditing
from bias_pipeline.run.audit import Audit
from bias_pipeline.scenes.captioners import CAPTIONERS
from bias_pipeline.scenes.dataset import write_scenes
from bias_pipeline.scenes.world import generate

METRICS = ["gender_error", "assumed_group", "descriptions", "declines", "gender_ratio"]
OBJECTS = ["objects", "ba_mals"]
PEOPLE = ["lic", "quality"]


@dataclass(frozen=True)
class Surfaces:
    """An audit and what was made of it."""

    audit: Audit
    page: str
    exported: list[dict[str, str]]  # lines of the table of answers


@pytest.fixture(scope="module")
def drawn_scenes(tmp_path_factory) -> Path:
    names = ("amplifier", "stereotyper", "faithful")
    folder = tmp_path_factory.mktemp("drawn")
    write_scenes(generate(n_images=160), folder, {name: CAPTIONERS[name] for name in names})
    lines = (folder / "attributes.csv").read_text().splitlines()
    rows = [line.split(",") for line in lines[1:]]
    for column, name in enumerate(("gender", "race"), 1):
        labels = [("id", name), *((row[0], row[column]) for row in rows)]
        (folder / f"{name}.csv").write_text("\n".join(map(",".join, labels)))
    return folder


def write_changed(folder: Path, name: str, caption, most: int | None = None) -> Path:
    """A captioner's file with other captions, or with the first few alone."""
    rows = json.loads((folder / "captioners" / f"{name}.json").read_text())[:most]
    path = folder / f"{name}_changed.json"
    path.write_text(json.dumps([{**row, "caption": caption(row["caption"])} for row in rows]))
    return path


PARAGRAPH = (
    "The image depicts {} in soft light. Everything looks calm. Nobody else is in the scene."
)
# What is audited: captioner, attribute, change of its captions, images, whose further files.
AUDITS = {
    "a bias of objects": ("amplifier", "gender", str, None, ("people", "objects")),
    "a wrong gender": ("stereotyper", "gender", str, None, ("people", "objects")),
    "no bias": ("faithful", "gender", str, None, ("people", "objects")),
    "without annotators": ("stereotyper", "gender", str, None, ("objects",)),
    "labels alone": ("stereotyper", "gender", str, None, ()),
    "without objects": ("amplifier", "gender", str, None, ("people",)),
    "thirty images": ("stereotyper", "gender", str, 60, ("people",)),
    "paragraphs": ("stereotyper", "gender", PARAGRAPH.format, None, ("people",)),
    "another attribute": ("amplifier", "race", str, None, ("people",)),
    "another language": ("faithful", "gender", lambda _: "ein Mensch am Strand", None, ("people",)),
}


@pytest.fixture(scope="module", params=AUDITS)
def surfaces(request, drawn_scenes, tmp_path_factory) -> Surfaces:
    captioner, attribute, caption, most, further = AUDITS[request.param]
    out = tmp_path_factory.mktemp("out")
    metrics = METRICS + OBJECTS * ("objects" in further) + PEOPLE * ("people" in further)
    files = {"people": ("human", "captions"), "objects": ("objects", "instances")}
    given = {
        files[one][0]: drawn_scenes / "annotations" / f"{files[one][1]}.json" for one in further
    }
    with pytest.MonkeyPatch.context() as patch:
        plan = auditing.Plan(metrics, [], 1, 1.0)
        patch.setattr(auditing, "plan_for", lambda *_, **__: plan)
        audit = bp.audit(
            write_changed(drawn_scenes, captioner, caption, most),
            drawn_scenes / f"{attribute}.csv",
            out=out,
            **given,
        )
    report = report_of_folder(out)
    export(report, out / "paper")
    (table,) = (out / "paper/tables").glob("answers-on-*.csv")
    with table.open() as lines:
        return Surfaces(audit, unescape(html(report)), [*csv.DictReader(lines)])


def numbers(surfaces: Surfaces) -> list[Answer]:
    """The answers that have a number."""
    return [answer for answer in surfaces.audit.answers if answer.value == answer.value]


def test_screen_page_rows_and_file_have_the_number_of_each_answer(surfaces):
    audit, shown = surfaces.audit, numbers(surfaces)
    screen = " ".join(" ".join(audit.screen()).split())
    page = " ".join(surfaces.page.split())
    frame = audit.frame()
    for answer in shown:
        assert deciding_number(answer) in screen
        assert deciding_number(answer) in page
        row = frame[(frame.run_id == answer.run_id) & (frame.part == answer.part)]
        assert row.value.tolist() == [answer.value]
    answers = [answer.as_plain_data() for answer in audit.answers]
    stored = json.loads(baseline.baseline_bytes(audit.results, answers=answers))["answers"]
    values = [one["value"] for one in stored if one["value"] is not None]
    assert values == [answer.value for answer in shown]


def test_an_exported_table_has_the_number_of_each_answer(surfaces):
    exported = [
        (float(line["value"]), line.get("value ci_low", ""), line["images"])
        for line in surfaces.exported
        if line["value"]
    ]
    ends = [
        (answer.value, "" if answer.ci_low != answer.ci_low else str(answer.ci_low))
        for answer in numbers(surfaces)
    ]
    assert [line[:2] for line in exported] == ends


def test_a_headline_of_a_bias_has_its_number(surfaces):
    (headline, *_) = surfaces.page.split('<p class="verdict">')[1].split("</p>")
    if "BIAS" in headline:
        values = [f"{100 * one.value:.1f}" for one in numbers(surfaces) if one.answer == "yes"]
        assert any(f"{value} points [" in headline for value in values)


def test_no_surface_calls_another_attribute_gender(surfaces):
    if surfaces.audit.answers[0].attribute != "gender":
        assert "gender" not in " ".join(surfaces.audit.screen())
