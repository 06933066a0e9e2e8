"""``fit sat`` and ``fit grit`` through the door, and who takes what they write."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from bias_pipeline.commands.main import main
from bias_pipeline.debias.export import READINGS
from tests.cli.commands import part, results
from tests.photo_folder import write_photos

FEW = ("dataset.n_images=60", "--epochs", "1", "--batch-size", "32")
TINY = ("encoder.side=32", "encoder.width=4", "encoder.hidden_dim=16")


def fit(folder: Path, kind: str, *words: str) -> str:
    """Fit a captioner to few images and return what was printed."""
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        code = main(["fit", kind, "dataset=scenes", *FEW, *words, "--out", str(folder / "mine")])
    assert code == 0, printed.getvalue()
    return printed.getvalue()


@pytest.fixture(scope="module")
def sat(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A SAT fitted in two epochs that are both saved, and what was printed."""
    folder = tmp_path_factory.mktemp("sat")
    words = (*TINY, "--epochs", "2", "--each-epoch", "--equalizer")
    return folder / "mine", fit(folder, "sat", *words)


@pytest.fixture(scope="module")
def grit(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A fitted GRIT that is equalized, and what was printed."""
    folder = tmp_path_factory.mktemp("grit")
    return folder / "mine", fit(folder, "grit", "--equalizer", "--confusion-weight", "3")


@pytest.fixture(scope="module")
def grounded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fitted SAT whose captions are grounded in emotions."""
    folder = tmp_path_factory.mktemp("grounded")
    fit(folder, "sat", *TINY, "dataset.world=affect", "encoder.grounding=emotion")
    return folder / "mine"


@pytest.mark.parametrize("emotion", ["anger", "predicted"])
def test_a_grounded_captioner_writes_for_an_emotion(grounded, ok, tmp_path, emotion):
    photos = write_photos(tmp_path / "photos", 3)
    words = ("--model", str(grounded), "--out", "out", "--emotion", emotion)
    ok("caption", str(photos), *words)


def test_a_grounded_captioner_asks_for_an_emotion(grounded, fails, tmp_path):
    photos = write_photos(tmp_path / "photos", 3)
    assert "give --emotion predicted" in fails(
        2, "caption", str(photos), "--model", str(grounded), "--out", "out"
    )


@pytest.mark.parametrize("words", [("grit", "emotion"), ("sat", "gender")])
def test_only_a_sat_is_grounded_and_only_in_emotion(fails, words):
    kind, attribute = words
    assert "fit sat can be grounded in emotion alone" in fails(
        2, "fit", kind, f"encoder.grounding={attribute}", "--out", "mine"
    )


@pytest.fixture(params=["sat", "grit"])
def mine(request: pytest.FixtureRequest) -> Path:
    """Either of them."""
    folder: Path = request.getfixturevalue(request.param)[0]
    return folder


def test_a_fitted_captioner_captions_photos(mine, ok, tmp_path):
    photos = write_photos(tmp_path / "photos", 3)
    words = ("--model", str(mine), "--out", "out", "--beams", "2", "--max-new-tokens", "5")
    ok("caption", str(photos), *words)
    ok("caption", "--gather", "out", "--no-strict")
    content = json.loads(Path("out", "captions.json").read_text())
    assert {len(row["caption"].split()) <= 5 for row in content} == {True}
    assert len(content) == 3


def test_a_fitted_captioner_judges(mine, ok, tmp_path):
    words = ("metric=imagecaptioner2", "captioner=faithful", "dataset.n_images=60", "seeds=1")
    more = ("stats.resamples=20", "logger=csv", "metric.leaks=[]", "metric.sides=[model]")
    small = "encoder.side=64"
    prompt = "encoder.prompt.template='{caption} {answer}'"
    answers = ("+encoder.prompt.answers.male=man", "+encoder.prompt.answers.female=woman")
    ok(*words, *more, small, "encoder=hf", f"encoder.model={mine}", prompt, *answers)
    assert 0 < part(results(tmp_path)[0], "model")["value"] < 1


def test_what_is_said_at_the_end_can_be_used(sat):
    assert f"caption --model {sat[0]}" in sat[1]
    assert "a captioner of 300 captions, loss" in sat[1]


def test_models_show_says_who_takes_it(ok, sat):
    output = ok("models", "show", str(sat[0]))
    assert "caption --model" in output
    assert "encoder.model" in output


def test_sizes_are_settings_and_another_captioners_captions_are_learnt(tmp_path):
    fit(tmp_path, "sat", "encoder.hidden_dim=20", "captioner=amplifier", "--captions", "model")
    config = json.loads((tmp_path / "mine" / "config.json").read_text())
    assert config["encoder"]["hidden_dim"] == 20
    assert '"captioner": "amplifier"' in (tmp_path / "mine" / "README.md").read_text()


def test_the_captioner_of_the_last_epoch_is_the_fitted_one(sat):
    places = [sat[0] / place for place in ("epochs/01", "epochs/02", ".")]
    weights = [(place / "model.safetensors").read_bytes() for place in places]
    assert weights[0] != weights[1] == weights[2]


def test_the_card_says_what_is_equalized(grit):
    text = (grit[0] / "README.md").read_text()
    assert '"confusion": 3.0' in text
    assert '"person": "segment"' in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["clip", "--equalizer"], "--equalizer is an option of fit sat"),
        (["debias", "--each-epoch"], "--each-epoch is an option of fit sat"),
        (["sat", "--confident-weight", "2"], "--confident-weight belongs to --equalizer"),
        (["sat", "--equalizer", "--confusion-weight", "-1"], "--confusion-weight"),
        (["sat", "--equalizer", "image_masking=none"], "hides people"),
        (["sat", "--weights", "absent.parquet"], "absent.parquet"),
    ],
)
def test_options_of_captioners_that_do_not_fit_are_refused(words, message, run):
    code, printed = run("fit", *words, *FEW[:1], "--out", "mine")
    assert code != 0
    assert message in printed
    assert not Path("mine").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--crop", "none"], "--crop is an option of fit clip"),
        (["encoder=grit"], "fit sat already sets it"),
        (["encoder.backbone=annotations"], "with its backbone"),
        (["encoder.hiden_dim=20"], "encoder.hiden_dim"),
        (["--epochs", "0"], "--epochs"),
    ],
)
def test_what_does_not_fit_is_refused(words, message, run):
    code, printed = run("fit", "sat", *FEW[:1], *words, "--out", "mine")
    assert code in (2, 3)
    assert message in printed
    assert not Path("mine").exists()


def test_epochs_of_a_clip_are_no_setting_of_the_trainer(fails):
    assert "--epochs" in fails(2, "fit", "clip", "trainer.max_epochs=3", "--out", "mine")


def test_a_fitted_captioner_takes_no_prompt(fails, tmp_path, sat):
    photos = write_photos(tmp_path / "photos", 1)
    words = ("--model", str(sat[0]), "--out", "out", "--prompt", "a photo of")
    assert "takes no prompt" in fails(2, "caption", str(photos), *words)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sat", "clip"])
def test_two_processes_fit_together(kind, ok):
    words = ("dataset.n_images=60", "--epochs", "1", "--batch-size", "20", "trainer=ddp")
    ok("fit", kind, *words, "--out", "mine")
    assert Path("mine", "model.safetensors").is_file()


def test_a_debiasing_is_exported(ok, clip):
    words = ("dataset.n_images=60", f"encoder.model={clip}", "debias=mean_difference")
    ok("fit", "debias", *words, "metric.k=5", "--out", "mine")
    assert {path.name for path in Path("mine").iterdir()} == {
        "README.md",
        "debias.safetensors",
        "load_debias.py",
    }


@pytest.mark.parametrize("reading", READINGS)
def test_the_papers_debiasing_of_a_generator_is_exported(reading, ok, clip):
    size = ("dataset=scenes", "dataset.n_images=60", "debias.k=3", "metric.k=5")
    words = ("experiment=vl_fig11", *size, f"encoder.model={clip}", "--prompts", reading)
    ok("fit", "debias", *words, "--out", "mine")
    from safetensors.numpy import load_file

    numbers = load_file("mine/debias.safetensors")
    weights = {"outputs": {"prompt.projection"}, "states": {"prompt.weight", "prompt.bias"}}[
        reading
    ]
    assert {"prompt.mark", "text.weight", "text.bias"} | weights == set(numbers)
    assert f'"prompts": "{reading}"' in Path("mine", "README.md").read_text()


def test_prompts_are_of_a_debiasing(fails):
    assert "of fit debias" in fails(2, "fit", "clip", *FEW, "--prompts", "outputs", "--out", "mine")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["debias=none"], "edits nothing"),
        (["debias=none", "--prompts", "outputs"], "edits nothing"),
        (["debias=erasure", "--epochs", "2"], "leave them out"),
    ],
)
def test_what_is_no_debiasing_is_refused(words, message, fails, clip):
    items = ("dataset.n_images=60", f"encoder.model={clip}", *words)
    assert message in fails(2, "fit", "debias", *items, "--out", "mine")
