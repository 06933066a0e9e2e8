"""With shuffled groups there is nothing to amplify: how often do the metrics say there is?

The captions of ``faithful`` are drawn as people's are, and the groups are shuffled over the images
60 times, so every score is noise around 0. Tested is whether the 95 % intervals miss 0 too often,
and whether p falls below 0.05 too often; "too often" is a count that a binomial of the nominal
rate reaches with a probability below 1 %. (Missing 0 too seldom is no fault: the intervals also
pay for estimating the attackers' noise from three seeds.)
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.run import compose
from bias_pipeline.run.cell import _with_p
from bias_pipeline.stats.bootstrap import Estimate

SHUFFLINGS = 60
SEEDS = (0, 12, 456)
TOO_RARE = 0.01
METRICS = ("lic", "leakage")


def shuffle_labels(corpus: Corpus, seed: int) -> Corpus:
    """The same images with their groups dealt out again, each group as large as before."""
    grouping = corpus.groupings["gender"]
    codes = grouping.codes.copy()
    labelled = codes >= 0
    codes[labelled] = np.random.default_rng(seed).permutation(codes[labelled])
    return replace(corpus, groupings={"gender": replace(grouping, codes=codes)})


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Estimate]]:
    """The headline of each metric under each shuffling; both metrics use the same predictions."""
    outputs = tmp_path_factory.mktemp("null")
    words = ["captioner=faithful", "dataset.n_images=1000", "stats.resamples=200"]
    words += ["metric.learning_curve=false"]  # the scores are the same without it
    cells = [compose.cell([*words, f"metric={m}", f"paths.outputs={outputs}"]) for m in METRICS]
    metrics = [cell.build("metric") for cell in cells]
    corpus = cells[0].corpus()
    for transform in metrics[0].transforms:  # they do not look at groups
        corpus = transform(corpus)
    for metric in metrics:
        metric.transforms = ()
    estimates: dict[str, list[Estimate]] = {name: [] for name in METRICS}
    for trial in range(SHUFFLINGS):
        null = shuffle_labels(corpus, trial)
        for metric in metrics:
            score = metric.compute(null, splits=metric.draw_splits(null, SEEDS))
            part = score.parts["score"]
            p_value = _with_p("score", part, metric.info).p_value  # as a row has it
            estimates[metric.info.name].append(replace(part, p_value=p_value))
    return estimates


@pytest.mark.slow
@pytest.mark.parametrize("name", METRICS)
def test_the_interval_covers_zero_as_often_as_it_says(scores, name):
    covered = sum(e.ci_low <= 0 <= e.ci_high for e in scores[name])
    test = stats.binomtest(covered, SHUFFLINGS, 0.95, alternative="less")
    assert test.pvalue > TOO_RARE, f"{covered} of {SHUFFLINGS} intervals cover 0"


@pytest.mark.slow
@pytest.mark.parametrize("name", METRICS)
def test_small_p_values_are_as_rare_as_they_say(scores, name):
    p_values = np.array([e.p_value for e in scores[name]])
    assert np.isfinite(p_values).all()
    small = int((p_values < 0.05).sum())
    test = stats.binomtest(small, SHUFFLINGS, 0.05, alternative="greater")
    assert test.pvalue > TOO_RARE, f"{small} of {SHUFFLINGS} p values lie below 0.05"


@pytest.mark.slow
@pytest.mark.parametrize("name", METRICS)
def test_the_scores_scatter_around_zero(scores, name):
    values = [e.value for e in scores[name]]
    assert stats.ttest_1samp(values, 0).pvalue > TOO_RARE
