"""The report's sections of quality against bias."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bias_pipeline.analysis.pareto import Front, fronts, listed
from bias_pipeline.report.figures import scatter
from bias_pipeline.report.sections import MOST_DRAWN
from bias_pipeline.report.sheets import Cell, Number, Section, Sheet
from bias_pipeline.report.tables import headline_name
from bias_pipeline.results.store import Result
from bias_pipeline.stats.bootstrap import Draws


def front_sections(
    results: Sequence[Result], draws: Mapping[str, Mapping[str, Draws]]
) -> Iterable[Section]:
    """One section for each measure of quality and headline of bias."""
    for front in fronts(results, draws):
        first = front.places[0]
        quality, bias = front.settings
        names = (headline_name(first.quality, quality), headline_name(first.bias, bias))
        title = f"{names[0]} and {names[1]}, {first.bias.attribute}, {first.bias.dataset}"
        pairs = [(place.quality, place.bias) for place in front.places]
        yield Section(
            title=title,
            texts=[f"{front.verdict()}."],
            figures=[scatter(pairs, title, names)] if len(pairs) <= MOST_DRAWN else [],
            sheets=[_places(front, names)],
            metrics=[first.quality.metric, first.bias.metric],
            chapter="Quality against bias",
        )


def _places(front: Front, names: Sequence[str]) -> Sheet:
    lines: list[list[Cell]] = [
        [
            place.bias.captioner,
            Number.of(place.quality),
            Number.of(place.bias),
            listed(place.beaten_by) or None,
            Number(place.share, fraction=True, digits=0),
        ]
        for place in front.places
    ]
    head = ["captioner", *names, "beaten by", "not beaten, share of resamplings of images"]
    return Sheet("The best first; beaten: as good, as fair and better in one of them", head, lines)
