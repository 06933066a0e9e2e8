"""Captioners whose bias is known: people in various styles, and simulated ones.

A style rewrites all groups' captions alike, so a score that changes depends on how captions are
written. Planted words are words that annotators use more often for a group, in a known share of its
captions.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bias_pipeline.corpus.corpus import Corpus, Record

JOINED = {"two joined": 2, "three joined": 3}  # captions of how many people
MANNERS = ("whole", "half", "first five words", "400 words", "two joined", "synonyms")
PLANTED = (0, 10, 20, 40)  # per cent of the captions that get a word of their group
COMMON = 400  # vocabulary of a speaker with few words
WORDS_A_GROUP = 6  # that are planted
LEAST_SHARE = 0.01  # of the captions that hold a word which is planted

# Words that can replace one another in captions; ours.
SYNONYMS = {
    "couch": "sofa", "bike": "bicycle", "picture": "photo", "near": "by", "large": "big",
    "small": "little", "road": "street", "motorcycle": "motorbike", "cellphone": "phone",
    "posing": "standing", "next": "close", "grass": "lawn", "ocean": "sea", "plate": "dish",
    "several": "many", "smiling": "grinning", "outside": "outdoors", "kid": "child",
    "flying": "throwing", "walking": "going", "playing": "having", "laying": "lying",
}  # fmt: skip

# Settings of the embedded data set's captioners: some change all groups alike, some plant bias.
SCENES: Mapping[str, Mapping[str, float]] = {
    "faithful": {},
    "terse": {"vocabulary": 0.6, "length": 0.4},
    "small vocabulary": {"vocabulary": 0.3},
    "short": {"length": 0.4},
    "talkative": {"mention_rate": 1.7},
    "quiet": {"mention_rate": 0.6},
    "neutral_speaker": {"gender_word_rate": 0.4},
    "amplifies 10 %": {"a_to_t": 0.1},
    "amplifies 25 %": {"a_to_t": 0.25},
    "amplifies 50 %": {"a_to_t": 0.5},
    "weakens 60 %": {"a_to_t": -0.6},
    "amplifies 25 %, terse": {"a_to_t": 0.25, "vocabulary": 0.6, "length": 0.4},
    "amplifies 25 %, talkative": {"a_to_t": 0.25, "mention_rate": 1.7},
    "misgenders 40 %": {"t_to_a": 0.4},
}


@dataclass(frozen=True, eq=False)
class People:
    """Images with five human captions of which the first is the captioner's.

    Attributes:
        records: the images.
        words: those that name groups, which no style changes.
        attribute: whose groups.
    """

    records: Sequence[Record]
    words: frozenset[str]
    attribute: str

    def speaking(self, manner: str, planted: int) -> Iterator[Record]:
        """The images with one person's captions rewritten in a style, and those of the other four.

        Args:
            manner: of :data:`MANNERS`, or ``three joined``.
            planted: per cent of the captions that get a word of their group.
        """
        draws = random.Random(f"{manner}")  # noqa: S311 - a study's draws, no secret
        plants = random.Random("planted")  # noqa: S311 - the same in every manner
        for record in self.records:
            captions = [caption.lower().rstrip(" .") for caption in record.human[:5]]
            model = self._speak(captions, manner, draws)
            word = plants.choice(self.typical[record.labels[self.attribute]])
            if plants.random() < planted / 100:
                model = f"{model} {word}"
            yield replace(record, model=model, human=tuple(captions[JOINED.get(manner, 1) :]))

    def _speak(self, captions: Sequence[str], manner: str, draws: random.Random) -> str:
        words = captions[0].split()
        if manner == "half":
            words = [w for w in words if w in self.words or draws.random() < 0.5] or words[:1]
        elif manner == "first five words":
            words = words[:5]
        elif manner == "400 words":
            words = [w for w in words if w in self.words or w in self.common_words] or words[:1]
        elif manner in JOINED:
            words = " ".join(captions[: JOINED[manner]]).split()
        elif manner == "synonyms":
            words = [SYNONYMS.get(word, word) for word in words]
        return " ".join(words)

    @cached_property
    def common_words(self) -> frozenset[str]:
        """The most common words."""
        counts = Counter(word for _, words in _nouns_of(self.records) for word in words)
        return frozenset(word for word, _ in counts.most_common(COMMON))

    @cached_property
    def typical(self) -> Mapping[str, Sequence[str]]:
        """Raw label to the words that annotators use more often for it than for other groups."""
        return _typical(self.records, self.attribute, self.words)


def _nouns_of(records: Sequence[Record]) -> Iterator[tuple[Record, set[str]]]:
    for record in records:
        for caption in record.human[:5]:
            yield record, set(caption.lower().replace(".", " ").split())


def _typical(
    records: Sequence[Record], attribute: str, excluded: frozenset[str]
) -> dict[str, list[str]]:
    counts: dict[str, Counter[str]] = {}
    sizes: Counter[str] = Counter()
    for record, words in _nouns_of(records):
        label = record.labels[attribute]
        sizes[label] += 1
        counts.setdefault(label, Counter()).update(words - excluded)
    total = sum(sizes.values())
    known = {word for word_counts in counts.values() for word in word_counts}
    frequent = [w for w in known if sum(c[w] for c in counts.values()) >= LEAST_SHARE * total]
    return {
        label: sorted(
            frequent,
            key=lambda w: (-word_counts[w] / sizes[label] / (_rest(counts, sizes, label, w)), w),
        )[:WORDS_A_GROUP]
        for label, word_counts in counts.items()
    }


def _rest(
    counts: Mapping[str, Counter[str]], sizes: Mapping[str, int], label: str, word: str
) -> float:
    """The share of other groups' captions that contain a word, a little above 0."""
    others = [name for name in counts if name != label]
    return (sum(counts[o][word] for o in others) + 1) / (sum(sizes[o] for o in others) + 1)


def sample(corpus: Corpus, n_images: int, n_captions: int = 5, seed: int = 0) -> list[Record]:
    """Labelled images with so many human captions, drawn once and for all.

    Args:
        corpus: from which they are drawn.
        n_images: how many, at most.
        n_captions: how many human captions each has at least.
        seed: of the draw.
    """
    records = [
        record
        for record in corpus
        if len(record.human) >= n_captions and all(record.labels.values()) and record.labels
    ]
    random_ = np.random.default_rng(seed)
    chosen = np.sort(random_.choice(len(records), min(n_images, len(records)), replace=False))
    return [records[row] for row in chosen.tolist()]


LABELS = {"male": "Male", "female": "Female"}


def relabel(record: Record) -> Record:
    """The image with the labels of LIC's files."""
    return replace(record, labels={name: LABELS[label] for name, label in record.labels.items()})
