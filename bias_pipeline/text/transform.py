"""The base of all text transforms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.declared import Configurable
from bias_pipeline.errors import UsageError, did_you_mean

Transform = Callable[[Corpus], Corpus]


class TextTransform(Configurable, ABC):
    """A pure function of a corpus that rewrites the captions of some sides.

    Args:
        sides: which captions are rewritten, any of ``model`` and ``human``.

    Raises:
        UsageError: on an unknown side.
    """

    def __init__(self, sides: Sequence[str] = SIDES) -> None:
        for side in sides:
            if side not in SIDES:
                raise UsageError(f"sides: {side!r} is unknown; {did_you_mean(side, SIDES)}")
        self.sides = tuple(sides)

    def __call__(self, corpus: Corpus) -> Corpus:
        """A corpus with rewritten captions; the input stays as it is."""
        return corpus.rewrite({side: self.rewrite(corpus, side) for side in self.sides})

    @property
    def alternatives(self) -> Mapping[str, TextTransform]:
        """The variants by name, if scores are averaged over several; else itself alone."""
        return {"": self}

    @abstractmethod
    def rewrite(self, corpus: Corpus, side: str) -> Captions:
        """The rewritten captions of one side."""


def applied(transforms: Iterable[Transform], corpus: Corpus) -> Corpus:
    """The corpus after all transforms in order; mask-then-align differs from align-then-mask."""
    for transform in transforms:
        corpus = transform(corpus)
    return corpus


def alternatives(transforms: Sequence[Transform]) -> Mapping[str, tuple[Transform, ...]]:
    """Every combination of the transforms' variants, by name.

    Example:
        >>> list(alternatives([Identity()]))
        ['']
    """
    each: list[Iterable[tuple[str, Transform]]] = [
        transform.alternatives.items()
        if isinstance(transform, TextTransform)
        else [("", transform)]
        for transform in transforms
    ]
    return {
        " ".join(name for name, _ in chosen if name): tuple(transform for _, transform in chosen)
        for chosen in product(*each)
    }


class Identity(TextTransform):
    """Leaves captions as they are (``masking=none``, ``alignment=none``)."""

    def rewrite(self, corpus: Corpus, side: str) -> Captions:
        """The captions of the side, unchanged."""
        return corpus.side(side)


def is_special(word: str) -> bool:
    """Whether a token was inserted by a transform.

    Example:
        >>> is_special("<unk>"), is_special("unk"), is_special("<")
        (True, False, False)
    """
    return len(word) > 2 and word[0] == "<" and word[-1] == ">"
