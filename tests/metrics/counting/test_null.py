"""Counting metrics where there is nothing to amplify.

The captioner's caption of an image is drawn from those that people wrote of it (``draw_corpus``),
so it amplifies nothing; in the second design the labels are dealt out over the images anew besides
(``shuffle_labels``), so captions and objects do not go with them either. Tested is how many of the
95 % intervals of 40 data sets cover what is neutral; "too few" is a count that a binomial of 95 %
reaches with a probability below 1 %.

Some readings do not cover it, each for a reason of its own. What is true of them instead is said by
the tests named ``test_..._and_why``; ``docs/counting.md`` repeats it for readers, and
``experiments/null_coverage`` has the same with many more data sets.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import stats

from bias_pipeline.corpus.attribute import Context, TaskVocabulary
from bias_pipeline.corpus.corpus import UNSURE, Corpus, Record
from bias_pipeline.metrics import base
from bias_pipeline.metrics.base import HEADLINES, Number
from bias_pipeline.metrics.catalogue import metric_class, metric_names
from bias_pipeline.metrics.counting.assumed_group import AssumedGroup
from bias_pipeline.metrics.counting.ba_directional import DirectionalBiasAmplification
from bias_pipeline.metrics.counting.ba_mals import BiasAmplificationMALS
from bias_pipeline.metrics.counting.base import CountingMetric
from bias_pipeline.metrics.counting.cooccurrence import Cooccurrence
from bias_pipeline.metrics.counting.differential_fairness import DifferentialFairness
from bias_pipeline.metrics.counting.gender_error import GenderError, GroupAccuracy
from bias_pipeline.metrics.counting.gender_ratio import GenderRatio
from bias_pipeline.metrics.counting.multi_directional import MultiDirectional
from bias_pipeline.metrics.counting.sides import LabelledTaskMetric, counts_of
from bias_pipeline.metrics.functional.amplification import ba_directional
from bias_pipeline.metrics.functional.counts import Counts
from bias_pipeline.run import compose
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate, summary
from tests.corpora import GENDER, make_corpus

DATA_SETS = 40
IMAGES = 200
TOO_RARE = 0.01
NAMES = ("cake", "car", "dog", "kite")
OF_MEN, OF_WOMEN = (0.3, 0.5, 0.35, 0.45), (0.5, 0.25, 0.35, 0.3)  # P(object | group) in images
TOY = TaskVocabulary("toy", {name: [name] for name in NAMES})
FEW = Bootstrap(resamples=60)
DESIGNS = ("drawn", "shuffled")

# As many words for people as for the captioner, and no absolute values: see the tests "and_why".
EACH: Mapping[str, object] = {"labels": "each", "denominator": "named", "exclude_tasks": ()}
SIGNED: Mapping[str, object] = {"absolute": False, "min_support": 20}
COMMON: Mapping[str, object] = {"min_support": 20, "exclude_tasks": ()}
METRICS: Mapping[str, CountingMetric] = {
    "ba_directional": DirectionalBiasAmplification(GENDER, FEW, TOY, **EACH),
    "ba_directional of captions": DirectionalBiasAmplification(
        GENDER, FEW, TOY, groups="captions", **EACH
    ),
    "ba_directional as published": DirectionalBiasAmplification(
        GENDER, FEW, TOY, exclude_tasks=()
    ),
    "ba_mals": BiasAmplificationMALS(GENDER, FEW, TOY, labels="each", exclude_tasks=()),
    "ba_mals of captions": BiasAmplificationMALS(
        GENDER, FEW, TOY, labels="each", groups="captions", exclude_tasks=()
    ),
    "multi_directional": MultiDirectional(GENDER, FEW, TOY, **EACH, **SIGNED),
    "multi_directional of captions": MultiDirectional(
        GENDER, FEW, TOY, groups="captions", **EACH, **SIGNED
    ),
    "multi_directional as published": MultiDirectional(GENDER, FEW, TOY, exclude_tasks=()),
    "differential_fairness": DifferentialFairness(GENDER, FEW, TOY, **COMMON),
    "cooccurrence": Cooccurrence(GENDER, FEW, TOY, **COMMON),
    "gender_error": GenderError(GENDER, FEW, words=None),
    "gender_ratio": GenderRatio(GENDER, FEW, words=None),
    "group_accuracy": GroupAccuracy(GENDER, FEW, words=None),
    "assumed_group": AssumedGroup(GENDER, FEW, words=None, persons=Context("person")),
}  # fmt: skip
# What is the amplification: a headline, or (where people's value is a part) it less people's.
NEUTRAL = [
    ("ba_directional", "a_to_t"),
    ("ba_directional", "t_to_a"),
    ("ba_mals", "score"),
    ("multi_directional", "a_to_t"),
    ("differential_fairness", "score"),
    ("cooccurrence", "score"),
    ("gender_error", "score - human"),
    ("gender_ratio", "model - captions:human"),
    ("group_accuracy", "score - human"),
    ("assumed_group", "score"),
]
# Groups read from captions: shuffled labels are the same to them.
NEUTRAL_WITHOUT_LABELS = [
    ("ba_directional of captions", "a_to_t"),
    ("ba_directional of captions", "t_to_a"),
    ("ba_mals of captions", "score"),
    ("multi_directional of captions", "a_to_t"),
    ("multi_directional of captions", "t_to_a"),
]
# Directions are read off the labels that are subtracted.
SAME_LABELS = [("ba_directional", "t_to_a:published:named"), ("multi_directional", "t_to_a")]


@cache
def draw_corpus(seed: int, women: float = 0.4) -> Corpus:
    """Images whose captioner's caption is one of the four that people wrote of each.

    People name two of three objects that are there, no group in a fifth of their captions and the
    wrong one in a twentieth of the others.
    """
    generator = np.random.default_rng(seed)
    female = generator.random(IMAGES) < women
    present = generator.random((IMAGES, len(NAMES))) < np.where(female[:, None], OF_WOMEN, OF_MEN)
    named = present[:, None] & (generator.random((IMAGES, 4, len(NAMES))) < 2 / 3)
    who = female[:, None] ^ (generator.random((IMAGES, 4)) < 0.05)
    chosen = np.where(generator.random((IMAGES, 4)) < 0.2, 2, who)
    nouns = np.array(["man", "woman", "person"])[chosen].tolist()
    records = []
    for i, (label, named_row) in enumerate(zip(female.tolist(), named.tolist(), strict=True)):
        pairs = zip(nouns[i], named_row, strict=True)
        texts = [" ".join([noun, *_chosen_names(flags)]) for noun, flags in pairs]
        objects = frozenset([*_chosen_names(present[i].tolist()), "person"])
        labels = {"gender": "f" if label else "m"}
        records.append(Record(f"{seed}-{i}", texts[0], tuple(texts[1:]), labels, objects))
    return make_corpus(records)


def _chosen_names(flags: Sequence[bool]) -> list[str]:
    return [name for name, flag in zip(NAMES, flags, strict=True) if flag]


def shuffle_labels(seed: int, women: float = 0.4) -> Corpus:
    """The same with its labels dealt out over the images anew."""
    corpus = draw_corpus(seed, women)
    grouping = corpus.groupings["gender"]
    codes = np.random.default_rng(seed).permutation(grouping.codes)
    return replace(corpus, groupings={"gender": replace(grouping, codes=codes)})


@cache
def parts(name: str, design: str, seed: int) -> Mapping[str, Number]:
    make: Callable[[int], Corpus] = {"drawn": draw_corpus, "shuffled": shuffle_labels}[design]
    metric, corpus = METRICS[name], make(seed)
    if metric.info.images == base.UNSURE:
        grouping = corpus.groupings["gender"]
        unsure = replace(grouping, codes=np.full_like(grouping.codes, UNSURE))
        corpus = replace(corpus, groupings={"gender": unsure})
    return metric.compute(corpus, splits=[]).parts


def estimates(name: str, part: str, design: str) -> list[Estimate]:
    """A part in every data set, or the difference of two on the same resamplings of images."""
    first, _, second = part.partition(" - ")
    collected = []
    for seed in range(DATA_SETS):
        by_name = parts(name, design, seed)
        estimate = by_name[first]
        if second:
            less = by_name[second]
            assert estimate.draws is not None
            assert less.draws is not None
            estimate = summary(estimate.draws - less.draws)
        collected.append(estimate)
    return collected


def covering(estimates_given: Sequence[Estimate]) -> int:
    return sum(e.ci_low <= 0 <= e.ci_high for e in estimates_given)


def alarms(estimates_given: Sequence[Estimate]) -> int:
    """How many intervals say that a captioner amplifies."""
    return sum(e.ci_low > 0 for e in estimates_given)


def holds(estimates_given: Sequence[Estimate]) -> bool:
    """Whether intervals of 95 % cover 0 so seldom with a probability of 1 % or more."""
    n = len(estimates_given)
    test = stats.binomtest(covering(estimates_given), n, 0.95, alternative="less")
    return bool(test.pvalue > TOO_RARE)


def no_false_alarms(estimates_given: Sequence[Estimate]) -> bool:
    """Whether intervals of 95 % lie above 0 so often with a probability of 1 % or more."""
    n = len(estimates_given)
    test = stats.binomtest(alarms(estimates_given), n, 0.025, alternative="greater")
    return bool(test.pvalue > TOO_RARE)


def mean(estimates_given: Sequence[Estimate]) -> float:
    return float(np.mean([e.value for e in estimates_given]))


# Quality takes too long for here (``experiments/null_coverage``), and the null of refusals and of
# language models is in their own tests.
ELSEWHERE = {"declines", "quality", "gender_score", "gender_distance"}


def alarming_headlines(name: str) -> list[str]:
    """Headlines of a metric, with its default settings, that raise false alarms."""
    metric = compose.cell([f"metric={name}", "stats.resamples=60"]).build("metric")
    scores = [metric.compute(draw_corpus(seed), splits=[]).parts for seed in range(DATA_SETS)]
    tested = {*HEADLINES}.intersection(scores[0]) - {*metric.info.untested}
    shifted = {
        part: [shift(score[part], metric.info.neutral) for score in scores] for part in tested
    }
    return [p for p, items in shifted.items() if not (holds(items) and no_false_alarms(items))]


def shift(number: Number, neutral: float) -> Estimate:
    """An estimate whose no-bias value is 0."""
    values = (number.value, number.ci_low, number.ci_high)
    value, low, high = (x - neutral for x in values)
    return Estimate(value, ci_low=low, ci_high=high)


def test_a_metric_of_amplification_that_is_not_listed_above_is_neutral_at_its_no_bias_value():
    listed = {name.partition(" ")[0] for name in METRICS} | ELSEWHERE
    added = [
        name
        for name in metric_names()
        if issubclass(kind := metric_class(name), CountingMetric)
        and kind.info.amplification
        and name not in listed
    ]
    assert {name: wrong for name in added if (wrong := alarming_headlines(name))} == {}, (
        "false alarms where the captioner's captions are drawn from the annotators': mend the "
        "no-bias value (`neutral`), or name the headline in `untested` of its MetricInfo"
    )


def test_a_headline_that_is_not_neutral_is_noticed():
    assert alarming_headlines("gender_error") == ["score"]


@pytest.mark.parametrize(
    ("name", "part", "design"),
    [
        *((*one, design) for one in NEUTRAL for design in DESIGNS),
        *((*one, "drawn") for one in NEUTRAL_WITHOUT_LABELS),
    ],
)
def test_what_amplifies_nothing_is_neutral(name, part, design):
    intervals = estimates(name, part, design)
    assert holds(intervals), f"{covering(intervals)} of {DATA_SETS} intervals cover 0"
    assert no_false_alarms(intervals), f"{alarms(intervals)} of {DATA_SETS} intervals lie above 0"


@pytest.mark.parametrize(("name", "part"), [*SAME_LABELS, ("ba_mals", "published:joint")])
def test_groups_named_are_neutral_with_the_labels_of_the_images(name, part):
    intervals = estimates(name, part, "drawn")
    assert holds(intervals), f"{covering(intervals)} of {DATA_SETS} intervals cover 0"
    assert no_false_alarms(intervals)


# --- what does not cover its no-bias value --------------------------------------------------------


@pytest.mark.parametrize(("name", "part"), [*SAME_LABELS, ("ba_mals", "published:joint")])
def test_groups_named_fall_below_0_with_shuffled_labels_and_why(name, part):
    """Where a pair leans is read off the same labels that are subtracted.

    Of shuffled labels it is where their noise leans, which captions do not share, so every pair
    loses that noise. It cannot make a captioner look worse than it is. BA_MALS is of even groups:
    of 6 men in 10 noise seldom takes an object across the threshold of 1/2.
    """
    even = name == "ba_mals"
    intervals = of_even_groups(part) if even else estimates(name, part, "shuffled")
    assert falls_below_0([e.value for e in intervals])
    assert alarms(intervals) == 0


def test_ba_mals_of_shuffled_labels_is_neutral_where_groups_are_even():
    scores = of_even_groups("score")
    assert holds(scores)
    assert not falls_below_0([e.value for e in scores])


def of_even_groups(part: str) -> list[Estimate]:
    metric = METRICS["ba_mals"]
    return [
        metric.compute(shuffle_labels(seed, women=0.5), splits=[]).parts[part]
        for seed in range(DATA_SETS)
    ]


def test_t_to_a_of_shuffled_labels_is_0_where_other_labels_say_how_pairs_lean():
    """The reason of the test before: with the next data set's signs nothing is lost."""
    metric = METRICS["ba_directional"]
    assert isinstance(metric, LabelledTaskMetric)
    counts = [count_tasks(metric, shuffle_labels(seed)) for seed in range(DATA_SETS)]
    unseen = [
        ba_directional(one, "t_to_a", denominator="named", training=other).item()
        for one, other in zip(counts, [*counts[1:], counts[0]], strict=True)
    ]
    assert stats.ttest_1samp(unseen, 0).pvalue > TOO_RARE


def falls_below_0(values: Sequence[float]) -> bool:
    return bool(stats.ttest_1samp(values, 0, alternative="less").pvalue < TOO_RARE)


def count_tasks(metric: LabelledTaskMetric, corpus: Corpus) -> Counts:
    """Groups and tasks of the labels and of the captions."""
    sides = metric.sides(metric.see(corpus))
    sums = {name: np.asarray(table.sum(axis=0))[None] for name, table in sides.tables().items()}
    return counts_of(sums, sides.n_groups)


def test_a_to_t_of_objects_falls_below_0_by_the_mention_rate_and_why():
    """One caption names fewer objects than an image holds; with equal rates A→T is neutral."""
    intervals = estimates("ba_directional as published", "a_to_t", "drawn")
    rates = parts("ba_directional as published", "drawn", 0)
    assert rates["mentions:model"].ci_high < rates["mentions:human"].ci_low
    assert not holds(intervals)
    assert alarms(intervals) == 0


def test_t_to_a_over_all_images_falls_below_0_by_silence_and_why():
    """A caption that names no group counts as 0 for every group under ``denominator=images``."""
    silent = estimates("ba_directional", "t_to_a:images", "drawn")
    assert mean(silent) < 2 * mean(estimates("ba_directional", "t_to_a:named", "drawn"))
    assert not holds(silent)
    assert alarms(silent) == 0


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("part", ["a_to_t", "t_to_a"])
def test_multi_directional_as_published_is_above_0_by_chance_and_why(part, design):
    """A mean of absolute changes; its signed row beside it raises no alarm.

    Its interval reaches down towards what is left without the noise, but seldom as far as 0.
    """
    assert alarms(estimates("multi_directional as published", part, design)) > DATA_SETS / 2
    assert no_false_alarms(estimates("multi_directional as published", f"{part}:signed", design))


@pytest.mark.parametrize("name", ["gender_error", "group_accuracy"])
def test_errors_are_above_0_without_amplification_and_why(name):
    """They look at captions alone, and people misname too: amplification is less people's own."""
    intervals = estimates(name, "score", "shuffled")
    assert not METRICS[name].info.amplification
    assert alarms(intervals) > DATA_SETS / 2
    assert min(item["human"].value for item in _all(name, "shuffled")) > 0


def _all(name: str, design: str) -> list[Mapping[str, Number]]:
    return [parts(name, design, seed) for seed in range(DATA_SETS)]


def test_the_ratio_to_labels_leans_to_even_by_slips_and_why():
    """One caption in 20 slips in either group, so 3 of 60 men and 2 of 40 women change sides."""
    lines = ["woman"] * 3 + ["man"] * 57 + ["man"] * 2 + ["woman"] * 38
    labels = "m" * 60 + "f" * 40
    records = [
        Record(str(i), who, (who,), {"gender": label})
        for i, (who, label) in enumerate(zip(lines, labels, strict=True))
    ]
    parts = METRICS["gender_ratio"].compute(make_corpus(records), splits=[]).parts
    assert parts["score"].value == pytest.approx(59 / 41 - 60 / 40)
    assert parts["model"].value == parts["captions:human"].value
