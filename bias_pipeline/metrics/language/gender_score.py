"""Gender Score: whom does a language model, revised by what the picture shows, expect?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from bias_pipeline.corpus.attribute import Attribute, TaskVocabulary
from bias_pipeline.declared import Count, NotNegative, NotNegativeCount, Range, Share
from bias_pipeline.encoders.frozen import Frozen
from bias_pipeline.encoders.published import Line
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.inference.language_model import LanguageModel, Term
from bias_pipeline.metrics.base import WEIGHTS, Cost, MetricInfo, Response
from bias_pipeline.metrics.counting.caption_sides import CaptionSides, mean_of
from bias_pipeline.metrics.counting.tally import (
    About,
    CountingMetric,
    FloatArray,
    IntArray,
    Lines,
    Sums,
    Tally,
    choice,
    least_share,
    support,
)
from bias_pipeline.metrics.language.contexts import Contexts
from bias_pipeline.metrics.language.deletion import word_effects
from bias_pipeline.metrics.language.judging import OWN_BIAS, Judge, Judged, Values
from bias_pipeline.metrics.language.visual_context import (
    OBJECTS,
    VisualContext,
    content_of,
)
from bias_pipeline.metrics.parts import HUMAN, MODEL, MODEL_PAIRED, PartName
from bias_pipeline.metrics.seen import Seen
from bias_pipeline.metrics.sources import SABIR_2023
from bias_pipeline.models.likelihoods import Kind
from bias_pipeline.models.places import MAIN
from bias_pipeline.models.recognition import KEPT
from bias_pipeline.stats.bootstrap import Bootstrap

DELETIONS = "deletions"  # the table's name


class GenderScore(CountingMetric):
    """Gender Score of captions (Sabir and Padro 2023, eq. 3), of the captioner less people's.

    A caption's score is its likelihood P(g) by a language model, revised by how near it is to the
    objects in the picture: P(g)^alpha, alpha = [(1 - sim) / (1 + sim)]^(1 - P(c)). Captions that
    name one group and whose image has objects are scored, each by the mean over its objects.
    ``gs:GROUP`` is the mean over the captions that name a group (``:human`` of people's), and
    ``model`` and ``human`` are the first group's share in the sum of these means (eq. 1), 1/K where
    the groups' captions are equally expected. ``score`` is their difference on the images that both
    sides describe, which the paper does not have. Further parts:

    * ``group:NAME:model`` and ``:human``: each group's share; ``group:NAME`` the difference;
    * ``estimate:model``, ``estimate:human``, ``estimate``: the share of captions of which the first
      group's words make the highest score, when the words that name a group are those of each group
      in turn (the paper's Gender Score Estimation, Table 5); a tie goes to the first group, and
      ``ties`` counts the captioner's;
    * ``lm:...`` and ``similarity:...``, ``estimate_lm:...`` and ``estimate_similarity:...``: the
      same shares by the likelihood alone, and by the mean similarity alone;
    * ``lm:own_bias``: the first group's share of the likelihood alone when the *same* captions are
      told of each group. It is the language model's own bias, not the captioner's: 1/K is none;
    * ``object:NAME:model``, ``:human`` and ``object:NAME``: the first group's share in the sum of
      the scores of captions of images with an object (Table 4), and ``cooccurrence:NAME:model`` and
      ``:human`` the same of their numbers, which no language model decides.

    Args:
        attribute: whose groups are compared; any number of them.
        task: whose tasks ``exclude_tasks`` may name.
        stats: how intervals over images are made; models are not resampled.
        language_model: a folder, a ``.gguf`` file or a name on the hub. The paper's is ``gpt2``;
            the default is one that a package carries.
        lm_kind: ``causal``, or ``masked`` for pseudo-likelihood.
        lm_term: how probabilities of tokens become P(g). The paper: "mean token probability", by
            its code the arithmetic mean (``arithmetic``). Function words dominate it; ``geometric``
            is the inverse of perplexity. ``cloze`` is the public code's other score, of the last
            word alone.
        bos: whether the model first sees its token for the beginning, as the public code has it.
        eos: whether the token that ends a text is scored, as the public code has it.
        sentence_encoder: whose cosines are the similarity: a folder or a name on the hub.
        context: where objects come from: ``objects`` that the data set knows of an image; a file
            of detections (JSON, CSV, ...) with columns ``image_id``, ``label`` and ``score``; a
            folder or a name on the hub of a classifier such as ``microsoft/resnet-152``, a CLIP,
            which is asked for ``task``'s names, or a detector of the DETR family; a file of weights
            of torchvision's Faster R-CNN (``.pth``). Of several, as in the paper, each proposes and
            all vote.
        top_k: objects that each such source gives of a picture, people left out; the data set's own
            objects all count.
        min_confidence: how sure a source must be of an object.
        agreement: of several sources, an object counts if another has one whose cosine to it is
            no less. The paper votes by "cosine distance" and does not say how: this is ours.
        objects: which objects get parts of their own; None: those that ``min_support`` lets in.
        min_support: the share of scored images that must show an object for that; see
            :func:`~bias_pipeline.metrics.counting.tally.least_share`.
        weigh: whether a group's mean is over ``captions``, or over ``pairs`` of a caption and an
            object as eq. 3 is written, so that images with many objects weigh more.
        positions: how many human captions of an image are scored; each costs as much as all of
            the captioner's.
        deletions: of how many of the captioner's captions each word is deleted in turn, for the
            table ``deletions.csv`` of how far each word leans
            (:func:`~bias_pipeline.metrics.language.deletion.word_effects`); a caption costs as much
            as about ten others.
        terms: group to the word that stands for whoever has no counterpart in the word lists
            (``cowboy`` has ``cowgirl``); the first listed word if left out.
        exclude_tasks: objects that are no context; every image shows a person.
        device: where models compute.
        cache: folder of scores and vectors, each text's computed once; None to keep none.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="gender_score",
        title="Gender Score",
        version=1,
        unit="fraction",
        range=(-1.0, 1.0),
        neutral=0.0,
        direction="0: captions of both groups are as expected as people's; above 0 the first "
        "group's more so",
        family="language",
        question="tasks",
        sources={SABIR_2023: "eq. 3"},
        ours="the difference to people is",
        needs=("objects", WEIGHTS),
        cost=Cost(per_caption=0.1),
        # As measured with the default models (experiments/gender_score/planted.py).
        responses={
            "score": Response(
                moves=(
                    *("object follows group", "group follows object", "tire and diaper"),
                    *("negation", "synonym", "word order"),
                ),
                stays=("unlisted word", "women called men", "biased people"),
                absent=("neutral alone", "neutral instead of wrong"),
            )
        },
        says={
            "score": "a language model expects its captions of the first group more than people's",
        },
        amplification=True,
        full_context=True,
    )

    def __init__(
        self,
        attribute: Attribute,
        task: TaskVocabulary,
        stats: Bootstrap,
        language_model: Line,
        lm_revision: Line = MAIN,
        lm_kind: Kind = "causal",
        lm_term: Term = "arithmetic",
        bos: bool = True,
        eos: bool = True,
        sentence_encoder: Line = "sentence-transformers/all-MiniLM-L6-v2",
        context: Line | Sequence[Line] = OBJECTS,
        top_k: Annotated[int, Range(low=1, high=KEPT)] = 3,
        min_confidence: Share = 0.2,
        agreement: Annotated[float, Range(low=-1, high=1)] = 0.5,
        objects: Sequence[str] | None = None,
        min_support: NotNegative = 0.005,
        weigh: Literal["captions", "pairs"] = "captions",
        positions: Count = 1,
        deletions: NotNegativeCount = 0,
        terms: Mapping[str, str] | None = None,
        exclude_tasks: Sequence[str] = ("person",),
        device: str = "auto",
        cache: str | None = None,
    ) -> None:
        super().__init__(attribute, stats)
        for name in exclude_tasks:
            choice("exclude_tasks", name, task.tasks)
        kept = None if cache is None else str(Path(cache, "likelihoods"))
        vectors = None if cache is None else str(Path(cache, "embeddings"))
        self.judge = Judge(
            LanguageModel(language_model, lm_revision, lm_kind, lm_term, bos, eos, device, kept),
            Frozen(sentence_encoder, device=device, cache=vectors),
            weigh,
            positions,
            dict(terms or {}),
        )
        excluded = [word for name in exclude_tasks for word in (name, *task.tasks[name])]
        who = [word for own in attribute.words.values() for word in own]
        self.context = VisualContext(
            _sources(context),
            tuple(name for name in task.tasks if name not in exclude_tasks),
            tuple(exclude_tasks),
            frozenset([*excluded, *who]),
            top_k,
            min_confidence,
            agreement,
            device,
            None if cache is None else str(Path(cache, "sights")),
        )
        self.deletions = deletions
        self.objects = None if objects is None else tuple(objects)
        self.min_support = support(min_support)

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        """Both models by the digests of their files."""
        told = {key: settings[key] for key in ("lm_revision", "lm_kind") if key in settings}
        model = LanguageModel(
            settings["language_model"], told.get("lm_revision", MAIN), told.get("lm_kind", "causal")
        )
        encoder = Frozen(settings["sentence_encoder"])
        return {
            "language_model": dict(model.found.files),
            "lm_revision": MAIN,
            "sentence_encoder": dict(encoder.found.files),
            "context": [content_of(own) for own in _sources(settings.get("context", OBJECTS))],
        }

    def require(self) -> None:
        """See the base."""
        self.judge.require()
        self.context.require()

    def tally(self, seen: Seen) -> Tally:
        """See the class."""
        encoder = self.judge.sentence_encoder
        contexts = self.context.of(seen.corpus, np.flatnonzero(seen.labelled), encoder)
        sides = self._sides(seen, contexts)
        judged = {
            side: Judged(self.judge, seen, contexts, side)
            for side in ("model", "human")
            if PartName(side=side) in sides.images
        }
        tables = sides.tables(seen, lambda side, chosen: judged[side].table(chosen))
        kept = self._with_parts(contexts, sides)
        for side, own in judged.items():
            images = sides.images[PartName(side=side)]
            tables |= own.object_tables(kept, images, f"objects:{side}")
        values = Values(seen.groups, tuple(contexts.names[k] for k in kept))

        def numbers(sums: Sums) -> dict[PartName, FloatArray]:
            each = {part: [values.of(t) for t in sides.each(part, sums)] for part in sides.images}
            means = {
                part: {name: mean_of([one[name] for one in own]) for name in own[0]}
                for part, own in each.items()
            }
            return values.named(means) | values.of_objects(sums)

        whole = {
            name: np.asarray(own.sum(axis=0), np.float64)[None] for name, own in tables.items()
        }
        found = numbers(whole)
        unscored = [] if HUMAN in sides.images else ["no human captions: there is no score"]
        return Tally(
            tables=tables,
            numbers=numbers,
            about=About(sides.images.get(MODEL_PAIRED, sides.images[MODEL])),
            parts=values.about(list(found), sides),
            audit={side: own.audit for side, own in judged.items()},
            lines=self._words(judged["model"], contexts, seen),
            notes=[*self._own_bias(float(found[OWN_BIAS][0]), seen), *contexts.notes, *unscored],
        )

    def _words(self, judged: Judged, contexts: Contexts, seen: Seen) -> Lines:
        if not self.deletions:
            return {}
        keys = seen.corpus.keys
        return {DELETIONS: word_effects(self.judge, judged, contexts, keys, self.deletions)}

    def _own_bias(self, own: float, seen: Seen) -> list[str]:
        """What must not be taken for the captioner's bias."""
        if np.isnan(own):  # no caption names one group alone
            return []
        return [
            f"the language model alone gives {own:.1%} of the likelihood of the same captions to "
            f"those told of {seen.groups[0]} ({1 / len(seen.groups):.1%} is none): that bias is "
            "its own (lm:own_bias)"
        ]

    def _sides(self, seen: Seen, contexts: Contexts) -> CaptionSides:
        sides = CaptionSides.of(seen, self.judge.positions)
        shown = contexts.shown(len(seen.corpus))
        images = {part: own & shown for part, own in sides.images.items()}
        if not images[MODEL].any():
            raise NotApplicableError(
                f"captioner {seen.corpus.captioner!r}: no image with a group and a caption has "
                "objects, which the Gender Score needs as visual context"
            )
        return CaptionSides(
            sides.positions, {part: own for part, own in images.items() if own.any()}
        )

    def _with_parts(self, contexts: Contexts, sides: CaptionSides) -> IntArray:
        """Numbers of the objects that get parts of their own."""
        if self.objects is not None:
            return np.array([contexts.number(name) for name in self.objects], np.int64)
        scored = sides.images[MODEL]
        counts = np.bincount(
            contexts.objects[scored[contexts.images]], minlength=len(contexts.names)
        )
        least = least_share(self.min_support, int(scored.sum()))
        return np.flatnonzero(counts >= max(1.0, least * scored.sum()))


def _sources(context: str | Sequence[str]) -> tuple[str, ...]:
    return (context,) if isinstance(context, str) else tuple(context)
