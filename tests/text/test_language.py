"""Captions in a language that the word lists do not fit are told of, on the side that has them."""

from dataclasses import replace

import pytest

from bias_pipeline.config import compose
from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.text.caption_statistics import language_notes

LABELS = LabelMap("g", {"m": "male", "f": "female"})
ENGLISH = Attribute("gender", ("male", "female"), {"male": ["man"], "female": ["woman"]}, {})
GERMAN = replace(ENGLISH, words={"male": ["mann"], "female": ["frau"]})

SPOKEN = {
    "English": ("a man rides a horse", "a woman is sitting at a table"),
    "silent": ("a person with a kite", "a person near the sea"),
    "telegrams": ("man riding horse", "woman sitting table"),
    "men alone": ("a man on a bench", "a man in a boat"),
    "one": ("a photo of something", "a photo of something"),
    "words": ("cat", "pizza"),
    "pairs": ("two dogs", "tennis racket"),
    "short": ("bowl of soup", "two old dogs"),
    "short German": ("ein Mann reitet", "eine Frau sitzt"),
    "German": ("ein Mann reitet auf einem Pferd", "eine Frau sitzt an einem Tisch"),
    "Dutch": ("een man rijdt op een paard", "een vrouw zit aan een tafel"),
    "French": ("un homme monte un cheval", "une femme est assise à une table"),
    "Spanish": ("un hombre monta un caballo", "una mujer sentada a la mesa"),
    "Japanese": ("男性が馬に乗っている", "女性がテーブルに座っている"),
    "Arabic": ("رجل يركب حصانا", "امرأة تجلس على طاولة"),
}


def corpus(model: str, human: str = "English") -> Corpus:
    records = [
        Record(str(i), SPOKEN[model][i % 2], (SPOKEN[human][i % 2],), {"gender": "mf"[i % 2]})
        for i in range(20)
    ]
    groups = {"gender": (ENGLISH.groups, LABELS)}
    return Corpus.build(records, dataset="coco", captioner="x", groups=groups)


FOREIGN = ("German", "short German", "Dutch", "French", "Spanish", "Japanese", "Arabic")


@pytest.mark.parametrize("name", FOREIGN)
def test_e7_another_language_is_told_of_the_captioner(name):
    (note,) = language_notes(corpus(name), ENGLISH)
    assert note.startswith("warning: 100% of the captioner's captions hold no English word")


def test_e7_another_language_is_told_of_people():
    (note,) = language_notes(corpus("English", "German"), ENGLISH)
    assert note.startswith("warning: 100% of people's captions")


@pytest.mark.parametrize(
    ("model", "human", "attribute"),
    [
        *((model, "English", ENGLISH) for model in ("English", "silent", "telegrams")),
        *((model, "English", ENGLISH) for model in ("words", "pairs", "short", "men alone", "one")),
        ("German", "German", GERMAN),
    ],
)
def test_a_list_that_fits_the_captions_is_not_told_of(model, human, attribute):
    assert language_notes(corpus(model, human), attribute) == []


@pytest.mark.parametrize("captioner", ["terse", "neutral_speaker"])
def test_embedded_captioners_are_not_told_of(captioner):
    cell = compose.cell(["dataset.n_images=300", f"captioner={captioner}"])
    assert not any("English" in note for note in cell.corpus().notes)


def test_a_run_tells_of_it(monkeypatch):
    reader = compose.cell([]).build("dataset")
    monkeypatch.setattr(type(reader), "read", lambda *_: corpus("German"))
    assert any("no English word" in n for n in compose.corpus_of(reader, "x", ENGLISH).notes)


@pytest.mark.slow
@pytest.mark.real
def test_no_real_captioner_is_told_of(data_root):
    cell = compose.cell(["dataset=coco", f"dataset.root={data_root}/coco", "captioner=nic"])
    assert not any("English" in note for note in cell.corpus().notes)
