"""``caption --server``: a server on this machine answers, refuses, breaks; nothing is lost."""

import json
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from bias_pipeline.captioners import chat_server
from bias_pipeline.captioners.chat_server import ChatServer
from bias_pipeline.captioners.served import ServedBar, ServedCaptioner
from bias_pipeline.commands import caption
from bias_pipeline.datasets.coco_files import model_captions
from bias_pipeline.errors import UsageError
from bias_pipeline.io.terminal import secrets
from bias_pipeline.models.sampling import Decoding
from tests.chat_stub import Body, Reply, Stub, color_of, completion, error, picture_of, serving
from tests.cli.commands import start, wait_for

N_PHOTOS = 14
SECRET = "sk-0123456789abcdef"
URL = "https://api.invalid/v1"
DOGS = {number: f"dog {number}" for number in range(1, N_PHOTOS + 1)}


@pytest.fixture(scope="module")
def photos(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    for number in DOGS:
        Image.new("RGB", (16, 12), (5 * number, 0, 0)).save(folder / f"{number}.png")
    return folder


@pytest.fixture(autouse=True)
def _impatient(monkeypatch) -> Iterator[None]:
    monkeypatch.setattr(chat_server, "FIRST_WAIT_S", 0.005)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    secrets.cache_clear()
    yield
    secrets.cache_clear()


@pytest.fixture
def ask(ends, photos) -> Callable[..., str]:
    """Captions the photos by a server into ``out``; returns what was printed."""

    def command(url: str, *words: str, folder: Path = photos, code: int = 0) -> str:
        options = ("--server", url, "--model", "qwen", "--out", "out")
        return ends(code, "caption", str(folder), *options, *words)

    return command


@pytest.fixture
def ask_stub(ask) -> Callable[..., tuple[Stub, str]]:
    """The same by a server with the answers of a test, which is returned too."""

    def command(answer: Callable[[Body], Reply], *words: str, **more: Any) -> tuple[Stub, str]:
        with serving(answer) as stub:
            return stub, ask(stub.url, *words, **more)

    return command


def a_dog(body: Body) -> Reply:
    return completion(f"dog {color_of(body)}")


@pytest.fixture
def gathered(ok) -> Callable[..., list[dict[str, Any]]]:
    """The rows of the gathered file."""

    def command(*words: str) -> list[dict[str, Any]]:
        ok("caption", "--gather", "out", *words)
        return json.loads(Path("out", "captions.json").read_text())

    return command


@pytest.fixture
def by_image(gathered) -> Callable[..., dict[Any, str]]:
    """Image to caption."""
    return lambda *words: {row["image_id"]: row["caption"] for row in gathered(*words)}


# --- the good path


def test_each_photo_has_the_answer_about_it(ask_stub, by_image):
    _, printed = ask_stub(a_dog)
    assert f"tokens used: {10 * N_PHOTOS} read, {2 * N_PHOTOS} written" in printed
    assert by_image() == DOGS


def test_a_request_is_a_chat_completion_with_the_picture(ask_stub):
    words = ("--prompt", "what is this?", "--max-new-tokens", "40", "--limit", "1")
    (body,) = ask_stub(a_dog, *words)[0].requests
    content = body["messages"][0]["content"]
    assert [part["type"] for part in content] == ["image_url", "text"]
    assert content[1]["text"] == "what is this?"
    assert picture_of(body).size == (16, 12)
    others = {key: value for key, value in body.items() if key != "messages"}
    assert others == {"model": "qwen", "temperature": 0.0, "max_tokens": 40}


def test_requests_are_sent_together(ask_stub):
    everyone = threading.Barrier(7)

    def answer(body: Body) -> Reply:
        everyone.wait(timeout=20)  # breaks unless seven are there at a time
        return a_dog(body)

    assert ask_stub(answer, "--batch", "7")[0].most_at_once == 7


def test_a_second_run_asks_nothing(ask):
    with serving(a_dog) as stub:
        ask(stub.url)
        stub.requests.clear()
        printed = ask(stub.url)
    assert (stub.requests, "blocks existed already" in printed) == ([], True)


def test_a_limit_asks_for_the_first_photos(ask, by_image):
    with serving(a_dog) as stub:
        ask(stub.url, "--limit", "5")
        assert len(stub.requests) == 5
        assert sorted(by_image("--no-strict")) == [1, 2, 3, 4, 5]
        ask(stub.url)
    assert (len(stub.requests), by_image()) == (N_PHOTOS, DOGS)


def test_draws_have_seeds_of_their_own(ask_stub, gathered):
    draws = ("--n", "3", "--temperature", "0.5", "--seed", "7")
    ask_stub(lambda body: completion(f"seed {body['seed']}"), *draws)
    rows = gathered()
    assert {(row["sample"], row["caption"]) for row in rows} == {
        (0, "seed 7"), (1, "seed 8"), (2, "seed 9"),
    }  # fmt: skip
    assert rows[0]["decoding"].startswith("3 draws at temperature 0.5 with seed 7, at most 256")


def test_the_newer_length_is_sent_where_a_server_names_it(ask_stub, by_image):
    def answer(body: Body) -> Reply:
        if "max_tokens" in body:
            return error(400, "Unsupported parameter: use 'max_completion_tokens' instead.")
        assert body["max_completion_tokens"] == 256
        return a_dog(body)

    ask_stub(answer)
    assert by_image() == DOGS


def test_a_large_photo_is_sent_smaller_on_request_and_never_with_its_place(ask_stub, tmp_path):
    exif = Image.Exif()
    exif[0x010E] = "taken at home"
    Image.new("RGB", (300, 200)).save(tmp_path / "1.jpg", exif=exif)
    for words, size in ((("--longest-side", "60"), (60, 40)), ((), (300, 200))):
        stub, _ = ask_stub(a_dog, *words, folder=tmp_path)
        picture = picture_of(stub.requests[0])
        assert (picture.size, dict(picture.getexif())) == (size, {})


def test_a_proxy_gets_no_photo_for_a_server_on_this_machine(ask_stub, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    ask_stub(a_dog)


def test_that_photos_leave_is_said_before_the_first_request(ask):
    first, *_, last = ask("http://captions.invalid/v1", "--timeout", "5", code=5).splitlines()
    assert "photos leave this machine: they are sent to captions.invalid" in first
    assert "without encryption" in first
    assert last.startswith("error: ")
    assert "captions.invalid" in last


# --- answers that are no captions


def unhelpful(reply: Reply) -> Callable[[Body], Reply]:
    return lambda body: reply if color_of(body) in (3, 4) else a_dog(body)


@pytest.mark.parametrize(
    ("reply", "text", "note", "kind"),
    [
        (completion("a dog and a", "length"), "a dog and a", "length", "cut (length)"),
        (completion(None, refusal="I can't"), "", "refused", "empty (refused)"),
        (completion(""), "", "empty", "empty (empty)"),
        (completion(None, "content_filter"), "", "content_filter", "empty (content_filter)"),
        (error(400, "no people", "content_filter"), "", "refused", "empty (refused)"),
        (Reply({"output": "a dog"}), "", "wrong shape", "empty (wrong shape)"),
        (Reply("{]"), "", "wrong shape", "empty (wrong shape)"),
    ],
)
def test_what_is_no_whole_caption_is_counted_with_its_image(
    ask_stub, ok, gathered, reply, text, note, kind
):
    _, printed = ask_stub(unhelpful(reply))
    assert f"2 captions are {kind}, such as of image 3, 4" in printed
    assert f"2 noted as '{note}'" in ok("caption", "--gather", "out")
    notes = {row["image_id"]: (row["caption"], row.get("note")) for row in gathered()}
    assert (notes[3], notes[4], notes[5]) == ((text, note), (text, note), ("dog 5", None))


def test_a_gathered_file_with_notes_is_read(ask_stub, gathered):
    ask_stub(unhelpful(completion("a dog and", "length")))
    gathered()
    assert model_captions(Path("out", "captions.json")).captions["3"] == "a dog and"


def test_half_a_character_is_a_sign(ask_stub, by_image):
    ask_stub(unhelpful(completion("a dog \ud83d")))
    assert by_image()[3] == "a dog ?"


def test_a_server_that_never_captions_ends_the_work(ask_stub):
    stub, printed = ask_stub(lambda _: Reply({"output": "a dog"}), "--batch", "2", code=5)
    assert "requests in a row have no answer: 127.0.0.1 answers in another" in printed
    assert len(stub.requests) < N_PHOTOS


def test_a_photo_above_the_limit_is_left_out_with_its_reason(ask, by_image):
    with serving(unhelpful(error(413, "Payload Too Large"))) as stub:
        assert "takes no photo of that size (413); use --longest-side" in ask(stub.url)
        assert sorted(by_image("--no-strict")) == [n for n in DOGS if n not in (3, 4)]
        stub.answer = a_dog
        stub.requests.clear()
        ask(stub.url)
    assert (len(stub.requests), by_image()) == (2, DOGS)


# --- a server that is busy


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_busy_server_is_asked_again(ask_stub, by_image, status):
    tries: Counter[int] = Counter()

    def answer(body: Body) -> Reply:
        tries[color_of(body)] += 1
        return error(status, "busy") if tries[color_of(body)] < 3 else a_dog(body)

    ask_stub(answer, "--limit", "4")
    assert by_image("--no-strict") == {n: f"dog {n}" for n in range(1, 5)}
    assert set(tries.values()) == {3}


def test_requests_follow_the_rate_that_a_server_bears(ask_stub, by_image):
    """It takes one in 40 ms; without pauses nearly all of 14 at once would be refused."""
    lock, last, refused = threading.Lock(), [0.0], [0]

    def answer(body: Body) -> Reply:
        with lock:
            now = time.monotonic()
            early, last[0] = now - last[0] < 0.04, max(now, last[0])
            refused[0] += early
        return error(429, "slow down") if early else a_dog(body)

    ask_stub(answer, "--batch", "14")
    assert by_image() == DOGS
    assert refused[0] < 3 * N_PHOTOS


def test_a_server_is_left_alone_as_long_as_it_wants(ask_stub):
    times: list[float] = []

    def answer(body: Body) -> Reply:
        times.append(time.monotonic())
        return error(429, "wait", Retry_After="0.4") if len(times) == 1 else a_dog(body)

    ask_stub(answer, "--batch", "1", "--limit", "2")
    assert times[1] - times[0] > 0.35


# --- a server that is not as it should be: one sentence, nothing lost


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    ("reply", "code", "message"),
    [
        (error(429, "x", Retry_After="7200"), 5, "wants no request for 7200 s; go on later"),
        (Reply("[" * 100_000, 400), 5, "refuses the request (400: Bad Request)"),
        (Reply("<!doctype html><p>Hi</p>", kind="text/html"), 2, "answers with a web page"),
        (
            Reply("", 307, headers={"Location": "https://other.invalid/"}),
            2,
            "to another address: https://other.invalid/",
        ),
    ],
    ids=["a wait of hours", "an error without end", "a page", "a server elsewhere"],
)
def test_an_answer_that_ends_the_work(ask_stub, reply, code, message):
    _, printed = ask_stub(lambda _: reply, "--limit", "1", code=code)
    assert (printed.count("\n"), message in printed) == (1, True), printed


def test_no_server(ask):
    printed = ask(f"http://127.0.0.1:{unused_port()}/v1", code=5)
    assert (printed.count("\n"), "no server answers at http://127.0.0.1" in printed) == (1, 1)


@pytest.mark.parametrize(
    ("key", "words"), [("", "wants a key; set"), (SECRET, "refuses the key in")]
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


def test_a_server_that_is_started_again_goes_on_answering(ask, by_image, monkeypatch):
    monkeypatch.setattr(chat_server, "FIRST_WAIT_S", 0.1)  # six seconds in all
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
def test_ctrl_c_ends_at_once_although_answers_are_awaited(photos, tmp_path):
    """And what was answered before stays."""
    everything = threading.Event()

    def answer(body: Body) -> Reply:
        if len(stub.requests) > 6:
            everything.wait()
        return a_dog(body)

    with serving(answer) as stub:
        words = ("--server", stub.url, "--model", "qwen", "--out", str(tmp_path / "out"))
        process = start(tmp_path, "caption", str(photos), *words, "--batch", "2")
        wait_for(lambda: len(stub.requests) > 7, seconds=120)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
        everything.set()
    assert len(list(tmp_path.glob("out/*/blocks/*/*.block"))) >= 1


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


# --- batches


def answered(requests: Path, out: Path, answer: Callable[[Body], Reply]) -> None:
    """What a service makes of a file of requests, last one first."""
    lines = []
    for line in reversed(requests.read_text().splitlines()):
        request = json.loads(line)
        reply = answer(request["body"])
        response = {"status_code": reply.status, "body": reply.body}
        lines.append(json.dumps({"custom_id": request["custom_id"], "response": response}))
    out.write_text("\n".join(lines) + "\n")


def test_a_batch_goes_out_and_comes_back(ask, by_image):
    assert f"ask.jsonl: {N_PHOTOS} requests" in ask(URL, "--to-batch", "ask.jsonl")
    answered(Path("ask.jsonl"), Path("answers.jsonl"), a_dog)
    ask(URL, "--from-batch", "answers.jsonl")
    assert by_image() == DOGS


def test_what_a_batch_left_out_is_asked_again(ask, by_image):
    ask(URL, "--to-batch", "ask.jsonl")
    answered(Path("ask.jsonl"), Path("answers.jsonl"), unhelpful(error(500, "x")))
    printed = ask(URL, "--from-batch", "answers.jsonl")
    assert "2 have no result: 3 (status 500), 4 (status 500)" in printed
    assert "again.jsonl: 2 requests" in ask(URL, "--to-batch", "again.jsonl")
    answered(Path("again.jsonl"), Path("more.jsonl"), a_dog)
    ask(URL, "--from-batch", "more.jsonl")
    assert by_image() == DOGS


def test_several_captions_in_a_batch_are_numbered_as_they_are_read(ask, gathered):
    """The same by ``--from-batch`` and by whoever reads the answers as a captioner's file."""
    draws = ("--n", "2", "--temperature", "1")
    ask(URL, "--to-batch", "ask.jsonl", *draws)
    answered(Path("ask.jsonl"), Path("answers.jsonl"), lambda b: completion(f"seed {b['seed']}"))
    ask(URL, "--from-batch", "answers.jsonl", *draws)
    samples = {(row["sample"], row["caption"]) for row in gathered()}
    assert samples == {(0, "seed 0"), (1, "seed 1")}
    for sample in (0, 1):
        read = model_captions(Path("answers.jsonl"), sample).captions
        assert (set(read.values()), len(read)) == ({f"seed {sample}"}, N_PHOTOS)


def test_large_batches_are_several_files(ask, monkeypatch):
    monkeypatch.setattr("bias_pipeline.captioners.batch_files.MOST_REQUESTS", 6)
    printed = ask(URL, "--to-batch", "ask.jsonl")
    assert "ask.jsonl: 6 requests\nask_2.jsonl: 6 requests\nask_3.jsonl: 2 requests" in printed


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            '{"custom_id": "9001", "response": null}',
            "answers about other images than the photos: 9001",
        ),
        ('{"custom_id": "1", "respo', "answers.jsonl: line"),
    ],
)
def test_a_file_of_answers_that_does_not_fit_is_refused(ask, content, message):
    Path("answers.jsonl").write_text(content)
    printed = ask(URL, "--from-batch", "answers.jsonl", code=3)
    assert (printed.count("\n"), message in printed) == (1, True), printed


# --- what is shown on the way


def test_the_bar_shows_captions_a_second_and_tokens():
    with ServedCaptioner(ChatServer("http://127.0.0.1/v1", "m"), Decoding(), 2, 5) as captioner:
        captioner.start()
        captioner.n_captions, captioner.tokens_in = 3, 1200
        shown = ServedBar(captioner).place()
    assert re.fullmatch(r"3 captions, \d+\.\d captions/s, 1,200 tokens", shown)


# --- words that do not fit together


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--device cuda", "--device: a server takes none"),
        ("--beams 3", "--beams: a server takes none"),
        ("--revision main", "--revision: a server takes none"),
        ("--server localhost:8000", "--server takes an address such as"),
        ("--server http://[::1", "--server takes an address such as"),
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
            "submit caption takes no --server: the jobs together would",
        ),
    ],
)
def test_a_server_is_for_one_process_that_names_it(ends, words, message):
    assert message in ends(2, *words.split())


def test_without_the_client_the_extra_is_named(ask, monkeypatch):
    absent = type(caption.OPENAI)("openai", "caption --server", ("no_such_openai",))
    monkeypatch.setattr(caption, "OPENAI", absent)
    assert "pip install 'bias_pipeline[openai]'" in ask("http://127.0.0.1:1/v1", code=5)
