"""What a picture shows beside the person, and how sure that is: the visual context of a caption."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.captions import ranges
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.errors import NotApplicableError, UsageError, did_you_mean

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Contexts:
    """Objects of images, M pairs of an image and an object in the order of the images.

    Attributes:
        names: the U distinct objects.
        images: (M,) row of each pair's image.
        objects: (M,) number of its object.
        probabilities: (M,) P(c) of the object, in [0, 1].
        notes: what a reader must know of where they come from.
    """

    names: tuple[str, ...]
    images: IntArray
    objects: IntArray
    probabilities: FloatArray
    notes: tuple[str, ...] = ()

    @classmethod
    def of_images(
        cls, found: Mapping[int, Mapping[str, float]], notes: tuple[str, ...] = ()
    ) -> Contexts:
        """Those of images by their rows, object to P(c).

        Example:
            >>> found = Contexts.of_images({3: {"dog": 0.5}, 1: {"kite": 0.25, "dog": 0.75}})
            >>> found.names, found.images.tolist(), found.probabilities.tolist()
            (('dog', 'kite'), [1, 1, 3], [0.75, 0.25, 0.5])
        """
        pairs = [
            (row, name, found[row][name]) for row in sorted(found) for name in sorted(found[row])
        ]
        names = tuple(sorted({name for _, name, _ in pairs}))
        number = {name: k for k, name in enumerate(names)}
        return cls(
            names,
            np.array([row for row, _, _ in pairs], np.int64),
            np.array([number[name] for _, name, _ in pairs], np.int64),
            np.array([probability for _, _, probability in pairs], np.float64),
            notes,
        )

    def shown(self, n_images: int) -> Mask:
        """(N,) images with any object."""
        found = np.zeros(n_images, bool)
        found[self.images] = True
        return found

    def beside(self, images: IntArray) -> tuple[IntArray, IntArray]:
        """The pairs of R images, and (P,) which of the R each is of.

        Args:
            images: (R,) rows, in any order; one may stand several times.
        """
        starts, ends = (np.searchsorted(self.images, images, side) for side in ("left", "right"))
        return ranges(starts, ends - starts), np.repeat(np.arange(len(images)), ends - starts)

    def number(self, name: str) -> int:
        """The number of an object.

        Raises:
            UsageError: if no image shows it.
        """
        if name not in self.names:
            raise UsageError(
                f"metric.objects: no image shows {name!r}; {did_you_mean(name, self.names)}"
            )
        return self.names.index(name)


def annotated(corpus: Corpus, excluded: Collection[str]) -> Contexts:
    """The objects that a data set knows of its images.

    People annotated them and gave no confidence. P(c) is how common an object is: the share of the
    images with known objects that show it. That is the paper's own reading of P(c): what is in
    every picture tells nothing of anyone in it.

    Args:
        corpus: with objects.
        excluded: objects that do not count.

    Raises:
        NotApplicableError: if it has none.
    """
    own = [sorted(set(objects) - set(excluded)) for objects in corpus.objects or ()]
    known = sum(map(bool, corpus.objects or ()))
    if not any(own):
        raise NotApplicableError(
            f"dataset {corpus.dataset!r} has no objects for these images, which the Gender Score "
            "needs as visual context"
        )
    counts = Counter(name for objects in own for name in objects)
    shares = {name: count / known for name, count in counts.items()}
    return Contexts.of_images(
        {row: {name: shares[name] for name in objects} for row, objects in enumerate(own)}
    )
