"""Retrieval fairness: are the people whom neutral queries retrieve of all groups alike?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.split import Split, SplitRule
from bias_pipeline.debias.base import Debias
from bias_pipeline.debias.sentences import held_out
from bias_pipeline.declared import Count
from bias_pipeline.encoders.base import Encoder
from bias_pipeline.encoders.picture_text import PictureTextEncoder
from bias_pipeline.encoders.published import Line
from bias_pipeline.errors import NotApplicableError, UsageError
from bias_pipeline.inference.embedders import DualEncoder, Normalise
from bias_pipeline.io.hashing import keys_of, stream
from bias_pipeline.metrics.base import PICTURES, Cost, Metric, MetricInfo, Part, Score
from bias_pipeline.metrics.functional.fair_ranker import FairRanker, fair_ranker
from bias_pipeline.metrics.functional.retrieval import Ties
from bias_pipeline.metrics.functional.skew import Floor, Log, Target
from bias_pipeline.metrics.parts import PartName
from bias_pipeline.metrics.retrieval.attackers import Attacked, attacked_texts, attacker_parts
from bias_pipeline.metrics.retrieval.chosen import check_groups, of_groups
from bias_pipeline.metrics.retrieval.concepts import (
    Concepts,
    check_template,
    concepts_of,
    queries_of,
)
from bias_pipeline.metrics.retrieval.estimates import fairness_of
from bias_pipeline.metrics.retrieval.others import other_groupings, other_parts, ranked_others
from bias_pipeline.metrics.retrieval.ranked import Ranked
from bias_pipeline.metrics.retrieval.recall import Recall, first_captions
from bias_pipeline.metrics.retrieval.rerank import Reranker, check_rerank, no_judge, reranker
from bias_pipeline.metrics.retrieval.seen import Retrieved, Seen
from bias_pipeline.metrics.retrieval.shown import RETRIEVED, retrieved_lines
from bias_pipeline.metrics.retrieval.skew import Skews
from bias_pipeline.metrics.retrieval.table import ends_of, leanings_of, lines_of
from bias_pipeline.metrics.sources import CHEN_2022, GEYIK_2019, WANG_2021_QUERIES
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate
from bias_pipeline.vision.people import Crop

IntArray = npt.NDArray[np.int64]
NULL = PartName("null")
CONCEPTS = "concepts"  # the table's name


class RetrievalFairness(Metric):
    """Mean normalised entropy of the groups among the k images nearest to each neutral query.

    Chen and Dou, Measuring and Mitigating Bias in Vision-and-Language Models, section 3.1. 1: every
    query retrieves all groups alike; 0: each retrieves a single group. Parts beside ``score``:

    * ``concept:NAME``: the entropy of one query;
    * ``null``: what a ranker to whom groups are nothing has, exactly (ours). It is below 1: who
      draws 100 of 7 groups blindly never draws them evenly. Groups of unequal size lower it
      further. Its interval is that of one query. Two attributes compare by what they fall short
      of it.
    * ``other:ATTRIBUTE``, ``null:other:ATTRIBUTE``: the same of every other attribute that the data
      set knows, and of every two together: what takes one out of vectors can bring another forth.
    * ``skew:max``, ``skew:min``, ``skew:ndkl``, ``skew:kl``, and of two groups ``skew:bias``: the
      means over queries of MaxSkew, MinSkew, NDKL, the divergence of the top, and Bias@k, each with
      ``null:skew:...``. Codes differ in how they read them; every choice is a parameter, and
      ``experiment=retrieval_oxai`` and the like set those of one code.
    * ``attacker:linear``, ``attacker:kernel``: how often fresh attackers tell the group from
      vectors of pictures that neither they nor a debiasing were fitted to, each group weighing
      alike; 1 of K is chance. ``attacker:text:linear``, ``attacker:text:kernel``: from those of
      sentences that no debiasing was fitted to, where words tell the groups; their intervals
      resample sentences.
    * ``recall:image@k``, ``recall:text@k``: where people's captions are there, the share of them
      whose own picture is among the k nearest, and of pictures whose own caption is.

    Entropy is the paper's number and does not see which group a query prefers: where six in ten
    images are of men, a query that retrieves six women in ten is as fair by it as a blind one. So
    tests look at counts. ``p_value`` of a concept is that of the exact count of the groups it
    retrieves (hypergeometric; multivariate for more groups; of several seeds twice the mean), and
    ``concepts.csv`` names the group of which there are too many. ``p_value`` of ``score`` and of
    ``other:ATTRIBUTE`` permutes the labels of images, ``stats.resamples`` times, while rankings
    stay as they are, which is right whatever queries share (both ours).

    Each seed splits the images: a debiasing is fitted to one part, and images are retrieved from
    the other, the same with every debiasing, so that two compare image by image. Equally near
    images come in an order drawn by their ids.

    Args:
        attribute: whose groups.
        encoder: a pair of embedders, ``clip`` or ``fiber``.
        debias: what is done with its vectors.
        split: what is fitted to, and what is retrieved from.
        stats: how intervals over images are made.
        k: how many images each query retrieves; the paper's 100.
        groups: whose pictures are retrieved from, such as two of seven; None: all. The paper's
            Figure 3 shows two groups' shares of all that is retrieved, which ``concepts.csv`` has
            without it.
        rerank: how many of the first images of each ranking, and captions of each image for recall,
            the encoder judges together with the query and puts in that order (``fiber`` can); None:
            rankings are those of vectors. A debiasing edits vectors, so it decides which are judged
            and not how.
        normalise: ``both``: pictures and queries are of length 1; ``texts``: pictures are as long
            as the model makes them, and the longer ones come first.
        target: what shares at the top are set against in skews: ``uniform``, or those of the
            ``dataset``.
        ties: what of equally near pictures counts where only some have room: ``stable``: the first
            in an order drawn by their ids; ``all`` of them, still over k; ``expected``: of each as
            much as on average in all orders.
        log: base of skews and divergences.
        floor: what stands in skews for a group that is not at the top, see
            :func:`~bias_pipeline.metrics.functional.skew.skews`.
        others: attributes that are looked at beside it.
        attacked_images: of at most how many images of each seed, drawn by their ids, attackers
            tell the group.
        crop: ``person``: the largest person of a picture where the data set says where people are,
            else all of it; ``none``: all of it. The paper's pictures are faces.
        concepts: what is asked for; None: the data set's own tasks where they are known
            (``scenes``), else the paper's 145.
        template: what is asked for each concept, such as ``a photo of {query}``: ``{concept}`` is
            its name, ``{query}`` what its list asks; None: what its list asks.
        recall: the depths k of recall; none: it is not measured.
        recall_images: of at most how many images of each seed, drawn by their ids; each with the
            first of its human captions. The paper takes 1,000 of COCO's 5,000 test images.

    Example:
        >>> RetrievalFairness.info.range
        (0.0, 1.0)
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="retrieval_fairness",
        title="Retrieval fairness",
        version=5,
        unit="fraction",
        range=(0.0, 1.0),
        neutral=1.0,
        direction="higher is fairer; below null, queries that name no group prefer one",
        family="retrieval",
        question="retrieval",
        sources={
            CHEN_2022: "section 3.1",
            GEYIK_2019: "section 3.3",
            WANG_2021_QUERIES: "section 3",
        },
        ours="nulls and tests are",
        needs=(PICTURES,),
        cost=Cost(per_caption=0.0),
        says={"score": "queries that name no {attribute} retrieve one more than others"},
        image=True,
    )

    def __init__(
        self,
        attribute: Attribute,
        encoder: Encoder,
        debias: Debias,
        split: SplitRule,
        stats: Bootstrap,
        k: Count = 100,
        groups: Sequence[Line] | None = None,
        rerank: Count | None = None,
        crop: Crop = "person",
        concepts: Sequence[Line] | None = None,
        template: Line | None = None,
        recall: Sequence[Count] = (1, 5, 10),
        recall_images: Count = 1000,
        normalise: Normalise = "both",
        target: Target = "dataset",
        ties: Ties = "stable",
        log: Log = "e",
        floor: Floor = "1/k",
        others: Mapping[str, Attribute] | None = None,
        attacked_images: Count = 2000,
    ) -> None:
        if not isinstance(encoder, PictureTextEncoder):
            raise UsageError(
                "metric=retrieval_fairness asks an encoder of pictures and texts; choose "
                "encoder=clip, or encoder=fiber"
            )
        if template is not None:
            check_template(template)
        if concepts is not None and (not concepts or len(set(concepts)) < len(concepts)):
            raise UsageError(f"metric.concepts={list(concepts)}: give some, each once")
        if rerank is not None:
            check_rerank(rerank, k, ties)
        if groups is not None:
            check_groups(groups)
        self.groups = groups
        self.attribute, self.encoder, self.debias = attribute, encoder, debias
        self.split, self.stats = split, stats
        self.k, self.rerank, self.crop, self.template = k, rerank, crop, template
        self.concepts, self.depths, self.recall_images = concepts, tuple(recall), recall_images
        self.normalise, self.ties, self.attacked_images = normalise, ties, attacked_images
        self.skews, self.others = Skews(target, log, floor), others or {}
        if normalise == "texts" and debias.sides and debias.renormalise:
            raise UsageError(
                "metric.normalise=texts leaves pictures as long as they are, which "
                "debias.renormalise=true undoes; set debias.renormalise=false"
            )

    def require(self) -> None:
        """See the base."""
        self.encoder.require()
        if self.rerank is not None and not self.encoder.judges:
            raise no_judge(self.rerank)

    def draw_splits(self, corpus: Corpus, seeds: Sequence[int]) -> list[Split]:
        """One split a seed, of the images that belong to a group and have a picture.

        Raises:
            NotApplicableError: if there are no pictures.
            UsageError: if there is no such group.
        """
        corpus = self._chosen(corpus)
        shown = self._shown(corpus)
        drawn = self.split.draw(corpus.take(shown), self.attribute.name, seeds)
        return [
            replace(
                own,
                train=shown[own.train],
                test=shown[own.test],
                validation=shown[own.validation],
            )
            for own in drawn
        ]

    def _chosen(self, corpus: Corpus) -> Corpus:
        if self.groups is None:
            return corpus
        return of_groups(corpus, self.attribute.name, self.groups)

    def _shown(self, corpus: Corpus) -> IntArray:
        if corpus.pictures is None:
            raise NotApplicableError(
                f"dataset {corpus.dataset!r} has no pictures here, which metric=retrieval_fairness "
                "retrieves; set dataset.images=DIR, or choose one that has"
            )
        codes = corpus.groupings[self.attribute.name].codes
        return np.flatnonzero((codes >= 0) & corpus.pictures.present)

    def compute(self, corpus: Corpus, *, splits: Sequence[Split]) -> Score:
        """See the class.

        Raises:
            NotApplicableError: if there are no pictures.
            UsageError: if a part that is retrieved from has fewer images than k.
        """
        corpus = self._chosen(corpus)
        fewest = min(len(own.test) for own in splits)
        if self.k > fewest:
            raise UsageError(
                f"metric.k={self.k}: only {fewest} images are retrieved from; choose a smaller k "
                "or a larger split.test_share"
            )
        asked = queries_of(concepts_of(corpus.dataset), self.concepts, self.template)
        seen = self._seen(corpus)
        retrieved = [self._retrieved(seen, split, asked) for split in splits]
        ranked = [own.ranked for own in retrieved]
        recalls = [own.recall for own in retrieved if own.recall is not None]
        nulls = [fair_ranker(own.sizes, self.k, self.stats.level) for own in ranked]
        null = FairRanker(*np.mean(nulls, axis=0).tolist())
        found = fairness_of(ranked, tuple(asked), corpus, self.stats)
        found |= self._recalled(recalls, corpus)
        tested = np.unique(np.concatenate([own.test for own in splits]))
        coverage = len(tested) / int((seen.codes >= 0).sum())
        parts: dict[str, Part] = {
            name: Part(
                own, "fraction", len(tested), coverage, math.nan, range=(0.0, 1.0), neutral=neutral
            )
            for name, own, neutral in self._parts(found, null)
        }
        parts |= self.skews.parts(ranked, corpus, self.stats, (len(tested), coverage))
        parts |= self._attackers(retrieved, seen)
        others = [own.others for own in retrieved]
        parts |= other_parts(others, corpus, self.stats, seen.others, tested)
        lines = lines_of(found, ranked, seen.names, null, asked, self.skews)
        first = retrieved_lines(lines, tuple(asked), ranked[0], seen, self.crop)
        return Score(
            parts,
            audit=self._audit(ranked, null, seen, asked),
            notes=[
                *self._notes(lines, null, fewest, corpus, seen.again),
                *self._omitted(parts, seen, ranked),
            ],
            tables={CONCEPTS: lines, RETRIEVED: first},
        )

    def _seen(self, corpus: Corpus) -> Seen:
        dual = self.encoder.dual(self.crop, self.normalise)
        return Seen(
            corpus,
            self.attribute.name,
            dual,
            other_groupings(corpus, self.attribute),
            held_out(self.attribute, corpus.groupings[self.attribute.name].names),
            None if self.rerank is None else reranker(self.rerank, dual, corpus),
        )

    def _retrieved(self, seen: Seen, split: Split, asked: Concepts) -> Retrieved:
        """What is retrieved from one seed's part, the debiasing fitted to the other."""
        dual = self._debiased(seen, split)
        order = np.argsort(stream("ties", split.seed, seen.corpus.keys[split.test]), kind="stable")
        rows = split.test[order]
        queries = dual.texts.embed(list(asked.values()))
        pictures = dual.images.embed(seen.pictures(rows))
        least = self.rerank or 0
        ranked = Ranked.of(
            queries, pictures, rows, seen.codes[rows], len(seen.names), self.k, self.ties, least
        )
        others = ranked_others(queries, pictures, rows, seen.others, ranked, least)
        if seen.again is not None:
            texts = list(asked.values())
            ranked = seen.again.ranked(texts, ranked)
            others = {name: seen.again.ranked(texts, own) for name, own in others.items()}
        some = rows[: self.attacked_images]
        attacked = Attacked.of(
            pictures[: len(some)], some, seen.codes[some], seen.corpus.keys, split.seed
        )
        told = attacked_texts(dual.texts, seen.told, split.seed) if seen.told else None
        return Retrieved(ranked, others, attacked, told, self._recall(seen, dual, rows, pictures))

    def debiased(self, corpus: Corpus, split: Split) -> DualEncoder:
        """The encoder, its debiasing fitted to the images of a split that are not retrieved from.

        Raises:
            BiasPipelineError: if it cannot be fitted.
        """
        return self._debiased(self._seen(self._chosen(corpus)), split)

    def names(self, corpus: Corpus) -> tuple[str, ...]:
        """The groups that are told apart."""
        return self._chosen(corpus).groupings[self.attribute.name].names

    def _debiased(self, seen: Seen, split: Split) -> DualEncoder:
        examples = {side: seen.examples(side, self.attribute, split) for side in self.debias.sides}
        return self.debias.around(seen.dual, examples)

    def _attackers(self, retrieved: Sequence[Retrieved], seen: Seen) -> dict[str, Part]:
        """What attackers tell of pictures, and of sentences."""
        rows = np.unique(np.concatenate([own.attacked.rows for own in retrieved]))
        held = len(rows), len(rows) / len(seen.corpus)
        pictures = [own.attacked for own in retrieved]
        found = attacker_parts(pictures, seen.corpus.keys, self.stats, held)
        texts = [own.texts for own in retrieved if own.texts is not None]
        if texts:
            keys = keys_of(own[0] for own in seen.told)
            found |= attacker_parts(texts, keys, self.stats, (0, math.nan), "text")
        return found

    def _recall(
        self, seen: Seen, dual: DualEncoder, rows: IntArray, pictures: npt.NDArray[np.float32]
    ) -> Recall | None:
        """Of the first images in the order drawn; None where nobody describes them."""
        told, captions = first_captions(seen.corpus.human, rows[: self.recall_images])
        if not self.depths or not captions:
            return None
        own = pictures[: self.recall_images][np.isin(rows[: self.recall_images], told)]
        return Recall.of(dual, captions, own, told, self.depths, seen.again)

    def _recalled(self, recalls: Sequence[Recall], corpus: Corpus) -> dict[PartName, Estimate]:
        """Recalls, images resampled; nothing where a seed has no captions."""
        if not recalls:
            return {}
        rows = np.unique(np.concatenate([own.rows for own in recalls]))

        def evaluate(weights: npt.NDArray[np.float64]) -> dict[PartName, npt.NDArray[np.float64]]:
            shares = np.stack([own.shares(weights, rows) for own in recalls], axis=-1)
            return {name: shares[:, number] for number, name in enumerate(recalls[0].names)}

        return self.stats.estimate_weighted(corpus.keys[rows], evaluate)

    def _parts(
        self, found: Mapping[PartName, Estimate], null: FairRanker
    ) -> list[tuple[PartName, Estimate, float | None]]:
        nan = math.nan
        fair = Estimate(null.expected, nan, nan, null.low, null.high, nan, n_seeds=0)
        named = [
            (name, own, None if name.what == "recall" else null.expected)
            for name, own in found.items()
        ]
        return [named[0], (NULL, fair, None), *named[1:]]

    def _audit(
        self, ranked: Sequence[Ranked], null: FairRanker, seen: Seen, asked: Concepts
    ) -> dict[str, object]:
        return {
            "retrieved_from": [dict(zip(seen.names, own.sizes.tolist(), strict=True))
                               for own in ranked],
            "null": null._asdict(),
            "queries": dict(asked),
            "encoder": dict(seen.dual.images.spec),
            "rerank": self.rerank,
            "shown_under": seen.corpus.shown_under,
        }  # fmt: skip

    def _omitted(
        self, parts: Mapping[str, Part], seen: Seen, ranked: Sequence[Ranked]
    ) -> list[str]:
        """What is not among the parts, and why."""
        few = [name for name in seen.others if f"other:{name}" not in parts]
        found = [f"fewer than k={self.k} pictures are labelled with {name}" for name in few]
        if any(own.cut for own in ranked):
            found.append(
                f"equally near pictures are at the end of the first {self.k}: with "
                f"metric.ties={self.ties} skews have no null"
            )
        return found

    def _notes(
        self,
        lines: Sequence[Mapping[str, object]],
        null: FairRanker,
        n: int,
        corpus: Corpus,
        again: Reranker | None,
    ) -> list[str]:
        found = [
            f"a ranker to whom groups are nothing has {null.expected:.1%} "
            f"[{null.low:.1%}, {null.high:.1%} for one query] at k={self.k} of {n} images (null)",
            ends_of(lines),
            leanings_of(lines),
        ]
        if 2 * self.k > n:
            found.append(
                f"k={self.k} is more than half of the images retrieved from: whatever the ranking, "
                "the groups at the top are then nearly those of the data"
            )
        if again is not None:
            found.append(again.told(debiased=bool(self.debias.sides)))
        if corpus.pictures is not None:
            found += self.encoder.told_of(corpus.pictures)
        lost = int((corpus.groupings[self.attribute.name].codes >= 0).sum()) - len(
            self._shown(corpus)
        )
        return [*found, *([f"{lost} images have no picture and are not retrieved"] if lost else [])]
