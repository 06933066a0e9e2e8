"""The first pictures of the least and the most fair queries, if they may be shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.metrics.retrieval.ranked import Ranked
from bias_pipeline.metrics.retrieval.retrieval_view import RetrievalView
from bias_pipeline.vision.drawn import thumbnail
from bias_pipeline.vision.people import Crop, crop_person

RETRIEVED = "retrieved"  # the table's name
ENDS = 4  # queries of the least fair, and of the most
FIRST = 6  # pictures of each


def retrieved_lines(
    lines: Sequence[Mapping[str, object]],
    names: Sequence[str],
    ranked: Ranked,
    view: RetrievalView,
    crop: Crop,
) -> list[dict[str, object]]:
    """A line a picture: concept, place from 1 on, image id, group, and the encoder's picture.

    The least fair first. The picture is base64 of a small JPEG, see
    :func:`~bias_pipeline.vision.drawn.thumbnail`; empty if the data set does not allow
    showing its pictures (:attr:`~bias_pipeline.corpus.corpus.Corpus.shown_under`).

    Args:
        lines: of each concept, the least fair first.
        names: of the concepts, in the order of the rankings.
        ranked: of the first seed.
        view: whose pictures and groups.
        crop: the part of a picture that the encoder used.
    """
    chosen = [*lines[:ENDS], *lines[ENDS:][-ENDS:]]
    places = {name: number for number, name in enumerate(names)}
    return [
        {
            "concept": line["concept"],
            "place": place,
            "image": view.corpus.ids[row],
            "group": view.names[view.codes[row]],
            "picture": _picture(view.corpus, row, crop),
        }
        for line in chosen
        for place, row in enumerate(_first(ranked, places[str(line["concept"])]), start=1)
    ]


def _first(ranked: Ranked, query: int) -> list[int]:
    rows: list[int] = ranked.images[query, : min(FIRST, ranked.k)].tolist()
    return rows


def _picture(corpus: Corpus, row: int, crop: Crop) -> str:
    if not corpus.shown_under or corpus.pictures is None:
        return ""
    return thumbnail(crop_person(corpus.pictures, row, crop))
