"""The visual context of captions: objects in their pictures, with probabilities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.corpus.captions import ranges
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.errors import NotApplicableError, UsageError, did_you_mean


@dataclass(frozen=True, eq=False)
class Contexts:
    """Objects of images, M pairs of an image and an object in the order of the images.

    Attributes:
        names: the U distinct objects.
        images: (M,) row of each pair's image.
        objects: (M,) index of its object.
        probabilities: (M,) P(c) of the object, in [0, 1].
        notes: sentences for readers about the source.
    """

    names: tuple[str, ...]
    images: IntArray
    objects: IntArray
    probabilities: Float64Array
    notes: tuple[str, ...] = ()

    @classmethod
    def of_images(
        cls, objects_by_row: Mapping[int, Mapping[str, float]], notes: tuple[str, ...] = ()
    ) -> Contexts:
        """Contexts from a mapping of rows of images to objects and their P(c).

        Example:
            >>> contexts = Contexts.of_images({3: {"dog": 0.5}, 1: {"kite": 0.25, "dog": 0.75}})
            >>> contexts.names, contexts.images.tolist(), contexts.probabilities.tolist()
            (('dog', 'kite'), [1, 1, 3], [0.75, 0.25, 0.5])
        """
        pairs = [
            (row, name, objects_by_row[row][name])
            for row in sorted(objects_by_row)
            for name in sorted(objects_by_row[row])
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

    def shown(self, n_images: int) -> BoolArray:
        """(N,) images with any object."""
        flags = np.zeros(n_images, bool)
        flags[self.images] = True
        return flags

    def beside(self, images: IntArray) -> tuple[IntArray, IntArray]:
        """The pairs of R images, and (P,) which of the R images each pair belongs to.

        Args:
            images: (R,) rows, in any order; repetitions are allowed.
        """
        starts, ends = (np.searchsorted(self.images, images, side) for side in ("left", "right"))
        return ranges(starts, ends - starts), np.repeat(np.arange(len(images)), ends - starts)

    def number(self, name: str) -> int:
        """The index of an object.

        Raises:
            UsageError: if no image shows it.
        """
        if name not in self.names:
            raise UsageError(
                f"metric.objects: no image shows {name!r}; {did_you_mean(name, self.names)}"
            )
        return self.names.index(name)


def annotated(corpus: Corpus, excluded: Collection[str]) -> Contexts:
    """The objects of a data set's annotations.

    Annotations have no confidence. P(c) is how common an object is: the share of the images with
    known objects that show it. The paper reads P(c) so: an object in every picture says nothing
    about the people in it.

    Args:
        corpus: with objects.
        excluded: objects that do not count.

    Raises:
        NotApplicableError: if the corpus has no objects.
    """
    objects_of_images = [sorted(set(objects) - set(excluded)) for objects in corpus.objects or ()]
    known = sum(map(bool, corpus.objects or ()))
    if not any(objects_of_images):
        raise NotApplicableError(
            f"dataset {corpus.dataset!r} has no objects for these images, which the Gender Score "
            "needs as visual context"
        )
    counts = Counter(name for objects in objects_of_images for name in objects)
    shares = {name: count / known for name, count in counts.items()}
    return Contexts.of_images(
        {
            row: {name: shares[name] for name in objects}
            for row, objects in enumerate(objects_of_images)
        }
    )
