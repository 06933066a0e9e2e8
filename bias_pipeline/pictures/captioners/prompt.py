"""Prompts after which a captioner predicts the group's name, and the base of such captioners.

A prompt is a caption with words around it. The captioner reads it word by word (teacher forcing).
Only the captioner's predictions of the answer are used. Such an encoder gives answers instead of
vectors.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import IntArray
from bias_pipeline.attack.encoder import Head, Items, NetEncoder
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.declared import Configurable, OneLine
from bias_pipeline.errors import NotApplicableError, UsageError, did_you_mean
from bias_pipeline.pictures.captioners.backbones import Backbone, BackboneInputs

if TYPE_CHECKING:
    from torch import nn

    from bias_pipeline.models.text_vectors import Embedded

UNKNOWN, PAD, START = 0, 1, 2
N_SPECIAL = 3
CAPTION, ANSWER = "{caption}", "{answer}"


@dataclass(frozen=True)
class Prompt(Configurable):
    """A template that makes a captioner name the group (ImageCaptioner2, section 4.2).

    Example:
        >>> prompt = Prompt("gender")
        >>> " ".join(prompt.words_before), prompt.words_after
        ('{caption} therefore the gender is', ())
    """

    attribute: OneLine  # the text for `{attribute}` in the template
    # Words around `{caption}` and `{answer}`. Words after the answer count too: the score is the
    # probability of the answer and all words after it.
    template: OneLine = f"{CAPTION} therefore the {{attribute}} is {ANSWER}"
    # By group, the word or words that name it; a group that is left out has its own name
    answers: Mapping[str, OneLine] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for slot in (CAPTION, ANSWER):
            if self._words.count(slot) != 1:
                raise UsageError(
                    f"encoder.prompt.template={self.template!r}: {slot} must occur exactly once, "
                    "with blanks around it"
                )

    @property
    def _words(self) -> list[str]:
        return self.template.replace("{attribute}", self.attribute.lower()).split()

    @property
    def words_before(self) -> tuple[str, ...]:
        return tuple(self._words[: self._words.index(ANSWER)])

    @property
    def words_after(self) -> tuple[str, ...]:
        return tuple(self._words[self._words.index(ANSWER) + 1 :])

    def answers_of(self, groups: Sequence[str]) -> list[tuple[str, ...]]:
        for group in self.answers:
            if group not in groups:
                raise UsageError(
                    f"encoder.prompt.answers: {group!r} is not a group here; "
                    f"{did_you_mean(group, groups)}"
                )
        answers = [tuple(self.answers.get(group, group).lower().split()) for group in groups]
        if len(set(answers)) < len(answers):
            raise UsageError("encoder.prompt.answers: two groups have the same answer")
        return answers

    def lacking(self, groups: Sequence[str], known: Container[str]) -> list[str]:
        """The words of the template and of the answers that ``known`` lacks, sorted.

        Example:
            >>> Prompt("gender").lacking(["man", "woman"], {"is", "the", "man", "therefore"})
            ['gender', 'woman']
        """
        words = {*self.words_before, *self.words_after} - {CAPTION}
        return sorted(word for word in words.union(*self.answers_of(groups)) if word not in known)


@dataclass(frozen=True, eq=False)
class Prompted:
    """N captions within their prompts, as numbers of words.

    Words of training captions, of the template and of the answers have numbers; all other words are
    unknown.
    """

    prompt: Prompt  # the template and the answers
    data: LabelledCaptions  # captions and the names of the groups
    train: IntArray  # the rows of the training part

    @cached_property
    def vocabulary(self) -> Mapping[str, int]:
        """The number of each word; frequent words come first, ties in alphabetical order."""
        captions = self.data.captions.take(self.train)
        ranked = [
            word
            for _, word in sorted(zip((-captions.counts).tolist(), captions.types, strict=True))
        ]
        # Sorted, so that the order of the groups does not change any weight.
        answers = sorted({word for answer in self._answers for word in answer})
        words = dict.fromkeys(
            [*ranked, *self.prompt.words_before, *self.prompt.words_after, *answers]
        )
        words.pop(CAPTION, None)
        return {word: number for number, word in enumerate(words, N_SPECIAL)}

    @property
    def size(self) -> int:
        return len(self.vocabulary) + N_SPECIAL

    @cached_property
    def _answers(self) -> list[tuple[str, ...]]:
        return self.prompt.answers_of(self.data.classes)

    @property
    def answers(self) -> list[list[int]]:
        return [[self.vocabulary[word] for word in words] for words in self._answers]

    @cached_property
    def _lines(self) -> tuple[list[list[int]], list[list[int]]]:
        captions, number = self.data.captions, self.vocabulary
        table = np.array([number.get(word, UNKNOWN) for word in captions.types], np.int64)
        ends = captions.starts[1:-1]
        texts = [part.tolist() for part in np.split(table[captions.tokens], ends)[: len(captions)]]
        before, after = (
            [
                [n for word in words for n in (text if word == CAPTION else [number[word]])]
                for text in texts
            ]
            for words in (self.prompt.words_before, self.prompt.words_after)
        )
        return [[START, *line] for line in before], after

    @cached_property
    def lengths(self) -> IntArray:
        """(N,) the number of words that are read before the answer."""
        return np.array(list(map(len, self._lines[0])), np.int64)

    @property
    def whole_lengths(self) -> IntArray:
        """(N,) how many words each prompt has, with its longest answer and the words after it."""
        after = np.array(list(map(len, self._lines[1])), np.int64)
        return self.lengths + max(map(len, self._answers), default=0) + after

    def batch(self, rows: IntArray) -> Mapping[str, npt.NDArray[Any]]:
        """``tokens`` (B, L) and ``lengths`` (B,), and both for words after the answer, if any."""
        before, after = ([lines[row] for row in rows.tolist()] for lines in self._lines)
        arrays = {"tokens": _pad(before), "lengths": self.lengths[rows]}
        if self.prompt.words_after:
            arrays["tail"] = _pad(after)
            arrays["tail_lengths"] = np.array(list(map(len, after)), np.int64)
        return arrays


def _pad(lines: Sequence[Sequence[int]]) -> IntArray:
    """(B, L) the lines, padded to the length of the longest line."""
    table = np.full((len(lines), max(map(len, lines), default=0)), PAD, np.int64)
    for row, line in zip(table, lines, strict=True):
        row[: len(line)] = line
    return table


AnswerNumbers: TypeAlias = Sequence[Sequence[int]]


def digest_with(data: LabelledCaptions, image_digest: str) -> str:
    """SHA-256 (hex) of captions, labels and the digest of their visual inputs."""
    return hashlib.sha256(f"{data.digest} {image_digest}".encode()).hexdigest()


def require_groups(data: LabelledCaptions) -> None:
    """Refuse tasks, because a prompted captioner names one group."""
    if data.multi_label:
        raise NotApplicableError(
            f"{data.name}: a prompted captioner predicts one group, not tasks; choose another "
            "encoder"
        )


class PromptCaptioner(NetEncoder):
    """A captioner that a prompt asks for the group; its head returns the captioner's answers.

    The network gives (B, K) log-probabilities of the answers.
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
        """Prepare a network that is trained to write captions; most networks need nothing."""
        del network, counts

    def build(self, inputs: PromptedInputs) -> nn.Module:
        return self.network(inputs.visual, inputs.words.vocabulary, inputs.words.answers)

    @property
    def sees(self) -> str:
        return self.visual.needs

    def require(self) -> None:
        self.visual.require()

    def digest(self, data: LabelledCaptions) -> str:
        return digest_with(data, self.visual.digest(data))

    def prepare(self, data: LabelledCaptions) -> Embedded | None:
        """If there is a cache, let one process read all pictures into it, once."""
        if self.visual.cache is not None:
            self.visual.read(data)
        return None

    def read(self, data: LabelledCaptions) -> PromptedItems:
        require_groups(data)
        return PromptedItems(self.prompt, data, self.visual.read(data))


@dataclass(frozen=True, eq=False)
class PromptedItems(Items):
    """N captions with visual inputs, which are the same for all attackers."""

    prompt: Prompt
    data: LabelledCaptions
    visual: BackboneInputs

    def fit(self, train: IntArray) -> PromptedInputs:
        return PromptedInputs(Prompted(self.prompt, self.data, train), self.visual.fit(train))


@dataclass(frozen=True, eq=False)
class PromptedInputs:
    words: Prompted  # captions in their prompts
    visual: BackboneInputs  # their visual inputs

    @cached_property
    def lengths(self) -> IntArray:
        return self.words.lengths

    def batch(self, rows: IntArray) -> Mapping[str, npt.NDArray[Any]]:
        return {**self.words.batch(rows), **self.visual.batch(np.asarray(rows))}


@dataclass(frozen=True)
class Answers(Head):
    """``head=answers``: the captioner's own output is the prediction, without another head."""

    # Whether probabilities are normalised over the groups' answers; ImageCaptioner2 does not say.
    # Otherwise they are probabilities among all words, and the rest belongs to no group.
    renormalise: bool = True

    def n_outputs(self, n_classes: int, *, exclusive: bool) -> int:
        if not exclusive:
            raise UsageError("head=answers works only for one group per caption, not for tasks")
        return n_classes

    def build(self, n_inputs: int, n_outputs: int) -> nn.Module:
        from bias_pipeline.pictures.captioners.nets import AnswersNet

        if n_inputs != n_outputs:
            raise UsageError(
                "head=answers works only with encoders that name groups (sat, grit, hf); choose "
                "head=mlp3"
            )
        return AnswersNet(renormalise=self.renormalise)
