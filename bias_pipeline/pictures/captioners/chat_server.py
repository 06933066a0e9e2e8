"""Talks to a server of chat completions: asks about photos, handles answers and failures.

Answers become captions, with notes on incomplete answers. After a failure, the request is sent
again, or the photo is left out, or the work ends.
"""

from __future__ import annotations

import base64
import ipaddress
import os
import ssl
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from email.utils import parsedate_to_datetime
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from bias_pipeline.corpus.image_ids import first_ids
from bias_pipeline.data.chat_answers import REFUSALS, REFUSED, Answer
from bias_pipeline.data.image_masking import PhotoReader
from bias_pipeline.data.photos import NO_METADATA, UnreadableError, read_photo
from bias_pipeline.errors import BiasPipelineError, ResourceError, UsageError, inflect
from bias_pipeline.io.terminal import redact
from bias_pipeline.models.sampling import Decoding
from bias_pipeline.pictures.captioners.bounded_client import UnfitAnswerError

KEY = "OPENAI_API_KEY"  # the environment variable that holds the key
VERSION = 1  # raise it whenever another picture or question is sent
_QUALITY, _LONGEST_OF_JPEG = 95, 65_500


@dataclass(frozen=True)
class ChatServer:
    """A server and one of its models.

    Example:
        >>> server = ChatServer("http://127.0.0.1:8000/v1", "qwen")
        >>> server.host, server.is_here
        ('127.0.0.1', True)
    """

    url: str  # the address of the API, such as `http://localhost:8000/v1`
    model: str  # the model's name at the server
    # The longest side in pixels; larger photos are shrunk. None: photos are sent in full size.
    longest_side: int | None = None
    read: PhotoReader = read_photo  # how photos are read

    def __post_init__(self) -> None:
        usage = UsageError(
            "--server takes an address such as http://localhost:8000/v1 or https://api.example.org/v1"
        )
        try:
            parts = urlsplit(self.url)
            _ = parts.port
        except ValueError as error:
            raise usage from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise usage
        if parts.username or parts.password or parts.query or parts.fragment:
            raise UsageError(
                f"--server: the address of {parts.hostname} must hold no user, password or query; "
                f"the key comes from the environment ({KEY})"
            )

    @property
    def host(self) -> str:
        """The name of the server's machine, which identifies runs because ports change."""
        return urlsplit(self.url).hostname or ""

    @property
    def is_here(self) -> bool:
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def settings(self) -> dict[str, object]:
        """The settings that decide the captions, without the decoding."""
        return {
            "request": VERSION,
            "server": "localhost" if self.is_here else self.host,
            "model": self.model,
            "longest_side": self.longest_side,
        }

    def upload_notice(self, *, has_key: bool) -> str | None:
        """A notice that photos leave this machine, or None if photos stay."""
        if self.is_here:
            return None
        open_to_all = "" if self.url.startswith("https:") else ", without encryption"
        key = f", with the key in {KEY}" if has_key else ""
        return f"photos leave this machine: they are sent to {self.host}{open_to_all}{key}"

    def question(self, picture: str, decoding: Decoding, sample: int) -> dict[str, Any]:
        """The body of a request, without the limit on the caption's length."""
        content = [
            {"type": "image_url", "image_url": {"url": picture}},
            {"type": "text", "text": decoding.prompt},
        ]
        return {
            "model": self.model,
            "messages": [{"role": "user", "content": content}],
            "temperature": decoding.temperature,
            **({"seed": decoding.seed + sample} if decoding.temperature else {}),
        }

    def picture(self, path: Path) -> str:
        """A photo as a data URL: an upright JPEG of high quality, without metadata."""
        photo = self.read(path)
        longest = min(self.longest_side or _LONGEST_OF_JPEG, _LONGEST_OF_JPEG)
        photo.thumbnail((longest, longest))
        content = BytesIO()
        photo.save(content, "JPEG", quality=_QUALITY, subsampling=0, **NO_METADATA)
        return f"data:image/jpeg;base64,{base64.b64encode(content.getvalue()).decode()}"


# Why the model gave no caption, though the service worked; the photo is not sent again.
_OF_MODEL = (REFUSED, "empty", "length", "content_filter")


class AnsweredCaptions(list[str]):
    # For each caption, why it is empty or cut ("" if whole); None if all captions are whole
    notes: list[str] | None = None


class AnswerCounts:
    """Collects incomplete answers and their images; several threads may use it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._images: dict[str, list[str]] = {}

    def captions(self, image: str, answers: Sequence[Answer]) -> AnsweredCaptions:
        """The captions of a photo; a caption is empty if the model gave none."""
        failed = [a.absent for a in answers if a.absent and a.absent not in _OF_MODEL]
        if failed:
            raise UnreadableError(failed[0], lasting=False)
        captions = AnsweredCaptions(_plain_text(" ".join(answer.captions)) for answer in answers)
        notes = [answer.cut or answer.absent for answer in answers]
        if any(notes):
            captions.notes = notes
        with self._lock:
            for answer in answers:
                kind = f"empty ({answer.absent})" if answer.absent else f"cut ({answer.cut})"
                if answer.absent or answer.cut:
                    self._images.setdefault(kind, []).append(image)
        return captions

    def sentences(self) -> list[str]:
        """Sentences that say how many captions are empty or cut, and why.

        Example:
            >>> counts = AnswerCounts()
            >>> _ = counts.captions("42", [Answer("42", ["a dog and"], cut="length")])
            >>> counts.sentences()
            ['1 caption is cut (length), such as of image 42']
        """
        return [
            f"{inflect(len(images), 'captions are')} {kind}, such as of image {first_ids(images)}"
            for kind, images in sorted(self._images.items())
        ]


def _plain_text(text: str) -> str:
    r"""A text without keys, without half characters, and without blanks at its ends.

    Example:
        >>> _plain_text(" a dog \ud83d ")
        'a dog ?'
    """
    return redact(text.encode("utf-8", "replace").decode().strip())


_SHOWN = 160  # characters of a server's message
_HANGS_UP = ("ReadError", "RemoteProtocolError", "WriteError")  # errors of the client's library
# How llama.cpp, vLLM and routers say, with any status, that a model takes no pictures. (That a
# server does not support a type of image is something else.)
_NO_PICTURES = (
    "mmproj", "image input is not supported", "is not a multimodal model", "at most 0 image",
    "not support images", "support image input", "not support vision",
)  # fmt: skip
_LATER = (408, 409, 425, 429)
_MODERATED, _TOO_LARGE = 403, 413
_NO_SUCH_PLACE = (404, 405)
FOR_LOAD = (429, 503)  # the status with which an overloaded server answers
# How often a request is sent: in general (about a minute of waiting); after refusals for load, as a
# server may refuse one request while it answers others; without an answer (three times --timeout);
# after a broken answer
ATTEMPTS, ATTEMPTS_FOR_LOAD, ATTEMPTS_IN_SILENCE, ATTEMPTS_AT_ANSWER = 9, 20, 3, 3


@dataclass(frozen=True)
class Fault:
    words: str  # the fault, as part of a sentence
    # The error that ends the work; None if only this request failed
    ends: BiasPipelineError | None = None
    attempts: int = 1  # how often to send the request, in all
    absent: bool = False  # whether no server is there
    silent: bool = False  # whether no answer came: no server, or the answer took too long
    status: int = 0  # the status of the answer, 0 if there was no answer
    wait_s: float = 0.0  # how long the server wants no request
    refused: bool = False  # whether the model declined the photo
    names_length: bool = False  # whether the server wants `max_completion_tokens`
    doubts: bool = False  # whether the address or the model may be unknown


def server_fault(error: BaseException, server: ChatServer, timeout_s: float) -> Fault:
    import openai

    if any(type(cause).__name__ == "ConnectTimeout" for cause in _causes(error)):
        return _absent("it accepts no connection", server)
    if isinstance(error, TimeoutError | openai.APITimeoutError):
        words = (
            f"{server.host} did not answer within {timeout_s:g} s; allow it more with --timeout, "
            "or ask less at once with --batch"
        )
        return Fault(words, attempts=ATTEMPTS_IN_SILENCE, silent=True)
    if isinstance(error, openai.APIStatusError):
        return _of_response(error.response, error.status_code, server)
    causes = _causes(error)
    for cause in causes:
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError):
            reason = getattr(cause, "verify_message", "") or cause.reason or str(cause)
            words = (
                f"the certificate of {server.host} does not fit ({reason}); use the host name "
                "for which it was made, or name its authority's file in SSL_CERT_FILE"
            )
            return Fault(words, ResourceError(words))
        if isinstance(cause, UnfitAnswerError):
            return broken_answer(server, str(cause))
    if any(type(cause).__name__ in _HANGS_UP for cause in causes):
        return Fault(f"{server.host} hung up before its answer was whole", attempts=ATTEMPTS)
    return _absent(str(causes[-1]) or type(error).__name__, server)


def broken_answer(server: ChatServer, fault: str) -> Fault:
    """The fault in an answer that has status 200 but reports an error and no text on the photo."""
    return Fault(f"{server.host} {fault}", attempts=ATTEMPTS_AT_ANSWER, status=200)


def _absent(reason: str, server: ChatServer) -> Fault:
    words = (
        f"no server answers at {server.url} ({redact(reason)[:_SHOWN]}); start it, or correct "
        "--server; what is finished stays"
    )
    return Fault(words, attempts=ATTEMPTS, absent=True, silent=True)


def not_chat(server: ChatServer) -> UsageError:
    return UsageError(
        f"{server.url} answers with a web page, not with chat completions; name the address of "
        "the API, which mostly ends in /v1"
    )


def unknown(server: ChatServer, fault: Fault, models: list[str] | None) -> UsageError | None:
    """The error for an unknown address or model, or None if the server knows both."""
    if models is None:
        if fault.status not in _NO_SUCH_PLACE:
            return None
        return UsageError(
            f"{server.url}: there are no chat completions ({fault.status}); name the address of "
            "the API, which mostly ends in /v1"
        )
    if server.model in models and fault.status not in _NO_SUCH_PLACE:
        return None
    near = get_close_matches(server.model, models, n=3, cutoff=0.3) or sorted(models)[:3]
    known = f"; it has {', '.join(near)}" if near else ""
    return UsageError(
        f"{server.url} does not take the model {server.model!r} ({fault.words}){known}"
    )


def fault_within(response: Any, server: ChatServer) -> Fault | None:
    """The error in an answer of status 200, which routers send, or None without an error."""
    try:
        body = response.json()
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, dict) or body.get("choices") or not body.get("error"):
        return None
    code = body["error"].get("code") if isinstance(body["error"], dict) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else response.status_code
    return _of_response(response, status, server)


def _of_response(response: Any, status: int, server: ChatServer) -> Fault:
    """The fault that causes a response with an error status."""
    detail = _detail(response)
    fields = detail if isinstance(detail, dict) else {"message": detail}
    words = redact(" ".join(str(fields.get("message") or "").split()))[:_SHOWN]
    words = words or response.reason_phrase
    code, metadata = str(fields.get("code") or ""), fields.get("metadata")
    if status == _MODERATED and isinstance(metadata, dict) and "reasons" in metadata:
        return Fault(words, status=status, refused=True)
    if status in (401, 403):
        known = f"refuses the key in {KEY}" if os.environ.get(KEY) else f"needs a key; set {KEY}"
        reason = status if status == 401 else f"{status}: {words}"  # may be about the model only
        return Fault(words, UsageError(f"{server.host} {known} ({reason})"), status=status)
    if status in _NO_SUCH_PLACE or 300 <= status < 400:
        place = response.headers.get("location", "")
        moved = UsageError(f"{server.url} redirects to another address: {redact(place)}; name it")
        return Fault(words, moved if status < 400 else None, status=status, doubts=True)
    if any(sign in words.lower() for sign in _NO_PICTURES):
        blind = UsageError(
            f"{server.url}: the model {server.model!r} takes no pictures ({words}); serve a "
            "model that takes pictures (llama.cpp: with its mmproj file)"
        )
        return Fault(words, blind, status=status)
    if code == "insufficient_quota":
        spent = ResourceError(f"{server.host} says that the quota is spent: {words}")
        return Fault(words, spent, status=status)
    if status in _LATER or status >= 500:
        message, wait_s = f"{server.host} answers {status} ({words})", _wanted_wait(response)
        attempts = ATTEMPTS_FOR_LOAD if status in FOR_LOAD else ATTEMPTS
        return Fault(message, attempts=attempts, status=status, wait_s=wait_s)
    if status == _TOO_LARGE:
        message = f"{server.host} takes no photo of that size ({status}); use --longest-side"
        return Fault(message, status=status)
    return Fault(
        f"{server.host} refuses the request ({status}: {words})",
        status=status,
        refused=code in REFUSALS,
        names_length="max_completion_tokens" in words,
        doubts=True,
    )


def _wanted_wait(response: Any) -> float:
    """Seconds until the time in ``Retry-After``, which may be a date; 0 without the header."""
    wanted = response.headers.get("retry-after", "")
    try:
        return max(0.0, float(wanted))
    except ValueError:
        with suppress(ValueError, OverflowError):
            return max(0.0, parsedate_to_datetime(wanted).timestamp() - time.time())
    return 0.0


def _detail(response: Any) -> Any:
    """The server's message in ``{"error": {"message": ...}}``, ``{"detail": ...}`` or text."""
    try:
        body = response.json()
    except (ValueError, RecursionError):
        return ""
    if not isinstance(body, dict):
        return body
    return body.get("error") or body.get("detail") or body


def _causes(error: BaseException) -> list[BaseException]:
    """An error and its causes, with the first cause at the end."""
    causes = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None:
        causes.append(cause)
    return causes
