"""The pages of ``browse``: runs, the numbers of a run, and the images behind the numbers."""

from __future__ import annotations

import json
from typing import Any

import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from bias_pipeline.errors import BiasPipelineError, inflect
from bias_pipeline.io.terminal import printable
from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.metrics.value_names import direction_of
from bias_pipeline.people.web.application import Guard, TokenGate, static, templates
from bias_pipeline.people.web.captions_behind import Library
from bias_pipeline.people.web.evidence import SUMS
from bias_pipeline.people.web.image_pages import ImagePages
from bias_pipeline.people.web.run_folder import (
    KNOWN,
    RunFolder,
    RunLine,
    headline_rows,
    number_of,
    shown_lines,
    version_note,
)
from bias_pipeline.people.web.views import Page, View
from bias_pipeline.report.table import cell_text, p_cell, shareable, without_places
from bias_pipeline.results.rows import Result, Row, mapping_in

_OF_NUMBERS = ("find", "page")
_SHOWN_ELSEWHERE = ("image_std", "notes", "metric")  # fields of the manifest


class BrowsePages:
    def __init__(self, folder: RunFolder, library: Library, token: str = "") -> None:
        self.folder, self._token = folder, token
        self._images = ImagePages(folder, library, self._find, self._page)
        self._pages = templates()
        self._pages.filters["text"] = lambda cell: without_places(printable(cell_text(cell)))
        self._pages.filters["p"] = p_cell
        self._pages.filters["inflect"] = inflect
        self._pages.globals["images_link"] = images_link
        for name in ("runs", "run", "images", "image"):
            self._pages.get_template(f"{name}.html.j2")  # compiled now, not while a page waits

    def application(self, hosts: frozenset[str]) -> Starlette:
        routes = [
            Route("/", self.runs),
            Route("/run/{run}", self.run),
            *self._images.routes,
            Route("/style.css", static("browse.css", "text/css")),
            Route("/keys.js", static("keys.js", "text/javascript")),
        ]
        return Starlette(
            routes=routes,
            middleware=[
                Middleware(Guard, hosts),
                Middleware(TokenGate, self._token),
            ],
            exception_handlers={
                HTTPException: self._refuse,
                BiasPipelineError: self._refuse,
                MemoryError: self._refuse,
            },
        )

    async def runs(self, request: Request) -> Response:
        return await anyio.to_thread.run_sync(self._runs, request)

    def _runs(self, request: Request) -> Response:
        view = View.from_query("/", request.query_params, KNOWN)
        self.folder.refresh()
        index = self.folder.index
        lines = shown_lines(index.lines, view)
        return self._page(
            "runs",
            page=Page(view, len(lines), lines.__getitem__),
            view=view,
            choices=index.choices,
            differ=any(line.settings for line in index.lines),
            n_lines=len(index.lines),
            n_runs=len(index.runs),
            faults=index.faults,
        )

    async def run(self, request: Request) -> Response:
        result = self._find(request.path_params["run"])
        page = await anyio.to_thread.run_sync(self._run, request, result)
        self._images.prepare(result)  # most visitors go to the images next
        return page

    def _run(self, request: Request, result: Result) -> Response:
        view = View.from_query(f"/run/{result.run_id}", request.query_params, _OF_NUMBERS)
        wanted = view["find"].lower().split()
        rows = [row for row in result.rows if all(word in row.part.lower() for word in wanted)]
        return self._page(
            "run",
            result=result,
            headlines=[RunLine(result, row) for row in headline_rows(result)],
            reading=result.facts.metric,
            notes=[*filter(None, [version_note(result)]), *result.notes],
            page=Page(
                view,
                len(rows),
                lambda places: [(row, number_of(row, result)) for row in rows[places]],
            ),
            view=view,
            manifest=json.dumps(
                shareable({k: v for k, v in result.manifest.items() if k not in _SHOWN_ELSEWHERE}),
                indent=1,
                ensure_ascii=False,
            ),
        )

    def _find(self, run_id: str) -> Result:
        """The run with this name; the name is looked up and never becomes a path."""
        result = self.folder.index.runs.get(run_id)
        if result is None:
            raise HTTPException(404, "there is no such run in this folder")
        return result

    async def _refuse(self, request: Request, error: Exception) -> Response:
        del request
        if isinstance(error, HTTPException):
            page = self._page("refused_view", error.status_code, reason=error.detail)
            page.headers.update(error.headers or {})
            return page
        little = "there is too little memory for this page"
        reason = little if isinstance(error, MemoryError) else str(error)
        return self._page("refused_view", 409, reason=reason)

    def _page(self, name: str, status: int = 200, /, **values: Any) -> Response:
        return HTMLResponse(self._pages.get_template(f"{name}.html.j2").render(values), status)


_WRONG = ("gender_error",)  # metrics about captions that name another group than the label's
_WORDS = ("object", "word")  # parts whose name contains a word of the captions
_DESCRIPTIONS = ("concept", "class")  # parts named after what captions say of persons


def images_link(row: Row, result: Result) -> str:
    """The address of the images behind a number; empty if the number has no images."""
    kinds = _DESCRIPTIONS if row.metric == "descriptions" else ()
    groups = mapping_in(result.facts.config, "attribute").get("groups")
    names = tuple(map(str, groups)) if isinstance(groups, list) else ()
    filters = _filters(row.part, names, kinds)
    if filters is None:
        return ""
    if row.metric in _WRONG:
        filters = {**filters, "names": "wrong"}
    return View(f"/run/{result.run_id}/images", {}).link(**filters)


def _filters(
    part: str, groups: tuple[str, ...], kinds: tuple[str, ...] = ()
) -> dict[str, str] | None:
    """The filters that show only the images of a part, or None if the part has no images.

    Example:
        >>> _filters("a_to_t:female:stop sign", ("male", "female"))
        {'group': 'female', 'word': 'stop sign'}
        >>> _filters("model:paired", ("male", "female")), _filters("ece:model", ("male", "female"))
        ({'part': 'model'}, None)
        >>> _filters("concept:young:female", ("male", "female"), ("concept", "class"))
        {'group': 'female', 'concept': 'young'}
    """
    plain = part.removesuffix(":paired")
    if plain in SUMS:
        return {} if plain == "score" else {"part": plain}
    if part in HEADLINES:
        return {}
    pieces = part.split(":")
    group = [piece for piece in pieces if piece in groups]
    others = [piece for piece in pieces[1:] if piece not in groups]
    filters = {"group": group[0]} if group else {}
    of_pair = bool(direction_of(part) and group)
    if len(others) == 1 and (of_pair or pieces[0] in _WORDS):
        filters["word"] = others[0]
    if len(others) == 1 and pieces[0] in kinds:
        filters[pieces[0]] = others[0]
    return filters or None
