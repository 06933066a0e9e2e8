"""Declines measures whether a captioner refuses to describe one group more often."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.corpus.corpus import BLANK_WARNING, Corpus
from bias_pipeline.metrics.base import MetricInfo
from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.metrics.counting.gold import CorrectedByGold, Tables
from bias_pipeline.metrics.counting.numbers import (
    CountedNumber,
    LargestGap,
    Numbers,
    Sums,
    Tally,
    counted_share,
)
from bias_pipeline.metrics.counting.sides import one_hot
from bias_pipeline.metrics.counting.true_labels import CaptionOutcomes
from bias_pipeline.metrics.value_names import MODEL, SCORE, PartName
from bias_pipeline.stats.compare import merged_p
from bias_pipeline.stats.shares import same_share_p
from bias_pipeline.text.mentions import find_hedged
from bias_pipeline.text.scored_text import declined_images

OVERALL = PartName("overall")


class Declines(CorrectedByGold):
    """Gap between groups in the share of images that a captioner declines to describe.

    A caption declines if it has a phrase from ``text/phrases.csv`` ("I'm sorry", "I can't
    identify"), or if it is an error message, a prompt, a request or a list of tags. ``group:NAME``
    is the declined share of a group's images, and ``overall`` that of all labelled images.
    ``hedged:NAME`` is the share of captions that name a group after a hedge ("appears to be a
    man"). The p value of ``score`` comes from Fisher's exact test, or from permuted labels if there
    are more than two groups.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="declines",
        title="Declined captions",
        version=1,
        unit="fraction",
        range=(0.0, 1.0),
        neutral=0.0,
        direction="lower is fairer; at 0, the captioner declines equally often for all groups",
        family="counting",
        streams=True,
        question="declining",
        ours="the metric is",
        says={"score": "it declines to describe one group more often than another"},
    )

    def check(self, view: CorpusView) -> None:
        """Raise an error for fewer than two groups. A captioner may decline every image."""
        view.check_compared(view.codes[_answered_images(view)])

    def rests_on_names(self, part: PartName) -> bool:
        """False for every number, since declining captions name nobody."""
        del part
        return False

    def tally(self, view: CorpusView) -> Tally:
        declined, answered = declined_images(view.corpus), _answered_images(view)
        described = answered & ~declined
        unsure = np.zeros(len(view.corpus), bool)
        unsure[view.images("model")[find_hedged(view.corpus.model, view.attribute)]] = True
        counted = {
            "answered": answered,
            "declined": answered & declined,
            "described": described,
            "hedged": described & unsure,
        }
        tables = {
            name: one_hot(np.where(images, view.codes, -1), len(view.groups))
            for name, images in counted.items()
        }
        p_value = same_share_p(
            *(np.asarray(tables[name].sum(axis=0), np.int64) for name in ("declined", "answered"))
        )

        def numbers(sums: Sums) -> Numbers:
            def shares(
                events: str, whole: str, of: BoolArray, what: str = ""
            ) -> dict[PartName, CountedNumber]:
                share = counted_share(sums[events], sums[whole], of)
                return share.by_group(view.groups, what, view.codes)

            return {
                **_numbers(sums["declined"], sums["answered"], view, p_value),
                **shares("hedged", "described", described, "hedged"),
            }

        return Tally(tables, numbers)

    def outcomes(self, view: CorpusView, side: str) -> CaptionOutcomes:
        """The outcome of each caption.

        A caption that declines counts as a refusal, whatever else it says.
        """
        captions = super().outcomes(view, side)
        if side != MODEL.side:
            return captions
        declined = declined_images(view.corpus)
        answering = ~declined[captions.rows]
        refused = np.flatnonzero(declined)
        rows = np.append(captions.rows[answering], refused)
        outcomes = np.append(
            captions.outcomes[answering], np.full(len(refused), len(view.groups) + 2)
        )
        return CaptionOutcomes(rows, outcomes, np.ones(len(rows)))

    def by_true_label(self, tables: Tables, view: CorpusView) -> Numbers:
        of_groups = tables[MODEL][:, : len(view.groups)]
        return _numbers(of_groups[..., -1], of_groups.sum(axis=-1), view)


def _numbers(
    declined: Float64Array, answered: Float64Array, view: CorpusView, p_value: float = math.nan
) -> dict[PartName, CountedNumber | LargestGap]:
    """The shares of answers that decline, among (B, K) answers."""
    images = _answered_images(view)
    groups = counted_share(declined, answered, images).by_group(view.groups, "", view.codes)
    return {
        SCORE: LargestGap(groups=[*groups.values()], images=images, signed=True, p_value=p_value),
        OVERALL: counted_share(declined.sum(axis=1), answered.sum(axis=1), images),
        **groups,
    }


def declines_note(corpus: Corpus, attribute: str) -> str:
    """A note that says how many captions decline in each group, with a test; may be empty."""
    samples = [_counts(sample, attribute) for sample in corpus.each_sample]
    total = np.sum(samples, axis=0)
    declined, answered = total.sum(axis=1).tolist()
    if not declined:
        return ""
    names = corpus.groupings[attribute].names
    shares = ", ".join(
        f"{events} of {captions} ({name})"
        for name, events, captions in zip(names, *total[:, 1:].tolist(), strict=True)
    )
    p_value = merged_p([same_share_p(*counts[:, 1:]) for counts in samples])
    alike = "" if np.isnan(p_value) else f" (test of equal shares: p = {p_value:.2g})"
    share = declined / answered
    done = (
        "they count as absent, and coverage falls"
        if any(sample.declined.any() for sample in corpus.each_sample)
        else "they are scored as captions (text.declined=keep)"
    )
    warning = "warning: " if share > BLANK_WARNING else ""
    return (
        f"{warning}{declined} of {answered} captions ({share:.1%}) decline "
        f"to describe or are errors of a service: {shares}{alike}; {done}"
    )


def _counts(corpus: Corpus, attribute: str) -> IntArray:
    """(2, 1 + K): declining answers and all answers, for images without and with each group."""
    grouping, declined = corpus.groupings[attribute], declined_images(corpus)
    answered = declined.copy()
    answered[corpus.model.image_rows] = True
    group = np.maximum(grouping.codes, -1) + 1
    n_groups = len(grouping.names) + 1
    return np.stack(
        [np.bincount(group[flags], minlength=n_groups) for flags in (declined, answered)]
    )


def _answered_images(view: CorpusView) -> BoolArray:
    """(N,) flags: true for labelled images with a caption or a refusal."""
    return view.labelled & (view.has("model") | declined_images(view.corpus))
