"""``caption --server``: a server that fails often, answers nothing, or sends what is no answer."""

import asyncio
import gzip
import json
import re
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest
from PIL import Image

from bias_pipeline.models.sampling import Decoding
from bias_pipeline.pictures.captioners import chat_server, served
from bias_pipeline.pictures.captioners.chat_server import ATTEMPTS_FOR_LOAD, ChatServer
from bias_pipeline.pictures.captioners.served import Pace, ServedCaptioner
from tests.chat_stub import Body, Reply, color_of, completion, error, serving
from tests.cli.server.dogs import DOGS, N_PHOTOS, a_dog, unhelpful

# --- answers of another shape


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("null", "[]"),
        ("5", '"a dog"'),
        ('{"choices": [null]}', '{"choices": []}'),
        ('{"choices": [{"message": {"content": 5}}]}', '{"choices": [{"message": "a dog"}]}'),
        ('{"output": "a dog"}', '{"choices": [{"mess'),
        ("", "[" * 100_000),
    ],
)
def test_answers_of_another_shape_are_asked_for_again_by_this_run_and_the_next(
    ask, ends, by_image, one, other
):
    wrong = {3: Reply(one), 4: Reply(other)}
    with serving(lambda body: wrong.get(color_of(body)) or a_dog(body)) as stub:
        assert re.search(r"2 have no result: [34]\b.*\b[34] \(127\.0\.0\.1 ", ask(stub.url))
        assert Counter(map(color_of, stub.requests)) == {n: 3 if n in (3, 4) else 1 for n in DOGS}
        printed = ends(5, "caption", "--gather", "out")
        assert "2 images are missing, 0 of them not computed yet and 2 unanswered: 3" in printed
        stub.answer = a_dog
        ask(stub.url)
    assert by_image() == DOGS


def test_an_answer_of_another_shape_once_is_no_loss(ask_stub, by_image):
    tried_before: set[int] = set()

    def answer(body: Body) -> Reply:
        image = color_of(body)
        known, _ = image in tried_before, tried_before.add(image)
        return a_dog(body) if known else Reply("null")

    ask_stub(answer, "--batch", "2")
    assert by_image() == DOGS


def test_a_page_in_between_is_no_wrong_address(ask_stub, by_image):
    replies = count()

    def answer(body: Body) -> Reply:
        page = Reply("<html>one moment</html>", kind="text/html")
        return page if next(replies) == 5 else a_dog(body)

    ask_stub(answer, "--batch", "1")
    assert by_image() == DOGS


# --- answers that are too large, packed, or in no encoding


def compress(content: bytes, *encodings: str) -> Reply:
    for encoding in encodings:
        content = gzip.compress(content) if encoding == "gzip" else zlib.compress(content)
    return Reply(content, headers={"Content-Encoding": ", ".join(encodings)})


A_BOMB = gzip.compress(b'{"choices": "' + b"a" * 50_000_000)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply('{"choices": "' + "a" * 5_000_000), "sent an answer above 4 MiB"),
        (Reply(A_BOMB, headers={"Content-Encoding": "gzip"}), "sent an answer above 4 MiB"),
        (Reply(A_BOMB, 500, headers={"Content-Encoding": "gzip"}), "sent an answer above 4 MiB"),
        (compress(b"{}", "gzip", "gzip"), "compresses its answers ('gzip, gzip')"),
        (Reply(b"{}", headers={"Content-Encoding": "br"}), "compresses its answers ('br')"),
        (
            Reply(b"{}", headers={"Content-Encoding": "gzip"}),
            "sent an answer whose compression is broken",
        ),
    ],
    ids=["large", "a bomb", "a bomb in an error", "twice", "unknown", "broken"],
)
def test_an_answer_is_not_read_beyond_its_bounds(ask_stub, by_image, reply, reason):
    _, printed = ask_stub(unhelpful(reply))
    assert f"2 have no result: 3, 4 (127.0.0.1 {reason}" in printed
    assert len(by_image("--no-strict")) == N_PHOTOS - 2


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_packed_answer_is_read(ask_stub, by_image, encoding):
    ask_stub(lambda body: compress(json.dumps(a_dog(body).body).encode(), encoding))
    assert by_image() == DOGS


@pytest.mark.parametrize(
    "charset", ["rot13", "base64", "hex", "zip", "idna", "undefined", "no-such", "ascii", '"']
)
def test_an_encoding_that_no_text_has_is_not_heeded(ask_stub, by_image, charset):
    kind = f"application/json; charset={charset}"
    ask_stub(lambda body: Reply(a_dog(body).body, kind=kind))
    assert by_image() == DOGS


def test_an_encoding_that_a_server_names_is_heeded(ask_stub, by_image):
    cafe = json.dumps(completion("a dog in a café").body, ensure_ascii=False)
    reply = Reply(cafe.encode("latin-1"), kind="application/json; charset=latin-1")
    ask_stub(unhelpful(reply))
    assert by_image()[3] == "a dog in a café"


# --- a server that does not answer


@pytest.mark.parametrize("n_answers", [0, 5])
@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_that_answers_nothing_any_more_is_given_up(
    ask_stub, monkeypatch, status, n_answers
):
    """Whatever --batch is, and however many photos there are."""
    monkeypatch.setattr(served, "FIRST_WAIT_S", 0.2)
    replies = count()

    def answer(body: Body) -> Reply:
        return a_dog(body) if next(replies) < n_answers else error(status, "busy")

    started = time.monotonic()
    _, printed = ask_stub(answer, "--give-up", "2", code=5)
    assert time.monotonic() - started < 15
    assert "127.0.0.1 has answered nothing for 2 s: " in printed
    assert f"answers {status} (busy); start the same command again later, or wait" in printed


def test_what_was_answered_before_a_server_is_given_up_is_kept(ask, by_image):
    replies = count()

    def answer(body: Body) -> Reply:
        return a_dog(body) if next(replies) < 5 else error(429, "busy")

    with serving(answer) as stub:
        ask(stub.url, "--give-up", "0.5", code=5)
        stub.answer = a_dog
        stub.requests.clear()
        ask(stub.url)
    assert (len(stub.requests), by_image()) == (N_PHOTOS - 5, DOGS)


def test_a_server_that_is_busy_for_long_is_waited_for(ask_stub, by_image, monkeypatch):
    """It refuses a request more often than while it answers others."""
    monkeypatch.setattr(served, "_LONGEST_GAP_S", 0.05)
    monkeypatch.setattr(served, "LONGEST_WAIT_FOR_LOAD_S", 0.05)
    replies = count()

    def answer(body: Body) -> Reply:
        return error(503, "loading") if next(replies) < 2 * ATTEMPTS_FOR_LOAD else a_dog(body)

    ask_stub(answer, "--batch", "1")
    assert by_image() == DOGS


def test_a_photo_that_is_always_refused_is_left_out_where_others_are_answered(
    ask_stub, by_image, monkeypatch
):
    monkeypatch.setattr(chat_server, "ATTEMPTS_FOR_LOAD", 4)
    refused = threading.Event()

    def answer(body: Body) -> Reply:
        if color_of(body) == 3:
            refused.set()
            return error(503, "busy")
        refused.wait(20)
        return a_dog(body)

    _, printed = ask_stub(answer, "--batch", str(N_PHOTOS))
    assert "1 has no result: 3 (127.0.0.1 answers 503 (busy))" in printed
    assert len(by_image("--no-strict")) == N_PHOTOS - 1


def test_a_wait_longer_than_the_user_waits_ends_the_work(ask_stub):
    busy = error(429, "busy", Retry_After="30")
    _, printed = ask_stub(lambda _: busy, "--give-up", "20", code=5)
    assert "accepts no request for 30 s; start again then, or wait longer with" in printed


def test_a_first_request_that_hangs_up_ends_nothing(ask_stub, by_image):
    requests = count()

    def answer(body: Body) -> Reply:
        if next(requests) < 3:
            raise ConnectionError
        return a_dog(body)

    ask_stub(answer, "--batch", "2")
    assert by_image() == DOGS


def test_photos_behind_a_slow_answer_are_asked_about(ask_stub, by_image):
    """All of them, although nothing before the slow answer is finished."""
    rest, others = threading.Event(), set()

    def answer(body: Body) -> Reply:
        image = color_of(body)
        if not others:
            others.add(image)
            assert rest.wait(30)
        others.add(image)
        if len(others) == N_PHOTOS:
            rest.set()
        return a_dog(body)

    ask_stub(answer, "--batch", "2")
    assert by_image() == DOGS


# --- how fast


class Clock:
    """Time that passes only where it is waited for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(served.time, "monotonic", lambda: self.now)

    async def rest(self, wait_s: float) -> None:
        self.now += max(wait_s, 1e-6)


def requests_per_second(clock: Clock, a_pace: Pace, n: int, outcome: Callable[[int], str]) -> float:
    """Of n requests, one after the other, each of which is answered at once."""
    started = clock.now

    async def send() -> None:
        for number in range(n):
            sent = await a_pace.turn(clock.rest)
            clock.now += 0.01
            if outcome(number) == "busy":
                a_pace.slow_down(sent, 0.0)
            elif outcome(number) == "fine":
                a_pace.speed_up()

    asyncio.run(send())
    return n / (clock.now - started)


def test_one_refusal_in_five_halves_no_pace_for_long(monkeypatch):
    clock, a_pace = Clock(monkeypatch), Pace()
    rate = requests_per_second(clock, a_pace, 5000, lambda n: "busy" if n % 5 == 4 else "fine")
    assert rate > 40  # 100 without refusals


def test_refusals_alone_slow_down_and_answers_bring_the_pace_back_within_seconds(monkeypatch):
    clock, a_pace = Clock(monkeypatch), Pace()
    slow = requests_per_second(clock, a_pace, 20, lambda _: "busy")
    back = clock.now
    requests_per_second(clock, a_pace, 40, lambda _: "fine")
    assert (slow < 0.25, a_pace.gap_s < 0.1, clock.now - back < 30) == (True, True, True)
    assert requests_per_second(clock, a_pace, 100, lambda _: "fine") > 30


def test_a_failure_that_is_not_for_load_slows_nothing_down(ask_stub, by_image, monkeypatch):
    slowed: list[float] = []
    monkeypatch.setattr(Pace, "slow_down", lambda _, started, __: slowed.append(started))
    requests = count()

    def answer(body: Body) -> Reply:
        number = next(requests)
        if number % 5 == 1:
            return error(500, "oops", Retry_After="0.01")
        if number % 5 == 3:
            raise ConnectionError
        return a_dog(body)

    ask_stub(answer, "--batch", "3")
    assert (by_image(), slowed) == (DOGS, [])


def seconds_for(folder: Path, answer: Callable[[Body], Reply]) -> float:
    """The time for all photos of a folder, without the start of the command."""
    paths = sorted(folder.iterdir())
    with (
        serving(answer) as stub,
        ServedCaptioner(ChatServer(stub.url, "qwen"), Decoding(), 8, 20.0) as captioner,
        ThreadPoolExecutor(16) as pool,
    ):
        captioner.start()
        started = time.monotonic()
        captions = list(pool.map(captioner.read, paths))
        assert len(captions) == len(paths)
        return time.monotonic() - started


def test_a_server_that_fails_one_request_in_five_takes_at_most_three_times_as_long(
    tmp_path, monkeypatch
):
    """A second is allowed for a machine with other work."""
    monkeypatch.setattr(served, "FIRST_WAIT_S", 0.25)
    for number in range(100):
        Image.new("RGB", (8, 8), (number, 0, 0)).save(tmp_path / f"{number}.png")

    def slow(_: Body) -> Reply:
        time.sleep(0.08)
        return completion("a dog")

    requests = count()

    def failing(body: Body) -> Reply:
        number = next(requests)
        if number % 5 != 4:
            return slow(body)
        if number % 3 == 0:
            return error(429, "busy", Retry_After="0.2")
        if number % 3 == 1:
            return error(500, "oops")
        raise ConnectionError

    usual = seconds_for(tmp_path, slow)
    assert seconds_for(tmp_path, failing) < 3 * usual + 1
