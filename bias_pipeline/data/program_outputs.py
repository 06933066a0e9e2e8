"""Reads captions in the forms of other programs, recognised by the keys of a file's first entry.

The programs are lmms-eval (samples), batches of OpenAI, Anthropic, Gemini and similar services,
LLaVA (conversations and answers), chats, and VLMEvalKit (sheets). Each output becomes rows with
image id, the model's captions and, if the file has them, human captions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from bias_pipeline.corpus.image_ids import ENDINGS, first_ids
from bias_pipeline.data.blocks import blocks_of
from bias_pipeline.data.chat_answers import (
    FAILED,
    Answer,
    answer_of_candidates,
    answer_of_message,
    answer_of_row,
    image_of_request,
    text_of_parts,
)
from bias_pipeline.data.columns import (
    DECODING,
    IMAGE,
    MODEL,
    PROMPTS,
    SAMPLE,
    Layout,
    plain_name,
)
from bias_pipeline.data.tables import Rows
from bias_pipeline.errors import DataError, inflect
from bias_pipeline.io.json_files import expect

_PEOPLE = "people"
_SHOWN, _REASONS = 40, 5  # characters of a reason, and number of reasons, in a note
_NO_ANSWER = "Failed to obtain answer"  # VLMEvalKit's text where a model or service failed


class ProgramOutput(ABC):
    """A file of one program."""

    name: ClassVar[str]
    marks: ClassVar[frozenset[str]]  # keys that the first entry of such a file has
    columns: ClassVar[tuple[str, ...]]  # columns of a table that are read besides the usual names
    people: ClassVar[str] = ""  # the column of human captions in the rows that are made

    def __init__(self, rows: Rows, first: Mapping[str, Any], layout: Layout) -> None:
        self.rows, self.first, self.layout = rows, first, layout
        self.id_column = layout.id_column if layout.id_column in first else None
        if self.id_column:
            layout.used.add(self.id_column)
        layout.add_note(rows.path, self.name)

    @classmethod
    def wrote(cls, first: Mapping[str, Any]) -> bool:
        return cls.marks <= set(map(str, first))

    @abstractmethod
    def answer(self, number: int, row: Mapping[str, Any]) -> Answer | None:
        """The answer of an entry, or None if the entry is about no image."""

    def plain_rows(self) -> Rows:
        """The file as rows of ``image_id``, ``caption`` and human captions, if it has them."""
        blocks = blocks_of(self._items())
        return Rows(self.rows.path, self.rows.unit, None, blocks, people=self.people)

    def _items(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """The rows; images without an answer come last, with an empty caption."""
        answered: set[tuple[str, int | None]] = set()
        absent: dict[tuple[str, int | None], tuple[int, Answer]] = {}
        cut: dict[str, str] = {}
        for number, row in self.rows.items:
            answer = self.answer(number, row)
            if answer is None:
                continue
            image = self.rows.id(number, {IMAGE.name: answer.image}, IMAGE.name)
            if answer.absent:
                absent.setdefault((image, answer.sample), (number, answer))
                continue
            answered.add((image, answer.sample))
            if answer.cut:
                cut[image] = answer.cut
            prompts = {key: row[key] for key in PROMPTS if key in row}
            yield number, {**prompts, **_row(image, answer)}
        lacking = {key: pair for key, pair in absent.items() if key not in answered}
        for (image, _), (number, answer) in lacking.items():
            yield number, _row(image, replace(answer, captions=("",)))
        total = len({image for image, _ in (*answered, *lacking)})
        reasons = {image: answer.absent for (image, _), (_, answer) in lacking.items()}
        self._count("have no answer", reasons, total)
        self._count("have an answer that is cut", cut, total)

    def _count(self, what: str, reasons: Mapping[str, str], total: int) -> None:
        if reasons:
            frequent = Counter(reason[:_SHOWN] for reason in reasons.values()).most_common(_REASONS)
            counts = ", ".join(f"{reason} {n}" for reason, n in frequent)
            self.layout.add_note(
                self.rows.path,
                f"{inflect(len(reasons), f'of {total} images {what}')} ({counts}), such as "
                f"{first_ids(reasons)}",
            )


def _row(image: str, answer: Answer) -> Mapping[str, Any]:
    texts = {MODEL.name: list(answer.captions), _PEOPLE: list(answer.human)}
    numbered = {} if answer.sample is None else {SAMPLE: answer.sample, DECODING: ""}
    return {IMAGE.name: image, **texts, **numbered}


class Samples(ProgramOutput):
    """Samples of lmms-eval, with an entry for each document and the values of each metric.

    A captioning task's metric is ``{"answer": [...], "pred": "...", "image_id": 42}``, where
    ``answer`` holds human captions. In ``coco_cap_chair``, ``answer`` and ``pred`` are names of
    objects. So captions always come from ``filtered_resps``, and ``answer`` counts only beside a
    text.
    """

    name = "samples of lmms-eval"
    marks = frozenset({"doc_id", "filtered_resps"})
    columns = ("filtered_resps", "doc")
    people = _PEOPLE

    def __init__(self, rows: Rows, first: Mapping[str, Any], layout: Layout) -> None:
        super().__init__(rows, first, layout)
        self.metrics = sorted(_captioning(first))

    def answer(self, number: int, row: Mapping[str, Any]) -> Answer:
        metrics = _captioning(row)
        if sorted(metrics) != self.metrics:
            self.rows.refuse(
                number,
                f"its metrics ({', '.join(metrics) or 'none'}) are of another task than the "
                f"entries before it ({', '.join(self.metrics) or 'none'}); keep one task in a "
                "file",
            )
        where = f"{self.rows.unit} {number}: 'filtered_resps'"
        responses = self.rows.value(number, row, "filtered_resps")
        texts = [text for text in _flatten(responses) if text is not None]
        captions = [expect(text, str, self.rows.path, where) for text in texts]
        image = self._image(number, row, metrics)
        if not captions:
            return Answer(image, absent="empty")
        return Answer(image, captions, _peoples(metrics.values()))

    def _image(self, number: int, row: Mapping[str, Any], metrics: Mapping[str, Any]) -> Any:
        if self.id_column:
            return self.rows.value(number, row, self.id_column)
        ids = [value["image_id"] for value in metrics.values()]
        document = row.get("doc")
        if isinstance(document, Mapping):
            ids += [v for name, v in document.items() if plain_name(name) in IMAGE.usual[0]]
            ids += [value for value in document.values() if _is_picture(value)]
        if not ids:
            self.rows.refuse(
                number,
                "no image id: no metric has 'image_id', and 'doc' has no id or file name of a "
                f"picture; found {', '.join(row)}. Name a key that has it with {IMAGE.option}",
            )
        return ids[0]


def _captioning(row: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The values of the metrics of captioning tasks, by metric."""
    return {
        str(name): value
        for name, value in row.items()
        if isinstance(value, Mapping) and {"pred", "image_id"} <= value.keys()
    }


def _flatten(value: Any) -> list[Any]:
    return (
        [item for part in value for item in _flatten(part)] if isinstance(value, list) else [value]
    )


def _peoples(metrics: Iterable[Mapping[str, Any]]) -> Sequence[str]:
    """The human captions beside a caption; empty if the metric is not about captions."""
    for value in metrics:
        texts = value.get("answer")
        if isinstance(value["pred"], str) and isinstance(texts, list):
            return [text for text in texts if isinstance(text, str)]
    return ()


def _is_picture(value: object) -> bool:
    """Whether a value is a text that ends like the name of a picture's file."""
    return isinstance(value, str) and value.lower().endswith(ENDINGS)


class Batch(ProgramOutput):
    """Answers of a batch, with an entry for each request; the ``custom_id`` is the image's id.

    If an image has several requests, the ``custom_id`` also numbers them from 0: ``42#1``.
    """

    name = "answers of a batch"
    marks = frozenset({"custom_id", "response"})
    columns: ClassVar[tuple[str, ...]] = ("custom_id", "response", "error")

    def answer(self, number: int, row: Mapping[str, Any]) -> Answer:
        request = self.rows.value(number, row, self.id_column or self.columns[0])
        image, sample = (request, None) if self.id_column else image_of_request(request)
        where = f"{self.rows.unit} {number}"
        return replace(self.answer_about(image, row, where), sample=sample)

    def answer_about(self, image: Any, row: Mapping[str, Any], where: str) -> Answer:
        return answer_of_row(image, row, self.rows.path, where)


class MessageBatch(Batch):
    """Answers of a batch of Anthropic's messages."""

    name = "answers of a batch of messages"
    marks = frozenset({"custom_id", "result"})
    columns = ("custom_id", "result")

    @classmethod
    def wrote(cls, first: Mapping[str, Any]) -> bool:
        return super().wrote(first) and isinstance(first["result"], Mapping)

    def answer_about(self, image: Any, row: Mapping[str, Any], where: str) -> Answer:
        result = row.get("result")
        return answer_of_message(image, result, self.rows.path, f"{where}: result")


class GeminiBatch(Batch):
    """Answers of a batch of Gemini, where the request's ``key`` is the image's id."""

    name = "answers of a batch of Gemini"
    marks = frozenset({"key", "response"})
    columns = ("key", "response", "error")

    @classmethod
    def wrote(cls, first: Mapping[str, Any]) -> bool:
        return super().wrote(first) and isinstance(first["response"], Mapping)

    def answer_about(self, image: Any, row: Mapping[str, Any], where: str) -> Answer:
        return answer_of_candidates(image, row, self.rows.path, where)


class Conversations(ProgramOutput):
    """LLaVA's conversations about a picture, whose answers are the captions."""

    name = "conversations of LLaVA"
    marks = frozenset({"conversations"})
    columns: ClassVar[tuple[str, ...]] = ("image", "conversations")
    speaker = ("from", "gpt")  # the key of a turn that names the speaker, and the model's name
    text = "value"  # the key of a turn's text

    def __init__(self, rows: Rows, first: Mapping[str, Any], layout: Layout) -> None:
        super().__init__(rows, first, layout)
        self.without_picture = 0

    def answer(self, number: int, row: Mapping[str, Any]) -> Answer | None:
        if self.id_column:
            image = self.rows.value(number, row, self.id_column)
        elif named := [name for name in self.columns[:-1] if row.get(name)]:
            image = _one_picture(self.rows, number, row, named[0])
        else:
            self.without_picture += 1
            return None
        turns_of, (key, model) = self.columns[-1], self.speaker
        where = f"{self.rows.unit} {number}: {turns_of!r}"
        turns: list[Any] = expect(
            self.rows.value(number, row, turns_of), list, self.rows.path, where
        )
        texts = [
            expect(self.text_of_turn(turn.get(self.text)), str, self.rows.path, where)
            for turn in turns
            if isinstance(turn, Mapping) and turn.get(key) == model
        ]
        if not texts:
            self.rows.refuse(number, f"{turns_of!r} has no turn of {model!r}; leave the entry out")
        return Answer(image, texts)

    def text_of_turn(self, content: Any) -> Any:
        return content

    def _items(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        yield from super()._items()
        if self.without_picture:
            self.layout.add_note(
                self.rows.path, inflect(self.without_picture, "conversations without a picture")
            )


class Chats(Conversations):
    """Chats as messages with a role, in the form of Hugging Face's templates."""

    name = "chats"
    marks = frozenset({"messages"})
    columns = ("image", "images", "image_id", "id", "messages")
    speaker = ("role", "assistant")
    text = "content"

    @classmethod
    def wrote(cls, first: Mapping[str, Any]) -> bool:
        """False if a column of captions beside the chat can be read instead."""
        names = {plain_name(str(name)) for name in first}
        return super().wrote(first) and names.isdisjoint(MODEL.usual[0])

    def text_of_turn(self, content: Any) -> Any:
        return text_of_parts(content) if isinstance(content, list) else content


def _one_picture(rows: Rows, number: int, row: Mapping[str, Any], column: str) -> str:
    paths = rows.texts(number, row, column)
    if len(paths) != 1:
        rows.refuse(number, f"{column!r} names {len(paths)} pictures instead of one")
    return paths[0]


class LlavaAnswers(ProgramOutput):
    """Answers to LLaVA's questions, in which a question is named after the picture's file."""

    name = "answers of LLaVA"
    marks = frozenset({"question_id", "prompt", "text", "model_id"})
    columns = ("question_id", "text")

    def __init__(self, rows: Rows, first: Mapping[str, Any], layout: Layout) -> None:
        super().__init__(rows, first, layout)
        if not self.id_column:
            named = _is_picture(first["question_id"])
            self.id_column = "question_id" if named else layout.column(rows.path, first, IMAGE)

    def answer(self, number: int, row: Mapping[str, Any]) -> Answer:
        image = self.rows.value(number, row, self.id_column or "question_id")
        return Answer(image, [self.rows.text(number, row, "text")])


class EvalSheet(ProgramOutput):
    """A sheet of VLMEvalKit; ``index`` numbers its rows, so ids come from ``image_path``."""

    name = "a sheet of VLMEvalKit"
    marks = frozenset({"index", "question", "prediction"})
    columns = ("image_path", "prediction", "answer")
    people = _PEOPLE

    def __init__(self, rows: Rows, first: Mapping[str, Any], layout: Layout) -> None:
        super().__init__(rows, first, layout)
        if not self.id_column:
            named = "image_path" in first
            self.id_column = "image_path" if named else layout.column(rows.path, first, IMAGE)

    def answer(self, number: int, row: Mapping[str, Any]) -> Answer:
        column = self.id_column or "image_path"
        paths = column == "image_path"
        read = _one_picture if paths else Rows.value
        image = read(self.rows, number, row, column)
        human = self._human(number, row)
        if self.rows.value(number, row, "prediction") in (None, ""):
            return Answer(image, human=human, absent="empty")
        caption = self.rows.text(number, row, "prediction")
        if caption.startswith(_NO_ANSWER):
            return Answer(image, human=human, absent=FAILED)
        return Answer(image, [caption], human)

    def _human(self, number: int, row: Mapping[str, Any]) -> Sequence[str]:
        """The list in ``answer``; a single text answers a question and is no caption."""
        written = row.get("answer")
        if isinstance(written, list) or (isinstance(written, str) and written.startswith("[")):
            return self.rows.texts(number, row, "answer")
        return ()


_PROGRAMS: tuple[type[ProgramOutput], ...] = (
    Samples,
    Batch,
    MessageBatch,
    GeminiBatch,
    Conversations,
    Chats,
    LlavaAnswers,
    EvalSheet,
)
COLUMNS = sorted({name for program in _PROGRAMS for name in program.columns})


def program_output(rows: Rows, first: Mapping[str, Any], layout: Layout) -> Rows | None:
    """A program's output as plain rows, or None if the program is unknown."""
    keys = set(map(str, first))
    if {"custom_id", "body"} <= keys and "response" not in keys:
        raise DataError(f"{rows.path}: holds the requests of a batch; name the file of its answers")
    for program in _PROGRAMS:
        if program.wrote(first):
            return program(rows, first, layout).plain_rows()
    return None
