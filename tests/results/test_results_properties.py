"""Results come back from disk as they were, whatever is in them."""

import json
import math
from dataclasses import asdict, fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bias_pipeline.results.rows import Result, Row
from bias_pipeline.results.store import ResultStore
from tests.results.test_store import row

KINDS: dict[str, st.SearchStrategy[object]] = {
    "str": st.text(),
    "int": st.integers(-(2**53), 2**53),
    "float": st.floats(),
    "tuple[int, ...]": st.lists(st.integers(0, 2**40), max_size=4).map(tuple),
}
rows = st.builds(
    Row,
    **{f.name: st.just("run") if f.name == "run_id" else KINDS[str(f.type)] for f in fields(Row)},
)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
manifests = st.dictionaries(st.text(), plain, max_size=4)
on_disk = settings(max_examples=60, deadline=None)


def as_utf8(text: str) -> str:
    """Text as UTF-8 can hold it: half a surrogate pair becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


def expected_row(row: Row) -> dict[str, object]:
    """Columns after a round trip; what is not finite is absent."""
    return {
        key: as_utf8(value)
        if isinstance(value, str)
        else None
        if isinstance(value, float) and not math.isfinite(value)
        else value
        for key, value in asdict(row).items()
    }


def without_nan(row: Row) -> dict[str, object]:
    return {
        key: None if isinstance(value, float) and math.isnan(value) else value
        for key, value in asdict(row).items()
    }


@given(content=st.lists(rows, min_size=1, max_size=3), manifest=manifests)
@on_disk
def test_rows_come_back_as_saving_returned_them_from_strict_json(
    tmp_path_factory, content, manifest
):
    root = tmp_path_factory.mktemp("store")
    saved = ResultStore(root).save(Result("run", content, manifest))
    loaded = ResultStore(root).load("run")
    assert loaded is not None
    assert [without_nan(row) for row in loaded.rows] == [expected_row(row) for row in content]
    assert (repr(saved.rows), saved.manifest) == (repr(loaded.rows), loaded.manifest)
    text = (root / "run" / "result.json").read_text(encoding="utf-8")
    assert json.loads(text, parse_constant=lambda name: pytest.fail(name))["schema"] == 1


@given(manifest=manifests, position=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
@on_disk
def test_any_flipped_bit_is_noticed_or_harmless(tmp_path_factory, manifest, position, bit):
    store = ResultStore(tmp_path_factory.mktemp("store"))
    saved = row()
    store.save(Result("run", [saved], manifest))
    path = store.root / "run" / "result.json"
    content = bytearray(path.read_bytes())
    content[int(position * len(content))] ^= 1 << bit
    path.write_bytes(bytes(content))
    loaded = store.load("run")
    assert loaded is None or list(loaded.rows) == [saved]


def test_a_result_without_a_checksum_is_not_read(tmp_path):
    store = ResultStore(tmp_path)
    store.save(Result("run", [], {}))
    path = tmp_path / "run" / "result.json"
    content = json.loads(path.read_text())
    del content["manifest"]["checksum"]
    path.write_text(json.dumps(content))
    assert store.load("run") is None
