"""Gender-object distance: worked cases on real GloVe, a tiny corpus by hand, and refusals."""

import math
from typing import Any

import numpy as np
import pytest

from bias_pipeline.corpus.attribute import Attribute, TaskVocabulary
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.errors import NotApplicableError, ResourceError, UsageError
from bias_pipeline.language.formulas import (
    bias_ratio,
    cosines,
    mean_cosines,
    ratio_to_neutral,
)
from bias_pipeline.language.gender_distance import GenderDistance
from bias_pipeline.language.vectors import word_vectors
from bias_pipeline.stats.bootstrap import Bootstrap
from tests.corpora import DATA, make_corpus
from tests.oracles import oracle
from tests.tiny_models import language_models

FEW = Bootstrap(resamples=20)
WORDS = {"male": ["man", "men"], "female": ["woman", "women"]}
GENDER = Attribute("gender", tuple(WORDS), WORDS, {})
THINGS = ("person", "tie", "hot dog", "oven", "zzz")
TASKS = TaskVocabulary("things", {name: name for name in THINGS})
VECTORS = {
    "man": (1.0, 0.0), "woman": (0.0, 1.0), "person": (1.0, 1.0), "tie": (0.8, 0.6),
    "oven": (0.6, 0.8), "hot": (1.0, 0.0), "dog": (0.0, 1.0), "against": (-0.6, 0.8),
}  # fmt: skip
MODEL = ["a man with a tie", "a woman by an oven", "a man eats a hot dog", "a person with a tie"]
HUMAN = [
    ["a man"],
    ["a woman by an oven", "a man by an oven"],
    ["a woman with a hot dog"],
    ["a tie"],
]


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("vectors") / "tiny.txt"
    path.write_text("".join(f"{w} {x} {y}\n" for w, (x, y) in VECTORS.items()))
    return str(path)


def corpus(model: list[str] = MODEL, human: list[list[str]] | None = HUMAN) -> Corpus:
    return make_corpus(
        [
            Record(str(k), text, tuple(human[k]) if human else (), {"gender": "mfmf"[k]})
            for k, text in enumerate(model)
        ]
    )


def metric(vectors: str, **options: Any) -> GenderDistance:
    return GenderDistance(GENDER, FEW, TASKS, vectors=vectors, **{"min_support": 1, **options})


def values(vectors: str, corpus_given: Corpus | None = None, **options: Any) -> dict[str, float]:
    parts = metric(vectors, **options).compute(corpus_given or corpus(), splits=[]).parts
    return {str(name): part.value for name, part in parts.items()}


# --- the worked cases on the shared GloVe file


def glove() -> dict[str, Any]:
    return oracle("gender_score")["glove_50d_distances"]


@pytest.fixture(scope="module")
def cosines_of_objects() -> tuple[list[str], np.ndarray]:
    path = DATA / "glove" / "glove.6B.50d.txt.gz"
    if not path.is_file():
        pytest.skip(f"no GloVe vectors at {path}")
    names = list(glove()["rows"])
    vectors_read = word_vectors(str(path), {*names, "man", "woman", "person"})
    return names, cosines(vectors_read.rows(names), vectors_read.rows(["man", "woman", "person"]))


def test_cosines_of_glove(cosines_of_objects):
    names, result = cosines_of_objects
    for name, item in zip(names, result, strict=True):
        case = glove()["rows"][name]
        expected = [case[word] for word in ("man", "woman", "person")]
        np.testing.assert_allclose(item, expected, atol=1e-6)


def test_an_objects_ratio_where_its_cosines_are_positive(cosines_of_objects):
    names, result = cosines_of_objects
    ratios = bias_ratio(result[:, :2])
    for name, item, ratio in zip(names, result, ratios, strict=True):
        if (item[:2] > 0).all():
            assert ratio == pytest.approx(glove()["rows"][name]["to_m"], abs=1e-6)
        else:
            assert math.isnan(ratio)


def test_the_ratio_of_averages(cosines_of_objects):
    names, result = cosines_of_objects
    means = mean_cosines(np.ones(len(names)), result)
    case = glove()
    np.testing.assert_allclose(
        means, [case["avg"][k] for k in ("man", "woman", "person")], atol=1e-6
    )
    assert bias_ratio(means[None, :2])[0] == pytest.approx(case["to_m_from_averages"], abs=1e-6)
    for k, name in enumerate(("ratio_to_n_man", "ratio_to_n_woman")):
        assert ratio_to_neutral(means[k], means[2]) == pytest.approx(case[name], abs=1e-6)


# --- by hand


HOT_DOG = math.sqrt(0.5)  # the mean of two words
MALE, FEMALE = (0.8 + 0.6 + HOT_DOG + 0.8) / 4, (0.6 + 0.8 + HOT_DOG + 0.6) / 4
PERSON = (3 * 1.4 / math.sqrt(2) + 1.0) / 4


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("distance:male:model", MALE),  # the mean over what is named
        ("distance:female:model", FEMALE),
        ("model", MALE / (MALE + FEMALE)),
        ("distance:male:human", (0.6 + HOT_DOG + 0.8) / 3),  # at both positions
        ("to_neutral:male:model", MALE / PERSON),
        ("cooccurrence:model", 2 / 3),  # of captions that name one group
        ("cooccurrence:oven:human", 1 / 2),
    ],
)
def test_four_captions_by_hand(part, expected, vectors):
    assert values(vectors)[part] == pytest.approx(expected)


def test_leakage_is_the_captioners_captions_for_one_of_peoples(vectors):
    """The paper's Table 3; people name a man in 1 and a woman in 2 first captions of the four."""
    result = values(vectors, positions=1)
    assert (result["leakage:male"], result["leakage:female"]) == (2.0, 0.5)


def test_other_things_move_the_distance_and_whom_captions_name_does_not(vectors):
    women = [text.replace("man", "woman").replace("wowoman", "woman") for text in MODEL]
    ovens = [text.replace("tie", "oven") for text in MODEL]
    before, named, moved = (values(vectors, corpus(c))["score"] for c in (MODEL, women, ovens))
    assert moved < before == pytest.approx(named)


def test_captions_like_peoples_score_0(vectors):
    assert values(vectors, corpus(human=[[text] for text in MODEL]))["score"] == 0


# --- words without a vector, names of one's own


@pytest.mark.parametrize(("oov", "expected"), [("zero", 0.4), ("skip", 0.8)])
def test_a_word_without_a_vector(oov, expected, vectors):
    result = values(vectors, corpus(["a man with a tie", "a zzz", "a man", "a man"]), oov=oov)
    assert result["distance:male:model"] == pytest.approx(expected)


def test_names_of_ones_own_are_objects(vectors):
    named = corpus(["a man against a tie", "a woman", "a man", "a man"])
    result = values(vectors, named, objects=["tie", "against"])
    assert result["cooccurrence:against:model"] == 1.0
    assert math.isnan(result["object:against"])  # one cosine is below 0
    assert result["object:tie"] == pytest.approx(0.8 / 1.4)


def test_the_table_says_whom_an_object_is_nearest_to(vectors):
    lines = metric(vectors).compute(corpus(), splits=[]).tables["objects"]
    first = lines[0]
    assert (first["object"], first["captions"], first["with male"]) == ("tie", 2, 1)
    assert {line["object"]: line["nearest"] for line in lines}["tie"] == "person"


def test_a_sentence_encoder_stands_in_for_vectors(tmp_path):
    _, bert = language_models()
    settings = {"sentence_encoder": str(bert), "device": "cpu", "cache": str(tmp_path)}
    result = values("glove", corpus(), **settings)
    assert math.isfinite(result["distance:male:model"])
    assert list(tmp_path.rglob("*.block"))


# --- refusals


def test_no_object_with_a_vector_is_told(vectors):
    for oov in ("skip", "zero"):
        with pytest.raises(NotApplicableError, match="none of the 1 objects has a vector"):
            values(vectors, objects=["qqq"], oov=oov)


def test_vectors_that_know_no_word_are_refused(tmp_path):
    path = tmp_path / "german.txt"
    path.write_text("hund 1 2\nkatze 2 1\n", encoding="utf-8")
    with pytest.raises(NotApplicableError, match="objects has a vector in"):
        values(str(path))


def test_a_groups_word_without_a_vector_is_refused(vectors):
    with pytest.raises(NotApplicableError, match="'qqq', the word for male, has no vector"):
        values(vectors, terms={"male": "qqq"})


@pytest.mark.parametrize("oov", ["zero", "skip"])
def test_objects_without_a_vector_are_told(oov, vectors):
    score = metric(vectors, objects=["tie", "qqq"], oov=oov).compute(corpus(), splits=[])
    assert any("qqq" in note and f"metric.oov={oov}" in note for note in score.notes)


@pytest.mark.parametrize("objects", [[], [" "], ["tie", "Tie"]])
def test_names_must_be_distinct_names(vectors, objects):
    with pytest.raises(UsageError, match="give distinct names of objects"):
        metric(vectors, objects=objects)


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("/none/vectors.txt", {}, "no such file"),
        ("glove", {"sentence_encoder": "princeton-nlp/sup-simcse-roberta-base"}, "models prefetch"),
    ],
)
def test_absent_vectors_and_encoders_are_known_before_any_work(source, options, message):
    with pytest.raises(ResourceError, match=message):
        metric(source, **options).require()
