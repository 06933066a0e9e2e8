"""ImageCaptioner2 measures leaks of the attribute to an attacker that also sees the picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from bias_pipeline.array_types import BoolArray, IntArray
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.object_names import coco_name
from bias_pipeline.corpus.predictions import LabelledCaptions, Predictions
from bias_pipeline.corpus.split import Split
from bias_pipeline.data.image_masking import Blank, ImageMasking, Silhouette
from bias_pipeline.declared import Count
from bias_pipeline.errors import NotApplicableError, UsageError
from bias_pipeline.io.hashing import UIntArray, hash_ids, random_words
from bias_pipeline.metrics.attack.attack_runner import AttackRunner
from bias_pipeline.metrics.attack.caption_attack import CaptionAttack
from bias_pipeline.metrics.base import PICTURES, Cost, EvidenceRule, MetricInfo, Number
from bias_pipeline.metrics.references import BAKR_2024
from bias_pipeline.metrics.value_names import MODEL, PartName
from bias_pipeline.stats.bootstrap import Combination
from bias_pipeline.stats.scores import ScoreTable
from bias_pipeline.text.transform import Transform, apply_transforms

Leak = Literal["masked", "silhouette", "blank", "others"]
LEAKS: tuple[Leak, ...] = ("masked", "silhouette", "blank")


@dataclass(eq=False, kw_only=True)
class ImageCaptioner2(CaptionAttack):
    """The score is B_amp = B_m - B_d (Bakr et al. 2024, section 4).

    The attacker is itself a captioner. This attacker sees the picture with people masked, a caption
    with group words masked, and a prompt. B is the mean probability of the true group on held-out
    images (eq. 2). ``model`` is B_m and ``human`` is B_d. A uniform guess gives 1 / K. Besides the
    numbers of LIC there are

    * ``score:accuracy``, ``score:lic``: the same guesses, scored as in the other columns of Table
      2;
    * ``leak:masked``, ``leak:silhouette``, ``leak:blank``, ``leak:others``: the attacker's score
      without captions, from the masked picture, the mask's outline, an empty picture, or another
      picture.

    Example:
        >>> ImageCaptioner2.info.neutral
        0.0
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="imagecaptioner2",
        title="ImageCaptioner2",
        version=2,
        unit="fraction",
        range=(-1.0, 1.0),
        neutral=0.0,
        direction="lower is fairer; above 0, captions reveal the group more than human captions do",
        family="attack",
        question="leakage",
        sources={BAKR_2024: "eq. 2"},
        needs=(PICTURES,),
        without={"human captions": MODEL},
        cost=Cost(per_caption=0.0, per_attacked=1e-2),
        says={
            "score": "an attacker that also sees the masked picture is surer of the true "
            "{attribute} than with human captions",
        },
        readings={"score": EvidenceRule("score", follows=("words", "vocabulary"))},
        # With three seeds p below .001 is too frequent (experiments/inference/SEEDS.md).
        least_seeds=5,
        source_identifying=True,
        learnable=True,
        amplification=True,
        full_context=True,
        image=True,
    )

    image_masking: ImageMasking  # what is masked in pictures
    positions: Count = 1  # see `CaptionAttack`; the paper does not give the number
    renormalise_answers: bool = True  # whether the answers' probabilities are scaled to sum to 1
    # Which epoch of an attacker is used: the `last`, or the `best` by validation loss; the paper
    # does not say
    select: Literal["last", "best"] = "last"
    # The leaks that are measured, any of `masked`, `silhouette`, `blank`, `others`
    leaks: Sequence[Leak] = LEAKS

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.probe.encoder.sees:
            raise UsageError(
                "metric=imagecaptioner2 needs attackers that use pictures; choose encoder=sat, "
                "encoder=grit or encoder=hf"
            )

    def transform(self, transforms: Sequence[Transform], corpus: Corpus) -> Corpus:
        return self.image_masking(apply_transforms(transforms, corpus))

    def attackable(self, transformed: Corpus) -> BoolArray:
        """(N,) whether each image has the inputs of attackers; some image must have them."""
        if self.probe.encoder.sees == "objects":
            if transformed.objects is None:
                raise NotApplicableError(
                    f"dataset {transformed.dataset!r} has no objects of the pictures, and "
                    "encoder.backbone=annotations needs objects"
                )
            return np.ones(len(transformed), bool)
        if transformed.pictures is None:
            raise NotApplicableError(
                f"dataset {transformed.dataset!r} has no pictures here (dataset.images=DIR); "
                "encoder=sat encoder.backbone=annotations uses its objects instead, and "
                "encoder=sat encoder.backbone=boxes objects with their boxes (dataset.regions=FILE)"
            )
        return transformed.pictures.present

    def with_inputs(self, data: LabelledCaptions, transformed: Corpus) -> LabelledCaptions:
        """The captions with the pictures, or with the objects, of their images."""
        rows = data.captions.image_rows
        return replace(
            data,
            pictures=None if transformed.pictures is None else transformed.pictures.take(rows),
            objects=self._objects(transformed, rows),
        )

    def _objects(self, transformed: Corpus, rows: IntArray) -> list[frozenset[str]] | None:
        """The objects that are not masked, for the image of each row."""
        if transformed.objects is None:
            return None
        hides = self.image_masking.hides
        names = {name: coco_name(name) for name in transformed.images_by_object}
        return [
            frozenset(names[o] for o in transformed.objects[row] or () if not hides(names[o]))
            for row in rows.tolist()
        ]

    def predictions(
        self, data: LabelledCaptions, sets: Sequence[Sequence[Split]]
    ) -> list[Predictions]:
        """The probabilities of the groups' answers, without the probability of other words."""
        return [
            replace(one, probs=tuple(probs[:, : data.n_classes] for probs in one.probs))
            for one in super().predictions(data, sets)
        ]

    def combinations(self) -> dict[PartName, Combination]:
        """The headline, and the headline under the other scoring functions of Table 2."""
        return {
            **super().combinations(),
            PartName("score", detail="accuracy"): lambda m, h, m_right, h_right, *_: (
                self.comparison.of(m_right, h_right)
            ),
            PartName("score", detail="lic"): lambda m, h, _, __, m_lic, h_lic: self.comparison.of(
                m_lic, h_lic
            ),
        }

    def extra_parts(self, attack: AttackRunner, images: BoolArray) -> Mapping[str, Number]:
        """The leaks, which are scores of attackers without captions."""
        parts: dict[str, Number] = {}
        for kind in self.leaks:
            data = self._pictures_alone(kind, attack.transformed, np.flatnonzero(images))
            if data is None:
                continue
            table = ScoreTable.from_predictions(attack.attack(data), self.scoring)
            name = PartName("leak", detail=kind)
            estimate = self.stats.estimate(
                [table],
                {name: lambda scores: scores},
                attack.transformed.keys,
                cross_fitted=self.probe.cross_fits(attack.splits),
            )
            part = self._part(estimate[name], attack.transformed, "model", images, table.images)
            parts[name] = replace(
                self._with_scoring_unit(part), neutral_rate=math.nan
            )  # no captions
        return parts

    def _pictures_alone(
        self, kind: str, transformed: Corpus, rows: IntArray
    ) -> LabelledCaptions | None:
        """Pictures of one kind without captions, or None if there are no such pictures."""
        grouping = transformed.groupings[self.attribute.name]
        captions = Captions.from_texts([""] * len(rows), rows.tolist())
        data = LabelledCaptions(
            f"leak:{kind}", captions, grouping.codes[rows], len(grouping.names), grouping.names
        )
        view = _shift_images(rows, hash_ids(transformed.ids)) if kind == "others" else rows
        if self.probe.encoder.sees == "objects":
            return (
                None if kind == "silhouette" else self._objects_alone(data, kind, transformed, view)
            )
        assert transformed.pictures is not None
        pictures = transformed.pictures.take(view)
        if kind == "silhouette":
            if not pictures.edits:
                return None
            pictures = replace(
                pictures, edits=(*pictures.edits[:-1], Silhouette(self.image_masking))
            )
        elif kind == "blank":
            pictures = replace(pictures, edits=(Blank(),))  # equally blank for all maskings
        return replace(data, pictures=pictures)

    def _objects_alone(
        self, data: LabelledCaptions, kind: str, transformed: Corpus, view: IntArray
    ) -> LabelledCaptions:
        nothing = [frozenset[str]()] * len(view)
        return replace(
            data, objects=nothing if kind == "blank" else self._objects(transformed, view)
        )


def _shift_images(rows: IntArray, keys: UIntArray) -> IntArray:
    """Another image for each image: the next image in a random order by ids.

    Example:
        >>> _shift_images(np.array([0, 2, 5]), np.array([3, 1, 4, 1, 5, 9], np.uint64)).tolist()
        [2, 5, 0]
    """
    order = rows[np.argsort(random_words("pictures", 0, keys[rows]), kind="stable")]
    after = dict(zip(order.tolist(), np.roll(order, -1).tolist(), strict=True))
    return np.array([after[row] for row in rows.tolist()], np.int64)
