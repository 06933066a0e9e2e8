"""Gender Score: measures which group a language model expects, given the picture's objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from bias_pipeline.array_types import IntArray
from bias_pipeline.attack.language_models import Frozen, Line
from bias_pipeline.corpus.attribute import TaskVocabulary
from bias_pipeline.declared import Count, NotNegative, NotNegativeCount, Range, Share
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.language.caption_scoring import (
    OWN_BIAS,
    CaptionScorer,
    Contexts,
    Judged,
    Values,
)
from bias_pipeline.language.gender_score_tables import TABLE as NEUTRAL
from bias_pipeline.language.gender_score_tables import (
    Neutral,
    NeutralCaptions,
    example_lines,
    word_effects,
)
from bias_pipeline.language.language_model import LanguageModel, Term
from bias_pipeline.language.likelihoods import Kind
from bias_pipeline.language.visual_context import (
    OBJECTS,
    VisualContext,
    content_of,
)
from bias_pipeline.metrics.base import WEIGHTS, Cost, ExpectedResponse, MetricInfo
from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.metrics.counting.base import CountingMetric, check_excluded, least_share
from bias_pipeline.metrics.counting.numbers import CountedNumber, Lines, Sums, Tally
from bias_pipeline.metrics.counting.sides import CaptionSides, mean_of
from bias_pipeline.metrics.references import SABIR_2023
from bias_pipeline.metrics.value_names import MODEL, PartName
from bias_pipeline.models.model_location import MAIN
from bias_pipeline.models.recognition import MOST_LABELS

DELETIONS, EXAMPLES = "deletions", "examples"  # names of tables


@dataclass(eq=False, kw_only=True)
class GenderScore(CountingMetric):
    """Gender Score (Sabir and Padro 2023, eq. 3) of the captioner minus the score of annotators.

    A caption's score is its likelihood P(g) under a language model, adjusted for how similar the
    caption is to the objects in the picture. ``model`` and ``human`` are the first group's share of
    the sum of groups' mean scores (eq. 1). ``score`` is ``model`` minus ``human`` on the images
    that both describe.

    * ``gs:GROUP``, ``gs:person``: the mean score of the captioner's captions that name the group,
      or a person without a group (``:human``: human captions). ``to_neutral:GROUP:model``,
      ``:human``: ``gs:GROUP`` divided by ``gs:person`` (Table 3).
    * ``estimate:model``, ``:human``: the share of captions that score highest when rewritten about
      the first group (Table 5). ``ties`` counts captions for which groups tie.
    * ``lm:model``, ``similarity:model`` and so on: the same shares from the likelihood or the
      similarity alone. ``lm:own_bias``: the language model's own bias, when each of the captioner's
      captions is rewritten about every group.
    * ``object:NAME:model``, ``cooccurrence:NAME:model`` and so on: the shares for one object (Table
      4).

    Without ``:model`` or ``:human``, ``estimate``, ``lm``, ``similarity`` and ``object:NAME`` are
    the captioner's share minus the annotators'. ``examples.csv`` shows single captions (Figure 2).
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="gender_score",
        title="Gender Score",
        version=1,
        unit="fraction",
        range=(-1.0, 1.0),
        neutral=0.0,
        direction="at 0, a language model prefers the first group in captions as much as in human "
        "captions; above 0, it prefers the first group more",
        family="language",
        question="tasks",
        sources={SABIR_2023: "eq. 3"},
        ours="the difference from annotators is",
        needs=("objects", WEIGHTS),
        without={"human captions": MODEL},
        cost=Cost(per_caption=0.1),
        # As measured with the default models (experiments/gender_score/planted.py).
        responses={
            "score": ExpectedResponse(
                moves=(
                    *("object follows group", "group follows object", "tire and diaper"),
                    *("negation", "synonym", "word order"),
                ),
                stays=("unlisted word", "women called men", "biased annotators"),
                absent=("names no group", "no group instead of wrong"),
            )
        },
        says={
            "score": "a language model finds its captions of the first group more likely than "
            "annotators' captions",
        },
        amplification=True,
        full_context=True,
    )

    task: TaskVocabulary  # vocabulary of the tasks in `exclude_tasks`
    # A folder, a `.gguf` file or a name on the hub. The paper's is `gpt2`; the default comes with a
    # package
    language_model: Line
    lm_revision: Line = MAIN
    lm_kind: Kind = "causal"  # `causal`, or `masked` for pseudo-likelihood
    # How probabilities of tokens become P(g). The paper: "mean token probability", by its code the
    # arithmetic mean (`arithmetic`). Function words dominate this mean; `geometric` is the inverse
    # of perplexity. `cloze`, the public code's other score, is the probability of only the last
    # word
    lm_term: Term = "arithmetic"
    # Whether a text begins with the model's token for the beginning, as in the public code
    bos: bool = True
    eos: bool = True  # whether the token that ends a text is scored, as in the public code
    # The model that gives similarities, as cosines: a folder or a name on the hub
    sentence_encoder: Line = "sentence-transformers/all-MiniLM-L6-v2"
    # Where objects come from: `objects` of the data set's annotations; a file of detections (JSON,
    # CSV, ...) with columns `image_id`, `label` and `score`; a folder or a name on the hub of a
    # classifier such as `microsoft/resnet-152`, of a CLIP, which classifies by `task`'s names, or
    # of a detector of the DETR family; a file of weights of torchvision's Faster R-CNN (`.pth`).
    # With several detectors, as in the paper, each proposes objects and all vote
    context: Line | Sequence[Line] = OBJECTS
    # Objects that each detector proposes for a picture, people left out; all annotated objects
    # count
    top_k: Annotated[int, Range(low=1, high=MOST_LABELS)] = 3
    min_confidence: Share = 0.2  # the least confidence of an object
    # With several detectors, an object counts if another detector finds an object whose cosine to
    # it is at least this. The paper votes by "cosine distance" and does not say how: this is ours
    agreement: Annotated[float, Range(low=-1, high=1)] = 0.5
    # Which objects get their own parts; None: objects that reach `min_support`
    objects: Sequence[str] | None = None
    # An object gets its own parts if at least this share of scored images show it; see
    # `least_share`
    min_support: NotNegative = 0.005
    # Whether a group's mean is over `captions`, or over `pairs` of a caption and an object, as in
    # eq. 3, so that images with many objects have more weight
    weigh: Literal["captions", "pairs"] = "captions"
    # How many human captions of each image are scored; each of them takes as long as the
    # captioner's caption
    positions: Count = 1
    # For so many of the captioner's captions, each word is deleted in turn; the table
    # `deletions.csv` has each word's effect (`word_effects`). Such a caption takes as long as about
    # ten others
    deletions: NotNegativeCount = 0
    # How many of the captioner's captions the table `examples.csv` has
    examples: NotNegativeCount = 20
    # For each group, the word that replaces words without a counterpart in the word lists (`cowboy`
    # has `cowgirl`); default: the first listed word
    terms: Mapping[str, str] | None = None
    # The word for no group in particular; None: no neutral captions are scored, which saves up to a
    # third of the time
    neutral: str | None = "person"
    # For words of groups, their neutral words, such as `their` for `his`; all others become
    # `neutral`
    neutral_words: Mapping[str, str] | None = None
    # `retold`: the captions that name one group, rewritten without a group; or `nobody`: the
    # captions that name no group
    neutral_captions: NeutralCaptions = "retold"
    # Objects that do not count as context; every image shows a person
    exclude_tasks: Sequence[str] = ("person",)
    device: str = "auto"  # where models compute
    # Folder where the scores and vectors of each text are stored; None: they are not stored
    cache: str | None = None

    def __post_init__(self) -> None:
        check_excluded(self.exclude_tasks, self.task)
        excluded = [word for name in self.exclude_tasks for word in (name, *self.task.tasks[name])]
        of_groups = [word for words in self.attribute.words.values() for word in words]
        self.visual_context = VisualContext(
            _sources(self.context),
            tuple(name for name in self.task.tasks if name not in self.exclude_tasks),
            tuple(self.exclude_tasks),
            frozenset([*excluded, *of_groups]),
            self.top_k,
            self.min_confidence,
            self.agreement,
            self.device,
            self._folder("sights"),
        )

    @cached_property
    def scorer(self) -> CaptionScorer:
        return CaptionScorer(
            LanguageModel(
                self.language_model,
                self.lm_revision,
                self.lm_kind,
                self.lm_term,
                self.bos,
                self.eos,
                self.device,
                self._folder("likelihoods"),
            ),
            Frozen(self.sentence_encoder, device=self.device, cache=self._folder("embeddings")),
            self.weigh,
            self.positions,
            self.terms or {},
        )

    @property
    def without_group(self) -> Neutral | None:
        """The settings that neutral captions have, or None if no neutral captions are scored."""
        if self.neutral is None:
            return None
        return Neutral(self.neutral, self.neutral_words or {}, self.neutral_captions)

    def _folder(self, name: str) -> str | None:
        return None if self.cache is None else str(Path(self.cache, name))

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        given = {key: settings[key] for key in ("lm_revision", "lm_kind") if key in settings}
        model = LanguageModel(
            settings["language_model"],
            given.get("lm_revision", MAIN),
            given.get("lm_kind", "causal"),
        )
        encoder = Frozen(settings["sentence_encoder"])
        return {
            "language_model": dict(model.pretrained_model.files),
            "lm_revision": MAIN,
            "sentence_encoder": dict(encoder.pretrained_model.files),
            "context": [
                content_of(source) for source in _sources(settings.get("context", OBJECTS))
            ],
        }

    def rests_on_names(self, part: PartName) -> bool:
        """True for all numbers except the mean of captions that name no group."""
        neutral = self.without_group
        return neutral is None or neutral.rests_on_names(part)

    def require(self) -> None:
        self.scorer.require()
        self.visual_context.require()

    def tally(self, view: CorpusView) -> Tally:
        encoder = self.scorer.sentence_encoder
        contexts = self.visual_context.find_contexts(
            view.corpus, np.flatnonzero(view.labelled), encoder
        )
        sides = self._sides(view, contexts)
        judged = {
            side: Judged(self.scorer, view, contexts, side)
            for side in ("model", "human")
            if PartName(side=side) in sides.images
        }
        tables = sides.tables(view, lambda side, chosen: judged[side].table(chosen))
        with_parts = self._with_parts(contexts, sides)
        for side, of_side in judged.items():
            images = sides.images[PartName(side=side)]
            tables |= of_side.object_tables(with_parts, images, f"objects:{side}")
        neutral = self.without_group
        if neutral is not None:
            apart = {
                s: neutral.judge_captions(self.scorer, j, view, contexts) for s, j in judged.items()
            }
            tables |= sides.tables(view, lambda side, chosen: apart[side].table(chosen), NEUTRAL)
        values = Values(view.groups, tuple(contexts.names[k] for k in with_parts), sides)

        def numbers(sums: Sums) -> dict[PartName, CountedNumber]:
            each = {
                part: [values.side_numbers(t) for t in sides.position_sums(part, sums)]
                for part in sides.images
            }
            means = {
                part: {name: mean_of([one[name] for one in by_position]) for name in by_position[0]}
                for part, by_position in each.items()
            }
            named = values.named_numbers(means)
            named |= {} if neutral is None else neutral.numbers(sums, sides, named)
            return named | values.of_objects(sums)

        audit = {side: of_side.audit for side, of_side in judged.items()}
        tally = Tally(tables, numbers, audit, lines=self._lines(judged["model"], contexts, view))
        bias = float(numbers(tally.totals)[OWN_BIAS].values[0])
        return replace(tally, notes=[*self._own_bias(bias, view), *contexts.notes, *sides.notes])

    def _lines(self, judged: Judged, contexts: Contexts, view: CorpusView) -> Lines:
        lines: dict[str, Sequence[Mapping[str, object]]] = {}
        if self.examples:
            lines[EXAMPLES] = example_lines(self.scorer, judged, contexts, view, self.examples)
        if self.deletions:
            keys = view.corpus.keys
            lines[DELETIONS] = word_effects(self.scorer, judged, contexts, keys, self.deletions)
        return lines

    def _own_bias(self, bias: float, view: CorpusView) -> list[str]:
        if np.isnan(bias):  # no caption names one group alone
            return []
        return [
            f"the language model alone gives {bias:.1%} of the likelihood of the same captions to "
            f"those written about {view.groups[0]} ({1 / len(view.groups):.1%} would be no bias): "
            "this bias is not the captioner's (lm:own_bias)"
        ]

    def _sides(self, view: CorpusView, contexts: Contexts) -> CaptionSides:
        sides = CaptionSides.from_view(view, self.scorer.positions)
        shown = contexts.images_with_objects(len(view.corpus))
        images = {part: mask & shown for part, mask in sides.images.items()}
        if not images[MODEL].any():
            raise NotApplicableError(
                "no image with a group and a caption has objects, and the Gender Score needs "
                "objects as visual context"
            )
        return CaptionSides(
            sides.positions, {part: mask for part, mask in images.items() if mask.any()}
        )

    def _with_parts(self, contexts: Contexts, sides: CaptionSides) -> IntArray:
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
