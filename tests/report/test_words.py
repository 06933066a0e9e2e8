"""Which words leak the attribute: exact, and the same attackers as the score's."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from bias_pipeline.array_types import Float64Array
from bias_pipeline.attack import logistic, newton
from bias_pipeline.attack.logistic import ConvexProbe
from bias_pipeline.attack.ngram import Ngram
from bias_pipeline.attack.probe import Probe, TrainingJob
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus, Grouping, Record
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.corpus.split import Split
from bias_pipeline.corpus.split_rules import CrossFit, HoldOut
from bias_pipeline.errors import UsageError
from bias_pipeline.metrics.attack.lic import LIC
from bias_pipeline.report.explain.linear import fits, votes_of, word_parts
from bias_pipeline.report.explain.words import EXAMPLES, RevealingWord, RevealingWords, words
from bias_pipeline.stats.bootstrap import Bootstrap
from bias_pipeline.stats.scoring import Lic
from bias_pipeline.text.tokenize import Tokenize
from tests.attack.test_logistic_probe import items_of
from tests.corpora import GENDER, leaky_corpus, make_corpus

SEEDS = (0, 12)


def lic(**changes: object) -> LIC:
    parts = {
        "attribute": GENDER,
        "transforms": [Tokenize()],
        "probe": ConvexProbe(Ngram()),
        "split": HoldOut(test_share=0.3),
        "scoring": Lic(),
        "stats": Bootstrap(),
    }
    return LIC(**{**parts, **changes})


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return leaky_corpus(n=120)


@pytest.fixture(scope="module")
def revealing(corpus: Corpus) -> RevealingWords:
    return words(lic(), corpus, SEEDS, resamples=10)


def word(revealing: RevealingWords, side: str, *gram: str) -> RevealingWord:
    (match,) = (w for w in revealing.words if (w.side, w.gram) == (side, gram))
    return match


def margins(corpus: Corpus, side: str) -> list[float]:
    """Mean log-odds of the truth that the metric's own attackers predict, one number per seed."""
    metric = lic()
    score = metric.compute(corpus, splits=metric.draw_splits(corpus, SEEDS))
    predictions = [p for p in score.predictions if p.name.partition(":")[0] == side]
    assert predictions
    per_part = [
        [np.log(q[np.arange(len(t)), t] / q[np.arange(len(t)), 1 - t]).mean() for _, t, q in p]
        for p in predictions
    ]
    return np.mean(per_part, axis=0).tolist()


@pytest.mark.parametrize("side", ["model", "human"])
def test_all_gains_are_the_log_odds_of_the_metrics_attackers(corpus, revealing, side):
    expected = float(np.mean(margins(corpus, side)))
    assert word(revealing, side).gain.value == pytest.approx(expected, abs=1e-9)


def test_the_planted_words_give_most_away(revealing):
    ranked = [w.gram for w in revealing.words if w.side == "model" and len(w.gram) == 1]
    assert set(ranked[:2]) == {("truck",), ("flower",)}


def test_a_coefficient_points_to_its_group(revealing):
    assert word(revealing, "model", "flower").coefficients["female"].low > 0
    assert word(revealing, "model", "truck").coefficients["female"].high < 0


def test_the_difference_is_model_minus_human(revealing):
    model, human, both = (word(revealing, s, "truck") for s in ("model", "human", "difference"))
    assert both.gain.value == pytest.approx(model.gain.value - human.gain.value)


def test_what_the_captioner_exaggerates_it_added(revealing):
    assert word(revealing, "difference").gain.low > 0


def test_the_words_of_an_example_add_up_to_its_log_odds(corpus):
    fit = one_fit(corpus)
    intercept = fit.votes[-1]
    for example in fit.examples("model", corpus.ids, 3):
        sign = 1 if example.group == "female" else -1
        total = sign * sum(weight for _, weight in example.words)
        assert total + intercept[1] * sign == pytest.approx(example.log_odds)


def test_examples_are_test_captions(corpus, revealing):
    (split, _) = lic().draw_splits(corpus, SEEDS)
    tested = {corpus.ids[row] for row in split.test}
    assert revealing.examples
    assert {example.image for example in revealing.examples} <= tested


def test_no_example_is_told_twice(revealing):
    lines = [(e.side, e.group, tuple(w for w, _ in e.words)) for e in revealing.examples]
    assert len(lines) == len(set(lines))


def table(corpus: Corpus) -> LabelledCaptions:
    return LabelledCaptions(
        "model", corpus.model, corpus.groupings["gender"].codes, 2, ("male", "female")
    )


def one_fit(corpus: Corpus, counts: list[float] | None = None):
    (split,) = lic().draw_splits(corpus, [0])
    drawn = np.array([counts or np.ones(len(corpus))])
    return fits(ConvexProbe(Ngram()), table(corpus), split, drawn)


def test_an_image_drawn_once_each_changes_nothing(corpus):
    fit = one_fit(corpus)
    assert np.allclose(fit.resampled[0], fit.numbers, atol=1e-4)


def test_a_resampling_is_a_fit_on_the_drawn_captions(corpus, monkeypatch):
    """Against a second implementation: the captions written out as often as they were drawn."""
    monkeypatch.setattr(newton, "TOLERANCE", 5e-6)
    generator = np.random.default_rng(3)
    counts = generator.poisson(1, len(corpus)).astype(float)
    fit = one_fit(corpus, counts.tolist())
    (split,) = lic().draw_splits(corpus, [0])
    train, _ = split.select(corpus.model.image_rows, corpus.groupings["gender"].codes)
    rows = np.repeat(train, counts[train].astype(int))
    x = items_of(Ngram(), corpus.model).fit(train).matrix(rows)
    y = corpus.groupings["gender"].codes[rows].astype(float)[:, None, None]
    alone = logistic.fit(x, np.ones((len(rows), 1)), y, 0.1)
    assert np.allclose(fit.resampled[0][:, 1:], alone[:, 0], atol=1e-4)


def test_a_resampling_without_test_captions_keeps_the_attackers_own(corpus):
    (split,) = lic().draw_splits(corpus, [0])
    counts = np.ones(len(corpus))
    counts[split.test] = 0
    fit = one_fit(corpus, counts.tolist())
    assert np.isfinite(fit.resampled).all()


def test_three_groups_have_votes_against_their_mean():
    captions = Captions.from_texts(["red car", "big dog", "old cat"] * 20)
    labels = np.tile(np.arange(3), 20)
    data = LabelledCaptions("model", captions, labels, 3, ("a", "b", "c"))
    rows = np.arange(60)
    split = Split(0, rows[:30], rows[30:], rows[:0], balanced=False)
    fit = fits(ConvexProbe(Ngram()), data, split, np.ones((1, 60)))
    assert np.allclose(fit.votes.sum(axis=1), 0, atol=1e-9)
    assert fit.votes[fit.grams.index(("dog",))].argmax() == 1
    assert fit.numbers.shape == (len(fit.grams), 4)


def test_votes_of_two_groups_are_opposite():
    assert votes_of(np.array([[1.5], [-2.0]])).tolist() == [[-1.5, 1.5], [2.0, -2.0]]


@pytest.fixture(scope="module")
def crossfitted_words(corpus: Corpus) -> RevealingWords:
    return words(lic(split=CrossFit(folds=4)), corpus, SEEDS, resamples=10)


def test_folds_are_no_seeds(crossfitted_words):
    """A seed's gain is the mean over its folds; the spread of folds is none of seeds."""
    gain = word(crossfitted_words, "model").gain
    assert crossfitted_words.n_seeds == len(SEEDS)
    assert gain.high - gain.low < gain.value


def test_a_caption_counts_once_however_many_folds_there_are(corpus, crossfitted_words):
    counted = [one.captions for one in crossfitted_words.words if one.side == "model"]
    assert max(counted) == len(corpus.model)


def test_examples_are_the_best_of_all_folds(crossfitted_words):
    of_group = [
        one for one in crossfitted_words.examples if (one.side, one.group) == ("model", "female")
    ]
    assert len(of_group) == EXAMPLES
    assert of_group == sorted(of_group, key=lambda one: -one.log_odds)


def test_words_without_a_vote_have_none():
    assert word_parts(["b"], {("a",): np.ones(2)}, 2).tolist() == [[0.0, 0.0]]


def test_groups_that_the_score_leaves_out_are_left_out_here_too(corpus):
    codes = corpus.groupings["gender"].codes.copy()
    codes[:3] = 2
    few = Grouping(("male", "female", "other"), codes, {})
    revealed = words(lic(), replace(corpus, groupings={"gender": few}), SEEDS, resamples=2)
    assert revealed.groups == ("male", "female")


def test_without_human_captions_the_model_side_stands_alone():
    records = [
        Record(str(i), f"a {('truck', 'flower')[i % 2]}", (), {"gender": "mf"[i % 2]})
        for i in range(60)
    ]
    result = words(lic(), make_corpus(records), [0], resamples=2)
    assert {w.side for w in result.words} == {"model"}


def test_the_same_captions_on_both_sides_differ_in_nothing():
    texts = [f"a {('truck', 'flower')[i % 2]} {i % 3}" for i in range(60)]
    records = [Record(str(i), t, (t,), {"gender": "mf"[i % 2]}) for i, t in enumerate(texts)]
    result = words(lic(), make_corpus(records), SEEDS, resamples=5)
    assert {abs(w.gain.value) for w in result.words if w.side == "difference"} == {0.0}


def test_an_attacker_of_an_unknown_kind_is_refused(corpus):
    class Other(Probe):
        @property
        def spec(self) -> dict[str, object]:
            return {}

        def train(self, data: LabelledCaptions, jobs: Sequence[TrainingJob]) -> list[Float64Array]:
            return []

    with pytest.raises(UsageError, match="encoder=ngram"):
        words(lic(probe=Other()), corpus, SEEDS)


def test_one_resampling_is_refused(corpus):
    with pytest.raises(UsageError, match="at least 2"):
        words(lic(), corpus, SEEDS, resamples=1)
