"""Scores under several sets of word vectors: their mean, and how far they lie apart.

People write "lorry" and "tulip" where the captioner writes "truck" and "flower", which tell the
group. One set of vectors finds these words, the other makes "red" of both.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from bias_pipeline.attack.logistic import ConvexProbe
from bias_pipeline.attack.ngram import Ngram
from bias_pipeline.corpus.attribute import TaskVocabulary
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.split_rules import HoldOut
from bias_pipeline.language.contextual import ContextualAlignment
from bias_pipeline.metrics.attack.dbac import DBAC
from bias_pipeline.metrics.attack.lic import LIC
from bias_pipeline.metrics.base import Metric, Score
from bias_pipeline.stats.bootstrap import Bootstrap
from bias_pipeline.stats.scoring import InverseCrossEntropy, Lic
from bias_pipeline.text.mask import MaskWords
from bias_pipeline.text.tokenize import Tokenize
from bias_pipeline.text.transform import Transform
from tests.corpora import GENDER, leaky_corpus, make_corpus

SEEDS = (0, 12, 456)
TASKS = TaskVocabulary("toy", {"truck": ["truck", "lorry"], "flower": ["flower", "tulip"]})
FAITHFUL = "truck 1 0\nlorry 1 0.1\nflower 0 1\ntulip 0.1 1\nred -1 -1\n"
BLIND = "truck 1 0\nlorry -1 -1\nflower 0 1\ntulip -1 -1\nred -1 -1\n"


def corpus() -> Corpus:
    words = {"truck": "lorry", "flower": "tulip"}
    raw = leaky_corpus(human_leak=0.9)
    records = []
    for original in (raw[i] for i in range(len(raw))):
        human = [" ".join(words.get(w, w) for w in text.split()) for text in original.human]
        label = original.labels["gender"][0]
        records.append(replace(original, human=tuple(human), labels={"gender": label}))
    return make_corpus(records)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("vectors")
    paths = [folder / "faithful.txt", folder / "blind.txt"]
    for path, text in zip(paths, (FAITHFUL, BLIND), strict=True):
        path.write_text(text)
    return [str(path) for path in paths]


def transforms(vectors: str | Sequence[str]) -> list[Transform]:
    align = ContextualAlignment(vectors)
    return [Tokenize(), MaskWords(GENDER.words, "<gender>"), align]


def lic(vectors: str | Sequence[str]) -> LIC:
    return LIC(
        GENDER, transforms(vectors), ConvexProbe(Ngram(), 1.0), HoldOut(), Lic(), Bootstrap(200)
    )


def dbac(vectors: str | Sequence[str]) -> DBAC:
    ready = transforms(vectors)
    split = HoldOut(balanced=False)
    probe, scoring = ConvexProbe(Ngram(), 1.0), InverseCrossEntropy()
    return DBAC(
        GENDER, TASKS, ready, ready, probe, split, scoring, Bootstrap(200), exclude_tasks=[]
    )


def score(metric: Metric) -> Score:
    raw = corpus()
    return metric.compute(raw, splits=metric.draw_splits(raw, SEEDS))


@pytest.fixture(scope="module")
def score_of_both(sources: list[str]) -> Score:
    return score(lic(sources))


@pytest.fixture(scope="module")
def scores_of_each(sources: list[str]) -> list[Score]:
    return [score(lic(source)) for source in sources]


def test_the_score_is_the_mean_over_vectors_and_those_that_disagree_widen_the_interval(
    score_of_both, scores_of_each
):
    one, two = (item.parts["score"] for item in scores_of_each)
    mean = score_of_both.parts["score"]
    assert mean.value == pytest.approx((one.value + two.value) / 2)
    assert mean.choice_std == pytest.approx(abs(one.value - two.value) / math.sqrt(2))
    assert mean.ci_high - mean.ci_low > 2 * (one.ci_high - one.ci_low)


def test_the_side_that_is_not_aligned_is_as_with_one(score_of_both, scores_of_each):
    one, mean = (item.parts["model"] for item in (scores_of_each[0], score_of_both))
    assert (mean.value, mean.choice_std) == (pytest.approx(one.value), 0.0)
    assert mean.ci_low == pytest.approx(one.ci_low)


def test_what_each_set_of_vectors_gives_is_a_table(score_of_both):
    lines = [line for line in score_of_both.tables["choices"] if line["part"] == "score"]
    assert [line["choice"] for line in lines] == ["faithful", "blind"]
    assert (
        "score is the mean over faithful, blind, between which it varies" in score_of_both.notes[-1]
    )


def test_substitutions_and_predictions_say_with_which_vectors(score_of_both):
    near = {
        (line["choice"], line["word"]): line["near"]
        for line in score_of_both.tables["substitutions"]
    }
    assert (near["faithful", "lorry"], near["blind", "lorry"]) == (True, True)
    assert {p.name.partition(":")[0] for p in score_of_both.predictions} == {"faithful", "blind"}


def test_dbac_too_is_the_mean_over_vectors(sources):
    one, two = (score(dbac(source)).parts["a_to_t"].value for source in sources)
    both = score(dbac(sources)).parts["a_to_t"].value
    assert both == pytest.approx((one + two) / 2)
    assert one != pytest.approx(two)
