"""``fit sat`` and ``fit grit`` through the door, and who takes what they write."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from bias_pipeline.commands.main import main
from bias_pipeline.retrieval.debias.export import READINGS
from tests.cli.commands import part, results
from tests.coco_folder import write_folder as write_coco
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
    """A GRIT that is equalized and has learnt a captioner's captions, and what was printed."""
    folder = tmp_path_factory.mktemp("grit")
    words = ("--equalizer", "--confusion-weight", "3", "captioner=amplifier", "--captions", "model")
    return folder / "mine", fit(folder, "grit", *words)


@pytest.fixture(scope="module")
def grounded_sat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fitted SAT whose captions are grounded in emotions."""
    folder = tmp_path_factory.mktemp("grounded")
    fit(folder, "sat", *TINY, "dataset.world=affect", "encoder.grounding=emotion")
    return folder / "mine"


@pytest.fixture
def photos(tmp_path) -> str:
    return str(write_photos(tmp_path / "photos", 3))


@pytest.mark.parametrize("emotion", ["anger", "predicted"])
def test_a_grounded_captioner_writes_for_an_emotion(grounded_sat, ok, photos, emotion):
    ok("caption", photos, "--model", str(grounded_sat), "--out", "out", "--emotion", emotion)


def test_a_grounded_captioner_asks_for_an_emotion(grounded_sat, ends, photos):
    words = ("caption", photos, "--model", str(grounded_sat), "--out", "out")
    assert "give --emotion predicted" in ends(2, *words)


@pytest.fixture(params=["sat", "grit"])
def mine(request) -> Path:
    """Either of them."""
    return request.getfixturevalue(request.param)[0]


def test_a_fitted_captioner_captions_photos(mine, ok, photos):
    words = ("--model", str(mine), "--out", "out", "--beams", "2", "--max-new-tokens", "5")
    ok("caption", photos, *words)
    ok("caption", "--gather", "out", "--no-strict")
    content = json.loads(Path("out", "captions.json").read_text())
    assert {len(row["caption"].split()) <= 5 for row in content} == {True}
    assert len(content) == 3


def test_a_fitted_captioner_judges(mine, ok, tmp_path):
    words = ("metric=imagecaptioner2", "captioner=faithful", "dataset.n_images=60", "seeds=1")
    more = ("stats.resamples=20", "logger=csv", "metric.leaks=[]", "metric.sides=[model]")
    prompt = ("encoder.side=64", "encoder.prompt.template='{caption} {answer}'")
    answers = ("+encoder.prompt.answers.male=man", "+encoder.prompt.answers.female=woman")
    ok(*words, *more, "encoder=hf", f"encoder.model={mine}", *prompt, *answers)
    assert 0 < part(results(tmp_path)[0], "model")["value"] < 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--prompt", "a photo of"), "takes no prompt"),
        (("--dtype", "bfloat16"), "computes in float32; leave out --dtype"),
    ],
)
def test_what_a_fitted_captioner_does_not_take_is_refused(ends, photos, sat, words, message):
    assert message in ends(2, "caption", photos, "--model", str(sat[0]), "--out", "out", *words)


def test_a_fitted_captioner_has_its_sizes_and_the_weights_of_the_last_epoch(sat):
    folder, printed = sat
    assert f"caption --model {folder}" in printed
    assert "a captioner of 300 captions, loss" in printed
    assert json.loads((folder / "config.json").read_text())["encoder"]["hidden_dim"] == 16
    places = [folder / place for place in ("epochs/01", "epochs/02", ".")]
    weights = [(place / "model.safetensors").read_bytes() for place in places]
    assert weights[0] != weights[1] == weights[2]


def test_models_show_says_who_takes_it(ok, sat):
    output = ok("models", "show", str(sat[0]))
    assert "caption --model" in output
    assert "encoder.model" in output


@pytest.mark.parametrize(
    "setting", ['"confusion": 3.0', '"person": "segment"', '"captioner": "amplifier"']
)
def test_the_card_says_what_is_equalized_and_whose_captions_are_learnt(grit, setting):
    assert setting in (grit[0] / "README.md").read_text()


SCENES = "dataset.n_images=60"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("clip --equalizer", 2, "--equalizer is an option of fit sat"),
        ("debias --each-epoch", 2, "--each-epoch is an option of fit sat"),
        ("sat --confident-weight 2", 2, "--confident-weight belongs to --equalizer"),
        ("sat --equalizer --confusion-weight -1", 2, "--confusion-weight"),
        ("sat --confusion-weight 0", 2, "--confusion-weight belongs to --equalizer"),
        ("sat --equalizer image_masking=none", 2, "hides people"),
        ("sat --weights absent.parquet", 5, "absent.parquet"),
        ("sat --crop none", 2, "--crop is an option of fit clip"),
        ("sat encoder=grit", 2, "fit sat already sets it"),
        ("sat encoder.backbone=annotations", 3, "fitted to see pixels"),
        ("sat encoder.backbone=resnet18", 2, "efficientnet_lite0, timm:NAME, timm:FOLDER, hf:NAME"),
        ("grit encoder.backbone=boxes", 2, "own, efficientnet_lite0, timm:NAME"),
        ("sat encoder.backbone=timm:resnet81", 2, "did you mean 'resnet18'"),
        ("sat encoder.backbone=timm:resnet18", 5, "models prefetch timm/resnet18"),
        ("grit encoder.backbone=hf:a/vit", 5, "models prefetch a/vit"),
        ("sat fit.tune_backbone=1", 2, "is for a published vision network"),
        ("sat fit.tune_backbone=all", 2, "such as fit.tune_backbone=1"),
        ("sat encoder.hiden_dim=20", 2, "encoder.hiden_dim"),
        ("sat --epochs 0", 2, "--epochs"),
        ("sat encoder.grounding=gender", 2, "only fit sat can be grounded"),
        ("grit encoder.grounding=emotion", 2, "only fit sat can be grounded"),
        ("clip trainer.max_epochs=3", 2, "--epochs"),
        ("clip --prompts outputs", 2, "of fit debias"),
        ("debias debias=none encoder.model=CLIP", 2, "edits nothing"),
        ("debias debias=none --prompts outputs encoder.model=CLIP", 2, "edits nothing"),
        ("debias debias=erasure --epochs 2 encoder.model=CLIP", 2, "leave them out"),
        ("debias debias=erasure --captions model encoder.model=CLIP", 2, "leave them out"),
    ],
)
def test_what_does_not_fit_is_refused(words, code, message, ends, clip):
    words = words.replace("CLIP", str(clip))
    assert message in ends(code, "fit", *words.split(), SCENES, "--out", "mine")
    assert not Path("mine").exists()


def test_a_clip_is_not_fitted_without_pictures(ends, tmp_path):
    words = ("dataset=coco", f"dataset.root={write_coco(tmp_path / 'coco')}", "--out", "mine")
    assert "dataset 'coco' has no pictures; set dataset.images=DIR" in ends(
        3, "fit", "clip", *words
    )


@pytest.mark.slow
def test_two_processes_fit_together(ok):
    words = ("dataset.n_images=60", "--epochs", "1", "--batch-size", "20", "trainer=ddp")
    ok("fit", "clip", *words, "--out", "mine")
    assert Path("mine", "model.safetensors").is_file()


def test_a_debiasing_is_fitted_to_a_fold_too(ok, clip):
    words = ("debias=erasure", f"encoder.model={clip}", "split=crossfit", SCENES)
    assert "erasure of " in ok("fit", "debias", *words, "--out", "mine")


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
