import csv
import io
import json
import math
import multiprocessing
import os
import socket
import stat
import time
from collections.abc import Iterator
from multiprocessing.pool import Pool
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow.parquet as pq
import pytest

from bias_pipeline.corpus.predictions import Predictions
from bias_pipeline.errors import ResourceError
from bias_pipeline.results.rows import COLUMNS, Result, Row, rows_csv
from bias_pipeline.results.store import ResultStore
from tests.corpora import REPOSITORY


def row(run_id: str = "run", **changes: object) -> Row:
    values: dict[str, object] = dict.fromkeys(COLUMNS, "x")
    numbers = ("value", "seed_std", "ci_low", "ci_high", "p_value", "coverage", "neutral_rate")
    values |= dict.fromkeys(numbers, 0.5)
    values |= {"metric_version": 1, "n_images": 10, "n_seeds": 2, "seeds": (0, 12)}
    return Row(**{**values, "run_id": run_id, **changes})


def result(run_id: str = "run", **changes: object) -> Result:
    truth, probs = (np.array([0]),), (np.array([[0.25, 0.75]]),)
    predictions = Predictions("model:0", (0,), (np.array([1]),), truth, probs, ("m", "f"))
    return Result(run_id, [row(run_id, **changes)], {"a": math.nan}, [predictions], ["7", "9"])


def test_a_result_comes_back(tmp_path):
    store = ResultStore(tmp_path)
    store.save(result())
    loaded = store.load("run")
    assert loaded is not None
    assert loaded.rows == [row()]


def test_nan_is_null_in_strict_json_and_comes_back_as_nan(tmp_path):
    ResultStore(tmp_path).save(result(value=math.nan))
    text = (tmp_path / "run" / "result.json").read_text()
    content = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    assert (content["schema"], content["rows"][0]["value"]) == (1, None)
    assert math.isnan(ResultStore(tmp_path).load("run").rows[0].value)


def test_a_half_written_folder_is_no_more_a_result_than_an_absent_one(tmp_path):
    assert ResultStore(tmp_path).load("run") is None
    (tmp_path / "run").mkdir()
    assert ResultStore(tmp_path).load("run") is None


def test_predictions_name_image_group_and_probability(tmp_path):
    ResultStore(tmp_path).save(result())
    table = pq.read_table(tmp_path / "run" / "predictions.parquet").to_pylist()
    assert table == [
        {"side": "model:0", "seed": 0, "image_id": "9", "truth": "m", "p_m": 0.25, "p_f": 0.75}
    ]


def test_a_metric_without_attackers_has_an_empty_table(tmp_path):
    ResultStore(tmp_path).save(Result("run", [row()], {}))
    assert pq.read_table(tmp_path / "run" / "predictions.parquet").num_rows == 0


def test_rows_csv_holds_the_rows(tmp_path):
    ResultStore(tmp_path).save(result())
    (line,) = csv.DictReader(io.StringIO((tmp_path / "run" / "rows.csv").read_text()))
    assert (line["value"], line["seeds"]) == ("0.5", "0 12")


@pytest.mark.parametrize("hostile", ["=cmd()", "+1", "-1", "@x"])
def test_a_spreadsheet_runs_nothing(hostile):
    (line,) = csv.DictReader(io.StringIO(rows_csv([row(captioner=hostile)])))
    assert line["captioner"] == "'" + hostile


def test_negative_numbers_stay_numbers():
    (line,) = csv.DictReader(io.StringIO(rows_csv([row(value=-0.25)])))
    assert float(line["value"]) == -0.25


def test_a_damaged_result_is_set_aside_and_can_be_saved_again(tmp_path):
    store = ResultStore(tmp_path)
    store.save(result())
    (tmp_path / "run" / "result.json").write_text('{"schema": 1, "rows": [')
    assert store.load("run") is None
    store.save(result())
    assert store.load("run") is not None


def test_a_second_result_leaves_the_first(tmp_path):
    store = ResultStore(tmp_path)
    store.save(result(value=0.1))
    store.save(result(value=0.2))
    assert store.load("run").rows[0].value == 0.1


def test_nothing_temporary_is_left(tmp_path):
    store = ResultStore(tmp_path)
    with store.claim("run"):
        store.save(result())
    assert [p for p in tmp_path.rglob("*") if ".tmp" in p.name or p.parent.name == ".claims"] == []


def test_a_folder_that_cannot_be_written_is_a_resource_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ResourceError, match=r"choose another folder with paths\.outputs"):
        ResultStore(tmp_path / "file").save(result())


def test_a_full_disk_leaves_no_part_of_a_result(tmp_path, monkeypatch):
    def fill_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("bias_pipeline.results.store.write_predictions", fill_disk)
    with pytest.raises(ResourceError, match="No space left"):
        ResultStore(tmp_path).save(result())
    assert list(tmp_path.iterdir()) == []


def _write_under_claim(root: str, number: int) -> None:
    store = ResultStore(root)
    run_id = f"run{number % 4}"
    with store.claim(run_id):
        if store.load(run_id) is None:
            time.sleep(0.01)
            Path(root, f"computed-{run_id}-{os.getpid()}-{number}").touch()
            store.save(result(run_id))


@pytest.fixture(scope="module")
def sixteen() -> Iterator[Pool]:
    """Processes that are forked from one that has imported the store."""
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["bias_pipeline.results.store"])
    with patch.dict(os.environ, PYTHONPATH=str(REPOSITORY)), server.Pool(16) as pool:
        yield pool


def test_many_writers_compute_each_run_once(tmp_path, sixteen):
    sixteen.starmap(_write_under_claim, [(str(tmp_path), n) for n in range(32)], chunksize=1)
    assert len(list(tmp_path.glob("computed-*"))) == 4


def test_sixteen_processes_compute_one_run_once(tmp_path, sixteen):
    sixteen.starmap(_write_under_claim, [(str(tmp_path), 4 * n) for n in range(16)], chunksize=1)
    assert len(list(tmp_path.glob("computed-*"))) == 1


def test_a_claim_that_could_not_be_written_is_not_left_behind(tmp_path, monkeypatch):
    def fill_disk() -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("bias_pipeline.results.run_lock.socket.gethostname", fill_disk)
    with pytest.raises(ResourceError, match="No space left"), ResultStore(tmp_path).claim("run"):
        pass
    assert list((tmp_path / ".claims").iterdir()) == []


def test_the_claim_of_a_dead_owner_is_taken_over(tmp_path):
    claim = tmp_path / ".claims" / "run"
    claim.parent.mkdir()
    dead = multiprocessing.get_context("spawn").Process(target=str)
    dead.start()
    dead.join()
    claim.write_text(f"{socket.gethostname()} {dead.pid}")
    started = time.monotonic()
    with ResultStore(tmp_path).claim("run"):
        assert time.monotonic() - started < 5


def test_a_silent_claim_of_another_host_is_taken_over(tmp_path):
    claim = tmp_path / ".claims" / "run"
    claim.parent.mkdir()
    claim.write_text("elsewhere 1")
    os.utime(claim, (0, 0))
    with ResultStore(tmp_path).claim("run"):
        assert claim.read_text() != "elsewhere 1"


def test_what_a_killed_writer_of_the_run_left_is_removed(tmp_path):
    left = tmp_path / ".run.0123abcd.tmp"
    left.mkdir()
    with ResultStore(tmp_path).claim("run"):
        assert not left.exists()


@pytest.mark.parametrize(("old", "owner", "stays"), [(1, "", 0), (0, "", 1), (1, "elsewhere 1", 1)])
def test_what_is_written_of_another_run_stays_as_long_as_somebody_may_be_at_it(
    tmp_path, old, owner, stays
):
    other = tmp_path / ".other.0123abcd.tmp"
    other.mkdir()
    if old:
        os.utime(other, (0, 0))
    if owner:
        (tmp_path / ".claims").mkdir()
        (tmp_path / ".claims" / "other").write_text(owner)
    with ResultStore(tmp_path).claim("run"):
        assert other.exists() == stays


def test_a_result_can_be_read_by_others_if_the_umask_says_so(tmp_path):
    ResultStore(tmp_path).save(result())
    mode = (tmp_path / "run" / "result.json").stat().st_mode
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(mode) == 0o666 & ~umask


def test_predictions_come_back_under_other_rows(tmp_path):
    store = ResultStore(tmp_path)
    store.save(result())
    (predictions,) = store.predictions("run", ["x", "y", "9"])
    assert (predictions.name, predictions.seeds) == ("model:0", (0,))
    assert predictions.images[0].tolist() == [2]


def test_predictions_of_an_absent_run_are_a_resource_error(tmp_path):
    with pytest.raises(ResourceError, match="run the job first"):
        ResultStore(tmp_path).predictions("run", [])
