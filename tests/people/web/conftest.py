"""A study of a few photos, and raters who visit its pages."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from bias_pipeline.data.photos import find_photos
from bias_pipeline.people.web.study import AnswerStore, RatingQuestion, Study
from tests.photo_folder import write_photos

pytest.importorskip("starlette", reason="needs the extra web")
pytest.importorskip("uvicorn", reason="needs the extra web")

from starlette.testclient import TestClient

from bias_pipeline.people.web.rating import RatingPages

QUESTION = RatingQuestion("Is it a dog?", "dog", ("yes", "no"))
HOSTS = frozenset({"127.0.0.1"})
_PICTURE = re.compile(r'<img src="([^"]+)"')
_FORM = re.compile(r'name="form" value="([0-9a-f]+)"')


class Visitor:
    """A browser of one rater."""

    def __init__(self, pages: RatingPages) -> None:
        self.pages = pages
        self.client = TestClient(
            pages.application(HOSTS), base_url="http://127.0.0.1", follow_redirects=False
        )

    def join(self, name: str, code: str = "", agree: str = "yes", token: str = "") -> int:
        """Send the first form; returns the status."""
        first = _FORM.search(self.client.get(f"/?token={self.pages.token}").text)
        fields = {"name": name, "code": code, "agree": agree, "token": token}
        fields |= {"form": first[1]} if first else {}
        self.page = self.started = self.client.post("/start", data=fields)
        status = self.page.status_code
        if self.page.headers.get("location") == "/code":
            self.page = self.client.get("/code")
        return status

    @property
    def code(self) -> str:
        """The code on the page after the first form."""
        match = re.search(r'class="code">([0-9a-f]+)<', self.page.text)
        assert match
        return match[1]

    def form(self, place: int) -> str:
        """The token in the form of an item."""
        match = _FORM.search(self.client.get(f"/item/{place}").text)
        assert match
        return match[1]

    def look(self, place: int) -> str:
        """Open an item with its picture, as a browser does; returns the token in its form."""
        form, page = self.form(place), self.client.get(f"/item/{place}").text
        for address in _PICTURE.findall(page):
            assert self.client.get(address).status_code == 200
        return form

    def answer(self, place: int, value: str) -> str:
        """Answer an item; returns where it leads."""
        fields = {"form": self.look(place), "value": value}
        reply = self.client.post(f"/answer/{place}", data=fields)
        assert reply.status_code == 303, reply.text
        return str(reply.headers["location"])


def check_headers(headers: Mapping[str, str]) -> None:
    """They let a page do little."""
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-store")
    assert headers["cross-origin-resource-policy"] == "same-origin"


def check_plain(page: str) -> None:
    """A page holds no style, and no script but that of the keys."""
    assert "<style" not in page
    assert " style=" not in page
    assert page.count("<script") == page.count('<script src="/keys.js"') == 1


Visit = Callable[..., Visitor]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return write_photos(tmp_path / "photos", 6)


@pytest.fixture
def study(photos: Path) -> Study:
    return Study(QUESTION, find_photos(photos), {})


@pytest.fixture
def store(study: Study, tmp_path: Path) -> Iterator[AnswerStore]:
    opened = AnswerStore(tmp_path / "study", study)
    yield opened
    opened.close()


@pytest.fixture
def visit(store: AnswerStore) -> Visit:
    """Opens a browser, of a rater who has joined if a name is given."""
    pages = RatingPages(store)

    def visitor(name: str = "") -> Visitor:
        one = Visitor(pages)
        if name:
            assert one.join(name) == 303
        return one

    return visitor
