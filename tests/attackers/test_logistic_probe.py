import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from bias_pipeline.attackers import logistic
from bias_pipeline.attackers.logistic import ConvexProbe, decide, fit
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.corpus.split import Split
from bias_pipeline.corpus.split_rules import HoldOut
from bias_pipeline.encoders.ngram import Ngram, NgramItems
from tests.corpora import leaky_corpus


def indicators(n_classes: int, seed: int = 0) -> tuple[sparse.csr_array, np.ndarray]:
    generator = np.random.default_rng(seed)
    y = generator.integers(0, n_classes, 300)
    x = (generator.random((300, 40)) < 0.15).astype(float)
    x[:, 0] = np.where(generator.random(300) < 0.7, y > 0, x[:, 0])
    return sparse.csr_array(x), y


def labelled(n_classes: int = 2) -> LabelledCaptions:
    corpus = leaky_corpus()
    labels = corpus.groupings["gender"].codes
    if n_classes > 2:
        labels = np.arange(len(labels)) % n_classes
    return LabelledCaptions("model:0", corpus.model, labels, n_classes)


def splits(seeds: tuple[int, ...] = (0, 12)) -> list[Split]:
    return HoldOut().draw(leaky_corpus(), "gender", seeds)


def weights_of(x: sparse.csr_array, truths: np.ndarray) -> np.ndarray:
    """(F + 1, 1, K) of (N, K) truths."""
    return fit(x, np.ones((x.shape[0], 1)), truths[:, None].astype(float), 0.1)


def test_two_groups_agree_with_scikit_learn():
    x, y = indicators(2)
    scores = decide(x, weights_of(x, y[:, None]))[:, 0, 0]
    oracle = LogisticRegression(C=0.1, tol=1e-10, max_iter=10_000).fit(x, y).decision_function(x)
    np.testing.assert_allclose(scores, oracle, atol=1e-4)


def test_three_groups_agree_with_scikit_learn():
    x, y = indicators(3)
    scores = decide(x, weights_of(x, np.eye(3)[y]))[:, 0]
    exp = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    oracle = LogisticRegression(C=0.1, tol=1e-10, max_iter=10_000).fit(x, y).predict_proba(x)
    np.testing.assert_allclose(exp, oracle, atol=1e-4)


def test_tasks_are_independent_sigmoids():
    corpus = leaky_corpus()
    tasks = np.stack([corpus.groupings["gender"].codes, np.arange(len(corpus)) % 2], axis=1)
    both = ConvexProbe(Ngram()).fit_predict(LabelledCaptions("t", corpus.model, tasks, 2), splits())
    alone = ConvexProbe(Ngram()).fit_predict(
        LabelledCaptions("t", corpus.model, tasks[:, :1], 1), splits()
    )
    np.testing.assert_allclose(both.probs[0][:, :1], alone.probs[0])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_sum_to_one(n_classes):
    predictions = ConvexProbe(Ngram()).fit_predict(labelled(n_classes), splits())
    np.testing.assert_allclose(predictions.probs[0].sum(axis=1), 1)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_how_many_are_fitted_at_once_changes_no_digit(n_classes, monkeypatch):
    together = ConvexProbe(Ngram()).fit_predict(labelled(n_classes), splits())
    monkeypatch.setattr(logistic, "NUMBERS", 1)
    alone = ConvexProbe(Ngram()).fit_predict(labelled(n_classes), splits())
    assert np.array_equal(together.probs[0], alone.probs[0])


def test_a_planted_word_is_found():
    predictions = ConvexProbe(Ngram(), inverse_penalty=10).fit_predict(labelled(), splits())
    accuracy = np.mean([(p.argmax(1) == t).mean() for _, t, p in predictions])
    assert accuracy > 0.8


def test_one_seed_trained_alone_predicts_the_same():
    together = ConvexProbe(Ngram()).fit_predict(labelled(), splits((0, 12, 456)))
    alone = ConvexProbe(Ngram()).fit_predict(labelled(), splits((12,)))
    np.testing.assert_array_equal(together.probs[1], alone.probs[0])


def items_of(encoder: Ngram, captions: Captions) -> NgramItems:
    return encoder.read(LabelledCaptions("model", captions, np.zeros(len(captions), np.int64), 2))


def test_n_grams_are_taken_from_training_captions_alone():
    items = items_of(Ngram(order=1, min_count=1), Captions.from_texts(["a b", "a c"]))
    matrix = items.fit(np.array([0])).matrix(np.array([1]))
    assert matrix.toarray().tolist() == [[1.0, 0.0]]


def test_a_pair_of_words_is_an_n_gram():
    items = items_of(Ngram(order=2, min_count=1), Captions.from_texts(["a b a b"]))
    assert items.n_grams == 4  # a, b, a b, b a


def test_pairs_never_cross_captions():
    items = items_of(Ngram(order=2, min_count=1), Captions.from_texts(["a", "b"]))
    assert items.n_grams == 2


@given(st.lists(st.text("ab ", max_size=12), min_size=1, max_size=6), st.integers(1, 3))
@settings(deadline=None)
def test_indicators_equal_counting_by_hand(texts, order):
    captions = Captions.from_texts(texts)
    items = items_of(Ngram(order=order, min_count=1), captions)
    for row in range(len(texts)):
        words = captions.words(row)
        by_hand = {
            tuple(words[i : i + n]) for n in range(1, order + 1) for i in range(len(words) - n + 1)
        }
        assert items.starts[row + 1] - items.starts[row] == len(by_hand)


def test_predictions_come_from_the_cache(tmp_path):
    class Counting(ConvexProbe):
        trained = 0

        def train(self, data, jobs):
            self.trained += len(jobs)
            return super().train(data, jobs)

    probe = Counting(Ngram(), cache=str(tmp_path))
    probe.fit_predict(labelled(), splits((0, 12)))
    probe.fit_predict(labelled(), splits((0, 12, 456)))
    assert probe.trained == 3


def test_cached_predictions_equal_fresh_ones(tmp_path):
    probe = ConvexProbe(Ngram(), cache=str(tmp_path))
    fresh = probe.fit_predict(labelled(), splits())
    again = probe.fit_predict(labelled(), splits())
    np.testing.assert_array_equal(fresh.probs[0], again.probs[0])


def test_e19_a_changed_setting_is_not_served_from_the_cache(tmp_path):
    one = ConvexProbe(Ngram(), 0.1, str(tmp_path)).fit_predict(labelled(), splits())
    two = ConvexProbe(Ngram(), 0.2, str(tmp_path)).fit_predict(labelled(), splits())
    assert not np.allclose(one.probs[0], two.probs[0])
