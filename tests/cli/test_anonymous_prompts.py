"""``anonymous build --model``: prompts, seeds and resuming, with a pipeline of random weights."""

import json
from pathlib import Path

import pytest

from bias_pipeline.io.files import read_csv
from bias_pipeline.models.text_to_image import planned_pictures, usual_prompts
from tests.tiny_diffusion import write_diffusion

BUILD = ("anonymous", "build", "--out", "a", "--per-prompt", "2", "--steps", "2", "--device", "cpu")
PROMPTS = ("a person in fog", "a person, seen from afar")


def test_500_prompts_of_10_pictures_are_5000_with_a_name_each():
    prompts = usual_prompts()
    pictures = planned_pictures(prompts, 10)
    assert (len(set(prompts)), len({one.file for one in pictures})) == (500, 5000)
    assert [one.prompt for one in pictures[:500]] == prompts


@pytest.fixture(scope="session")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("diffusers", reason="needs the extra diffusion")
    return write_diffusion(tmp_path_factory.mktemp("diffusion") / "pipeline")


@pytest.fixture
def prompts(tmp_path: Path) -> tuple[str, str]:
    lines = "".join(f'"{prompt}"\n' for prompt in PROMPTS)
    (tmp_path / "prompts.csv").write_text(f"prompt\n{lines}")
    return "--prompts", "prompts.csv"


@pytest.mark.slow
def test_every_picture_has_its_prompt_and_seed(run, pipeline, prompts):
    code, printed = run(*BUILD, "--model", str(pipeline), *prompts)
    assert (code, "4 pictures of 2 prompts" in printed) == (0, True), printed
    lines = read_csv(Path("a/pictures.csv").read_text())
    assert [(line["prompt"], line["seed"]) for line in lines] == [
        (prompt, seed) for seed in "01" for prompt in PROMPTS
    ]
    contents = {(Path("a/images") / line["file"]).read_bytes() for line in lines}
    assert len(contents) == 4
    assert run("anonymous", "filter", "a")[0] == 0


@pytest.mark.slow
def test_it_goes_on_where_it_stopped_and_makes_the_same(run, pipeline, prompts):
    words = (*BUILD, "--model", str(pipeline), *prompts)
    assert run(*words)[0] == 0
    whole = {path.name: path.read_bytes() for path in Path("a/images").iterdir()}
    lost = Path("a/images/p2s0.png")
    lost.unlink()
    times = {path: path.stat().st_mtime_ns for path in Path("a/images").iterdir()}
    code, printed = run("anonymous", "filter", "a")
    assert (code, "p2s0.png is absent; go on with anonymous build" in printed) == (3, True), printed
    code, printed = run(*words)
    assert (code, "3 of them made before" in printed) == (0, True), printed
    assert {path.name: path.read_bytes() for path in Path("a/images").iterdir()} == whole
    assert all(path.stat().st_mtime_ns == time for path, time in times.items())


@pytest.mark.slow
def test_other_settings_do_not_go_on(run, pipeline, prompts):
    words = (*BUILD, "--model", str(pipeline), *prompts)
    assert run(*words)[0] == 0
    code, printed = run(*words, "--steps", "3")
    assert (code, "holds pictures of another steps" in printed) == (2, True), printed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "code", "message"),
    [
        ("no pipeline", 5, "holds no diffusion pipeline"),
        ("code of its own", 3, "made of code that comes with the model"),
        ("no safetensors", 3, "no weights in safetensors"),
        ("a part is missing", 3, "cannot be loaded"),
        ("no prompts", 3, "holds no prompts"),
        ("a prompt twice", 3, "occurs twice"),
        ("no column", 3, "column 'prompt' is absent"),
        ("settings of scenes", 2, "--model takes no settings"),
        ("another folder", 5, "already exists"),
    ],
)
def test_bad_input_is_one_sentence(
    fault, code, message, run, pipeline, prompts,
    tmp_path,
):  # fmt: skip
    import shutil

    model = Path(shutil.copytree(pipeline, tmp_path / "model"))
    index = json.loads((model / "model_index.json").read_text())
    tables = {
        "no prompts": "prompt\n",
        "a prompt twice": "prompt\na\na\n",
        "no column": "text\na\n",
    }
    further: tuple[str, ...] = ()
    if fault == "no pipeline":
        (model / "model_index.json").unlink()
    elif fault == "code of its own":
        (model / "model_index.json").write_text(json.dumps({**index, "unet": ["my_unet", "Mine"]}))
    elif fault == "no safetensors":
        for path in model.glob("*/*.safetensors"):
            path.rename(path.with_suffix(".bin"))
    elif fault == "a part is missing":
        shutil.rmtree(model / "vae")
    elif fault == "settings of scenes":
        further = ("dataset.n_images=3",)
    elif fault == "another folder":
        Path("a").mkdir()
        Path("a/file").write_text("")
    else:
        Path("prompts.csv").write_text(tables[fault])
    outcome, printed = run(*BUILD, "--model", str(model), *prompts, *further)
    assert (outcome, message in printed) == (code, True), printed
    assert "Traceback" not in printed
