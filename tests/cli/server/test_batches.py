"""``caption --server --to-batch``: requests go out as a file, and answers come back as one."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bias_pipeline.data.coco_files import model_captions
from bias_pipeline.errors import UsageError
from bias_pipeline.pictures.captioners.batch_files import check_ids
from tests.chat_stub import Body, Reply, completion, error
from tests.cli.server.dogs import DOGS, N_PHOTOS, URL, a_dog, unhelpful


def answer_batch(requests: Path, out: Path, answer: Callable[[Body], Reply]) -> None:
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
    answer_batch(Path("ask.jsonl"), Path("answers.jsonl"), a_dog)
    ask(URL, "--from-batch", "answers.jsonl")
    assert by_image() == DOGS


def test_a_photo_that_cannot_be_read_goes_into_no_batch(ask, photos, tmp_path):
    shutil.copytree(photos, mixed := tmp_path / "mixed")
    (mixed / "99.png").write_bytes(b"no picture")
    printed = ask(URL, "--to-batch", "ask.jsonl", folder=mixed)
    assert f"ask.jsonl: {N_PHOTOS} requests" in printed
    assert "1 cannot be read: 99 (not a picture" in printed


def test_what_a_batch_left_out_is_asked_again(ask, by_image):
    ask(URL, "--to-batch", "ask.jsonl")
    answer_batch(Path("ask.jsonl"), Path("answers.jsonl"), unhelpful(error(500, "x")))
    printed = ask(URL, "--from-batch", "answers.jsonl")
    assert "2 have no result: 3, 4 (status 500)" in printed
    assert "again.jsonl: 2 requests" in ask(URL, "--to-batch", "again.jsonl")
    answer_batch(Path("again.jsonl"), Path("more.jsonl"), a_dog)
    ask(URL, "--from-batch", "more.jsonl")
    assert by_image() == DOGS


def test_ids_are_those_of_the_photos_however_they_are_written(ask, by_image):
    ask(URL, "--to-batch", "ask.jsonl")
    answer_batch(Path("ask.jsonl"), Path("answers.jsonl"), a_dog)
    lines = [json.loads(line) for line in Path("answers.jsonl").read_text().splitlines()]
    forms = ("{}", "{:012}", "{:012}.png", "COCO_val2014_{:012}.jpg", "photos/{}.png")
    for number, line in enumerate(lines):
        form = forms[number % len(forms)]
        line["custom_id"] = form.format(int(line["custom_id"]))
    Path("answers.jsonl").write_text("\n".join(map(json.dumps, lines)))
    printed = ask(URL, "--from-batch", "answers.jsonl")
    assert "not among the photos" not in printed
    assert by_image() == DOGS


@pytest.mark.parametrize("written", [None, "", [], 1.5])
def test_an_id_that_is_none_is_refused_with_its_line(ask, written):
    Path("answers.jsonl").write_text(json.dumps({"custom_id": written, "response": None}))
    assert "answers.jsonl, line 1: 'custom_id': " in ask(
        URL, "--from-batch", "answers.jsonl", code=3
    )


@pytest.mark.parametrize("body", [None, [], {"choices": [None]}, {"output": "a dog"}])
def test_one_answer_of_another_shape_does_not_lose_the_others(ask, ends, by_image, body):
    ask(URL, "--to-batch", "ask.jsonl")
    answer_batch(Path("ask.jsonl"), Path("answers.jsonl"), unhelpful(Reply(body)))
    printed = ask(URL, "--from-batch", "answers.jsonl")
    assert "2 have no result: 3, 4 (an answer in another shape than chat completions)" in printed
    assert "2 unanswered: 3, 4" in ends(5, "caption", "--gather", "out")
    assert len(by_image("--no-strict")) == N_PHOTOS - 2


def test_a_batch_of_which_every_answer_failed_is_an_error(ask, ends):
    ask(URL, "--to-batch", "ask.jsonl")
    answer_batch(Path("ask.jsonl"), Path("answers.jsonl"), lambda _: error(500, "x"))
    printed = ask(URL, "--from-batch", "answers.jsonl", code=5)
    assert "error: answers.jsonl: no answer is a caption: " in printed
    assert " (status 500), and 9 more" in printed
    assert f"{N_PHOTOS} unanswered" in ends(5, "caption", "--gather", "out")


def test_several_captions_in_a_batch_are_numbered_as_they_are_read(ask, gather):
    """The same by ``--from-batch`` and by whoever reads the answers as a captioner's file."""
    draws = ("--n", "2", "--temperature", "1")
    ask(URL, "--to-batch", "ask.jsonl", *draws)
    answer_batch(
        Path("ask.jsonl"), Path("answers.jsonl"), lambda b: completion(f"seed {b['seed']}")
    )
    ask(URL, "--from-batch", "answers.jsonl", *draws)
    samples = {(row["sample"], row["caption"]) for row in gather()}
    assert samples == {(0, "seed 0"), (1, "seed 1")}
    for sample in (0, 1):
        read = model_captions(Path("answers.jsonl"), sample).captions
        assert (set(read.values()), len(read)) == ({f"seed {sample}"}, N_PHOTOS)


def test_two_different_answers_about_a_photo_are_named(ask, by_image):
    ask(URL, "--to-batch", "ask.jsonl")
    answer_batch(Path("ask.jsonl"), Path("answers.jsonl"), a_dog)
    answer_batch(Path("ask.jsonl"), Path("more.jsonl"), unhelpful(completion("a cat")))
    printed = ask(URL, "--from-batch", "answers.jsonl", "more.jsonl")
    assert "2 images have two different answers; " in printed
    assert by_image() == DOGS


def test_large_batches_are_several_files(ask, monkeypatch):
    monkeypatch.setattr("bias_pipeline.pictures.captioners.batch_files.MOST_REQUESTS", 6)
    printed = ask(URL, "--to-batch", "ask.jsonl")
    assert "ask.jsonl: 6 requests\nask_2.jsonl: 6 requests\nask_3.jsonl: 2 requests" in printed


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            '{"custom_id": "9001", "response": null}',
            "no answer is about a photo; they are about 9001",
        ),
        ('{"custom_id": "1", "respo', "answers.jsonl: line"),
    ],
)
def test_a_file_of_answers_that_does_not_fit_is_refused(ask, content, message):
    Path("answers.jsonl").write_text(content)
    printed = ask(URL, "--from-batch", "answers.jsonl", code=3)
    assert (printed.count("\n"), message in printed) == (1, True), printed


def test_an_id_that_ends_as_a_request_does_is_refused():
    with pytest.raises(UsageError, match="image 7#1: its id ends like a request"):
        check_ids(["7", "7#1"])
