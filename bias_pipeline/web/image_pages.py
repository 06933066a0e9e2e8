"""The pages of ``browse`` about images: those behind a number, and one with all that is known."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import anyio.to_thread
import numpy as np
import pyarrow as pa
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.errors import BiasPipelineError, DataError
from bias_pipeline.results.image_scores import guesses_of
from bias_pipeline.results.rows import Result
from bias_pipeline.web.captions_behind import Library
from bias_pipeline.web.evidence import (
    GUESSES,
    NAMES,
    ORDERS,
    SUMS,
    Evidence,
    gather_evidence,
    predictions_path,
    scores_of,
)
from bias_pipeline.web.run_folder import RunFolder
from bias_pipeline.web.shown_images import ShownImages, WordVotes, read_word_votes
from bias_pipeline.web.views import Page, View

_KNOWN = ("part", "group", "names", "guess", "object", "word", "beside", "sort", "page")
_MOST_CACHED = 8  # runs whose guesses stay added up
_MOST_OBJECTS = 300  # of a list to choose from
Render = Callable[..., Response]
Find = Callable[[str], Result]


class ImagePages:
    """Pages about the images of runs.

    Args:
        folder: the runs.
        library: the captions behind them.
        find: the run of a name; raises if there is none.
        render: makes a page of a template.
    """

    def __init__(self, folder: RunFolder, library: Library, find: Find, render: Render) -> None:
        self._folder, self._library = folder, library
        self._find, self._render = find, render
        self._scores: dict[str, Any] = {}
        self._lock = threading.Lock()
        pa.array([0]).to_numpy()  # pyarrow loads pandas now, not while the first page waits

    @property
    def routes(self) -> list[Route]:
        """Their addresses."""
        return [
            Route("/run/{run}/images", self.images),
            Route("/run/{run}/image/{row:int}", self.image),
            Route("/picture/{run}/{row:int}", self.picture),
            Route("/thumbnail/{run}/{row:int}", self.picture),
        ]

    def prepare(self, result: Result) -> None:
        """Add up what the page of its images shows first, so that the page is there at once."""
        evidence, _ = self._evidence(result)
        evidence.places(View.of("", QueryParams(), _KNOWN))
        if evidence.captions is not None:
            _ = evidence.named, evidence.captions.objects

    async def images(self, request: Request) -> Response:
        """The images behind a number, fifty a page."""
        return await anyio.to_thread.run_sync(self._images, request)

    def _images(self, request: Request) -> Response:
        result = self._find(request.path_params["run"])
        view = View.of(f"/run/{result.run_id}/images", request.query_params, _KNOWN)
        evidence, fault = self._evidence(result)
        other = self._find(view["beside"]) if view["beside"] else None
        beside = None if other is None else self._evidence(other)[0]
        part = evidence.part(view)
        places = evidence.places(view)
        shares = evidence.shares(part)
        known = ShownImages(evidence, part, self._words(result))
        known_beside = (
            None if beside is None else ShownImages(beside, part, self._words(beside.result))
        )
        page = Page(
            view,
            len(places),
            lambda first, last: known.images(places[first:last], known_beside),
        )
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
        """All that is known of an image."""
        return await anyio.to_thread.run_sync(self._image, request)

    def _image(self, request: Request) -> Response:
        result = self._find(request.path_params["run"])
        evidence, fault = self._evidence(result)
        view = View.of("", request.query_params, ("beside",))
        other = self._find(view["beside"]) if view["beside"] else None
        places = np.flatnonzero(evidence.rows == request.path_params["row"])
        if not len(places) or evidence.captions is None:
            raise HTTPException(404, evidence.reason or "this run has no such image")
        beside = None
        if other is not None:
            beside = ShownImages(self._evidence(other)[0], "score", self._words(other))
        shown = ShownImages(evidence, "score", self._words(result)).images(places, beside)[0]
        return self._render(
            "image",
            result=result,
            image=shown,
            groups=evidence.groups,
            fault=fault,
            others=self._others(result),
            beside=view["beside"],
            guesses=[] if fault else self._guesses(result, shown.id),
        )

    async def picture(self, request: Request) -> Response:
        """A picture as a JPEG; ``/thumbnail`` is a small one."""
        result, row = self._find(request.path_params["run"]), request.path_params["row"]
        captions = await anyio.to_thread.run_sync(self._library.of, result)
        if isinstance(captions, str) or row >= len(captions.corpus):
            raise HTTPException(404, "there is no such picture")
        small = request.url.path.startswith("/thumbnail")
        try:
            content = await anyio.to_thread.run_sync(lambda: captions.picture(row, small=small))
        except BiasPipelineError as error:
            raise HTTPException(404, str(error)) from error
        return Response(content, media_type="image/jpeg")

    def _evidence(self, result: Result) -> tuple[Evidence, str]:
        """What is known of a run's images, and a sentence on what is damaged."""
        fault = ""
        with self._lock:
            if result.run_id not in self._scores:
                try:
                    scores = scores_of(result, self._folder.store.root)
                except DataError as error:
                    scores, fault = None, str(error)
                else:
                    entries = [*self._scores.items(), (result.run_id, scores)]
                    self._scores = dict(entries[-_MOST_CACHED:])
            else:
                scores = self._scores[result.run_id]
        return gather_evidence(result, scores, self._library.of(result)), fault

    def _words(self, result: Result) -> WordVotes | None:
        return read_word_votes(self._folder.store.root, result.run_id)

    def _guesses(self, result: Result, image: str) -> list[dict[str, Any]]:
        path = predictions_path(result, self._folder.store.root)
        return guesses_of(path, image) if path is not None else []

    def _others(self, result: Result) -> list[Result]:
        """Runs of the same metric on other captions of the same data set."""
        names = ("metric", "attribute", "dataset")
        row = result.rows[0]
        return [
            other
            for other in self._folder.runs.values()
            if other.run_id != result.run_id
            and other.rows[0].captioner != row.captioner
            and all(getattr(other.rows[0], name) == getattr(row, name) for name in names)
        ]


def _sums(shares: Float64Array, places: IntArray, value: float) -> dict[str, Any]:
    """What the images that are shown and all together add, and whether that is the run's number."""
    total = float(np.nansum(shares))
    return {
        "shown": float(np.nansum(shares[places])),
        "total": total,
        "value": value,
        "whole": math.isclose(total, value, abs_tol=1e-6),
        "largest": float(np.nanmax(np.abs(shares), initial=0.0)),
    }
