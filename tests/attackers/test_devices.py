"""A GPU predicts as a processor does, within what float32 sums in another order may move."""

import numpy as np
import pytest
import torch

from tests.attackers.test_ddp import probe
from tests.attackers.test_neural import labelled, splits

TOLERANCE = 0.02  # of a probability, after three epochs


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_e21_a_gpu_predicts_as_a_processor_does():
    here, there = (
        probe(accelerator=kind).fit_predict(labelled(), splits(0)).probs[0]
        for kind in ("cpu", "gpu")
    )
    np.testing.assert_allclose(there, here, rtol=0, atol=TOLERANCE)
