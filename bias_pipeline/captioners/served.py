"""Captions by a model behind a server that speaks chat completions, many requests at a time."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from bias_pipeline.captioners.chat_server import (
    KEY,
    TOO_MANY,
    WRONG_SHAPE,
    AnswerCounts,
    AnsweredCaptions,
    ChatServer,
    Fault,
    Pace,
    fault_within,
    not_chat,
    server_fault,
    unknown,
    wait_before,
)
from bias_pipeline.datasets.chat_answers import FAILED, REFUSED, Answer, answer_of_body
from bias_pipeline.errors import BiasPipelineError, DataError, ResourceError, UsageError, counted
from bias_pipeline.inference.blocks import NOT_YET
from bias_pipeline.io.progress import Bar, duration
from bias_pipeline.io.terminal import warn
from bias_pipeline.models.sampling import Decoding
from bias_pipeline.vision.photos import UnreadableError, image_id

if TYPE_CHECKING:
    from openai import AsyncOpenAI

MOST_FAILURES = 10  # requests in a row
_CONNECT_S = 20.0


class _RequestFailedError(Exception):
    """This request has no answer, others may have one."""


class ServedCaptioner:
    """Photos to captions by a server.

    A context: leaving it gives up the requests that are under way.

    Args:
        server: that is asked.
        decoding: the prompt, and how words are chosen.
        at_once: requests at a time.
        timeout_s: how long an answer may take.

    Attributes:
        counts: of answers that are no whole captions.
        tokens_in: tokens of prompts and pictures, as far as the server counts them.
        tokens_out: tokens of answers.
        n_captions: that were written.
    """

    def __init__(
        self, server: ChatServer, decoding: Decoding, at_once: int, timeout_s: float
    ) -> None:
        self._server, self._decoding = server, decoding
        self._timeout_s = timeout_s
        self._slots = asyncio.Semaphore(at_once)
        self._pace = Pace()
        self._length = "max_tokens"
        self._works = False  # has answered once
        self._failures = 0  # requests in a row
        self._retry = ("", 0.0)  # why a request is sent again, and when; until the next answer
        self._end: BiasPipelineError | None = None
        self._ended = asyncio.Event()
        self._client: AsyncOpenAI | None = None
        self._entering = threading.Lock()
        self._left = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.counts = AnswerCounts()
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
        """Say that photos leave this machine, if they do, and make ready; returns itself.

        Raises:
            UsageError: if the key can be none.
        """
        import openai

        key = os.environ.get(KEY, "").strip()
        if not (key.isascii() and key.isprintable()):
            raise UsageError(f"{KEY} contains characters that no key has; set it again")
        notice = self._server.upload_notice(has_key=bool(key))
        if notice is not None:
            warn(notice)
        # A proxy is none of a server's on this machine, and no server sends photos elsewhere.
        here = {"http://": None, "https://": None, "all://": None} if self._server.is_here else {}
        self._started = time.monotonic()
        self._client = openai.AsyncOpenAI(
            base_url=self._server.url,
            api_key=key or "none",
            max_retries=0,
            timeout=openai.Timeout(self._timeout_s, connect=min(self._timeout_s, _CONNECT_S)),
            http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False, mounts=here),
        )
        return self

    def read(self, path: Path) -> AnsweredCaptions:
        """The captions of a photo; called from as many threads as there are photos at a time.

        Raises:
            BiasPipelineError: if the server answers no photo.
            UnreadableError: if the photo cannot be read, or the server gave it no answer.
        """
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
        """An answer for each caption that is wanted of a photo."""
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
        async with self._slots:
            try:
                text = await self._text(question)
                return self._checked(image, text)
            except BiasPipelineError as error:
                self._end = self._end or error
                self._ended.set()
                raise

    async def _text(self, question: dict[str, Any]) -> str | None:
        """What the server answers, None if it declines the photo."""
        attempt = 1
        while True:
            if self._end is not None:
                raise self._end
            length = self._length
            fault = await self._sent({**question, length: self._decoding.max_new_tokens})
            if not isinstance(fault, Fault):
                return fault
            if fault.refused:
                return None
            if fault.names_length and length == "max_tokens":
                self._length = "max_completion_tokens"
                continue
            await self._wait_after(fault, attempt)
            attempt += 1
            wait_s = max(fault.wait_s, wait_before(attempt - 1))
            answers = f"answers {fault.status}" if fault.status else "does not answer"
            words = f"{self._server.host} {answers}, attempt {attempt} of {fault.attempts}"
            self._retry = words, time.monotonic() + wait_s
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._ended.wait()

    async def _sent(self, body: dict[str, Any]) -> str | Fault:
        import openai

        assert self._client is not None
        started = await self._pace.turn()
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await self._client.chat.completions.with_raw_response.create(**body)
        except (TimeoutError, openai.OpenAIError) as error:
            return self._slowed(server_fault(error, self._server, self._timeout_s), started)
        fault = fault_within(answer.http_response, self._server)
        if fault is not None:
            return self._slowed(fault, started)
        self._pace.speed_up()
        text: str = answer.http_response.text
        return text

    def _slowed(self, fault: Fault, started: float) -> Fault:
        """A fault, after which requests follow less fast if the server wants that."""
        if fault.status == TOO_MANY or fault.wait_s:
            self._pace.slow_down(started, fault.wait_s)
        return fault

    async def _wait_after(self, fault: Fault, attempt: int) -> None:
        """Return if the request is to be sent again.

        Raises:
            BiasPipelineError: if the server answers no photo.
            _RequestFailedError: if it does not answer this request.
        """
        if fault.ends is not None:
            raise fault.ends
        if fault.doubts and not self._works:
            error = unknown(self._server, fault, await self._models())
            if error is not None:
                raise error
        silent = fault.status == 0
        if attempt < fault.attempts and (self._works or not silent):
            return
        if fault.absent or (fault.attempts > 1 and not self._works):
            raise ResourceError(fault.words)
        self._count_failure(fault.words)
        raise _RequestFailedError(fault.words)

    def _count_failure(self, words: str) -> None:
        self._failures += 1
        if self._failures >= MOST_FAILURES:
            raise ResourceError(
                f"{self._failures} requests in a row have no answer: {words}; see what the server "
                "logs, then run the same command again"
            )

    def _broken(self, fault: str) -> _RequestFailedError:
        """The error for an answer that did not come whole."""
        words = f"{self._server.host} {fault}"
        self._count_failure(words)
        return _RequestFailedError(words)

    async def _models(self) -> list[str] | None:
        """The names of the server's models, None if it lists none."""
        import openai

        assert self._client is not None
        with suppress(TimeoutError, openai.OpenAIError, ValueError, TypeError, KeyError):
            async with asyncio.timeout(self._timeout_s):
                answer = await self._client.models.with_raw_response.list()
            return [str(model["id"]) for model in json.loads(answer.http_response.text)["data"]]
        return None

    def _checked(self, image: str, text: str | None) -> Answer:
        """An answer, whatever its shape; tokens are counted."""
        if text is None:
            self._note_answer()
            return Answer(image, absent=REFUSED)
        try:
            body = json.loads(text)
            answer = answer_of_body(image, body, Path("answer"), "body")
        except ValueError as error:
            if text.lstrip().startswith("<"):
                raise not_chat(self._server) from error
            raise self._broken("sent half an answer, or one that is not JSON") from error
        except (RecursionError, DataError):
            self._count_failure(
                f"{self._server.host} answers in another shape than chat completions"
            )
            return Answer(image, absent=WRONG_SHAPE)
        if answer.absent == FAILED:
            raise self._broken("broke an answer off")
        self._note_answer()
        self.n_captions += 1
        usage = body.get("usage")
        if isinstance(usage, dict):
            self.tokens_in += _count(usage.get("prompt_tokens"))
            self.tokens_out += _count(usage.get("completion_tokens"))
        return answer

    def _note_answer(self) -> None:
        self._works, self._failures, self._retry = True, 0, ("", 0.0)

    @property
    def rate(self) -> float:
        """Captions per second, 0 before the first."""
        return self.n_captions / (time.monotonic() - self._started) if self.n_captions else 0.0

    @property
    def retry(self) -> str:
        """What a request waits for if the server answered none since; else empty."""
        words, then = self._retry
        left = then - time.monotonic()
        return f"{words} in {duration(left)}" if left > 0 else words

    def sentences(self) -> list[str]:
        """The lines of a report: tokens, and captions that are empty or cut."""
        used = f"tokens used: {self.tokens_in:,} read, {self.tokens_out:,} written"
        return [*([used] if self.tokens_in or self.tokens_out else []), *self.counts.sentences()]


class ServedBar(Bar):
    """Shows captions per second and tokens.

    Args:
        captioner: whose answers are counted.
    """

    def __init__(self, captioner: ServedCaptioner) -> None:
        super().__init__("captions")
        self._captioner = captioner

    def place(self) -> str:
        """The captions until now, or what the server is waited for."""
        written = counted(self._captioner.n_captions, "captions")
        tokens = self._captioner.tokens_in + self._captioner.tokens_out
        working = f"{self._captioner.rate:.1f} captions/s, {tokens:,} tokens"
        return f"{written}, {self._captioner.retry or working}"


def _count(number: object) -> int:
    return number if type(number) is int and number > 0 else 0
