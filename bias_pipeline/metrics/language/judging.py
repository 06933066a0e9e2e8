"""What the Gender Score counts: captions told of every group in turn, and how they are judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from bias_pipeline.encoders.frozen import Frozen
from bias_pipeline.inference.language_model import LanguageModel
from bias_pipeline.metrics.counting.caption_sides import CaptionSides
from bias_pipeline.metrics.counting.tally import (
    COUNT,
    SHARE,
    About,
    FloatArray,
    IntArray,
    Mask,
    Sums,
    by_group,
)
from bias_pipeline.metrics.functional.counts import share
from bias_pipeline.metrics.functional.gender_score import bias_ratio, estimated, gender_score
from bias_pipeline.metrics.language.contexts import Contexts
from bias_pipeline.metrics.parts import HUMAN_PAIRED, MODEL, MODEL_PAIRED, SCORE, PartName
from bias_pipeline.metrics.seen import Seen
from bias_pipeline.text.counterparts import told_of

OWN_BIAS = PartName("lm", detail="own_bias")
TIES = PartName("ties")
# What makes a caption's score: both together, the language model alone, similarity alone.
FACTORS = ("gs", "lm", "similarity")
ESTIMATES = {"gs": "estimate", "lm": "estimate_lm", "similarity": "estimate_similarity"}
_COLUMNS = ("count", *FACTORS, *ESTIMATES.values(), "told")  # K each, then one of ties


@dataclass(frozen=True)
class Judge:
    """Who judges captions, and how.

    Attributes:
        language_model: gives P(g).
        sentence_encoder: gives similarities.
        weigh: ``captions``, or ``pairs`` of a caption and an object.
        positions: how many human captions of an image are judged.
        terms: see :func:`~bias_pipeline.text.counterparts.told_of`.
    """

    language_model: LanguageModel
    sentence_encoder: Frozen
    weigh: str = "captions"
    positions: int = 1
    terms: Mapping[str, str] = field(default_factory=dict)

    def require(self) -> None:
        """Know that both models are there.

        Raises:
            ResourceError: if one is not.
        """
        self.language_model.require()
        self.sentence_encoder.require()


def unit_vectors(encoder: Frozen, texts: Sequence[str]) -> FloatArray:
    """(N, D) the directions of texts, which may repeat."""
    place = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    found = encoder.vectors(list(place)).astype(np.float64)
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    units: FloatArray = (found / np.where(lengths > 0, lengths, 1.0))[[place[t] for t in texts]]
    return units


def judge(
    how: Judge, texts: Sequence[Sequence[str]], contexts: Contexts, pairs: IntArray, of: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Likelihoods (R, K) of texts; similarities and scores (P, K) of texts and objects.

    Args:
        how: decides.
        texts: K versions of R texts.
        contexts: has the objects.
        pairs: (P,) rows of contexts, the objects beside texts.
        of: (P,) the text that each is beside.
    """
    flat = [text for own in texts for text in own]
    shape = (len(texts), len(texts[0]))
    likelihood = np.exp(how.language_model.log_likelihood(flat)).reshape(shape).T
    vectors = unit_vectors(how.sentence_encoder, [*flat, *contexts.names])
    told = vectors[: len(flat)].reshape(*shape, vectors.shape[1])
    names = vectors[len(flat) :][contexts.objects[pairs]]
    similarity = np.stack([(own[of] * names).sum(axis=-1) for own in told], axis=1)
    probability = contexts.probabilities[pairs][:, None]
    return likelihood, similarity, gender_score(likelihood[of], similarity, probability)


def mean_over(of: IntArray, values: FloatArray, n_texts: int) -> FloatArray:
    """(R, K) means over the objects beside each text, of the (P, K) values of pairs."""
    totals = np.stack([np.bincount(of, own, minlength=n_texts) for own in values.T], axis=1)
    means: FloatArray = totals / np.bincount(of, minlength=n_texts)[:, None]
    return means


class Judged:
    """What is made of the captions of one side: of each, told of every group in turn.

    Args:
        how: decides.
        seen: what the captions say.
        contexts: what the pictures show.
        side: whose captions.

    Attributes:
        rows: (R,) the captions that are scored.
        texts: K versions of them.
        pairs: (P,) rows of contexts, the objects beside them.
        of: (P,) which of the R captions each is beside.
    """

    def __init__(self, how: Judge, seen: Seen, contexts: Contexts, side: str) -> None:
        captions = seen.corpus.side(side)
        self.named, self.images = seen.named(side), captions.image_rows
        self.shape = (len(seen.corpus), len(captions))
        self.n_groups = len(seen.groups)
        shown = (seen.labelled & contexts.shown(len(seen.corpus)))[captions.image_rows]
        scored = shown & (self.named >= 0) & (captions.positions < how.positions)
        self.rows = np.flatnonzero(scored)
        self.pairs, self.of = contexts.beside(captions.image_rows[self.rows])
        self.objects = contexts.objects[self.pairs]
        self.weigh = how.weigh
        versions = (told_of(captions, seen.attribute, g, how.terms) for g in seen.groups)
        self.texts = [[told.text(row) for row in self.rows.tolist()] for told in versions]
        self.likelihood, self.similarity, self.score = judge(
            how, self.texts, contexts, self.pairs, self.of
        )

    @property
    def audit(self) -> Mapping[str, object]:
        """Counts for the manifest."""
        return {
            "captions": len(self.rows),
            "pairs": len(self.pairs),
            "similarities_below_0": int((self.similarity < 0).sum()),
        }

    def table(self, chosen: Mask) -> sparse.csr_array:
        """(N, C) sums over the chosen captions of each image; columns as :class:`Values` reads."""
        kept = chosen[self.rows]
        n_objects = np.bincount(self.of, minlength=len(self.rows)).astype(np.float64)
        by_factor = {
            "gs": mean_over(self.of, self.score, len(self.rows)),
            "lm": self.likelihood,
            "similarity": mean_over(self.of, self.similarity, len(self.rows)),
        }
        named = self.named[self.rows]
        weight = n_objects if self.weigh == "pairs" else np.ones(len(self.rows))
        own = np.eye(self.n_groups)[named] * weight[:, None]  # (R, K) whom each caption names
        columns = [own]
        columns += [own * by_factor[name] for name in FACTORS]
        columns += [_one_hot(estimated(by_factor[name])[0], self.n_groups) for name in FACTORS]
        columns += [self.likelihood, estimated(by_factor["gs"])[1][:, None].astype(np.float64)]
        return self._by_image(np.concatenate(columns, axis=1) * kept[:, None])

    def _by_image(self, table: FloatArray) -> sparse.csr_array:
        rows = self.images[self.rows]
        gather = sparse.csr_array(
            (np.ones(len(rows)), (rows, np.arange(len(rows)))), (self.shape[0], len(rows))
        )
        return sparse.csr_array(gather @ sparse.csr_array(table))

    def object_tables(self, kept: IntArray, images: Mask, name: str) -> dict[str, sparse.csr_array]:
        """(N, K * T) sums of the scores, and numbers, of pairs of some objects."""
        column = np.full(int(max(self.objects.max(initial=-1), kept.max(initial=-1))) + 1, -1)
        column[kept] = np.arange(len(kept))
        named = self.named[self.rows][self.of]
        inside = (column[self.objects] >= 0) & images[self.images[self.rows][self.of]]
        rows = self.images[self.rows][self.of][inside]
        columns = named[inside] * len(kept) + column[self.objects[inside]]
        values = self.score[np.arange(len(named)), named][inside]
        shape = (self.shape[0], self.n_groups * len(kept))
        return {
            f"{name}:scores": sparse.csr_array((values, (rows, columns)), shape),
            f"{name}:counts": sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape),
        }


def _one_hot(groups: IntArray, n_groups: int) -> FloatArray:
    """(R, K)."""
    found: FloatArray = (groups[:, None] == np.arange(n_groups)).astype(np.float64)
    return found


@dataclass(frozen=True)
class Values:
    """From sums to named numbers.

    Attributes:
        groups: the K groups.
        objects: the T objects that have parts of their own.
    """

    groups: tuple[str, ...]
    objects: tuple[str, ...]

    def of(self, sums: FloatArray) -> dict[str, FloatArray]:
        """Name to (B, K), from the (B, C) sums of :meth:`Judged.table`."""
        n = len(self.groups)
        column = {name: sums[:, k * n : (k + 1) * n] for k, name in enumerate(_COLUMNS)}
        means = {name: share(column[name], column["count"]) for name in FACTORS}
        found = {f"mean {name}": own for name, own in means.items()}
        found |= {name: self._ratios(own) for name, own in means.items()}
        for name in (*ESTIMATES.values(), "told"):
            found[name] = share(column[name], column[name].sum(axis=1, keepdims=True))
        return {**found, "ties": sums[:, len(_COLUMNS) * n :]}

    def _ratios(self, means: FloatArray) -> FloatArray:
        """(B, K) the share of each group."""
        return np.stack([bias_ratio(means, k) for k in range(len(self.groups))], axis=1)

    def named(
        self, means: Mapping[PartName, Mapping[str, FloatArray]]
    ) -> dict[PartName, FloatArray]:
        """The numbers of :class:`~bias_pipeline.metrics.language.gender_score.GenderScore`.

        Args:
            means: side to what :meth:`of` makes of it.
        """
        values = {part: own["gs"][:, 0] for part, own in means.items()}
        for part, own in means.items():
            if not part.detail:
                values |= self._of_side(part.side, own)
        if HUMAN_PAIRED in means:
            model, human = means[MODEL_PAIRED], means[HUMAN_PAIRED]
            values[SCORE] = values[MODEL_PAIRED] - values[HUMAN_PAIRED]
            values |= {
                PartName(name): model[name][:, 0] - human[name][:, 0]
                for name in (*FACTORS[1:], *ESTIMATES.values())
            }
            change = model["gs"] - human["gs"]
            values |= {PartName(group=g): change[:, k] for k, g in enumerate(self.groups)}
        return {**values, OWN_BIAS: means[MODEL]["told"][:, 0], TIES: means[MODEL]["ties"][:, 0]}

    def _of_side(self, side: str, own: Mapping[str, FloatArray]) -> dict[PartName, FloatArray]:
        values = {
            PartName(name, side=side): own[name][:, 0]
            for name in (*FACTORS[1:], *ESTIMATES.values())
        }
        people = side if side == "human" else ""
        for k, group in enumerate(self.groups):
            values[PartName("gs", group=group, side=people)] = own["mean gs"][:, k]
            values[PartName(group=group, side=side)] = own["gs"][:, k]
        return values

    def of_objects(self, sums: Sums) -> dict[PartName, FloatArray]:
        """The first group's share in scores and in numbers, by object."""
        values: dict[PartName, FloatArray] = {}
        for side in [side for side in ("model", "human") if f"objects:{side}:counts" in sums]:
            for kind, what in (("scores", ""), ("counts", "cooccurrence")):
                own = by_group(sums[f"objects:{side}:{kind}"], len(self.groups))
                shares = share(own[:, 0], own.sum(axis=1))
                values |= {
                    PartName(what, object=name, side=side): shares[:, t]
                    for t, name in enumerate(self.objects)
                }
        sides = {"model", "human"} & {name.side for name in values}
        if len(sides) == 2:
            values |= {
                PartName(object=name): values[PartName(object=name, side="model")]
                - values[PartName(object=name, side="human")]
                for name in self.objects
            }
        return values

    def about(self, names: Sequence[PartName], sides: CaptionSides) -> dict[PartName, About]:
        """What numbers rest on."""
        both = sides.images.get(MODEL_PAIRED, sides.images[MODEL])
        found = {}
        for name in names:
            side = name.side or ("model" if name.what == "gs" else "")
            of_model = name in (OWN_BIAS, TIES)
            if name in sides.images:
                found[name] = sides.about(name)
            elif side or of_model:
                part = PartName(side=side or "model")
                unit = COUNT if name == TIES else "fraction"
                found[name] = About(sides.images[part], part.side, unit, SHARE)
            else:
                found[name] = About(both)
        return found
