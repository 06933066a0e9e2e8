"""All published forms of Flickr30k's captions give one corpus, or are refused with the place."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.published.flickr30k import read_karpathy, read_tokens
from tests import composed
from tests.coco_folder import results
from tests.flickr_folder import FILES, TEXTS, bars, karpathy, tokens, write_folder


def load(root: Path, *overrides: str) -> Corpus:
    words = ["dataset=flickr30k", f"dataset.root={root}", "captioner=mine", *overrides]
    return composed.corpus(*words)


def test_captions_labels_and_the_captioner_are_joined(tmp_path):
    record = load(write_folder(tmp_path))[0]
    assert record.id == "10000100"
    assert record.human == tuple(TEXTS[0])
    assert record.labels == {"gender": "male"}
    assert record.model is not None


def test_a_captioners_own_numbers_are_joined_by_file_name(tmp_path):
    root = write_folder(tmp_path)
    plain = load(root)
    images = [{"id": number, "file_name": name} for number, name in enumerate(FILES)]
    texts = [{"image_id": i, "caption": row["caption"]} for i, row in enumerate(results())]
    listed = json.dumps({"images": images, "annotations": texts})
    (root / "captioners" / "mine.json").write_text(listed)
    assert load(root).digest == plain.digest


def test_all_forms_of_the_captions_give_the_same(tmp_path):
    digests = {
        load(write_folder(tmp_path / form.__name__, form())).digest
        for form in (karpathy, tokens, bars)
    }
    assert len(digests) == 1


def test_a_part_is_scored(tmp_path):
    assert len(load(write_folder(tmp_path), "dataset.split=test")) == 20


def test_the_order_of_lines_does_not_matter(tmp_path):
    lines = tokens().splitlines()
    random.Random(0).shuffle(lines)
    one = load(write_folder(tmp_path / "1", tokens()))
    assert one.digest == load(write_folder(tmp_path / "2", "\n".join(lines))).digest


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("dataset_flickr30k.json", r"neither dataset_flickr30k\.json nor results_2013"),
        ("attributes.csv", r"attributes\.csv is absent.*dataset\.attributes"),
    ],
)
def test_an_absent_file_is_named(tmp_path, file, message):
    root = write_folder(tmp_path)
    (root / file).unlink()
    with pytest.raises(ResourceError, match=message):
        load(root)


def without_captions() -> dict[str, Any]:
    content = karpathy()
    del content["images"][7]["sentences"]
    return content


def with_an_image_twice() -> dict[str, Any]:
    content = karpathy()
    content["images"].append(content["images"][0])
    return content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (tokens()[:105] + "\n10000", r"results_20130124\.token, line 4"),
        (without_captions(), r"images\[7\]\.sentences must be a list, found null"),
        (with_an_image_twice(), r"images\[60\]: image 10000100 occurs twice"),
        (tokens() + "10000100.jpg#0\tanother\n", r"10000100\.jpg#0 occurs twice"),
    ],
    ids=["a cut line", "an entry without captions", "an image twice", "a caption twice"],
)
def test_faulty_captions_are_refused_with_their_place(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        load(write_folder(tmp_path, content))


def test_an_id_with_and_without_its_ending_is_one_image(tmp_path):
    root = write_folder(tmp_path)
    rows = '[{"image_id": "1.jpg", "caption": "a"}, {"image_id": 1, "caption": "b"}]'
    (root / "captioners" / "mine.json").write_text(rows)
    with pytest.raises(DataError, match=r"with and without \.jpg"):
        load(root)


@given(content=st.binary(max_size=200), reader=st.sampled_from([read_karpathy, read_tokens]))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_read_or_refused_by_name(tmp_path_factory, content, reader):
    path = tmp_path_factory.getbasetemp() / "some.file"
    path.write_bytes(content)
    try:
        reader(path)
    except DataError as error:
        refused = str(error)
    else:
        refused = path.name
    assert path.name in refused
