"""A server that speaks chat completions: the questions about a photo, and how fast they follow."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import random
import time
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bias_pipeline.errors import UsageError
from bias_pipeline.models.sampling import Decoding
from bias_pipeline.vision.masked_photos import PhotoReader
from bias_pipeline.vision.photos import read_photo

FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0  # before a request is tried again
_FIRST_GAP_S = 0.05
_FASTER = 0.95  # by each answer
_NO_GAP_S = 0.001


class Pace:
    """The time between two requests: doubled when the server refuses one, shortened by answers.

    Attributes:
        gap_s: between the beginnings of two requests, in seconds; 0 until the server refuses one.
    """

    def __init__(self) -> None:
        self.gap_s = 0.0
        self._next = 0.0  # when the next request may start
        self._slowed = 0.0

    async def turn(self) -> float:
        """Wait for a turn; returns when it came."""
        start = max(time.monotonic(), self._next)
        self._next = start + self.gap_s
        await asyncio.sleep(start - time.monotonic())
        return start

    def slow_down(self, started: float, wait_s: float) -> None:
        """The server refused a request for being one too many.

        Args:
            started: when the request was sent; those sent before the last refusal change nothing.
            wait_s: no request starts before that.
        """
        now = time.monotonic()
        self._next = max(self._next, now + wait_s)
        if started >= self._slowed:
            self.gap_s = min(LONGEST_WAIT_S, max(_FIRST_GAP_S, 2 * self.gap_s))
            self._slowed = now

    def speed_up(self) -> None:
        """The server answered."""
        self.gap_s = self.gap_s * _FASTER if self.gap_s > _NO_GAP_S else 0.0


def wait_before(attempt: int) -> float:
    """Seconds before a request is sent again, doubled each time.

    Args:
        attempt: how many attempts failed, from 1.

    Example:
        >>> 0.75 <= wait_before(1) <= 1, 45 <= wait_before(20) <= 60
        (True, True)
    """
    longest = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(attempt - 1, 30))
    return longest * random.uniform(0.75, 1)  # noqa: S311 - so that not all come at once


KEY = "OPENAI_API_KEY"  # the variable that has the key
VERSION = 1  # raise it whenever another picture or question is sent
_QUALITY = 95


@dataclass(frozen=True)
class ChatServer:
    """A server and one of its models.

    Raises:
        UsageError: if the address is none, or holds a name, a password or a query.

    Example:
        >>> server = ChatServer("http://127.0.0.1:8000/v1", "qwen")
        >>> server.host, server.is_here
        ('127.0.0.1', True)
    """

    url: str  # of the API, such as `http://localhost:8000/v1`
    model: str  # its name there
    # Pixels; larger photos are made smaller. None sends them as large as they are.
    longest_side: int | None = None
    read: PhotoReader = read_photo  # how photos are read

    def __post_init__(self) -> None:
        """Check the address."""
        usage = UsageError(
            "--server takes an address such as http://localhost:8000/v1 or https://api.example.org/v1"
        )
        try:
            parts = urlsplit(self.url)
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
        """The machine's name, by which runs are told apart: its ports change."""
        return urlsplit(self.url).hostname or ""

    @property
    def is_here(self) -> bool:
        """Whether it is on this machine (loopback)."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def settings(self) -> dict[str, object]:
        """What decides its captions, beside the decoding."""
        return {
            "request": VERSION,
            "server": "localhost" if self.is_here else self.host,
            "model": self.model,
            "longest_side": self.longest_side,
        }

    def departure(self, *, has_key: bool) -> str | None:
        """What to say before photos leave this machine; None if they do not."""
        if self.is_here:
            return None
        open_to_all = "" if self.url.startswith("https:") else ", without encryption"
        key = f", with the key in {KEY}" if has_key else ""
        return f"photos leave this machine: they are sent to {self.host}{open_to_all}{key}"

    def question(self, picture: str, decoding: Decoding, sample: int) -> dict[str, Any]:
        """The body of a request, without its longest length.

        Args:
            picture: as a data URL.
            decoding: the prompt, temperature and seed.
            sample: which caption of the photo, from 0; draws have the seed ``seed + sample``.
        """
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
        """A photo as a data URL: upright, a JPEG of high quality, without where it was taken.

        Raises:
            UnreadableError: with the reason.
        """
        photo = self.read(path)
        if self.longest_side is not None:
            photo.thumbnail((self.longest_side, self.longest_side))
        content = BytesIO()
        photo.save(content, "JPEG", quality=_QUALITY, subsampling=0)
        return f"data:image/jpeg;base64,{base64.b64encode(content.getvalue()).decode()}"
