"""``caption --server``: each photo has its caption, however busy the server is."""

import re
import threading
import time
from collections import Counter
from email.utils import formatdate
from pathlib import Path

import pytest
from PIL import Image

from bias_pipeline.data.coco_files import model_captions
from bias_pipeline.models.sampling import Decoding
from bias_pipeline.pictures.captioners import chat_server
from bias_pipeline.pictures.captioners.chat_server import ChatServer
from bias_pipeline.pictures.captioners.served import ServedBar, ServedCaptioner
from tests.chat_stub import Body, Reply, color_of, completion, error, picture_of, serving
from tests.cli.server.dogs import DOGS, N_PHOTOS, a_dog, unhelpful

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


def test_draws_have_seeds_of_their_own(ask_stub, gather):
    draws = ("--n", "3", "--temperature", "0.5", "--seed", "7")
    ask_stub(lambda body: completion(f"seed {body['seed']}"), *draws)
    rows = gather()
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


FLAGGED = Reply({"error": {"code": 403, "message": "x", "metadata": {"reasons": ["sexual"]}}}, 403)


@pytest.mark.parametrize(
    ("reply", "text", "note", "kind"),
    [
        (completion("a dog and a", "length"), "a dog and a", "length", "cut (length)"),
        (completion(None, refusal="I can't"), "", "refused", "empty (refused)"),
        (completion(""), "", "empty", "empty (empty)"),
        (completion("<think>a man?", "length"), "", "length", "empty (length)"),
        (completion("", "length", reasoning_content="a man?"), "", "length", "empty (length)"),
        (FLAGGED, "", "refused", "empty (refused)"),
        (completion(None, "content_filter"), "", "content_filter", "empty (content_filter)"),
        (error(400, "no people", "content_filter"), "", "refused", "empty (refused)"),
    ],
)
def test_what_is_no_whole_caption_is_counted_with_its_image(
    ask_stub, ok, gather, reply, text, note, kind
):
    _, printed = ask_stub(unhelpful(reply))
    assert f"2 captions are {kind}, such as of image 3, 4" in printed
    assert f"2 noted as '{note}'" in ok("caption", "--gather", "out")
    notes = {row["image_id"]: (row["caption"], row.get("note")) for row in gather()}
    assert (notes[3], notes[4], notes[5]) == ((text, note), (text, note), ("dog 5", None))


def test_a_gathered_file_with_notes_is_read(ask_stub, gather):
    ask_stub(unhelpful(completion("a dog and", "length")))
    gather()
    assert model_captions(Path("out", "captions.json")).captions["3"] == "a dog and"


def test_a_caption_is_what_comes_after_the_thoughts(ask_stub, by_image):
    ask_stub(unhelpful(completion("Is it a cat?\n</think>\n\na dog")))
    assert by_image()[3] == "a dog"


BUSY = Reply({"error": {"code": 502, "message": "Provider returned error"}})
HALF = Reply('{"choices": [{"mess')
BROKEN = completion("a dog and", "error")
ELSEWHERE = Reply({"error": "Unexpected endpoint or method"})  # a wrong address at LM Studio


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (BUSY, "127.0.0.1 answers 502 (Provider returned error)"),
        (HALF, "127.0.0.1 sent half an answer, or an answer that is not JSON"),
        (BROKEN, "127.0.0.1 broke an answer off"),
        (ELSEWHERE, "127.0.0.1 refuses the request (200: Unexpected endpoint or method)"),
    ],
)
def test_an_answer_that_is_an_error_is_no_caption_and_asked_again(
    ask_stub, by_image, monkeypatch, reply, reason
):
    monkeypatch.setattr(chat_server, "ATTEMPTS", 1)
    _, printed = ask_stub(unhelpful(reply))
    assert f"2 have no result: 3, 4 ({reason})" in printed
    ask_stub(a_dog)
    assert by_image() == DOGS


def test_where_all_captions_are_empty_it_is_said_why(ask_stub):
    _, printed = ask_stub(lambda _: completion("", "length", reasoning="a man?"), code=3)
    assert f"{N_PHOTOS} captions are empty (length), such as of image 1" in printed
    assert "thinks for longer than --max-new-tokens" in printed


def test_half_a_character_is_a_sign(ask_stub, by_image):
    ask_stub(unhelpful(completion("a dog \ud83d")))
    assert by_image()[3] == "a dog ?"


def test_a_server_that_never_captions_ends_the_work(ask_stub):
    stub, printed = ask_stub(lambda _: Reply({"output": "a dog"}), "--batch", "2", code=5)
    assert "requests in a row have no answer: 127.0.0.1 answers in another" in printed
    assert len(set(map(color_of, stub.requests))) < N_PHOTOS


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


@pytest.mark.parametrize(
    "wait", [lambda: "0.4", lambda: formatdate(time.time() + 1.5, usegmt=True)], ids=("s", "date")
)
def test_a_server_is_left_alone_as_long_as_it_wants(ask_stub, wait):
    times: list[float] = []

    def answer(body: Body) -> Reply:
        times.append(time.monotonic())
        return error(429, "wait", Retry_After=wait()) if len(times) == 1 else a_dog(body)

    ask_stub(answer, "--batch", "1", "--limit", "2")
    assert times[1] - times[0] > 0.35


@pytest.mark.parametrize(
    "wait", ["soon", "Fri, 99 Dec 2100", "-5", "Fri, 01 Jan 1999 00:00:00 GMT"]
)
def test_a_wait_that_is_none_is_not_waited_for(ask_stub, by_image, wait):
    tries: Counter[int] = Counter()

    def answer(body: Body) -> Reply:
        tries[color_of(body)] += 1
        first = tries[color_of(body)] == 1
        return error(503, "busy", Retry_After=wait) if first else a_dog(body)

    ask_stub(answer, "--limit", "4", "--give-up", "20")
    assert by_image("--no-strict") == {n: f"dog {n}" for n in range(1, 5)}


# --- what is shown on the way


def test_the_bar_shows_captions_a_second_and_tokens():
    with ServedCaptioner(ChatServer("http://127.0.0.1/v1", "m"), Decoding(), 2, 5) as captioner:
        captioner.start()
        captioner.n_captions, captioner.tokens_in = 3, 1200
        shown = ServedBar(captioner).place()
    assert re.fullmatch(r"3 captions, \d+\.\d captions/s, 1,200 tokens", shown)
