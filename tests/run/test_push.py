"""``report wandb``: one W&B run a cell, however often it is called."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from bias_pipeline.commands.main import main
from bias_pipeline.results.store import ResultStore
from bias_pipeline.run import loggers
from bias_pipeline.run.push import PushResult, push, server_fault
from tests.run.test_loggers import result, silent_server

__all__ = ["silent_server"]  # a fixture

LIBRARY = pytest.mark.skipif(
    find_spec("wandb_workspaces") is None, reason="pip install 'bias_pipeline[track]'"
)


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WANDB_MODE", "WANDB_API_KEY", "WANDB_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("one", "two"):
        ResultStore(tmp_path).save(result(name))
    return tmp_path


@pytest.fixture
def sent_runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of runs that a server would have got; it takes all but those named ``refused``."""
    ids: list[str] = []

    def record_online(content: Any, folder: Path, timeout_s: float) -> bool:
        ids.append(content["id"])
        return content["id"] != "refused"

    monkeypatch.setattr(loggers, "record_online", record_online)
    monkeypatch.setattr(loggers, "has_key", lambda: True)
    monkeypatch.setattr("bias_pipeline.run.push.reachable_server", lambda: "http://x")
    return ids


def offline(folder: Path) -> list[str]:
    return sorted(path.name.rpartition("-")[2] for path in folder.glob("wandb/offline-run-*"))


def test_offline_writes_one_run_a_cell_and_a_second_push_none(folder, capsys):
    words = ["report", "wandb", str(folder), "--mode", "offline"]
    assert [main(words), main(words)] == [0, 0]
    assert offline(folder) == ["one", "two"]
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("2 runs written")
    assert second.startswith("0 runs written")


def test_what_the_logger_wrote_is_not_written_again(folder, monkeypatch):
    (folder / "wandb" / "offline-run-20260101_120000-one").mkdir(parents=True)
    written: list[str] = []
    monkeypatch.setattr(loggers, "record", lambda content, *_: written.append(content["id"]))
    assert list(push(folder, mode="offline").new) == written == ["two"]


def test_a_name_that_ends_alike_is_another_run(folder, monkeypatch):
    (folder / "wandb" / "offline-run-20260101_120000-not-one").mkdir(parents=True)
    monkeypatch.setattr(loggers, "record", lambda *_: None)
    assert list(push(folder, mode="offline").new) == ["one", "two"]


def test_curves_of_training_are_told(tmp_path, monkeypatch):
    lines = [
        {"side": "model", "seed": seed, "epoch": 1, "train_loss": loss}
        for seed, loss in ((0, 0.5), (12, 0.75))
    ]
    folder = tmp_path / "runs"
    ResultStore(folder).save(replace(result("one"), tables={"curves": lines}))
    ResultStore(folder).save(result("two"))
    message: dict[str, object] = {}
    monkeypatch.setattr(
        loggers, "record", lambda content, *_: message.update({content["id"]: content["history"]})
    )
    push(folder, mode="offline")
    assert message == {"one": [{"epoch": 1, "train_loss/model": 0.625}], "two": []}


def test_online_sends_a_run_once_to_each_place(folder, sent_runs):
    push(folder, mode="online")
    push(folder, mode="online")
    assert sent_runs == ["one", "two"]
    push(folder, mode="online", project="other")
    assert sent_runs == ["one", "two"] * 2


def test_a_refused_run_is_sent_again_and_the_others_are_not(folder, sent_runs, capsys):
    ResultStore(folder).save(result("refused"))
    words = ["report", "wandb", str(folder)]
    assert [main(words), main(words)] == [5, 5]
    assert sent_runs == ["one", "refused", "refused"]
    assert "the same command sends the rest" in capsys.readouterr().err


def test_a_key_means_online_unless_the_environment_says_another_mode(
    folder, sent_runs, monkeypatch
):
    assert push(folder).mode == "online"
    monkeypatch.setenv("WANDB_MODE", "disabled")
    assert (push(folder).new, len(sent_runs)) == ([], 2)


@pytest.mark.parametrize("word", ["--mode=online", pytest.param("--workspace", marks=LIBRARY)])
def test_a_server_that_never_answers_is_a_sentence_within_ten_seconds(
    word, folder, silent_server, monkeypatch, capsys
):
    silent = partial(server_fault, silent_server)
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    monkeypatch.setattr("bias_pipeline.run.push.server_fault", lambda url: silent())
    started = time.monotonic()
    code = main(["report", "wandb", str(folder), word])
    assert (code, time.monotonic() - started < 10) == (5, True)
    assert "does not answer" in capsys.readouterr().err


@pytest.mark.parametrize(("key", "words"), [(True, "does not answer"), (False, "WANDB_API_KEY")])
def test_an_address_where_nobody_is_or_no_key_is_a_sentence(
    key, words, folder, monkeypatch, capsys
):
    closed = server_fault("http://127.0.0.1:1")
    monkeypatch.setattr(loggers, "has_key", lambda: key)
    monkeypatch.setattr("bias_pipeline.run.push.server_fault", lambda url: closed)
    assert main(["report", "wandb", str(folder), "--mode", "online"]) == 5
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--mode", "of-line"], 2),
        (["--wrong"], 2),
        (["nowhere"], 5),
        ([".", "--mode", "offline"], 3),  # without runs
    ],
)
def test_mistakes_are_told(words, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["report", "wandb", *words]) == code


@pytest.fixture
def server() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as http_server:
        thread = threading.Thread(target=http_server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{http_server.server_address[1]}"
        http_server.shutdown()
        thread.join()


def test_any_answer_is_one_and_a_closed_port_gives_none(server):
    assert server_fault(server) == ""
    assert server_fault(server.replace("//", "//me:password@")) == ""
    assert server_fault("http://127.0.0.1:1") != ""


def test_one_run_that_is_there_is_told_in_the_singular():
    assert "; 1 run was written before" in PushResult("online", "server", ["a"], 1).sentence()
