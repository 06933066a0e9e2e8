"""What every data set can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.intersection import beside, joined
from bias_pipeline.declared import Configurable
from bias_pipeline.errors import BiasPipelineError, ResourceError, UsageError, did_you_mean


class Dataset(Configurable, ABC):
    """Files on disk that become a corpus.

    Attributes:
        name: as in ``dataset=``.
        shown_under: the terms under which its pictures may be shown to others, and whom to name
            beside them. Empty: nobody has said that they may, so no report holds them.
    """

    name: str
    shown_under: str = ""

    @abstractmethod
    def captioners(self) -> Sequence[str]:
        """Every captioner by name; the first is the default."""

    def all_captioners(self, attribute: Attribute) -> Sequence[str]:
        """What ``captioner=all`` stands for: those whose files are there."""
        del attribute
        return self.captioners()

    def annotators(self, attribute: Attribute) -> Sequence[str]:
        """Who labelled the attribute; none if the data set does not say."""
        del attribute
        return ()

    @abstractmethod
    def load(self, captioner: str, attribute: Attribute) -> Corpus:
        """Read one captioner's captions with the attribute's labels.

        Raises:
            UsageError: if the captioner or the attribute is unknown to the data set.
            ResourceError: if a file is absent.
            DataError: if a file cannot be scored as it is.
        """

    def read(
        self,
        captioner: str,
        attribute: Attribute,
        limit: int | None = None,
        others: Sequence[Attribute] = (),
    ) -> Corpus:
        """What is scored of a captioner, for an attribute or an intersection.

        Args:
            captioner: its name.
            attribute: whose groups count.
            limit: see :func:`bias_pipeline.corpus.limit.limited`.
            others: attributes that are looked at beside it; those that the data set does not label
                are left out, those whose labels cannot be read with a note.

        Raises:
            BiasPipelineError: see :meth:`load` and
                :func:`~bias_pipeline.corpus.intersection.joined`.
        """
        own = joined([self.load(captioner, own) for own in attribute.singles], attribute, limit)
        own = replace(own, shown_under=self.shown_under)
        further, notes = {}, []
        for other in others:
            if other.name == attribute.name or self.name not in other.labels:
                continue
            try:
                further[other.name] = self.load(captioner, other)
            except BiasPipelineError as error:
                notes.append(f"attribute {other.name!r} is not looked at beside it: {error}")
        return replace(beside(own, further), notes=(*own.notes, *notes)) if others else own

    def everyone(self, attribute: Attribute) -> list[str]:
        """The captioners that ``captioner=all`` stands for, under every part of an attribute."""
        first, *others = (self.all_captioners(own) for own in attribute.singles)
        return [name for name in first if all(name in own for own in others)]

    def check_captioner(self, captioner: str) -> None:
        """Refuse unknown names.

        Raises:
            UsageError: with the nearest known name.
        """
        if captioner not in self.captioners():
            raise UsageError(
                f"captioner {captioner!r} is unknown to dataset {self.name!r}; "
                f"{did_you_mean(captioner, self.captioners())}"
            )


def check_folder(root: Path, dataset: str) -> None:
    """Refuse a data folder that is not there.

    Raises:
        ResourceError: naming the folder and the key to set.
    """
    if not root.is_dir():
        raise ResourceError(
            f"dataset {dataset!r}: {root} is not a folder; "
            "set dataset.root=... to where the data lies"
        )
