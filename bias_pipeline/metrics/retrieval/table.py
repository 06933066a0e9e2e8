"""What each query retrieves: a line a query, and in a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bias_pipeline.metrics.functional.fair_ranker import FairRanker
from bias_pipeline.metrics.functional.group_counts import standardised
from bias_pipeline.metrics.parts import PartName
from bias_pipeline.metrics.retrieval.concepts import Concepts
from bias_pipeline.metrics.retrieval.permuted import mean_excess
from bias_pipeline.metrics.retrieval.ranked import Ranked
from bias_pipeline.metrics.retrieval.skew import Skews
from bias_pipeline.stats.bootstrap import Estimate
from bias_pipeline.stats.compare import holm

_SHOWN = 3  # queries of either end that a note names
_ALPHA = 0.05


def lines_of(
    found: Mapping[PartName, Estimate],
    ranked: Sequence[Ranked],
    groups: Sequence[str],
    null: FairRanker,
    asked: Concepts,
    skews: Skews,
) -> list[dict[str, object]]:
    """A line a concept, the least alike first: entropy, null, p, skews, and whom it retrieves.

    ``over_represented`` is the group that is furthest above its share of the images retrieved from,
    in standard deviations of a blind draw, and ``excess`` by how much, as a share of the top; they
    mean something where p does.

    Args:
        found: the estimates, those of concepts among them.
        ranked: of each seed.
        groups: the K names.
        null: what a ranker has to whom groups are nothing.
        asked: the queries.
        skews: how they are read.
    """
    shares = np.mean([own.shares for own in ranked], axis=0)  # (C, K)
    beside = _means(ranked, skews)
    too_many = _over_represented(ranked, groups)
    adjusted = holm([own.p_value for name, own in found.items() if name.object])
    lines = [
        {
            "concept": name.object,
            "query": asked[name.object],
            "fairness": own.value,
            "ci_low": max(own.ci_low, 0.0),
            "ci_high": min(own.ci_high, 1.0),
            "null": null.expected,
            "below_null": null.expected - own.value,
            "p_value": own.p_value,
            "p_holm": p_holm,
            "over_represented": group,
            "excess": above,
            **{f"share:{group}": share for group, share in zip(groups, line, strict=True)},
            **more,
        }
        for (name, own), p_holm, (group, above), line, more in zip(
            ((name, own) for name, own in found.items() if name.object),
            adjusted,
            too_many,
            shares.tolist(),
            beside,
            strict=True,
        )
    ]
    return sorted(lines, key=lambda line: (line["fairness"], line["concept"]))


def ends_of(lines: Sequence[Mapping[str, object]]) -> str:
    """The least and, of the others, the most alike queries, in a sentence.

    Args:
        lines: see :func:`lines_of`.
    """
    most = lines[_SHOWN:][: -_SHOWN - 1 : -1]
    least = f"least alike: {_named(lines[:_SHOWN])}"
    return f"{least}; most alike: {_named(most)}" if most else least


def leanings_of(lines: Sequence[Mapping[str, object]]) -> str:
    """How many queries retrieve too many of a group, and which by most, in a sentence.

    Args:
        lines: see :func:`lines_of`.
    """
    some = [line for line in lines if float(str(line["p_holm"])) < _ALPHA]
    if not some:
        return f"of {len(lines)} queries none retrieves more of a group than chance does (Holm)"
    first = sorted(some, key=lambda line: -float(str(line["excess"])))[:_SHOWN]
    named = ", ".join(
        f"{line['concept']} ({line['over_represented']} {100 * float(str(line['excess'])):+.0f})"
        for line in first
    )
    return (
        f"{len(some)} of {len(lines)} queries retrieve more of a group than chance does (exact "
        f"counts, Holm), in points above its share of all pictures: {named}"
    )


def _over_represented(ranked: Sequence[Ranked], groups: Sequence[str]) -> list[tuple[str, float]]:
    """Of each query the group of which it retrieves too many, and how many, as a share."""
    above = mean_excess(ranked)  # (C, K)
    sizes = np.sum([own.sizes for own in ranked], axis=0)
    first = standardised(above, sizes / sizes.sum()).argmax(axis=1)
    totals = np.mean([own.counted.sum(axis=1) for own in ranked], axis=0)
    return [
        (groups[group], float(line[group] / total))
        for group, line, total in zip(first.tolist(), above, totals.tolist(), strict=True)
    ]


def _named(lines: Sequence[Mapping[str, object]]) -> str:
    """Concepts, each with the group it retrieves most."""
    told = []
    for line in lines:
        shares = {key[6:]: own for key, own in line.items() if key.startswith("share:")}
        group = max(shares, key=lambda name: float(str(shares[name])))
        told.append(f"{line['concept']} ({float(str(shares[group])):.0%} {group})")
    return ", ".join(told)


def _means(ranked: Sequence[Ranked], skews: Skews) -> list[dict[str, float]]:
    """The skews of each query, the mean over seeds."""
    seeds = [skews.values(own, np.ones((1, own.images.shape[1]))) for own in ranked]
    return [
        {str(name): float(np.mean([own[name][0, query] for own in seeds])) for name in seeds[0]}
        for query in range(len(ranked[0].images))
    ]
