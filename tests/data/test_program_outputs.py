"""Odd entries in files of other programs: what lacks is counted, what is wrong is refused."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from bias_pipeline.data.coco_files import CaptionerFile, human_captions, model_captions
from bias_pipeline.data.columns import Layout
from bias_pipeline.errors import DataError
from tests.coco_folder import write_folder
from tests.data.test_parquet_files import load


def read(
    folder: Path, rows: Sequence[Mapping[str, Any]], index: int | None = None
) -> tuple[CaptionerFile, list[str]]:
    """What is read of entries, and the notes on how."""
    path, layout = folder / "mine.jsonl", Layout()
    path.write_text("\n".join(map(json.dumps, rows)))
    return model_captions(path, index, layout), layout.notes()


def answer(image: str, content: object, finish: str = "stop", **message: object) -> dict[str, Any]:
    choice = {"index": 0, "message": {"content": content, **message}, "finish_reason": finish}
    return {"custom_id": image, "response": {"status_code": 200, "body": {"choices": [choice]}}}


def reply(image: str, texts: Sequence[str], reason: str = "end_turn") -> dict[str, Any]:
    """A result of Anthropic's message batches."""
    message = {"content": [{"type": "text", "text": t} for t in texts], "stop_reason": reason}
    return {"custom_id": image, "result": {"type": "succeeded", "message": message}}


def candidate(image: str, text: str = "", reason: str = "STOP") -> dict[str, Any]:
    """A row of a batch of Gemini."""
    content = {"parts": [{"text": text}]} if text else {}
    return {
        "key": image,
        "response": {"candidates": [{"content": content, "finishReason": reason}]},
    }


def response(image: str, part: Mapping[str, str], **body: object) -> dict[str, Any]:
    """An answer of OpenAI's responses in a batch."""
    output = [{"type": "message", "content": [part]}]
    return {
        "custom_id": image,
        "response": {"status_code": 200, "body": {"output": output, **body}},
    }


EXPIRED = {"custom_id": "8", "response": None, "error": {"code": "batch_expired", "message": "x"}}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (answer("8", None, refusal="I can't help with that."), "refused"),
        (answer("8", "", "content_filter"), "content_filter"),
        (answer("8", ""), "empty"),
        (EXPIRED, "batch_expired"),
        ({"custom_id": "8", "response": {"status_code": 429, "body": {}}}, "status 429"),
    ],
)
def test_a_request_without_an_answer_is_counted_with_its_image(tmp_path, row, reason):
    file, notes = read(tmp_path, [row, answer("7", "a dog")])
    assert (file.captions, notes) == (
        {"7": "a dog", "8": ""},
        [f"mine.jsonl: answers of a batch, 1 of 2 images has no answer ({reason} 1), such as 8"],
    )


@pytest.mark.parametrize(
    ("row", "other", "reason"),
    [
        (reply("8", [], "refusal"), reply("7", ["a dog"]), "refused"),
        ({"custom_id": "8", "result": {"type": "expired"}}, reply("7", ["a dog"]), "expired"),
        (candidate("8", reason="SAFETY"), candidate("7", "a dog"), "refused"),
        ({"key": "8", "error": {"code": 13}}, candidate("7", "a dog"), "13"),
        (
            {"key": "8", "response": {"promptFeedback": {"blockReason": "SAFETY"}}},
            candidate("7", "a dog"),
            "refused",
        ),
        (
            response("8", {"type": "refusal", "refusal": "No."}),
            response("7", {"type": "output_text", "text": "a dog"}),
            "refused",
        ),
    ],
)
def test_every_service_s_request_without_an_answer_is_counted(tmp_path, row, other, reason):
    file, notes = read(tmp_path, [other, row])
    assert file.captions == {"7": "a dog", "8": ""}
    assert f"1 of 2 images has no answer ({reason} 1), such as 8" in notes[0]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (reply("8", ["a dog ", "and"], "max_tokens"), "max_tokens"),
        (candidate("8", "a dog and", "MAX_TOKENS"), "MAX_TOKENS"),
        (
            response(
                "8",
                {"type": "output_text", "text": "a dog and"},
                incomplete_details={"reason": "max_output_tokens"},
            ),
            "max_output_tokens",
        ),
    ],
)
def test_every_service_s_answer_that_is_cut_is_read_and_counted(tmp_path, row, reason):
    file, notes = read(tmp_path, [row])
    assert file.captions == {"8": "a dog and"}
    assert f"1 of 1 images has an answer that is cut ({reason} 1), such as 8" in notes[0]


def test_an_answer_that_came_later_replaces_the_failure(tmp_path):
    file, notes = read(tmp_path, [EXPIRED, answer("8", "a dog")])
    assert (file.captions, notes) == ({"8": "a dog"}, ["mine.jsonl: answers of a batch"])


def test_an_answer_that_is_cut_is_read_and_counted(tmp_path):
    file, notes = read(tmp_path, [answer("8", "a dog and a", "length")])
    assert file.captions == {"8": "a dog and a"}
    assert "1 of 1 images has an answer that is cut (length 1), such as 8" in notes[0]


def test_an_answer_in_parts_is_joined(tmp_path):
    parts = [{"type": "text", "text": "a "}, {"type": "text", "text": "dog"}]
    assert read(tmp_path, [answer("8", parts)])[0].captions == {"8": "a dog"}


def test_several_choices_are_several_captions(tmp_path):
    row = answer("8", "a dog")
    row["response"]["body"]["choices"] += answer("8", "a cat")["response"]["body"]["choices"]
    file, _ = read(tmp_path, [row], index=1)
    assert (file.captions, file.unused) == ({"8": "a cat"}, 1)


def sample(image: int | None = 7, responses: object = "a dog", **metric: object) -> dict[str, Any]:
    values = {"image_id": image, "pred": "a dog", **metric}
    return {"doc_id": 0, "filtered_resps": responses, **({"coco_CIDEr": values} if image else {})}


def test_objects_in_samples_are_neither_captions_nor_people_s(tmp_path):
    row = sample(pred=["dog", "person"], answer=["dog", "kite"])
    file, _ = read(tmp_path, [row])
    assert (file.captions, file.human) == ({"7": "a dog"}, {})


def test_samples_without_people_s_captions_are_none_of_people(tmp_path):
    path = tmp_path / "people.jsonl"
    path.write_text(json.dumps(sample(pred=["dog"], answer=["dog"])))
    with pytest.raises(DataError, match="has no human captions in 'answer'"):
        human_captions(path)


def test_two_samples_of_an_image_have_people_s_captions_once(tmp_path):
    path = tmp_path / "people.jsonl"
    path.write_text(2 * (json.dumps(sample(answer=["a dog", "a pup"])) + "\n"))
    assert human_captions(path)[0] == {"7": ("a dog", "a pup")}


def test_a_reason_is_cut_in_the_note(tmp_path):
    _, notes = read(tmp_path, [{**EXPIRED, "error": {"code": "x" * 1000}}])
    assert len(notes[0]) < 150


def test_several_responses_are_several_captions(tmp_path):
    file, _ = read(tmp_path, [sample(responses=[["a dog", "a cat"]])], index=1)
    assert file.captions == {"7": "a cat"}


def test_a_sample_without_a_response_is_counted(tmp_path):
    file, notes = read(tmp_path, [sample(responses=[])])
    assert file.captions == {"7": ""}
    assert "1 of 1 images has no answer (empty 1), such as 7" in notes[0]


def turns(*texts: str) -> list[dict[str, str]]:
    return [{"from": ("human", "gpt")[k % 2], "value": text} for k, text in enumerate(texts)]


def test_conversations_without_a_picture_are_counted(tmp_path):
    rows = [
        {"id": "a", "image": "train2017/000000000007.jpg", "conversations": turns("?", "a dog")},
        {"id": "b", "conversations": turns("Hello", "Hi")},
    ]
    file, notes = read(tmp_path, rows)
    assert list(file.captions.values()) == ["a dog"]
    assert notes == ["mine.jsonl: conversations of LLaVA, 1 conversation without a picture"]


@pytest.mark.parametrize(
    "row",
    [
        {
            "image_id": 7,
            "caption": "a dog",
            "messages": [{"role": "assistant", "content": "a cat"}],
        },
        {"image_id": 7, "caption": {"caption": "a dog", "tokens": ["a", "dog"]}},
        {"image_id": 7, "caption": {"raw": ["a dog"], "tokens": ["a"], "sentid": [1]}},
    ],
    ids=["beside a chat", "beside tokens", "in a list beside tokens"],
)
def test_a_caption_is_believed_before_what_stands_beside_it(tmp_path, row):
    assert read(tmp_path, [row])[0].captions == {"7": "a dog"}


@pytest.mark.parametrize("names", [("key", "response"), ("custom_id", "result")])
def test_a_table_with_the_names_of_a_batch_is_read_by_its_columns(tmp_path, names):
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps(dict(zip(names, ("7", "a dog"), strict=True))))
    layout = Layout(id_column=names[0], caption_column=names[1])
    assert model_captions(path, None, layout).captions == {"7": "a dog"}


def test_a_comment_beside_a_human_caption_is_no_caption(tmp_path):
    path = tmp_path / "people.jsonl"
    path.write_text(json.dumps({"image_id": 7, "caption": "a dog", "comment": "hard to see"}))
    assert human_captions(path)[0] == {"7": ("a dog",)}


OTHER_SHAPE = {"custom_id": "8", "response": {"status_code": 200, "body": {"outputs": []}}}
A_TEXT = [answer("7", "a dog"), {"custom_id": "8", "response": "a cat"}]
NO_ID = {**sample(None), "doc": {"id": 3, "image": "<PIL image>"}}
NO_ANSWER = {"image": "7.jpg", "conversations": turns("?")}
TWO_PICTURES = {"image": ["7.jpg", "8.jpg"], "conversations": turns("?", "a dog")}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([OTHER_SHAPE], r"mine\.jsonl: line 1: response\.body\.choices must be a"),
        (A_TEXT, "line 2: response must be an object, found a string"),
        ([NO_ID], r"line 1: no image id.*--id-column COLUMN"),
        ([sample(responses=[[-3.5, 0.0]])], "'filtered_resps' must be a string, found a number"),
        ([NO_ANSWER], "'conversations' has no turn of 'gpt'"),
        ([TWO_PICTURES], "'image' names 2 pictures instead of one"),
    ],
)
def test_an_entry_of_another_shape_is_refused_with_its_line(tmp_path, rows, message):
    with pytest.raises(DataError, match=message):
        read(tmp_path, rows)


def sheet_row(**more: object) -> dict[str, Any]:
    return {
        "index": 0,
        "image_path": "['a/7.jpg']",
        "image": "/9j/4AAQ",
        "question": "Describe it.",
        "answer": "['a dog', \"a man's dog\"]",
        "prediction": "a dog",
        **more,
    }


def test_a_sheet_has_paths_and_people_s_captions_as_lists(tmp_path):
    file, _ = read(tmp_path, [sheet_row()])
    assert (file.captions, file.human) == (
        {"a/7.jpg": "a dog"},
        {"a/7.jpg": ("a dog", "a man's dog")},
    )


def test_a_sheet_s_failures_are_counted(tmp_path):
    file, notes = read(tmp_path, [sheet_row(prediction="Failed to obtain answer via API.")])
    assert file.captions == {"a/7.jpg": ""}
    assert "1 of 1 images has no answer (failed 1), such as a/7.jpg" in notes[0]


def test_a_column_that_the_user_names_wins(tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps({**sample(), "image_id": 9, "target": "a cat"}))
    assert model_captions(path, layout=Layout(caption_column="target")).captions == {"9": "a cat"}


def test_an_answer_that_is_not_there_is_a_blank(tmp_path):
    rows = [answer(str(100 + i), "a dog" if i else None) for i in range(60)]
    lines = "\n".join(map(json.dumps, rows)).encode()
    root = write_folder(tmp_path, {"captioners/batch.jsonl": lines})
    assert load(root, "captioner=batch").blanks["model"] == 1
