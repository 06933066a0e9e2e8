"""The pickle folder, whatever its entries hold: a corpus, or an error that names the entry."""

from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.errors import BiasPipelineError, DataError
from bias_pipeline.published.lic import LicDataset
from tests.lic_folder import HUMAN, SAT, entries, human_entries, write_folder

GENDER = Attribute(
    "gender",
    ("male", "female"),
    {},
    {"lic": LabelMap("bb_gender", {"Male": "male", "Female": "female"})},
)
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=3,
)
KEYS = ["img_id", "pred", "bb_gender", "caption_list", "rmdup_object_list"]
changes = st.dictionaries(st.sampled_from(KEYS), junk, min_size=1, max_size=2)
thin = settings(max_examples=60, deadline=None)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("lic"))


def load(root: Path, model: Any, human: Any) -> Corpus:
    dataset = LicDataset(
        str(root), {"gender": HUMAN}, {"sat": {"gender": SAT}}, "none/{vocabulary}", ["sat"]
    )
    content = {SAT: model, HUMAN: human}

    def read(path: Path) -> Any:
        return content[str(path.relative_to(root))]

    with mock.patch("bias_pipeline.published.lic.load_pickle", read):
        return dataset.load("sat", GENDER)


def read_or_refused(root: Path, model: Any, human: Any) -> bool:
    try:
        return bool(load(root, model, human).digest)
    except BiasPipelineError as error:
        return bool(str(error))


@given(changed=changes)
@thin
def test_a_spoiled_model_entry_is_read_or_refused(root, changed):
    rows = entries(20)
    rows[7] = {**rows[7], **changed}
    assert read_or_refused(root, rows, human_entries(10))


@given(changed=changes)
@thin
def test_a_spoiled_human_entry_is_read_or_refused(root, changed):
    rows = human_entries(10)
    rows[7] = {**rows[7], **changed}
    assert read_or_refused(root, entries(20), rows)


@given(content=junk)
@thin
def test_any_other_content_is_read_or_refused(root, content):
    assert read_or_refused(root, content, human_entries(10))


@given(texts=st.lists(st.text(), min_size=1, max_size=8))
@thin
def test_any_text_with_a_word_is_a_caption(root, texts):
    rows = [{**e, "pred": f"a dog {texts[i % len(texts)]}"} for i, e in enumerate(entries(20))]
    assert len(load(root, rows, human_entries(10)).model) == 20


@given(texts=st.lists(st.text(), min_size=1, max_size=8))
@thin
def test_any_text_is_a_caption_or_counted_as_blank(root, texts):
    rows = [{**e, "pred": texts[i % len(texts)]} for i, e in enumerate(entries(20))]
    rows[10:] = entries(20)[10:]
    content = load(root, rows, human_entries(10))
    assert len(content.model) + content.blanks["model"] == 20


@given(texts=st.lists(st.text(), min_size=1, max_size=8), order=st.permutations(range(20)))
@thin
def test_the_order_of_entries_does_not_matter(root, texts, order):
    rows = [{**e, "pred": f"a {texts[i % len(texts)]}"} for i, e in enumerate(entries(20))]
    turned = [rows[i] for i in order]
    human = human_entries(10)
    assert load(root, rows, human).digest == load(root, turned, human[::-1]).digest


@given(identifiers=st.lists(st.text(max_size=4) | st.integers(), min_size=20, max_size=20))
@thin
def test_an_id_is_one_image_or_refused(root, identifiers):
    rows = [{**e, "img_id": i} for e, i in zip(entries(20), identifiers, strict=True)]
    try:
        content = load(root, rows, human_entries(10))
    except DataError:
        return
    assert len(set(content.ids)) == len(content.ids)


def test_an_id_of_thousands_of_digits_is_an_id(root):
    rows = entries(20)
    rows[3] = {**rows[3], "img_id": "00" + "9" * 5000}
    assert load(root, rows, human_entries(10)).ids[-1] == "9" * 5000
