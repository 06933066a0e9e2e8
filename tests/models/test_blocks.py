"""Finished blocks: whole or absent, never mixed, gathered once."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.models.blocks import NOT_YET, Block, BlockStore, blocks_of, find_store

IDS = tuple(str(number) for number in range(300))


def store_of(root: Path, **settings: Any) -> BlockStore:
    return BlockStore(root, {"job": "caption", **settings}, "a model")


def fill(store: BlockStore, ids: tuple[str, ...] = IDS) -> None:
    store.plan(ids)
    for block in blocks_of(ids):
        store.put(block_for(block))


def block_for(ids: tuple[str, ...]) -> Block:
    return Block(ids, [1] * len(ids), [f"a {i}" for i in ids], [None] * len(ids))


def captions(store: BlockStore) -> dict[str, str]:
    tables, *_ = store.gather()
    pairs = [pair for t in tables for pair in zip(*t.to_pydict().values(), strict=True)]
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def test_everything_is_gathered_once(tmp_path):
    fill(store_of(tmp_path))
    assert captions(store_of(tmp_path)) == {i: f"a {i}" for i in IDS}


def test_vectors_come_back_as_they_were(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(2, 5)).astype(np.float32)
    store = store_of(tmp_path)
    store.put(Block(("1", "2", "3"), [1, 1, 1], [*vectors, None], [None, None, "broken"]))
    table = store.read(("1", "2", "3"))
    assert table is not None
    assert table["value"].to_pylist() == [*vectors.tolist(), None]


def test_images_without_a_value_are_missing_with_the_reason(tmp_path):
    store = store_of(tmp_path)
    fill(store)
    ids = blocks_of(IDS)[7]
    store._path(ids).unlink()
    assert store.gather()[1:] == (dict.fromkeys(ids, NOT_YET), set(ids))
    store = store_of(tmp_path)
    store.plan(["1"])
    store.put(Block(("1",), [0], [None], ["the file is empty"]))
    assert store.gather() == ([], {"1": "the file is empty"}, set())


@pytest.mark.parametrize("damage", ["cut", "flip", "foreign"])
def test_a_damaged_block_counts_as_absent(damage, tmp_path, caplog):
    store = store_of(tmp_path)
    fill(store)
    first, second = blocks_of(IDS)[:2]
    content = bytearray(store._path(first).read_bytes())
    if damage == "flip":
        content[content.index(b"a " + first[0].encode())] ^= 1
    changed = {"cut": content[:-9], "foreign": store._path(second).read_bytes()}
    store._path(first).write_bytes(changed.get(damage, content))
    assert not store.has(first, [1] * len(first))


def test_another_stamp_is_another_photo_and_other_settings_share_no_block(tmp_path):
    store = store_of(tmp_path)
    store.put(Block(("1", "2"), [10, 20], ["a", "b"], [None, None]))
    assert store.has(("1", "2"), [10, 20])
    assert not store.has(("1", "2"), [10, 30])
    assert store_of(tmp_path, prompt="a").read(("1", "2")) is None


def test_the_latest_plan_is_gathered(tmp_path):
    store = store_of(tmp_path)
    fill(store, IDS[:100])
    fill(store, IDS)
    fewer = store_of(tmp_path)
    fewer.plan(IDS[:100])
    newest = max(store.folder.glob("plans/*"), key=lambda path: path.stat().st_mtime_ns)
    os.utime(newest, (2e9, 2e9))  # whatever the resolution of this disk's clock
    assert set(captions(fewer)) == set(IDS[:100])


def test_writers_of_one_block_do_no_harm(tmp_path):
    threads = [threading.Thread(target=fill, args=(store_of(tmp_path),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(captions(store_of(tmp_path))) == len(IDS)
    assert list(tmp_path.rglob("*.tmp")) == []


def test_two_runs_are_refused_with_both_names_unless_the_first_digits_choose_one(tmp_path):
    stores = [store_of(tmp_path, prompt=prompt) for prompt in ("", "a photo of")]
    for store in stores:
        fill(store, IDS[:3])
    with pytest.raises(DataError, match="must not be mixed") as refused:
        find_store(tmp_path, "caption")
    for words in (*(store.signature for store in stores), "prompt='a photo of'"):
        assert words in str(refused.value)
    chosen = find_store(tmp_path, "caption", stores[1].signature[:6])
    assert chosen.settings == stores[1].settings


@pytest.mark.parametrize(
    ("run", "message"),
    [(("caption", "ffff"), "no run 'ffff'"), (("embed",), "no blocks of 'embed'")],
)
def test_a_run_that_is_not_there_or_of_another_kind_is_refused(run, message, tmp_path):
    fill(store_of(tmp_path), IDS[:3])
    with pytest.raises(ResourceError, match=message):
        find_store(tmp_path, *run)


def test_changed_settings_are_refused(tmp_path):
    store = store_of(tmp_path)
    fill(store)
    path = store.folder / "settings.json"
    content = json.loads(path.read_text())
    content["settings"]["prompt"] = "another"
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match="the settings were changed"):
        find_store(tmp_path, "caption")


def test_a_plan_that_was_changed_is_refused(tmp_path):
    store = store_of(tmp_path)
    fill(store)
    (plan,) = store.folder.glob("plans/*")
    plan.write_text('["1", "1"]')
    with pytest.raises(DataError, match="is damaged; start the job again"):
        store_of(tmp_path).gather()


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ResourceError, match="cannot write to"):
        store_of(tmp_path / "file").plan(["1"])


@pytest.mark.parametrize("kind", ["plans/*.json", "settings.json"])
def test_a_cut_file_blocks_gathering_until_the_job_is_started_again(tmp_path, kind):
    store = store_of(tmp_path)
    fill(store)
    (path,) = store.folder.glob(kind)
    content = path.read_bytes()
    path.write_bytes(content[:-3])
    with pytest.raises(DataError):
        gathered_again(tmp_path)
    again = store_of(tmp_path)
    fill(again)
    assert path.read_bytes() == content
    assert len(gathered_again(tmp_path)[0]) > 0


def gathered_again(root: Path) -> tuple[list[Any], dict[str, str], set[str]]:
    (job,) = {store_of(root).settings["job"]}
    return find_store(root, str(job)).gather()


def test_a_flipped_bit_of_a_block_is_never_read_as_another_text(tmp_path):
    store, ids = store_of(tmp_path), IDS[:60]
    store.put(block_for(ids))
    path = store._path(ids)
    content, read = path.read_bytes(), 0
    generator = np.random.default_rng(0)
    for place, bit in generator.integers(0, (len(content), 8), (300, 2)).tolist():
        buffer = bytearray(content)
        buffer[place] ^= 1 << bit
        path.write_bytes(bytes(buffer))
        read += store.read(ids) is not None
    assert read == 0
