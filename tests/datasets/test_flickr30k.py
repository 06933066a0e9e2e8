"""All published forms of Flickr30k's captions give one corpus, or are refused with the place."""

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.datasets.flickr30k import read_karpathy, read_tokens
from bias_pipeline.errors import DataError, ResourceError
from tests import composed
from tests.flickr_folder import TEXTS, bars, karpathy, tokens, write_folder


def load(root: Path, *overrides: str) -> Corpus:
    words = ["dataset=flickr30k", f"dataset.root={root}", "captioner=mine", *overrides]
    return composed.corpus(*words)


def test_captions_labels_and_the_captioner_are_joined(tmp_path):
    record = load(write_folder(tmp_path))[0]
    assert record.id == "10000100"
    assert record.human == tuple(TEXTS[0])
    assert record.labels == {"gender": "male"}
    assert record.model is not None


def test_all_forms_of_the_captions_give_the_same(tmp_path):
    digests = {
        load(write_folder(tmp_path / form.__name__, form())).digest
        for form in (karpathy, tokens, bars)
    }
    assert len(digests) == 1


def test_a_part_is_scored(tmp_path):
    assert len(load(write_folder(tmp_path), "dataset.split=test")) == 20


def test_e21_the_order_of_lines_does_not_matter(tmp_path):
    lines = tokens().splitlines()
    random.Random(0).shuffle(lines)
    one = load(write_folder(tmp_path / "1", tokens()))
    assert one.digest == load(write_folder(tmp_path / "2", "\n".join(lines))).digest


def test_without_captions_both_files_are_named(tmp_path):
    root = write_folder(tmp_path)
    (root / "dataset_flickr30k.json").unlink()
    with pytest.raises(ResourceError, match=r"neither dataset_flickr30k\.json nor results_2013"):
        load(root)


def test_without_labels_their_place_is_named(tmp_path):
    root = write_folder(tmp_path)
    (root / "attributes.csv").unlink()
    with pytest.raises(ResourceError, match=r"attributes\.csv is absent.*dataset\.attributes"):
        load(root)


def test_e1_a_cut_line_is_refused_with_its_number(tmp_path):
    root = write_folder(tmp_path, tokens()[:105] + "\n10000")
    with pytest.raises(DataError, match=r"results_20130124\.token, line 4"):
        load(root)


def test_e1_an_entry_without_captions_is_named(tmp_path):
    content = karpathy()
    del content["images"][7]["sentences"]
    with pytest.raises(DataError, match=r"images\[7\]\.sentences must be a list, found null"):
        load(write_folder(tmp_path, content))


def test_e3_an_image_that_stands_twice_is_refused(tmp_path):
    content = karpathy()
    content["images"].append(content["images"][0])
    with pytest.raises(DataError, match=r"images\[60\]: image 10000100 occurs twice"):
        load(write_folder(tmp_path, content))


def test_e3_a_caption_that_stands_twice_with_other_words_is_refused(tmp_path):
    root = write_folder(tmp_path, tokens() + "10000100.jpg#0\tanother\n")
    with pytest.raises(DataError, match=r"10000100\.jpg#0 occurs twice"):
        load(root)


def test_e3_an_id_with_and_without_its_ending_is_one_image(tmp_path):
    root = write_folder(tmp_path)
    rows = '[{"image_id": "1.jpg", "caption": "a"}, {"image_id": 1, "caption": "b"}]'
    (root / "captioners" / "mine.json").write_text(rows)
    with pytest.raises(DataError, match=r"with and without \.jpg"):
        load(root)


@given(content=st.binary(max_size=200), reader=st.sampled_from([read_karpathy, read_tokens]))
@settings(max_examples=200, deadline=None)
def test_e1_any_bytes_are_read_or_refused_by_name(tmp_path_factory, content, reader):
    path = tmp_path_factory.getbasetemp() / "some.file"
    path.write_bytes(content)
    try:
        reader(path)
    except DataError as error:
        refused = str(error)
    else:
        refused = path.name
    assert path.name in refused
