"""The report's sections of quality against bias."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bias_pipeline.analysis.pareto import Front, fronts, joined_names
from bias_pipeline.report.figures import scatter
from bias_pipeline.report.report_tables import Cell, Section, Sheet, SheetNumber
from bias_pipeline.report.sections import MOST_DRAWN
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
            SheetNumber.of(place.quality),
            SheetNumber.of(place.bias),
            joined_names(place.beaten_by) or None,
            SheetNumber(place.share, fraction=True, digits=0),
        ]
        for place in front.places
    ]
    head = ["captioner", *names, "beaten by", "share of resamplings in which nobody beats it"]
    return Sheet(
        "Best first; beaten by a captioner as good and as fair, and better on one", head, lines
    )
