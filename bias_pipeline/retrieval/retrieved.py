"""What each query retrieves: a table with a line a query, sentences, and pictures if allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.data.photos import thumbnail
from bias_pipeline.data.regions import Crop, crop_person
from bias_pipeline.errors import counted
from bias_pipeline.metrics.value_names import PartName
from bias_pipeline.retrieval.estimates import Skews, mean_excess
from bias_pipeline.retrieval.formulas import standardised
from bias_pipeline.retrieval.ranked import Ranked
from bias_pipeline.retrieval.retrieval_view import Concepts, RetrievalView
from bias_pipeline.retrieval.skew import FairRanker
from bias_pipeline.stats.bootstrap import Estimate
from bias_pipeline.stats.compare import holm

_SHOWN = 3  # queries of either end that a note names
_ALPHA = 0.05


def lines_of(
    estimates: Mapping[PartName, Estimate],
    ranked: Sequence[Ranked],
    groups: Sequence[str],
    null: FairRanker,
    queries: Concepts,
    skews: Skews,
) -> list[dict[str, object]]:
    """A line a concept, the least fair first: entropy, null, p, skews, and groups retrieved.

    ``over_represented`` is the group that is furthest above its share of the images retrieved from,
    in standard deviations of a random draw, and ``excess`` by how much, as a share of the top; read
    them only if p is small.
    """
    shares = np.mean([ranking.shares for ranking in ranked], axis=0)  # (C, K)
    beside = _means(ranked, skews)
    too_many = _over_represented(ranked, groups)
    adjusted = holm([estimate.p_value for name, estimate in estimates.items() if name.object])
    lines = [
        {
            "concept": name.object,
            "query": queries[name.object],
            "fairness": estimate.value,
            "ci_low": max(estimate.ci_low, 0.0),
            "ci_high": min(estimate.ci_high, 1.0),
            "null": null.expected,
            "below_null": null.expected - estimate.value,
            "p_value": estimate.p_value,
            "p_holm": p_holm,
            "over_represented": group,
            "excess": above,
            **{f"share:{group}": share for group, share in zip(groups, line, strict=True)},
            **more,
        }
        for (name, estimate), p_holm, (group, above), line, more in zip(
            ((name, estimate) for name, estimate in estimates.items() if name.object),
            adjusted,
            too_many,
            shares.tolist(),
            beside,
            strict=True,
        )
    ]
    return sorted(lines, key=lambda line: (line["fairness"], line["concept"]))


def ends_of(lines: Sequence[Mapping[str, object]]) -> str:
    """The least and the most fair queries, in a sentence."""
    most = lines[_SHOWN:][: -_SHOWN - 1 : -1]
    least = f"least alike: {_named(lines[:_SHOWN])}"
    return f"{least}; most alike: {_named(most)}" if most else least


def leanings_of(lines: Sequence[Mapping[str, object]]) -> str:
    """How many queries retrieve too many of a group, and the most extreme ones, in a sentence."""
    some = [line for line in lines if float(str(line["p_holm"])) < _ALPHA]
    if not some:
        return (
            f"of {counted(len(lines), 'queries')} none retrieves more of a group than chance does "
            "(Holm)"
        )
    first = sorted(some, key=lambda line: -float(str(line["excess"])))[:_SHOWN]
    named = ", ".join(
        f"{line['concept']} ({line['over_represented']} {100 * float(str(line['excess'])):+.0f})"
        for line in first
    )
    return (
        f"{counted(len(some), f'of {len(lines)} queries retrieve')} more of a group than chance "
        f"does (exact counts, Holm), in points above its share of all pictures: {named}"
    )


def _over_represented(ranked: Sequence[Ranked], groups: Sequence[str]) -> list[tuple[str, float]]:
    """For each query the most over-represented group, and its excess as a share of the top."""
    above = mean_excess(ranked)  # (C, K)
    sizes = np.sum([ranking.sizes for ranking in ranked], axis=0)
    first = standardised(above, sizes / sizes.sum()).argmax(axis=1)
    totals = np.mean([ranking.counted.sum(axis=1) for ranking in ranked], axis=0)
    return [
        (groups[group], float(line[group] / total))
        for group, line, total in zip(first.tolist(), above, totals.tolist(), strict=True)
    ]


def _named(lines: Sequence[Mapping[str, object]]) -> str:
    """Concepts, each with the group it retrieves most."""
    named = []
    for line in lines:
        shares = {key[6:]: share for key, share in line.items() if key.startswith("share:")}
        group = max(shares, key=lambda name: float(str(shares[name])))
        named.append(f"{line['concept']} ({float(str(shares[group])):.0%} {group})")
    return ", ".join(named)


def _means(ranked: Sequence[Ranked], skews: Skews) -> list[dict[str, float]]:
    """The skews of each query, the mean over seeds."""
    seeds = [skews.values(ranking, np.ones((1, ranking.images.shape[1]))) for ranking in ranked]
    return [
        {
            str(name): float(np.mean([of_seed[name][0, query] for of_seed in seeds]))
            for name in seeds[0]
        }
        for query in range(len(ranked[0].images))
    ]


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
    :func:`~bias_pipeline.data.photos.thumbnail`; empty if the data set does not allow
    showing its pictures (:attr:`~bias_pipeline.corpus.corpus.Corpus.shown_under`).
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
