"""Pages stop however early the request to stop comes."""

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest
import uvicorn
from starlette.applications import Starlette

from bias_pipeline.io import signals
from bias_pipeline.people.web.application import listening, serve


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Ours, as in a command; those of the test run come back."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR2)
    before = {number: signal.getsignal(number) for number in numbers}
    signals.listen()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    signals._requested = None


def test_a_signal_before_the_server_captures_signals_is_not_lost(monkeypatch):
    """Asyncio drops an exception that is raised in one of its callbacks."""
    begin = uvicorn.Server.serve

    async def stopped_at_once(self: uvicorn.Server, **options: object) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0.1)
        await asyncio.wait_for(begin(self, **options), timeout=5)

    monkeypatch.setattr(uvicorn.Server, "serve", stopped_at_once)
    with listening("127.0.0.1", 0) as listener, pytest.raises(signals.Stopped):
        serve(Starlette(), listener, "127.0.0.1", "", about="", stop="")
