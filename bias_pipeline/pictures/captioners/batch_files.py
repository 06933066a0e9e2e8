"""Files of a batch: all requests to a service at once, and its answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bias_pipeline.corpus.image_ids import canonical_id, first_ids, short_id
from bias_pipeline.data.chat_answers import (
    Answer,
    answer_of_row,
    image_of_request,
    request_id,
)
from bias_pipeline.data.photos import UnreadableError, fault_of, image_id
from bias_pipeline.data.tables import open_rows
from bias_pipeline.errors import DataError, UsageError, inflect
from bias_pipeline.io.files import write_file
from bias_pipeline.io.terminal import warn
from bias_pipeline.models.blocks import NOT_YET
from bias_pipeline.models.sampling import Decoding
from bias_pipeline.pictures.captioners.chat_server import AnswerCounts, AnsweredCaptions, ChatServer

MOST_REQUESTS, MOST_BYTES = 50_000, 190_000_000  # the most that services take in one file
WRONG_SHAPE = "an answer in another shape than chat completions"
_WHAT = "answers of a batch: a line with custom_id and response for each request"


def requests_of(
    image: str, picture: str, server: ChatServer, decoding: Decoding
) -> Iterator[bytes]:
    """A line with the request for each wanted caption of a photo."""
    for sample in range(decoding.n):
        body = server.question(picture, decoding, sample)
        request = {
            "custom_id": request_id(image, sample, decoding.n),
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": {**body, "max_completion_tokens": decoding.max_new_tokens},
        }
        yield json.dumps(request, ensure_ascii=False).encode() + b"\n"


def write_requests(requests: Iterable[bytes], path: Path) -> dict[Path, int]:
    """Write requests into as many files as services need; the second file is ``NAME_2``."""
    written: dict[Path, int] = {}
    lines: list[bytes] = []

    def write() -> None:
        name = path.with_stem(f"{path.stem}_{len(written) + 1}") if written else path
        write_file(name, b"".join(lines), sync=True)
        written[name] = len(lines)
        lines.clear()

    size = 0
    for line in requests:
        if lines and (len(lines) == MOST_REQUESTS or size + len(line) > MOST_BYTES):
            write()
            size = 0
        lines.append(line)
        size += len(line)
    if lines:
        write()
    return written


def check_ids(images: Iterable[str]) -> None:
    """Refuse image ids that end like ids of requests (``#1``) if several captions are wanted."""
    unclear = next((i for i in images if image_of_request(i)[1] is not None), None)
    if unclear is not None:
        raise UsageError(
            f"image {unclear}: its id ends like a request for one of several captions (#1); rename "
            "the file"
        )


class BatchAnswers:
    """Finds the captions of photos in the answers of a batch."""

    def __init__(self, paths: Sequence[Path], images: Mapping[str, Path], n: int) -> None:
        self.counts = AnswerCounts()  # of answers that are not whole captions
        self._answers: dict[str, dict[int, Answer]] = {}
        self._n = n
        self._repeated: set[str] = set()  # images with two different answers
        others: set[str] = set()
        for path in paths:
            for image, answer in _answers(path):
                if image in images:
                    # A later answer replaces a failure
                    of_image, sample = self._answers.setdefault(image, {}), answer.sample or 0
                    if sample not in of_image or of_image[sample].absent:
                        of_image[sample] = answer
                    elif not answer.absent and answer.captions != of_image[sample].captions:
                        self._repeated.add(image)
                else:
                    others.add(image)
        named = ", ".join(map(str, paths))
        if others and not self._answers:
            raise DataError(
                f"{named}: no answer is about a photo; they are about {first_ids(others)}"
            )
        if others:
            warn(
                f"{named}: {inflect(len(others), 'images are')} not among the photos: "
                f"{first_ids(others)}"
            )

        if self._repeated:
            warn(
                f"{named}: {inflect(len(self._repeated), 'images have')} two different answers; "
                f"the first is taken: {first_ids(self._repeated)}"
            )

    def read(self, path: Path) -> AnsweredCaptions:
        image = image_id(path.name)
        answers = self._answers.get(image, {})
        if any(sample not in answers for sample in range(self._n)):
            fault = fault_of(path)
            raise UnreadableError(fault or NOT_YET, lasting=fault is not None)
        return self.counts.captions(image, [answers[sample] for sample in range(self._n)])

    def sentences(self) -> list[str]:
        return self.counts.sentences()


def _answers(path: Path) -> Iterator[tuple[str, Answer]]:
    """The image and the answer of each row of a file."""
    rows = open_rows(path, what=_WHAT)
    for number, row in rows.items:
        if "body" in row and "response" not in row:
            raise DataError(f"{path}: holds the requests of a batch; name the file of its answers")
        written, sample = image_of_request(rows.value(number, row, "custom_id"))
        try:
            image = short_id(canonical_id(written))
        except DataError as error:
            rows.refuse(number, f"'custom_id': {error}")
        try:
            answer = answer_of_row(image, row, path, f"{rows.unit} {number}")
        except DataError:  # a service's fault, which says nothing about the photo
            answer = Answer(image, absent=WRONG_SHAPE)
        yield image, replace(answer, sample=sample)
