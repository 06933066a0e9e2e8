"""``probe=zero_shot``: a model answers without any training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from scipy import special

from bias_pipeline.array_types import Float64Array
from bias_pipeline.attackers.probe import Probe, ProbeResult, TrainingJob
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.encoders.base import AnsweringEncoder, Encoder, named_spec
from bias_pipeline.errors import UsageError

VERSION = 1  # raise it whenever any prediction changes


class ZeroShotProbe(Probe):
    """The answers of a model about the test captions of each split.

    Seeds differ only in their splits, so their spread is that of the images alone.

    Args:
        encoder: the model that answers.
        renormalise: whether the groups' answers share all of the probability; see
            :class:`~bias_pipeline.captioners.prompted.Answers`.
        cache: see :class:`~bias_pipeline.attackers.probe.Probe`.

    Raises:
        UsageError: if the encoder must be trained.
    """

    def __init__(
        self, encoder: Encoder, renormalise: bool = True, cache: str | None = None
    ) -> None:
        super().__init__(cache)
        if not isinstance(encoder, AnsweringEncoder):
            raise UsageError(
                "probe=zero_shot needs a model that answers without training (encoder=hf); choose "
                "probe=neural"
            )
        self.encoder: AnsweringEncoder = encoder
        self.renormalise = renormalise

    @property
    def spec(self) -> Mapping[str, object]:
        """Encoder, normalisation and version."""
        return {
            "probe": "zero_shot",
            "version": VERSION,
            "encoder": named_spec(self.encoder),
            "renormalise": self.renormalise,
        }

    def train(self, data: LabelledCaptions, jobs: Sequence[TrainingJob]) -> Iterator[ProbeResult]:
        """Ask about all captions, once."""
        if not jobs:
            return
        probs = self._probabilities(self.encoder.likely(data))
        yield from (ProbeResult(probs[job.test], attempts=0) for job in jobs)

    def _probabilities(self, likely: Float64Array) -> Float64Array:
        """(N, K), or (N, K + 1) with the probability of all other answers."""
        if self.renormalise:
            return np.asarray(special.softmax(likely, axis=1), np.float64)
        named = np.exp(likely)
        rest = 1 - named.sum(axis=1, keepdims=True)
        return np.concatenate([named, rest.clip(0)], axis=1)
