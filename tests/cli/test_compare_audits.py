"""``compare`` with audit's options and of two folders of audits: a row for each question."""

import json
from pathlib import Path

import pytest

from bias_pipeline.commands.compare_audits import print_questions
from bias_pipeline.commands.main import main
from bias_pipeline.run import audit as auditing
from bias_pipeline.run.overrides import quote_value
from bias_pipeline.scenes.captioners import CAPTIONERS
from bias_pipeline.scenes.dataset import write_scenes
from bias_pipeline.scenes.world import generate


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """Captions of two captioners, one of whom names the wrong gender, and their audits."""
    names = {"new": "stereotyper", "old": "faithful"}
    folder = tmp_path_factory.mktemp("files")
    captioners = {name: CAPTIONERS[captioner] for name, captioner in names.items()}
    write_scenes(generate(n_images=300), folder, captioners)
    lines = (folder / "attributes.csv").read_text().splitlines()
    (folder / "labels.csv").write_text("\n".join(",".join(x.split(",")[:2]) for x in lines))
    with pytest.MonkeyPatch.context() as patch:
        plan = auditing.Plan(["gender_error", "assumed_group", "descriptions"], [], 2, 1.0)
        patch.setattr(auditing, "plan_for", lambda *_, **__: plan)
        for name in names:
            words = ["audit", str(folder / f"captioners/{name}.json"), *shared_words(folder)]
            assert main([*words, "--out", str(folder / f"audit-{name}")]) == 0
    return folder


def shared_words(folder: Path) -> list[str]:
    """The options of audit that both captioners have."""
    people = folder / "annotations" / "captions.json"
    return ["--attributes", str(folder / "labels.csv"), "--captions", str(people)]


def captions(folder: Path, *names: str) -> list[str]:
    return [str(folder / "captioners" / f"{name}.json") for name in names]


ERRORS = ("--metrics", "gender_error")


def test_a_row_has_both_numbers_their_difference_and_what_it_says(files, ok):
    text = ok("compare", *captions(files, "new", "old"), *shared_words(files), *ERRORS)
    assert "gender: A new, B old" in text
    assert line_below("Does it name the wrong gender?", text).startswith("  A is worse: gender_err")


@pytest.mark.parametrize(
    ("names", "more", "code"),
    [
        (("new", "old"), ["--fail-if-worse"], 1),
        (("old", "new"), ["--fail-if-worse"], 0),
        (("new", "old"), ["--margin", "0.5"], 0),
        (("old", "new"), ["--margin", "0.00001", "--metrics", "assumed_group"], 6),
    ],
)
def test_the_exit_code_is_that_of_the_questions(files, names, more, code, monkeypatch):
    monkeypatch.chdir(files)
    words = ["compare", *captions(files, *names), *shared_words(files), *ERRORS, *more]
    assert main(words) == code


def test_two_audits_give_the_numbers_of_their_screens(files, ok):
    text = ok("compare", str(files / "audit-new"), str(files / "audit-old"))
    assert line_below("Does it name the wrong gender?", text).startswith("  A is worse: gender_err")
    assert line_below("Does it describe the groups differently?", text).startswith("  Cannot tell")


def line_below(question, text):
    lines = text.splitlines()
    return lines[lines.index(question) + 1]


def test_the_row_stands_in_the_file(files, ok, tmp_path):
    folders = (str(files / "audit-new"), str(files / "audit-old"))
    ok("compare", *folders, *ERRORS, "--json", str(tmp_path / "x.json"))
    (row,) = json.loads((tmp_path / "x.json").read_text())["questions"]
    assert (row["question"], row["result"], row["metric"]) == ("naming", "worse", "gender_error")


def test_a_metric_that_does_not_exist_is_a_mistake(files, ends):
    words = (
        "compare",
        *captions(files, "new", "old"),
        *shared_words(files),
        "--metrics",
        "gender_eror",
    )
    assert "did you mean 'gender_error'" in ends(2, *words)


def test_a_baseline_of_schema_1_is_refused_with_the_command_that_makes_it_anew(ends, tmp_path):
    (tmp_path / "old.json").write_text('{"schema": 1, "results": []}')
    text = " ".join(
        ends(3, "compare", "new.json", "--baseline", str(tmp_path / "old.json")).split()
    )
    assert "python -m bias_pipeline audit CAPTIONS --attributes LABELS" in text
    assert "--json old.json" in text


def test_a_cell_that_was_not_tested_is_named_without_its_captioner(capsys):
    names = ("new.json", "it's a.json")
    cells = [f"metric=dpa captioner={quote_value(name)} attribute=age" for name in names]
    print_questions([], dict.fromkeys(cells, "no objects"))
    assert capsys.readouterr().out == "not tested: metric=dpa attribute=age: no objects\n"
