"""From Python: any form of data, the numbers of the command line, no Hydra."""

import io
import json
import random
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bias_pipeline as bp
from bias_pipeline import api
from bias_pipeline.commands import audit
from bias_pipeline.commands.main import main
from bias_pipeline.data.coco_files import human_captions, model_captions, objects_by_id
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.results.settings import Results
from bias_pipeline.scenes.captioners import CAPTIONERS
from bias_pipeline.scenes.dataset import write_scenes
from bias_pipeline.scenes.world import generate

QUICK = {"seeds": 2, "stats": {"resamples": 50}}


@dataclass(frozen=True)
class Scenes:
    """The embedded data set's files, and what they hold."""

    root: Path

    def captions(self, name: str) -> dict[str, str]:
        return model_captions(self.file(name))[0]

    def file(self, name: str) -> Path:
        return self.root / "captioners" / f"{name}.json"

    @property
    def labels(self) -> pd.DataFrame:
        return pd.read_csv(self.root / "attributes.csv")

    @property
    def human(self) -> dict[str, tuple[str, ...]]:
        return human_captions(self.root / "annotations" / "captions.json")[0]

    @property
    def objects(self) -> Mapping[str, frozenset[str]]:
        return objects_by_id(self.root / "annotations" / "instances.json")

    def overrides(self, out: Path) -> list[str]:
        return [
            "dataset=coco",
            f"dataset.attributes={self.root / 'attributes.csv'}",
            f"dataset.captions={self.root / 'annotations' / 'captions.json'}",
            f"dataset.instances={self.root / 'annotations' / 'instances.json'}",
            f"paths.outputs={out}",
            "logger=csv",
            "seeds=2",
            "stats.resamples=50",
        ]


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Scenes:
    root = tmp_path_factory.mktemp("scenes")
    names = ("amplifier", "faithful", "stereotyper")
    write_scenes(generate(n_images=300), root, {name: CAPTIONERS[name] for name in names})
    return Scenes(root)


def door(*words: str) -> str:
    """What a command that ends well prints."""
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(io.StringIO()):
        assert main(words) == 0
    return output.getvalue()


def numbers(answer: Any) -> list[dict[str, Any]]:
    """All rows, in an order of their own, NaN equal to itself."""
    frame = answer.frame().sort_values(["run_id", "part"])
    return json.loads(frame.to_json(orient="records", double_precision=15))


def test_it_needs_no_hydra_and_imports_late():
    code = """
import sys
import bias_pipeline as bp
assert not {"numpy", "pandas", "torch"} & set(sys.modules), "import bias_pipeline is dear"
bp.score("leakage", ["a man", "a woman"] * 30, ["male", "female"] * 30, sides=["model"], seeds=2)
assert not [name for name in sys.modules if name.partition(".")[0] in ("hydra", "torch")]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("metric", ["lic", "ba_mals"])
def test_a_score_is_the_commands(scenes, tmp_path, metric):
    name = f"captioner={scenes.file('amplifier')}"
    door(*scenes.overrides(tmp_path), f"metric={metric}", name)
    data = (scenes.captions("amplifier"), scenes.labels, scenes.human, scenes.objects)
    score = bp.score(metric, *data, captioner="amplifier", **QUICK)
    assert numbers(score) == numbers(bp.load(tmp_path))


@pytest.mark.slow
def test_an_audit_is_the_commands(scenes, tmp_path, monkeypatch):
    """Without human captions and without figures, for the sake of time."""
    monkeypatch.setattr(api, "write_page", lambda folder, path, *_: path.touch())
    monkeypatch.setattr(audit, "save_page", lambda report, path: path.touch())
    labels = scenes.labels[["id", "bb_gender"]]
    labels.to_csv(tmp_path / "labels.csv", index=False)
    words = ["--attributes", str(tmp_path / "labels.csv"), "--out", str(tmp_path / "command")]
    printed_door = door("audit", str(scenes.file("amplifier")), *words, "--minutes", "0.01")
    data = (scenes.captions("amplifier"), labels)
    result = bp.audit(*data, captioner="amplifier", minutes=0.01, out=tmp_path / "call")
    assert numbers(result) == numbers(bp.load(tmp_path / "command"))
    assert str(result) in printed_door
    assert (tmp_path / "call" / "report.html").is_file()


@pytest.mark.parametrize("rates", [{"male": 0.1, "female": 0}, "errors.csv"])
def test_label_errors_of_one_attribute_leave_the_others_of_an_audit_alone(
    tmp_path, monkeypatch, rates
):
    monkeypatch.chdir(tmp_path)
    Path("errors.csv").write_text("attribute,group,label,share\ngender,male,female,0.1\n")
    runner = api._InMemoryRunner({"dataset": {"label_noise": rates}}, {}, tmp_path)
    assert runner._labels_of("gender") == {"attribute": "gender"}
    assert runner._labels_of("race") == {"attribute": "race", "dataset": {"label_noise": None}}


def test_a_comparison_of_captions_or_of_results_is_the_commands(scenes, tmp_path):
    names = ("stereotyper", "faithful")
    pair = [str(scenes.file(name)) for name in names]
    printed = door("compare", *pair, *scenes.overrides(tmp_path), "metric=gender_error")
    captions, data = map(scenes.captions, names), (scenes.labels, scenes.human, scenes.objects)
    fresh = bp.compare(*captions, *data, metric="gender_error", names=names, **QUICK)
    assert "\n".join(one.sentence() for one in fresh.decisions) in printed
    assert fresh.notes
    assert all(note.partition(": ")[2] in printed for note in fresh.notes)
    assert str(fresh).endswith(fresh.notes[-1])
    assert fresh.frame().winner.tolist()[0] == "other"
    results = [
        bp.score("gender_error", scenes.captions(name), *data, captioner=name, **QUICK)
        for name in names
    ]
    assert str(bp.compare(*results)) == str(fresh)


IDS = ["7", "8", "9", "10"]
CAPTIONS = ["a man rides", "a woman rides", "a man sits", "a man eats"]
LABELS = ["male", "female", "female", "male"]
HUMAN = [["a man", "he rides"], ["a woman"], ["a lady"], ["a man eats"]]
FORMS = {
    "mappings": (
        dict(zip(IDS, CAPTIONS, strict=True)),
        dict(zip(IDS, LABELS, strict=True)),
        dict(zip(IDS, HUMAN, strict=True)),
    ),
    "lists of one": (
        {key: [text] for key, text in zip(IDS, CAPTIONS, strict=True)},
        {key: {"gender": label} for key, label in zip(IDS, LABELS, strict=True)},
        {key: tuple(item) for key, item in zip(IDS, HUMAN, strict=True)},
    ),
    "tables": (
        pd.DataFrame({"id": map(int, IDS), "caption": CAPTIONS}),
        pd.DataFrame({"id": IDS, "gender": LABELS}),
        pd.DataFrame({"image_id": IDS, "caption": HUMAN}).explode("caption"),
    ),
    "indexed tables": (
        pd.DataFrame({"caption": CAPTIONS}, index=IDS),
        pd.DataFrame({"gender": LABELS}, index=IDS),
        pd.DataFrame({"caption": HUMAN}, index=IDS).explode("caption"),
    ),
    "series in different orders": (
        pd.Series(CAPTIONS, index=IDS),
        pd.Series(LABELS, index=IDS)[::-1],
        pd.Series(HUMAN, index=IDS),
    ),
    "an attribute's labels by image": (
        dict(zip(IDS, CAPTIONS, strict=True)),
        {"gender": dict(zip(IDS, LABELS, strict=True))},
        dict(zip(IDS, HUMAN, strict=True)),
    ),
    "an attribute's series": (
        dict(zip(IDS, CAPTIONS, strict=True)),
        {"gender": pd.Series(LABELS, index=IDS)[::-1]},
        dict(zip(IDS, HUMAN, strict=True)),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_holds_the_same(form):
    expected = bp.score("gender_error", *FORMS["mappings"])
    assert numbers(bp.score("gender_error", *FORMS[form])) == numbers(expected)


def test_lists_are_aligned():
    frame = bp.score("gender_error", CAPTIONS, LABELS, HUMAN).frame().set_index("part")
    assert frame.value["score"] == 0.25


def test_nan_is_no_label_and_no_caption():
    captions = {1: "a man", 2: "a woman", 3: "a man", 4: float("nan")}
    labels = {1: "male", 2: "female", 3: float("nan"), 4: "male"}
    result = bp.score("gender_error", captions, labels)
    assert int(result.frame().n_images[0]) == 2


@pytest.mark.parametrize("of", [list, tuple, np.array, pd.Series])
def test_labels_may_be_a_list_an_attribute(of):
    captions = ["a man", "a woman", "a man"]
    labels = {"gender": of(["male", "male", "female"]), "race": of(["light", "dark", "dark"])}
    assert bp.score("gender_error", captions, labels).frame()["n_images"][0] == 3


def test_files_are_read_anew(tmp_path):
    path = tmp_path / "mine.csv"
    scores = []
    for texts in (CAPTIONS, ["a man"] * 4):
        pd.DataFrame({"image_id": range(4), "caption": texts}).to_csv(path)
        scores.append(bp.score("gender_error", path, LABELS).frame().value[0])
    assert scores == [0.25, 0.5]


def test_a_file_without_the_attribute_is_refused(tmp_path):
    (tmp_path / "labels.csv").write_text("id,sex\n1,male\n")
    with pytest.raises(DataError, match="no column 'bb_gender' for attribute 'gender'"):
        bp.score("gender_error", {1: "a man"}, tmp_path / "labels.csv")


UNEVEN = {"gender": ["male", "female"], "race": ["light"]}
MAYBE = ["male", "maybe", "male", "female"]
GIVE = "captions: give a mapping of image ids, a list, a table or a file, not int"


@pytest.mark.parametrize(
    ("captions", "labels", "message"),
    [
        (["a man", "a woman"], UNEVEN, "differ in length: gender 2, race 1"),
        (CAPTIONS, MAYBE, r"^labels: unknown labels in 'gender': 'maybe'"),  # no folder
        (5, LABELS, GIVE),
        ({1: {"a": "b"}}, LABELS, "'caption' is absent"),
        ({1: object()}, LABELS, "is not a text, a number or a list"),
    ],
    ids=["lists of two lengths", "an unknown label", "a number", "an object", "no value"],
)
def test_what_is_no_captions_or_labels_is_refused(captions, labels, message):
    with pytest.raises((UsageError, DataError), match=message):
        bp.score("gender_error", captions, labels)


def test_a_parameter_of_a_metric_may_have_the_name_of_an_argument():
    def mentions(**settings: str) -> float:
        human = [["a dog", "a dog and a cat"] for _ in CAPTIONS]
        data = (CAPTIONS, LABELS, human, [["dog"] for _ in CAPTIONS])
        rows = bp.score("ba_directional", *data, stats={"resamples": 5}, **settings).rows
        return next(row.value for row in rows if row.part == "mentions:human")

    assert mentions() == 1
    assert mentions(**{"metric.labels": "each"}) == 1.5


def test_an_audit_at_equal_speech_keeps_other_settings_of_the_encoder():
    """It sets the order of n-grams; before, it set the whole encoder."""
    people = [
        f"a {('man', 'woman')[k % 2]} with a {('dog', 'cat', 'cup')[k % 3]}" for k in range(60)
    ]
    labels = ["male", "female"] * 30
    human = [[caption, caption] for caption in people]
    audit = bp.audit(people, labels, human, encoder={"min_count": 3}, stats={"resamples": 5})
    configs = [result.manifest["config"] for result in audit.results]
    encoders = [config["probe"]["encoder"] for config in configs if "probe" in config]
    numbers = {(encoder["order"], encoder["min_count"]) for encoder in encoders}
    assert numbers == {(1, 3), (2, 3)}


def test_a_list_of_metrics_is_refused_with_what_to_do():
    with pytest.raises(UsageError, match="name one metric, and call once for each"):
        bp.score(["lic", "gender_error"], CAPTIONS, LABELS)


def test_captions_are_not_compared_with_results():
    score = bp.score("gender_error", CAPTIONS, LABELS)
    with pytest.raises(UsageError, match="captions of both captioners, or results of both"):
        bp.compare(score, CAPTIONS)


def test_a_folder_is_one_table_and_names_no_place_of_data_in_memory(tmp_path):
    for metric in ("gender_error", "gender_ratio"):
        bp.score(metric, CAPTIONS, LABELS, out=tmp_path)
    content = bp.load(tmp_path)
    assert isinstance(content, Results)
    assert set(content.frame().metric) == {"gender_error", "gender_ratio"}
    assert {result.manifest["corpus"]["file"] for result in content} == {""}


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="has no attribute 'scores'"):
        bp.scores  # noqa: B018


@pytest.mark.parametrize("names", [("a", "a"), ("a", "b")])
def test_captions_are_compared_with_labels_under_two_names(scenes, names):
    labels = scenes.labels if names == ("a", "a") else None
    with pytest.raises(UsageError, match="captions need labels and two names"):
        bp.compare(scenes.captions("stereotyper"), scenes.captions("faithful"), labels, names=names)


def test_gold_labels_correct_what_they_can():
    """Machine labels of 600 images err for every tenth woman; people label 400 of them."""
    truth = {i: "female" if i % 3 == 0 else "male" for i in range(600)}
    machine = {i: "male" if i % 30 == 0 else group for i, group in truth.items()}
    captions = {
        i: "a woman sits" if group == "female" else "a man sits" for i, group in truth.items()
    }
    gold = {i: truth[i] for i in random.Random(0).sample(range(600), 400)}
    plain = bp.score("gender_error", captions, machine)
    corrected = bp.score("gender_error", captions, machine, gold=gold)
    table = corrected.frame().set_index("part")["value"]
    assert table["score:machine"] == plain.frame()["value"][0] == pytest.approx(20 / 600)
    assert table["score"] < 0.005
    audited = bp.audit(captions, machine, gold=gold, minutes=0.1)
    values = {(row.metric, row.part): row.value for r in audited.results for row in r.rows}
    assert values["gender_error", "score"] == pytest.approx(table["score"], abs=1e-3)
    assert ("gender_ratio", "score:machine") not in values
    comparison = bp.compare(
        captions, {**captions, 1: "a woman sits"}, machine, gold=gold, metric="gender_error"
    )
    assert len(comparison.decisions) == 1
    with pytest.raises(DataError, match="gold labels do not correct gender_ratio"):
        bp.score("gender_ratio", captions, machine, gold=gold)
