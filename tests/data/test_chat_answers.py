"""Answers of chat completions: whatever a server writes is read or refused."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bias_pipeline.data.chat_answers import (
    Answer,
    answer_of_row,
    image_of_request,
    request_id,
)
from bias_pipeline.errors import DataError
from tests.data.test_program_outputs import answer, read

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                (
                    "response",
                    "body",
                    "choices",
                    "message",
                    "content",
                    "finish_reason",
                    "error",
                    "code",
                )
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(("response", "error")), VALUES))
def test_any_answer_is_read_or_refused(row):
    with suppress(DataError):
        assert isinstance(answer_of_row("42", row, Path("answers.jsonl"), "line 1"), Answer)


@given(st.from_regex(r"[a-z0-9_]+", fullmatch=True), st.integers(0, 999), st.integers(2, 1000))
def test_a_request_s_id_names_image_and_sample(image, sample, n):
    assert image_of_request(request_id(image, sample, n)) == (image, sample)


@pytest.mark.parametrize(("index", "captions"), [(0, {"7": "a dog"}), (1, {"7": ""})])
def test_a_sample_that_was_refused_is_blank_and_its_neighbour_is_not(tmp_path, index, captions):
    rows = [answer("7#1", None, refusal="no"), answer("7#0", "a dog")]
    file, notes = read(tmp_path, rows, index)
    assert file.captions == captions
    assert "1 of 1 images has no answer (refused 1), such as 7" in notes[0]


FLAGGED = {"error": {"code": "content_filter", "message": "x"}}
BUSY = {"error": {"code": 502, "message": "x"}}
BROKEN = {"choices": [{"message": {"content": "a dog and"}, "finish_reason": "error"}]}
THOUGHT = {"choices": [{"message": {"content": "a cat?</think>a dog"}, "finish_reason": "stop"}]}


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (400, FLAGGED, Answer("42", absent="refused")),
        (400, BUSY, Answer("42", absent="status 400")),
        (200, BUSY, Answer("42", absent="502")),
        (200, BROKEN, Answer("42", absent="failed")),
        (200, THOUGHT, Answer("42", ["a dog"])),
    ],
)
def test_what_a_row_of_a_batch_says(status, body, expected):
    row = {"response": {"status_code": status, "body": body}, "error": None}
    assert answer_of_row("42", row, Path("answers.jsonl"), "line 1") == expected
