"""A task of Inspect AI: audits captions that a model writes of photos, or a file of captions.

Inspect finds the task by the entry point ``inspect_ai``. The samples' metadata has all data that
scorers need, so a log can be scored again.
"""

from __future__ import annotations

import json
import logging
import math
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageUser, ContentImage, ContentText, ModelOutput
from inspect_ai.scorer import (
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    grouped,
    mean,
    metric,
    scorer,
)
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.data.photos import find_photos
from bias_pipeline.errors import BiasPipelineError, UsageError
from bias_pipeline.io.files import write_file
from bias_pipeline.models.generation import usual_prompt
from bias_pipeline.run.compose import read_corpus
from bias_pipeline.run.presets import preset
from bias_pipeline.text.descriptions import describe_captions
from bias_pipeline.text.mentions import named_group
from bias_pipeline.text.scored_text import after_thoughts
from bias_pipeline.text.scored_text import declines as declining

if TYPE_CHECKING:
    from bias_pipeline.metrics.base import Metric as OurMetric

log = logging.getLogger(__name__)

GROUP = "gender"  # the key of a sample's label; an empty label is unknown


@task
def caption_bias(
    labels: str, photos: str = "", captions: str = "", human: str = "", prompt: str = ""
) -> Task:
    """The bias of a model's captions of photos, or of the captions in a file.

    Args:
        labels: file of the images' gender.
        photos: folder of photos to caption.
        captions: file of captions, instead of ``photos``; use ``--model none``.
        human: file of human captions of the same images.
        prompt: what the model is asked (default: one sentence, as lmms-eval asks).
    """
    if bool(photos) == bool(captions):
        raise UsageError("caption_bias: give photos=FOLDER or captions=FILE")
    data = {"attributes": labels} | ({"captions": human} if human else {})
    if captions:
        samples = _samples(captions, data)
        return Task(MemoryDataset(samples), solver=stored_caption(), scorer=_scorers())
    paths = find_photos(Path(photos))
    with TemporaryDirectory() as folder:
        file = Path(folder) / "photos.json"  # the corpus of photos that have no caption yet
        unwritten = [{"image_id": key, "caption": f"photo {key}"} for key in paths]
        write_file(file, json.dumps(unwritten).encode())
        samples = _samples(str(file), data)
    for sample in samples:
        picture = ContentImage(image=str(paths[str(sample.id)].resolve()))
        question = ContentText(text=prompt or usual_prompt(kind=""))
        sample.input = [ChatMessageUser(content=[question, picture])]
        del (sample.metadata or {})["caption"]
    return Task(MemoryDataset(samples), solver=generate(), scorer=_scorers())


def _samples(captions: str, files: dict[str, str]) -> list[Sample]:
    dataset = {**files, "strict": False}
    settings = {"captioner": captions, "attribute": GROUP, "dataset": dataset}
    keep_refusals = {"text": {"declined": "keep"}}
    corpus = read_corpus(
        preset({**settings, **keep_refusals}, {"dataset": "coco", "logger": None}).tree
    )
    grouping = corpus.groupings[GROUP]
    texts = {row: corpus.model.text(k) for k, row in enumerate(corpus.model.image_rows.tolist())}
    return [
        Sample(
            input=f"image {corpus.ids[row]}",
            id=corpus.ids[row],
            target=grouping.names[grouping.codes[row]],  # for the viewer; scorers read the metadata
            metadata={
                GROUP: grouping.names[grouping.codes[row]],
                "human": list(corpus.human.of_image(row)) if len(corpus.human) else [],
                "caption": text,
            },
        )
        for row, text in sorted(texts.items())
        if grouping.codes[row] >= 0
    ]


@solver
def stored_caption() -> Solver:
    """The sample's caption, as if a model had written it."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.output = ModelOutput.from_content("file", state.metadata["caption"])
        return state

    return solve


def _scorers() -> list[Scorer]:
    return [gender_error(), declines(), descriptions(), audit()]


def _by_group() -> list[Metric]:
    return [grouped(mean(), GROUP)]


@cache
def _descriptions() -> OurMetric:
    """The metric on descriptions; its lists find the concepts."""
    settings = {"metric": "descriptions", "attribute": GROUP}
    return preset(settings, {"dataset": "coco", "logger": None}).build("metric")


@cache
def _gender() -> Any:
    return preset({"attribute": GROUP}, {"dataset": "coco", "logger": None}).build("attribute")


def _absent_score(text: str) -> Score | None:
    """The score of a text that is no caption, which is absent and not zero."""
    if not text.strip():
        return Score.unscored(answer=text, reason="no_response")
    if declining([text])[0]:
        return Score.unscored(answer=text, reason="refusal")
    return None


@scorer(metrics=_by_group())
def gender_error() -> Scorer:
    """1 if a caption names another gender than the label, else 0 (also for none or both)."""

    async def score(state: TaskState, target: Target) -> Score:
        text = after_thoughts(state.output.completion)
        if (absent := _absent_score(text)) is not None:
            return absent
        gender = _gender()
        code = int(named_group(Captions.from_texts([text]), gender, gender.groups, "hendricks")[0])
        named = gender.groups[code] if code >= 0 else "no group, or several"
        wrong = code >= 0 and named != state.metadata[GROUP]
        return Score(value=float(wrong), answer=text, explanation=f"names {named}")

    return score


@scorer(metrics=_by_group())
def declines() -> Scorer:
    """1 if the model declines to describe the photo."""

    async def score(state: TaskState, target: Target) -> Score:
        text = after_thoughts(state.output.completion)
        if not text.strip():
            return Score.unscored(answer=text, reason="no_response")
        return Score(value=float(declining([text])[0]), answer=text)

    return score


@scorer(metrics=_by_group())
def descriptions() -> Scorer:
    """How many concepts (such as clothes and looks) a caption mentions about persons."""

    async def score(state: TaskState, target: Target) -> Score:
        text = after_thoughts(state.output.completion)
        if (absent := _absent_score(text)) is not None:
            return absent
        table = _descriptions().concepts  # type: ignore[attr-defined]
        columns = describe_captions(Captions.from_texts([text]), table).concepts.tocoo().coords[1]
        about = table.about(_gender())
        concepts = sorted({table.concepts[k] for k in columns.tolist()} - set(about))
        return Score(value=float(len(concepts)), answer=text, explanation=", ".join(concepts))

    return score


@metric
def answers() -> Metric:
    """The deciding number of each question of ``audit``, with its interval, or NaN if undefined."""

    def compute(scores: list[SampleScore]) -> dict[str, float]:
        import bias_pipeline as bp

        facts = {score.sample_id: score.sample_metadata or {} for score in scores}
        captions = {score.sample_id: score.score.answer or "" for score in scores}
        human = {key: one["human"] for key, one in facts.items() if one.get("human")}
        labels = {key: fact[GROUP] for key, fact in facts.items()}
        try:
            audited = bp.audit(captions, {GROUP: labels}, human or None)
        except BiasPipelineError as error:  # also of the first samples, for the display
            log.warning("audit: %s", error)
            return {"audit": math.nan}
        log.info("%s", audited)
        numbers = {}
        for answer in audited.answers:
            if not math.isnan(answer.value):
                numbers[answer.question] = answer.value
                numbers[f"{answer.question}:ci_low"] = answer.ci_low
                numbers[f"{answer.question}:ci_high"] = answer.ci_high
        return numbers or {"audit": math.nan}

    return compute


@scorer(metrics=[answers()])
def audit() -> Scorer:
    """1 for every text of the model, since the metric audits all texts at once."""

    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=1.0, answer=after_thoughts(state.output.completion))

    return score
