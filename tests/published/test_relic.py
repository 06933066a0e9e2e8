"""RELIC's table becomes a corpus, or is refused with the line and the remedy."""

import pickle
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bias_pipeline.corpus.captions import is_blank
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.errors import DataError, ResourceError, UsageError
from bias_pipeline.run import compose
from bias_pipeline.text.mending import Mends
from tests import composed
from tests.relic_file import table, write_table


def load(root: Path, *overrides: str) -> Corpus:
    settings = {"dataset": "relic", "dataset.root": str(root), "captioner": "sat"}
    settings |= {"attribute": "age"} | dict(o.split("=", 1) for o in overrides)
    return composed.corpus(*(f"{key}={value}" for key, value in settings.items()))


def refuse(folder: Path, column: str, value: object) -> str:
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


ABSENT = r"no column 'pred_niceq'.*captioners sat, oscar"


@pytest.mark.parametrize(
    ("word", "error", "message"),
    [
        ("captioner=nic_equalizer", ResourceError, ABSENT),
        ("captioner=oskar", UsageError, "did you mean 'oscar'"),
        ("dataset.root=nowhere", ResourceError, r"set dataset\.root"),
        ("attribute=gender", UsageError, "no labels of attribute 'gender'"),
    ],
)
def test_what_is_not_there_is_named(tmp_path, word, error, message):
    with pytest.raises(error, match=message):
        load(write_table(tmp_path), word)


@pytest.mark.parametrize("place", ["model_vocab", "../lic/bias_data/model_vocab"])
def test_the_published_vocabulary_is_read_where_it_lies(tmp_path, place):
    root = write_table(tmp_path / "relic")
    assert load(write_table(tmp_path / "none")).vocabulary is None
    (root / place).mkdir(parents=True)
    (root / place / "sat_vocab.pkl").write_bytes(pickle.dumps(["a", "person"]))
    assert load(root).vocabulary == {"a", "person"}


NO_LISTS = ["__import__('os').system('true')", "['a' * 9**9]", "['a', 3]", "('a',)", "['a", ""]
NO_LIST = "line 9: 'caption_list' must be a Python list"
LONG, LENGTH = str(["a dog"] * 10_000), "line 9: 'caption_list' has 90,000 characters"


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        *(("caption_list", value, NO_LIST) for value in NO_LISTS),
        pytest.param("caption_list", "[" * 5_000, NO_LIST, id="deep"),
        pytest.param("caption_list", LONG, LENGTH, id="long, so not parsed"),
        ("img_id", 100, "image id 100 occurs twice with different contents"),
        ("bb_age", "yuong", "age_dataset.csv, line 9: label 'yuong'"),
        ("bb_age", "yuong", "did you mean"),
    ],
)
def test_a_spoiled_line_is_refused(tmp_path, column, value, message):
    assert message in refuse(tmp_path, column, value)


def test_the_order_of_the_file_does_not_matter(tmp_path):
    one = load(write_table(tmp_path / "1"))
    assert one.digest == load(write_table(tmp_path / "2", table().iloc[::-1])).digest


@cache
def relic_cell(root: str) -> compose.Cell:
    """Composing takes longer than reading."""
    words = ["dataset=relic", f"dataset.root={root}", "dataset.blank_limit=1", "attribute=age"]
    return compose.cell(words)


@given(texts=st.lists(st.text(st.characters(exclude_characters="\0"), max_size=20), max_size=5))
@settings(max_examples=60)
def test_any_captions_are_read_as_they_were_written(tmp_path_factory, texts):
    rows = table(2)
    rows["caption_list"] = [str(texts)] * 2
    root = write_table(tmp_path_factory.getbasetemp() / "relic", rows)
    cell = relic_cell(str(root))
    corpus = cell.build("dataset").load("sat", cell.build("attribute"))
    mended = Mends("captions").mend(texts)  # some are mojibake
    lines = [line for text in texts if not is_blank(line := mended.get(text, text))]
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
