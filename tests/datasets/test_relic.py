"""RELIC's table becomes a corpus, or is refused with the line and the remedy."""

import pickle
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bias_pipeline.config import compose
from bias_pipeline.corpus.captions import is_blank
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.errors import DataError, ResourceError, UsageError
from tests import composed
from tests.relic_file import table, write_table


def load(root: Path, *overrides: str) -> Corpus:
    settings = {"dataset": "relic", "dataset.root": str(root), "captioner": "sat"}
    settings |= {"attribute": "age"} | dict(o.split("=", 1) for o in overrides)
    return composed.corpus(*(f"{key}={value}" for key, value in settings.items()))


def refused(folder: Path, column: str, value: object) -> str:
    rows = table().astype(object)
    rows.loc[7, column] = value
    with pytest.raises(DataError) as caught:
        load(write_table(folder, rows))
    return str(caught.value)


def test_both_sides_and_the_label_are_read(tmp_path):
    record = load(write_table(tmp_path))[0]
    assert record.model == "a person with a cake"
    assert record.human == tuple(f"a person's dog, old {k}" for k in range(5))
    assert record.labels == {"age": "old"}


def test_captioner_all_is_what_has_a_column(tmp_path):
    cell = compose.cell(["dataset=relic", f"dataset.root={write_table(tmp_path)}", "attribute=age"])
    all_captioners = cell.build("dataset").all_captioners(cell.build("attribute"))
    assert all_captioners == ["sat", "oscar"]


def test_an_absent_column_of_a_known_captioner_is_named(tmp_path):
    with pytest.raises(ResourceError, match=r"no column 'pred_niceq'.*captioners sat, oscar"):
        load(write_table(tmp_path), "captioner=nic_equalizer")


def test_an_unknown_captioner_is_refused_with_a_suggestion(tmp_path):
    with pytest.raises(UsageError, match="did you mean 'oscar'"):
        load(write_table(tmp_path), "captioner=oskar")


def test_an_absent_folder_names_the_key_to_set(tmp_path):
    with pytest.raises(ResourceError, match=r"set dataset\.root"):
        load(tmp_path / "nowhere")


def test_gender_is_not_labelled_here(tmp_path):
    with pytest.raises(UsageError, match="no labels of attribute 'gender'"):
        load(write_table(tmp_path), "attribute=gender")


@pytest.mark.parametrize("place", ["model_vocab", "../lic/bias_data/model_vocab"])
def test_the_published_vocabulary_is_read_where_it_lies(tmp_path, place):
    root = write_table(tmp_path / "relic")
    (root / place).mkdir(parents=True)
    (root / place / "sat_vocab.pkl").write_bytes(pickle.dumps(["a", "person"]))
    assert load(root).vocabulary == {"a", "person"}


def test_without_vocabularies_there_is_none(tmp_path):
    assert load(write_table(tmp_path)).vocabulary is None


@pytest.mark.parametrize(
    "value",
    [
        "__import__('os').system('true')",
        "['a' * 9**9]",
        "['a', 3]",
        "('a',)",
        "['a",
        "[" * 5_000,
        "",
    ],
)
def test_e1_e10_a_list_that_is_no_list_of_captions_is_refused(tmp_path, value):
    assert "line 9: 'caption_list' must be a Python list" in refused(
        tmp_path, "caption_list", value
    )


def test_e8_a_list_of_great_length_is_not_parsed(tmp_path):
    message = refused(tmp_path, "caption_list", str(["a dog"] * 10_000))
    assert "line 9: 'caption_list' has 90,000 characters" in message


def test_e3_an_id_of_two_images_is_refused(tmp_path):
    assert "image id 100 occurs twice with different contents" in refused(tmp_path, "img_id", 100)


def test_e4_an_unknown_label_is_refused_with_its_line(tmp_path):
    message = refused(tmp_path, "bb_age", "yuong")
    assert "age_dataset.csv, line 9: label 'yuong'" in message
    assert "did you mean" in message


def test_e21_the_order_of_the_file_does_not_matter(tmp_path):
    one = load(write_table(tmp_path / "1"))
    assert one.digest == load(write_table(tmp_path / "2", table().iloc[::-1])).digest


@cache
def relic_cell(root: str) -> compose.CellConfig:
    """Composing takes longer than reading."""
    words = ["dataset=relic", f"dataset.root={root}", "dataset.blank_limit=1", "attribute=age"]
    return compose.cell(words)


@given(texts=st.lists(st.text(st.characters(exclude_characters="\0"), max_size=20), max_size=5))
@settings(max_examples=200, deadline=None)
def test_e7_any_captions_are_read_as_they_were_written(tmp_path_factory, texts):
    rows = table(2)
    rows["caption_list"] = [str(texts)] * 2
    root = write_table(tmp_path_factory.getbasetemp() / "relic", rows)
    corpus = (
        relic_cell(str(root)).build("dataset").load("sat", relic_cell(str(root)).build("attribute"))
    )
    lines = [text for text in texts if not is_blank(text)]
    assert corpus[0].human == tuple(" ".join(text.split()) for text in lines)


@pytest.mark.real
def test_the_real_table_is_read(data_root):
    corpus = load(data_root / "relic")
    assert (len(corpus), len(corpus.model), len(corpus.human)) == (7_038, 7_038, 35_190)
    assert corpus.vocabulary is not None
    codes = corpus.groupings["age"].codes
    assert ((codes == 0).sum(), (codes == 1).sum()) == (4_603, 2_435)


@pytest.mark.real
def test_the_split_is_that_of_the_paper(data_root):
    """2,191 + 2,191 images to learn from, 244 + 244 to be scored on."""
    words = ["experiment=relic_age", "captioner=sat", f"dataset.root={data_root}/relic"]
    cell = compose.cell(words)
    (split,) = cell.build("metric").draw_splits(cell.corpus(), [0])
    assert (len(split.train), len(split.test)) == (4_382, 488)
