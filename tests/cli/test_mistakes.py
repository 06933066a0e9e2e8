"""Likely mistakes end with a sentence that says what to write."""

import json
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pytest

from bias_pipeline.attack.lightning_loop import require_devices
from bias_pipeline.errors import ResourceError
from bias_pipeline.run import audit as auditing
from bias_pipeline.run import launch, outcomes
from bias_pipeline.scenes.captioners import CAPTIONERS
from bias_pipeline.scenes.dataset import write_scenes
from bias_pipeline.scenes.world import generate
from tests.cli.commands import SMALL, results

DIAL = "metric=gender_error captioner=mine +dataset.captioners.mine"


# A mistake, and what is said of it
MISTAKES = [
    ("--metric=lic", "settings are written without dashes, as metric=lic"),
    ("--metric lic", "settings are written without dashes, as metric=...\n"),
    ("--multirum metric=lic", "as multirum=...; did you mean --multirun?"),
    ("data validate --attributes=y.csv", "without dashes, as dataset.attributes=y.csv\n"),
    ("compare a b dataset.captions=x", "is unknown for dataset=scenes; did you mean"),
    ("compare a b dataset.captions=x", "world. dataset=coco has it."),
    ("metric=dbac metric.learning_curve=false", "imagecaptioner2, leakage, lic have it."),
    ("data validate my/captions.json", "file, write captioner=my/captions.json"),
    ("attribute=all", "attribute=all is unknown"),
    ("metric=all,lic", "all cannot stand beside other values; write metric=all"),
    ("captioner=all,faithful", "all cannot stand beside other values; write captioner=all"),
    ("paths.outputs=a,b", "needs quotes within quotes: 'paths.outputs=\"a,b\"'"),
    (
        "dataset.n_images=200 attribute=ethnicity",
        "scenes has labels of age, emotion, gender, race",
    ),
    ("audit x.json", "required: --attributes; see python -m bias_pipeline audit --help"),
    ("audit x.json --labels y.csv", "unrecognized arguments: --labels; the following"),
    ("audit x.json --attributes y.csv attribute=race", "race is not an option of audit"),
    ("metric = lic", "settings are written without blanks: metric=lic"),
    ("metric=lic,", "metric=lic,: a name is missing; Known: "),
    ("metric=LIC", "did you mean 'lic'?"),
    ("audit x.json --attributes y.csv --map M", "--map M: write LABEL=GROUP"),
    ("audit x.json --attributes y --map M=men", "did you mean"),
    ("attribute=[gender]", "name two attributes, as attribute=[gender,race]"),
    ("attribute=[gender,gender]", "name two attributes"),
    ("attribute=[gender,rce]", "did you mean 'race'"),
    ("attribute=[gender,race] masking=lic", "may not fit together"),
    ("--experimental-rerun x", "--experimental-rerun is not supported; use overrides"),
    ("hydra.run.dir=x", "hydra.run.dir is fixed; set paths.outputs=... instead"),
    ("analysis words --baseline nil", "--baseline=nil: Known: mean, zero"),
    (f"{DIAL}.attribute=genre", "scenes: unknown attribute 'genre'; did you mean 'gender'"),
    (f"{DIAL}.a_to_t=2", "scenes: dial a_to_t is 2; it must be in [-1.0, 1.0]"),
    (
        "analysis words dataset.n_images=100 encoder=rnn trainer.devices=2 trainer=ddp",
        "analysis words trains in one process; set trainer.devices=1",
    ),
    # Values that the grammar does not take
    ("captioner=Modèle", """quotes within quotes: 'captioner="Modèle"'"""),
    ("paths.outputs=/tmp/a(1)", """quotes within quotes: 'paths.outputs="/tmp/a(1)"'"""),
    ("paths.outputs=~/x", """write paths.outputs="$HOME/x\""""),
    ("seeds=[1,2", "seeds=[1,2 cannot be read: no viable alternative"),
    ("captioner='a", "a quotation mark is not closed"),
    # Keys that are not there
    (
        "stats.resample=5",
        "is unknown for stats=bootstrap; did you mean 'resamples'? Known: level,",
    ),
    ("seed=5", "seed is unknown; did you mean 'seeds'? Known: alignment,"),
    ("foo.bar=5", "foo is unknown; Known: alignment,"),
    ("dataset.captioners.mine.a_to_t=1", "a plus sign, +dataset.captioners.mine.a_to_t=..."),
    ("attribute=null", "attribute=null is unknown; Known: age,"),
    ("dataset.captioners={a:{a_to_t:1}}", "a plus sign, +dataset.captioners.NAME=..."),
    ("logger={a:1}", "logger has no such keys as it is set to; Known: csv, wandb."),
    ("hydra/launcher=submitit_slrm", "is unknown; did you mean 'submitit_slurm'? Known: basic"),
    ("encoder=ngram,bilstm encoder.order=1", "is unknown for encoder=bilstm; Known: bidirectional"),
    # Values that are none
    ("metric=", "Known:"),
    ("=3", "error:"),
    ("seeds=[a]", "seeds=['a']"),
    ("seeds=[0,null]", "seeds=[0, None]"),
    ("seeds=1.5", "seeds=1.5"),
    ("seeds=true", "seeds=True"),
    ("paths.outputs=", "paths.outputs='' must name a folder"),
    ("paths.outputs=null", "paths.outputs=None must name a folder"),
    ("paths.outputs=2024", "paths.outputs=2024 must name a folder"),
    ("dataset.n_images=0", "n_images is 0"),
    ("masking=tasks_only", "+task=coco_objects"),
    ("metric=lic seeds", "seeds has no value; write seeds=..."),
    # Words and choices
    ("rnu", "did you mean 'run'"),
    ("metric=lic,leakge", "did you mean 'leakage'"),
    ("sedes=3", "did you mean 'seeds'"),
    ("seeds=0", "seeds=0"),
    ("seeds=abc", "seeds=abc"),
    ("metric.relation=ratios", "must be one of difference, ratio"),
    ("encoder.nothing=1", "nothing"),
    ("attribute=emotion masking=lic", "lic"),
    ("+dataset.captioners.x.a_to_t=7", "a_to_t"),
    ("--config-path=/tmp", "not supported"),
    # Names of the contract
    ("metric=licc", "did you mean"),
    ("encoder=ngrm", "did you mean"),
    ("attribute=gendre", "did you mean"),
    ("dataset=scnes", "did you mean"),
    ("masking=atribute", "did you mean"),
    ("alignment=constnt", "did you mean"),
    ("scoring=acuracy", "did you mean"),
    ("split=lics", "did you mean"),
    ("captioner=faithfull", "did you mean"),
    ("captioner=faithful,fathful", "did you mean"),
    ("captioner=fathful metric=gender_error,gender_ratio", "did you mean"),
    ("head=linar", "did you mean"),
]


@pytest.mark.parametrize(("words", "message"), MISTAKES, ids=lambda item: item[:60])
def test_a_mistake_exits_2_with_a_sentence_before_any_work(ends, tmp_path, words, message):
    text = ends(2, *words.split())
    assert (message in text, "a bug" in text, results(tmp_path)) == (True, False, []), text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("dataset=lic dataset.root=nowhere", "set dataset.root"),
        ("captioner=all dataset=scenes,lic", "is not a folder"),
    ],
)
def test_absent_data_exit_5(ends, words, message, monkeypatch):
    monkeypatch.delenv("BIAS_PIPELINE_DATA", raising=False)  # else data may be where it looks
    assert message in ends(5, *words.split())


def test_two_names_without_a_comma_are_told_as_such(ends):
    assert "metric=lic leakage is unknown; did you mean" in ends(2, "metric=lic leakage")


@pytest.mark.parametrize(
    ("words", "noted"),
    [
        (("+seed=5",), True),
        (("+mine=7", "stats.seed=${mine}"), False),
        (("+dataset.captioners.mine.a_to_t=0.3",), False),
        (("++seeds=2",), False),
    ],
)
def test_a_key_that_nothing_refers_to_is_noted(ok, words, noted):
    cell = ("metric=gender_error", "dataset.n_images=100", "stats.resamples=20", "logger=csv")
    assert (f"note: {words[0]} has no effect" in ok(*cell, *words)) == noted


def test_converting_an_absent_file_names_it(ends):
    text = ends(5, "data", "convert", "nothing.json")
    assert "nothing.json is absent" in text
    assert "set " not in text


@pytest.mark.slow
def test_a_device_that_is_not_there_is_no_bug(ends, monkeypatch):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available() or torch.backends.mps.is_available():
        pytest.skip("there is one")
    text = ends(5, "encoder=rnn", "trainer=gpu", *SMALL[:1], "seeds=1", "metric.sides=[model]")
    assert "trainer=cpu" in text
    assert "a bug" not in text


NETWORK = ("encoder=rnn", *SMALL[:1], "seeds=1", "metric.sides=[model]", "logger=csv")
# It looks for a device and takes what is there.
LOOKS = ("trainer.accelerator=auto", "trainer.max_epochs=1")


@pytest.fixture
def without_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(probe: object) -> None:
        raise ResourceError("there is none")

    monkeypatch.setattr("bias_pipeline.run.worker_processes.require_devices", refuse)


@pytest.mark.parametrize("words", [LOOKS, ("trainer=gpu",), ("trainer=cpu,gpu",)], ids=str)
@pytest.mark.usefixtures("without_devices")
def test_a_device_is_missed_before_any_work(run, monkeypatch, words):
    monkeypatch.setattr("bias_pipeline.run.cell.run_cell", lambda *_, **__: pytest.fail("work"))
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
def test_all_captioners_are_those_that_the_data_permit(ends, monkeypatch, captioner, code):
    """One of the cells, made not applicable, is passed over only where all were asked for."""
    read = outcomes._outcome

    def with_one_refused(folder: Path) -> Mapping[str, object]:
        return {**ENDED, "not_applicable": True} if folder.name == "1" else read(folder)

    monkeypatch.setattr(outcomes, "_outcome", with_one_refused)
    monkeypatch.setattr(
        "bias_pipeline.run.launch._all_captioners", lambda *_: ["faithful", "terse"]
    )
    ends(code, "metric=gender_error", f"captioner={captioner}", *SMALL)


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


QUICK = ("seeds=1", "stats.resamples=10", "logger=csv")
MAP = ("--label-column", "sex", "--map", "1=male", "--map", "0=female")


def dataset_words(scenes: Path, name: str) -> list[str]:
    return ["dataset=coco", f"dataset.attributes={scenes / 'attributes.csv'}", f"captioner={name}"]


def test_another_language_is_not_blamed_on_people(ends, scenes):
    people = f"dataset.captions={scenes / 'annotations' / 'captions.json'}"
    words = dataset_words(scenes, str(scenes / "german.json"))
    assert "no word that the captioner uses" in ends(3, *words, people, *QUICK)


def test_validate_takes_the_options(ok, scenes):
    words = ["dataset=coco", f"dataset.attributes={scenes / 'labels.csv'}"]
    captioner = f"captioner={scenes / 'captioners' / 'faithful.json'}"
    assert "gender male" in ok("data", "validate", *words, captioner, *MAP)


def test_compare_takes_the_options(ends, scenes):
    words = ["dataset=coco", f"dataset.attributes={scenes / 'labels.csv'}", *MAP]
    pair = [str(scenes / "captioners" / "faithful.json"), str(scenes / "foreign.json")]
    message = "foreign.json: no caption is of a labelled image"
    assert message in ends(3, "compare", *pair, *words)


@pytest.mark.usefixtures("unrun")
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (MAP, None, "; gender (male "),
        (("--label-column", "sex"), 3, "--map 0=GROUP --map 1=GROUP"),
        ((), None, "not audited, no labels found: gender (--label-column names a column"),
    ],
    ids=["it takes the options", "numbers need a map", "attributes without a column"],
)
def test_audit_reads_labels_by_its_options(run, scenes, words, code, message):
    labels = ("--attributes", str(scenes / "labels.csv"), "--minutes", "0.01")
    ended, text = run("audit", str(scenes / "captioners" / "faithful.json"), *labels, *words)
    assert (code in (None, ended), message in text) == (True, True), text


@pytest.mark.usefixtures("unrun")
def test_an_attribute_of_one_group_is_not_passed_over_in_silence(run, scenes):
    table = pd.read_csv(scenes / "labels.csv").assign(sex="Male", bb_skin=["Light", "Dark"] * 150)
    table.to_csv(scenes / "men.csv", index=False)
    words = ("--attributes", str(scenes / "men.csv"), "--minutes", "0.01", "--label-column", "sex")
    text = run("audit", str(scenes / "captioners" / "faithful.json"), *words)[1]
    message = "not audited, fewer than two groups of 10 images: gender: 300 male, 0 female"
    assert message in text


def test_a_choice_that_no_metric_uses_is_told(ok):
    words = ("metric=gender_error", "encoder=lstm", "dataset.n_images=200", "logger=csv")
    assert "note: encoder=lstm has no effect" in ok(*words)


def test_a_choice_that_one_metric_of_several_uses_is_no_surprise(ok):
    words = ("metric=gender_error,lic", "scoring=accuracy", "dataset.n_images=200", "seeds=1")
    assert "has no effect" not in ok(*words, "logger=csv")


def test_if_all_jobs_failed_nothing_is_said_of_others_and_they_are_not_listed(ends):
    printed = ends(4, "metric=lic,leakage", "dataset.n_images=20", "logger=csv")
    assert "2 of 2 jobs failed" in printed
    assert ("the results of the others" in printed, "metric=lic,leakage" in printed) == (False,) * 2
