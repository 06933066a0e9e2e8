"""COCO-format files become a corpus, or are refused with the file, the place and the remedy."""

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.data.coco import CocoDataset
from bias_pipeline.errors import DataError, ResourceError, UsageError
from bias_pipeline.io.paths import safe_name
from bias_pipeline.run import compose
from tests import composed
from tests.coco_folder import (
    CAPTIONS,
    INSTANCES,
    LABELS,
    MINE,
    human,
    instances,
    labels,
    results,
    write_folder,
)
from tests.corpora import REPOSITORY


def load(root: Path, *overrides: str) -> Corpus:
    """The corpus of a folder; ROOT in overrides stands for it."""
    settings = {"dataset": "coco", "dataset.root": str(root), "captioner": "mine"}
    settings |= dict(override.replace("ROOT", str(root)).split("=", 1) for override in overrides)
    return composed.corpus(*(f"{key}={value}" for key, value in settings.items()))


def refusal_of(root: Path, *overrides: str) -> str:
    with pytest.raises(DataError) as caught:
        load(root, *overrides)
    return str(caught.value)


def spoil(content: Any, number: int, **changes: object) -> Any:
    """A file with one annotation changed."""
    content["annotations"][number] |= changes
    return content


def caption(image: object, text: str | None = "a dog", **more: object) -> dict[str, object]:
    return {"image_id": image, "caption": text, **more}


def draws_of_two() -> list[dict[str, object]]:
    """What ``caption --gather --n 2`` writes; both captions of an image may be the same."""
    numbered = [{**row, "sample": k, "decoding": "drawn"} for row in ROWS for k in (0, 1)]
    return [row | ({"caption": "a dog"} if row["sample"] else {}) for row in numbered]


ROWS, ALIKE = results(), f"captioner=ROOT/{MINE}"
FOREIGN = [*ROWS, caption(7), caption("x", "a")]
SECOND = [(100, "second"), (101, "other"), (100, "third"), (101, "other")]
SAMPLES, DRAWS = [*ROWS, *(caption(*each) for each in SECOND)], draws_of_two()
SEVERAL, LENIENT = "dataset.multi_caption=true", "dataset.strict=false"
NOT_SCORED = "of images not scored here"


# --- what is read


def test_a_record_has_everything_that_the_files_say(tmp_path):
    record = load(write_folder(tmp_path))[0]
    assert record.id == "100"
    assert record.model == results()[0]["caption"]
    assert record.human == ("somebody holds a kite 0", "somebody holds a kite 1")
    assert record.labels == {"gender": "male"}
    assert record.objects == {"person", "kite"}


def test_human_captions_may_cover_a_part(tmp_path):
    corpus = load(write_folder(tmp_path))
    assert (len(corpus.model), len(corpus.human)) == (60, 100)


def instances_with_boxes() -> dict[str, Any]:
    boxes = {"bbox": [0.0, 1.5, 2, 3], "segmentation": [[1.0, 2.0]], "iscrowd": 0}
    content = instances()
    return {**content, "annotations": [each | boxes for each in content["annotations"]]}


def files_in_another_order() -> dict[str, Any]:
    """All files in another order."""
    files = {MINE: results(), CAPTIONS: human(), INSTANCES: instances()}
    for rows in (files[MINE], files[CAPTIONS]["annotations"], files[INSTANCES]["images"]):
        random.Random(0).shuffle(rows)
    head, *lines = labels().splitlines()
    return {**files, LABELS: "\n".join([head, *lines[::-1]])}


SAME = {
    "JSON lines": ({"m.jsonl": "\n".join(map(json.dumps, ROWS))}, "captioner=ROOT/m.jsonl"),
    "CSV": ({"m.csv": pd.DataFrame(ROWS).to_csv(index=False)}, "captioner=ROOT/m.csv"),
    "Parquet": ({"m.parquet": pd.DataFrame(ROWS).to_parquet()}, "captioner=ROOT/m.parquet"),
    "boxes": ({INSTANCES: instances_with_boxes()}, ALIKE),
    "an ending in capitals": ({"captioners/M.JSON": ROWS}, "captioner=M"),
    "objects in capitals": ({"O.JSON": instances()}, "dataset.instances=ROOT/O.JSON"),
    "byte order mark": ({LABELS: b"\xef\xbb\xbf" + labels().encode()}, ALIKE),
    "ids as text": ({MINE: [caption(f"000{r['image_id']}", r["caption"]) for r in ROWS]}, ALIKE),
    "order": (files_in_another_order(), ALIKE),
}


@pytest.mark.parametrize(("files", "word"), SAME.values(), ids=SAME)
def test_other_ways_to_write_the_same_give_the_same_corpus(tmp_path, files, word):
    one, other = write_folder(tmp_path / "one"), write_folder(tmp_path / "other", files)
    assert load(other, word).digest == load(one).digest


NULL = [caption(100, None), *ROWS[1:]]


@pytest.mark.parametrize(
    "content", [NULL, {str(row["image_id"]): row["caption"] for row in NULL}], ids=["list", "ids"]
)
def test_null_is_a_blank_caption(tmp_path, content):
    corpus = load(write_folder(tmp_path, {MINE: content}))
    assert (corpus[0].model, corpus.blanks["model"]) == (None, 1)


def test_a_path_is_named_by_its_stem(tmp_path):
    assert load(write_folder(tmp_path), f"captioner={tmp_path / MINE}").captioner == "mine"


@pytest.mark.parametrize(
    ("name", "safe"), [("=cmd()<script>../..", "cmd_script"), ("a" * 300, "a" * 60)]
)
def test_a_hostile_file_name_is_a_safe_name(name, safe):
    assert safe_name(name) == safe


def test_captioners_are_the_files_of_the_folder(tmp_path):
    root = write_folder(tmp_path, {"captioners/a.jsonl": "", "captioners/readme.txt": "no"})
    assert CocoDataset(str(root)).captioners() == ["a", "mine"]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"the folder .*/captioners is absent"):
        CocoDataset(str(tmp_path / "nowhere")).check_captioner("sat")


def test_files_of_root_are_left_alone_if_labels_are_named(tmp_path):
    root = write_folder(tmp_path)
    corpus = load(root, f"dataset.attributes={root / LABELS}")
    assert (len(corpus.human), corpus.objects) == (0, None)


def test_objects_may_be_a_table(tmp_path):
    table = "image_id,category\n" + "".join(f"{100 + i},person\n" for i in range(59)) + "159,\n"
    root = write_folder(tmp_path, {"objects.csv": table})
    words = (f"dataset.attributes={root / LABELS}", f"dataset.instances={root / 'objects.csv'}")
    corpus = load(root, *words)
    assert (corpus[0].objects, corpus[59].objects) == ({"person"}, frozenset())


def test_people_who_say_what_the_captioner_says_are_a_warning(tmp_path):
    corpus = load(write_folder(tmp_path, {CAPTIONS: {"annotations": ROWS}}))
    assert any("human captions are the captioner's" in note for note in corpus.notes)


def test_an_attribute_whose_groups_the_column_names_needs_no_label_map(tmp_path):
    root = write_folder(tmp_path, {"pets.csv": "id,pet\n100,dog\n101,cat\n"})
    pet = Attribute("pet", ("dog", "cat"), {"dog": ["dog"], "cat": ["cat"]})
    corpus = CocoDataset(str(root), str(root / "pets.csv"), strict=False).load("mine", pet)
    assert corpus.groupings["pet"].codes.tolist() == [0, 1]


def test_an_image_without_objects_is_known_and_an_absent_one_is_not(tmp_path):
    lines = [f"{100 + i},person\n" for i in range(58)]
    root = write_folder(tmp_path, {"objects.csv": f"image_id,category\n{''.join(lines)}158,\n"})
    words = (f"dataset.attributes={root / LABELS}", f"dataset.instances={root / 'objects.csv'}")
    corpus = load(root, *words, LENIENT)
    assert (corpus[58].objects, corpus[59].objects) == (frozenset(), None)


def test_a_note_says_that_objects_of_an_absent_image_are_unknown(tmp_path):
    table = "image_id,category\n" + "".join(f"{100 + i},person\n" for i in range(59))
    root = write_folder(tmp_path, {"objects.csv": table})
    words = (f"dataset.attributes={root / LABELS}", f"dataset.instances={root / 'objects.csv'}")
    assert "so their objects are unknown" in " ".join(load(root, *words, LENIENT).notes)


def test_a_part_of_the_label_file_is_scored(tmp_path):
    assert load(write_folder(tmp_path), "dataset.split=val").ids[:3] == ("100", "103", "106")


PARTS = [(100 + i, "test" if i < 10 else "train") for i in range(60)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("karpathy.json", {"images": [{"cocoid": i, "split": part} for i, part in PARTS]}),
        ("split.csv", "image_id,split\n" + "".join(f"{i},{part}\n" for i, part in PARTS)),
    ],
)
def test_a_split_file_says_what_is_scored(tmp_path, name, content):
    root = write_folder(tmp_path, {name: content})
    corpus = load(root, f"dataset.split_file={root / name}", "dataset.split=[test]")
    assert len(corpus) == 10


def test_a_split_file_without_a_part_is_refused(tmp_path):
    root = write_folder(tmp_path, {"split.csv": "image_id,split\n100,val\n"})
    with pytest.raises(UsageError, match=r"name them, as dataset\.split=test"):
        load(root, f"dataset.split_file={root / 'split.csv'}")


def test_an_image_in_two_parts_is_refused(tmp_path):
    root = write_folder(tmp_path, {"split.csv": "image_id,split\n100,val\n100,test\n"})
    words = (f"dataset.split_file={root / 'split.csv'}", "dataset.split=[val]")
    assert "line 3: image id 100 is in 'val' and 'test'" in refusal_of(root, *words)


def people_of_one_more_image() -> dict[str, Any]:
    """Human captions, one of them of an image that is nowhere else."""
    return {**human(), "annotations": [caption(7, id=1), *human()["annotations"]]}


NOTED = {
    "part": ({}, "dataset.split=val", f"40 captions {NOT_SCORED} are left out"),
    "lenient": ({MINE: ROWS[6:]}, LENIENT, "6 of 60 labelled"),
    "no group": ({MINE: ROWS[:57]}, ALIKE, "3 images of no group have no caption"),
    "equal": ({MINE: [*ROWS, *ROWS[:2]]}, ALIKE, "2 repeated captions of the captioner"),
    "samples": ({MINE: SAMPLES}, SEVERAL, "number 0 of each is scored, 3 others are not"),
    "decoding": ({MINE: DRAWS}, ALIKE, "decoding: drawn"),
    "described": (
        {MINE: FOREIGN[:61], CAPTIONS: people_of_one_more_image()},
        ALIKE,
        f"1 caption {NOT_SCORED} is left out",
    ),
}


@pytest.mark.parametrize(("files", "word", "note"), NOTED.values(), ids=NOTED)
def test_what_is_left_out_is_noted(tmp_path, files, word, note):
    corpus = load(write_folder(tmp_path, files), word)
    assert any(note in each for each in corpus.notes)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("dataset.split=vall", r"dataset\.split=vall is unknown; did you mean 'val'"),
        ("dataset.caption_index=1", r"0 without dataset\.multi_caption=true"),
        ("captioner=mien", "did you mean 'mine'"),
    ],
)
def test_an_override_that_cannot_be_is_refused(tmp_path, word, message):
    with pytest.raises(UsageError, match=message):
        load(write_folder(tmp_path), word)


# --- broken files


def cut(content: object) -> str:
    text = json.dumps(content)
    return text[: len(text) // 2]


DAMAGED = [
    (CAPTIONS, cut(human()), f"ROOT/{CAPTIONS}: line 1, column"),
    (INSTANCES, cut(instances()), f"ROOT/{INSTANCES}: line 1, column"),
    (MINE, cut(ROWS), f"ROOT/{MINE}: line 1, column"),
    *((name, '"text"', f"ROOT/{name}") for name in (CAPTIONS, INSTANCES, MINE)),
    ("cut.jsonl", "\n".join([*map(json.dumps, ROWS[:3]), '{"image_id": 103']), "line 4, column"),
    (MINE, '[{"image_id": 100, "caption": NaN}]', "NaN is not JSON"),
    (LABELS, labels()[:200], f"ROOT/{LABELS}, line"),
    ("m.parquet", pd.DataFrame(ROWS).to_parquet()[:-9], "not a readable Parquet file"),
    ("m.csv", "image_id,caption\n100,café\n".encode("latin-1"), "m.csv: line 2, byte 8: not UTF-8"),
    ("m.csv", "image_id,caption\n100,café\n".encode("latin-1"), "iconv -f latin1 -t utf-8"),
    (LABELS, f"{labels()}é".encode("latin-1"), f"ROOT/{LABELS}: line 62, byte 1: not UTF-8"),
    ("captioners/mine.xls", "no", "'.xls' is unknown"),
]


@pytest.mark.parametrize(("name", "content", "message"), DAMAGED)
def test_a_damaged_file_is_refused_with_its_place(tmp_path, name, content, message):
    root = write_folder(tmp_path, {name: content})
    captioner = MINE if name in (CAPTIONS, INSTANCES, LABELS) else name
    assert message.replace("ROOT", str(root)) in refusal_of(root, f"captioner=ROOT/{captioner}")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"image_id": 101}, "entry 1: key 'caption' is absent; found image_id"),
        ({"caption": "a dog"}, "entry 1: key 'image_id' is absent"),
        ({"image_id": 1.5, "caption": "a dog"}, "entry 1: image id 1.5 is neither"),
        ({"image_id": 101, "caption": 7}, "entry 1: 'caption' must be text, found 7"),
    ],
)
def test_a_faulty_entry_is_named(tmp_path, entry, message):
    assert message in refusal_of(write_folder(tmp_path, {MINE: [ROWS[0], entry, *ROWS[2:]]}))


NOWHERE = "2 of 62 captions are of images that are in neither the labels nor another file"
TWICE = "image id 100 occurs twice with different captions"
ELSEWHERE = {"annotations": [caption(7, id=1)]}
NO_NUMBER = "'sample' must be a whole number from 0, found 'a'"
CATEGORY = "annotations entry 3: category_id 99"
UNFIT = {
    "foreign ids": (MINE, FOREIGN, NOWHERE),
    "people elsewhere": (CAPTIONS, ELSEWHERE, f"{CAPTIONS}: no caption is of a labelled image"),
    "their examples": (MINE, FOREIGN, "such as 7, x;"),
    "no objects": (
        INSTANCES,
        instances(58),
        f"{INSTANCES}: 2 of 60 labelled images are absent, so their objects",
    ),
    "category": (INSTANCES, spoil(instances(), 3, category_id=99), CATEGORY),
    "two captions": (MINE, [*ROWS, caption(100)], TWICE),
    "samples without decoding": (
        MINE,
        [{**caption(100, f"a dog {k}"), "sample": k} for k in (0, 1)],
        "to score all samples, add 'decoding' to every entry",
    ),
    "annotation id": (CAPTIONS, spoil(human(), 1, id=7), "annotation id 7 occurs twice"),
    "sample": (MINE, [{**row, "sample": "a"} for row in DRAWS], NO_NUMBER),
}


@pytest.mark.parametrize(("name", "content", "message"), UNFIT.values(), ids=UNFIT)
def test_files_that_do_not_fit_are_refused(tmp_path, name, content, message):
    assert message in refusal_of(write_folder(tmp_path, {name: content}))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (SAMPLES, "59 of 60 labelled images have no caption"),
        (DRAWS, "holds no captions of sample 2"),
    ],
    ids=["plain", "numbered"],
)
def test_a_number_that_captions_lack_is_refused(tmp_path, rows, message):
    root = write_folder(tmp_path, {MINE: rows})
    assert message in refusal_of(root, SEVERAL, "dataset.caption_index=2")


# --- missing captions and unknown ids


def test_missing_captions_are_refused_with_a_count_and_five_examples(tmp_path):
    message = refusal_of(write_folder(tmp_path, {MINE: ROWS[6:]}))
    assert "6 of 60 labelled images have no caption (6 of them in a group of gender)" in message
    assert "such as 100, 101, 102, 103, 104; " in message
    assert "dataset.strict=false" in message


def test_without_strict_the_rest_is_scored(tmp_path):
    assert len(load(write_folder(tmp_path, {MINE: results()[6:]}), LENIENT).model) == 54


def test_without_strict_foreign_ids_are_left_out(tmp_path):
    root = write_folder(tmp_path, {MINE: [*results(), caption(7)]})
    assert "7" not in load(root, LENIENT).ids


# --- ids that stand twice


ONE_OF = {
    "first": (SAMPLES, [SEVERAL], [row["caption"] for row in ROWS]),
    "other": (SAMPLES, [SEVERAL, "dataset.caption_index=1", LENIENT], ["second", "other"]),
    "numbered": (DRAWS, [SEVERAL, "dataset.caption_index=1"], ["a dog"] * 60),
}


@pytest.mark.parametrize(("rows", "words", "captions"), ONE_OF.values(), ids=ONE_OF)
def test_one_of_several_captions_is_scored(tmp_path, rows, words, captions):
    corpus = load(write_folder(tmp_path, {MINE: rows}), *words)
    assert [record.model for record in corpus if record.model] == captions


def test_numbered_captions_are_samples(tmp_path):
    first, second = load(write_folder(tmp_path, {MINE: DRAWS})).each_sample
    assert first[0].model == ROWS[0]["caption"]
    assert {record.model for record in second} == {"a dog"}


# --- a single group


def test_labels_of_one_group_are_refused_by_attackers(tmp_path):
    root = write_folder(tmp_path, {LABELS: labels().replace("Female", "Male")})
    cell = compose.cell(["dataset=coco", f"dataset.root={root}", "captioner=mine"])
    with pytest.raises(DataError, match="two groups"):
        cell.build("metric").draw_splits(cell.corpus(), [0])


@pytest.mark.parametrize("captioner", [MINE, "m.csv"])
def test_a_caption_of_a_megabyte_is_cut_in_every_format_and_counted(tmp_path, captioner):
    rows = [caption(100, "dog " * 250_000), *ROWS[1:]]
    content = rows if captioner == MINE else pd.DataFrame(rows).to_csv(index=False)
    root = write_folder(tmp_path, {captioner: content})
    corpus = load(root, f"captioner=ROOT/{captioner}")
    assert corpus.model.lengths.max() == 2_500
    assert "1 caption of more than 10,000 characters was cut" in corpus.notes


_READ = """
import resource, sys
from bias_pipeline.run import compose

words = ["dataset=coco", f"dataset.attributes={sys.argv[1]}", f"captioner={sys.argv[2]}"]
assert len(compose.cell(words).corpus()) == 1_000_000
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
def test_a_million_captions_are_read_within_2_gigabytes(tmp_path):
    """In a process of its own, whose peak of memory counts nothing else."""
    words = random.Random(0).choices([f"word{i}" for i in range(5_000)], k=1_000_000)
    rows = [{"image_id": i, "caption": f"a {word} " * 4} for i, word in enumerate(words)]
    path, message = tmp_path / "m.json", tmp_path / "labels.csv"
    path.write_text(json.dumps(rows))
    lines = (f"{i},{('Male', 'Female')[i % 2]}" for i in range(len(rows)))
    message.write_text("\n".join(["id,bb_gender", *lines]))
    command = [sys.executable, "-c", _READ, str(message), str(path)]
    done = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True)
    assert int(done.stdout) < 2 << 20  # KiB


@pytest.mark.parametrize("key", ["captions", "attributes", "instances"])
def test_an_absent_file_is_named_with_its_key(tmp_path, key):
    words = (f"dataset.attributes=ROOT/{LABELS}", f"dataset.{key}=ROOT/nowhere.json")
    with pytest.raises(ResourceError, match=rf"nowhere\.json is absent.*set dataset\.{key}"):
        load(write_folder(tmp_path), *words)


def test_an_absent_results_file_is_named(tmp_path):
    with pytest.raises(ResourceError, match=r"nowhere\.json is absent"):
        load(write_folder(tmp_path), "captioner=ROOT/nowhere.json")


def test_without_labels_the_key_is_told(tmp_path):
    root = write_folder(tmp_path)
    (root / LABELS).unlink()
    with pytest.raises(ResourceError, match=r"set dataset\.attributes=FILE"):
        load(root)


# --- what is not there


def test_pictures_need_no_captioner(tmp_path):
    corpus = load(write_folder(tmp_path), "captioner=none")
    assert (len(corpus), len(corpus.model), corpus.captioner) == (60, 0, "none")


def test_without_captioners_the_keys_are_told(tmp_path):
    root = write_folder(tmp_path)
    (root / MINE).unlink()
    with pytest.raises(ResourceError, match=r"captioner=FILE\.json"):
        CocoDataset(str(root)).captioners()


# --- the real files


@pytest.mark.real
def test_the_real_files_are_read(data_root):
    corpus = load(data_root / "coco", "captioner=sat")
    grouping = corpus.groupings["gender"]
    assert (len(corpus), len(corpus.model)) == (15_762, 15_762)
    assert (int((grouping.codes == 0).sum()), int((grouping.codes == 1).sum())) == (7_466, 3_314)
    assert grouping.strata == {"Both": 813, "Unsure": 3_410, "": 759}
    assert len(set(corpus.human.image_rows.tolist())) == 13_693


@pytest.mark.slow
@pytest.mark.real
def test_a_real_captioner_may_lack_images_of_no_group(data_root):
    corpus = load(data_root / "coco", "captioner=oscar_cider")
    assert len(corpus.model) == 13_057
    assert "2705 images of no group have no caption" in corpus.notes


@pytest.mark.slow
@pytest.mark.real
def test_coco_and_lic_hold_the_same_captions_of_a_captioner(data_root):
    coco = load(data_root / "coco", "captioner=sat")
    lic = compose.cell(["dataset=lic", f"dataset.root={data_root}/lic/bias_data", "captioner=sat"])
    other = {record.id: (record.model, record.labels) for record in lic.corpus() if record.model}
    records = {record.id: (record.model, record.labels) for record in coco if record.labels}
    assert records == other
