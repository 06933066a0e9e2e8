"""Objects measures whether a captioner invents objects for one group."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from bias_pipeline.array_types import BoolArray, Float64Array
from bias_pipeline.corpus.attribute import ENGLISH, Attribute, TaskVocabulary
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.corpus.split import Split
from bias_pipeline.errors import inflect
from bias_pipeline.io.hashing import random_words
from bias_pipeline.metrics.base import Cost, EvidenceRule, MetricInfo, Number, Score
from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.metrics.counting.base import check_excluded
from bias_pipeline.metrics.counting.compared_groups import (
    ComparedGroups,
    ComparedParts,
    GroupContrast,
    by_group,
)
from bias_pipeline.metrics.counting.described_examples import take_in_turn
from bias_pipeline.metrics.counting.numbers import SHARE
from bias_pipeline.metrics.counting.object_answer import (
    ObjectContrast,
    answer_of,
    facts,
    lines,
)
from bias_pipeline.metrics.counting.object_images import (
    OBJECTS,
    ObjectImages,
    without_captioner,
)
from bias_pipeline.metrics.functional.comparable import Comparison
from bias_pipeline.metrics.functional.described_differences import described_differences
from bias_pipeline.metrics.functional.invention import (
    Amount,
    NamedObjects,
    mean,
    mean_gap,
    ratio_of_sums,
)
from bias_pipeline.metrics.references import ROBINSON_1988, ROHRBACH_2018
from bias_pipeline.metrics.value_names import HUMAN, SCORE, PartName
from bias_pipeline.stats.bootstrap import drop_void_interval, quantile
from bias_pipeline.stats.shares import effective_trials, wilson
from bias_pipeline.text.caption_language import english, language_shares, untestable

_PARTS_OF_LEVELS = {OBJECTS: "alike"}  # levels whose parts have another name


@dataclass(eq=False, kw_only=True)
class InventedObjects(ComparedGroups):
    """How often captions name an object that is not in the picture, by group.

    An object counts as present if it is annotated or if annotators name it.

    * ``invented``, ``invented:mentions``: the share of captions with an absent object (CHAIRs), and
      the share of absent objects among named objects (CHAIRi).
    * ``gap``: ``invented`` of the second group minus ``invented`` of the first group.
      ``gap:number``, ``gap:alike``, ``gap:words``: the gap between pictures with the same number of
      objects, with the same objects, or with the same objects and annotators' words.
    * ``object:NAME``: the difference for one object. ``score``: half the sum of these differences.
      Each difference is multiplied by its sign on other images. ``null``: the effect of noise on
      the score, already subtracted.
    * ``recall``, ``recall:human``, ``recall:increase``, ``gap:recall``: the share of an image's
      objects that captions name.

    With more than two groups, each group is compared with all others (``gap:NAME``,
    ``group:NAME``). ``invented_captions.csv`` has examples.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="objects",
        title="Invented objects",
        version=1,
        unit="fraction",
        range=(-math.inf, math.inf),
        neutral=0.0,
        direction="lower is fairer; above 0, the absent objects that captions name depend on the "
        "group",
        family="counting",
        question="inventing",
        sources={ROHRBACH_2018: "CHAIR", ROBINSON_1988: "residual on residual"},
        ours="the gap on comparable pictures and the score are",
        needs=("objects",),
        streams=True,
        cost=Cost(per_caption=1.5e-5),
        says={"score": "it names absent objects that go with the {attribute}"},
        readings={"score": EvidenceRule("score")},
    )

    task: TaskVocabulary  # the objects that captions may name
    exclude_tasks: Sequence[str] = ("person",)  # objects to leave out; every image shows a person

    def __post_init__(self) -> None:
        check_excluded(self.exclude_tasks, self.task)

    @property
    def object_tasks(self) -> TaskVocabulary:
        return self.task

    def compute(self, corpus: Corpus, *, splits: Sequence[Split]) -> Score:
        del splits
        corpus, of_captioner = without_captioner(corpus)
        images = self.images(corpus)
        contrasts = [self._contrast(images, *one) for one in self.group_contrasts(images)]
        parts = _Parts(self, images, corpus, contrasts)
        notes = [
            *([of_captioner] if of_captioner else []),
            *([] if len(corpus.human) else [_WITHOUT_ANNOTATORS]),
        ]
        answer = answer_of(
            contrasts,
            len(images.corpus),
            parts.largest_share,
            notes,
            _foreign(corpus, self.attribute),
        )
        tables = {"objects": lines(contrasts), "invented_captions": list(_examples(images))}
        return Score(
            dict(parts),
            audit={"objects": facts(answer, contrasts)},
            notes=[*corpus.notes, *self.left_out(corpus, images.corpus), *answer.sentences],
            tables={name: table for name, table in tables.items() if table},
        )

    def images(self, corpus: Corpus) -> ObjectImages:
        rows = self.counted_rows(corpus)
        counted, annotated = corpus.take(rows), self._view(corpus).task_labels[rows]
        view = self._view(counted)
        return ObjectImages(counted, self.attribute, self.concepts, view, annotated)

    def image_needs(self, corpus: Corpus) -> str:
        people = " and annotators' captions" if len(corpus.human) else ""
        return f"a caption, known objects{people}"

    def comparable(self, corpus: Corpus) -> BoolArray:
        """(N,) flags: true for comparable images whose objects are known."""
        view = self._view(corpus)
        if not view.has_objects:
            view.task_labels  # noqa: B018 - says which objects are lacking
        return super().comparable(corpus) & view.objects_known

    def left_out(self, corpus: Corpus, counted: Corpus) -> list[str]:
        """Notes on images that do not count, for example because their objects are unknown."""
        view = self._view(corpus)
        unknown = int((self.scope(corpus) & view.has("model") & ~view.objects_known).sum())
        left = f"{inflect(unknown, 'images')} without known objects: objects leaves them out"
        return [*([left] if unknown else []), *super().left_out(corpus, counted)]

    def _view(self, corpus: Corpus) -> CorpusView:
        return CorpusView(corpus, self.attribute, None, self.task, self.exclude_tasks)

    def _contrast(
        self, images: ObjectImages, compared: GroupContrast, members: BoolArray
    ) -> ObjectContrast:
        groups, keys = members.astype(np.float64), images.corpus.keys
        by_level = {
            level: Comparison.fit(groups, features, images.folds, keys)
            for level, features in images.features_by_level.items()
        }
        full = list(by_level.values())[-1]
        invents = images.model.invents
        absent = images.model.absent[:, images.invented_objects]
        return ObjectContrast(
            **vars(compared),
            differences=described_differences(full, absent, None, np.full(absent.shape[1], -1)),
            objects=[images.view.tasks[t] for t in images.invented_objects],
            rates=by_group(absent, members),
            invented=(float(invents[members].mean()), float(invents[~members].mean())),
            raw=mean_gap(invents, members),
            alike={level: _difference(one, invents) for level, one in by_level.items()},
            recall=self._recall(images, members),
            pictures={"overlap": full.overlap, "accuracy": full.accuracy},
        )

    def _recall(self, images: ObjectImages, members: BoolArray) -> Amount | None:
        """The group difference of recall beyond annotators' recall; None without annotators."""
        if not len(images.corpus.human):
            return None
        more = images.model.recall - images.human.recall
        rows = np.flatnonzero(~np.isnan(more))
        if min(members[rows].sum(), (~members[rows]).sum()) == 0:
            return None
        comparison = Comparison.fit(
            members[rows].astype(np.float64),
            images.features[rows],
            images.folds[rows],
            images.corpus.keys[rows],
        )
        return _difference(comparison, more[rows])


def _examples(images: ObjectImages) -> Iterator[dict[str, object]]:
    """A few captions with absent objects, for each object in the score."""
    corpus = images.corpus
    grouping, captions = corpus.groupings[images.attribute.name], corpus.model
    absent = images.model.absent[captions.image_rows] > 0
    invented = images.view.mentions("model").multiply(absent).tocsc()
    groups = grouping.codes[captions.image_rows]
    drawn = random_words("examples", 0, corpus.keys[captions.image_rows])
    for task in images.invented_objects:
        rows = invented.indices[slice(*invented.indptr[task : task + 2])].astype(np.int64)
        for row in take_in_turn(rows, groups, drawn):
            yield {
                "object": images.view.tasks[task],
                "group": grouping.names[groups[row]],
                "image_id": corpus.ids[captions.image_rows[row]],
                "caption": captions.text(row),
            }


def _foreign(corpus: Corpus, attribute: Attribute) -> str:
    """A message if captions are not in English, as object names are; else empty."""
    shares = language_shares(corpus, attribute)
    if attribute.language != ENGLISH:  # shares of captions in the attribute's language
        sides = ((side, corpus.side(side)) for side in SIDES)
        shares = {side: float(english(c).mean()) for side, c in sides if len(c)}
    return untestable(shares, ENGLISH)


_WITHOUT_ANNOTATORS = (
    "without annotators' captions an object that nobody annotated counts as absent, and pictures "
    "are compared by their annotated objects alone"
)


def _difference(comparison: Comparison, values: Float64Array) -> Amount:
    """The difference between groups in (M,) values, on comparable pictures."""
    difference, error = comparison.differences(values[:, None])
    return Amount(float(difference[0]), float(error[0]))


class _Parts(ComparedParts):
    def __init__(
        self,
        metric: InventedObjects,
        images: ObjectImages,
        corpus: Corpus,
        contrasts: Sequence[ObjectContrast],
    ) -> None:
        super().__init__(metric, images, corpus)
        self.objects, self.contrasts = images, contrasts
        grouping = images.corpus.groupings[metric.attribute.name]
        codes, every = grouping.codes, np.ones(self.n_images, bool)
        groups = {name: codes == k for k, name in enumerate(grouping.names)}
        self.groups = {"": every} | {name: rows for name, rows in groups.items() if rows.any()}

    @property
    def largest_share(self) -> float:
        """The upper end of the interval for the share of captions that invent objects."""
        model, some = self.objects.model, self.objects.sometimes_invented
        captions = NamedObjects(model.named[:, some], model.present[:, some])
        return self._share(captions.invents).ci_high

    def __iter__(self) -> Iterator[tuple[PartName, Number]]:
        if self.objects.invented_objects:
            yield from self.scores(self.contrasts)
        else:
            # Hardly any object is invented, so no object goes with a group.
            score = replace(self.part(0.0, math.nan), ci_low=0.0, ci_high=self.largest_share)
            yield SCORE, score
        for group, rows in self.groups.items():
            yield from self._inventions(group, rows)
            yield from self._recall(group, rows)
        for contrast in self.contrasts:
            yield from self._gaps(contrast)
            yield from self._objects(contrast)

    def _inventions(self, group: str, rows: BoolArray) -> Iterator[tuple[PartName, Number]]:
        """The shares of captions and of mentions that name absent objects."""
        model = self.objects.model
        yield PartName("invented", group=group), self._share(model.invents[rows])
        absent, named = model.absent[rows].sum(axis=1), model.named[rows].sum(axis=1)
        name = PartName("invented", group=group, detail="mentions")
        yield name, self._share_of(ratio_of_sums(absent, named), float(named.sum()), rows.sum())

    def _recall(self, group: str, rows: BoolArray) -> Iterator[tuple[PartName, Number]]:
        """Recall of the captions, recall of the annotators' captions, and their difference."""
        recall = self.objects.model.recall
        known = rows & ~np.isnan(recall)
        name = PartName("recall", group=group)
        yield name, self._mean(mean(recall[known]), known.sum(), SHARE)
        if len(self.images.corpus.human):
            human = self.objects.human.recall
            part = self._mean(mean(human[known]), known.sum(), SHARE, HUMAN)
            yield PartName("recall", group=group, side=HUMAN), part
            more = self._mean(mean(recall[known] - human[known]), known.sum())
            yield PartName("recall", group=group, detail="increase"), more

    def _gaps(self, contrast: ObjectContrast) -> Iterator[tuple[PartName, Number]]:
        gaps = {"": contrast.raw}
        gaps |= {_PARTS_OF_LEVELS.get(level, level): gap for level, gap in contrast.alike.items()}
        if contrast.recall:
            gaps["recall"] = contrast.recall
        for detail, gap in gaps.items():
            name = PartName("gap", group=contrast.label, detail=detail)
            yield name, self._mean(gap, self.n_images)

    def _objects(self, contrast: ObjectContrast) -> Iterator[tuple[PartName, Number]]:
        for q in contrast.differences.listed_concepts.tolist():
            name = PartName(
                "object" if contrast.label else "", group=contrast.label, object=contrast.objects[q]
            )
            yield name, self.difference(contrast.differences.excess, q)

    def _mean(
        self,
        amount: Amount,
        n_images: int,
        range: tuple[float, float] = (-1.0, 1.0),
        side: str = "model",
    ) -> Number:
        part = self.part(amount.value, amount.error, range, side)
        coverage = self.coverage * n_images / self.n_images
        return replace(drop_void_interval(part), n_images=int(n_images), coverage=coverage)

    def _share(self, flags: Float64Array) -> Number:
        """A share of captions, where each image has one caption."""
        return self._share_of(mean(flags), len(flags), len(flags))

    def _share_of(self, amount: Amount, observations: float, n_images: int) -> Number:
        """A share with Wilson's interval, since events that never occurred may still occur."""
        part = self._mean(amount, n_images, SHARE)
        if math.isnan(amount.value):
            return part
        trials = effective_trials(amount.value, amount.error, observations, n_images)
        low, high = wilson(amount.value, trials, quantile(self.level))
        return replace(part, ci_low=low, ci_high=high)
