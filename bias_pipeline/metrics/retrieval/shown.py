"""The pictures that the least and the most fair queries retrieve first, where they may be shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.metrics.retrieval.ranked import Ranked
from bias_pipeline.metrics.retrieval.seen import Seen
from bias_pipeline.vision.people import Crop, look
from bias_pipeline.vision.thumbnails import thumbnail

RETRIEVED = "retrieved"  # the table's name
ENDS = 4  # queries of the least fair, and of the most
FIRST = 6  # pictures of each


def retrieved_lines(
    lines: Sequence[Mapping[str, object]],
    names: Sequence[str],
    ranked: Ranked,
    seen: Seen,
    crop: Crop,
) -> list[dict[str, object]]:
    """A line a picture: concept, place from 1 on, image id, group, and the picture as it was seen.

    The least fair first. The picture is base64 of a small JPEG, see
    :func:`~bias_pipeline.vision.thumbnails.thumbnail`; empty where the data set does not say that
    its pictures may be shown (:attr:`~bias_pipeline.corpus.corpus.Corpus.shown_under`).

    Args:
        lines: of each concept, the least fair first.
        names: of the concepts, in the order of the rankings.
        ranked: of the first seed.
        seen: whose pictures and groups.
        crop: what of a picture the encoder saw.
    """
    chosen = [*lines[:ENDS], *lines[ENDS:][-ENDS:]]
    places = {name: number for number, name in enumerate(names)}
    return [
        {
            "concept": line["concept"],
            "place": place,
            "image": seen.corpus.ids[row],
            "group": seen.names[seen.codes[row]],
            "picture": _picture(seen.corpus, row, crop),
        }
        for line in chosen
        for place, row in enumerate(_first(ranked, places[str(line["concept"])]), start=1)
    ]


def _first(ranked: Ranked, query: int) -> list[int]:
    found: list[int] = ranked.images[query, : min(FIRST, ranked.k)].tolist()
    return found


def _picture(corpus: Corpus, row: int, crop: Crop) -> str:
    if not corpus.shown_under or corpus.pictures is None:
        return ""
    return thumbnail(look(corpus.pictures, row, crop))
