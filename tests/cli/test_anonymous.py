"""``anonymous build|filter``: pictures without marks, and those in which raters cannot tell."""

import contextlib
import json
import shlex
import shutil
from pathlib import Path

import pytest

from bias_pipeline.commands.main import main
from bias_pipeline.data.rating_tables import CANNOT_TELL
from bias_pipeline.io.files import read_csv
from bias_pipeline.people.commands.web import rate_parser
from tests.cli.anonymous_raters import HEAD, answer_filter, images, spoil

pytest.importorskip("starlette", reason="needs the extra web")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory) -> Path:
    """Eight anonymous pictures of scenes."""
    folder = tmp_path_factory.mktemp("anonymous")
    words = ("dataset.n_images=8", "+dataset.captioners.assumes.t_to_a=0.9")
    with contextlib.chdir(folder):
        assert main(["anonymous", "build", "--scenes", "--out", "a", "--side", "32", *words]) == 0
    return folder / "a"


@pytest.fixture
def pictures_folder(run, pictures) -> Path:
    """The same in the test's own folder."""
    return Path(shutil.copytree(pictures, "a"))


def test_every_picture_has_its_true_groups(pictures):
    lines = read_csv((pictures / "pictures.csv").read_text())
    assert {line["bb_gender"] for line in lines} == {"Male", "Female"}
    assert sorted(line["file"] for line in lines) == sorted(
        path.name for path in (pictures / "images").iterdir()
    )


def test_captioners_describe_every_picture(pictures):
    for path in (pictures / "captioners").iterdir():
        described = [str(entry["image_id"]) for entry in json.loads(path.read_text())]
        assert described == images(pictures / "pictures.csv")


def test_filter_prints_the_command_that_asks(ok, pictures_folder):
    command = shlex.split(ok("anonymous", "filter", str(pictures_folder)).splitlines()[-1])
    assert command[:5] == ["python", "-m", "bias_pipeline", "rate", "a/images"]
    options = rate_parser().parse_args(command[4:])
    assert (options.out, options.answers) == (pictures_folder / "filter", "can_tell,no_person")


def test_filter_keeps_pictures_in_which_raters_cannot_tell(ok, pictures_folder):
    named, nobody, *others = images(pictures_folder / "pictures.csv")
    values = {named: "can_tell", nobody: "no_person"}
    answer_filter(pictures_folder, lambda image: values.get(image, CANNOT_TELL))
    assert "6 of 8 pictures are kept" in ok("anonymous", "filter", str(pictures_folder))
    assert images(pictures_folder / "kept.csv") == others
    assert len(list((pictures_folder / "kept").iterdir())) == len(others)


def test_filter_again_drops_what_is_no_longer_kept(ok, pictures_folder):
    answer_filter(pictures_folder, lambda image: CANNOT_TELL)
    ok("anonymous", "filter", str(pictures_folder))
    (pictures_folder / "kept" / "notes.txt").write_text("mine")
    ok("anonymous", "filter", str(pictures_folder), "--limit", "2")
    assert len(list((pictures_folder / "kept").glob("*.png"))) == 2
    assert (pictures_folder / "kept" / "notes.txt").is_file()
    assert len(images(pictures_folder / "kept.csv")) == 2


@pytest.mark.parametrize(
    ("name", "content", "code", "message"),
    [
        ("pictures.csv", None, 5, "holds no anonymous pictures"),
        ("pictures.csv", "image_id,file\n", 5, "lists no pictures"),
        ("images/*", None, 3, "is absent; go on with anonymous build"),
        ("filter/answers.csv", f"{HEAD}FIRST,dog,yes,a\n", 3, "answers another question (dog)"),
        (
            "filter/answers.csv",
            f"{HEAD}77,question,Unsure,a\n",
            3,
            "image 77 is not among the pict",
        ),
        ("filter/answers.csv", f"{HEAD}FIRST,question,no_person,a\n", 3, "most raters can tell"),
        ("filter/answers.csv", "image_id,attribute,value\n", 3, "column 'rater' is absent"),
    ],
)
def test_bad_input_is_one_sentence(name, content, code, message, ends, pictures_folder):
    spoil(pictures_folder, name, content)
    assert message in ends(code, "anonymous", "filter", str(pictures_folder))


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("--out b", 2, "--scenes"),
        ("--scenes", 2, "--out"),
        ("--scenes --out b --side 8", 2, "--side"),
        ("--scenes --out b --prompts p.csv", 2, "--prompts does not go with --scenes"),
        ("--model m --out b --side 64", 2, "--side does not go with --model"),
        ("--scenes --out b dataset.world=affect", 2, "--scenes takes"),
        ("--scenes --out b dataset=coco", 2, "--scenes takes"),
        ("--scenes --out full", 5, "already exists"),
    ],
)
def test_bad_words_are_one_sentence(words, code, message, ends, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    assert message in ends(code, "anonymous", "build", *words.split())
