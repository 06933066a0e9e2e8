"""COCO-format files become a corpus, or are refused with the file, the place and the remedy."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from bias_pipeline.config import compose
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.datasets.coco import CocoDataset
from bias_pipeline.errors import DataError, ResourceError, UsageError
from bias_pipeline.io.paths import safe_name
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
    settings = {"dataset": "coco", "dataset.root": str(root), "captioner": "mine"}
    settings |= dict(override.split("=", 1) for override in overrides)
    return composed.corpus(*(f"{key}={value}" for key, value in settings.items()))


def refused(root: Path, *overrides: str) -> str:
    with pytest.raises(DataError) as caught:
        load(root, *overrides)
    return str(caught.value)


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


@pytest.mark.parametrize("name", ["captioners/mine.jsonl", "captioners/mine.csv", "m.parquet"])
def test_every_format_of_captions_is_read_alike(tmp_path, name):
    root = write_folder(tmp_path)
    path, rows = root / name, pd.DataFrame(results())
    if path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, results())))
    elif path.suffix == ".csv":
        rows.to_csv(path, index=False)
    else:
        rows.to_parquet(path)
    assert load(root, f"captioner={path}").digest == load(root, f"captioner={root / MINE}").digest


def test_a_path_is_named_by_its_stem(tmp_path):
    assert load(write_folder(tmp_path), f"captioner={tmp_path / MINE}").captioner == "mine"


def test_e9_a_hostile_file_name_is_a_safe_name():
    assert safe_name("=cmd()<script>../..") == "cmd_script"


def test_e9_a_long_file_name_is_cut():
    assert len(safe_name("a" * 300)) == 60


def test_captioners_are_the_files_of_the_folder(tmp_path):
    root = write_folder(tmp_path, {"captioners/a.jsonl": "", "captioners/readme.txt": "no"})
    assert CocoDataset(str(root)).captioners() == ["a", "mine"]


def test_files_of_root_are_left_alone_if_labels_are_named(tmp_path):
    root = write_folder(tmp_path)
    corpus = load(root, f"dataset.attributes={root / LABELS}")
    assert (len(corpus.human), corpus.objects) == (0, None)


def test_instances_with_boxes_are_read_alike(tmp_path):
    boxed = instances()
    for entry in boxed["annotations"]:
        entry |= {"bbox": [0.0, 1.5, 2, 3], "segmentation": [[1.0, 2.0]], "iscrowd": 0}
    one, two = (
        load(write_folder(tmp_path / str(k), {INSTANCES: content}))
        for k, content in enumerate((instances(), boxed))
    )
    assert one.digest == two.digest


def test_objects_may_be_a_table(tmp_path):
    table = [{"image_id": 100 + i, "category": "person"} for i in range(59)]
    table.append({"image_id": 159, "category": ""})
    root = write_folder(tmp_path, {"objects.csv": pd.DataFrame(table).to_csv(index=False)})
    corpus = load(
        root, f"dataset.attributes={root / LABELS}", f"dataset.instances={root / 'objects.csv'}"
    )
    assert (corpus[0].objects, corpus[59].objects) == ({"person"}, frozenset())


def test_a_part_of_the_label_file_is_scored(tmp_path):
    corpus = load(write_folder(tmp_path), "dataset.split=val")
    assert corpus.ids[:3] == ("100", "103", "106")
    assert "40 captions of images that are not scored here are left out" in corpus.notes


@pytest.mark.parametrize("name", ["karpathy.json", "split.csv"])
def test_a_split_file_says_what_is_scored(tmp_path, name):
    parts = ["test" if i < 10 else "train" for i in range(60)]
    content = {
        "karpathy.json": json.dumps(
            {"images": [{"cocoid": 100 + i, "split": p} for i, p in enumerate(parts)]}
        ),
        "split.csv": "image_id,split\n" + "".join(f"{100 + i},{p}\n" for i, p in enumerate(parts)),
    }[name]
    root = write_folder(tmp_path, {name: content})
    corpus = load(root, f"dataset.split_file={root / name}", "dataset.split=[test]")
    assert len(corpus) == 10


def test_an_unknown_part_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"dataset\.split=vall is unknown; did you mean 'val'"):
        load(write_folder(tmp_path), "dataset.split=vall")


# --- E1: broken files


@pytest.mark.parametrize("name", [CAPTIONS, INSTANCES, MINE])
def test_e1_a_cut_json_file_is_refused_with_its_line(tmp_path, name):
    root = write_folder(tmp_path)
    whole = (root / name).read_bytes()
    (root / name).write_bytes(whole[: len(whole) // 2])
    assert f"{root / name}: line 1, column" in refused(root)


@pytest.mark.parametrize("name", [CAPTIONS, INSTANCES, MINE])
def test_e1_another_top_level_is_refused(tmp_path, name):
    assert str(tmp_path / name) in refused(write_folder(tmp_path, {name: '"text"'}))


def test_e1_a_cut_line_of_json_lines_is_refused_with_its_number(tmp_path):
    lines = [*map(json.dumps, results()[:3]), '{"image_id": 103, "capt']
    root = write_folder(tmp_path, {"cut.jsonl": "\n".join(lines)})
    assert "cut.jsonl: line 4, column" in refused(root, f"captioner={root / 'cut.jsonl'}")


def test_e1_nan_is_refused(tmp_path):
    text = '[{"image_id": 100, "caption": NaN}]'
    assert "NaN is not JSON" in refused(write_folder(tmp_path, {MINE: text}))


def test_e1_a_csv_file_cut_within_a_record_is_refused_with_its_line(tmp_path):
    root = write_folder(tmp_path, {LABELS: labels()[:200]})
    assert f"{root / LABELS}, line" in refused(root)


def test_e1_a_cut_parquet_file_is_refused(tmp_path):
    root = write_folder(tmp_path)
    pd.DataFrame(results()).to_parquet(root / "m.parquet")
    (root / "m.parquet").write_bytes((root / "m.parquet").read_bytes()[:-9])
    assert "not a readable Parquet file" in refused(root, f"captioner={root / 'm.parquet'}")


def test_e1_a_byte_order_mark_is_read(tmp_path):
    marked = b"\xef\xbb\xbf" + labels().encode()
    assert len(load(write_folder(tmp_path, {LABELS: marked}))) == 60


def test_e1_text_that_is_not_utf8_is_refused(tmp_path):
    content = "image_id,caption\n100,café\n".encode("latin-1")
    root = write_folder(tmp_path, {"m.csv": content})
    assert "not UTF-8" in refused(root, f"captioner={root / 'm.csv'}")


def test_e1_an_unknown_ending_is_refused(tmp_path):
    root = write_folder(tmp_path, {"captioners/mine.xls": "no"})
    assert "'.xls' is unknown" in refused(root, f"captioner={root / 'captioners/mine.xls'}")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"image_id": 101}, "entry 1: key 'caption' is absent; found image_id"),
        ({"caption": "a dog"}, "entry 1: key 'image_id' is absent"),
        ({"image_id": 1.5, "caption": "a dog"}, "entry 1: image id 1.5 is neither"),
        ({"image_id": 101, "caption": None}, "entry 1: 'caption' must be text, found 'None'"),
    ],
)
def test_e1_a_faulty_entry_is_named(tmp_path, entry, message):
    rows = results()
    rows[1] = entry
    assert message in refused(write_folder(tmp_path, {MINE: rows}))


# --- E2: missing captions and unknown ids


def test_e2_missing_captions_are_refused_with_a_count_and_five_examples(tmp_path):
    message = refused(write_folder(tmp_path, {MINE: results()[6:]}))
    assert "6 of 60 labelled images have no caption (6 of them in a group of gender)" in message
    assert "such as 100, 101, 102, 103, 104; " in message
    assert "dataset.strict=false" in message


def test_e2_without_strict_the_rest_is_scored_and_noted(tmp_path):
    corpus = load(write_folder(tmp_path, {MINE: results()[6:]}), "dataset.strict=false")
    assert len(corpus.model) == 54
    assert any("6 of 60 labelled" in note for note in corpus.notes)


def test_images_of_no_group_need_no_caption(tmp_path):
    corpus = load(write_folder(tmp_path, {MINE: results()[:57]}))
    assert "3 images of no group have no caption" in corpus.notes


def test_e2_foreign_ids_are_refused_with_a_count_and_examples(tmp_path):
    rows = [*results(), {"image_id": 7, "caption": "a dog"}, {"image_id": "x", "caption": "a"}]
    message = refused(write_folder(tmp_path, {MINE: rows}))
    assert (
        "2 of 62 captions are of images that are in neither the labels nor another file" in message
    )
    assert "such as 7, x;" in message


def test_e2_without_strict_foreign_ids_are_left_out(tmp_path):
    rows = [*results(), {"image_id": 7, "caption": "a dog"}]
    corpus = load(write_folder(tmp_path, {MINE: rows}), "dataset.strict=false")
    assert "7" not in corpus.ids


def test_e2_images_that_people_described_are_not_foreign(tmp_path):
    printed_human = human()
    printed_human["annotations"].append({"id": 1, "image_id": 7, "caption": "a dog"})
    rows = [*results(), {"image_id": 7, "caption": "a dog"}]
    corpus = load(write_folder(tmp_path, {MINE: rows, CAPTIONS: printed_human}))
    assert "1 captions of images that are not scored here are left out" in corpus.notes


def test_e2_images_without_known_objects_are_refused(tmp_path):
    root = write_folder(tmp_path, {INSTANCES: instances(58)})
    assert "2 of 60 labelled images are not in the file of objects" in refused(root)


def test_e2_an_unknown_category_is_refused(tmp_path):
    spoiled = instances()
    spoiled["annotations"][3]["category_id"] = 99
    message = refused(write_folder(tmp_path, {INSTANCES: spoiled}))
    assert "annotations entry 3: category_id 99" in message


# --- E3: ids that stand twice


def test_e3_equal_repetitions_are_collapsed_with_a_note(tmp_path):
    corpus = load(write_folder(tmp_path, {MINE: [*results(), *results()[:2]]}))
    assert "2 repeated captions of the captioner were collapsed" in corpus.notes


def test_e3_two_captions_of_an_image_are_refused(tmp_path):
    rows = [*results(), {"image_id": 100, "caption": "a dog"}]
    assert "image id 100 occurs twice with different captions" in refused(
        write_folder(tmp_path, {MINE: rows})
    )


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """Three captions of the first image, two of the second, one of it twice."""
    more = [(100, "second"), (101, "other"), (100, "third"), (101, "other")]
    rows = [*results(), *({"image_id": i, "caption": text} for i, text in more)]
    return write_folder(tmp_path, {MINE: rows})


def test_e3_the_first_of_several_captions_is_scored(samples):
    corpus = load(samples, "dataset.multi_caption=true")
    assert corpus[0].model == results()[0]["caption"]


def test_e3_captions_that_are_not_scored_are_counted(samples):
    corpus = load(samples, "dataset.multi_caption=true")
    assert any("number 0 of each is scored, 3 others are not" in note for note in corpus.notes)


def test_e3_the_caption_of_a_number_is_scored(samples):
    words = ("dataset.multi_caption=true", "dataset.caption_index=1", "dataset.strict=false")
    corpus = load(samples, *words)
    assert [record.model for record in corpus if record.model] == ["second", "other"]


def test_e3_an_image_with_fewer_captions_is_refused(samples):
    message = refused(samples, "dataset.multi_caption=true", "dataset.caption_index=2")
    assert "59 of 60 labelled images have no caption" in message


@pytest.fixture
def draws(tmp_path: Path) -> Path:
    """A file of ``caption --gather --n 2``; both captions of an image may be the same."""
    rows = [
        {**row, "caption": row["caption"] if k == 0 else "a dog", "sample": k, "decoding": "drawn"}
        for row in results()
        for k in (0, 1)
    ]
    return write_folder(tmp_path, {MINE: rows})


def test_numbered_captions_are_samples(draws):
    first, second = load(draws).each_sample
    assert first[0].model == results()[0]["caption"]
    assert {record.model for record in second} == {"a dog"}


def test_a_numbered_caption_can_be_chosen(draws):
    corpus = load(draws, "dataset.multi_caption=true", "dataset.caption_index=1")
    assert {record.model for record in corpus} == {"a dog"}


def test_a_number_that_no_caption_has_is_refused(draws):
    message = refused(draws, "dataset.multi_caption=true", "dataset.caption_index=2")
    assert "holds no captions of sample 2" in message


def test_a_number_that_is_none_is_refused(tmp_path):
    rows = [{**row, "sample": "first", "decoding": "drawn"} for row in results()]
    message = refused(write_folder(tmp_path, {MINE: rows}))
    assert "'sample' must be a whole number from 0, found 'first'" in message


def test_how_captions_were_decoded_is_told(draws):
    assert any("decoding: drawn" in note for note in load(draws).notes)


def test_a_number_of_a_caption_needs_several(tmp_path):
    with pytest.raises(UsageError, match=r"0 without dataset\.multi_caption=true"):
        load(write_folder(tmp_path), "dataset.caption_index=1")


def test_e3_text_and_numbers_are_the_same_id(tmp_path):
    rows = [{**row, "image_id": f"000{row['image_id']}"} for row in results()]
    one = load(write_folder(tmp_path / "one", {MINE: rows}))
    assert one.digest == load(write_folder(tmp_path / "two")).digest


def test_e3_an_annotation_id_of_two_captions_is_refused(tmp_path):
    printed_human = human()
    printed_human["annotations"][1]["id"] = printed_human["annotations"][0]["id"]
    message = refused(write_folder(tmp_path, {CAPTIONS: printed_human}))
    assert "annotation id 7 occurs twice" in message


# --- E5: a single group


def test_e5_labels_of_one_group_are_refused_by_attackers(tmp_path):
    root = write_folder(tmp_path, {LABELS: labels().replace("Female", "Male")})
    cell = compose.cell(["dataset=coco", f"dataset.root={root}", "captioner=mine"])
    with pytest.raises(DataError, match="two groups"):
        cell.build("metric").draw_splits(cell.corpus(), [0])


# --- E8, E21


def test_e8_a_caption_of_a_megabyte_is_cut_in_every_format_and_counted(tmp_path):
    rows = results()
    rows[0]["caption"] = "dog " * 250_000
    root = write_folder(tmp_path, {MINE: rows})
    pd.DataFrame(rows).to_csv(root / "m.csv", index=False)
    for captioner in ("mine", str(root / "m.csv")):
        corpus = load(root, f"captioner={captioner}")
        assert corpus.model.lengths.max() == 2_500
        assert "1 captions of more than 10,000 characters were cut" in corpus.notes


_READ = """
import resource, sys
from bias_pipeline.config import compose

words = ["dataset=coco", f"dataset.attributes={sys.argv[1]}", f"captioner={sys.argv[2]}"]
assert len(compose.cell(words).corpus()) == 1_000_000
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
def test_e8_a_million_captions_are_read_within_2_gigabytes(tmp_path):
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


def test_e21_the_order_of_the_files_does_not_matter(tmp_path):
    turned = {MINE: results(), CAPTIONS: human(), INSTANCES: instances()}
    for content in (turned[MINE], turned[CAPTIONS]["annotations"], turned[INSTANCES]["images"]):
        random.Random(0).shuffle(content)
    head, *lines = labels().splitlines()
    turned[LABELS] = "\n".join([head, *lines[::-1]])
    one, two = load(write_folder(tmp_path / "1")), load(write_folder(tmp_path / "2", turned))
    assert one.digest == two.digest


# --- what is not there


def test_an_unknown_captioner_is_refused_with_a_suggestion(tmp_path):
    with pytest.raises(UsageError, match="did you mean 'mine'"):
        load(write_folder(tmp_path), "captioner=mien")


@pytest.mark.parametrize("key", ["captions", "attributes", "instances"])
def test_an_absent_file_is_named_with_its_key(tmp_path, key):
    root = write_folder(tmp_path)
    words = {"attributes": str(root / LABELS), key: str(root / "nowhere.json")}
    with pytest.raises(ResourceError, match=rf"nowhere\.json is absent.*set dataset\.{key}"):
        load(root, *(f"dataset.{name}={value}" for name, value in words.items()))


def test_an_absent_results_file_is_named(tmp_path):
    with pytest.raises(ResourceError, match=r"nowhere\.json is absent"):
        load(write_folder(tmp_path), f"captioner={tmp_path}/nowhere.json")


def test_without_labels_the_key_is_told(tmp_path):
    root = write_folder(tmp_path)
    (root / LABELS).unlink()
    with pytest.raises(ResourceError, match=r"set dataset\.attributes=FILE"):
        load(root)


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
