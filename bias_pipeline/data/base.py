"""The interface of all data sets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import BLANK_LIMIT, Corpus
from bias_pipeline.corpus.regrouping import scored_corpus, with_attributes
from bias_pipeline.declared import Configurable
from bias_pipeline.errors import (
    BiasPipelineError,
    NotApplicableError,
    ResourceError,
    UsageError,
    did_you_mean,
)

NO_CAPTIONER = "none"  # the captioner's name if there are no captions


class Dataset(Configurable, ABC):
    """Files on disk that become a corpus.

    Attributes:
        name: as in ``dataset=``.
        shown_under: the terms under which pictures may be shown to others, with the credit to
            give. Empty: no permission is known, so no report contains pictures.
        blank_limit: a side is refused if a larger share of its captions is absent.
    """

    name: str
    shown_under: str = ""
    blank_limit: float = BLANK_LIMIT

    @abstractmethod
    def captioners(self) -> Sequence[str]:
        """Every captioner by name; the first is the default."""

    def all_captioners(self, attribute: Attribute) -> Sequence[str]:
        """The captioners of ``captioner=all``: every captioner whose file exists."""
        del attribute
        return self.captioners()

    def annotators(self, attribute: Attribute) -> Sequence[str]:
        """The annotators who labelled the attribute; empty if the data set names none."""
        del attribute
        return ()

    def samples(self, captioner: str) -> Sequence[Dataset]:
        """A data set for each caption, if a captioner wrote several captions of each image.

        Args:
            captioner: its name.
        """
        del captioner
        return [self]

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
        """The corpus to score for a captioner and an attribute or an intersection.

        Args:
            captioner: its name.
            attribute: whose groups count.
            limit: see :func:`bias_pipeline.corpus.split_rules.limit_images`.
            others: further attributes to read. Attributes without labels are left out, and
                unreadable attributes too, with a note.

        Raises:
            BiasPipelineError: see :meth:`load` and
                :func:`~bias_pipeline.corpus.regrouping.scored_corpus`.
        """
        corpora = [self.load(captioner, single) for single in attribute.singles]
        corpus = replace(scored_corpus(corpora, attribute, limit), shown_under=self.shown_under)
        labelled, notes = {}, []
        for other in others:
            if other.name == attribute.name or self.name not in other.labels:
                continue
            try:
                labelled[other.name] = self.load(captioner, other)
            except NotApplicableError:  # such as a table without the attribute's column
                continue
            except BiasPipelineError as error:
                notes.append(f"attribute {other.name!r} is left out: {error}")
        if not others:
            return corpus
        return replace(with_attributes(corpus, labelled), notes=(*corpus.notes, *notes))

    def everyone(self, attribute: Attribute) -> list[str]:
        """The captioners of ``captioner=all`` with files for every part of an intersection."""
        first, *others = (self.all_captioners(single) for single in attribute.singles)
        return [name for name in first if all(name in names for names in others)]

    def check_captioner(self, captioner: str) -> None:
        """Refuse an unknown captioner.

        Raises:
            UsageError: with the nearest known name.
        """
        if captioner not in self.captioners():
            if Path(captioner).is_file():
                raise UsageError(
                    f"captioner={captioner} is a file, and dataset={self.name} takes only its own "
                    "captioners; for a file add dataset=coco dataset.attributes=LABELS"
                )
            raise UsageError(
                f"captioner {captioner!r} is unknown to dataset {self.name!r}; "
                f"{did_you_mean(captioner, self.captioners())}"
            )


def check_folder(root: Path, dataset: str) -> None:
    """Refuse an absent data folder.

    Raises:
        ResourceError: naming the folder and the key to set.
    """
    if not root.is_dir():
        raise ResourceError(
            f"dataset {dataset!r}: {root} is not a folder; "
            "set dataset.root=... to the folder of its files"
        )
