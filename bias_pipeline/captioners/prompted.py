"""What all prompt-captioners share: a prompt, a way to see, and answers instead of vectors."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bias_pipeline.captioners.backbones import Backbone, BackboneInputs
from bias_pipeline.captioners.prompt import Prompt, Prompted
from bias_pipeline.corpus.predictions import Labelled
from bias_pipeline.encoders.base import Head, IntArray, Items, NetEncoder
from bias_pipeline.errors import NotApplicableError, UsageError

if TYPE_CHECKING:
    from torch import nn

    from bias_pipeline.inference.texts import Embedded


AnswerNumbers: TypeAlias = Sequence[Sequence[int]]


def digest_with(data: Labelled, seen: str) -> str:
    """SHA-256 (hex) of captions, labels and the digest of what is seen with them."""
    return hashlib.sha256(f"{data.digest} {seen}".encode()).hexdigest()


def require_groups(data: Labelled) -> None:
    """Refuse tasks: who is prompted names one group.

    Raises:
        NotApplicableError: if there are tasks to guess and no groups.
    """
    if data.multi_label:
        raise NotApplicableError(
            f"{data.name}: a prompted captioner names one group and guesses no tasks; choose "
            "another encoder"
        )


class PromptCaptioner(NetEncoder):
    """A captioner that is led to name the group; the head passes its answers on.

    Its network gives (B, K) logarithms of how likely each answer is.
    """

    prompt: Prompt

    @property
    @abstractmethod
    def visual(self) -> Backbone:
        """How it sees."""

    @abstractmethod
    def network(
        self, visual: BackboneInputs, vocabulary: Mapping[str, int], answers: AnswerNumbers
    ) -> nn.Module:
        """A network with fresh weights.

        Args:
            visual: what is seen.
            vocabulary: word to number.
            answers: K lists of the numbers of words that name each group; none where it is to
                write captions.
        """

    def begin_to_write(self, network: Any, counts: Sequence[int]) -> None:
        """Make ready a network that is to write captions; most begin as they are built.

        Args:
            network: with fresh weights.
            counts: how often captions have each word, by its number.
        """
        del network, counts

    def build(self, inputs: PromptedInputs) -> nn.Module:
        """A network with fresh weights, led to the groups' answers."""
        return self.network(inputs.visual, inputs.words.vocabulary, inputs.words.answers)

    @property
    def sees(self) -> str:
        """See the base."""
        return self.visual.needs

    def require(self) -> None:
        """See the base."""
        self.visual.require()

    def digest(self, data: Labelled) -> str:
        """Of the captions and of what is to be seen with them."""
        return digest_with(data, self.visual.digest(data))

    def prepare(self, data: Labelled) -> Embedded | None:
        """Read the pictures once, in one process, if they are kept."""
        if self.visual.cache is not None:
            self.visual.read(data)
        return None

    def read(self, data: Labelled) -> PromptedItems:
        """Captions and what is seen with them.

        Raises:
            NotApplicableError: if there are tasks to guess and no groups.
        """
        require_groups(data)
        return PromptedItems(self.prompt, data, self.visual.read(data))


@dataclass(frozen=True, eq=False)
class PromptedItems(Items):
    """N captions with what is seen, before any attacker."""

    prompt: Prompt
    data: Labelled
    visual: BackboneInputs

    def fit(self, train: IntArray) -> PromptedInputs:
        """With numbers for the words of the captions that are learnt from."""
        return PromptedInputs(Prompted(self.prompt, self.data, train), self.visual.fit(train))


@dataclass(frozen=True, eq=False)
class PromptedInputs:
    """What a prompted captioner takes: words and pictures.

    Attributes:
        words: captions in their prompts.
        visual: what is seen with them.
    """

    words: Prompted
    visual: BackboneInputs

    @cached_property
    def lengths(self) -> IntArray:
        """(N,) words before the answer."""
        return self.words.lengths

    def batch(self, rows: IntArray) -> Mapping[str, npt.NDArray[Any]]:
        """Words and what is seen, by name."""
        return {**self.words.batch(rows), **self.visual.batch(np.asarray(rows))}


@dataclass(frozen=True)
class Answers(Head):
    """``head=answers``: the captioner's own vocabulary has answered; nothing is put on top.

    Attributes:
        renormalise: whether the groups' answers share all of the probability, as if the captioner
            could say nothing else. ImageCaptioner2 leaves that open. Otherwise the probability is
            the answer's among all words, and the rest belongs to no group.
    """

    renormalise: bool = True

    def n_outputs(self, n_classes: int, *, exclusive: bool) -> int:
        """One number a group.

        Raises:
            UsageError: if there are tasks to guess.
        """
        if not exclusive:
            raise UsageError("head=answers is of a captioner that names one group, not of tasks")
        return n_classes

    def build(self, n_inputs: int, n_outputs: int) -> nn.Module:
        """What passes (B, K) logarithms on.

        Raises:
            UsageError: if the encoder gives vectors and no answers.
        """
        from bias_pipeline.captioners.answer_nets import AnswersNet

        if n_inputs != n_outputs:
            raise UsageError(
                "head=answers is of encoders that name groups (sat, grit, hf); choose head=mlp3"
            )
        return AnswersNet(renormalise=self.renormalise)
