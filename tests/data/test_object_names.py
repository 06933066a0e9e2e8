"""Objects by other names than COCO's: the same numbers, or a refusal that says which names."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

import bias_pipeline as bp
from bias_pipeline.commands.main import main
from bias_pipeline.corpus.attribute import TaskVocabulary
from bias_pipeline.corpus.corpus import Record
from bias_pipeline.corpus.object_names import CATEGORIES, COCO_NAMES, ObjectNames
from bias_pipeline.corpus.pictures import PERSON
from bias_pipeline.data.picture_files import detections_by_id, regions_by_id
from bias_pipeline.errors import DataError
from bias_pipeline.metrics.corpus_view import CorpusView
from tests.corpora import GENDER, make_corpus

IMAGES = range(1, 41)
LABELS = {i: ("Male", "Female")[i % 2] for i in IMAGES}
# A sofa is with women three times in four, in captions always.
OBJECTS = {i: ["couch"] if (i % 2 and i % 8 != 1) or i % 8 == 4 else ["motorcycle"] for i in IMAGES}
CAPTIONS = {i: f"a {('man', 'woman')[i % 2]} on a {('motorcycle', 'sofa')[i % 2]}" for i in IMAGES}
QUICK = {"stats": {"resamples": 20}}
METRICS = ("ba_mals", "ba_directional")


def values(objects: object, **settings: object) -> dict[str, dict[str, float]]:
    """Each metric's parts."""
    return {
        metric: {
            row.part: row.value
            for row in bp.score(metric, CAPTIONS, LABELS, objects=objects, **QUICK, **settings).rows
        }
        for metric in METRICS
    }


def objects_named(names: Mapping[str, str]) -> dict[int, list[str]]:
    return {i: [names.get(name, name) for name in listed] for i, listed in OBJECTS.items()}


def as_table(objects: Mapping[int, Sequence[str]], path: Path) -> str:
    lines = [f'{i},"{name}"' for i, listed in objects.items() for name in listed]
    path.with_suffix(".csv").write_text("\n".join(["image_id,category", *lines]))
    return str(path.with_suffix(".csv"))


def as_instances(objects: Mapping[int, Sequence[str]], path: Path) -> str:
    """COCO's form with numbers of categories from 0."""
    names = sorted({name for listed in objects.values() for name in listed})
    content = {
        "images": [{"id": i} for i in objects],
        "categories": [{"id": number, "name": name} for number, name in enumerate(names)],
        "annotations": [
            {"image_id": i, "category_id": names.index(name)}
            for i, listed in objects.items()
            for name in listed
        ],
    }
    path.with_suffix(".json").write_text(json.dumps(content))
    return str(path.with_suffix(".json"))


def as_dict(objects: Mapping[int, Sequence[str]], path: Path) -> object:
    return objects


@cache
def plain_values() -> dict[str, dict[str, float]]:
    return values(OBJECTS)


NAMES = [
    {"couch": "sofa", "motorcycle": "motorbike"},
    {"couch": "Couch", "motorcycle": "MOTORCYCLE"},
    {"couch": " couch ", "motorcycle": "motor_cycle"},
    {"couch": "couches", "motorcycle": "Motor-Bikes"},
    {"couch": "So\u200bfa", "motorcycle": "motor\u00a0cycle"},
]


@pytest.mark.parametrize(
    ("write", "names"),
    [*((as_table, names) for names in NAMES), (as_instances, NAMES[0]), (as_dict, NAMES[2])],
)
def test_other_names_of_objects_give_the_same_numbers(tmp_path, write: Callable, names):
    assert plain_values()["ba_mals"]["score"] > 0.05
    assert values(write(objects_named(names), tmp_path / "objects")) == plain_values()


def test_two_names_of_one_object_in_an_image_count_once():
    both = {
        i: [*listed, "Sofa", "sofas"] if "couch" in listed else listed
        for i, listed in OBJECTS.items()
    }
    assert values(both) == plain_values()


def test_what_was_read_is_a_line():
    result = bp.score(
        "ba_mals", CAPTIONS, LABELS, objects=objects_named({"couch": "Sofa"}), **QUICK
    )
    assert "names of objects: 'Sofa' is couch" in result.manifest["notes"]
    plain = bp.score("ba_mals", CAPTIONS, LABELS, objects=OBJECTS, **QUICK)
    assert not [note for note in plain.manifest["notes"] if "names of objects" in note]
    assert plain.run_id != result.run_id  # its numbers rest on the table of names


def test_unknown_names_are_counted_and_above_a_tenth_refused(tmp_path):
    odd = as_table(objects_named({"couch": "canapé"}), tmp_path / "objects")
    n = sum(listed == ["couch"] for listed in OBJECTS.values())
    with pytest.raises(DataError, match=rf"objects\.csv: {n} of 40 objects \(.* 'canapé' \({n}\)"):
        values(odd)
    lenient = bp.score("ba_mals", CAPTIONS, LABELS, objects=odd, dataset={"strict": False}, **QUICK)
    assert any(f"{n} of 40 objects (" in note for note in lenient.manifest["notes"])
    assert lenient.manifest["corpus"]["unknown_objects"] == n / 40


def test_cooccurrence_has_all_but_distances_without_names_of_objects(tmp_path):
    people = {i: [text, f"{text} there"] for i, text in CAPTIONS.items()}
    odd = as_table(objects_named({"couch": "canapé"}), tmp_path / "odd")
    whole, lacking = (
        bp.score("cooccurrence", CAPTIONS, LABELS, people, objects, **QUICK)
        for objects in (OBJECTS, odd)
    )
    parts = [{row.part: row.value for row in result.rows} for result in (whole, lacking)]
    assert parts[1].keys() < parts[0].keys()
    assert all("distance" in part for part in parts[0].keys() - parts[1].keys())
    assert parts[1] == pytest.approx({part: parts[0][part] for part in parts[1]}, nan_ok=True)
    (note,) = (note for note in lacking.notes if note.startswith("no distances: "))
    assert "'canapé'" in note


def test_data_validate_lists_unknown_names(tmp_path, capsys):
    names = {"couch": "canapé", "motorcycle": "moto"}
    odd = as_table(objects_named(names), tmp_path / "odd")
    rows = [{"image_id": i, "caption": text} for i, text in CAPTIONS.items()]
    (tmp_path / "mine.json").write_text(json.dumps(rows))
    lines = [f"{i},{label}" for i, label in LABELS.items()]
    (tmp_path / "labels.csv").write_text("\n".join(["id,gender", *lines]))
    files = {
        "captioner": tmp_path / "mine.json",
        "dataset.attributes": tmp_path / "labels.csv",
        "dataset.instances": odd,
    }
    words = [f"{key}={path}" for key, path in files.items()]
    assert main(["data", "validate", "dataset=coco", *words]) == 0
    n = sum(listed == ["couch"] for listed in OBJECTS.values())
    listed = (f"'canapé' ({n})", f"'moto' ({40 - n})")
    printed = " ".join(capsys.readouterr().out.split())
    assert all(one in printed for one in listed)
    assert "names of objects that coco_objects does not have: " in printed


def test_a_few_unknown_names_are_a_line():
    few = {**OBJECTS, 1: [*OBJECTS[1], "sky", "lamp"], 2: [*OBJECTS[2], "sky"]}
    result = bp.score("ba_mals", CAPTIONS, LABELS, objects=few, **QUICK)
    assert any("'sky' (2), 'lamp' (1)" in note for note in result.manifest["notes"])
    assert {row.part: row.value for row in result.rows} == values(OBJECTS)["ba_mals"]


def test_persons_in_every_image_do_not_thin_out_unknown_names():
    """Metrics leave persons out, so a share of all objects would say little."""
    names = {i: [*OBJECTS[i], "person", *(["canapé"] if i % 6 == 0 else [])] for i in IMAGES}
    with pytest.raises(DataError, match=r"6 of 46 objects \(13\.0%\)"):
        values(names)


def test_the_fix_of_a_refusal_works(tmp_path, capsys):
    odd = as_table(objects_named({"couch": "canapé"}), tmp_path / "objects")
    words = ["metric=ba_mals", "dataset=coco", "logger=csv", f"paths.outputs={tmp_path / 'out'}"]
    for name, content in {"labels": LABELS, "mine": CAPTIONS}.items():
        column = {"labels": "gender", "mine": "caption"}[name]
        lines = [f"image_id,{column}", *(f"{i},{value}" for i, value in content.items())]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines))
    words += [f"dataset.attributes={tmp_path / 'labels.csv'}", f"captioner={tmp_path / 'mine.csv'}"]
    words += [f"dataset.instances={odd}"]
    assert main(words) == DataError.exit_code
    assert "dataset.strict=false" in capsys.readouterr().err
    assert main([*words, "dataset.strict=false"]) == 0
    capsys.readouterr()


def test_metrics_that_count_no_objects_run_with_any_names(tmp_path):
    odd = as_table(objects_named({"couch": "canapé"}), tmp_path / "objects")
    assert bp.score("gender_error", CAPTIONS, LABELS, objects=odd, **QUICK).rows


def test_an_audit_tests_nothing_on_objects_of_unknown_names():
    objects = {i: OBJECTS[(i - 1) % 40 + 1] for i in range(1, 121)}
    captions = {i: CAPTIONS[(i - 1) % 40 + 1] for i in range(1, 121)}
    labels = {i: LABELS[(i - 1) % 40 + 1] for i in range(1, 121)}
    for names, tested in (({}, True), ({"couch": "canapé"}, False)):
        named = {i: [names.get(name, name) for name in listed] for i, listed in objects.items()}
        audit = bp.audit(captions, labels, objects=named)
        (answer,) = (one for one in audit.answers if one.question == "tasks")
        assert (answer.answer, answer.metric == "ba_mals") == (
            ("yes", True) if tested else ("not_tested", False)
        )
    share = sum(listed == ["couch"] for listed in objects.values()) / len(objects)
    assert answer.reason == f"{share:.0%} of the objects have names that the …"
    why = f"{share:.0%} of the objects have names that the list of tasks does not know"
    assert any(why in sentence for sentence in audit.notes)


def test_a_task_list_of_ones_own_decides_what_a_name_means():
    vocabulary = TaskVocabulary("mine", {"sofa": ["sofa"], "couch": ["couch"], "woman": ["woman"]})
    listed = [["Couches"], ["Sofa"], ["woman"], ["person"], ["settee"]]
    records = [
        Record(str(i), "a man", labels={"gender": "m"}, objects=frozenset(names))
        for i, names in enumerate(listed)
    ]
    view = CorpusView(make_corpus(records), GENDER, None, vocabulary)
    counted = view.objects.toarray().tolist()
    assert counted == [[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("aeroplane", "airplane"),
        ("Aeroplanes", "airplane"),
        ("motorbike", "motorcycle"),
        ("diningtable", "dining table"),
        ("pottedplant", "potted plant"),
        ("tvmonitor", "tv"),
        ("TV/monitor", "tv"),
        ("Television", "tv"),
        ("traffic_light", "traffic light"),
        ("Hot-Dog", "hot dog"),
        ("knives", "knife"),
        ("mice", "mouse"),
        ("benches", "bench"),
        ("ski", "skis"),
        ("scissor", "scissors"),
        ("doughnuts", "donut"),
        ("hairdryer", "hair drier"),
        ("mobile phone", "cell phone"),
        ("persons", "person"),
        ("People", "person"),
        ("women", "person"),
        ("children", "person"),
        ("dog, cat", None),
        ("['dog', 'cat']", None),
        ("dog;cat", None),
        ("18", None),
        ("", None),
        ("glasses", None),
        ("plant", None),
        ("table", None),
    ],
)
def test_what_names_mean(written, name):
    assert COCO_NAMES.meaning_of(written) == name


def test_every_category_means_itself():
    assert [COCO_NAMES.meaning_of(name) for name in CATEGORIES] == list(CATEGORIES)


def test_a_name_that_could_mean_two_means_none():
    names = ObjectNames(["hot dog", "hotdog", "sofa", "couch"])
    assert [names.meaning_of(n) for n in ("hot dog", "Hot_Dog", "television")] == [
        "hot dog",
        None,
        None,
    ]


def test_regions_and_detections_have_the_same_names(tmp_path):
    content = {
        "images": [{"id": 1, "height": 9, "width": 9}],
        "categories": [{"id": 0, "name": "Woman"}, {"id": 1, "name": "TV_Monitor"}],
        "annotations": [
            {"image_id": 1, "category_id": number, "bbox": [1, 1, 2, 2]} for number in (0, 1)
        ],
    }
    (tmp_path / "regions.json").write_text(json.dumps(content))
    regions = regions_by_id(tmp_path / "regions.json")["1"]
    assert [region.category for region in regions] == [PERSON, "tv"]
    (tmp_path / "seen.csv").write_text("image_id,label,score\n1,Persons,0.9\n1,person,0.5\n")
    assert detections_by_id(tmp_path / "seen.csv") == {"1": ((PERSON, 0.9),)}
