import hashlib
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bias_pipeline.errors import ResourceError
from bias_pipeline.io.arrays import ArrayCache


@given(
    hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=1, max_dims=3, min_side=0),
        elements=st.floats(allow_nan=False, allow_infinity=False),
    )
)
def test_an_array_comes_back_as_it_was(tmp_path_factory, array):
    cache = ArrayCache(tmp_path_factory.mktemp("cache"))
    cache.put("abc", array)
    np.testing.assert_array_equal(cache.get("abc"), array)


def flip_last_bit(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


@pytest.mark.parametrize(
    "damaged", [flip_last_bit, lambda content: content[:20]], ids=["flipped", "cut"]
)
def test_a_damaged_entry_counts_as_absent(tmp_path, damaged):
    cache, path = ArrayCache(tmp_path), tmp_path / "ab" / "abc"
    cache.put("abc", np.ones(3))
    path.write_bytes(damaged(path.read_bytes()))
    assert cache.get("abc") is None


@pytest.mark.parametrize(
    "body",
    [
        np.array([1, 1], "<i8").tobytes() + np.array([np.nan], "<f8").tobytes(),
        np.array([1, 7], "<i8").tobytes() + np.array([0.5], "<f8").tobytes(),
        np.array([-1, 7], "<i8").tobytes(),
        b"",
        b"abc",
    ],
    ids=["nan", "another shape", "negative axes", "empty", "no array"],
)
def test_a_forged_entry_counts_as_absent(tmp_path, caplog, body):
    """Its checksum fits, whatever it holds."""
    path = tmp_path / "ab" / "abc"
    path.parent.mkdir()
    path.write_bytes(hashlib.sha256(b"abc" + body).digest() + body)
    assert ArrayCache(tmp_path).get("abc") is None
    assert "damaged" in caplog.text


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_no_number_is_not_kept(tmp_path, value):
    cache = ArrayCache(tmp_path)
    cache.put("abc", np.array([0.5, value]))
    assert cache.get("abc") is None


def test_a_folder_in_the_place_of_an_entry_counts_as_absent(tmp_path):
    (tmp_path / "ab" / "abc").mkdir(parents=True)
    assert ArrayCache(tmp_path).get("abc") is None


def test_an_entry_under_another_key_counts_as_absent(tmp_path):
    cache = ArrayCache(tmp_path)
    cache.put("abc", np.ones(3))
    (tmp_path / "ab" / "abc").rename(tmp_path / "ab" / "abd")
    assert cache.get("abd") is None


def test_a_folder_that_cannot_be_made_is_a_resource_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ResourceError, match="cannot write the cache"):
        ArrayCache(tmp_path / "file").put("abc", np.ones(3))


def test_sixteen_writers_of_one_entry_leave_it_whole_and_nothing_temporary(tmp_path):
    def write_and_read(number: int) -> bool:
        cache = ArrayCache(tmp_path)
        for _ in range(20):
            cache.put("abc", np.full((50, 3), float(number)))
            result = cache.get("abc")
            if result is None or len(np.unique(result)) != 1:
                return False
        return True

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(write_and_read, range(16)))
    assert [path.name for path in (tmp_path / "ab").iterdir()] == ["abc"]


def test_what_killed_processes_left_is_removed_once_it_is_old(tmp_path):
    for folder in ("ab", "cd"):
        (tmp_path / folder).mkdir()
    old, young, other = (
        tmp_path / name for name in ("ab/.1234567x.tmp", "cd/.abcd_efg.tmp", "ab/x")
    )
    for path in (old, young, other):
        path.write_bytes(b"")
    for path in (old, other):
        os.utime(path, (1, 1))
    ArrayCache(tmp_path).put("abc", np.ones(2))
    assert [path.exists() for path in (old, young, other)] == [False, True, True]


def test_a_full_disk_leaves_no_entry(tmp_path, monkeypatch):
    def report_full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    cache = ArrayCache(tmp_path)
    monkeypatch.setattr("pathlib.Path.replace", report_full_disk)
    with pytest.raises(ResourceError, match="No space left"):
        cache.put("abc", np.ones(3))
    assert list((tmp_path / "ab").iterdir()) == []
