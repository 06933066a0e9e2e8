"""Predictions of those who answer as they are."""

from dataclasses import dataclass

import numpy as np
import pytest

from bias_pipeline.array_types import Float64Array
from bias_pipeline.attack.encoder import AnsweringEncoder
from bias_pipeline.attack.ngram import Ngram
from bias_pipeline.attack.probe import ZeroShotProbe
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.corpus.split import Split
from bias_pipeline.errors import UsageError

TEXTS = ["a dog", "a red dog", "a kite", "a dog on the beach"]
DATA = LabelledCaptions(
    "model", Captions.from_texts(TEXTS), np.array([0, 1, 0, 1]), 2, ("male", "female")
)
LIKELY = np.log([[0.2, 0.6], [0.1, 0.1], [0.3, 0.1], [0.05, 0.2]])


def split(seed: int, train: list[int], test: list[int]) -> Split:
    return Split(seed, np.array(train), np.array(test), np.array([], np.int64), balanced=False)


SPLITS = [split(0, [0, 1], [2, 3]), split(1, [2, 3], [0])]


@dataclass(frozen=True)
class Given(AnsweringEncoder):
    """Answers that a reader can check in the head."""

    scale: float = 1.0

    def answer_log_probs(self, data: LabelledCaptions) -> Float64Array:
        return LIKELY + np.log(self.scale)


@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_answers_share_all_of_the_probability_however_much_is_said_of_groups(scale):
    predictions = ZeroShotProbe(Given(scale)).fit_predict(DATA, SPLITS)
    assert predictions.probs[0] == pytest.approx(np.array([[0.75, 0.25], [0.2, 0.8]]))
    assert predictions.probs[1] == pytest.approx(np.array([[0.25, 0.75]]))


def test_other_words_have_the_rest():
    predictions = ZeroShotProbe(Given(), renormalise=False).fit_predict(DATA, SPLITS)
    assert predictions.probs[1] == pytest.approx(np.array([[0.2, 0.6, 0.2]]))


def test_nobody_is_trained(tmp_path):
    probe = ZeroShotProbe(Given(), cache=str(tmp_path))
    assert probe.fit_predict(DATA, SPLITS).training.trained == 0
    assert probe.fit_predict(DATA, SPLITS).training.cached == 2


@pytest.mark.parametrize(
    ("use", "probe"),
    [(lambda: ZeroShotProbe(Ngram()), "neural"), (lambda: Given().read(DATA), "zero_shot")],
)
def test_those_who_must_be_trained_do_not_answer_nor_have_those_who_answer_vectors(use, probe):
    with pytest.raises(UsageError, match=f"choose probe={probe}"):
        use()


def test_normalisation_is_part_of_the_key():
    assert ZeroShotProbe(Given()).spec != ZeroShotProbe(Given(), renormalise=False).spec
