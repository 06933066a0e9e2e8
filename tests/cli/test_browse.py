"""``browse``: serves finished runs until it is stopped, and refuses bad words in one sentence."""

import re
import socket
import subprocess
import urllib.error
import urllib.request
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from bias_pipeline.results.store import ResultStore
from tests.cli.commands import serve
from tests.report.test_page import result

pytest.importorskip("starlette", reason="needs the extra web")


def browsing(
    root: Path, *words: str
) -> AbstractContextManager[tuple[str, subprocess.Popen[bytes]]]:
    """The address of a folder of runs while it is served."""
    return serve(root, "browse", str(root), *words)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    one = result("sat")
    ResultStore(tmp_path / "runs").save(replace(one, manifest={**one.manifest, "corpus": {}}))
    return tmp_path / "runs"


def test_it_serves_until_ctrl_c_and_changes_nothing(root):
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    with browsing(root) as (address, process), urllib.request.urlopen(address, timeout=20) as page:
        assert b">sat" in page.read()
    (root / "browse.log").unlink()
    assert process.returncode == 130
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


@pytest.mark.slow
def test_the_link_for_others_holds_the_token(root):
    with browsing(root, "--host", "localhost", "--token") as (address, _):
        assert re.fullmatch(r"http://localhost:\d+/\?token=[\w-]{16}", address)
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(address.partition("?")[0], timeout=20)
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(address, timeout=20) as reply:
            assert (b">sat" in reply.read(), "token" in reply.url) == (True, False)


def test_connections_that_ask_for_nothing_lock_nobody_out(root):
    with browsing(root) as (address, _), ExitStack() as stack:
        host, port = address.removeprefix("http://").rstrip("/").split(":")
        for _ in range(70):
            waiting = stack.enter_context(socket.create_connection((host, int(port))))
            waiting.sendall(b"GET / HTTP/1.1\r\n")  # and never the rest
        with urllib.request.urlopen(address, timeout=20) as page:
            assert b">sat" in page.read()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("absent", 5, "absent is not a folder; name the folder that runs were written to"),
        ("empty", 3, "empty contains no finished run; run one first"),
        ("damaged", 3, "contains no finished run that can be read (damaged/x/result.json: is"),
        ("empty --data absent", 5, "--data absent is not a folder"),
        ("empty --host x", 2, "needs --token"),
        ("empty --host 0.0.0.0", 2, "--host takes"),
        ("empty --host x --token short", 2, "12 characters"),
        ("empty --port 70000", 2, "--port"),
    ],
)
def test_bad_input_is_one_sentence(words, code, message, ends):
    Path("empty").mkdir()
    Path("damaged/x").mkdir(parents=True)
    Path("damaged/x/result.json").write_text('{"schema": 1}')
    assert message in ends(code, "browse", *words.split())


def test_a_port_in_use_is_named(run, root):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        code, printed = run("browse", str(root), "--port", str(listener.getsockname()[1]))
    assert (code, "cannot be used" in printed) == (5, True), printed
