"""The Gender Score: against a second, naive implementation, and what it must refuse."""

import json
import math
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bias_pipeline.attack.language_models import Frozen
from bias_pipeline.corpus.attribute import Attribute, TaskVocabulary
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.errors import NotApplicableError, UsageError
from bias_pipeline.language.gender_score import GenderScore
from bias_pipeline.language.language_model import LanguageModel
from bias_pipeline.metrics.base import Score
from bias_pipeline.run import compose
from bias_pipeline.stats.bootstrap import Bootstrap
from tests.corpora import make_corpus
from tests.tiny_models import language_models

FEW = Bootstrap(resamples=20)
WORDS = {"male": ["man", "his"], "female": ["woman", "her"]}
GENDER = Attribute("gender", tuple(WORDS), WORDS, {})
TASKS = TaskVocabulary("things", {name: name for name in ("person", "dog", "horse", "umbrella")})
SWAPS = {"man": "woman", "woman": "man", "his": "her", "her": "his"}
MODEL = [
    "a man rides his horse", "a woman rides a red horse", "a man with a dog on the beach",
    "a woman with a dog", "a person on the beach", "a man and a woman",
]  # fmt: skip
HUMAN = [
    ["a woman rides a horse"], ["a woman on a horse"], ["a man with a small dog"],
    ["the woman with her dog"], ["a man on the beach"], ["a man"],
]  # fmt: skip
OBJECTS = [{"horse", "person"}, {"horse"}, {"dog", "umbrella"}, {"dog"}, {"umbrella"}, {"dog"}]
LABELS = "mfmfmf"


def metric(**options: Any) -> GenderScore:
    causal, bert = language_models()
    models = {"sentence_encoder": str(bert), "device": "cpu", "min_support": 1}
    terms = {"male": "man", "female": "woman"}
    return GenderScore(
        attribute=GENDER,
        task=TASKS,
        stats=FEW,
        language_model=str(causal),
        terms=terms,
        **models,
        **options,
    )


def corpus(
    model: list[str] = MODEL,
    human: list[list[str]] | None = HUMAN,
    objects: list[set[str]] | None = OBJECTS,
) -> Corpus:
    records = []
    for k, text in enumerate(model):
        people = tuple(human[k]) if human else ()
        shown = None if objects is None else frozenset(objects[k])
        records.append(Record(str(k), text, people, {"gender": LABELS[k]}, shown))
    return make_corpus(records)


def values(corpus: Corpus, **options: Any) -> dict[str, float]:
    parts = metric(**options).compute(corpus, splits=[]).parts
    return {str(name): part.value for name, part in parts.items()}


# --- a second implementation, caption by caption


@cache
def plain_models() -> tuple[LanguageModel, Frozen]:
    causal, bert = language_models()
    return LanguageModel(str(causal)), Frozen(str(bert))


def plain_score(text: str, things: list[str], shares: dict[str, float]) -> tuple[float, float]:
    """The mean over objects of a text's revised likelihood, written out; and the likelihood."""
    lm, encoder = plain_models()
    p = float(np.exp(lm.log_likelihood([text])[0]))
    y, each = encoder.vectors([text])[0], []
    for thing in things:
        o = encoder.vectors([thing])[0]
        sim = float(y @ o / np.linalg.norm(y) / np.linalg.norm(o))
        each.append(p ** (((1 - sim) / (1 + sim)) ** (1 - shares[thing])))
    return sum(each) / len(each), p


def naive(texts: list[tuple[str, set[str]]], shares: dict[str, float]) -> dict[str, Any]:
    """Scores of captions that name one group, by it; and the estimates."""
    scored: dict[str, Any] = {"male": [], "female": [], "estimate": [], "first": [], "all": []}
    for text, objects in texts:
        words = set(text.split())
        named = [
            g for g, w in (("male", {"man", "his"}), ("female", {"woman", "her"})) if words & w
        ]
        beside = sorted(objects - {"person"})
        if len(named) != 1 or not beside:
            continue
        swapped = " ".join(SWAPS.get(word, word) for word in text.split())
        versions = {named[0]: text, ({"male", "female"} - set(named)).pop(): swapped}
        scores, likely = {}, {}
        for group, version in versions.items():
            scores[group], likely[group] = plain_score(version, beside, shares)
        scored[named[0]].append(scores[named[0]])
        scored["estimate"].append(scores["male"] >= scores["female"])
        scored["first"].append(likely["male"])
        scored["all"].append(sum(likely.values()))
    return scored


SHARES = {"horse": 2 / 6, "dog": 3 / 6, "umbrella": 2 / 6}
TEXTS = {"model": MODEL, "human": [item[0] for item in HUMAN]}


@pytest.fixture(scope="module")
def computed_score() -> Score:
    return metric().compute(corpus(), splits=[])


@pytest.fixture(scope="module")
def computed_values(computed_score: Score) -> dict[str, float]:
    return {str(name): part.value for name, part in computed_score.parts.items()}


@pytest.fixture(scope="module")
def expected_values() -> dict[str, dict[str, Any]]:
    return {s: naive(list(zip(texts, OBJECTS, strict=True)), SHARES) for s, texts in TEXTS.items()}


@pytest.mark.parametrize("group", ["male", "female"])
def test_a_groups_mean_is_that_of_its_captions(group, computed_values, expected_values):
    assert computed_values[f"gs:{group}"] == pytest.approx(
        np.mean(expected_values["model"][group]), rel=1e-5
    )


@pytest.mark.parametrize("side", ["model", "human"])
def test_a_side_is_the_first_groups_share_in_the_means(side, computed_values, expected_values):
    male, female = (np.mean(expected_values[side][group]) for group in ("male", "female"))
    assert computed_values[side] == pytest.approx(male / (male + female), rel=1e-5)


def test_the_score_is_the_models_less_peoples(computed_values):
    assert computed_values["score"] == pytest.approx(
        computed_values["model:paired"] - computed_values["human:paired"]
    )


def test_the_estimate_is_how_often_the_first_group_scores_highest(computed_values, expected_values):
    assert computed_values["estimate:model"] == pytest.approx(
        np.mean(expected_values["model"]["estimate"])
    )


def test_the_language_models_own_bias_is_of_the_same_captions_told_of_each_group(
    computed_score, computed_values, expected_values
):
    model = expected_values["model"]
    own_bias = sum(model["first"]) / sum(model["all"])
    assert computed_values["lm:own_bias"] == pytest.approx(own_bias, rel=1e-5)
    (message,) = (note for note in computed_score.notes if "own_bias" in note)
    assert "of the likelihood of the same captions" in message


def test_captions_of_nobody_and_of_two_groups_are_not_scored(computed_score):
    assert computed_score.audit["model"]["captions"] == 4


def test_pairs_weigh_as_many_as_they_are(computed_values):
    by_pairs = values(corpus(), weigh="pairs")
    assert computed_values["gs:male"] != by_pairs["gs:male"]
    assert computed_values["gs:female"] == pytest.approx(by_pairs["gs:female"])  # one object each


# --- what moves it and what does not


def test_captions_of_both_sides_alike_score_0():
    assert values(corpus(human=[[text] for text in MODEL]))["score"] == 0


def told_of_other(text: str) -> str:
    return " ".join(SWAPS.get(word, word) for word in text.split())


def test_a_swap_of_all_groups_turns_the_score_around():
    swapped = [told_of_other(text) for text in MODEL]
    one = values(corpus(human=[[text] for text in swapped]))
    other = values(corpus(swapped, human=[[text] for text in MODEL]))
    assert one["score"] == pytest.approx(-other["score"])


def test_signs_and_case_do_not_matter(computed_values):
    loud = [f"{text.capitalize()}." for text in MODEL]
    assert values(corpus(loud))["model"] == pytest.approx(computed_values["model"])


def test_a_group_that_is_never_named_leaves_no_share_and_the_own_bias_as_it_is(computed_values):
    men = values(corpus([text.replace("woman", "man") for text in MODEL[:4]] + MODEL[4:]))
    assert math.isnan(men["model"])
    assert men["lm:own_bias"] == pytest.approx(computed_values["lm:own_bias"])


# --- objects


def test_an_objects_share_counts_its_captions():
    result = values(corpus(), objects=["horse", "dog"])
    assert result["cooccurrence:horse:model"] == 0.5
    assert 0 < result["object:horse:model"] < 1


def test_an_object_that_no_image_shows_is_told():
    with pytest.raises(UsageError, match="no image shows 'hose'; did you mean 'horse'"):
        values(corpus(), objects=["hose"])


@pytest.mark.parametrize("objects", [None, [{"person"}] * len(MODEL)], ids=["none", "people"])
def test_without_objects_there_is_no_context(objects):
    with pytest.raises(NotApplicableError, match="has no objects for these images"):
        values(corpus(objects=objects))


def test_without_people_there_is_no_score():
    score = metric().compute(corpus(human=None), splits=[])
    assert "score" not in score.parts
    assert "no human captions: there is no score" in score.notes


def test_nothing_is_scored_again_for_another_pooling(tmp_path):
    first = values(corpus(), cache=str(tmp_path))
    ordered = sorted(tmp_path.rglob("*.block"))
    second = values(corpus(), cache=str(tmp_path), lm_term="geometric")
    assert sorted(tmp_path.rglob("*.block")) == ordered
    assert first["model"] != second["model"]


def run_id(causal: Path, *words: str) -> str:
    models = (f"metric.language_model={causal}", f"metric.sentence_encoder={language_models()[1]}")
    cell = compose.cell(["metric=gender_score", "dataset.n_images=30", *models, *words])
    return cell.run_id(cell.corpus())


def test_the_identity_follows_the_weights_and_the_context_and_not_their_place(tmp_path):
    causal, _ = language_models()
    moved = shutil.copytree(causal, tmp_path / "moved")
    context = (f"metric.context={write_detections(tmp_path)[0]}", "metric.top_k=2")
    assert run_id(causal) == run_id(moved) != run_id(causal, *context)


# --- context from elsewhere


def write_detections(folder: Path) -> tuple[str, dict[str, float]]:
    """A file with each image's own objects, as sure of each wherever it is; and how sure."""
    sure = {"horse": 0.75, "dog": 0.5, "umbrella": 0.25, "person": 1.0, "woman": 0.9}
    rows = [
        {"image_id": k, "label": name, "score": sure[name]}
        for k, objects in enumerate(OBJECTS)
        for name in {*objects, "woman"}
    ]
    path = folder / "seen.json"
    path.write_text(json.dumps(rows))
    return str(path), sure


def test_detections_of_objects_revise_by_their_confidence(tmp_path):
    path, sure = write_detections(tmp_path)
    result = values(corpus(objects=None), context=path)
    expected = naive(list(zip(MODEL, OBJECTS, strict=True)), sure)
    for group in ("male", "female"):
        assert result[f"gs:{group}"] == pytest.approx(np.mean(expected[group]), rel=1e-5)
    named = {name.split(":")[1] for name in result if name.startswith("object:")}
    assert named == {"horse", "dog", "umbrella"}  # words for people are no objects


# --- word deletion


def effects(n: int = 10) -> dict[str, Any]:
    score = metric(deletions=n).compute(corpus(), splits=[])
    return {str(line["word"]): line for line in score.tables["deletions"]}


def told_share(text: str, objects: set[str]) -> float:
    """The first group's share in the scores of a caption told of each group."""
    one, other = (naive([(version, objects)], SHARES) for version in (text, told_of_other(text)))
    male, female = (one, other) if one["male"] else (other, one)
    return float(male["male"][0] / (male["male"][0] + female["female"][0]))


def test_a_words_effect_is_what_its_captions_share_loses_without_it():
    line = effects()["beach"]  # in one caption that is scored
    whole = told_share("a man with a dog on the beach", {"dog", "umbrella"})
    rest = told_share("a man with a dog on the", {"dog", "umbrella"})
    assert line["times"] == 1
    assert line["share with"] == pytest.approx(whole, abs=2e-6)
    assert line["effect"] == pytest.approx(whole - rest, abs=2e-6)


def test_words_of_groups_are_not_deleted_and_others_count_as_often_as_they_stand():
    lines = effects()
    assert not {"man", "woman", "his", "her"} & lines.keys()
    assert lines["a"]["times"] == 7


def test_few_captions_are_the_same_few():
    assert effects(2) == effects(2)
    assert len(effects(1)) < len(effects(4))


@pytest.mark.parametrize(("options", "table"), [({}, "deletions"), ({"examples": 0}, "examples")])
def test_none_are_no_table(options, table):
    assert table not in metric(**options).compute(corpus(), splits=[]).tables


# --- captions of nobody (Table 3)

NEUTRAL = {"man": "person", "woman": "person", "his": "their", "her": "their"}


def neutral_scores(texts: list[tuple[str, set[str]]]) -> list[float]:
    return [plain_score(text, sorted(objects - {"person"}), SHARES)[0] for text, objects in texts]


@pytest.mark.parametrize(
    ("side", "part", "naming_one"),
    [("model", "gs:person", 4), ("human", "gs:person:human", 6)],
)
def test_the_neutral_mean_is_of_captions_that_name_a_group_told_of_nobody(side, part, naming_one):
    result = values(corpus(), neutral_words={"his": "their", "her": "their"})
    texts = [" ".join(NEUTRAL.get(w, w) for w in text.split()) for text in TEXTS[side]]
    retold = list(zip(texts, OBJECTS, strict=True))[:naming_one]
    assert result[part] == pytest.approx(np.mean(neutral_scores(retold)), rel=1e-5)


def test_the_neutral_mean_may_be_of_captions_that_name_nobody():
    result = values(corpus(), neutral_captions="nobody")
    (neutral_score,) = neutral_scores([(MODEL[4], OBJECTS[4])])
    assert result["gs:person"] == pytest.approx(neutral_score, rel=1e-5)


@pytest.mark.parametrize("side", ["model", "human"])
@pytest.mark.parametrize("group", ["male", "female"])
def test_a_group_is_held_against_the_neutral_mean(side, group, computed_values, computed_score):
    people = ":human" if side == "human" else ""
    expected = computed_values[f"gs:{group}{people}"] / computed_values[f"gs:person{people}"]
    part = computed_score.parts[f"to_neutral:{group}:{side}"]
    assert part.value == pytest.approx(expected)
    assert (part.unit, part.range) == ("ratio", (0.0, math.inf))


def test_captions_of_nobody_that_are_not_there_leave_no_neutral_mean():
    named = [*MODEL[:4], "a man on the beach", "a man"]
    result = values(corpus(named), neutral_captions="nobody")
    assert math.isnan(result["gs:person"])
    assert math.isnan(result["to_neutral:male:model"])


def test_a_captioner_that_names_nobody_has_a_neutral_mean_all_the_same():
    result = values(corpus(["a person on the beach"] * 6), neutral_captions="nobody")
    assert math.isnan(result["gs:male"])
    assert 0 < result["gs:person"] < 1


def test_neutral_pairs_weigh_as_many_as_they_are():
    texts = ["a person with a dog", "a person on the beach", *MODEL[:4]]
    built_corpus = corpus(texts, objects=[{"dog", "umbrella"}, {"dog"}, *OBJECTS[:4]])
    by_captions, by_pairs = (
        values(built_corpus, weigh=weigh, neutral_captions="nobody")["gs:person"]
        for weigh in ("captions", "pairs")
    )
    assert by_captions != by_pairs


def test_without_a_neutral_word_there_is_no_neutral_part_and_no_other_number_moves(computed_values):
    without = values(corpus(), neutral=None)
    assert not [name for name in without if "person" in name or "to_neutral" in name]
    assert {name: computed_values[name] for name in without} == pytest.approx(without, nan_ok=True)


# --- examples (Figure 2)


@pytest.fixture(scope="module")
def examples(computed_score: Score) -> dict[tuple[str, str], dict[str, Any]]:
    """By caption and object."""
    return {
        (str(e["caption"]), str(e["object"])): dict(e) for e in computed_score.tables["examples"]
    }


def test_every_caption_that_names_one_group_stands_beside_each_of_its_objects(examples):
    shown = [(line["image_id"], line["object"]) for line in examples.values()]
    assert shown == [("0", "horse"), ("1", "horse"), ("2", "dog"), ("2", "umbrella"), ("3", "dog")]


def test_an_example_has_the_factors_of_its_score(examples):
    line = examples["a man with a dog on the beach", "umbrella"]
    for group in ("male", "female"):
        p, sim = line[f"P(g) {group}"], line[f"similarity {group}"]
        alpha = ((1 - sim) / (1 + sim)) ** (1 - line["P(c)"])
        assert line[f"score {group}"] == pytest.approx(p**alpha, rel=1e-3)


CAPTION_OF = {"male": "a man rides his horse", "female": "a woman rides her horse"}


def test_an_example_has_the_likelihood_of_the_caption_told_of_each_group(examples):
    line = examples["a man rides his horse", "horse"]
    expected = np.exp(
        LanguageModel(str(language_models()[0])).log_likelihood([*CAPTION_OF.values()])
    )
    assert [line[f"P(g) {group}"] for group in CAPTION_OF] == pytest.approx(expected, abs=1e-6)


def test_an_example_has_the_distance_of_each_groups_word_to_the_object(examples):
    line = examples["a woman with a dog", "dog"]
    man, woman, dog = Frozen(str(language_models()[1])).vectors(["man", "woman", "dog"])
    for group, word in (("male", man), ("female", woman)):
        cosine = float(word @ dog / np.linalg.norm(word) / np.linalg.norm(dog))
        assert line[f"distance {group}"] == pytest.approx(cosine, abs=1e-5)


def test_an_examples_mask_is_filled_for_the_group_with_the_higher_score(examples):
    line = examples["a man rides his horse", "horse"]
    assert line["masked"] == "a [MASK] rides [MASK] horse"
    for by in ("score", "similarity"):
        assert (
            line[f"filled by {by}"] == CAPTION_OF[max(CAPTION_OF, key=lambda g: line[f"{by} {g}"])]
        )


def test_few_examples_are_the_same_few():
    one, again = (metric(examples=2).compute(corpus(), splits=[]).tables["examples"] for _ in "ab")
    assert one == again
    assert len({line["caption"] for line in one}) == 2
