"""``labels plan`` and the labels that ``rate --gold-size`` collects, as a user meets them."""

import csv
import json
from pathlib import Path

import pytest

from bias_pipeline.commands.main import main
from bias_pipeline.data.photos import find_photos
from bias_pipeline.errors import DataError
from bias_pipeline.people.commands.gold_images import drawn_photos
from bias_pipeline.people.commands.web import rate_parser
from tests.photo_folder import write_photos

N = 60


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photos, captions and a machine's labels, of which every tenth is wrong."""
    root = tmp_path_factory.mktemp("team")
    write_photos(root / "photos", N)
    truth = {i: "male" if i % 3 else "female" for i in range(1, N + 1)}
    wrong = {i for i in truth if i % 10 == 0}
    swap = {"male": "female", "female": "male"}
    with (root / "machine.csv").open("w") as file:
        file.write("id,gender\n")
        file.writelines(f"{i},{swap[g] if i in wrong else g}\n" for i, g in truth.items())
    with (root / "gold.csv").open("w") as file:
        file.write("image_id,value,rater\n")
        file.writelines(f"{i},{g},anna\n" for i, g in truth.items() if i % 2 == 0 or i % 3 == 0)
    words = {"male": "a man sits", "female": "a woman sits"}
    captions = [{"image_id": i, "caption": words[g]} for i, g in truth.items()]
    (root / "captions.json").write_text(json.dumps(captions))
    return root


def plan(team: Path, *words: str) -> list[str]:
    files = {"gold": "gold.csv", "machine": "machine.csv", "captions": "captions.json"}
    named = [word for name, file in files.items() for word in (f"--{name}", str(team / file))]
    return ["labels", "plan", *named, *words]


def test_a_plan_says_how_many_labels_are_needed(team: Path, capsys: pytest.CaptureFixture[str]):
    assert main(plan(team, "--half-width", "0.1")) == 0
    printed = capsys.readouterr().out
    assert "captions: about" in printed
    assert "drawn by rate --gold-size, with correction" in printed
    assert "rough guide; 100 are a better one" in printed


def test_a_plan_says_where_no_number_is_enough(team: Path, capsys: pytest.CaptureFixture[str]):
    assert main(plan(team, "--half-width", "0.001")) == 0
    printed = capsys.readouterr().out
    assert "none is enough" in printed
    assert "caption and label more images by machine" in printed


@pytest.mark.parametrize("width", ["0", "0.7", "wide"])
def test_a_half_width_is_a_share(team: Path, width: str, capsys: pytest.CaptureFixture[str]):
    assert main(plan(team, "--half-width", width)) == 2
    assert "--half-width" in capsys.readouterr().err


def draw(team: Path, photos: Path, n: int) -> dict[str, float]:
    given = [str(photos), "--attribute", "gender", "--out", "study", "--gold-size", str(n)]
    given += ["--machine", str(team / "machine.csv"), "--captions", str(team / "captions.json")]
    options = rate_parser().parse_args(given)
    return drawn_photos(options, find_photos(photos))


def test_photos_are_drawn_and_answers_have_their_chances(team: Path, tmp_path: Path):
    pytest.importorskip("starlette", reason="needs the extra web")
    from bias_pipeline.people.web.study import AnswerStore, RatingQuestion, Study

    chances = draw(team, team / "photos", 12)
    apart = {str(i) for i in range(10, N + 1, 10)}
    assert len(chances) == 12
    assert {chances[image] for image in chances.keys() & apart} == {1.0}
    assert {chances[image] for image in chances.keys() - apart} == {6 / 54}
    photos = {image: team / "photos" / f"{image}.png" for image in chances}
    question = RatingQuestion("?", "gender", ("male", "female"))
    store = AnswerStore(tmp_path, Study(question, photos, {}, chances=chances))
    for image in chances:
        store.put("anna", image, "male" if int(image) % 3 else "female", 1.0)
    store.close()
    with (tmp_path / "answers.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert {line["image_id"]: float(line["chance"]) for line in lines} == chances
    words = ["metric=gender_error", "dataset=coco", "logger=csv", f"paths.outputs={tmp_path}/runs"]
    words += [f"dataset.attributes={team}/machine.csv", f"captioner={team}/captions.json"]
    assert main([*words, f"dataset.gold={tmp_path}/answers.csv"]) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["photos", "--attribute", "gender", "--gold-size", "5"], "--gold-size needs a folder"),
        (["photos", "--attribute", "gender", "--machine", "m.csv"], "--machine goes with"),
        (
            [
                *("photos", "--attribute", "gender", "--machine", "m.csv"),
                *("--captions", "c.json", "--gold-size", "5", "--limit", "3"),
            ],
            "leave --limit",
        ),
    ],
)
def test_words_that_do_not_fit_are_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
):
    assert main(["rate", *words, "--out", "study"]) == 2
    assert message in capsys.readouterr().err


def test_photos_that_are_a_part_of_the_labelled_images_are_refused(team: Path, tmp_path: Path):
    with pytest.raises(DataError, match="has 5 of the 60 images"):
        draw(team, write_photos(tmp_path / "photos", 5), 4)


def test_an_audit_corrects_naming_alone(
    team: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    words = ["audit", str(team / "captions.json"), "--attributes", str(team / "machine.csv")]
    words += ["--gold", str(team / "even.csv"), "--out", str(tmp_path), "--minutes", "0.01"]
    (team / "even.csv").write_text(
        "image_id,value\n"
        + "".join(f"{i},{'male' if i % 3 else 'female'}\n" for i in range(1, N + 1) if i % 2)
    )
    assert main(words) == 0
    assert "Gold labels correct" in " ".join(capsys.readouterr().out.split())
    rows = (tmp_path / "table.csv").read_text()
    assert "gender_error" in rows
    assert "score:machine" in rows
    (team / "blue.csv").write_text("image_id,value\n1,blue\n")
    words[words.index("--gold") + 1] = str(team / "blue.csv")
    assert main(words) == 3
    assert "unknown values: 'blue'" in capsys.readouterr().err
