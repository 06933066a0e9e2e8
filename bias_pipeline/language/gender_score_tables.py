"""Further numbers and tables of the Gender Score, on neutral captions, deleted words and examples.

Table 3 divides the Gender Score of each group by the score of neutral captions. Deletion shows
which words of captions make the version about one group likelier. Examples show how each object
revises a caption's score for every group (Figure 2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.corpus.captions import ranges
from bias_pipeline.io.hashing import UIntArray, random_words
from bias_pipeline.language.caption_scoring import (
    CaptionScorer,
    Contexts,
    Judged,
    judge,
    mean_over,
    unit_vectors,
)
from bias_pipeline.language.formulas import bias_ratio, likeliest_group, ratio_to_neutral
from bias_pipeline.metrics.corpus_view import CorpusView, sum_by_image
from bias_pipeline.metrics.counting.numbers import CountedNumber, Sums
from bias_pipeline.metrics.counting.sides import CaptionSides, mean_of
from bias_pipeline.metrics.functional.counts import share
from bias_pipeline.metrics.value_names import PartName
from bias_pipeline.text.counterfactual_captions import captions_naming_nobody, term_of
from bias_pipeline.text.mentions import NO_GROUP

NeutralCaptions = Literal["retold", "nobody"]
TO_NEUTRAL = "to_neutral"
TABLE = "neutral:"  # prefix of its tables' names


@dataclass(frozen=True)
class Neutral:
    """The rule that says which captions count as neutral captions."""

    word: str  # replaces the groups' words
    # For listed words, their neutral words, such as `their` for `his`
    words: Mapping[str, str] = field(default_factory=dict)
    # `retold`: the captions that name one group, rewritten without a group; `nobody`: the captions
    # that name no group
    captions: NeutralCaptions = "retold"

    def rests_on_names(self, part: PartName) -> bool:
        """Whether a number rests on captions that name a group."""
        return self.captions == "retold" or (part.what, part.group) != ("gs", self.word)

    def judge_captions(
        self, how: CaptionScorer, named: Judged, view: CorpusView, contexts: Contexts
    ) -> NeutralJudged:
        captions = view.corpus.side(named.side)
        rows = named.rows
        if self.captions == "nobody":
            shown = (view.labelled & contexts.images_with_objects(len(view.corpus)))[
                captions.image_rows
            ]
            rows = np.flatnonzero(
                shown & (named.named == NO_GROUP) & (captions.positions < how.positions)
            )
        rewritten = captions_naming_nobody(captions, view.attribute, self.word, self.words)
        texts = [[rewritten.text(row) for row in rows.tolist()]]
        images = captions.image_rows[rows]
        pairs, of = contexts.pairs_of(images)
        _, _, score = judge(how, texts, contexts, pairs, of)
        n_objects = np.bincount(of, minlength=len(rows)).astype(np.float64)
        weight = n_objects if how.weigh == "pairs" else np.ones(len(rows))
        means = mean_over(of, score, len(rows))[:, 0]
        return NeutralJudged(rows, images, means, weight, len(view.corpus))

    def numbers(
        self, sums: Sums, sides: CaptionSides, groups: Mapping[PartName, CountedNumber]
    ) -> dict[PartName, CountedNumber]:
        """The mean over a side's neutral captions, and the groups' means divided by it (eq. 2)."""
        values: dict[PartName, CountedNumber] = {}
        for part in [part for part in sides.images if not part.detail]:
            people = part.side if part.side == "human" else ""
            neutral = mean_of(
                [share(t[:, 0], t[:, 1]) for t in sides.position_sums(part, sums, TABLE)]
            )
            values[PartName("gs", group=self.word, side=people)] = sides.number(part, neutral)
            values |= {
                PartName(TO_NEUTRAL, group=name.group, side=part.side): sides.number(
                    part, ratio_to_neutral(mean.values, neutral), "ratio"
                )
                for name, mean in groups.items()
                if name.what == "gs" and name.side == people
            }
        return values


@dataclass(frozen=True, eq=False)
class NeutralJudged:
    """Scores of the neutral captions of a side."""

    rows: IntArray  # (R,) the captions
    images: IntArray  # (R,) rows of their images
    score: Float64Array  # (R,) scores in [0, 1], means over the objects of the picture
    weight: Float64Array  # (R,) weight of each caption
    n_images: int  # N of the corpus

    def table(self, chosen: BoolArray) -> sparse.csr_array:
        """(N, 2) sums of scores and sums of weights, for the chosen captions of each image."""
        weight = self.weight * chosen[self.rows]
        sums = sparse.csr_array(np.stack([self.score * weight, weight], 1))
        return sum_by_image(sums, self.images, self.n_images)


Deleted = tuple[int, str, list[str]]  # index of the caption, word, K versions without the word


def word_effects(
    how: CaptionScorer, judged: Judged, contexts: Contexts, keys: UIntArray, n_captions: int
) -> list[Mapping[str, object]]:
    """How much each word of some captions adds to the share of the first group in their scores.

    A caption's share is the score of its version about the first group, divided by the sum of
    scores over all versions. The effect of a word is the share with the word minus the share
    without the word. Words that name a group stay. (The paper says that single words such as
    "hitting" lean to men, but has no numbers.)
    """
    drawn = random_words("deletion", 0, keys[judged.images[judged.rows]])
    chosen = np.sort(np.argsort(drawn, kind="stable")[:n_captions])
    deleted = [deletion for row in chosen.tolist() for deletion in without_each(judged.texts, row)]
    if not deleted:
        return []
    rows = np.array([row for row, _, _ in deleted])
    starts = np.searchsorted(judged.of, rows, "left")
    n_pairs = np.searchsorted(judged.of, rows, "right") - starts
    pairs, of = judged.pairs[ranges(starts, n_pairs)], np.repeat(np.arange(len(rows)), n_pairs)
    versions = list(zip(*(texts for _, _, texts in deleted), strict=True))
    _, _, scores = judge(how, versions, contexts, pairs, of)
    whole = bias_ratio(mean_over(judged.of, judged.score, len(judged.rows)))[rows]
    rest = bias_ratio(mean_over(of, scores, len(rows)))
    names, number = np.unique(np.array([word for _, word, _ in deleted]), return_inverse=True)
    counts: IntArray = np.bincount(number)
    with_it, without = (np.bincount(number, shares) / counts for shares in (whole, rest))
    effect = with_it - without
    return [
        {
            "word": str(names[k]),
            "times": int(counts[k]),
            "share with": round(float(with_it[k]), 6),
            "share without": round(float(without[k]), 6),
            "effect": round(float(effect[k]), 6),
        }
        for k in np.argsort(-effect, kind="stable").tolist()
    ]


def without_each(texts: Sequence[Sequence[str]], row: int) -> list[Deleted]:
    """The caption without each word that all its versions share; one word is removed at a time.

    Example:
        >>> without_each([["a man rides"], ["a woman rides"]], 0)
        [(0, 'a', ['man rides', 'woman rides']), (0, 'rides', ['a man', 'a woman'])]
    """
    versions = [texts_of_group[row].split() for texts_of_group in texts]
    if len({len(version) for version in versions}) > 1:
        return []  # one version may name its group with more words
    return [
        (row, words[0], [" ".join(version[:place] + version[place + 1 :]) for version in versions])
        for place, words in enumerate(zip(*versions, strict=True))
        if len(set(words)) == 1
    ]


MASK = "[MASK]"
Line = Mapping[str, object]


def example_lines(
    how: CaptionScorer, judged: Judged, contexts: Contexts, view: CorpusView, n_captions: int
) -> list[Line]:
    """Lines with some of the captioner's captions, a line for each object in the picture."""
    captions = view.corpus.side("model")
    keys = random_words("examples", 0, view.corpus.keys[judged.images[judged.rows]])
    chosen = np.sort(np.argsort(keys, kind="stable")[:n_captions])
    if not len(chosen):
        return []
    masked = captions_naming_nobody(captions, view.attribute, MASK, {})
    terms = [term_of(group, view.attribute, how.terms) for group in view.groups]
    vectors = unit_vectors(how.sentence_encoder, [*terms, *contexts.names])
    distances = vectors[len(terms) :] @ vectors[: len(terms)].T  # (U, K)
    fills = [likeliest_group(scores)[0] for scores in (judged.score, judged.similarity)]
    lines: list[Line] = []
    for pair in np.flatnonzero(np.isin(judged.of, chosen)).tolist():
        text, at = int(judged.of[pair]), int(judged.pairs[pair])
        row = int(judged.rows[text])
        filled = [versions[text] for versions in judged.texts]
        by_group = {
            "P(g)": judged.likelihood[text],
            "similarity": judged.similarity[pair],
            "distance": distances[contexts.objects[at]],
            "score": judged.score[pair],
        }
        lines.append(
            {
                "image_id": view.corpus.ids[judged.images[row]],
                "caption": captions.text(row),
                "names": view.groups[judged.named[row]],
                "object": contexts.names[contexts.objects[at]],
                "P(c)": round(float(contexts.probabilities[at]), 6),
                **{
                    f"{what} {group}": round(float(value), 6)
                    for what, values in by_group.items()
                    for group, value in zip(view.groups, values, strict=True)
                },
                "masked": masked.text(row),
                "filled by score": filled[fills[0][pair]],
                "filled by similarity": filled[fills[1][pair]],
            }
        )
    return lines
