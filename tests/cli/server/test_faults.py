"""``caption --server``: a server refuses, breaks, hangs; nothing is lost and no key is shown."""

import base64
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import pytest
from PIL import Image

from bias_pipeline.errors import UsageError
from bias_pipeline.models.sampling import Decoding
from bias_pipeline.pictures.captioners import chat_server, served
from bias_pipeline.pictures.captioners.chat_server import ChatServer
from bias_pipeline.pictures.captioners.served import ServedBar, ServedCaptioner
from bias_pipeline.pictures.commands import caption
from tests.chat_stub import Body, Reply, color_of, completion, error, serving
from tests.cli.commands import start, wait_for
from tests.cli.server.dogs import DOGS, N_PHOTOS, SECRET, URL, a_dog

# --- a server that is not as it should be: one sentence, nothing lost


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    ("reply", "code", "message"),
    [
        (error(429, "x", Retry_After="7200"), 5, "no request for 2.0 h; start again then, or"),
        (
            error(503, "x", Retry_After="Fri, 31 Dec 2100 23:59:59 GMT"),
            5,
            " h; start again then, or wait longer with --give-up",
        ),
        (Reply("[" * 100_000, 400), 5, "refuses the request (400: Bad Request)"),
        (Reply("<!doctype html><p>Hi</p>", kind="text/html"), 2, "answers with a web page"),
        (
            Reply("", 307, headers={"Location": "https://other.invalid/"}),
            2,
            "to another address: https://other.invalid/",
        ),
    ],
    ids=[
        "a wait of hours",
        "a wait until a date",
        "an error without end",
        "a page",
        "a server elsewhere",
    ],
)
def test_an_answer_that_ends_the_work(ask_stub, reply, code, message):
    _, printed = ask_stub(lambda _: reply, "--limit", "1", code=code)
    assert (printed.count("\n"), message in printed) == (1, True), printed


def test_a_server_that_never_answered_is_not_waited_for(ask, monkeypatch):
    monkeypatch.setattr(served, "FIRST_WAIT_S", 60.0)
    printed = ask(f"http://127.0.0.1:{unused_port()}/v1", code=5)
    assert (printed.count("\n"), "no server answers at http://127.0.0.1" in printed) == (1, 1)
    assert "start it, or correct --server" in printed


@pytest.mark.parametrize(
    ("key", "words"), [("", "needs a key; set"), (SECRET, "refuses the key in")]
)
def test_a_wrong_key(ask_stub, monkeypatch, key, words):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    _, printed = ask_stub(lambda _: error(401, f"Incorrect API key provided: {key}"), code=2)
    assert printed == f"error: 127.0.0.1 {words} OPENAI_API_KEY (401)\n"


@pytest.mark.parametrize("status", [400, 404])
def test_a_wrong_model(ask_stub, status):
    stub, printed = ask_stub(lambda _: error(status, "no such model"), "--model", "qwem", code=2)
    reason = f"127.0.0.1 refuses the request ({status}: no such model)"
    assert printed.replace(reason, "no such model") == (
        f"error: {stub.url} does not take the model 'qwem' (no such model); it has qwen\n"
    )


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (500, "image input is not supported - hint: provide the mmproj"),
        (400, "x is not a multimodal model"),
    ],
)
def test_a_model_that_takes_no_pictures_is_asked_once(ask_stub, status, words):
    stub, printed = ask_stub(lambda _: error(status, words), "--batch", "1", code=2)
    assert f"the model 'qwen' takes no pictures ({words})" in printed
    assert len(stub.requests) == 1


def test_a_server_that_takes_no_such_type_of_image_is_asked_for_the_other_photos(ask_stub):
    refused = error(400, "does not support image/webp")
    stub, _ = ask_stub(lambda _: refused, "--batch", "1", "--limit", "2", code=5)
    assert len(stub.requests) == 2


def test_where_all_photos_are_refused_there_is_an_error(ask_stub):
    refused = error(400, "pictures are not supported")
    _, printed = ask_stub(lambda _: refused, "--limit", "2", code=5)
    assert printed.count("\n") == 1
    assert "no photo has a caption: " in printed
    assert "1 (127.0.0.1 refuses the request (400: pictures are not supported))" in printed


def test_a_server_that_hangs(ask):
    rest = threading.Event()

    def hang(_: Body) -> Reply:
        rest.wait()
        return Reply({})

    with serving(hang) as stub:
        printed = ask(stub.url, "--timeout", "0.3", code=5)
        rest.set()
    assert ("did not answer within 0.3 s" in printed, printed.count("\n")) == (True, 1)
    assert len(stub.requests) <= caption.AT_ONCE  # it was not waited for again


def test_a_server_that_takes_no_connection_is_not_given_more_time():
    import httpx
    import openai

    try:
        raise openai.APITimeoutError(httpx.Request("POST", URL)) from httpx.ConnectTimeout("late")
    except openai.APITimeoutError as late:
        fault = chat_server.server_fault(late, ChatServer(URL, "qwen"), 300.0)
    assert fault.absent
    assert "no server answers at https://api.invalid/v1" in fault.words
    assert "--timeout" not in fault.words


def test_a_declined_photo_is_an_answer_between_failures(ask_stub):
    tries: Counter[int] = Counter()

    def answer(body: Body) -> Reply:
        tries[color_of(body)] += 1
        if list(tries).index(color_of(body)) == N_PHOTOS // 2:
            return error(400, "no people", "content_filter")
        return completion("dog", "error")

    _, printed = ask_stub(answer, "--batch", "1", code=5)
    assert (len(tries), "in a row" in printed) == (N_PHOTOS, False), printed


def test_a_model_that_a_key_may_not_use_is_named(ask_stub, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    words = "project p1 does not have access to model qwen"
    _, printed = ask_stub(lambda _: error(403, words), code=2)
    assert words in printed


class Dying:
    """Answers six requests; then it is dead."""

    def __init__(self) -> None:
        self.dead, self.n_answers = threading.Event(), 0

    def __call__(self, body: Body) -> Reply:
        self.n_answers += 1
        if self.n_answers > 6:
            self.dead.set()
            threading.Event().wait(0.2)
            raise ConnectionError
        return a_dog(body)


def test_a_server_that_dies_half_way_loses_nothing(ask, by_image):
    port, dying = unused_port(), Dying()
    with serving(dying, port=port) as stub:
        ending = threading.Thread(target=lambda: (dying.dead.wait(), stub.close()))
        ending.start()
        assert "no server answers at" in ask(stub.url, "--batch", "2", code=5)
        ending.join()
    with serving(a_dog, port=port) as again:
        ask(again.url)
    assert (len(again.requests), by_image()) == (N_PHOTOS - 6, DOGS)


def test_the_bar_says_what_it_waits_for(photos, monkeypatch):
    """And no longer when the server has answered."""
    monkeypatch.setattr(served, "FIRST_WAIT_S", 2.0)
    replies = iter([error(503, "busy"), completion("a dog")])
    with (
        serving(lambda _: next(replies)) as stub,
        ServedCaptioner(ChatServer(stub.url, "qwen"), Decoding(), 1, 5.0) as captioner,
        ThreadPoolExecutor(1) as pool,
    ):
        bar = ServedBar(captioner.start())
        captions = pool.submit(captioner.read, photos / "1.png")
        wait_for(lambda: captioner.retry)
        waiting = bar.place()
        captions.result()
    assert re.fullmatch(r"0 captions, 127\.0\.0\.1 answers 503, attempt 2 in [12] s", waiting)
    assert "503" not in bar.place()


def test_a_server_that_is_started_again_goes_on_answering(ask, by_image, monkeypatch):
    monkeypatch.setattr(served, "FIRST_WAIT_S", 0.1)  # six seconds in all
    port, dying, over = unused_port(), Dying(), threading.Event()

    def restart() -> None:
        dying.dead.wait()
        first.close()
        with serving(a_dog, port=port):
            over.wait()

    with serving(dying, port=port) as first:
        restarting = threading.Thread(target=restart)
        restarting.start()
        ask(first.url, "--batch", "2")
        over.set()
        restarting.join()
    assert by_image() == DOGS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code", "variables"),
    [
        (signal.SIGINT, 130, {}),
        (signal.SIGTERM, 143, {}),
        (signal.SIGHUP, 143, {}),
        (signal.SIGUSR2, 75, {"SLURM_JOB_ID": "1"}),
    ],
)
def test_a_stop_ends_at_once_although_answers_are_awaited(tmp_path, number, code, variables):
    """And what was answered before is not asked again."""
    (folder := tmp_path / "photos").mkdir()
    for image in range(600):  # about nine a block
        Image.new("RGB", (16, 12)).save(folder / f"{image}.png")
    everything = threading.Event()

    def answer(_: Body) -> Reply:
        if len(stub.requests) > 300:
            everything.wait()
        time.sleep(0.01)
        return completion("a dog")

    def resume(**more: str) -> subprocess.Popen[bytes]:
        words = ("--server", stub.url, "--model", "qwen", "--out", "out", "--batch", "2")
        return start(tmp_path, "caption", str(folder), *words, **more)

    with serving(answer) as stub:
        process = resume(**variables)
        wait_for(lambda: len(stub.requests) > 301, seconds=120)
        time.sleep(0.3)
        process.send_signal(number)
        assert process.wait(timeout=20) == code
        everything.set()
        stub.requests.clear()
        stub.answer = lambda _: completion("a dog")
        assert resume().wait(timeout=60) == 0
    assert len(stub.requests) == 300


def test_a_certificate_that_does_not_fit(ask, tmp_path):
    openssl = shutil.which("openssl") or pytest.skip("no openssl to make a certificate with")
    paths = tmp_path / "cert.pem", tmp_path / "key.pem"
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=elsewhere -out {} -keyout {}"
    command = [openssl, *words.format(*paths).split()]
    subprocess.run(command, check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*paths)
    with serving(a_dog, tls=tls) as stub:
        printed = ask(stub.url, code=5)
    assert (printed.count("\n"), stub.requests) == (1, [])
    assert "the certificate of 127.0.0.1 does not fit (self" in printed


# --- keys


def test_a_key_goes_to_the_server_and_nowhere_else(ask_stub, monkeypatch, tmp_path):
    """Even where the server repeats it, in captions and in errors."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)

    def answer(body: Body) -> Reply:
        kind = color_of(body) % 3
        if kind == 0:
            return error(400, f"a bad request with {SECRET}")
        return completion(f"a dog {SECRET}") if kind == 1 else a_dog(body)

    stub, printed = ask_stub(answer)
    assert stub.headers[0]["authorization"] == f"Bearer {SECRET}"
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert SECRET not in printed
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []


@pytest.mark.parametrize("key", [f"{SECRET}\n", f"{SECRET}\n{SECRET}"])
def test_a_key_with_line_breaks_is_not_shown(ask_stub, monkeypatch, key):
    """Those at its end are no part of it."""
    monkeypatch.setenv("OPENAI_API_KEY", key)
    _, printed = ask_stub(lambda _: error(401, f"no such key: {SECRET}"), code=2)
    assert (SECRET in printed, printed.count("\n")) == (False, 1)


@pytest.mark.parametrize("url", ["https://me:pw@host/v1", "https://host/v1?key=abc"])
def test_an_address_with_a_key_is_refused_without_it(url):
    with pytest.raises(UsageError, match=r"the key comes from the environment") as refused:
        ChatServer(url, "qwen")
    assert "pw" not in str(refused.value).replace("password", "")
    assert "abc" not in str(refused.value)


@pytest.mark.parametrize("ending", ["jpg", "gif"])
def test_comments_in_a_photo_stay_here(tmp_path, ending):
    path = tmp_path / f"1.{ending}"
    Image.new("RGB", (8, 8)).save(path, comment=b"at home")
    sent = base64.b64decode(ChatServer(URL, "qwen").picture(path).partition(",")[2])
    assert b"at home" not in sent


def test_a_photo_longer_than_a_jpeg_is_sent_smaller(tmp_path):
    Image.new("L", (66_000, 700)).save(tmp_path / "1.png")
    sent = base64.b64decode(ChatServer(URL, "qwen").picture(tmp_path / "1.png").partition(",")[2])
    assert Image.open(BytesIO(sent)).width == 65_500


# --- words that do not fit together


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--device cuda", "--device does not go with --server"),
        ("--beams 3", "--beams does not go with --server"),
        ("--revision main", "--revision does not go with --server"),
        ("--server localhost:8000", "--server takes an address such as"),
        ("--server http://[::1", "--server takes an address such as"),
        ("--server http://127.0.0.1:v1", "--server takes an address such as"),
        ("--to-batch a.jsonl --from-batch b.jsonl", "give one"),
    ],
)
def test_words_that_do_not_fit(ask, words, message):
    assert message in ask(URL, *words.split(), code=2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("caption . --model m --out out --timeout 5", "--timeout needs --server URL"),
        (
            f"submit caption . --server {URL} --model m --out out --shards 2",
            "submit caption takes no --server: all jobs at once would",
        ),
    ],
)
def test_a_server_is_for_one_process_that_names_it(ends, words, message):
    assert message in ends(2, *words.split())


def test_without_the_client_the_extra_is_named(ask, monkeypatch):
    absent = type(caption.OPENAI)("openai", "caption --server", ("no_such_openai",))
    monkeypatch.setattr(caption, "OPENAI", absent)
    assert "pip install 'bias_pipeline[openai]'" in ask("http://127.0.0.1:1/v1", code=5)
