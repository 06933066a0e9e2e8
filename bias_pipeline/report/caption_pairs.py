"""Makes pairs of captions for raters: one model, one scene in both pictures, different groups.

The pictures of a pair have the same objects (if objects are known) and the most similar words of
annotators. Hashes of image ids decide which pictures are drawn and which caption comes first. Each
group comes first in half of the pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.data.tables import Rows, check_file, open_rows
from bias_pipeline.errors import DataError, NotApplicableError, UsageError, did_you_mean
from bias_pipeline.io.files import table_csv
from bias_pipeline.io.hashing import random_words
from bias_pipeline.metrics.counting.described_images import DescribedImages
from bias_pipeline.stats.bootstrap import Estimate, Interval
from bias_pipeline.stats.compare import pearson
from bias_pipeline.text.descriptions import ConceptTable

FIRST, SECOND, ALIKE = "A", "B", "alike"  # the answers of raters
PAIRS = 200
_LEAST_ALIKE = 0.3  # the least cosine of objects and annotators' words in a pair
_Z = 1.96


@dataclass(frozen=True)
class CaptionPair:
    """Two captions by one model; A is first or above B."""

    pair: str
    attribute: str
    dataset: str
    captioner: str
    image_a: str
    group_a: str
    caption_a: str
    image_b: str
    group_b: str
    caption_b: str
    alike: float  # cosine of objects and annotators' words of the pictures, in [0, 1]
    concepts: int  # concepts that only one of the captions says of its person


def caption_pairs(
    corpus: Corpus,
    attribute: Attribute,
    table: ConceptTable,
    groups: Sequence[str] = (),
    most: int = PAIRS,
) -> list[CaptionPair]:
    """At most ``most`` pairs of a corpus; fewer if too few pictures show the same scene."""
    if not len(corpus.human) and corpus.objects is None:
        raise NotApplicableError(
            f"dataset {corpus.dataset!r}: annotators' captions or objects must show which "
            "pictures are of the same scene; give dataset.captions=FILE or dataset.instances=FILE"
        )
    grouping = corpus.groupings[attribute.name]
    chosen = _two_groups(grouping.names, groups, attribute.name)
    usable = [_usable(corpus, grouping.codes == number) for number in chosen]
    images = DescribedImages(corpus.take(np.flatnonzero(np.any(usable, axis=0))), attribute, table)
    codes = images.corpus.groupings[attribute.name].codes
    sides = [np.flatnonzero(codes == number) for number in chosen]
    matches = list(_matches(images, sides, most))
    if not matches:
        raise NotApplicableError(
            f"dataset {corpus.dataset!r}: no two pictures of different groups show the same scene; "
            "caption more pictures"
        )
    names = [grouping.names[number] for number in chosen]
    return list(_pairs(images, matches, names))


def _two_groups(names: Sequence[str], groups: Sequence[str], attribute: str) -> list[int]:
    wanted = groups or names
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise UsageError(f"--groups: {did_you_mean(unknown[0], names)}")
    if len(set(wanted)) != 2:
        raise UsageError(
            f"a pair has a person of each of two groups, and {attribute} has "
            f"{', '.join(names)}; choose two, such as --groups {','.join(names[:2])}"
        )
    return [names.index(name) for name in wanted]


def _usable(corpus: Corpus, members: BoolArray) -> BoolArray:
    """The images of a group with all the captions that pairs need."""
    captioned = np.bincount(corpus.model.image_rows, minlength=len(corpus)) > 0
    if len(corpus.human):
        captioned &= np.bincount(corpus.human.image_rows, minlength=len(corpus)) > 0
    return captioned & members


def _matches(
    images: DescribedImages, sides: Sequence[IntArray], most: int
) -> Iterator[tuple[int, int, float]]:
    """Pairs of a picture of each group, as rows, with the similarity of the two pictures.

    A picture is in at most one pair. Pictures of the smaller group are drawn. Each drawn picture is
    paired with the most similar remaining picture of the other group.
    """
    lengths = np.sqrt((images.features**2).sum(axis=1))
    unit = sparse.csr_array(
        sparse.diags_array(1 / np.where(lengths > 0, lengths, 1)) @ images.features
    )
    scenes = _scenes(images)
    anchors, others = sorted(sides, key=len)
    drawn = random_words("pairing", 0, images.corpus.keys)
    free = np.ones(len(images.corpus), bool)
    n_pairs = 0
    for anchor in anchors[np.argsort(drawn[anchors], kind="stable")].tolist():
        if n_pairs == most:
            return
        open_ = others[free[others] & (scenes[others] == scenes[anchor])]
        alike = (unit[open_] @ unit[[anchor]].T).toarray().ravel()
        if not len(alike) or alike.max() < _LEAST_ALIKE:
            continue
        other = int(open_[alike.argmax()])
        free[other] = False
        n_pairs += 1
        first, second = (anchor, other) if anchors is sides[0] else (other, anchor)
        yield first, second, float(min(alike.max(), 1.0))


def _scenes(images: DescribedImages) -> IntArray:
    """(M,) a number for each picture; pictures with equal objects have equal numbers."""
    objects, number = images.corpus.objects, dict[frozenset[str], int]()
    if objects is None:
        return np.zeros(len(images.corpus), np.int64)
    persons = images.table.persons
    shown = [
        frozenset(name for name in names or () if name.lower() not in persons) for names in objects
    ]
    return np.array([number.setdefault(scene, len(number)) for scene in shown], np.int64)


def _pairs(
    images: DescribedImages, matches: Sequence[tuple[int, int, float]], names: Sequence[str]
) -> Iterator[CaptionPair]:
    corpus = images.corpus
    keys = corpus.keys[[first for first, _, _ in matches]]
    order = np.argsort(random_words("pairing", 1, keys), kind="stable")
    leads = np.zeros(len(matches), bool)
    leads[order[: len(order) // 2]] = True  # pairs in which the second group stands first
    says = images.says
    for number, (first, second, alike) in enumerate(matches, 1):
        sides = [(first, names[0]), (second, names[1])]
        (a, group_a), (b, group_b) = reversed(sides) if leads[number - 1] else sides
        yield CaptionPair(
            pair=f"pair{number:03d}",
            attribute=images.attribute.name,
            dataset=corpus.dataset,
            captioner=corpus.captioner,
            image_a=corpus.ids[a],
            group_a=group_a,
            caption_a=corpus.model.of_image(a)[0],
            image_b=corpus.ids[b],
            group_b=group_b,
            caption_b=corpus.model.of_image(b)[0],
            alike=round(alike, 4),
            concepts=int((says[a] != says[b]).sum()),
        )


def write_pairs(pairs: Sequence[CaptionPair]) -> bytes:
    return table_csv([asdict(pair) for pair in pairs]).encode("utf-8", "replace")


_TEXTS = (
    *("pair", "attribute", "dataset", "captioner", "image_a", "group_a", "caption_a"),
    *("image_b", "group_b", "caption_b"),
)


def read_pairs(path: Path) -> list[CaptionPair]:
    columns = (*_TEXTS, "alike", "concepts")
    rows = open_rows(check_file(path, "--pairs"), what="pairs of captions", wanted=columns)
    rows.require(*columns)
    pairs: dict[str, CaptionPair] = {}
    for number, row in rows.items:
        pair = _read_pair(rows, number, row)
        if pair.pair in pairs:
            rows.refuse(number, f"pair {pair.pair!r} is there twice; remove one of the rows")
        first = next(iter(pairs.values()), pair)
        if _study_of(first) != _study_of(pair):
            rows.refuse(
                number,
                f"is of {' '.join(_study_of(pair))}, and the pairs above are of "
                f"{' '.join(_study_of(first))}; make one file for each captioner with "
                "analysis pairs",
            )
        pairs[pair.pair] = pair
    if not pairs:
        raise DataError(f"{path} has no pairs; make the file with analysis pairs")
    return list(pairs.values())


def _study_of(pair: CaptionPair) -> tuple[str, str, str, str, str]:
    """The facts that all pairs of a study have in common."""
    groups = sorted((pair.group_a, pair.group_b))
    return pair.dataset, pair.captioner, pair.attribute, groups[0], groups[1]


def _read_pair(rows: Rows, number: int, row: Mapping[str, Any]) -> CaptionPair:
    texts = {name: rows.text(number, row, name).strip() for name in _TEXTS}
    empty = next((name for name, text in texts.items() if not text), None)
    if empty:
        rows.refuse(number, f"{empty!r} is empty; make the file again with analysis pairs")
    if texts["group_a"] == texts["group_b"]:
        rows.refuse(
            number, f"both pictures are of {texts['group_a']!r}; a pair has one of each group"
        )
    try:
        alike, concepts = float(row["alike"]), int(row["concepts"])
    except (KeyError, TypeError, ValueError):
        rows.refuse(number, "'alike' and 'concepts' must be numbers")
    return CaptionPair(**texts, alike=alike, concepts=concepts)


@dataclass(frozen=True)
class PairAnswers:
    """The raters' answers on one captioner's pairs; "cannot tell" counts as no answer."""

    groups: tuple[str, str]
    pairs: Sequence[CaptionPair]  # pairs with an answer
    differ: Float64Array  # (N,) the share of a pair's answers that choose either caption
    chosen: Float64Array  # (N, 2) the share of answers that choose each group's caption
    first: Float64Array  # (N,) the share of answers A minus the share of answers B

    @property
    def treated_differently(self) -> Interval:
        """How often raters say that captions treat the two persons differently."""
        return _mean(self.differ)

    def of_group(self, number: int) -> Interval:
        """How often raters choose the caption about a group."""
        return _mean(self.chosen[:, number])

    @property
    def leaning(self) -> Interval:
        """How much more often raters choose the second group's caption than the first group's."""
        return _mean(self.chosen[:, 1] - self.chosen[:, 0])

    @property
    def by_place(self) -> Interval:
        """How much more often raters choose caption A than caption B.

        Only a preference for a position can cause this difference.
        """
        return _mean(self.first)

    @property
    def with_concepts(self) -> Estimate:
        """The correlation of how often raters see a difference with the unshared concepts."""
        return pearson(self.differ.tolist(), [float(pair.concepts) for pair in self.pairs])


def pair_answers(
    pairs: Sequence[CaptionPair], ballots: Mapping[str, Sequence[str]]
) -> PairAnswers | None:
    """The raters' answers about pairs, or None if no rater could tell anything."""
    counts = {
        pair.pair: [ballots.get(pair.pair, ()).count(answer) for answer in (FIRST, SECOND, ALIKE)]
        for pair in pairs
    }
    answered = [pair for pair in pairs if sum(counts[pair.pair])]
    if not answered:
        return None
    shares = np.array([counts[pair.pair] for pair in answered], np.float64)
    shares /= shares.sum(axis=1, keepdims=True)  # (N, 3)
    names = sorted({answered[0].group_a, answered[0].group_b})
    leads = np.array([pair.group_a == names[0] for pair in answered])
    chosen = np.where(leads[:, None], shares[:, :2], shares[:, 1::-1])
    return PairAnswers(
        (names[0], names[1]),
        answered,
        shares[:, :2].sum(axis=1),
        chosen,
        shares[:, 0] - shares[:, 1],
    )


def _mean(shares: Float64Array) -> Interval:
    value = float(shares.mean())
    half = _Z * float(shares.std(ddof=1)) / math.sqrt(len(shares)) if len(shares) > 1 else math.nan
    return Interval(value, value - half, value + half)
