"""``anonymous build --model``: prompts, seeds and resuming, with a pipeline of random weights."""

import json
import shutil
from pathlib import Path

import pytest

from bias_pipeline.io.files import read_csv
from bias_pipeline.people.text_to_image import planned_pictures, usual_prompts
from tests.tiny_diffusion import write_diffusion

BUILD = ("anonymous", "build", "--out", "a", "--per-prompt", "2", "--steps", "2", "--device", "cpu")
PROMPTS = ("a person in fog", "a person, seen from afar")


def test_500_prompts_of_10_pictures_are_5000_with_a_name_each():
    prompts = usual_prompts()
    pictures = planned_pictures(prompts, 10)
    assert (len(set(prompts)), len({one.file for one in pictures})) == (500, 5000)
    assert [one.prompt for one in pictures[:500]] == prompts


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory) -> Path:
    pytest.importorskip("diffusers", reason="needs the extra diffusion")
    return write_diffusion(tmp_path_factory.mktemp("diffusion") / "pipeline")


@pytest.fixture
def prompts(tmp_path: Path) -> tuple[str, str]:
    lines = "".join(f'"{prompt}"\n' for prompt in PROMPTS)
    (tmp_path / "prompts.csv").write_text(f"prompt\n{lines}")
    return "--prompts", "prompts.csv"


@pytest.mark.slow
def test_every_picture_has_its_prompt_and_seed(ok, pipeline, prompts):
    assert "4 pictures of 2 prompts" in ok(*BUILD, "--model", str(pipeline), *prompts)
    lines = read_csv(Path("a/pictures.csv").read_text())
    assert [(line["prompt"], line["seed"]) for line in lines] == [
        (prompt, seed) for seed in "01" for prompt in PROMPTS
    ]
    assert len({(Path("a/images") / line["file"]).read_bytes() for line in lines}) == 4
    ok("anonymous", "filter", "a")


@pytest.mark.slow
def test_it_goes_on_where_it_stopped_and_makes_the_same(ok, ends, pipeline, prompts):
    words = (*BUILD, "--model", str(pipeline), *prompts)
    ok(*words)
    whole = {path.name: path.read_bytes() for path in Path("a/images").iterdir()}
    Path("a/images/p2s0.png").unlink()
    times = {path: path.stat().st_mtime_ns for path in Path("a/images").iterdir()}
    assert "p2s0.png is absent; go on with anonymous build" in ends(3, "anonymous", "filter", "a")
    assert "3 of them made before" in ok(*words)
    assert {path.name: path.read_bytes() for path in Path("a/images").iterdir()} == whole
    assert all(path.stat().st_mtime_ns == time for path, time in times.items())


@pytest.mark.slow
def test_other_settings_do_not_go_on(ok, ends, pipeline, prompts):
    words = (*BUILD, "--model", str(pipeline), *prompts)
    ok(*words)
    assert "holds pictures of another steps" in ends(2, *words, "--steps", "3")


def without_safetensors(model: Path) -> None:
    for path in model.glob("*/*.safetensors"):
        path.rename(path.with_suffix(".bin"))


def with_code(model: Path) -> None:
    index = json.loads((model / "model_index.json").read_text())
    (model / "model_index.json").write_text(json.dumps({**index, "unet": ["my_unet", "Mine"]}))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "code", "message"),
    [
        (lambda model: (model / "model_index.json").unlink(), 5, "holds no diffusion pipeline"),
        (with_code, 3, "made of code that comes with the model"),
        (without_safetensors, 3, "no weights in safetensors"),
        (lambda model: shutil.rmtree(model / "vae"), 3, "cannot be loaded"),
    ],
    ids=["no pipeline", "code of its own", "no safetensors", "a part is missing"],
)
def test_a_pipeline_that_cannot_be_used_is_one_sentence(
    spoil, code, message, ends, pipeline, prompts, tmp_path
):
    model = Path(shutil.copytree(pipeline, tmp_path / "model"))
    spoil(model)
    assert message in ends(code, *BUILD, "--model", str(model), *prompts)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "words", "code", "message"),
    [
        ("prompt\n", (), 3, "holds no prompts"),
        ("prompt\na\na\n", (), 3, "occurs twice"),
        ("text\na\n", (), 3, "column 'prompt' is absent"),
        ("prompt\na\n", ("dataset.n_images=3",), 2, "--model takes no settings"),
        ("prompt\na\n", ("--out", "full"), 5, "already exists"),
    ],
)
def test_bad_input_is_one_sentence(table, words, code, message, ends, pipeline):
    Path("full").mkdir()
    Path("full/file").write_text("")
    Path("prompts.csv").write_text(table)
    options = ("--model", str(pipeline), "--prompts", "prompts.csv")
    assert message in ends(code, *BUILD, *options, *words)
