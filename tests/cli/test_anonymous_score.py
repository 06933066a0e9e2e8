"""``anonymous score``: people's answers and attackers' guesses about captions, and correlations."""

import contextlib
import json
import math
import re
import shlex
import shutil
from pathlib import Path

import pytest

from bias_pipeline.commands.main import main
from bias_pipeline.data.rating_tables import CANNOT_TELL
from bias_pipeline.io.files import read_csv, table_csv
from bias_pipeline.people.commands.web import rate_parser
from tests.cli.anonymous_raters import HEAD, answer_filter, spoil

pytest.importorskip("starlette", reason="needs the extra web")

N_PICTURES = 30
CAPTIONERS = {"never": "0.0", "often": "0.5", "always": "1.0"}
PLANTED = [
    f"+dataset.captioners.{name}.{dial}={share}"
    for name, share in CAPTIONERS.items()
    for dial in ("t_to_a", "a_to_t")
]
SCENES = ("--reference", "dataset=scenes")
LIC = (*SCENES, "dataset.n_images=300", *PLANTED, "--metric", "lic", "encoder=ngram")
MEN = re.compile(r"\b(man|men|boys?|guys?|gentleman|male|he|his)\b", re.IGNORECASE)
WOMEN = re.compile(r"\b(woman|women|girls?|lady|ladies|female|she|her)\b", re.IGNORECASE)


def group_in(caption: str) -> str:
    """The group that a caption names."""
    if MEN.search(caption):
        return "male"
    return "female" if WOMEN.search(caption) else CANNOT_TELL


def captions(folder: Path, name: str) -> dict[str, str]:
    """Image to a captioner's caption."""
    listed = json.loads((folder / f"captioners/{name}.json").read_text())
    return {str(entry["image_id"]): entry["caption"] for entry in listed}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory) -> Path:
    """Anonymous pictures that three captioners describe."""
    folder = tmp_path_factory.mktemp("anonymous")
    words = ("--scenes", "--out", "a", "--side", "32", f"dataset.n_images={N_PICTURES}")
    with contextlib.chdir(folder):
        assert main(["anonymous", "build", *words, *PLANTED]) == 0
    for path in (folder / "a/captioners").iterdir():
        if path.stem not in CAPTIONERS:
            path.unlink()
    return folder / "a"


@pytest.fixture
def unanswered_folder(run, pictures) -> Path:
    """The same in the test's own folder."""
    return Path(shutil.copytree(pictures, "a"))


@pytest.fixture(scope="module")
def scored_folder(pictures, tmp_path_factory) -> Path:
    """The same, scored, with raters who name the group that a caption names."""
    folder = Path(shutil.copytree(pictures, tmp_path_factory.mktemp("answered") / "a"))
    for name in CAPTIONERS:
        lines = [
            {"image_id": image, "attribute": "gender", "value": group_in(text), "rater": rater}
            for image, text in captions(folder, name).items()
            for rater in ("anna", "ben")
        ]
        (folder / "answers/gender" / name).mkdir(parents=True)
        (folder / "answers/gender" / name / "answers.csv").write_text(table_csv(lines))
    with contextlib.chdir(folder.parent):
        assert main(["anonymous", "score", "a"]) == 0
    return folder


@pytest.fixture
def answered_folder(run, scored_folder) -> Path:
    """The same in the test's own folder."""
    return Path(shutil.copytree(scored_folder, "a"))


def values(folder: Path, part: str, metric: str = "people") -> dict[str, float]:
    """Captioner to number."""
    lines = read_csv((folder / "scores.csv").read_text())
    wanted = [line for line in lines if (line["metric"], line["part"]) == (metric, part)]
    return {line["captioner"]: float(line["value"] or "nan") for line in wanted}


def test_the_command_that_asks_raters_is_printed(ok, unanswered_folder):
    printed = ok("anonymous", "score", str(unanswered_folder))
    commands = [shlex.split(line) for line in printed.splitlines() if " rate " in line]
    assert len(commands) == len(CAPTIONERS), printed
    options = rate_parser().parse_args(commands[0][4:])
    assert (options.attribute, len(json.loads(options.captions.read_text()))) == ("gender", 30)
    assert not (unanswered_folder / "scores.csv").exists()


def test_gt_is_the_share_of_captions_that_name_a_group(scored_folder):
    for name, value in values(scored_folder, "gt").items():
        named = [group_in(text) != CANNOT_TELL for text in captions(scored_folder, name).values()]
        assert value == pytest.approx(sum(named) / N_PICTURES)
    assert values(scored_folder, "gt")["never"] == 0


def test_every_number_of_the_table_lies_in_its_interval(scored_folder):
    for line in read_csv((scored_folder / "scores.csv").read_text()):
        value, low, high = (float(line[key] or "nan") for key in ("value", "ci_low", "ci_high"))
        assert line["part"] == "alpha" or low <= value <= high or math.isnan(value)


def test_right_is_scored_against_the_groups_of_scenes(scored_folder):
    lines = read_csv((scored_folder / "pictures.csv").read_text())
    labels = {line["image_id"]: line["bb_gender"].lower() for line in lines}
    named = {image: group_in(text) for image, text in captions(scored_folder, "always").items()}
    right = [labels[image] == group for image, group in named.items() if group != CANNOT_TELL]
    assert values(scored_folder, "right")["always"] == pytest.approx(sum(right) / len(right))


def test_without_true_groups_nothing_is_right_or_wrong(ok, answered_folder):
    lines = read_csv((answered_folder / "pictures.csv").read_text())
    bare = "".join(f"{line['image_id']},{line['file']}\n" for line in lines)
    (answered_folder / "pictures.csv").write_text(f"image_id,file\n{bare}")
    ok("anonymous", "score", str(answered_folder))
    assert values(answered_folder, "right") == {}
    assert values(answered_folder, "gt")


def test_only_pictures_that_were_kept_are_scored(ok, ends, answered_folder):
    answer_filter(answered_folder, lambda image: CANNOT_TELL)
    ok("anonymous", "filter", str(answered_folder), "--limit", "10")
    assert "not among the pictures" in ends(3, "anonymous", "score", str(answered_folder))
    for path in answered_folder.glob("answers/gender/*/answers.csv"):
        path.unlink()
    ok("anonymous", "score", str(answered_folder))
    asked_about = json.loads((answered_folder / "answers/gender/often/captions.json").read_text())
    assert len(asked_about) == 10


def test_attackers_read_what_no_label_is_known_of(ok, answered_folder):
    """A captioner that imagines what suits the group that it assumes is surer to be guessed."""
    ok("anonymous", "score", str(answered_folder), *LIC, "seeds=2")
    attacked = values(answered_folder, "largest_s_a", "lic")
    assert 0.5 <= attacked["never"] < attacked["always"] <= 1
    lines = read_csv((answered_folder / "correlations.csv").read_text())
    assert [line["n_captioners"] for line in lines] == ["3", "9", "9"]
    assert float(lines[0]["value"]) > 0.5
    assert (answered_folder / "figure-gender.svg").is_file()


def test_values_on_labelled_data_are_correlated_too(ok, answered_folder):
    cell = ("metric=assumed_group", "dataset.n_images=100", "seeds=1", "stats.resamples=50")
    ok(*cell, *PLANTED, f"captioner={','.join(CAPTIONERS)}", "logger=csv")
    ok("anonymous", "score", str(answered_folder), "--runs", "outputs")
    (line,) = read_csv((answered_folder / "correlations.csv").read_text())
    assert (line["metric"], line["data"], line["n_captioners"]) == ("assumed_group", "scenes", "3")


def test_two_runs_of_one_number_are_refused(ok, ends, answered_folder):
    cell = ("metric=gender_error", "dataset.n_images=100", "stats.resamples=50", "logger=csv")
    for seeds in ("1", "2"):
        ok(*cell, f"seeds={seeds}", *PLANTED, "captioner=often")
    printed = ends(3, "anonymous", "score", str(answered_folder), "--runs", "outputs")
    assert "several runs of gender_error about often" in printed


def test_fewer_than_three_captioners_have_no_correlation(ok, answered_folder):
    (answered_folder / "captioners/never.json").unlink()
    printed = ok("anonymous", "score", str(answered_folder), *LIC, "seeds=1")
    assert "a correlation needs 3 captioners or more" in printed
    (line,) = read_csv((answered_folder / "correlations.csv").read_text())
    assert (line["value"], line["n_captioners"]) == ("", "2")


def test_a_captioner_may_have_any_name(ends, unanswered_folder):
    for path in sorted((unanswered_folder / "captioners").iterdir()):
        path.rename(path.with_name(f"{path.stem} (large).json"))
    words = ("--reference", "dataset=scenes", "dataset.n_images=60", "--metric", "lic")
    message = ends(2, "anonymous", "score", str(unanswered_folder), *words)
    assert "(large)' is unknown to dataset 'scenes'" in message


def test_captions_of_no_captioner_are_asked_for(ends, answered_folder):
    shutil.rmtree(answered_folder / "captioners")
    (answered_folder / "captioners").mkdir()
    assert "no captions; caption a/images" in ends(5, "anonymous", "score", str(answered_folder))


TABLE = "answers/gender/often/answers.csv"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "captioners/often.json",
            '[{"image_id": FIRST, "caption": "a person"}]',
            "no caption of 29 of 30 pictures",
        ),
        (TABLE, f"{HEAD}FIRST,race,lighter,anna\n", "answers another question (race)"),
        (TABLE, f"{HEAD}77,gender,male,anna\n", "image 77 is not among the pictures"),
    ],
)
def test_bad_input_is_one_sentence(name, content, message, ends, answered_folder):
    spoil(answered_folder, name, content)
    assert message in ends(3, "anonymous", "score", str(answered_folder))


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("--metric lic", 2, "--metric needs --reference"),
        ("--reference dataset=scenes --metric dba", 2, "name one of lic"),
        ("--reference dataset=scenes --metric lic x", 2, "key=value"),
        ("--reference scenes", 2, "--reference scenes: settings are written key=value"),
        ("--attribute mood", 2, "mood"),
        ("--runs nowhere", 5, "nowhere is not a folder"),
        (
            f"--reference dataset=scenes dataset.n_images=30 dataset.seed=1 {' '.join(PLANTED)}",
            3,
            "choose other pictures",
        ),
        (
            f"--reference dataset=scenes dataset.n_images=60 {' '.join(PLANTED)} "
            "--metric imagecaptioner2 encoder.backbone=annotations",
            3,
            "choose attackers that look at pixels",
        ),
    ],
)
def test_bad_words_are_one_sentence(words, code, message, ends, answered_folder):
    assert message in ends(code, "anonymous", "score", str(answered_folder), *words.split())
