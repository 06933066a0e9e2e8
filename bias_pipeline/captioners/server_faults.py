"""What a server's failure means: to try again, to leave out a photo, or to end."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from bias_pipeline.captioners.chat_server import KEY, ChatServer
from bias_pipeline.errors import BiasPipelineError, ResourceError, UsageError
from bias_pipeline.io.terminal import redacted

if TYPE_CHECKING:
    from openai import APIStatusError

_SHOWN = 160  # characters of a server's words
_REFUSED = ("content_filter", "content_policy_violation")  # codes of a 400
_LATER = (408, 409, 425, 429)
_TOO_LARGE = 413
_NO_SUCH_PLACE = (404, 405)
_LONGEST_WAIT_S = 600
TOO_MANY = 429
ATTEMPTS, ATTEMPTS_IN_SILENCE = 7, 3  # two minutes of waiting; three times --timeout


@dataclass(frozen=True)
class Fault:
    """Why a request failed."""

    words: str  # in a sentence
    # The error that ends the work; None if only this request failed
    ends: BiasPipelineError | None = None
    attempts: int = 1  # how often the request is worth sending, in all
    absent: bool = False  # whether there is no server
    status: int = 0  # of the answer, 0 if there was none
    wait_s: float = 0.0  # how long the server wants to be left alone
    refused: bool = False  # whether the model declined the photo
    names_length: bool = False  # whether the server wants `max_completion_tokens`
    doubts: bool = False  # whether the address or the model may be unknown


def server_fault(error: BaseException, server: ChatServer, timeout_s: float) -> Fault:
    """What an exception of the client means.

    Args:
        error: of a request.
        server: that was asked.
        timeout_s: how long an answer may take.
    """
    import openai

    if isinstance(error, TimeoutError | openai.APITimeoutError):
        words = (
            f"{server.host} did not answer within {timeout_s:g} s; allow it more with --timeout, "
            "or ask less at once with --batch"
        )
        return Fault(words, attempts=ATTEMPTS_IN_SILENCE)
    if isinstance(error, openai.APIStatusError):
        return _of_status(error, server)
    certificate = next((e for e in _causes(error) if isinstance(e, ssl.SSLError)), None)
    if certificate is not None:
        return _of_tls(certificate, server)
    reason = str(_causes(error)[-1]) or type(error).__name__
    words = f"no server answers at {server.url} ({redacted(reason)[:_SHOWN]})"
    return Fault(words, attempts=ATTEMPTS, absent=True)


def not_chat(server: ChatServer) -> UsageError:
    """The error for a page of a website."""
    return UsageError(
        f"{server.url} answers with a web page, not with chat completions; name the address of "
        "the API, which mostly ends in /v1"
    )


def unknown(server: ChatServer, fault: Fault, models: list[str] | None) -> UsageError | None:
    """The error for an address or a model that is not there; None if both are.

    Args:
        server: that was asked.
        fault: its answer.
        models: that it has; None if it lists none.
    """
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


def _of_tls(error: ssl.SSLError, server: ChatServer) -> Fault:
    reason = getattr(error, "verify_message", "") or error.reason or str(error)
    words = (
        f"the certificate of {server.host} does not fit ({reason}); use the name that it is made "
        "for, and name the file of its authority in SSL_CERT_FILE"
    )
    return Fault(words, ResourceError(words))


def _of_status(error: APIStatusError, server: ChatServer) -> Fault:
    status, detail = error.status_code, _detail(error)
    words = _words(detail) or error.response.reason_phrase
    code = str(detail.get("code") or "") if isinstance(detail, dict) else ""
    if status in (401, 403):
        known = f"refuses the key in {KEY}" if os.environ.get(KEY) else f"wants a key; set {KEY}"
        return Fault(words, UsageError(f"{server.host} {known} ({status})"), status=status)
    if status in _NO_SUCH_PLACE or 300 <= status < 400:
        place = error.response.headers.get("location", "")
        moved = UsageError(f"{server.url} sends its callers to another address: {redacted(place)}")
        return Fault(words, moved if status < 400 else None, status=status, doubts=True)
    if code == "insufficient_quota":
        spent = ResourceError(f"{server.host} says that the quota is spent: {words}")
        return Fault(words, spent, status=status)
    if status in _LATER or status >= 500:
        message, wait_s = f"{server.host} answers {status} ({words})", _wanted_wait(error)
        later = f"{message} and wants no request for {wait_s:g} s; go on later"
        ends = ResourceError(later) if wait_s > _LONGEST_WAIT_S else None
        return Fault(message, ends, ATTEMPTS, status=status, wait_s=wait_s)
    if status == _TOO_LARGE:
        message = f"{server.host} takes no photo of that size ({status}); use --longest-side"
        return Fault(message, status=status)
    return Fault(
        f"{server.host} refuses the request ({status}: {words})",
        status=status,
        refused=code in _REFUSED,
        names_length="max_completion_tokens" in words,
        doubts=True,
    )


def _wanted_wait(error: APIStatusError) -> float:
    """Seconds of ``Retry-After``, 0 if it has none or a date."""
    try:
        return max(0.0, float(error.response.headers.get("retry-after", "0")))
    except ValueError:
        return 0.0


def _detail(error: APIStatusError) -> Any:
    """What the server says: ``{"error": {"message": ...}}``, ``{"detail": ...}`` or text."""
    try:
        body = error.response.json()
    except (ValueError, RecursionError):
        return ""
    if not isinstance(body, dict):
        return body
    return body.get("error") or body.get("detail") or body


def _words(detail: Any) -> str:
    text = detail.get("message") if isinstance(detail, dict) else detail
    return redacted(" ".join(str(text or "").split()))[:_SHOWN]


def _causes(error: BaseException) -> list[BaseException]:
    """An error and what led to it, the first cause last."""
    causes = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None:
        causes.append(cause)
    return causes
