import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from bias_pipeline.attack import logistic, newton
from bias_pipeline.attack.logistic import ConvexProbe, decide, fit
from bias_pipeline.attack.ngram import Ngram, NgramItems
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.predictions import LabelledCaptions, Predictions
from bias_pipeline.corpus.split import Split, with_fewer_images
from bias_pipeline.corpus.split_rules import HoldOut
from tests.corpora import leaky_corpus


def indicators(n_classes: int, seed: int = 0) -> tuple[sparse.csr_array, np.ndarray]:
    generator = np.random.default_rng(seed)
    y = generator.integers(0, n_classes, 300)
    x = (generator.random((300, 40)) < 0.15).astype(float)
    x[:, 0] = np.where(generator.random(300) < 0.7, y > 0, x[:, 0])
    return sparse.csr_array(x), y


def leaky_captions(n_classes: int = 2) -> LabelledCaptions:
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


@pytest.mark.parametrize("n_groups", [2, 3])
def test_groups_agree_with_scikit_learn(n_groups, monkeypatch):
    monkeypatch.setattr(newton, "TOLERANCE", 5e-6)
    x, y = indicators(n_groups)
    truths = y[:, None] if n_groups == 2 else np.eye(n_groups)[y]
    scores = decide(x, weights_of(x, truths))[:, 0]
    oracle = LogisticRegression(C=0.1, tol=1e-10, max_iter=10_000).fit(x, y)
    if n_groups == 2:
        np.testing.assert_allclose(scores[:, 0], oracle.decision_function(x), atol=1e-4)
    else:
        np.testing.assert_allclose(softmax(scores, axis=1), oracle.predict_proba(x), atol=1e-4)


def predict(data: LabelledCaptions, *seeds: int, **options: object) -> Predictions:
    return ConvexProbe(Ngram(), **options).fit_predict(data, splits(seeds or (0, 12)))


def test_tasks_are_independent_sigmoids():
    corpus = leaky_corpus()
    tasks = np.stack([corpus.groupings["gender"].codes, np.arange(len(corpus)) % 2], axis=1)
    both = predict(LabelledCaptions("t", corpus.model, tasks, 2))
    alone = predict(LabelledCaptions("t", corpus.model, tasks[:, :1], 1))
    np.testing.assert_allclose(both.probs[0][:, :1], alone.probs[0])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_sum_to_one_and_are_the_same_however_many_are_fitted(n_classes, monkeypatch):
    (together, _) = predict(leaky_captions(n_classes)).probs
    np.testing.assert_allclose(together.sum(axis=1), 1)
    monkeypatch.setattr(logistic, "NUMBERS", 1)
    assert np.array_equal(together, predict(leaky_captions(n_classes)).probs[0])


def test_a_planted_word_is_found():
    lines = predict(leaky_captions(), inverse_penalty=10)
    assert np.mean([(p.argmax(1) == t).mean() for _, t, p in lines]) > 0.8


def test_one_seed_trained_alone_predicts_the_same():
    together, alone = predict(leaky_captions(), 0, 12, 456), predict(leaky_captions(), 12)
    np.testing.assert_array_equal(together.probs[1], alone.probs[0])


def items_of(encoder: Ngram, captions: Captions) -> NgramItems:
    return encoder.read(LabelledCaptions("model", captions, np.zeros(len(captions), np.int64), 2))


def test_n_grams_are_taken_from_training_captions_alone():
    items = items_of(Ngram(order=1, min_count=1), Captions.from_texts(["a b", "a c"]))
    matrix = items.fit(np.array([0])).matrix(np.array([1]))
    assert matrix.toarray().tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize(("texts", "n"), [(["a b a b"], 4), (["a", "b"], 2)])
def test_a_pair_of_words_of_one_caption_is_an_n_gram(texts, n):
    assert items_of(Ngram(order=2, min_count=1), Captions.from_texts(texts)).n_grams == n


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


def test_predictions_come_from_the_cache_as_they_were(tmp_path):
    class Counting(ConvexProbe):
        trained = 0

        def train(self, data, jobs):
            self.trained += len(jobs)
            return super().train(data, jobs)

    probe = Counting(Ngram(), cache=str(tmp_path))
    fresh = probe.fit_predict(leaky_captions(), splits((0, 12)))
    again = probe.fit_predict(leaky_captions(), splits((0, 12, 456)))
    assert probe.trained == 3
    np.testing.assert_array_equal(fresh.probs[0], again.probs[0])


def test_captions_are_not_numbered_where_no_attacker_is_trained(tmp_path, monkeypatch):
    probe = ConvexProbe(Ngram(), cache=str(tmp_path))
    fresh = probe.fit_predict(leaky_captions(), splits())
    monkeypatch.setattr(Ngram, "read", None)
    again = probe.fit_predict(leaky_captions(), splits())
    np.testing.assert_array_equal(fresh.probs, again.probs)


@pytest.mark.parametrize("number", [0, 1])
def test_sets_of_splits_are_predicted_as_if_each_were_alone(number):
    whole = splits((0, 12))
    sets = [whole, with_fewer_images(whole, 0.5)]
    together = ConvexProbe(Ngram()).fit_predict_each(leaky_captions(), sets)[number]
    alone = ConvexProbe(Ngram()).fit_predict(leaky_captions(), sets[number])
    assert together.seeds == alone.seeds
    assert np.array_equal(np.concatenate(together.probs), np.concatenate(alone.probs))
    assert together.training == alone.training


def test_a_changed_setting_is_not_served_from_the_cache(tmp_path):
    one, two = (
        predict(leaky_captions(), inverse_penalty=penalty, cache=str(tmp_path)).probs[0]
        for penalty in (0.1, 0.2)
    )
    assert not np.allclose(one, two)
