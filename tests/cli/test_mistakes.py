"""Likely mistakes end with a sentence that says what to write, and help does nothing else."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from bias_pipeline.datasets.scenes.captioners import CAPTIONERS
from bias_pipeline.datasets.scenes.dataset import write_scenes
from bias_pipeline.datasets.scenes.world import generate
from bias_pipeline.errors import ResourceError
from bias_pipeline.learning.loop import require_devices
from bias_pipeline.sweeps import audit as auditing
from bias_pipeline.sweeps import launch, outcomes, slurm
from tests.cli.commands import SMALL, Run

HELP = [
    ("submit", "--help"),
    ("submit", "embed", "--help"),
    ("data", "--help"),
    ("data", "validate", "--help"),
    ("analysis", "--help"),
    ("analysis", "unmasked_words", "--help"),
    ("analysis", "claims", "--help"),
    ("help",),
]


@pytest.mark.parametrize("words", HELP, ids=" ".join)
def test_help_is_printed_and_nothing_is_done(run, monkeypatch, words):
    monkeypatch.setattr(slurm, "check_slurm", lambda _: pytest.fail("Slurm was asked for"))
    try:
        code, text = run(*words)
    except SystemExit as end:  # argparse ends the process after its help
        code, text = int(str(end.code)), "python -m bias_pipeline"
    assert (code, "python -m bias_pipeline" in text) == (0, True), text


MISTAKES = [
    (("--metric=lic",), "settings are written without dashes, as metric=lic"),
    (("--metric", "lic"), "settings are written without dashes, as metric=..."),
    (("metric=lic leakage",), "metric=lic leakage is unknown; did you mean 'leakage'"),
    (("metric=all,lic",), "all must be the only value, as metric=all"),
    (("encoder=lstm", "trainer.max_epochs=abc"), "max_epochs='abc' must be a whole number"),
    (("metric=glob(l*)",), "a sweep must list its values"),
    (("seed=3",), "did you mean 'seeds'"),
    (("attribute=ethnicity",), "scenes has labels of age, emotion, gender, race"),
    (("audit", "x.json"), "required: --attributes; see python -m bias_pipeline audit --help"),
    (("audit", "x.json", "--attributes", "y.csv", "--map", "M"), "--map M: write LABEL=GROUP"),
    (("audit", "x.json", "--attributes", "y", "--map", "M=men"), "did you mean"),
]


@pytest.mark.parametrize(
    ("words", "message"), MISTAKES, ids=lambda words_given: str(words_given)[:50]
)
def test_a_mistake_is_told_as_such(fails, words, message):
    text = fails(2, *words, *(SMALL if words[0] != "audit" else ()))
    assert message in text
    assert "a bug" not in text


def test_converting_an_absent_file_names_it(fails):
    text = fails(5, "data", "convert", "nothing.json")
    assert "nothing.json is absent" in text
    assert "set " not in text


@pytest.mark.slow
def test_a_device_that_is_not_there_is_no_bug(fails, monkeypatch):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available() or torch.backends.mps.is_available():
        pytest.skip("there is one")
    text = fails(5, "encoder=rnn", "trainer=gpu", *SMALL[:1], "seeds=1", "metric.sides=[model]")
    assert "trainer=cpu" in text
    assert "a bug" not in text


NETWORK = ("encoder=rnn", *SMALL[:1], "seeds=1", "metric.sides=[model]", "logger=csv")
# It looks for a device and takes what is there.
LOOKS = ("trainer.accelerator=auto", "trainer.max_epochs=1")


@pytest.fixture
def without_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(probe: object) -> None:
        raise ResourceError("there is none")

    monkeypatch.setattr("bias_pipeline.sweeps.worker_processes.require_devices", refuse)


@pytest.mark.parametrize("words", [LOOKS, ("trainer=gpu",), ("trainer=cpu,gpu",)], ids=str)
@pytest.mark.usefixtures("without_devices")
def test_a_device_is_missed_before_any_work(run, monkeypatch, words):
    monkeypatch.setattr("bias_pipeline.cell.run_cell", lambda *_, **__: pytest.fail("work"))
    assert run(*NETWORK, *words) == (5, "error: there is none\n")


def test_a_finished_cell_needs_no_device(run, request):
    assert run(*NETWORK, *LOOKS)[0] == 0
    request.getfixturevalue("without_devices")
    assert run(*NETWORK, *LOOKS)[0] == 0


@pytest.mark.usefixtures("without_devices")
def test_a_metric_without_networks_needs_no_device(run):
    assert run("metric=gender_error", "trainer=gpu", *SMALL)[0] == 0


def test_more_devices_than_there_are_is_a_want_of_resources():
    torch = pytest.importorskip("torch")
    beyond = max(torch.cuda.device_count(), 1) + 8
    with pytest.raises(ResourceError, match=rf"trainer\.devices={beyond}"):
        require_devices({"accelerator": "gpu", "devices": beyond})


ENDED = {"status": "failed", "exit_code": 3, "error": "nobody is named", "overrides": []}


@pytest.mark.parametrize(("captioner", "code"), [("all", 0), ("faithful,terse", 4)])
def test_all_captioners_are_those_that_the_data_permit(fails, monkeypatch, captioner, code):
    """One of the cells, made not applicable, is passed over only where all were asked for."""
    read = outcomes._outcome

    def with_one_refused(folder: Path) -> Mapping[str, object]:
        return {**ENDED, "not_applicable": True} if folder.name == "1" else read(folder)

    monkeypatch.setattr(outcomes, "_outcome", with_one_refused)
    monkeypatch.setattr(
        "bias_pipeline.sweeps.launch._all_captioners", lambda *_: ["faithful", "terse"]
    )
    fails(code, "metric=gender_error", f"captioner={captioner}", *SMALL)


# --- own files


@pytest.fixture
def unrun(monkeypatch: pytest.MonkeyPatch) -> None:
    """Audits that plan one cell an attribute, and run none."""
    nothing, plan = outcomes.SweepOutcome(Path()), auditing.Plan(["gender_error"], [], 1, 1.0)
    monkeypatch.setattr(launch, "run_cells", lambda *_, **__: nothing)
    monkeypatch.setattr(auditing, "plan_for", lambda *_, **__: plan)


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scenes")
    write_scenes(generate(n_images=300), folder, {"faithful": CAPTIONERS["faithful"]})
    content = json.loads((folder / "captioners" / "faithful.json").read_text())
    german = ["ein Mann mit Hut", "eine Frau am Tisch", "jemand auf einem Rad"]
    german_captions = [{**row, "caption": german[k % 3]} for k, row in enumerate(content)]
    (folder / "german.json").write_text(json.dumps(german_captions))
    foreign = [{"image_id": f"x{k}", "caption": "a dog"} for k in range(9)]
    (folder / "foreign.json").write_text(json.dumps(foreign))
    labels = (folder / "attributes.csv").read_text().replace("bb_gender", "sex")
    labels = labels.replace(",Male,", ",1,").replace(",Female,", ",0,")
    (folder / "labels.csv").write_text(labels)
    return folder


def dataset_words(scenes: Path, name: str) -> list[str]:
    people = scenes / "annotations" / "captions.json"
    files = [f"dataset.attributes={scenes / 'attributes.csv'}", f"dataset.captions={people}"]
    return ["dataset=coco", *files, f"captioner={scenes / name}"]


QUICK = ("seeds=1", "stats.resamples=10", "logger=csv")


def test_another_language_is_not_blamed_on_people(fails, scenes):
    assert "no word that the captioner uses" in fails(
        3, *dataset_words(scenes, "german.json"), *QUICK
    )


def test_e7_data_validate_tells_of_another_language(run, scenes):
    code, text = run("data", "validate", *dataset_words(scenes, "german.json"))
    message = "warning: 100% of the captioner's captions hold no English word"
    assert (code, message in text) == (0, True), text


def test_captions_of_other_images_are_refused_though_not_strict(fails, scenes):
    words = [
        w for w in dataset_words(scenes, "foreign.json") if not w.startswith("dataset.captions")
    ]
    assert "no caption is of a labelled image" in fails(
        3, *words, "dataset.strict=false", "metric=gender_error", *QUICK
    )


MAP = ("--label-column", "sex", "--map", "1=male", "--map", "0=female")


def test_validate_takes_the_options(ok, scenes):
    words = ["dataset=coco", f"dataset.attributes={scenes / 'labels.csv'}"]
    captioner = f"captioner={scenes / 'captioners' / 'faithful.json'}"
    assert "gender male" in ok("data", "validate", *words, captioner, *MAP)


def audit(run: Run, scenes: Path, *words: str) -> tuple[int, str]:
    labels = ("--attributes", str(scenes / "labels.csv"), "--minutes", "0.01")
    return run("audit", str(scenes / "captioners" / "faithful.json"), *labels, *words)


@pytest.mark.usefixtures("unrun")
def test_audit_takes_the_options(run, scenes):
    text = audit(run, scenes, *MAP)[1]
    assert "; gender (male " in text, text


def test_audit_refuses_numbers_without_a_map(run, scenes):
    code, text = audit(run, scenes, "--label-column", "sex")
    assert (code, "--map 0=GROUP --map 1=GROUP" in text) == (3, True), text


@pytest.mark.usefixtures("unrun")
def test_audit_tells_which_attributes_have_no_column(run, scenes):
    text = audit(run, scenes)[1]
    assert "not audited, no labels found: gender (--label-column names a column)" in text, text


def test_compare_takes_the_options(fails, scenes):
    labels = ["dataset=coco", f"dataset.attributes={scenes / 'labels.csv'}"]
    pair = [str(scenes / "captioners" / "faithful.json"), str(scenes / "foreign.json")]
    assert "foreign.json: no caption is of a labelled image" in fails(
        3, "compare", *pair, *labels, *MAP
    )


def test_a_choice_that_no_metric_uses_is_told(ok):
    assert "note: encoder=lstm has no effect" in ok(
        "metric=gender_error", "encoder=lstm", "dataset.n_images=200", "logger=csv"
    )


def test_a_choice_that_one_metric_of_several_uses_is_no_surprise(ok):
    words = ("metric=gender_error,lic", "scoring=accuracy", "dataset.n_images=200", "seeds=1")
    assert "has no effect" not in ok(*words, "logger=csv")
