"""The pages of ``browse`` about images: a page for a number, and a page for one image."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

import anyio.to_thread
import numpy as np
import pyarrow as pa
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.errors import BiasPipelineError
from bias_pipeline.people.image_scores import ImageScores, guesses_of
from bias_pipeline.people.web.application import number_in
from bias_pipeline.people.web.captions_behind import CaptionsBehind, Library
from bias_pipeline.people.web.evidence import (
    FILTERS,
    GUESSES,
    MOST_GUESSES,
    NAMES,
    ORDERS,
    SUMS,
    Evidence,
    ShownImages,
    predictions_path,
    read_word_votes,
    scores_of,
)
from bias_pipeline.people.web.run_folder import RunFolder
from bias_pipeline.people.web.shared_reads import SharedReads, wait_for_read
from bias_pipeline.people.web.views import Page, View
from bias_pipeline.results.parquet import EXCLUSIVE
from bias_pipeline.results.rows import Result

_KNOWN = ("part", *FILTERS, "beside", "sort", "page")
_THREADS = 4  # pages and pictures that are made at a time
_MOST_OBJECTS = 300  # most objects in a list to choose from
Render = Callable[..., Response]
Find = Callable[[str], Result]


class ImagePages:
    def __init__(self, folder: RunFolder, library: Library, find: Find, render: Render) -> None:
        self._folder, self._library = folder, library
        self._find, self._render = find, render
        self._scores: SharedReads[ImageScores | None] = SharedReads(
            lambda scores: 0 if scores is None else len(scores.ids), MOST_GUESSES
        )
        self._threads = anyio.CapacityLimiter(_THREADS)
        pa.array([0]).to_numpy()  # pyarrow loads pandas now, not while the first page waits

    @property
    def routes(self) -> list[Route]:
        return [
            Route("/run/{run}/images", self.images),
            Route("/run/{run}/image/{row}", self.image),
            Route("/picture/{run}/{row}", self.picture),
            Route("/thumbnail/{run}/{row}", self.picture),
        ]

    def prepare(self, result: Result) -> tuple[Future[ImageScores | None], Future[CaptionsBehind]]:
        """Begin to read the data for the pages of a run's images, so that nobody must wait."""
        key = (result.run_id, (result.facts.files or {}).get(EXCLUSIVE))
        scores = self._scores.start(key, partial(self._read_scores, result))
        return scores, self._library.start(result)

    def _read_scores(self, result: Result) -> ImageScores | None:
        """The guesses of a run, added up by image and sorted in the order of the first view."""
        scores = scores_of(result, self._folder.store.root)
        Evidence(result, scores, None).places(View("", {}))
        return scores

    async def _evidence(self, result: Result) -> tuple[Evidence, str]:
        """The known facts on a run's images, and why guesses are not shown, if they are not."""
        reads, fault = self.prepare(result), ""
        scores: ImageScores | None = None
        try:
            scores = await wait_for_read(reads[0], "the guesses of this run")
        except BiasPipelineError as error:
            fault = str(error)
        try:
            captions = await wait_for_read(reads[1], "the captions of this run")
        except BiasPipelineError as error:
            return Evidence(result, scores, None, str(error)), fault
        return Evidence(result, scores, captions), fault

    async def _in_thread(self, page: Callable[..., Response], *values: Any) -> Response:
        return await anyio.to_thread.run_sync(partial(page, *values), limiter=self._threads)

    async def _page(self, request: Request, page: Callable[..., Response]) -> Response:
        """A page on the images of a run, and of a second run if runs are compared."""
        result = self._find(request.path_params["run"])
        view = View.from_query(f"/run/{result.run_id}/images", request.query_params, _KNOWN)
        evidence, fault = await self._evidence(result)
        beside = None
        if view["beside"]:
            beside, _ = await self._evidence(self._find(view["beside"]))
        return await self._in_thread(page, view, evidence, fault, beside)

    async def images(self, request: Request) -> Response:
        """The images behind a number, fifty on each page."""
        return await self._page(request, self._images)

    def _images(
        self, view: View, evidence: Evidence, fault: str, beside: Evidence | None
    ) -> Response:
        result = evidence.result
        part = evidence.part(view)
        places = evidence.places(view)
        shares = evidence.shares(part)
        concepts = evidence.concepts(view)
        known = self._shown_images(evidence, part, concepts)
        known_beside = None if beside is None else self._shown_images(beside, part, concepts)
        page = Page(view, len(places), lambda some: known.images(places[some], known_beside))
        captions = evidence.captions
        return self._render(
            "images",
            result=result,
            view=view,
            page=page,
            part=part,
            evidence=evidence,
            fault=fault,
            groups=evidence.groups,
            objects=() if captions is None else captions.objects[:_MOST_OBJECTS],
            concepts=() if captions is None else sorted(captions.concepts.concepts),
            classes=() if captions is None else captions.concepts.classes,
            names=() if captions is None else NAMES,
            guesses=() if evidence.scores is None else GUESSES,
            orders=[name for name in ORDERS if evidence.scores is not None or name == "image"],
            order_words=ORDERS,
            order=view["sort"] or evidence.usual_order(part),
            parts=SUMS if evidence.scores is not None else (),
            others=self._others(result),
            sums=None if shares is None else _sums(shares, places, evidence.value(part)),
            explained=known.word_votes is not None,
        )

    async def image(self, request: Request) -> Response:
        row = number_in(request.path_params["row"])
        return await self._page(request, partial(self._image, row))

    def _image(
        self, row: int, view: View, evidence: Evidence, fault: str, beside: Evidence | None
    ) -> Response:
        result = evidence.result
        places = np.flatnonzero(evidence.rows == row)
        if not len(places) or evidence.captions is None:
            raise HTTPException(404, evidence.reason or "this run has no such image")
        known_beside = None if beside is None else self._shown_images(beside, "score")
        shown = self._shown_images(evidence, "score").images(places, known_beside)[0]
        path = None if fault else predictions_path(result, self._folder.store.root)
        return self._render(
            "image",
            result=result,
            image=shown,
            groups=evidence.groups,
            fault=fault,
            others=self._others(result),
            beside=view["beside"],
            guesses=[] if path is None else guesses_of(path, shown.id),
        )

    async def picture(self, request: Request) -> Response:
        """A picture as a JPEG; ``/thumbnail`` gives a small JPEG."""
        result = self._find(request.path_params["run"])
        row = number_in(request.path_params["row"])
        small = request.url.path.startswith("/thumbnail")
        try:
            captions = await wait_for_read(self._library.start(result), "the captions of this run")
            return await self._in_thread(_picture, captions, row, small)
        except BiasPipelineError as error:
            raise HTTPException(404, str(error)) from error

    def _shown_images(
        self, evidence: Evidence, part: str, concepts: frozenset[str] = frozenset()
    ) -> ShownImages:
        words = read_word_votes(self._folder.store.root, evidence.result.run_id)
        return ShownImages(evidence, part, words, concepts)

    def _others(self, result: Result) -> list[Result]:
        """Runs of the same metric on other captions of the same data set."""
        names = ("metric", "attribute", "dataset")
        row = result.rows[0]
        return [
            other
            for other in self._folder.index.runs.values()
            if other.run_id != result.run_id
            and other.rows[0].captioner != row.captioner
            and all(getattr(other.rows[0], name) == getattr(row, name) for name in names)
        ]


def _picture(captions: CaptionsBehind, row: int, small: bool) -> Response:
    if row >= len(captions.corpus):
        raise HTTPException(404, "there is no such picture")
    return Response(captions.picture(row, small=small), media_type="image/jpeg")


def _sums(shares: Float64Array, places: IntArray, value: float) -> dict[str, Any]:
    """The sums over shown and over all images, and whether the second is the run's number."""
    total = float(np.nansum(shares))
    return {
        "shown": float(np.nansum(shares[places])),
        "total": total,
        "value": value,
        "whole": math.isclose(total, value, abs_tol=1e-6),
        "largest": float(np.nanmax(np.abs(shares), initial=0.0)),
    }
