"""The pages of ``rate``: consent, one page for each item, and the end."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from dataclasses import dataclass, field
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Any

import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from bias_pipeline.data.photos import UnreadableError
from bias_pipeline.errors import ResourceError
from bias_pipeline.io.terminal import warn
from bias_pipeline.people.web.application import (
    Guard,
    Picture,
    form_of,
    form_token,
    is_same_secret,
    number_in,
    static,
    templates,
)
from bias_pipeline.people.web.study import NAME, AnswerStore, NameTakenError

_PICTURES = 64  # pictures kept in memory
_ORDERS = 64  # raters' orders of items kept in memory
_KEPT_S = 3600  # a browser may keep a picture so long
_WRONG_CODE_S = 1.0  # the answer to a wrong code waits, so that codes cannot be tried out


@dataclass
class RatingPages:
    store: AnswerStore  # the study and its answers
    token: str = ""  # the token that new raters must bring; empty if nobody needs a token
    # By image, why it cannot be shown
    unreadable: dict[str, str] = field(default_factory=dict)
    _shown: dict[tuple[str, str], float] = field(default_factory=dict)
    _codes: dict[str, str] = field(default_factory=dict)  # the codes of new raters

    def __post_init__(self) -> None:
        self._pages = templates()
        settings = json.dumps(self.store.study.settings, sort_keys=True).encode()
        self.cookie = f"rating_{hashlib.sha256(settings).hexdigest()[:8]}"
        self._first_cookie = f"first_{self.cookie}"  # for a visitor who has not begun
        self._picture = lru_cache(_PICTURES)(self.store.study.picture)
        self._order = lru_cache(_ORDERS)(self.store.study.order)

    def application(self, hosts: frozenset[str]) -> Starlette:
        routes = [
            Route("/", self.welcome),
            Route("/start", self.start, methods=["POST"]),
            Route("/item/{place}", self.item),
            Route("/code", self.code),
            # Not the item's address: otherwise the answer would replace the item in the history.
            Route("/answer/{place}", self.answer, methods=["POST"]),
            Route("/picture/{place}", self.picture),
            Route("/end", self.end),
            Route("/style.css", static("style.css", "text/css")),
            Route("/keys.js", static("keys.js", "text/javascript")),
        ]
        return Starlette(
            routes=routes,
            middleware=[Middleware(Guard, hosts)],
            exception_handlers={HTTPException: self._refuse},
        )

    async def welcome(self, request: Request) -> Response:
        """The text of consent and a form for the name; a known rater goes on to the items."""
        rater = self.store.rater(self._visit(request))
        if rater is not None:
            return _redirect(self._next_address(rater))
        self._check_token(request.query_params.get("token", ""))
        return self._welcome(request, "")

    def _welcome(self, request: Request, fault: str, status: int = 200) -> Response:
        visit = request.cookies.get(self._first_cookie) or secrets.token_urlsafe(24)
        page = self._page(
            "welcome",
            status,
            consent=[part.split("\n") for part in self.store.study.consent.strip().split("\n\n")],
            token=self.token,
            form=form_token(visit),
            fault=fault,
        )
        if self._first_cookie not in request.cookies:
            page.set_cookie(self._first_cookie, visit, httponly=True, samesite="strict")
        return page

    async def start(self, request: Request) -> Response:
        form = await form_of(request, request.cookies.get(self._first_cookie, ""))
        self._check_token(form.get("token", ""))
        name, code = form.get("name", "").strip(), form.get("code", "")
        if form.get("agree") != "yes":
            fault = "Please agree to the text above, or close this page."
            return self._welcome(request, fault, 400)
        if not NAME.fullmatch(name):
            fault = (
                "A name has up to 40 letters, digits, - and _, and begins with a letter or a digit."
            )
            return self._welcome(request, fault, 400)
        try:
            visit, fresh = await anyio.to_thread.run_sync(self.store.join, name, code)
        except NameTakenError:
            await anyio.sleep(_WRONG_CODE_S)
            fault = (
                f"The name {name} is taken. If it is yours, give the code that you were given; "
                "else choose another name."
            )
            return self._welcome(request, fault, 409)
        except ResourceError as error:
            warn(f"a rater could not join: {error}")
            fault = "You cannot begin now. Please tell the person who invited you."
            return self._welcome(request, fault, HTTPStatus.INSUFFICIENT_STORAGE)
        if fresh:
            self._codes[name] = fresh
        page = _redirect("/code" if fresh else self._next_address(name))
        page.set_cookie(self.cookie, visit, httponly=True, samesite="strict")
        return page

    async def code(self, request: Request) -> Response:
        rater, _ = self._visitor(request)
        code, first = self._codes.get(rater), self._next_address(rater)
        return self._page("code", name=rater, code=code, first=first) if code else _redirect(first)

    async def item(self, request: Request) -> Response:
        rater, place = self._visitor(request)
        if self.store.study.photos and not await self._content(self._order(rater)[place - 1]):
            return _redirect(self._next_address(rater, place))
        return self._item(request, rater, place)

    def _item(
        self, request: Request, rater: str, place: int, fault: str = "", status: int = 200
    ) -> Response:
        study = self.store.study
        image = self._order(rater)[place - 1]
        chosen = self.store.value(rater, image)
        self._shown[rater, image] = time.monotonic()
        return self._page(
            "item",
            status,
            question=study.question,
            place=place,
            back=self._nearest_place(rater, place, -1),
            next=0 if chosen is None else self._nearest_place(rater, place, 1),
            picture=_picture_key(self._visit(request), image) if study.photos else "",
            caption=study.captions.get(image),
            beside=study.beside.get(image),
            chosen=chosen,
            n_answered=self.store.n_answers(rater),
            n_items=self._n_items,
            form=form_token(self._visit(request)),
            fault=fault,
        )

    async def answer(self, request: Request) -> Response:
        rater, place = self._visitor(request)
        form = await form_of(request, self._visit(request))
        value = form.get("value", "")
        if value not in self.store.study.question.values:
            raise HTTPException(400, "this is not one of the answers; reload the page")
        image = self._order(rater)[place - 1]
        visit = _digest("delivery", self._visit(request))
        if self.store.study.photos and not self.store.deliveries.has(visit, image):
            fault = (
                "The picture had not reached you, so your answer does not count. Look at it, and "
                "answer again."
            )
            return self._item(request, rater, place, fault, HTTPStatus.CONFLICT)
        shown = self._shown.get((rater, image))
        seconds = None if shown is None else time.monotonic() - shown
        try:
            await anyio.to_thread.run_sync(self.store.put, rater, image, value, seconds)
        except ResourceError as error:
            warn(f"an answer of {rater} could not be stored: {error}")
            fault = (
                "Your answer could not be stored and does not count. Please tell the person who "
                "invited you, and try again later."
            )
            return self._item(request, rater, place, fault, HTTPStatus.INSUFFICIENT_STORAGE)
        return _redirect(self._next_address(rater, place))

    async def picture(self, request: Request) -> Response:
        """The picture of an item, which the browser may cache under the key of its page."""
        rater, place = self._visitor(request)
        visit, image = self._visit(request), self._order(rater)[place - 1]
        key = request.query_params.get("key", "")
        content = await self._content(image) if self.store.study.photos else None
        if content is None or (key and not is_same_secret(key, _picture_key(visit, image))):
            raise HTTPException(404, "there is no such picture")
        delivered = partial(self.store.deliveries.add, _digest("delivery", visit), image)
        return Picture(content, delivered, _KEPT_S if key else 0)

    async def end(self, request: Request) -> Response:
        rater, _ = self._visitor(request)
        n_answered, first = self.store.n_answers(rater), self._nearest_place(rater, 0, 1)
        return self._page("end", n_answered=n_answered, n_items=self._n_items, first=first)

    @property
    def _n_items(self) -> int:
        return len(self.store.study.images) - len(self.unreadable)

    async def _content(self, image: str) -> bytes | None:
        """A picture that a thread reads, or None if it cannot be shown."""
        try:
            content = await anyio.to_thread.run_sync(self._picture, image)
        except UnreadableError as error:
            if image not in self.unreadable:
                warn(f"image {image} cannot be shown and is left out: {error}")
            self.unreadable[image] = str(error)
            return None
        self.unreadable.pop(image, None)
        return content

    def _next_address(self, rater: str, after: int = 0) -> str:
        """The address of the first item without an answer, counted from a place."""
        order = self._order(rater)
        places = [*range(after + 1, len(order) + 1), *range(1, after + 1)]
        for place in places:
            image = order[place - 1]
            if image not in self.unreadable and self.store.value(rater, image) is None:
                return f"/item/{place}"
        return "/end"

    def _nearest_place(self, rater: str, place: int, step: int) -> int:
        """The nearest place before (-1) or after (1) that can be shown; 0 if there is none."""
        order = self._order(rater)
        places = range(place + step, len(order) + 1 if step > 0 else 0, step)
        return next((other for other in places if order[other - 1] not in self.unreadable), 0)

    def _visit(self, request: Request) -> str:
        return request.cookies.get(self.cookie, "")

    def _visitor(self, request: Request) -> tuple[str, int]:
        """The rater who sends a request, and the place of the item that the request is about."""
        rater = self.store.rater(self._visit(request))
        if rater is None:
            raise HTTPException(403, "please begin at the first page")
        place = number_in(request.path_params.get("place", "1"))
        if not 1 <= place <= len(self.store.study.images):
            raise HTTPException(404, "there is no such page")
        return rater, place

    def _check_token(self, token: str) -> None:
        if self.token and not is_same_secret(token, self.token):
            raise HTTPException(403, "open the whole link that you were sent")

    async def _refuse(self, request: Request, error: Exception) -> Response:
        del request
        assert isinstance(error, HTTPException)
        return self._page("refused", error.status_code, reason=error.detail)

    def _page(self, name: str, status: int = 200, /, **values: Any) -> Response:
        return HTMLResponse(self._pages.get_template(f"{name}.html.j2").render(values), status)


def _redirect(address: str) -> Response:
    return RedirectResponse(address, 303)


def _picture_key(visit: str, image: str) -> str:
    """The key in a picture's address, which differs between raters in one browser."""
    return _digest("picture", f"{visit} {image}")


def _digest(kind: str, text: str) -> str:
    return hashlib.sha256(f"{kind} {text}".encode()).hexdigest()[:16]
