"""People wrote more captions of some images than of others: every position compares all images."""

from functools import cache

import numpy as np
import pytest

from bias_pipeline.attack.logistic import ConvexProbe
from bias_pipeline.attack.ngram import Ngram
from bias_pipeline.corpus.attribute import TaskVocabulary
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.corpus.split_rules import CrossFit
from bias_pipeline.metrics.attack.dbac import DBAC
from bias_pipeline.metrics.attack.lic import LIC, Leakage
from bias_pipeline.metrics.base import Metric, Score
from bias_pipeline.metrics.catalogue import seconds, seconds_of
from bias_pipeline.metrics.counting.cooccurrence import Cooccurrence
from bias_pipeline.metrics.counting.differential_fairness import DifferentialFairness
from bias_pipeline.metrics.counting.gender_error import GenderError
from bias_pipeline.metrics.counting.gender_ratio import GenderRatio
from bias_pipeline.stats.bootstrap import Bootstrap
from bias_pipeline.stats.scoring import Accuracy, InverseCrossEntropy, Lic
from bias_pipeline.text.tokenize import Tokenize
from tests.corpora import GENDER, make_corpus

OBJECTS = ("cake", "car", "dog")
TASKS = TaskVocabulary("toy", {name: [name] for name in OBJECTS})
FEW = Bootstrap(resamples=20)


@cache
def echo_corpus(n: int = 240) -> Corpus:
    """People repeat the captioner's caption, three times of a third of the images, else once."""
    generator = np.random.default_rng(0)
    records = []
    for i in range(n):
        female = i % 2
        who = ("man", "woman")[female if generator.random() < 0.8 else 1 - female]
        caption = f"a {who} with a {generator.choice(OBJECTS, p=(0.5, 0.3, 0.2))}"
        people = (caption,) * (3 if generator.random() < 1 / 3 else 1)
        records.append(
            Record(str(i), caption, people, {"gender": "mf"[female]}, frozenset({"person", "dog"}))
        )
    return make_corpus(records)


def attack(kind: type[LIC] | type[Leakage]) -> Metric:
    return kind(
        attribute=GENDER,
        transforms=[Tokenize()],
        probe=ConvexProbe(Ngram()),
        split=CrossFit(),
        scoring=Lic() if kind is LIC else Accuracy(),
        stats=FEW,
        learning_curve=False,
    )


def dbac() -> Metric:
    return DBAC(
        attribute=GENDER,
        task=TASKS,
        a_to_t=[Tokenize()],
        t_to_a=[Tokenize()],
        probe=ConvexProbe(Ngram()),
        split=CrossFit(balanced=False),
        scoring=InverseCrossEntropy(),
        stats=FEW,
        exclude_tasks=(),
    )


def score_metric(metric: Metric, corpus: Corpus | None = None) -> Score:
    corpus = corpus or echo_corpus()
    return metric.compute(corpus, splits=metric.draw_splits(corpus, (0,)))


@pytest.mark.parametrize(
    ("metric", "part"),
    [
        (attack(LIC), "score"),
        (attack(Leakage), "score"),
        (DifferentialFairness(GENDER, FEW, TASKS, exclude_tasks=()), "score"),
        (Cooccurrence(GENDER, FEW, TASKS, exclude_tasks=()), "score"),
        (Cooccurrence(GENDER, FEW, TASKS, exclude_tasks=()), "distance:female"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_people_who_repeat_the_captioner_differ_in_nothing(metric, part):
    assert score_metric(metric).parts[part].value == pytest.approx(0, abs=1e-12)


def test_dbac_attacks_all_images_at_every_position():
    sizes = {p.name: len(np.concatenate(p.images)) for p in score_metric(dbac()).predictions}
    assert sizes["a_to_t:human:2"] == sizes["a_to_t:model:0"]


def apart_corpus() -> Corpus:
    """People describe only the images of women, which the captioner describes as they do."""
    records = []
    for i in range(120):
        female = i % 2
        caption = f"a {('man', 'woman')[1 - female if i % 6 == 3 else female]} with a cake"
        people = (caption, caption)[: i % 3] if female else ()
        records.append(Record(str(i), caption, people, {"gender": "mf"[female]}))
    return make_corpus(records)


@pytest.mark.parametrize(
    ("metric", "part"),
    [
        (GenderRatio(GENDER, FEW), "captions:increase"),
        (GenderError(GENDER, FEW), "named:increase"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_an_increase_is_of_images_that_both_sides_describe(metric, part):
    assert score_metric(metric, apart_corpus()).parts[part].value == pytest.approx(0)


def test_the_expected_time_counts_all_images_at_every_position():
    assert seconds_of("lic", echo_corpus(), 2) == seconds("lic", 240 + 3 * 240, 2)
    assert seconds_of("lic", echo_corpus(), 2, {"positions": 2}) == seconds("lic", 240 + 2 * 240, 2)


@pytest.mark.parametrize("kind", [Cooccurrence, DifferentialFairness])
def test_images_of_no_group_do_not_decide_how_often_a_caption_counts(kind):
    """Of two captions both count once, although people wrote three of other images."""
    generator = np.random.default_rng(0)

    def text() -> str:
        return f"a {generator.choice(('man', 'woman'))} with a {generator.choice(OBJECTS)}"

    pairs = [
        Record(str(i), text(), (text(), text()), {"gender": "mf"[i % 2]}, frozenset({"dog"}))
        for i in range(60)
    ]
    other = Record("x", text(), (text(), text(), text()), {"gender": "unsure"}, frozenset({"dog"}))
    metric = kind(GENDER, FEW, task=TASKS, exclude_tasks=())
    values = [
        score_metric(metric, make_corpus(records)).parts["human"].value
        for records in (pairs, [*pairs, other])
    ]
    assert values[0] == values[1]
