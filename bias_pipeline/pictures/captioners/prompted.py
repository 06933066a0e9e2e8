"""The base of prompted captioners: a prompt, a backbone, and answers instead of vectors."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import IntArray
from bias_pipeline.attack.encoder import Head, Items, NetEncoder
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.errors import NotApplicableError, UsageError
from bias_pipeline.pictures.captioners.backbones import Backbone, BackboneInputs
from bias_pipeline.pictures.captioners.prompt import Prompt, Prompted

if TYPE_CHECKING:
    from torch import nn

    from bias_pipeline.models.text_vectors import Embedded


AnswerNumbers: TypeAlias = Sequence[Sequence[int]]


def digest_with(data: LabelledCaptions, image_digest: str) -> str:
    """SHA-256 (hex) of captions, labels and the digest of their visual inputs."""
    return hashlib.sha256(f"{data.digest} {image_digest}".encode()).hexdigest()


def require_groups(data: LabelledCaptions) -> None:
    """Refuse tasks: a prompted captioner names one group."""
    if data.multi_label:
        raise NotApplicableError(
            f"{data.name}: a prompted captioner predicts one group, not tasks; choose another "
            "encoder"
        )


class PromptCaptioner(NetEncoder):
    """A captioner prompted for the group; the head returns its answers.

    Its network gives (B, K) log-probabilities of the answers.
    """

    prompt: Prompt

    @property
    @abstractmethod
    def visual(self) -> Backbone: ...

    @abstractmethod
    def network(
        self, visual: BackboneInputs, vocabulary: Mapping[str, int], answers: AnswerNumbers
    ) -> nn.Module:
        """A network with fresh weights."""

    def begin_to_write(self, network: Any, counts: Sequence[int]) -> None:
        """Prepare a network that is trained to write captions; most need nothing."""
        del network, counts

    def build(self, inputs: PromptedInputs) -> nn.Module:
        """A network with fresh weights for the groups' answers."""
        return self.network(inputs.visual, inputs.words.vocabulary, inputs.words.answers)

    @property
    def sees(self) -> str:
        return self.visual.needs

    def require(self) -> None:
        self.visual.require()

    def digest(self, data: LabelledCaptions) -> str:
        """Of the captions and their visual inputs."""
        return digest_with(data, self.visual.digest(data))

    def prepare(self, data: LabelledCaptions) -> Embedded | None:
        """Read the pictures once, in one process, if there is a cache."""
        if self.visual.cache is not None:
            self.visual.read(data)
        return None

    def read(self, data: LabelledCaptions) -> PromptedItems:
        """Captions and their visual inputs."""
        require_groups(data)
        return PromptedItems(self.prompt, data, self.visual.read(data))


@dataclass(frozen=True, eq=False)
class PromptedItems(Items):
    """N captions with visual inputs, before any attacker."""

    prompt: Prompt
    data: LabelledCaptions
    visual: BackboneInputs

    def fit(self, train: IntArray) -> PromptedInputs:
        """The inputs with a vocabulary of the training captions."""
        return PromptedInputs(Prompted(self.prompt, self.data, train), self.visual.fit(train))


@dataclass(frozen=True, eq=False)
class PromptedInputs:
    """Inputs of a prompted captioner: words and pictures."""

    words: Prompted  # captions in their prompts
    visual: BackboneInputs  # their visual inputs

    @cached_property
    def lengths(self) -> IntArray:
        return self.words.lengths

    def batch(self, rows: IntArray) -> Mapping[str, npt.NDArray[Any]]:
        """Words and visual inputs, by name."""
        return {**self.words.batch(rows), **self.visual.batch(np.asarray(rows))}


@dataclass(frozen=True)
class Answers(Head):
    """``head=answers``: the captioner's own output is the prediction, without a head."""

    # Whether probabilities are normalised over the groups' answers. ImageCaptioner2 leaves that
    # open. Otherwise they are among all words, and the rest belongs to no group.
    renormalise: bool = True

    def n_outputs(self, n_classes: int, *, exclusive: bool) -> int:
        """One number a group."""
        if not exclusive:
            raise UsageError("head=answers works only for one group per caption, not for tasks")
        return n_classes

    def build(self, n_inputs: int, n_outputs: int) -> nn.Module:
        """A network that returns (B, K) log-probabilities."""
        from bias_pipeline.pictures.captioners.nets import AnswersNet

        if n_inputs != n_outputs:
            raise UsageError(
                "head=answers works only with encoders that name groups (sat, grit, hf); choose "
                "head=mlp3"
            )
        return AnswersNet(renormalise=self.renormalise)
