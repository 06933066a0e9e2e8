"""Captions in a language that the word lists do not fit are told of, on the side that has them."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.corpus.regrouping import Intersection
from bias_pipeline.errors import UsageError
from bias_pipeline.run import compose
from bias_pipeline.text import caption_language
from bias_pipeline.text.caption_language import english, in_language, language_shares, untestable

LABELS = LabelMap("g", {"m": "male", "f": "female"})
ENGLISH = Attribute("gender", ("male", "female"), {"male": ["man"], "female": ["woman"]}, {})
GERMAN = replace(ENGLISH, words={"male": ["mann"], "female": ["frau"]})
DECLARED = replace(GERMAN, language="de")

SPOKEN = {
    "English": ("a man rides a horse", "a woman is sitting at a table"),
    "silent": ("a person with a kite", "a person near the sea"),
    "telegrams": ("man riding horse", "woman sitting table"),
    "men alone": ("a man on a bench", "a man in a boat"),
    "one": ("a photo of something", "a photo of something"),
    "words": ("cat", "pizza"),
    "pairs": ("two dogs", "tennis racket"),
    "short": ("bowl of soup", "two old dogs"),
    "capitals": ("A MAN ON A BENCH", "A WOMAN IN A CAR"),
    "tags": ("person, dog, frisbee, grass, tree", "woman; umbrella; street; sky"),
    "German without groups": ("eine Person mit einem Hund", "zwei Personen auf einer Straße"),
    "tiny German": ("ein Hund", "Strand"),
    "Danish": ("en mand rider på en hest", "en kvinde sidder ved et bord"),
    "Portuguese": ("um homem a cavalo no campo", "uma mulher sentada à mesa"),
    "Chinese": ("一个男人在骑马。", "一个女人坐在桌子旁，吃饭。"),
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


FITTING = (
    *("English", "silent", "telegrams", "words", "pairs", "short", "men alone", "one"),
    *("capitals", "tags"),
)
FOREIGN = tuple(name for name in SPOKEN if name not in FITTING)


def language_notes(of: Corpus, attribute: Attribute = ENGLISH) -> list[str]:
    return caption_language.language_notes(language_shares(of, attribute), attribute)


@pytest.mark.parametrize("name", FOREIGN)
def test_another_language_is_told_of_the_captioner(name):
    (note,) = language_notes(corpus(name))
    assert note.startswith(
        "warning: gender cannot be tested: the word lists are English, and 0% of the captioner's "
        "captions are; "
    )


def test_another_language_is_told_of_people():
    (note,) = language_notes(corpus("English", "German"))
    assert "the word lists are English, and 0% of human captions are;" in note


def test_both_sides_are_told_of_in_one_sentence():
    (note,) = language_notes(corpus("German", "French"))
    assert "and 0% of the captioner's captions and 0% of human captions are;" in note


@pytest.mark.parametrize(
    ("model", "human", "attribute"),
    [
        *((model, "English", ENGLISH) for model in FITTING),
        ("German", "German", GERMAN),
        ("German", "German", DECLARED),
        ("German without groups", "German", DECLARED),
        ("tiny German", "German", DECLARED),
        ("Chinese", "Chinese", replace(DECLARED, language="zh")),
    ],
)
def test_a_list_that_fits_the_captions_is_not_told_of(model, human, attribute):
    assert language_notes(corpus(model, human), attribute) == []


@pytest.mark.parametrize("attribute", [DECLARED, replace(ENGLISH, language="de")])
def test_english_captions_do_not_fit_lists_of_another_language(attribute):
    says_it = corpus("silent", "silent")
    (note,) = language_notes(says_it, attribute)
    assert "gender cannot be tested: the word lists are of language 'de', and 0% of" in note
    assert "language: CODE, such as en" in note


def mixed_corpus(english_share: float, second: Attribute = ENGLISH) -> Corpus:
    """Captions of men and women, some in English, the others in German."""
    texts = [SPOKEN["English" if i < 20 * english_share else "German"][i % 2] for i in range(20)]
    records = [
        Record(str(i), text, (text,), {"gender": "mf"[i % 2]}) for i, text in enumerate(texts)
    ]
    groups = {"gender": (second.groups, LABELS)}
    return Corpus.build(records, dataset="coco", captioner="x", groups=groups)


@pytest.mark.parametrize(
    ("share", "tested", "noted"), [(1.0, True, 0), (0.6, True, 1), (0.5, True, 1), (0.4, False, 1)]
)
def test_half_of_the_captions_must_be_in_the_language(share, tested, noted):
    corpus = mixed_corpus(share)
    shares = language_shares(corpus, ENGLISH)
    assert shares == {"model": pytest.approx(share), "human": pytest.approx(share)}
    assert (untestable(shares, "en") == "") is tested
    assert len(language_notes(corpus)) == noted


def test_a_share_is_never_rounded_up_to_the_half():
    shares = {"model": 0.4999, "human": float("nan")}
    assert "49% of the captioner's" in untestable(shares, "en")


def test_without_captions_nothing_is_said():
    nobody = Corpus.build(
        [Record("1", "a man", (), {"gender": "m"})],
        dataset="coco",
        captioner="x",
        groups={"gender": (ENGLISH.groups, LABELS)},
    )
    assert language_shares(nobody, ENGLISH)["human"] != language_shares(nobody, ENGLISH)["human"]
    assert language_notes(nobody) == []


def test_the_parts_of_an_intersection_have_words_of_one_language():
    age = replace(ENGLISH, name="age", groups=("old", "young"), words={"old": ["old"]})
    parts = {"first": DECLARED, "second": replace(age, language="de")}
    given = {"name": "x", "groups": [], "words": {}}
    assert Intersection(**given, parts=parts).language == "de"
    with pytest.raises(UsageError, match="words are of two languages, de and en"):
        Intersection(**given, parts={**parts, "second": age})


@pytest.mark.parametrize("captioner", ["terse", "neutral_speaker"])
def test_embedded_captioners_are_not_told_of(captioner):
    cell = compose.cell(["dataset.n_images=300", f"captioner={captioner}"])
    assert not any("English" in note for note in cell.corpus().notes)


def test_a_run_tells_of_it(monkeypatch):
    reader = compose.cell([]).build("dataset")
    monkeypatch.setattr(type(reader), "read", lambda *_: corpus("German"))
    notes = compose.corpus_of(reader, "x", ENGLISH).notes
    assert any("gender cannot be tested: the word lists are English" in note for note in notes)


def real_files(root: Path) -> Iterator[tuple[str, list[str]]]:
    """The captions of every file of captioners, vision-language models and annotators."""
    for path in sorted([*root.glob("captioners/*.json"), *root.glob("vlm/*.json")]):
        if path.stem != "meta":
            yield path.stem, [one["caption"] for one in json.loads(path.read_bytes())]
    for path in sorted(root.glob("multi30k/*/raw/*.gz")):
        yield path.stem, gzip.decompress(path.read_bytes()).decode().splitlines()


# Captions that name no group of a list, by the code of their language
LANGUAGES = {
    "de": ("eine Person sitzt mit einem Hund auf der Bank", "zwei Kinder spielen im Garten"),
    "fr": ("une personne assise sur un banc avec un chien", "deux enfants jouent dans le jardin"),
    "es": ("una persona sentada en un banco con un perro", "dos niños juegan en el jardín"),
    "it": ("una persona seduta su una panchina con un cane", "due bambini giocano nel giardino"),
    "pt": ("uma pessoa sentada em um banco com um cão", "duas crianças brincam no jardim"),
    "nl": ("een persoon zit met een hond op een bank", "twee kinderen spelen in de tuin"),
    "sv": ("en person sitter på en bänk med en hund", "två barn leker i en trädgård vid ett hus"),
    "da": ("en person sidder på en bænk med en hund", "to børn leger i haven foran et hus"),
    "cs": ("člověk sedí na lavičce se psem", "dvě děti si hrají na zahradě"),
    "pl": ("osoba siedzi na ławce z psem", "dwoje dzieci bawi się w ogrodzie"),
    "ru": ("человек сидит на скамейке с собакой", "двое детей играют в саду"),
    "el": ("ένα άτομο κάθεται σε ένα παγκάκι", "δύο παιδιά παίζουν στον κήπο"),
    "ar": ("شخص يجلس على مقعد مع كلب", "طفلان يلعبان في الحديقة"),
    "he": ("אדם יושב על ספסל עם כלב", "שני ילדים משחקים בגינה"),
    "hi": ("एक व्यक्ति बेंच पर बैठा है", "दो बच्चे बगीचे में खेल रहे हैं"),
    "th": ("คนนั่งบนม้านั่งกับสุนัข", "เด็กสองคนเล่นในสวน"),
    "zh": ("一个人和一只狗坐在长椅上", "两个孩子在花园里玩耍"),
    "ja": ("犬と一緒にベンチに座っている人", "庭で遊んでいる二人の子供"),
    "ko": ("개와 함께 벤치에 앉아 있는 사람", "정원에서 노는 두 아이"),
    "en": ("a person sitting on a bench with a dog", "two children play in the garden"),
}


@pytest.mark.parametrize("lists", LANGUAGES)
@pytest.mark.parametrize("spoken", LANGUAGES)
def test_captions_fit_the_lists_of_their_own_language_alone(spoken, lists):
    flags = in_language(Captions.from_texts(LANGUAGES[spoken]), lists)
    if (spoken, lists) == ("zh", "ja"):  # Chinese signs are Japanese ones, too
        return
    assert flags.tolist() == [spoken == lists] * 2


@pytest.mark.parametrize(
    "text",
    [
        *("Mann, Hund, Gras", "Mann fährt Rad", "Tennis", "MANN MIT HUND", "Frau am Tisch", ""),
        *("42", "Straße; Auto; Himmel", "Pizza Margherita", "Mann – Bank – Park"),
    ],
)
def test_tags_telegrams_and_single_words_are_no_other_language(text):
    assert in_language(Captions.from_texts([text]), "de").all()


def test_of_a_language_that_is_not_known_only_english_is_told_apart():
    texts = ["henkilö istuu penkillä koiran kanssa", "a man on a bench", "un homme et un chien"]
    assert in_language(Captions.from_texts(texts), "fi").tolist() == [True, False, True]


def test_french_captions_are_told_of_by_german_lists():
    (note,) = language_notes(corpus("French", "German"), DECLARED)
    assert "the word lists are of language 'de', and 0% of the captioner's captions are" in note


@pytest.mark.slow
@pytest.mark.real
def test_real_captions_are_told_from_other_languages(data_root):
    for name, texts in real_files(data_root):
        spoken = name.rpartition(".")[2] if name.endswith((".de", ".fr")) else "en"
        captions = Captions.from_texts(texts[:1000])
        for lists in ("de", "fr", "es", "it", "pt", "nl"):
            share = in_language(captions, lists).mean()
            assert share > 0.97 if lists == spoken else share < 0.07, (name, lists, share)


@pytest.mark.slow
@pytest.mark.real
def test_real_captions_are_in_the_language_that_they_are_in(data_root):
    shares = {
        name: float(english(Captions.from_texts(texts)).mean())
        for name, texts in real_files(data_root)
    }
    foreign = {name for name in shares if name.endswith((".de", ".fr"))}
    assert len(foreign) >= 17
    assert max(shares[name] for name in foreign) < 0.02
    assert min(share for name, share in shares.items() if name not in foreign) > 0.94
