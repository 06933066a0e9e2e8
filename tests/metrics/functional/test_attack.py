"""Scores of one attacker: what is no guess is refused, and never scored."""

import numpy as np
import pandas as pd
import pytest
import torch

from bias_pipeline.metrics import functional

SCORES = (
    functional.lic,
    functional.leakage,
    functional.imagecaptioner2,
    functional.inverse_cross_entropy,
    functional.expected_calibration_error,
)
PROBS = np.array([[0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
TRUTH = np.array([0, 1, 0])


@pytest.mark.parametrize("score", SCORES, ids=lambda score: score.__name__)
@pytest.mark.parametrize("of", [np.ndarray.tolist, pd.DataFrame, torch.from_numpy])
def test_lists_tables_and_tensors_are_arrays(score, of):
    assert score(of(PROBS), TRUTH.tolist()) == score(PROBS, TRUTH)


@pytest.mark.parametrize("score", SCORES, ids=lambda score: score.__name__)
@pytest.mark.parametrize(
    ("probs", "truth", "message"),
    [
        (PROBS, TRUTH[:1], "they are"),  # one class for all, as NumPy would read it
        (PROBS, TRUTH[:2], "they are"),
        (PROBS[:, 0], TRUTH, "they are"),
        (PROBS[:0], TRUTH[:0], "one guess or more"),
        (2 * PROBS, TRUTH, "a sum of 1"),
        (np.log(PROBS), TRUTH, "at least 0"),
        (np.where(PROBS > 0.75, np.nan, PROBS), TRUTH, "at least 0"),
        (PROBS, np.array([0, -1, 0]), "from 0 to 1"),  # the last class, as NumPy would read it
        (PROBS, np.array([0, 2, 0]), "from 0 to 1"),
        (PROBS, np.array([0.0, 1.0, 0.0]), "whole numbers"),
        (PROBS, np.array(["a", "b", "a"]), "whole numbers"),
    ],
)
def test_what_is_no_guess_is_refused(score, probs, truth, message):
    with pytest.raises(ValueError, match=message):
        score(probs, truth)
