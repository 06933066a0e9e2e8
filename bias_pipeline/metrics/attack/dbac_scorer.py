"""The results of one direction of DBAC: numbers, explanations, scores of pairs, image weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.corpus.corpus import SIDES
from bias_pipeline.corpus.split import SMALLEST_GROUP, Split
from bias_pipeline.errors import inflect
from bias_pipeline.metrics.attack.dbac_direction import UNTRAINED, Direction, DirectionAttackers
from bias_pipeline.metrics.attack.dbac_object_sets import ObjectSetAttackers
from bias_pipeline.metrics.attack.extra_parts import (
    NO_LESS_THAN_NONE,
    equal_speech_parts,
    error_of_first_seed,
    gap_of,
    gap_sentence,
    learning_note,
    learning_parts,
    rename_predictions,
    smaller_shares,
)
from bias_pipeline.metrics.base import Number, Score
from bias_pipeline.metrics.functional.dbac import OBJECT_SET
from bias_pipeline.metrics.value_names import PartName
from bias_pipeline.stats.bootstrap import Estimate, fill_void_resamples
from bias_pipeline.stats.scoring import Accuracy
from bias_pipeline.text.mentions import neutral_rate

SMALL_PAIR = 30  # test captions of a pair; an accuracy of 0.7 on so many biases its score by 0.4 %
_NEVER_BELOW_ZERO = ("gap", "prior", "mentions")


class DirectionScorer:
    def __init__(self, direction: Direction, splits: Sequence[Split]) -> None:
        self.direction = direction
        by_sets = direction.settings.prior == OBJECT_SET
        self.attackers = (ObjectSetAttackers if by_sets else DirectionAttackers)(direction, splits)
        self.name, self.settings, self.to_task = (
            direction.name,
            direction.settings,
            direction.to_task,
        )
        self.corpus, self.view = direction.corpus, direction.view
        self.counts, self.images = direction.counts, direction.images
        self.supported_pairs, self.values = direction.supported_pairs, direction.values

    def score(self) -> Score:
        """All numbers, and a note that says which factor explains most of the headline."""
        if not self.supported_pairs.any():
            return self._nothing()
        level = self.settings.stats.level
        drawn = self.settings.stats.estimate_weighted(
            self.corpus.keys[self.images],
            self.attackers.evaluate,
            trained=lambda name: name.what not in UNTRAINED,
            cross_fitted=self.settings.probe.cross_fits(self.attackers.splits),
        )
        estimates = {name: fill_void_resamples(estimate, level) for name, estimate in drawn.items()}
        estimates |= self._descriptive()
        notes = [
            *self._main_cause(estimates),
            *self._compare_groups(estimates),
            *self._noisy_pairs(),
        ]
        parts: dict[str, Number] = {n: self._part(n, estimate) for n, estimate in estimates.items()}
        return Score(
            parts=parts,
            predictions=[p for side in SIDES for p in self.attackers.predictions[side]],
            audit={
                f"{self.name}:pairs": int(self.supported_pairs.sum()),
                f"{self.name}:pairs_without_support": int((~self.supported_pairs).sum()),
            },
            notes=[*self.direction.transformed_corpus.notes, *notes],
            tables={
                **self.direction.tables,
                "examples": list(self._examples(estimates)),
                "resample": list(self._resample(estimates)),
            },
        )

    def with_learning_curve(self, score: Score) -> Score:
        """The score with a learning curve, which has the scores of attackers that saw fewer images.

        Numbers of the curve, including ``learning:all``, have no intervals. The curve uses only the
        first seed and the first human caption of each image, since all seeds and captions would
        take longer than the rest of the metric. T→A has no learning curve, since a quarter of all
        attackers would be trained for it.
        """
        if not (self.to_task and self.settings.probe.quick and self.supported_pairs.any()):
            return score
        shares = smaller_shares(self.view.codes[self.images])
        if not shares:
            return score
        curve = {name: self._of_fewer(share) for name, share in {"all": 1.0, **shares}.items()}
        error = error_of_first_seed(score.parts[self.name])
        return replace(
            score,
            parts={**score.parts, **learning_parts(curve, self.name)},
            notes=[*score.notes, *learning_note(curve, error, self.name)],
        )

    def _of_fewer(self, share: float) -> Number:
        """The headline if attackers learn from only a share of the images."""
        headline = self.direction.part()
        values = self.attackers.with_fewer_images(share).headline(np.ones((1, len(self.images))))
        return self._part(headline, Estimate(values.item(), n_seeds=1))

    def at_equal_speech(self, people: Score) -> Score:
        """The score with the numbers that exist only if styles are made equal."""
        score, headline = self.with_learning_curve(self.score()), self.direction.part()
        parts = equal_speech_parts(
            headline,
            score.parts[headline],
            self.direction.transformed_corpus,
            people.parts.get(headline),
        )
        shared = self.direction.part("shared")  # conclusions are drawn from it
        if shared in people.parts:
            parts[self.direction.part("shared", detail="matched:people")] = people.parts[shared]
        return replace(
            score,
            parts={**score.parts, **parts},
            predictions=[*score.predictions, *rename_predictions(people.predictions, "people")],
            notes=[*score.notes, *([] if people.parts else people.notes)],
        )

    def _compare_groups(self, estimates: dict[PartName, Estimate]) -> list[str]:
        """Add the largest gap between groups of an intersection, and a note on the worst group."""
        if not self.direction.by_group:
            return []
        of = self.direction.part
        groups = {name: estimates[of(group=name)] for name in self.view.groups}
        gap = gap_of(groups, self.settings.stats.level)
        if gap is None:
            return []
        estimates[of("gap")] = gap.estimate
        return [gap_sentence("A→T" if self.to_task else "T→A", groups, gap)]

    def _noisy_pairs(self) -> list[str]:
        """A warning if pairs with few captions pull the score below 0.

        If two accuracies M and H on n captions are near p, (M - H) / (M + H) is biased by about (1
        - p) / (4 p n). The bias favours the side with more captions, which is the human side.
        """
        by_pairs = self.to_task and self.settings.prior != OBJECT_SET
        if not (by_pairs and isinstance(self.settings.scoring, Accuracy)):
            return []
        tested = sum(block.counts[:-1].sum(axis=1) for block in self.attackers.blocks["model"])
        per_seed = (np.asarray(tested) / self.attackers.n_seeds)[self.supported_pairs.ravel()]
        few = int((per_seed < SMALL_PAIR).sum())
        if not few:
            return []
        return [
            f"A→T under scoring=accuracy is too low: "
            f"{inflect(few, f'of {len(per_seed)} pairs have')} "
            f"fewer than {SMALL_PAIR} test captions; raise metric.min_support, or choose "
            "scoring=inverse_ce"
        ]

    def _nothing(self) -> Score:
        """A headline without a value, and the reason why no attacker was trained."""
        absent = Estimate(float("nan"), n_seeds=self.attackers.n_seeds)
        arrow, what = ("A→T", "task") if self.to_task else ("T→A", "group")
        share = f"{100 * self.direction.support_limit:.2g}"
        sizes = self.counts.group.sum(axis=0)
        why = (
            f"no {what} is named both in {share} % of human captions (metric.min_support) and "
            "by the captioner"
        )
        if sizes.min() < SMALLEST_GROUP:
            few = f"images of {self.view.groups[sizes.argmin()]} have captions of both sides"
            why = (
                f"{inflect(int(sizes.min()), few)}{' and known objects' * (not self.to_task)}; "
                f"attackers need {SMALLEST_GROUP} of every group"
            )
        elif self.direction.by_labels:
            why = f"no group has {share} % of the images (metric.min_support)"
        elif not self.to_task:
            why += "; metric.prior=labels counts groups by the images' labels instead"
        return Score(
            parts={self.name: self._part(self.direction.part(), absent)},
            notes=[f"{arrow} cannot be scored: {why}"],
            tables={**self.direction.tables, "examples": [], "resample": []},
        )

    def _part(self, name: PartName, estimate: Estimate) -> Number:
        images = self._images_of(name)
        usable = np.zeros(len(self.corpus), bool)
        usable[images] = True
        return Number(
            **vars(estimate),
            unit="quality" if name.what == "quality" else "fraction",
            range=NO_LESS_THAN_NONE if name.what in _NEVER_BELOW_ZERO else None,
            n_images=len(images),
            coverage=float(len(images) / self.view.labelled.sum()),
            # From captions as written, because captions at equal style name no group.
            neutral_rate=neutral_rate(
                self.corpus.side(name.side or "model"), self.settings.attribute, usable
            ),
        )

    def _images_of(self, name: PartName) -> IntArray:
        """The corpus rows of a number.

        A group has the images that are labelled with it, or whose captions name it.
        """
        if not name.group or name.of_pair:
            return self.images
        place = self.view.groups.index(name.group)
        if self.to_task or self.direction.by_labels:
            return self.images[self.counts.group[:, place] > 0]
        named = sum(self.counts.named[side][:, place] for side in SIDES)
        return self.images[np.asarray(named) > 0]

    def _descriptive(self) -> dict[PartName, Estimate]:
        """Numbers that need no attacker: mention rates, and the quality of the commonest guess."""
        labels = self.direction.labels
        shares = self.counts.group.mean(axis=0) if self.to_task else labels.mean(axis=0)
        probs = np.tile(shares, (len(labels), 1))
        guess = self.settings.scoring.per_guess(probs, labels)
        of = self.direction.part
        quality = float(self.settings.scoring.link(np.asarray(guess.mean())))
        values = {of("quality", detail="baseline"): quality}
        for side in SIDES:
            counts = self.counts.tasks[side] if self.to_task else self.counts.named[side]
            named = counts.sum() / self.counts.captions[side].sum()
            values[of("mentions", side=side)] = float(named)
        n_seeds = self.attackers.n_seeds
        return {name: Estimate(value, n_seeds=n_seeds) for name, value in values.items()}

    def _main_cause(self, estimates: Mapping[PartName, Estimate]) -> list[str]:
        of = self.direction.part
        numbers = [estimates[of(*part)] for part in ((), ("none",), ("priors",))]
        if not any(number.ci_low > 0 or number.ci_high < 0 for number in numbers):
            return []  # no effect is certain
        attackers, priors = (number.value for number in numbers[1:])
        driver = "the attackers" if abs(attackers) >= abs(priors) else "the priors"
        arrow = "A→T" if self.to_task else "T→A"
        return [
            f"{arrow} is driven by {driver}: attackers alone {100 * attackers:+.1f}, "
            f"priors alone {100 * priors:+.1f}"
        ]

    def _amplified_pairs(
        self, estimates: Mapping[PartName, Estimate]
    ) -> list[tuple[int, int, Estimate]]:
        """The pairs whose interval lies above 0, sorted by score from the largest."""
        pairs = [
            (int(g), int(o), estimates[pair])
            for g, o in zip(*np.nonzero(self.supported_pairs), strict=True)
            if (pair := self.direction.pair(g, o)) in estimates
        ]
        return sorted((p for p in pairs if p[2].ci_low > 0), key=lambda p: -p[2].value)

    def _images_of_pair(self, g: int, o: int) -> IntArray:
        """Corpus rows of images labelled with the group whose caption names the task."""
        group, task = (g, o) if self.to_task else (o, g)
        has_task = self._source[:, task] > 0
        return self.images[has_task & (self.counts.group[:, group] > 0)]

    @property
    def _source(self) -> Float64Array:
        """(M, T): the tasks in captions or in images by which a pair's images are chosen."""
        return self.counts.tasks["model"] if self.to_task else self.counts.objects

    def _examples(self, estimates: Mapping[PartName, Estimate]) -> Iterator[dict[str, object]]:
        """Up to three captions for each of the ten most amplified pairs."""
        for g, o, estimate in self._amplified_pairs(estimates)[:10]:
            for row in self._images_of_pair(g, o)[:3]:
                record = self.corpus[int(row)]
                yield {
                    **self._pair_columns(g, o, estimate),
                    "image_id": record.id,
                    "model": record.model,
                    "human": record.human[0],
                }

    def _resample(self, estimates: Mapping[PartName, Estimate]) -> Iterator[dict[str, object]]:
        """The images of amplified pairs, with weights under which group and task are independent.

        The weight is P(group) P(task) / P(group, task), counted over images (Kamiran and Calders
        2012). When the captioner is trained again, images with a weight below 1 should be drawn
        less often.
        """
        for g, o, estimate in self._amplified_pairs(estimates):
            holders = self._images_of_pair(g, o)
            if not len(holders):
                continue  # no image contains the pair, so there is none to draw
            group, task = (g, o) if self.to_task else (o, g)
            of_group = self.counts.group[:, group].mean()
            of_task = (self._source[:, task] > 0).mean()
            weight = of_group * of_task / (len(holders) / len(self.images))
            for row in holders:
                columns = self._pair_columns(g, o, estimate)
                yield {
                    **columns,
                    "image_id": self.corpus.ids[row],
                    "weight": round(weight, 4),
                }

    def _pair_columns(self, g: int, o: int, estimate: Estimate) -> dict[str, object]:
        return {
            "direction": self.name,
            "given": self.values[0][g],
            "other": self.values[1][o],
            "score": estimate.value,
            "ci_low": estimate.ci_low,
            "ci_high": estimate.ci_high,
        }
