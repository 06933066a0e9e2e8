"""Debian's Chromium without a window, driven by the W3C WebDriver protocol of its own driver."""

import json
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cli.commands import wait_for

DRIVER, BROWSER = shutil.which("chromedriver"), shutil.which("chromium")
SLOW_IN_CHROMIUM = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (DRIVER and BROWSER), reason="needs Debian's chromium and chromium-driver"
    ),
]
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the protocol's name of an element's number
ENTER, TAB, LEFT, RIGHT = "\ue007", "\ue004", "\ue012", "\ue014"


class Chromium:
    """A browser with cookies of its own, of a width and height in pixels."""

    def __init__(self, driver: str, size: tuple[int, int], *, scripts: bool = True) -> None:
        self._driver = driver
        arguments = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        options: dict[str, Any] = {
            "binary": BROWSER,
            "args": [*arguments, f"--window-size={size[0]},{size[1]}"],
        }
        if size[0] < 500:  # narrower than a window can be
            metrics = {"width": size[0], "height": size[1], "pixelRatio": 1.0, "touch": True}
            options["mobileEmulation"] = {"deviceMetrics": metrics}
        if not scripts:
            options["prefs"] = {"profile.managed_default_content_settings.javascript": 2}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options}
        session = self._send("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._session = f"/session/{session['sessionId']}"

    def _send(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._driver}{path}", data, method=method)
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)["value"]

    def _do(self, path: str, **body: object) -> Any:
        return self._send("POST", self._session + path, body)

    def close(self) -> None:
        self._send("DELETE", self._session)

    def go_to(self, address: str) -> None:
        self._do("/url", url=address)

    @property
    def address(self) -> str:
        return str(self._send("GET", f"{self._session}/url"))

    def back(self) -> None:
        self._do("/back")

    def reload(self) -> None:
        self._do("/refresh")

    def run(self, script: str) -> Any:
        """The value of a script's ``return``."""
        return self._do("/execute/sync", script=script, args=[])

    def click(self, selector: str) -> None:
        """Click what a CSS selector names."""
        element = self._do("/element", using="css selector", value=selector)[_ELEMENT]
        self._do(f"/element/{element}/click")

    def press(self, keys: str) -> None:
        """Press keys, wherever the focus is, as somebody does who has seen the pictures."""
        lazy = "image => image.complete || image.loading === 'lazy'"
        wait_for(lambda: self.run(f"return [...document.images].every({lazy})"))
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._do("/actions", actions=[{"type": "key", "id": "keys", "actions": actions}])

    @property
    def text(self) -> str:
        """What is to be read on the page."""
        return str(self.run("return document.body.innerText"))

    @property
    def picture(self) -> str:
        """What the window shows, as a PNG in base64."""
        return str(self._send("GET", f"{self._session}/screenshot"))

    def wait_for_text(self, words: str) -> None:
        """Wait until a page has these words."""
        wait_for(lambda: words in self.text)


@contextmanager
def chromedriver() -> Iterator[str]:
    """The address of a driver."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert DRIVER
    process = subprocess.Popen(
        [DRIVER, f"--port={port}", "--log-level=OFF"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        try:
            with urllib.request.urlopen(f"{address}/status", timeout=5) as reply:
                return bool(json.load(reply)["value"]["ready"])
        except OSError:
            return False

    try:
        wait_for(answers)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=30)
