"""``anonymous build|filter``: pictures without marks, and those in which raters cannot tell."""

import json
import shlex
from pathlib import Path

import pytest

from bias_pipeline.datasets.rating_tables import CANNOT_TELL
from bias_pipeline.io.files import read_csv
from tests.cli.anonymous_raters import answer_filter
from tests.cli.commands import Run

pytest.importorskip("starlette", reason="needs the extra web")

N_PICTURES = 8


@pytest.fixture
def built(run: Run) -> Path:
    """Anonymous pictures of scenes."""
    code, printed = run(
        *("anonymous", "build", "--scenes", "--out", "a", "--side", "32"),
        *(f"dataset.n_images={N_PICTURES}", "+dataset.captioners.assumes.t_to_a=0.9"),
    )
    assert code == 0, printed
    return Path("a")


def images(table: Path) -> list[str]:
    return [line["image_id"] for line in read_csv(table.read_text())]


def test_every_picture_has_its_true_groups(built):
    lines = read_csv((built / "pictures.csv").read_text())
    assert {line["bb_gender"] for line in lines} == {"Male", "Female"}
    assert sorted(line["file"] for line in lines) == sorted(
        path.name for path in (built / "images").iterdir()
    )


def test_captioners_describe_every_picture(built):
    for path in (built / "captioners").iterdir():
        described = [str(entry["image_id"]) for entry in json.loads(path.read_text())]
        assert described == images(built / "pictures.csv")


def test_filter_prints_the_command_that_asks(run, built):
    code, printed = run("anonymous", "filter", str(built))
    command = shlex.split(printed.splitlines()[-1])
    assert (code, command[:5]) == (0, [*("python", "-m", "bias_pipeline"), "rate", "a/images"])

    from bias_pipeline.commands.web import rate_parser

    options = rate_parser().parse_args(command[4:])
    assert (options.out, options.answers) == (built / "filter", "can_tell,no_person")


def test_filter_keeps_pictures_in_which_raters_cannot_tell(run, built):
    named, nobody, *others = images(built / "pictures.csv")
    values = {named: "can_tell", nobody: "no_person"}
    answer_filter(built, lambda image: values.get(image, CANNOT_TELL))
    code, printed = run("anonymous", "filter", str(built))
    assert (code, "6 of 8 pictures are kept" in printed) == (0, True), printed
    assert images(built / "kept.csv") == others
    assert len(list((built / "kept").iterdir())) == len(others)


def test_filter_again_drops_what_is_no_longer_kept(run, built):
    answer_filter(built, lambda image: CANNOT_TELL)
    assert run("anonymous", "filter", str(built))[0] == 0
    (built / "kept" / "notes.txt").write_text("mine")
    assert run("anonymous", "filter", str(built), "--limit", "2")[0] == 0
    assert len(list((built / "kept").glob("*.png"))) == 2
    assert (built / "kept" / "notes.txt").is_file()
    assert len(images(built / "kept.csv")) == 2


@pytest.mark.parametrize(
    ("fault", "code", "message"),
    [
        ("no pictures", 5, "holds no anonymous pictures"),
        ("an empty table", 5, "lists no pictures"),
        ("a picture that vanishes", 3, "is absent; go on with anonymous build"),
        ("a table of another question", 3, "answers another question (dog)"),
        ("answers about other pictures", 3, "image 77 is none of the pictures"),
        ("nobody cannot tell", 3, "raters agree on no picture"),
        ("no column", 3, "column 'rater' is absent"),
    ],
)
def test_bad_input_is_one_sentence(fault, code, message, run, built):
    head = "image_id,attribute,value,rater\n"
    first = images(built / "pictures.csv")[0]
    answers = {
        "a table of another question": f"{head}{first},dog,yes,anna\n",
        "answers about other pictures": f"{head}77,question,Unsure,anna\n",
        "nobody cannot tell": f"{head}{first},question,no_person,anna\n",
        "no column": "image_id,attribute,value\n",
    }
    if fault == "no pictures":
        (built / "pictures.csv").unlink()
    elif fault == "an empty table":
        (built / "pictures.csv").write_text("image_id,file\n")
    elif fault == "a picture that vanishes":
        next((built / "images").iterdir()).unlink()
    else:
        (built / "filter").mkdir()
        (built / "filter" / "answers.csv").write_text(answers[fault])
    outcome, printed = run("anonymous", "filter", str(built))
    assert (outcome, message in printed) == (code, True), printed
    assert "Traceback" not in printed


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--out", "b"), 2, "--scenes"),
        (("--scenes",), 2, "--out"),
        (("--scenes", "--out", "b", "--side", "8"), 2, "--side"),
        (("--scenes", "--out", "b", "dataset.world=affect"), 2, "--scenes takes"),
        (("--scenes", "--out", "b", "dataset=coco"), 2, "--scenes takes"),
        (("--scenes", "--out", "full"), 5, "already exists"),
    ],
)
def test_bad_words_are_one_sentence(words, code, message, run, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    outcome, printed = run("anonymous", "build", *words)
    assert (outcome, message in printed) == (code, True), printed
