"""``dataset=artemis`` reads what people feel in front of paintings, and why.

ArtEmis' release is a CSV of utterances with mojibake. Its captioners ("speakers") were fitted to
some of the utterances. Sources: Achlioptas et al., ArtEmis (CVPR 2021), and Mohamed et al., It is
Okay to Not Be Okay (CVPR 2022), which calls its table of contrastive annotations version 2.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.captions import is_blank
from bias_pipeline.corpus.corpus import BLANK_LIMIT, Corpus, Record
from bias_pipeline.corpus.image_ids import ENDINGS, first_ids
from bias_pipeline.data.base import NO_CAPTIONER, Dataset, check_folder
from bias_pipeline.data.binary_tables import file_of, stem
from bias_pipeline.data.captioner_files import CaptionerFolder
from bias_pipeline.data.coco_files import model_captions
from bias_pipeline.data.columns import Layout
from bias_pipeline.data.file_names import own_numbers
from bias_pipeline.data.image_numbers import with_names
from bias_pipeline.data.label_files import strata_note
from bias_pipeline.data.label_values import TIE, majority
from bias_pipeline.data.tables import check_file, open_rows
from bias_pipeline.declared import Configurable, Count, Range, Seed
from bias_pipeline.errors import DataError, ResourceError, UsageError, did_you_mean, inflect
from bias_pipeline.io.paths import safe_name
from bias_pipeline.text.encoding import mend_mojibake
from bias_pipeline.text.mending import mended_records
from bias_pipeline.text.tokenize import tokenize_word


class ArtemisDataset(Dataset):
    """Paintings with several utterances each, in which annotators say what they feel and why.

    The release's CSV file is read as it is published. Mojibake in names and utterances is mended
    and counted. Rows without an utterance are counted and left out. A file of the other version is
    refused. The id of an image is the ``style/name`` of its painting.

    ImageCaptioner2 does not say how utterances of several emotions become the label of a painting.
    With ``labels=majority`` the painting has the emotion that most annotators chose, even if their
    utterances are left out. A tie belongs to no group (ours). With ``caption`` each utterance is a
    record with its own emotion. The utterances of a painting stay in one part of a split and are
    resampled together.
    """

    name = "artemis"

    def __init__(
        self,
        root: str,
        version: Literal[1, 2] = 1,
        file: str | None = None,
        labels: Literal["majority", "caption"] = "majority",
        split: str | Sequence[str] | None = None,
        cleaning: Cleaning | None = None,
        images: str | None = None,
        captioners: str | None = None,
        strict: bool = True,
        trained_on_reference: bool | None = None,
        blank_limit: float = BLANK_LIMIT,
    ) -> None:
        self.root, self.version, self.labels = Path(root), version, labels
        self.path = self.root / (file or FILES[version])
        self.split = [split] if isinstance(split, str) else list(split or PARTS)
        for part in self.split:
            if part not in PARTS:
                raise UsageError(f"dataset.split={part} is unknown; {did_you_mean(part, PARTS)}")
        self.cleaning = cleaning or _NO_CLEANING
        self.images = Path(images) if images else None
        self.folder = CaptionerFolder.find(self.name, captioners, self.root)
        self.strict = strict
        self.trained_on_reference = trained_on_reference
        self.blank_limit = blank_limit

    def captioners(self) -> Sequence[str]:
        """The captioners that have a file, and ``none``, which reads only human captions."""
        return (*self.folder.names(), NO_CAPTIONER)

    def all_captioners(self, attribute: Attribute) -> Sequence[str]:
        del attribute
        return self.folder.names() or (NO_CAPTIONER,)

    def check_captioner(self, captioner: str) -> None:
        if captioner != NO_CAPTIONER:
            self.folder.file(captioner)

    def load(self, captioner: str, attribute: Attribute) -> Corpus:
        self.check_captioner(captioner)
        names, labels = attribute.groups_of(self.name)
        if labels.field != "emotion":
            raise UsageError(
                f"attribute {attribute.name!r}, labels.artemis.field: dataset 'artemis' labels "
                f"'emotion' alone, not {labels.field!r}"
            )
        labels = labels.with_labels({}, {TIE: TIE})
        check_folder(self.root, self.name)
        release = read_release(self.path, self.version)
        cleaned, parts = self.cleaning.apply(release)
        rows = [row for row in cleaned.annotations if parts[row.painting] in self.split]
        if not rows:
            raise DataError(f"{self.path}: no utterance is of dataset.split={self.split}")
        paintings = by_painting(rows)
        known = Names(parts)
        path = None if captioner == NO_CAPTIONER else self.folder.file(captioner)
        model, spoken = ({}, []) if path is None else self._captions(path, known, paintings)
        pictures, unseen = self._pictures(paintings)
        votes = by_painting(release.annotations)
        records = [
            record
            for painting, annotations in paintings.items()
            for record in self._records(
                Record(painting, model.get(painting), image=pictures.get(painting)),
                annotations,
                attribute.name,
                majority((row.emotion, 1.0) for row in votes[painting]),
            )
        ]
        raw = (record.labels[attribute.name] for record in records)
        records, mends = mended_records(records, {"model": path, "human": self.path})
        return Corpus.build(
            records,
            dataset=f"{self.name} {self.version}",
            captioner=NO_CAPTIONER if path is None else safe_name(stem(path)),
            groups={attribute.name: (names, labels)},
            trained_on_reference=self.trained_on_reference,
            blank_limit=self.blank_limit,
            notes=[*cleaned.notes, *strata_note(raw, labels), *spoken, *unseen, *mends],
            file="" if path is None else str(path.resolve()),
        )

    def _captions(
        self, path: Path, known: Names, paintings: Mapping[str, Sequence[Annotation]]
    ) -> tuple[dict[str, str], list[str]]:
        """The captioner's captions by painting, and notes on captions that do not fit."""
        captions: dict[str, str] = {}
        foreign = []
        layout = Layout()
        read = model_captions(path, None, layout).captions
        names = own_numbers(layout.names.get(file_of(path), {}))  # paintings have no numbers
        for identifier, caption in with_names(path, read, names).items():
            painting = known.find(identifier)
            if painting is None:
                foreign.append(identifier)
            elif captions.setdefault(painting, caption) != caption:
                raise DataError(
                    f"{path}: {painting} has two different captions, one of them as "
                    f"{identifier}; keep one"
                )
        if not captions.keys() & paintings.keys():
            raise DataError(
                f"{path}: no caption is of a painting of dataset.split={','.join(self.split)}: "
                f"the captions have ids such as {first_ids(foreign or captions)}, "
                f"the paintings such as {first_ids(paintings)}"
            )
        lacking = [painting for painting in paintings if painting not in captions]
        fault = self._lack(f"{path}: ", lacking, len(paintings), "have no caption")
        strange = [
            f"{inflect(len(foreign), 'captions are')} of no painting, such as {first_ids(foreign)}"
        ]
        return captions, [*fault, *(strange if foreign else [])]

    def _pictures(self, paintings: Mapping[str, object]) -> tuple[dict[str, Path], list[str]]:
        """Pictures by painting, and a note on absent pictures."""
        if self.images is None:
            return {}, []
        if not self.images.is_dir():
            raise ResourceError(
                f"dataset 'artemis': {self.images} is not a folder; set dataset.images=... to the "
                "folder of WikiArt's styles"
            )
        places = ((painting, self.images / f"{painting}.jpg") for painting in paintings)
        pictures = {painting: path for painting, path in places if path.is_file()}
        if len(pictures) < len(paintings):
            known = Names([painting for painting in paintings if painting not in pictures])
            for path in sorted(self.images.glob("*/*")):
                if path.suffix.lower() in ENDINGS and (painting := known.find(path.as_posix())):
                    pictures.setdefault(painting, path)
        lacking = [painting for painting in paintings if painting not in pictures]
        return pictures, self._lack(
            f"{self.images}: ", lacking, len(paintings), "have no picture STYLE/NAME.jpg"
        )

    def _records(
        self, base: Record, annotations: Sequence[Annotation], attribute: str, label: str
    ) -> Iterator[Record]:
        """The records of one painting: a single record, or a record for each utterance."""
        if self.labels == "majority":
            texts = tuple(row.text for row in annotations)
            yield replace(base, human=texts, labels={attribute: label})
            return
        for number, row in enumerate(annotations):
            yield replace(
                base,
                id=f"{base.id}#{number}",
                human=(row.text,),
                labels={attribute: row.emotion},
                picture_id=base.id,
            )

    def _lack(self, where: str, lacking: Sequence[str], total: int, what: str) -> list[str]:
        """A note on paintings without a caption or a picture; in strict mode an error is raised."""
        if not lacking:
            return []
        fault = (
            f"{inflect(len(lacking), f'of {total} paintings {what}')}, such as {first_ids(lacking)}"
        )
        if self.strict:
            raise ResourceError(f"{where}{fault}; complete them, or set dataset.strict=false")
        return [fault]


EMOTIONS = (
    *("amusement", "awe", "contentment", "excitement"),
    *("anger", "disgust", "fear", "sadness", "something else"),
)
FILES: Mapping[int, str] = {1: "artemis_dataset_release_v0.csv", 2: "Contrastive.csv"}
PARTS = ("train", "val", "test", "rest")
UNKNOWN = "<unk>"
_COLUMNS = ("art_style", "painting", "emotion", "utterance", "repetition")
_ANCHOR = "anchor_painting"  # version 2's column of the painting that this painting contrasts with
_SHARES = (0.85, 0.05, 0.1)  # train, val, test


@dataclass(frozen=True)
class Annotation:
    """The emotion that one annotator felt in front of a painting, and the reason."""

    painting: str  # its style and name with `/` between, in Unicode NFC
    emotion: str  # one of `EMOTIONS`
    text: str  # the utterance
    repetition: int  # how many annotators the release counts for the painting
    raw: str  # style and name, joined as the release writes them


@dataclass(frozen=True)
class Release:
    annotations: Sequence[Annotation]  # in the order of the file
    n_rows: int  # rows of the file
    notes: Sequence[str]  # how many rows had no utterance, and how many cells were mended


def read_release(path: Path, version: Literal[1, 2]) -> Release:
    """The annotations of a release file, a CSV file as it is published."""
    rows = open_rows(check_file(path, "dataset.root"), what=f"a table with {', '.join(_COLUMNS)}")
    rows.require(*_COLUMNS)
    actual = 2 if rows.has(_ANCHOR) else 1
    if actual != version:
        has = "has the column" if actual == 2 else "has no column"
        raise DataError(
            f"{rows.path}: it {has} {_ANCHOR!r}, so it is version {actual} of ArtEmis; set "
            f"dataset.version={actual}"
        )
    annotations: list[Annotation] = []
    blank, unknown = 0, Counter[str]()
    first, n_rows = "", 0
    for number, row in rows.items:
        n_rows += 1
        style, name, emotion, text, repetition = (rows.text(number, row, c) for c in _COLUMNS)
        if is_blank(text):
            blank += 1
            continue
        if emotion not in EMOTIONS:
            unknown[emotion] += 1
            first = first or f"line {number}"
            continue
        if not (repetition.isascii() and repetition.isdigit()):
            rows.refuse(number, f"repetition {repetition!r} is not a whole number")
        painting, raw = f"{style}/{name}", style + name
        annotations.append(Annotation(painting, emotion, text, int(repetition), raw))
    if unknown:
        ((emotion, _),) = unknown.most_common(1)
        raise DataError(
            f"{path}: {inflect(unknown.total(), f'of {n_rows} rows have')} an unknown emotion, the "
            f"first on {first}, such as {emotion!r}; {did_you_mean(emotion, map(repr, EMOTIONS))}"
        )
    if not annotations:
        raise DataError(f"{path}: no row has an utterance")
    notes = []
    if blank:
        notes = [f"{inflect(blank, f'of {n_rows} rows have no utterance and are')} left out"]
    mended, more = _without_mojibake(annotations)
    return Release(mended, n_rows, [*notes, *more])


def _without_mojibake(annotations: Sequence[Annotation]) -> tuple[list[Annotation], list[str]]:
    """Annotations without mojibake, and a note on how many names and utterances contained it."""
    names = mend_mojibake(list(dict.fromkeys(row.painting for row in annotations)))
    texts = mend_mojibake(list(dict.fromkeys(row.text for row in annotations)))
    mended = [
        replace(
            row,
            painting=unicodedata.normalize("NFC", names.get(row.painting, row.painting)),
            text=texts.get(row.text, row.text),
        )
        for row in annotations
    ]
    note = (
        f"mojibake was mended in {inflect(len(names), 'names')} of paintings and "
        f"{inflect(sum(row.text in texts for row in annotations), 'utterances')}"
    )
    return mended, [note] if names or texts else []


def skeleton(name: str) -> str:
    """A name reduced to the characters that survive every encoding, for comparing names.

    Example:
        >>> skeleton("Realism/eugène-boudin_the-beach.jpg") == skeleton(
        ...     "realism/eug├¿ne-boudin_the-beach.JPG")
        True
    """
    return _LOST.sub("", unicodedata.normalize("NFC", name).lower())


_LOST = re.compile(r"[^a-z0-9_/.-]")


def parts_of(annotations: Sequence[Annotation], rest_from: int, seed: int) -> dict[str, str]:
    """Parts by painting: ``train``, ``val``, ``test`` (85, 5, 10 %) or ``rest``.

    The draw is the published draw: NumPy's legacy generator draws twice from the names, sorted as
    the release writes them.

    Example:
        >>> rows = [Annotation(f"s/{i}", "awe", "a", 5, f"s{i}") for i in range(20)]
        >>> Counter(parts_of(rows, 41, 2021).values())
        Counter({'train': 16, 'test': 2, 'val': 2})
    """
    usual = [row for row in annotations if row.repetition < rest_from]
    painting = {row.raw: row.painting for row in usual}
    names = sorted(painting)
    n_outside = int(np.ceil((_SHARES[1] + _SHARES[2]) * len(names)))
    order = np.random.RandomState(seed).permutation(len(names))
    outside = [names[place] for place in order[:n_outside]]
    n_test = min(round(_SHARES[2] * len(names)), n_outside)
    again = np.random.RandomState(seed).permutation(n_outside)
    tested = {outside[place] for place in again[:n_test]}
    parts = {row.painting: "rest" for row in annotations}
    parts |= {painting[name]: "train" for name in names}
    return parts | {painting[name]: "test" if name in tested else "val" for name in outside}


@dataclass(frozen=True)
class Cleaning(Configurable):
    """The utterances that ArtEmis' authors left out before they fitted their networks."""

    # Utterances with more tokens than this percentile of the training part are left out; 100 keeps
    # all
    longest_percentile: Annotated[float, Range(low=0, high=100)] = 95.0
    fewest_tokens: Annotated[int, Range(low=0)] = 5  # utterances with fewer tokens are left out
    # Words that the training part has less often than this become `<unk>`
    word_frequency: Annotated[int, Range(low=0)] = 5
    rest_from: Count = 41  # paintings with so many annotations or more are the part `rest`
    seed: Seed = 2021  # seed of the draw of parts

    def apply(self, release: Release) -> tuple[Release, Mapping[str, str]]:
        """The annotations that stay, with rare words replaced, and the part of each painting.

        Lengths are counted in this program's tokens, without correcting the spelling. The authors
        counted NLTK's tokens of corrected text, so the numbers of utterances may differ a little.
        """
        rows = release.annotations
        parts = parts_of(rows, self.rest_from, self.seed)
        tokens = [
            [
                token
                for word in row.text.split()
                for token in tokenize_word(word, keep_punctuation=True, keep_unknown=True)
            ]
            for row in rows
        ]
        lengths = np.array([len(words) for words in tokens])
        trained = np.array([parts[row.painting] == "train" for row in rows])
        longest = np.inf
        if trained.any() and self.longest_percentile < 100:
            longest = float(np.percentile(lengths[trained], self.longest_percentile))
        usable = (lengths >= self.fewest_tokens) & (lengths <= longest)
        often = Counter(
            word.lower()
            for row in np.flatnonzero(usable & trained).tolist()
            for word in tokens[row]
        )
        frequent = {word for word, n in often.items() if n >= self.word_frequency}
        known = frequent if self.word_frequency > 1 and trained.any() else None
        annotations = [
            rows[row]
            if known is None
            else replace(rows[row], text=_with_unknown(tokens[row], known))
            for row in np.flatnonzero(usable).tolist()
        ]
        short, long = ((lengths < self.fewest_tokens).sum(), (lengths > longest).sum())
        note = (
            f"{len(annotations)} of {release.n_rows} utterances are kept: {short} have fewer than "
            f"{self.fewest_tokens} tokens, {long} more than {longest:g}"
        )
        notes = [*release.notes, *([note] if len(annotations) < len(rows) else [])]
        return replace(release, annotations=annotations, notes=notes), parts


_NO_CLEANING = Cleaning(longest_percentile=100, fewest_tokens=0, word_frequency=0)


def _with_unknown(tokens: Sequence[str], known: set[str]) -> str:
    return " ".join(token if token.lower() in known else UNKNOWN for token in tokens)


def by_painting(annotations: Sequence[Annotation]) -> dict[str, list[Annotation]]:
    grouped: dict[str, list[Annotation]] = {}
    for row in annotations:
        grouped.setdefault(row.painting, []).append(row)
    return grouped


class Names:
    """Finds paintings by their names in picture files or in captioners' files."""

    def __init__(self, paintings: Iterable[str]) -> None:
        self._places: dict[str, list[str]] = {}
        for painting in paintings:
            whole = skeleton(painting)
            for place in (whole, whole.rpartition("/")[2]):
                self._places.setdefault(place, []).append(painting)

    def find(self, name: str) -> str | None:
        """The painting with a path, or with a name without its style; None unless only one fits."""
        whole = skeleton(name)
        plain = next((whole.removesuffix(e) for e in ENDINGS if whole.endswith(e)), whole)
        for parts in (2, 1):
            fitting = self._places.get("/".join(plain.split("/")[-parts:]), [])
            if len(set(fitting)) == 1:
                return fitting[0]
        return None
