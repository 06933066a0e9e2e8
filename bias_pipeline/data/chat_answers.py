"""Reads answers of services: chat completions, and the forms of OpenAI, Anthropic and Gemini."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bias_pipeline.io.json_files import expect
from bias_pipeline.text.scored_text import after_thoughts

REFUSALS = ("content_filter", "content_policy_violation")  # codes of errors with status 400
REFUSED, FAILED = "refused", "failed"  # why there is no caption: by the model, by the service
# Why an answer is not whole, in the words of the services
_CUT = ("length", "content_filter", "max_tokens", "max_output_tokens", "refusal", "MAX_TOKENS")
_BLOCKED = ("refusal", "SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "IMAGE_SAFETY")
_BROKEN_OFF = ("error", "abort")  # finish_reason of an answer that the service did not finish
_NUMBERED = re.compile(r"(.+)#(\d{1,9})", re.DOTALL)


@dataclass(frozen=True)
class Answer:
    """What a program wrote about one image."""

    image: Any  # the image's id as it is written
    captions: Sequence[str] = ()  # the model's captions
    human: Sequence[str] = ()  # human captions that the file has beside the model's
    absent: str = ""  # why there is no caption; empty if there is a caption
    cut: str = ""  # why the caption is not whole; empty if it is whole
    # The number of this caption among several of the image, from 0; None if not numbered
    sample: int | None = None


def request_id(image: str, sample: int, n: int) -> str:
    """The ``custom_id`` of a request in a batch.

    Example:
        >>> request_id("42", 0, 1), request_id("42", 1, 5)
        ('42', '42#1')
    """
    return image if n == 1 else f"{image}#{sample}"


def image_of_request(custom_id: Any) -> tuple[Any, int | None]:
    """The image and the sample of a ``custom_id``; the sample is None if it has no number.

    Example:
        >>> image_of_request("42#1"), image_of_request("42"), image_of_request(7)
        (('42', 1), ('42', None), (7, None))
    """
    match = _NUMBERED.fullmatch(custom_id) if isinstance(custom_id, str) else None
    return (match[1], int(match[2])) if match else (custom_id, None)


def answer_of_row(image: Any, row: Mapping[str, Any], path: Path, where: str) -> Answer:
    """The answer in one row of a batch's results."""
    written, error = row.get("response"), row.get("error")
    if error or written is None:
        return Answer(image, absent=_code_of(error))
    response: Mapping[str, Any] = expect(written, dict, path, f"{where}: response")
    status, body = response.get("status_code", 200), response.get("body")
    if status == 200:
        return answer_of_body(image, body, path, f"{where}: response.body")
    refused = isinstance(body, Mapping) and _code_of(body.get("error")) in REFUSALS
    return Answer(image, absent=REFUSED if refused else f"status {status}")


def answer_of_body(image: Any, body: Any, path: Path, where: str) -> Answer:
    """The answer in the body of a response.

    Example:
        >>> choice = {"message": {"content": "a dog and"}, "finish_reason": "length"}
        >>> answer = answer_of_body("42", {"choices": [choice]}, Path("x.jsonl"), "body")
        >>> answer.captions, answer.cut
        (['a dog and'], 'length')
    """
    fields: Mapping[str, Any] = expect(body, dict, path, where)
    # Routers send errors in this form with status 200
    if fields.get("error") and not fields.get("choices"):
        return Answer(image, absent=_code_of(fields["error"]))
    if "output" in fields and "choices" not in fields:
        return _response(image, fields, path, where)
    choices: list[Any] = expect(fields.get("choices"), list, path, f"{where}.choices")
    return _all_captions(
        image,
        [_choice(image, choice, path, f"{where}.choices[{k}]") for k, choice in enumerate(choices)],
    )


def _all_captions(image: Any, answers: Sequence[Answer]) -> Answer:
    whole = [answer for answer in answers if not answer.absent]
    if not whole:
        return answers[0] if answers else Answer(image, absent="empty")
    texts = [text for answer in whole for text in answer.captions]
    return Answer(image, texts, cut=next((a.cut for a in whole if a.cut), ""))


def _response(image: Any, body: Mapping[str, Any], path: Path, where: str) -> Answer:
    """The answer of OpenAI's responses: the text of the messages, without the reasoning."""
    items: list[Any] = expect(body["output"], list, path, f"{where}.output")
    messages = [i for i in items if isinstance(i, Mapping) and i.get("type") == "message"]
    parts = [part for message in messages for part in message.get("content") or ()]
    refused = any(isinstance(part, Mapping) and part.get("type") == "refusal" for part in parts)
    details = body.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    return _answer(image, text_of_parts(parts), "refusal" if refused else reason)


def answer_of_message(image: Any, result: Any, path: Path, where: str) -> Answer:
    """The answer in a result of Anthropic's message batches.

    Example:
        >>> message = {"content": [{"type": "text", "text": "a dog"}], "stop_reason": "end_turn"}
        >>> result = {"type": "succeeded", "message": message}
        >>> answer_of_message("42", result, Path("x.jsonl"), "result").captions
        ['a dog']
    """
    fields: Mapping[str, Any] = expect(result, dict, path, where)
    if fields.get("type") != "succeeded":
        return Answer(image, absent=str(fields.get("type") or FAILED))
    message: Mapping[str, Any] = expect(fields.get("message"), dict, path, f"{where}.message")
    parts: list[Any] = expect(message.get("content"), list, path, f"{where}.message.content")
    return _answer(image, text_of_parts(parts), message.get("stop_reason"))


def answer_of_candidates(image: Any, row: Mapping[str, Any], path: Path, where: str) -> Answer:
    """The answer in one row of a batch of Gemini.

    Example:
        >>> parts = [{"text": "A person?", "thought": True}, {"text": "a dog"}]
        >>> row = {"response": {"candidates": [{"content": {"parts": parts}}]}}
        >>> answer_of_candidates("42", row, Path("x.jsonl"), "line 1").captions
        ['a dog']
    """
    if row.get("error") or row.get("response") is None:
        return Answer(image, absent=_code_of(row.get("error")))
    response: Mapping[str, Any] = expect(row["response"], dict, path, f"{where}: response")
    if not response.get("candidates"):
        return Answer(image, absent=REFUSED if response.get("promptFeedback") else "empty")
    at = f"{where}: response.candidates"
    candidates: list[Any] = expect(response["candidates"], list, path, at)
    answers = []
    for k, candidate in enumerate(candidates):
        fields: Mapping[str, Any] = expect(candidate, dict, path, f"{at}[{k}]")
        content: Mapping[str, Any] = expect(
            fields.get("content") or {}, dict, path, f"{at}[{k}].content"
        )
        answers.append(
            _answer(image, text_of_parts(content.get("parts") or ()), fields.get("finishReason"))
        )
    return _all_captions(image, answers)


def text_of_parts(parts: Sequence[Any]) -> str:
    """The text of an answer's parts, without thoughts."""
    texts = [p.get("text") for p in parts if isinstance(p, Mapping) and not p.get("thought")]
    return "".join(text for text in texts if isinstance(text, str))


def _answer(image: Any, content: str, reason: Any) -> Answer:
    """The answer with its text, which may be empty, and the reason why the text ended."""
    cut = str(reason) if reason in _CUT else ""
    caption = after_thoughts(content)
    if caption:
        return Answer(image, [caption], cut=cut)
    return Answer(image, absent=REFUSED if reason in _BLOCKED else cut or "empty")


def _code_of(error: Any) -> str:
    """The code of a service's error, or ``failed``."""
    return str(error.get("code") or FAILED) if isinstance(error, Mapping) else FAILED


def _choice(image: Any, choice: Any, path: Path, where: str) -> Answer:
    fields: Mapping[str, Any] = expect(choice, dict, path, where)
    if fields.get("finish_reason") in _BROKEN_OFF:
        return Answer(image, absent=FAILED)
    message: Mapping[str, Any] = expect(fields.get("message"), dict, path, f"{where}.message")
    content, reason = message.get("content"), fields.get("finish_reason")
    if isinstance(content, list):
        content = text_of_parts(content)
    if content is not None:
        expect(content, str, path, f"{where}.message.content")
    refused = message.get("refusal") and reason not in _CUT
    return _answer(image, content or "", "refusal" if refused and not content else reason)
