"""What is converted is what dataset=coco reads back."""

import json
from pathlib import Path

import pytest

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.records import StockCaption
from bias_pipeline.data.coco_files import human_captions, model_captions
from bias_pipeline.data.columns import Layout
from bias_pipeline.errors import DataError, ResourceError, UsageError
from bias_pipeline.published.convert import convert
from tests import coco_folder, composed, lic_folder


def load(*words: str) -> Corpus:
    return composed.corpus(*words)


def test_converted_json_gives_the_same_corpus(tmp_path):
    root, out = coco_folder.write_folder(tmp_path / "data"), tmp_path / "out"
    labels = f"dataset.attributes={root / coco_folder.LABELS}"
    names = (coco_folder.CAPTIONS, coco_folder.INSTANCES, coco_folder.MINE)
    tables = [convert(root / name, out)[0] for name in names]
    corpora = [
        load("dataset=coco", labels, f"dataset.captions={c}", f"dataset.instances={i}", captioner)
        for c, i, captioner in (
            (root / names[0], root / names[1], f"captioner={root / names[2]}"),
            (tables[0], tables[1], f"captioner={tables[2]}"),
        )
    ]
    assert corpora[0].digest == corpora[1].digest


def test_marks_of_captions_that_describe_nothing_are_converted(tmp_path):
    people = coco_folder.human()
    for number, row in enumerate(people["annotations"]):
        row["is_rejected"] = number % 5 == 0
    root = coco_folder.write_folder(tmp_path, {coco_folder.CAPTIONS: people})
    path = root / coco_folder.CAPTIONS
    (table,) = convert(path, tmp_path / "out")
    kinds = [
        {image: [type(text) for text in texts] for image, texts in human_captions(file)[0].items()}
        for file in (path, table)
    ]
    assert kinds[0] == kinds[1]
    assert {StockCaption, str} <= {kind for texts in kinds[0].values() for kind in texts}


def test_of_numbered_captions_the_first_is_converted_and_told(tmp_path, capsys):
    rows = [
        {"image_id": 7, "caption": text, "sample": k, "decoding": "greedy"}
        for k, text in enumerate(("a dog", "a cat"))
    ]
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(rows))
    (table,) = convert(path, tmp_path / "out")
    layout = Layout()
    assert model_captions(table, layout=layout)[0] == {"7": "a dog"}
    assert layout.notes() == ["mine.parquet: decoding: greedy"]
    assert "first caption of each image is converted, 1 other is not" in capsys.readouterr().err


def test_converted_pickles_give_the_captions_and_labels_of_lic(tmp_path):
    lines = [{**e, "rmdup_object_list": ["kite"]} for e in lic_folder.human_entries(80)]
    root = lic_folder.write_folder(tmp_path / "data", {lic_folder.HUMAN: lines})
    captions, labels = convert(root / lic_folder.SAT, tmp_path)
    stem = Path(lic_folder.SAT).stem
    assert [captions.name, labels.name] == [f"{stem}.parquet", f"{stem}_labels.parquet"]
    human, _, objects = convert(root / lic_folder.HUMAN, tmp_path)
    content = load(
        "dataset=coco",
        f"captioner={captions}",
        f"dataset.attributes={labels}",
        f"dataset.captions={human}",
        f"dataset.instances={objects}",
    )
    lic = load("dataset=lic", f"dataset.root={root}", "captioner=sat")
    assert list(content) == list(lic)


def test_an_image_without_objects_is_kept(tmp_path):
    content = coco_folder.instances()
    content["annotations"] = content["annotations"][1:60]
    root = coco_folder.write_folder(tmp_path, {coco_folder.INSTANCES: content})
    (table,) = convert(root / coco_folder.INSTANCES, tmp_path)
    labels, mine = (root / name for name in (coco_folder.LABELS, coco_folder.MINE))
    words = (f"dataset.attributes={labels}", f"dataset.instances={table}", f"captioner={mine}")
    assert load("dataset=coco", *words)[0].objects == frozenset()


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([], "holds no entries"),
        ([{"pred": "a dog"}], "entry 0: key 'img_id' is absent"),
        ([{"img_id": 1.5, "pred": "a"}], r"some\.pkl, entry 0: image id 1\.5"),
        ([{"img_id": 1}], "neither 'pred' nor 'caption_list'"),
        ([{"img_id": 1, "pred": 3}], "entry 0, 'pred' must be a string"),
        ([{"img_id": 1, "caption_list": [3]}], "entry 0, 'caption_list' must be a string"),
        ([{"img_id": 1, "pred": "a"}, {"img_id": "01", "pred": "b"}], "1 image id occurs twice"),
        ({"img_id": 1}, "the top level must be a list"),
    ],
)
def test_a_faulty_pickle_is_refused(tmp_path, entries, message):
    root = lic_folder.write_folder(tmp_path, {"some.pkl": entries})
    with pytest.raises(DataError, match=message):
        convert(root / "some.pkl", tmp_path)


def test_a_pickle_that_runs_code_is_refused_and_does_not_run(tmp_path):
    canary = tmp_path / "canary"
    (tmp_path / "evil.pkl").write_bytes(
        b"cos\nsystem\n(S'touch " + str(canary).encode() + b"'\ntR."
    )
    with pytest.raises(DataError, match="system"):
        convert(tmp_path / "evil.pkl", tmp_path)
    assert not canary.exists()


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("other.json", DataError, "is not a list and has no 'annotations'"),
        ("some.csv", UsageError, r"only \.pkl"),
        ("some.json", ResourceError, r"some\.json is absent"),
    ],
)
def test_a_file_that_cannot_be_converted_is_refused(tmp_path, name, error, message):
    (tmp_path / "other.json").write_text('{"info": 3}')
    with pytest.raises(error, match=message):
        convert(tmp_path / name, tmp_path)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    root = coco_folder.write_folder(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ResourceError, match="choose another folder with --out"):
        convert(root / coco_folder.MINE, tmp_path / "file")
