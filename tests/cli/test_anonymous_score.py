"""``anonymous score``: people's answers and attackers' guesses about captions, and correlations."""

import contextlib
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from bias_pipeline.commands.main import main
from bias_pipeline.commands.web import rate_parser
from bias_pipeline.datasets.rating_tables import CANNOT_TELL
from bias_pipeline.io.files import read_csv, table_csv
from tests.cli.anonymous_raters import answer_filter
from tests.cli.commands import Run

pytest.importorskip("starlette", reason="needs the extra web")

N_PICTURES = 30
CAPTIONERS = {"never": "0.0", "often": "0.5", "always": "1.0"}
PLANTED = [
    word
    for name, share in CAPTIONERS.items()
    for word in (
        f"+dataset.captioners.{name}.t_to_a={share}",
        f"+dataset.captioners.{name}.a_to_t={share}",
    )
]
MEN = re.compile(r"\b(man|men|boys?|guys?|gentleman|male|he|his)\b", re.IGNORECASE)
WOMEN = re.compile(r"\b(woman|women|girls?|lady|ladies|female|she|her)\b", re.IGNORECASE)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
def built(run: Run, pictures: Path) -> Path:
    """The same in the test's own folder."""
    return Path(shutil.copytree(pictures, "a"))


def group_in(caption: str) -> str:
    """The group that a caption names."""
    if MEN.search(caption):
        return "male"
    return "female" if WOMEN.search(caption) else CANNOT_TELL


@pytest.fixture
def answered(built: Path) -> Path:
    """The same, with raters who name the group that a caption names."""
    for name in CAPTIONERS:
        listed = json.loads((built / "captioners" / f"{name}.json").read_text())
        lines = [
            {
                "image_id": entry["image_id"],
                "attribute": "gender",
                "value": group_in(entry["caption"]),
                "rater": rater,
            }
            for entry in listed
            for rater in ("anna", "ben")
        ]
        folder = built / "answers/gender" / name
        folder.mkdir(parents=True)
        (folder / "answers.csv").write_text(table_csv(lines))
    return built


def values(folder: Path, part: str, metric: str = "people") -> dict[str, float]:
    """Captioner to number."""
    lines = read_csv((folder / "scores.csv").read_text())
    wanted = [line for line in lines if (line["metric"], line["part"]) == (metric, part)]
    return {line["captioner"]: float(line["value"] or "nan") for line in wanted}


def test_the_command_that_asks_raters_is_printed(run, built):
    code, printed = run("anonymous", "score", str(built))
    commands = [shlex.split(line) for line in printed.splitlines() if " rate " in line]
    assert (code, len(commands)) == (0, len(CAPTIONERS)), printed
    options = rate_parser().parse_args(commands[0][4:])
    assert (options.attribute, len(json.loads(options.captions.read_text()))) == ("gender", 30)
    assert not (built / "scores.csv").exists()


def test_gt_is_the_share_of_captions_that_name_a_group(run, answered):
    assert run("anonymous", "score", str(answered))[0] == 0
    for name, value in values(answered, "gt").items():
        texts = [
            e["caption"] for e in json.loads((answered / f"captioners/{name}.json").read_text())
        ]
        share = sum(group_in(text) != CANNOT_TELL for text in texts) / N_PICTURES
        assert value == pytest.approx(share)
    assert values(answered, "gt")["never"] == 0


def test_every_number_of_the_table_is_one(run, answered):
    assert run("anonymous", "score", str(answered))[0] == 0
    for line in read_csv((answered / "scores.csv").read_text()):
        numbers = [float(line[key] or "nan") for key in ("value", "ci_low", "ci_high")]
        assert (
            line["part"] == "alpha"
            or numbers[1] <= numbers[0] <= numbers[2]
            or numbers[0] != (numbers[0])
        )


def test_right_is_scored_against_the_groups_of_scenes(run, answered):
    assert run("anonymous", "score", str(answered))[0] == 0
    labels = {
        line["image_id"]: line["bb_gender"].lower()
        for line in read_csv((answered / "pictures.csv").read_text())
    }
    listed = json.loads((answered / "captioners/always.json").read_text())
    named = {str(e["image_id"]): group_in(e["caption"]) for e in listed}
    guesses = [(labels[i], group) for i, group in named.items() if group != CANNOT_TELL]
    share = sum(label == group for label, group in guesses) / len(guesses)
    assert values(answered, "right")["always"] == pytest.approx(share)


def test_without_true_groups_nothing_is_right_or_wrong(run, answered):
    lines = read_csv((answered / "pictures.csv").read_text())
    bare = "".join(f"{line['image_id']},{line['file']}\n" for line in lines)
    (answered / "pictures.csv").write_text(f"image_id,file\n{bare}")
    assert run("anonymous", "score", str(answered))[0] == 0
    assert values(answered, "right") == {}
    assert values(answered, "gt")


def test_only_pictures_that_were_kept_are_scored(run, answered):
    answer_filter(answered, lambda image: CANNOT_TELL)
    assert run("anonymous", "filter", str(answered), "--limit", "10")[0] == 0
    code, printed = run("anonymous", "score", str(answered))
    assert (code, "none of the pictures" in printed) == (3, True), printed
    for path in (answered / "answers/gender").iterdir():
        (path / "answers.csv").unlink()
    assert run("anonymous", "score", str(answered))[0] == 0
    asked_about = json.loads((answered / "answers/gender/often/captions.json").read_text())
    assert len(asked_about) == 10


def test_attackers_read_what_no_label_is_known_of(run, answered):
    """A captioner that imagines what suits the group that it assumes is surer to be guessed."""
    code, printed = run(
        *("anonymous", "score", str(answered), "--reference", "dataset=scenes"),
        *("dataset.n_images=300", *PLANTED, "--metric", "lic", "encoder=ngram", "seeds=2"),
    )
    assert code == 0, printed
    attacked = values(answered, "largest_s_a", "lic")
    assert 0.5 <= attacked["never"] < attacked["always"] <= 1
    lines = read_csv((answered / "correlations.csv").read_text())
    assert [line["n_captioners"] for line in lines] == ["3", "9", "9"]
    assert float(lines[0]["value"]) > 0.5
    assert (answered / "figure-gender.svg").is_file()


def test_values_on_labelled_data_are_correlated_too(run, answered):
    cell = ("metric=assumed_group", "dataset.n_images=200", "seeds=1", "stats.resamples=50")
    names = ",".join(CAPTIONERS)
    assert run(*cell, *PLANTED, f"captioner={names}", "logger=csv")[0] == 0
    assert run("anonymous", "score", str(answered), "--runs", "outputs")[0] == 0
    (line,) = read_csv((answered / "correlations.csv").read_text())
    assert (line["metric"], line["data"], line["n_captioners"]) == ("assumed_group", "scenes", "3")


def test_two_runs_of_one_number_are_refused(run, answered):
    cell = ("metric=gender_error", "dataset.n_images=100", "stats.resamples=50", "logger=csv")
    for seeds in ("1", "2"):
        assert run(*cell, f"seeds={seeds}", *PLANTED, "captioner=often")[0] == 0
    code, printed = run("anonymous", "score", str(answered), "--runs", "outputs")
    assert (code, "several runs of gender_error about often" in printed) == (3, True), printed


@pytest.mark.parametrize(
    ("fault", "code", "message"),
    [
        ("no captions at all", 5, "no captions; caption a/images"),
        ("captions missing for pictures", 3, "no caption of 29 of 30 pictures"),
        ("answers to another question", 3, "answers another question (race)"),
        ("answers about other pictures", 3, "image 77 is none of the pictures"),
    ],
)
def test_bad_input_is_one_sentence(fault, code, message, run, answered):
    first = read_csv((answered / "pictures.csv").read_text())[0]["image_id"]
    table = answered / "answers/gender/often/answers.csv"
    head = "image_id,attribute,value,rater\n"
    if fault == "no captions at all":
        for path in (answered / "captioners").iterdir():
            path.unlink()
    elif fault == "captions missing for pictures":
        listed = [{"image_id": int(first), "caption": "a person"}]
        (answered / "captioners/often.json").write_text(json.dumps(listed))
    elif fault == "answers to another question":
        table.write_text(f"{head}{first},race,lighter,anna\n")
    else:
        table.write_text(f"{head}77,gender,male,anna\n")
    outcome, printed = run("anonymous", "score", str(answered))
    assert (outcome, message in printed) == (code, True), printed
    assert "Traceback" not in printed


def test_fewer_than_three_captioners_have_no_correlation(run, answered):
    (answered / "captioners/never.json").unlink()
    code, printed = run(
        *("anonymous", "score", str(answered), "--reference", "dataset=scenes"),
        *("dataset.n_images=300", *PLANTED, "--metric", "lic", "encoder=ngram", "seeds=1"),
    )
    assert (code, "a correlation needs 3 captioners or more" in printed) == (0, True), printed
    (line,) = read_csv((answered / "correlations.csv").read_text())
    assert (line["value"], line["n_captioners"]) == ("", "2")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--metric", "lic"), 2, "--metric needs --reference"),
        (("--reference", "dataset=scenes", "--metric", "dba"), 2, "name one of lic"),
        (("--reference", "dataset=scenes", "--metric", "lic", "x"), 2, "key=value"),
        (("--reference", "scenes"), 2, "--reference scenes: settings are written key=value"),
        (("--attribute", "mood"), 2, "mood"),
        (("--runs", "nowhere"), 5, "nowhere is not a folder"),
        (
            ("--reference", "dataset=scenes", "dataset.n_images=30", "dataset.seed=1", *PLANTED),
            3,
            "choose other ones",
        ),
        (
            (
                *("--reference", "dataset=scenes", "dataset.n_images=60", *PLANTED, "--metric"),
                *("imagecaptioner2", "encoder.backbone=annotations"),
            ),
            3,
            "choose attackers that look at pixels",
        ),
    ],
)
def test_bad_words_are_one_sentence(words, code, message, run, answered):
    outcome, printed = run("anonymous", "score", str(answered), *words)
    assert (outcome, message in printed) == (code, True), printed
    assert "Traceback" not in printed
