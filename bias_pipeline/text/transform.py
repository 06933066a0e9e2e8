"""The shape all text transforms share."""

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
        """The corpus with rewritten captions; the given one is left as it is."""
        return corpus.rewrite({side: self.rewrite(corpus, side) for side in self.sides})

    @property
    def alternatives(self) -> Mapping[str, TextTransform]:
        """Those it stands for, by name, where scores are means over several; else itself alone."""
        return {"": self}

    @abstractmethod
    def rewrite(self, corpus: Corpus, side: str) -> Captions:
        """The rewritten captions of one side."""


def applied(transforms: Iterable[Transform], corpus: Corpus) -> Corpus:
    """The corpus after one transform and then the next; mask-then-align is not align-then-mask."""
    for transform in transforms:
        corpus = transform(corpus)
    return corpus


def alternatives(transforms: Sequence[Transform]) -> Mapping[str, tuple[Transform, ...]]:
    """Every way in which transforms that stand for several can be applied, by name.

    Example:
        >>> list(alternatives([Identity()]))
        ['']
    """
    each: list[Iterable[tuple[str, Transform]]] = [
        own.alternatives.items() if isinstance(own, TextTransform) else [("", own)]
        for own in transforms
    ]
    return {
        " ".join(name for name, _ in chosen if name): tuple(own for _, own in chosen)
        for chosen in product(*each)
    }


class Identity(TextTransform):
    """Leaves captions as they are (``masking=none``, ``alignment=none``)."""

    def rewrite(self, corpus: Corpus, side: str) -> Captions:
        """The captions of the side, unchanged."""
        return corpus.side(side)


def is_special(word: str) -> bool:
    """Whether a token was put in by a transform.

    Example:
        >>> is_special("<unk>"), is_special("unk"), is_special("<")
        (True, False, False)
    """
    return len(word) > 2 and word[0] == "<" and word[-1] == ">"
