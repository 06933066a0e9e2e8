"""Prepares what raters see: the question, captions, known answers and the text of consent."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.image_ids import short_id
from bias_pipeline.data.coco_files import model_captions
from bias_pipeline.data.columns import IMAGE, Layout
from bias_pipeline.data.image_numbers import noting_names, of_photos
from bias_pipeline.data.label_values import recognise_labels
from bias_pipeline.data.rating_tables import CANNOT_TELL
from bias_pipeline.data.tables import check_file, open_rows
from bias_pipeline.errors import DataError, UsageError, did_you_mean, inflect
from bias_pipeline.io.terminal import print_out
from bias_pipeline.report.caption_pairs import (
    ALIKE,
    FIRST,
    SECOND,
    CaptionPair,
    read_pairs,
)
from bias_pipeline.run import compose
from bias_pipeline.text.tokenize import tokenize_word

if TYPE_CHECKING:
    from bias_pipeline.people.web.study import RatingQuestion, Study

_ADDED = frozenset({CANNOT_TELL, "cannot tell"})  # added to the answers of every question


def rating_question(options: Namespace, attribute: Any) -> Any:
    """The question of a study, which is about the person's group or is the user's own question."""
    from bias_pipeline.people.web.study import NO_ATTRIBUTE, RatingQuestion

    if options.attribute:
        several = bool(options.folder)
        words = options.question or (
            f"What is the {attribute.name} of the person in the "
            f"{'picture' if several else 'caption'}, as far as you can tell?"
        )
        return RatingQuestion(
            words, attribute.name, tuple(attribute.groups), options.ordinal, several
        )
    answers = tuple(filter(None, map(str.strip, (options.answers or "yes,no").split(","))))
    if len(set(answers)) < max(2, len(answers)):
        raise UsageError("--answers needs two different answers or more, separated by commas")
    for added in _ADDED & set(answers):
        raise UsageError(f"--answers: {added!r} is always added; leave it out")
    return RatingQuestion(options.question, NO_ATTRIBUTE, answers, options.ordinal)


PAIR_QUESTION = (
    "One program wrote both captions, of two pictures of the same kind of scene. Which one treats "
    "its person differently?"
)


def pair_study(options: Namespace) -> tuple[Study, list[CaptionPair]]:
    from bias_pipeline.people.web.study import NO_ATTRIBUTE, RatingQuestion, Study

    pairs = read_pairs(options.pairs)
    answers = (FIRST, SECOND, ALIKE)
    question = RatingQuestion(options.question or PAIR_QUESTION, NO_ATTRIBUTE, answers)
    attribute = compose.cell([]).build("attribute")
    study = Study(
        question,
        {},
        {pair.pair: pair.caption_a for pair in pairs},
        consent=consent_text(options.consent),
        gold=known_answers(options.gold, question, attribute),
        limit=options.limit,
        beside={pair.pair: pair.caption_b for pair in pairs},
    )
    check_items(study, options)
    return study, pairs


def check_items(study: Any, options: Namespace) -> None:
    """Refuse a study that has no items or whose known answers are about other items."""
    if not study.images:
        shown = options.captions or options.regions
        raise DataError(
            f"{shown} fits none of the photos in {options.folder}; give the file of these photos"
        )
    if not study.gold:
        return
    n_fit = len(study.gold.keys() & set(study.images))
    if not n_fit:
        raise DataError(
            f"{options.gold} has no answers about these items; name them by image_id, as "
            f"{study.images[0]}"
        )
    print_out(
        f"{options.gold}: {inflect(n_fit, f'of {len(study.gold)} answers are')} about these items"
    )


def rated_captions(
    options: Namespace, cell: compose.Cell, photos: Collection[str] = ()
) -> dict[str, str]:
    """The captions by image id, in which words of the attribute are masked if wanted."""
    layout = Layout()
    captions = model_captions(check_file(options.captions, "--captions"), None, layout).captions
    whole = of_photos(options.captions, captions, photos, layout) if photos else captions
    read = {image: text for image, text in whole.items() if text.strip()}
    if len(read) < len(whole):
        print_out(inflect(len(whole) - len(read), "captions are blank and not shown"))
    if not read:
        raise DataError(f"{options.captions} has no caption with words to show; give another file")
    texts = list(read.values())
    if options.mask_captions:
        masked = cell.build("masking").mask(Captions.from_texts(texts).rewrite(_tokens))
        texts = [masked.text(row) for row in range(len(masked))]
    return {short_id(image): text for image, text in zip(read, texts, strict=True)}


def _tokens(word: str) -> list[str]:
    return tokenize_word(word.lower(), keep_punctuation=True, keep_unknown=True)


def consent_text(path: Path | None) -> str:
    from bias_pipeline.people.web.study import CONSENT

    if path is None:
        return CONSENT
    try:
        text = check_file(path, "--consent").read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not in UTF-8; save it as UTF-8") from error
    if not text.strip():
        raise DataError(f"{path} is empty; write what raters agree to")
    return text


def known_answers(
    path: Path | None, question: RatingQuestion, attribute: Attribute, photos: Collection[str] = ()
) -> dict[str, str]:
    """Known answers by image id; answers may have the forms of labels: "Male", "m", "woman"."""
    if path is None:
        return {}
    what, layout = "known answers: a table of image_id and value", Layout()
    wanted = ("image_id", "value", *layout.columns_wanted(IMAGE))
    rows = open_rows(check_file(path, "--gold"), what=what, wanted=wanted)
    rows.require("image_id", "value")
    first, rows = rows.peek()
    rows = noting_names(rows, first, "image_id", layout)
    lines = [(line, row, rows.text(line, row, "value").strip()) for line, row in rows.items]
    answers = LabelMap("value", {value: value for value in question.values})
    answers, facts = recognise_labels((value for _, _, value in lines), answers, attribute)
    for fact in facts:
        print_out(f"{path}: {fact}")
    known, by_short = dict[str, str](), dict[str, str]()
    for line, row, value in lines:
        if value not in answers.groups:
            hint = did_you_mean(value, tuple(question.values))
            rows.refuse(line, f"{value!r} is not one of the answers; {hint}")
        image, answer = rows.id(line, row, "image_id"), answers.groups[value]
        if by_short.setdefault(short_id(image), answer) != answer:
            rows.refuse(line, f"image id {image} has another answer above; keep one of the lines")
        known[image] = answer
    return of_photos(path, known, photos, layout) if photos else by_short
