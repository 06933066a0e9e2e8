from __future__ import annotations

import builtins
import contextlib
import csv
import io
import itertools
import json
import logging
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from wandb.proto import wandb_internal_pb2

from bias_pipeline.commands.main import main
from bias_pipeline.errors import UsageError
from bias_pipeline.results.rows import Result
from bias_pipeline.run import loggers
from bias_pipeline.run.loggers import CsvLogger, WandbLogger
from tests.corpora import REPOSITORY
from tests.results.test_store import row

SMALL = ("dataset.n_images=300", "seeds=1", "stats.resamples=20")


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """No warning and no failure of an earlier test is remembered."""
    monkeypatch.setattr(loggers, "_warned", set())
    monkeypatch.setattr(WandbLogger, "reachable", True)
    for name in ("WANDB_MODE", "WANDB_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def result(run_id: str = "run", value: float = 0.25) -> Result:
    return Result(run_id, [row(run_id, part="score", value=value)], {"config": {"a": 1}})


def read_offline(folder: Path) -> list[wandb_internal_pb2.Record]:
    """Records of the one offline run below a folder, once W&B's service has written the last."""
    (path,) = folder.glob("wandb/offline-run-*/*.wandb")
    deadline = time.monotonic() + 30
    while True:
        records = parse(path.read_bytes())
        if records and records[-1].WhichOneof("record_type") in ("exit", "footer"):
            return records
        assert time.monotonic() < deadline, [r.WhichOneof("record_type") for r in records]
        time.sleep(0.1)


def parse(content: bytes) -> list[wandb_internal_pb2.Record]:
    """Whole records of a file: LevelDB log blocks after a short header.

    W&B's service writes while we read, so the last record may be there in part only.
    """
    records, partial, place = [], b"", 7
    while place + 7 <= len(content):
        left = 32768 - place % 32768
        if left < 7:
            place += left
            continue
        _, size, kind = struct.unpack_from("<IHB", content, place)
        if place + 7 + size > len(content):
            break
        partial += content[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # whole or last part
            record = wandb_internal_pb2.Record()
            record.ParseFromString(partial)
            records.append(record)
            partial = b""
    return records


def offline_run(folder: Path) -> wandb_internal_pb2.RunRecord:
    return next(r.run for r in read_offline(folder) if r.WhichOneof("record_type") == "run")


def items_of(folder: Path, kind: str) -> list[dict[str, float]]:
    """The items of each record of a kind, by their keys."""
    records = [r for r in read_offline(folder) if r.WhichOneof("record_type") == kind]
    items = [r.summary.update if kind == "summary" else r.history.item for r in records]
    return [
        {one.key or "/".join(one.nested_key): json.loads(one.value_json) for one in each}
        for each in items
    ]


def summary(folder: Path) -> dict[str, float]:
    return {key: value for items in items_of(folder, "summary") for key, value in items.items()}


def history(folder: Path) -> list[dict[str, float]]:
    """What was logged over time, but for W&B's own entries and tables."""
    return [
        {key: value for key, value in items.items() if key.startswith(("epoch", "train_loss"))}
        for items in items_of(folder, "history")
    ]


@pytest.fixture(scope="module")
def trained_result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an offline run with losses of two seeds, two sides and two epochs."""
    lines = [
        {"side": side, "seed": seed, "epoch": epoch, "train_loss": loss + seed / 100}
        for seed in (0, 12)
        for side, loss in (("model", 0.5), ("human:0", 0.25))
        for epoch in (1, 2)
    ]
    folder = tmp_path_factory.mktemp("trained")
    WandbLogger(str(folder), mode="offline").log(replace(result(), tables={"curves": lines}))
    return folder


def test_an_offline_run_has_its_identity_summary_rows_and_losses(trained_result):
    run = offline_run(trained_result)
    assert (run.run_id, run.run_group, run.job_type) == ("run", "x-x-x", "x")
    assert summary(trained_result)["score"] == 0.25
    assert "train_loss/model" not in summary(trained_result)
    (table,) = trained_result.rglob("rows*.table.json")
    assert json.loads(table.read_text())["data"][0][0] == "run"
    wanted = {"train_loss/model": 0.56, "train_loss/human:0": 0.31}
    lines = [line for line in history(trained_result) if line]
    assert lines == [pytest.approx({"epoch": epoch, **wanted}) for epoch in (1, 2)]


def test_the_settings_are_nested_by_their_keys(tmp_path):
    facts = {
        "config": {"prior": "counts", "a_to_t": [{"delta": 0.4}]},
        "keys": {"a_to_t.0": "alignment"},
    }
    WandbLogger(str(tmp_path), mode="offline").log(replace(result(), manifest=facts))
    stored = {item.key: json.loads(item.value_json) for item in offline_run(tmp_path).config.update}
    assert stored["settings"] == {"metric": {"prior": "counts"}, "alignment": {"delta": 0.4}}


def test_the_summary_has_headlines_groups_and_the_answer_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([*SMALL, "metric=gender_error"]) == 0
    keys = {key.partition("/")[0] for key in summary(tmp_path / "outputs")}
    assert {"score", "answer", "question", "group:female"} <= keys
    assert not [key for key in keys if key.startswith(("class:", "word:", "object:"))]


def test_the_door_writes_an_offline_run_beside_the_csv(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([*SMALL]) == 0
    rows = json.loads(next(tmp_path.glob("outputs/*/result.json")).read_text())["rows"]
    (value,) = (row["value"] for row in rows if row["part"] == "score")
    lines = csv.DictReader(io.StringIO((tmp_path / "outputs/rows.csv").read_text()))
    (line,) = (line for line in lines if line["part"] == "score")
    assert summary(tmp_path / "outputs")["score"] == float(line["value"]) == value


def test_wandb_not_installed_fails_nothing(tmp_path, monkeypatch, caplog):
    real = builtins.__import__

    def no_wandb(name: str, *rest: object) -> object:
        if name == "wandb":
            raise ImportError("No module named 'wandb'")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", no_wandb)
    with caplog.at_level(logging.WARNING):
        WandbLogger(str(tmp_path)).try_log(result("one"))
        WandbLogger(str(tmp_path)).try_log(result("two"))
    assert sum("wandb" in record.message for record in caplog.records) == 1


class StandIn:
    """A server on this machine that accepts connections and never comes to an answer.

    Args:
        drips: whether it sends one byte of it now and then.
    """

    def __init__(self, *, drips: bool = False) -> None:
        self.drips = drips
        self.connections: list[socket.socket] = []
        self.done = threading.Event()
        self.server = socket.create_server(("127.0.0.1", 0))
        self.server.settimeout(0.2)
        self.url = f"http://127.0.0.1:{self.server.getsockname()[1]}"

    def __enter__(self) -> StandIn:
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join()
        for connection in (*self.connections, self.server):
            connection.close()

    def serve(self) -> None:
        answer = itertools.chain(b"HTTP/1.1 200 OK\r\nX: ", itertools.repeat(ord("x")))
        while not self.done.is_set():
            with contextlib.suppress(TimeoutError):
                self.connections.append(self.server.accept()[0])
            byte = bytes([next(answer)])
            for connection in self.connections if self.drips else ():
                with contextlib.suppress(OSError):
                    connection.sendall(byte)


def tell(folder: Path, server: StandIn, mode: str, **settings: object) -> float:
    """Have a process log a result and end; the seconds it took."""
    code = (
        "import sys; from bias_pipeline.run.loggers import WandbLogger;"
        "from tests.run.test_loggers import result;"
        f"WandbLogger(sys.argv[1], mode={mode!r}, **{settings!r}).try_log(result())"
    )
    key = {"WANDB_API_KEY": "0" * 40, "WANDB_BASE_URL": server.url}
    started = time.monotonic()
    subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        env={**os.environ, **key},
        cwd=REPOSITORY,
        check=True,
    )
    return time.monotonic() - started


def test_offline_asks_no_server_for_anything(tmp_path):
    with StandIn() as server:
        tell(tmp_path, server, "offline")
    assert offline_run(tmp_path).run_id == "run"
    assert server.connections == []


@pytest.mark.parametrize("home", [{}, {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null/x"}])
def test_without_a_home_that_can_be_written_a_run_is_logged_and_nothing_is_printed(tmp_path, home):
    code = (
        "import sys; from bias_pipeline.run.loggers import WandbLogger;"
        "from tests.run.test_loggers import result;"
        "WandbLogger(sys.argv[1]).try_log(result())"
    )
    others = {k: v for k, v in os.environ.items() if k != "HOME" and not k.startswith("XDG_")}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env={**others, **home},
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("", "")
    assert offline_run(tmp_path).run_id == "run"


@pytest.mark.slow
def test_a_process_does_not_wait_for_a_dripping_server_when_it_ends(tmp_path):
    with StandIn(drips=True) as server:
        assert tell(tmp_path, server, "online", timeout_s=8) < 24
    assert server.connections
    assert offline_run(tmp_path).run_id == "run"


@pytest.fixture
def silent_server() -> Iterator[str]:
    with StandIn() as server:
        yield server.url


def test_a_server_that_hangs_costs_its_timeout_once_and_leaves_runs_offline(
    tmp_path, monkeypatch, silent_server
):
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    monkeypatch.setenv("WANDB_BASE_URL", silent_server)
    started = time.monotonic()
    for name in ("one", "two", "three"):
        folder = tmp_path / name
        WandbLogger(str(folder), mode="online", timeout_s=2).try_log(result(name))
    assert time.monotonic() - started < 15
    assert [offline_run(tmp_path / name).run_id for name in ("one", "two")] == ["one", "two"]


def test_online_without_a_key_is_offline(tmp_path, monkeypatch):
    monkeypatch.setattr(loggers, "has_key", lambda: False)
    WandbLogger(str(tmp_path), mode="online").log(result())
    assert offline_run(tmp_path).run_id == "run"


def test_disabled_writes_nothing(tmp_path):
    WandbLogger(str(tmp_path), mode="disabled").log(result())
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_mode_is_refused(tmp_path):
    with pytest.raises(UsageError, match="did you mean 'offline'"):
        WandbLogger(str(tmp_path), mode="of-line")


def test_a_mode_from_the_environment_that_is_unknown_is_told_before_the_work(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "onlin")
    assert main([*SMALL]) == 2
    assert "WANDB_MODE=onlin is unknown; did you mean 'online'?" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_csv_appends_the_rows_of_each_cell(tmp_path):
    logger = CsvLogger(str(tmp_path / "rows.csv"))
    logger.log(result("one"))
    logger.log(result("two"))
    lines = csv.DictReader(io.StringIO((tmp_path / "rows.csv").read_text()))
    assert [line["run_id"] for line in lines] == ["one", "two"]


def test_an_empty_csv_gets_a_header(tmp_path):
    (tmp_path / "rows.csv").touch()
    CsvLogger(str(tmp_path / "rows.csv")).log(result("one"))
    lines = csv.DictReader(io.StringIO((tmp_path / "rows.csv").read_text()))
    assert [line["run_id"] for line in lines] == ["one"]


@pytest.mark.parametrize("content", ["mine", None])
def test_csv_follows_no_link(tmp_path, caplog, content):
    """Whoever can write to a shared folder of results may have put one there."""
    other = tmp_path / "other.txt"
    if content:
        other.write_text(content)
    (tmp_path / "rows.csv").symlink_to(other)
    CsvLogger(str(tmp_path / "rows.csv")).try_log(result())
    assert (other.read_text() if other.exists() else None) == content
    assert "results are complete without it" in caplog.text
