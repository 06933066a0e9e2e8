"""Retrieval fairness measures whether neutral queries retrieve people of all groups equally."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from bias_pipeline.array_types import Float32Array, Float64Array, IntArray
from bias_pipeline.attack.encoder import Encoder
from bias_pipeline.attack.language_models import Line
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.split import Split, SplitRule
from bias_pipeline.data.regions import Crop
from bias_pipeline.declared import Count
from bias_pipeline.errors import NotApplicableError, TooFewImagesError, UsageError, inflect
from bias_pipeline.io.hashing import hash_ids, random_words
from bias_pipeline.metrics.base import PICTURES, Cost, Metric, MetricInfo, Number, Score
from bias_pipeline.metrics.references import CHEN_2022, GEYIK_2019, WANG_2021_QUERIES
from bias_pipeline.metrics.value_names import SCORE, PartName
from bias_pipeline.retrieval.debias.base import Debias, held_out
from bias_pipeline.retrieval.estimates import Folds, Skews, fairness_of
from bias_pipeline.retrieval.formulas import Ties
from bias_pipeline.retrieval.ranked import (
    Ranked,
    Reranker,
    check_rerank,
    no_judge,
    reranker,
)
from bias_pipeline.retrieval.retrieval_view import (
    RETRIEVED,
    Concepts,
    RetrievalView,
    Retrieved,
    check_groups,
    check_template,
    concepts_of,
    ends_of,
    leanings_of,
    lines_of,
    of_groups,
    queries_of,
    retrieved_lines,
)
from bias_pipeline.retrieval.side_effects import (
    Attacked,
    Recall,
    attacked_texts,
    attacker_parts,
    first_captions,
    other_groupings,
    other_parts,
    ranked_others,
)
from bias_pipeline.retrieval.skew import Floor, Log, Target, fair_ranker
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate, Interval

if TYPE_CHECKING:
    from bias_pipeline.retrieval.dual_encoders import DualEncoder

CONCEPTS = "concepts"  # the name of the table of concepts


@dataclass(eq=False)
class RetrievalFairness(Metric):
    """Mean normalised entropy of the groups among the k images nearest to each neutral query.

    The score is 1 if every query retrieves all groups equally often, and 0 if every query retrieves
    a single group.

    * ``concept:NAME``: the score of a query, with an exact p.
    * ``null``: the score of a ranker that ignores groups (below 1).
    * ``other:ATTRIBUTE``, ``null:other:ATTRIBUTE``: the same rankings, scored for other attributes.
    * ``skew:max``, ``:min``, ``:ndkl``, ``:kl``, ``:bias``: measures of skew. ``null:skew:*``: the
      same measures for a ranker that ignores groups.
    * ``attacker:linear``, ``:kernel``, ``:text:*``: the accuracy of newly trained attackers that
      read vectors.
    * ``recall:image@k``, ``recall:text@k``: how well pictures and captions find each other.

    Entropy does not show which group a query prefers. So p values compare counts of groups with
    counts under permuted labels. Each seed splits the images. A debiasing method is fitted to one
    part, and queries retrieve images from the other part.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="retrieval_fairness",
        title="Retrieval fairness",
        version=5,
        unit="fraction",
        range=(0.0, 1.0),
        neutral=1.0,
        direction="higher is fairer; below the number null, queries that name no group prefer one "
        "group",
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
        says={"score": "how evenly queries that name no {attribute} retrieve all groups"},
        image=True,
    )

    attribute: Attribute  # whose groups are retrieved
    encoder: Encoder  # a pair of embedders, `clip` or `fiber`
    debias: Debias  # applied to the encoder's vectors
    # Divides the images: the debiasing is fitted to one part, queries retrieve from the other
    split: SplitRule
    stats: Bootstrap  # how intervals over images are made
    k: Count = 100  # how many images each query retrieves; the paper's 100
    # The groups whose pictures can be retrieved, such as two of seven; None: all groups
    groups: Sequence[Line] | None = None
    # How many of the first images of each ranking (for recall also of the first captions) the
    # encoder orders again by reading picture and text together, as `fiber` can; None: rankings by
    # vectors
    rerank: Count | None = None
    # `person`: the largest person of a picture if the data set has people's places, else the whole
    # picture; `none`: the whole picture. The paper's pictures are faces
    crop: Crop = "person"
    # Names of the queries; None: the data set's tasks if known (`scenes`), else those of the paper
    concepts: Sequence[Line] | None = None
    # The template of queries, such as `a photo of {query}`: `{concept}` is a concept's name,
    # `{query}` its query in the list of concepts; None: the query in the list
    template: Line | None = None
    recall: Sequence[Count] = (1, 5, 10)  # the depths k of recall; empty: recall is not measured
    # How many images of each split recall uses at most, drawn by their ids; each image has the
    # first of its human captions. The paper takes 1,000 of COCO's 5,000 test images
    recall_images: Count = 1000
    # `both`: the vectors of pictures and queries have length 1; `texts`: the vectors of pictures
    # keep the model's length, so longer vectors rank higher
    normalise: Literal["both", "texts"] = "both"
    # The shares with which skews compare the top: `uniform`, or the shares in the `dataset`
    target: Target = "dataset"
    # How equally near pictures count if only some fit into the first k: `stable`: only the first
    # count, in a random order by ids; `all`: all count, divided by k; `expected`: each counts as
    # much as on average over all orders
    ties: Ties = "stable"
    log: Log = "e"  # base of skews and divergences
    floor: Floor = "1/k"  # replaces a share of 0 in skews, see `skews`
    others: Mapping[str, Attribute] | None = None  # other attributes that are measured too
    # How many images of each split attackers use at most, drawn by their ids
    attacked_images: Count = 2000

    def __post_init__(self) -> None:
        from bias_pipeline.retrieval.encoders import PictureTextEncoder

        if not isinstance(self.encoder, PictureTextEncoder):
            raise UsageError(
                "metric=retrieval_fairness needs an encoder of pictures and texts; choose "
                "encoder=clip or encoder=fiber"
            )
        self.embedders = self.encoder  # the encoder, known to be one of pictures and texts
        names = self.concepts
        if self.template is not None:
            check_template(self.template)
        if names is not None and (not names or len(set(names)) < len(names)):
            raise UsageError(f"metric.concepts={list(names)}: give at least one, each once")
        if self.rerank is not None:
            check_rerank(self.rerank, self.k, self.ties)
        if self.groups is not None:
            check_groups(self.groups)
        if "image" in self.debias.sides:
            self.split.check_trains()
        if self.normalise == "texts" and self.debias.sides and self.debias.renormalise:
            raise UsageError(
                "metric.normalise=texts does not change the length of pictures' vectors, but "
                "debias.renormalise=true does; set debias.renormalise=false"
            )

    @property
    def skews(self) -> Skews:
        return Skews(self.target, self.log, self.floor)

    def require(self) -> None:
        self.embedders.require()
        if self.rerank is not None and not self.embedders.judges:
            raise no_judge(self.rerank)

    def draw_splits(self, corpus: Corpus, seeds: Sequence[int]) -> list[Split]:
        """One split for each seed, of the images that belong to a group and have a picture."""
        corpus = self._with_chosen_groups(corpus)
        rows = self._shown_rows(corpus)
        return [
            replace(
                split,
                train=rows[split.train],
                test=rows[split.test],
                validation=rows[split.validation],
            )
            for split in super().draw_splits(corpus.take(rows), seeds)
        ]

    def _with_chosen_groups(self, corpus: Corpus) -> Corpus:
        if self.groups is None:
            return corpus
        return of_groups(corpus, self.attribute.name, self.groups)

    def _shown_rows(self, corpus: Corpus) -> IntArray:
        if corpus.pictures is None:
            raise NotApplicableError(
                f"dataset {corpus.dataset!r} has no pictures here, which "
                "metric=retrieval_fairness retrieves; set dataset.images=DIR, or choose a data "
                "set that has pictures"
            )
        codes = corpus.groupings[self.attribute.name].codes
        return np.flatnonzero((codes >= 0) & corpus.pictures.present)

    def compute(self, corpus: Corpus, *, splits: Sequence[Split]) -> Score:
        """Compute the score; each split must have at least k images in its pool."""
        corpus = self._with_chosen_groups(corpus)
        fewest = min(len(split.test) for split in splits)
        if self.k > fewest:
            raise TooFewImagesError(
                f"metric.k={self.k}: only {fewest} images are retrieved from; choose a smaller k "
                "or a larger split.test_share"
            )
        queries = queries_of(concepts_of(corpus.dataset), self.concepts, self.template)
        view = self._view(corpus)
        retrieved = [self._retrieve(view, split, queries) for split in splits]
        ranked = [one.ranked for one in retrieved]
        folds = Folds([split.seed for split in splits])
        nulls = [fair_ranker(ranking.sizes, self.k, self.stats.level) for ranking in ranked]
        null = Interval(*np.mean(nulls, axis=0).tolist())
        estimates = fairness_of(ranked, tuple(queries), corpus, self.stats, folds)
        estimates |= self._recall_estimates(retrieved, corpus, folds)
        tested = np.unique(np.concatenate([split.test for split in splits]))
        coverage = len(tested) / int((view.codes >= 0).sum())
        number = partial(Number, n_images=len(tested), coverage=coverage, range=(0.0, 1.0))
        parts: dict[str, Number] = {}
        for name, estimate in estimates.items():
            neutral = None if name.what == "recall" else null.value
            parts[name] = number(**vars(estimate), neutral=neutral)
            if name == SCORE:  # the score of a ranker that ignores groups
                parts[PartName("null")] = number(null.value, ci_low=null.low, ci_high=null.high)
        parts |= self.skews.parts(ranked, corpus, self.stats, (len(tested), coverage), folds)
        parts |= self._attackers(retrieved, view, folds)
        others = [one.others for one in retrieved]
        parts |= other_parts(others, corpus, self.stats, view.others, tested, folds)
        lines = lines_of(estimates, ranked, view.names, null, queries, self.skews)
        first = retrieved_lines(lines, tuple(queries), ranked[0], view, self.crop)
        audit = {
            "retrieved_from": [
                dict(zip(view.names, ranking.sizes.tolist(), strict=True)) for ranking in ranked
            ],
            "null": null._asdict(),
            "queries": dict(queries),
            "encoder": dict(view.dual.images.spec),
            "rerank": self.rerank,
            "shown_under": corpus.shown_under,
        }
        notes = [
            *self._notes(lines, null, fewest, corpus, view.again),
            *self._notes_on_absent(parts, view, ranked),
        ]
        tables = {CONCEPTS: lines, RETRIEVED: first}
        return Score(parts, audit=audit, notes=notes, tables=tables)

    def _view(self, corpus: Corpus) -> RetrievalView:
        dual = self.embedders.dual(self.crop, self.normalise)
        return RetrievalView(
            corpus,
            self.attribute.name,
            dual,
            other_groupings(corpus, self.attribute),
            held_out(self.attribute, corpus.groupings[self.attribute.name].names),
            None if self.rerank is None else reranker(self.rerank, dual, corpus),
        )

    def _retrieve(self, view: RetrievalView, split: Split, concepts: Concepts) -> Retrieved:
        """The rankings of one split's test images; the debiasing learns from training images."""
        dual = self._debias_encoder(view, split)
        order = random_words("ties", split.seed, view.corpus.keys[split.test])
        rows = split.test[np.argsort(order, kind="stable")]
        texts = list(concepts.values())
        queries = dual.texts.embed(texts)
        pictures = dual.images.embed(view.pictures(rows))
        least = self.rerank or 0
        ranked = Ranked.rank(
            queries, pictures, rows, view.codes[rows], len(view.names), self.k, self.ties, least
        )
        others = ranked_others(queries, pictures, rows, view.others, ranked, least)
        if view.again is not None:
            ranked = view.again.rerank(texts, ranked)
            others = {name: view.again.rerank(texts, ranking) for name, ranking in others.items()}
        some = rows[: self.attacked_images]
        attacked = Attacked.attack(
            pictures[: len(some)], some, view.codes[some], view.corpus.keys, split.seed
        )
        sets = view.sentences
        sentences = attacked_texts(dual.texts, sets, split.seed) if sets else None
        recall = self._recall(view, dual, rows, pictures)
        return Retrieved(ranked, others, attacked, sentences, recall)

    def debiased_encoder(self, corpus: Corpus, split: Split) -> DualEncoder:
        """The encoder with its debiasing, which learns from the training images of a split."""
        return self._debias_encoder(self._view(self._with_chosen_groups(corpus)), split)

    def names(self, corpus: Corpus) -> tuple[str, ...]:
        return self._with_chosen_groups(corpus).groupings[self.attribute.name].names

    def _debias_encoder(self, view: RetrievalView, split: Split) -> DualEncoder:
        examples = {side: view.examples(side, self.attribute, split) for side in self.debias.sides}
        return self.debias.wrap(view.dual, examples)

    def _attackers(
        self, retrieved: Sequence[Retrieved], view: RetrievalView, folds: Folds
    ) -> dict[str, Number]:
        """How well attackers guess groups from pictures and from sentences."""
        rows = np.unique(np.concatenate([one.attacked.rows for one in retrieved]))
        tested = len(rows), len(rows) / int((view.codes >= 0).sum())
        pictures = folds.of_each_seed([one.attacked for one in retrieved])
        parts = attacker_parts(
            [Attacked.join_folds(of_seed) for of_seed in pictures],
            view.corpus.keys,
            self.stats,
            tested,
            cross_fitted=folds.has_several,
        )
        if view.sentences:
            sets = [one.texts for one in retrieved if one.texts]
            texts = [Attacked.join_folds(of_seed) for of_seed in folds.of_each_seed(sets)]
            keys = hash_ids(sentence_set[0] for sentence_set in view.sentences)
            parts |= attacker_parts(texts, keys, self.stats, (0, math.nan), "text")
        return parts

    def _recall(
        self,
        view: RetrievalView,
        dual: DualEncoder,
        rows: IntArray,
        pictures: Float32Array,
    ) -> Recall | None:
        """The recall of the first images in drawn order, or None if no image has a caption."""
        rows, pictures = rows[: self.recall_images], pictures[: self.recall_images]
        described, captions = first_captions(view.corpus.human, rows)
        if not self.recall or not captions:
            return None
        described_pictures = pictures[np.isin(rows, described)]
        return Recall.measure(
            dual, captions, described_pictures, described, self.recall, view.again
        )

    def _recall_estimates(
        self, retrieved: Sequence[Retrieved], corpus: Corpus, folds: Folds
    ) -> dict[PartName, Estimate]:
        """The recalls, with intervals that resample images; empty if no seed has captions."""
        of_seeds = folds.of_each_seed([one.recall for one in retrieved])
        some = [[recall for recall in of_seed if recall is not None] for of_seed in of_seeds]
        recalls = [Recall.join_folds(of_seed) for of_seed in some if of_seed]
        if not recalls:
            return {}
        rows = np.unique(np.concatenate([recall.rows for recall in recalls]))

        def evaluate(weights: Float64Array) -> dict[PartName, Float64Array]:
            shares = np.stack([recall.shares(weights, rows) for recall in recalls], axis=-1)
            return {name: shares[:, number] for number, name in enumerate(recalls[0].names)}

        return self.stats.estimate_weighted(corpus.keys[rows], evaluate)

    def _notes_on_absent(
        self, parts: Mapping[str, Number], view: RetrievalView, ranked: Sequence[Ranked]
    ) -> list[str]:
        few = [name for name in view.others if f"other:{name}" not in parts]
        notes = [f"fewer than k={self.k} pictures are labelled with {name}" for name in few]
        if any(ranking.cut for ranking in ranked):
            notes.append(
                f"further pictures are as near as the last of the first {self.k}: with "
                f"metric.ties={self.ties} skews have no part null"
            )
        return notes

    def _notes(
        self,
        lines: Sequence[Mapping[str, object]],
        null: Interval,
        n: int,
        corpus: Corpus,
        again: Reranker | None,
    ) -> list[str]:
        notes = [
            f"a ranker that ignores groups has {null.value:.1%} "
            f"[{null.low:.1%}, {null.high:.1%} for one query] at k={self.k} of {n} images (null)",
            ends_of(lines),
            leanings_of(lines),
        ]
        if 2 * self.k > n:
            notes.append(
                f"k={self.k} is more than half of the images: under any ranking the groups at "
                "the top are then nearly the groups of the data"
            )
        if again is not None:
            notes.append(again.note(debiased=bool(self.debias.sides)))
        if corpus.pictures is not None:
            notes += self.embedders.notes_of(corpus.pictures)
        labelled = corpus.groupings[self.attribute.name].codes >= 0
        lost = int(labelled.sum()) - len(self._shown_rows(corpus))
        return [
            *notes,
            *([f"{inflect(lost, 'images have no picture and are')} not retrieved"] if lost else []),
        ]
