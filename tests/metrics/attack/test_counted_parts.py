"""Numbers that rest on no trained attacker have the interval of a count.

Images are drawn many times from a population that is known; 95 % of the intervals must contain the
population's numbers, neither fewer nor more. (An interval that is widened for attackers that learn
from other images contains them in 99.8 %.)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from scipy import stats

from bias_pipeline.array_types import Float64Array
from bias_pipeline.attack.encoder import AnsweringEncoder
from bias_pipeline.attack.probe import Probe, ZeroShotProbe
from bias_pipeline.corpus.attribute import TaskVocabulary
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.corpus.predictions import LabelledCaptions, Predictions
from bias_pipeline.corpus.split import Split, seeds_in
from bias_pipeline.corpus.split_rules import CrossFit
from bias_pipeline.metrics.attack.dbac import DBAC
from bias_pipeline.metrics.attack.dpa import DPA
from bias_pipeline.metrics.attack.lic import Leakage
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate
from bias_pipeline.stats.scoring import Accuracy
from bias_pipeline.text.tokenize import Tokenize
from tests.corpora import GENDER, make_corpus

TRIALS, IMAGES, SEEDS = 300, 150, (0, 12)
SAYS = {"umbrella": (0.5, 0.6), "kite": (0.2, 0.1)}  # how often people and the captioner name it
TASKS = TaskVocabulary("toy", {name: (name,) for name in SAYS})
HUMAN, MODEL = np.array(list(SAYS.values())).T
TRUE = {
    "dbac": {
        "a_to_t:prior:model": MODEL.mean(),
        "a_to_t:prior:human": HUMAN.mean(),
        # The mean of the tasks' (M - H) / (M + H), weighted by how often people name them
        "a_to_t:priors": ((MODEL - HUMAN) / (MODEL + HUMAN)) @ HUMAN / HUMAN.sum(),
    },
    "dpa": {
        "a_to_t:accuracy": (HUMAN * MODEL + (1 - HUMAN) * (1 - MODEL)).mean(),
        "a_to_t:mentions:model": MODEL.sum(),
        "a_to_t:mentions:human": HUMAN.sum(),
    },
}
SETTINGS = (Accuracy(), Bootstrap(resamples=200))


class Guesser(Probe):
    """Trains nothing: every class is equally likely."""

    @property
    def spec(self) -> Mapping[str, object]:
        return {}

    def train(self, *_: object) -> list[object]:
        raise AssertionError

    def fit_predict(self, data: LabelledCaptions, splits: Sequence[Split]) -> Predictions:
        images, n_seeds = data.captions.image_rows, len(seeds_in(splits))
        probs = np.full((len(images), data.n_classes), 0.5)
        columns = ((one,) * n_seeds for one in (images, data.labels, probs))
        return Predictions(data.name, seeds_in(splits), *columns)


def draw_corpus(trial: int) -> Corpus:
    generator = np.random.default_rng(trial)

    def sentence(shares: np.ndarray) -> tuple[str, frozenset[str]]:
        named = [n for n, share in zip(SAYS, shares, strict=True) if generator.random() < share]
        return " ".join(["somebody", *named]), frozenset(named)

    records = []
    for i in range(IMAGES):
        (human, there), (model, _) = sentence(HUMAN), sentence(MODEL)
        labels = {"gender": "mf"[i % 2]}
        records.append(Record(f"{trial}-{i}", model, (human,), labels, there))
    return make_corpus(records)


@cache
def estimates() -> dict[str, list[Estimate]]:
    rule = CrossFit(folds=2, together=False)
    dbac = DBAC(GENDER, TASKS, [Tokenize()], [Tokenize()], Guesser(), rule, *SETTINGS,
                exclude_tasks=())  # fmt: skip
    dpa = DPA(GENDER, TASKS, Guesser(), rule, *SETTINGS, equalise="none", exclude_tasks=())
    made: dict[str, list[Estimate]] = {}
    for trial in range(TRIALS):
        corpus = draw_corpus(trial)
        for name, metric in (("dbac", dbac), ("dpa", dpa)):
            score = metric.compute(corpus, splits=metric.draw_splits(corpus, SEEDS))
            for part in TRUE[name]:
                made.setdefault(part, []).append(score.parts[part])
    return made


@pytest.mark.parametrize(
    ("part", "true"), [pair for numbers in TRUE.values() for pair in numbers.items()]
)
def test_the_interval_contains_the_truth_as_often_as_it_says(part, true):
    covered = sum(one.ci_low <= true <= one.ci_high for one in estimates()[part])
    assert stats.binomtest(covered, TRIALS, 0.95).pvalue > 0.01, f"{covered} of {TRIALS}"


@dataclass(frozen=True)
class Answering(AnsweringEncoder):
    """Answers at random, and learns nothing."""

    def answer_log_probs(self, data: LabelledCaptions) -> Float64Array:
        return np.log(np.random.default_rng(0).dirichlet((1, 1), len(data.labels)))


def test_where_nothing_is_learnt_the_interval_is_that_of_the_images():
    """Each is right or wrong, so the standard error is that of a share."""
    leakage = Leakage(
        attribute=GENDER,
        transforms=[Tokenize()],
        probe=ZeroShotProbe(Answering()),
        split=CrossFit(),
        scoring=Accuracy(),
        stats=Bootstrap(resamples=2000),
        sides=["model"],
    )
    corpus = draw_corpus(0)
    score = leakage.compute(corpus, splits=leakage.draw_splits(corpus, SEEDS))
    estimate = score.parts["model"]
    half = (estimate.ci_high - estimate.ci_low) / 2
    right = estimate.value
    assert half == pytest.approx(1.96 * np.sqrt(right * (1 - right) / IMAGES), rel=0.05)
