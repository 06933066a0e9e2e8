"""A headless Chromium, controlled through pipes: its page, its errors and its requests."""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


class Browser:
    """One page of a browser.

    Attributes:
        complaints: of its console, of scripts that failed and of its policies, since a page was
            shown.
        requests: addresses that it asked for since then, the page's own included.
    """

    def __init__(self, orders: int, answers: int, patience_s: float) -> None:
        self._orders, self._answers = orders, answers
        self._until = time.monotonic() + patience_s
        self._numbers = itertools.count(1)
        self._rest = b""
        self._session = ""
        self.complaints: list[str] = []
        self.requests: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the DevTools protocol and its answer.

        Raises:
            RuntimeError: if the browser refuses it or does not answer in time.
        """
        number = next(self._numbers)
        order: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session:
            order["sessionId"] = self._session
        os.write(self._orders, json.dumps(order).encode() + b"\0")
        while True:
            message = self._next_message()
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self._note(message)

    def _next_message(self) -> dict[str, Any]:
        """The next message; the function that started the browser also stops it."""
        while b"\0" not in self._rest:
            if not select.select([self._answers], [], [], max(0.0, self._until - time.monotonic()))[
                0
            ]:
                raise RuntimeError("the browser does not answer")
            if not (chunk := os.read(self._answers, 1 << 16)):
                raise RuntimeError("the browser has ended")
            self._rest += chunk
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def _note(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params", {})
        if method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.complaints.append(json.dumps(params)[:1000])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def show(self, page: Path, width: int = 1200, height: int = 900, dark: bool = False) -> None:
        """Open a file in a window of a size, in CSS pixels, and wait until it is loaded."""
        self.complaints.clear()
        self.requests.clear()
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", media="", features=[theme])
        self.ask("Page.navigate", url=page.resolve().as_uri())
        self.wait_for("document.readyState == 'complete' && location.protocol == 'file:'")

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression in the page.

        Raises:
            RuntimeError: if it fails.
        """
        response = self.ask(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in response:
            raise RuntimeError(json.dumps(response["exceptionDetails"])[:1000])
        return response["result"].get("value")

    def wait_for(self, condition: str, limit_s: float = 10.0) -> None:
        """Wait until a JavaScript expression is true.

        Raises: RuntimeError: if it does not become true.
        """
        until = time.monotonic() + limit_s
        while not self.run(f"Boolean({condition})"):
            if time.monotonic() > until:
                raise RuntimeError(f"{condition} did not come about within {limit_s:g} s")
            time.sleep(0.05)

    def press(self, key: str, code: int, text: str = "") -> None:
        """Press and release a key.

        Args:
            key: its name, such as ``Tab``.
            code: its number in Windows.
            text: what it writes.
        """
        key_event = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.ask("Input.dispatchKeyEvent", type="keyDown", **key_event, text=text)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **key_event)

    def write(self, text: str) -> None:
        """Write text into the focused element."""
        self.ask("Input.insertText", text=text)

    def point(self, x: float, y: float) -> None:
        """Move the pointer, in CSS pixels of the window."""
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def picture(self) -> bytes:
        """What the window shows, as PNG."""
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])


@contextmanager
def browser(patience_s: float = 60.0) -> Iterator[Browser]:
    """Start a browser with a new profile, and stop it at the end.

    Args:
        patience_s: how long all of it may take.

    Raises:
        RuntimeError: if none is installed, or it stops answering.
    """
    if PROGRAM is None:
        raise RuntimeError("no Chromium here")
    own_answers, its_answers = os.pipe()
    its_orders, own_orders = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # The browser reads orders from 3 and answers on 4; a shell puts the pipes there.
        command = f'exec 3<&{its_orders} 4>&{its_answers}; exec "$@"'
        process = subprocess.Popen(  # noqa: S603 - our own command
            ["/bin/bash", "-c", command, "bash", PROGRAM, *_FLAGS, f"--user-data-dir={profile}"],
            pass_fds=(its_orders, its_answers),
            stderr=subprocess.DEVNULL,
        )
        os.close(its_orders)
        os.close(its_answers)
        try:
            yield Browser(own_orders, own_answers, patience_s)
        finally:
            process.terminate()
            process.wait()
            os.close(own_orders)
            os.close(own_answers)
