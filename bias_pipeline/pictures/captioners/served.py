"""Captions photos by a model behind a server of chat completions, many requests at a time."""

from __future__ import annotations

import asyncio
import json
import os
import random
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from bias_pipeline.data.chat_answers import FAILED, REFUSED, Answer, answer_of_body
from bias_pipeline.data.photos import UnreadableError, image_id
from bias_pipeline.errors import BiasPipelineError, DataError, ResourceError, UsageError, inflect
from bias_pipeline.io.progress import Bar, duration
from bias_pipeline.io.terminal import warn
from bias_pipeline.models.blocks import NOT_YET
from bias_pipeline.models.sampling import Decoding
from bias_pipeline.pictures.captioners.bounded_client import UnfitAnswerError, bounded_client
from bias_pipeline.pictures.captioners.chat_server import (
    FOR_LOAD,
    KEY,
    AnswerCounts,
    AnsweredCaptions,
    ChatServer,
    Fault,
    broken_answer,
    fault_within,
    not_chat,
    server_fault,
    unknown,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI

MOST_FAILURES = 10  # requests in a row that may fail
GIVE_UP_S = 300.0
NOT_OF_CHAT = "answers in another shape than chat completions"
_CONNECT_S = 20.0


class _RequestFailedError(Exception):
    """The error for a request without an answer, if other requests may have an answer."""


class ServedCaptioner:
    """Captions photos with the help of a server.

    The captioner is a context; when the context ends, all open requests are given up.
    """

    def __init__(
        self,
        server: ChatServer,
        decoding: Decoding,
        at_once: int,
        timeout_s: float,
        give_up_s: float = GIVE_UP_S,
    ) -> None:
        self._server, self._decoding = server, decoding
        self._longest = decoding.max_new_tokens
        self._timeout_s, self._give_up_s = timeout_s, give_up_s
        self._slots = asyncio.Semaphore(at_once)
        self._pace = Pace()
        self._length = "max_tokens"
        self._works = False  # has answered once
        self._n_answers = 0
        self._failures = 0  # requests in a row
        self._giving_up: asyncio.TimerHandle | None = None  # since a fault, until the next answer
        self._retry = ("", 0.0)  # why a request is sent again, and when; until the next answer
        self._end: BiasPipelineError | None = None
        self._ended = asyncio.Event()
        self._client: AsyncOpenAI | None = None
        self._entering = threading.Lock()
        self._left = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.counts = AnswerCounts()  # of answers that are not whole captions
        # Tokens of prompts and pictures, and tokens of answers, as far as the server counts them
        self.n_captions = self.tokens_in = self.tokens_out = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._entering:
            self._left = True
            leaving = asyncio.run_coroutine_threadsafe(self._give_up(), self._loop)
        leaving.result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _give_up(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._client is not None:
            await self._client.close()

    def start(self) -> ServedCaptioner:
        """Tell the user if photos leave this machine, and start; returns the captioner."""
        import openai

        key = os.environ.get(KEY, "").strip()
        if not (key.isascii() and key.isprintable()):
            raise UsageError(f"{KEY} contains characters that no key has; set it again")
        notice = self._server.upload_notice(has_key=bool(key))
        if notice is not None:
            warn(notice)
        # No proxy is used for a server on this machine, and no redirect may send photos elsewhere.
        here = {"http://": None, "https://": None, "all://": None} if self._server.is_here else {}
        self._started = time.monotonic()
        self._client = openai.AsyncOpenAI(
            base_url=self._server.url,
            api_key=key or "none",
            max_retries=0,
            timeout=openai.Timeout(self._timeout_s, connect=min(self._timeout_s, _CONNECT_S)),
            http_client=bounded_client(follow_redirects=False, mounts=here),
        )
        return self

    def read(self, path: Path) -> AnsweredCaptions:
        """The captions of a photo; a thread calls this method for each photo of a batch."""
        picture, image = self._server.picture(path), image_id(path.name)
        with self._entering:
            if self._left:
                raise UnreadableError(NOT_YET, lasting=False)
            answers = asyncio.run_coroutine_threadsafe(self._answers(image, picture), self._loop)
        try:
            return self.counts.captions(image, answers.result())
        except _RequestFailedError as error:
            raise UnreadableError(str(error), lasting=False) from error
        except CancelledError as error:
            raise UnreadableError(NOT_YET, lasting=False) from error

    async def _answers(self, image: str, picture: str) -> list[Answer]:
        requests = [
            self._answer(image, self._server.question(picture, self._decoding, sample))
            for sample in range(self._decoding.n)
        ]
        outcomes = await asyncio.gather(*requests, return_exceptions=True)
        answers = []
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
            answers.append(outcome)
        return answers

    async def _answer(self, image: str, question: dict[str, Any]) -> Answer:
        """The answer to a request, which is sent again as often as its faults allow."""
        answered_before, attempt = self._n_answers, 1
        while True:
            length = self._length
            try:
                async with self._slots:
                    answer = await self._send(image, {**question, length: self._longest})
                    if isinstance(answer, Answer):
                        return answer
                    if answer.names_length and length == "max_tokens":
                        self._length = "max_completion_tokens"
                        continue
                    others_answered = self._n_answers > answered_before
                    await self._check_worth(answer, attempt, others_answered=others_answered)
                await self._rest_after(answer, attempt)
            except BiasPipelineError as error:
                self._stop(error)
                raise
            attempt += 1

    async def _send(self, image: str, body: dict[str, Any]) -> Answer | Fault:
        import openai

        assert self._client is not None
        started = await self._pace.turn(self._rest)
        if self._end is not None:
            raise self._end
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await self._client.chat.completions.with_raw_response.create(**body)
        except (TimeoutError, openai.OpenAIError, UnfitAnswerError) as error:
            fault = server_fault(error, self._server, self._timeout_s)
        else:
            within = fault_within(answer.http_response, self._server)
            checked = within or self._check_answer(image, answer.http_response.text)
            if isinstance(checked, Answer):
                self._note_answer()
                return checked
            fault = checked
        if fault.refused:
            self._note_answer()
            return Answer(image, absent=REFUSED)
        self._note_fault(fault, started)
        return fault

    async def _rest(self, wait_s: float) -> None:
        """Wait for some seconds; an error is raised if the work ends earlier."""
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._ended.wait()
        if self._end is not None:
            raise self._end

    async def _rest_after(self, fault: Fault, attempt: int) -> None:
        for_load = fault.status in FOR_LOAD
        usual = wait_before(attempt, LONGEST_WAIT_FOR_LOAD_S if for_load else LONGEST_WAIT_S)
        wait_s = fault.wait_s or usual
        answers = f"answers {fault.status}" if fault.status else "does not answer"
        number = f"{attempt + 1}" if for_load else f"{attempt + 1} of {fault.attempts}"
        self._retry = (
            f"{self._server.host} {answers}, attempt {number}",
            time.monotonic() + wait_s,
        )
        await self._rest(wait_s)

    async def _check_worth(self, fault: Fault, attempt: int, *, others_answered: bool) -> None:
        if fault.ends is not None:
            raise fault.ends
        if fault.wait_s > self._give_up_s:
            raise ResourceError(
                f"{fault.words} and accepts no request for {duration(fault.wait_s)}; start again "
                "then, or wait longer with --give-up"
            )
        if fault.doubts and not self._works:
            error = unknown(self._server, fault, await self._models())
            if error is not None:
                raise error
        if fault.status in FOR_LOAD and not others_answered:
            return  # --give-up ends this
        if attempt < fault.attempts and (self._works or not fault.silent):
            return
        of_server = fault.status != 200 and fault.attempts > 1
        if fault.absent or (of_server and not self._works):
            raise ResourceError(fault.words)
        self._failures += 1
        if self._failures >= MOST_FAILURES:
            raise ResourceError(
                f"{self._failures} requests in a row have no answer: {fault.words}; see what the "
                "server logs, then run the same command again"
            )
        raise _RequestFailedError(fault.words)

    async def _models(self) -> list[str] | None:
        """The names of the server's models, or None if the server lists no models."""
        import openai

        assert self._client is not None
        with suppress(TimeoutError, openai.OpenAIError, ValueError, TypeError, KeyError):
            async with asyncio.timeout(self._timeout_s):
                answer = await self._client.models.with_raw_response.list()
            return [str(model["id"]) for model in json.loads(answer.http_response.text)["data"]]
        return None

    def _check_answer(self, image: str, text: str) -> Answer | Fault:
        """The answer in a text, or the fault in its form; the method also counts tokens."""
        try:
            body = json.loads(text)
            answer = answer_of_body(image, body, Path("answer"), "body")
        except (RecursionError, DataError):
            return broken_answer(self._server, NOT_OF_CHAT)
        except ValueError as error:
            if text.lstrip().startswith("<") and not self._works:
                raise not_chat(self._server) from error
            return broken_answer(self._server, "sent half an answer, or an answer that is not JSON")
        if not body["choices"]:
            return broken_answer(self._server, NOT_OF_CHAT)
        if answer.absent == FAILED:
            return broken_answer(self._server, "broke an answer off")
        self.n_captions += 1
        usage = body.get("usage")
        if isinstance(usage, dict):
            self.tokens_in += _count(usage.get("prompt_tokens"))
            self.tokens_out += _count(usage.get("completion_tokens"))
        return answer

    def _note_answer(self) -> None:
        self._works, self._failures, self._retry = True, 0, ("", 0.0)
        self._n_answers += 1
        self._pace.speed_up()
        if self._giving_up is not None:
            self._giving_up.cancel()
            self._giving_up = None

    def _note_fault(self, fault: Fault, started: float) -> None:
        """Slow down if the server asks for it; end the work if the server stops answering."""
        if fault.status in FOR_LOAD:
            self._pace.slow_down(started, fault.wait_s)
        if self._giving_up is None:
            error = ResourceError(
                f"{self._server.host} has answered nothing for {duration(self._give_up_s)}: "
                f"{fault.words}; start the same command again later, or wait longer with --give-up"
            )
            self._giving_up = self._loop.call_later(self._give_up_s, self._stop, error)

    def _stop(self, error: BiasPipelineError) -> None:
        self._end = self._end or error
        self._ended.set()

    @property
    def rate(self) -> float:
        return self.n_captions / (time.monotonic() - self._started) if self.n_captions else 0.0

    @property
    def retry(self) -> str:
        """The reason why a request waits, as text; empty once the server has answered again."""
        words, then = self._retry
        left = then - time.monotonic()
        return f"{words} in {duration(left)}" if left > 0 else words

    def sentences(self) -> list[str]:
        used = f"tokens used: {self.tokens_in:,} read, {self.tokens_out:,} written"
        return [*([used] if self.tokens_in or self.tokens_out else []), *self.counts.sentences()]


class ServedBar(Bar):
    def __init__(self, captioner: ServedCaptioner) -> None:
        super().__init__("captions")
        self._captioner = captioner

    def place(self) -> str:
        written = inflect(self._captioner.n_captions, "captions")
        tokens = self._captioner.tokens_in + self._captioner.tokens_out
        working = f"{self._captioner.rate:.1f} captions/s, {tokens:,} tokens"
        return f"{written}, {self._captioner.retry or working}"


def _count(number: object) -> int:
    return number if type(number) is int and number > 0 else 0


FIRST_WAIT_S, LONGEST_WAIT_S = 0.25, 60.0  # before a request is sent again
LONGEST_WAIT_FOR_LOAD_S = 8.0  # the same after a refusal for load, in addition to the pace
_FIRST_GAP_S, _NO_GAP_S, _LONGEST_GAP_S = 0.05, 0.001, 10.0
_SLOW_GAP_S = 0.2  # above it an answer halves the gap, below it makes the gap a little shorter
_FASTER, _MUCH_FASTER = 0.95, 0.5
_SHORTER = 0.8  # keeps the pace up for a server that fails one request in five
_SHOWN_S = 60.0  # answers of the last seconds show how many requests the server bears
_LOOK_S = 0.1  # seconds between two looks at whether the gap has changed


class Pace:
    """The gap between two requests; a refusal doubles the gap, and answers shorten it.

    The gap is always shorter than the mean gap between the answers of the last minute. Periods in
    which the server wants no request do not count.
    """

    def __init__(self) -> None:
        self.gap_s = 0.0  # between the beginnings of two requests
        self._queue = asyncio.Lock()  # requests start in the order of their arrival
        self._last = -_SHOWN_S  # when the last request started
        self._closed_until = self._closed_s = 0.0  # and for how long, in all
        self._slowed = 0.0
        self._answers: deque[float] = deque()  # times of the last minute's answers, without rests

    async def turn(self, rest: Callable[[float], Awaitable[None]]) -> float:
        """Wait for a turn, some seconds at a time by ``rest``; returns the time of the turn."""
        async with self._queue:
            while True:
                now = time.monotonic()
                left = max(self._closed_until, self._last + self.gap_s) - now
                if left <= 0:
                    self._last = now
                    return now
                await rest(min(left, _LOOK_S))

    def slow_down(self, started: float, wait_s: float) -> None:
        """Slow down after the server refused a request because of its load."""
        now = time.monotonic()
        closed_until = max(self._closed_until, now + wait_s)
        self._closed_s += closed_until - max(self._closed_until, now)
        self._closed_until = closed_until
        if started >= self._slowed:
            slower = min(_LONGEST_GAP_S, max(_FIRST_GAP_S, 2 * self.gap_s))
            self.gap_s = min(slower, self._shown_gap_s(now))
            self._slowed = now

    def speed_up(self) -> None:
        self._answers.append(self._open_s(time.monotonic()))
        if self.gap_s > _SLOW_GAP_S:
            self.gap_s *= _MUCH_FASTER
        else:
            self.gap_s = self.gap_s * _FASTER if self.gap_s > _NO_GAP_S else 0.0

    def _open_s(self, now: float) -> float:
        """The seconds so far, without periods in which the server wants no request."""
        return now - self._closed_s + max(0.0, self._closed_until - now)

    def _shown_gap_s(self, now: float) -> float:
        """A little less than the mean time between the answers of the last minute."""
        then = self._open_s(now)
        while self._answers and self._answers[0] < then - _SHOWN_S:
            self._answers.popleft()
        if len(self._answers) < 2:
            return _LONGEST_GAP_S
        return _SHORTER * (then - self._answers[0]) / (len(self._answers) - 1)


def wait_before(attempt: int, longest_s: float = LONGEST_WAIT_S) -> float:
    """Seconds before a request is sent again, which double each time.

    Example:
        >>> 0.18 <= wait_before(1) <= 0.25, 45 <= wait_before(20) <= 60
        (True, True)
    """
    longest = min(longest_s, FIRST_WAIT_S * 2.0 ** min(attempt - 1, 30))
    return longest * random.uniform(0.75, 1)  # noqa: S311 - so that not all come at once
