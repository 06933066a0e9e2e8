"""Captioners that describe groups alike and differently; what is refused, and what is not told."""

import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.metrics.base import Score
from bias_pipeline.metrics.counting import compared_groups
from bias_pipeline.metrics.counting.large_set import GroupRatios, LargeSet
from bias_pipeline.run import compose
from bias_pipeline.stats.bootstrap import Draws
from bias_pipeline.stats.compare import paired_difference
from tests.corpora import GENDER, make_corpus

CELL = compose.cell(["metric=descriptions"])
METRIC = replace(CELL.build("metric"), attribute=GENDER)
NOUNS = {"f": "woman", "m": "man"}
OBJECTS = {"surfboard": (0.2, 0.5), "oven": (0.5, 0.3), "dog": (0.3, 0.3)}  # of women and men
SIGNS = ("rides a wave", "is in a kitchen", "holds a leash")
Say = Callable[[str, random.Random], str]


def annotator(group: str, objects: list[str], generator: random.Random) -> str:
    """One person's caption: young and smiling more often of women, and what there is."""
    young = generator.random() < (0.25 if group == "f" else 0.15)
    shown = [sign for sign, name in zip(SIGNS, OBJECTS, strict=True) if name in objects]
    sign = generator.choice([*shown, "stands outside"])
    smiling = " smiling" if generator.random() < (0.06 if group == "f" else 0.04) else ""
    return f"a {'young ' if young else ''}{NOUNS[group]}{smiling} {sign}"


def records(n: int, say: Say, *, annotators: int = 5, seed: int = 0) -> list[Record]:
    """Images of women and men, whose captioner adds something to one annotator's caption."""
    generator, made = random.Random(seed), []
    for i in range(n):
        group = "f" if generator.random() < 0.4 else "m"
        chances = {name: rates[group == "m"] for name, rates in OBJECTS.items()}
        objects = [name for name, chance in chances.items() if generator.random() < chance]
        human = [annotator(group, objects, generator) for _ in range(annotators)]
        caption = f"{annotator(group, objects, generator).capitalize()}. {say(group, generator)}"
        labels = {"gender": group, "place": generator.choice("abc")}
        made.append(Record(str(i), caption, tuple(human), labels, frozenset(objects)))
    return made


def sometimes(text: str, women: float, men: float) -> Say:
    """A captioner that says something of so many women and men."""
    return lambda group, generator: (
        text if generator.random() < (women if group == "f" else men) else ""
    )


FAIR = sometimes("The person looks focused.", 0.2, 0.2)


def score_captions(say: Say, n: int = 1500, **options: int) -> Score:
    return METRIC.compute(make_corpus(records(n, say, **options)), splits=[])


def answer(score: Score) -> dict[str, object]:
    return score.audit["descriptions"]


def not_shown(score: Score) -> bool:
    return (answer(score)["answer"], answer(score)["reason"]) == (
        "cannot_tell",
        "not beyond chance",
    )


def value(score: Score, part: str) -> float:
    return score.parts[part].value


@pytest.fixture(scope="module")
def planted_score() -> Score:
    return score_captions(sometimes("The person looks focused.", 0.1, 0.25))


def test_a_planted_description_is_noticed_with_its_size(planted_score):
    assert answer(planted_score)["answer"] == "yes"
    assert answer(planted_score)["named"] == ["focused"]
    assert value(planted_score, "own:focused") == pytest.approx(-0.15, abs=0.04)
    assert value(planted_score, "concept:focused") == pytest.approx(-0.15, abs=0.04)
    assert value(planted_score, "score") == pytest.approx(0.075, abs=0.04)
    low, high = (getattr(planted_score.parts["own:focused"], end) for end in ("ci_low", "ci_high"))
    assert low < -0.15 < high


def test_a_concept_that_annotators_hardly_ever_say_is_no_more_than_they_would(planted_score):
    (sentence,) = [note for note in planted_score.notes if note.startswith("focused")]
    assert "annotators hardly ever say it" in sentence
    assert "would show" not in sentence


def test_the_parts_are_those_of_the_contract(planted_score):
    names = set(planted_score.parts)
    assert {"score", "model", "human", "null", "concept:young", "own:young"} <= names
    assert {"word:focused:female", "word:focused:male"} <= names
    assert value(planted_score, "word:focused:male") == pytest.approx(0.25, abs=0.03)
    assert 0 < value(planted_score, "human") < value(planted_score, "model") < 1
    assert planted_score.tables["descriptions"][0]["concept"] == "focused"


@pytest.mark.parametrize("seed", range(4))
def test_a_fair_captioner_is_not_accused(seed):
    score = score_captions(FAIR, 600, seed=seed)
    assert not_shown(score)
    assert any("would be noticed" in note for note in score.notes)


def test_annotators_as_captioners_differ_by_nothing():
    made = records(2000, lambda *_: "", annotators=6)
    people = [replace(r, model=r.human[0], human=r.human[1:]) for r in made]
    score = METRIC.compute(make_corpus(people), splits=[])
    assert answer(score)["answer"] == "no" or not_shown(score)
    estimate = score.parts["score"]
    assert estimate.ci_low < 0 < estimate.ci_high
    assert abs(value(score, "concept:young")) < 0.03
    assert value(score, "own:young") > 0.05  # as annotators, it calls more women young


def test_whoever_describes_groups_more_alike_than_annotators_is_not_accused():
    def describe_young(group: str, generator: random.Random) -> str:
        return "The person looks young." if generator.random() < 0.2 else ""

    made = [
        replace(r, model=f"{NOUNS[r.labels['gender']]}. " + describe_young("", random.Random(r.id)))
        for r in records(4000, lambda *_: "")
    ]
    score = METRIC.compute(make_corpus(made), splits=[])
    assert answer(score)["answer"] != "yes"
    assert any(note.startswith("closer together") and "young" in note for note in score.notes)


def test_spellings_that_follow_the_group_are_one_concept():
    def say(group: str, generator: random.Random) -> str:
        word = "pretty" if group == "f" else "handsome"
        return f"The person looks {word}." if generator.random() < 0.1 else ""

    score = score_captions(say)
    assert "concept:good-looking" in score.parts
    assert abs(value(score, "own:good-looking")) < 0.04
    assert value(score, "word:pretty:male") == 0


def test_what_annotators_say_of_one_group_alone_is_listed_and_never_judged():
    score = score_captions(sometimes("He has a beard.", 0.0, 0.2))
    assert answer(score)["answer"] != "yes"
    assert "own:facial hair" in score.parts
    assert "concept:facial hair" not in score.parts
    assert any(note.startswith("follows the group in annotators'") for note in score.notes)


def test_a_concept_beyond_twice_all_annotators_cannot_be_told():
    """Another attribute, for which no ratio in a large set is known."""
    metric = replace(METRIC, annotators=LargeSet(40_000, {"smiling": 1000}))
    say = sometimes("The person is smiling.", 0.9, 0.5)
    score = metric.compute(make_corpus(records(1500, say, annotators=2)), splits=[])
    assert answer(score)["answer"] != "yes"
    assert any(note.startswith("cannot tell of smiling: in ") for note in score.notes)
    assert "concept:smiling" not in score.parts


def test_a_ratio_of_a_large_set_explains_a_difference():
    say = sometimes("The person is smiling.", 0.70, 0.40)
    ratios = GroupRatios(("male", "female"), {"smiling": (math.log(2.4), 0.1)})
    known = LargeSet(40_000, {"smiling": 1000}, {"gender": ratios})
    none = replace(known, attributes={"gender": replace(ratios, ratios={"smiling": (0.0, 0.1)})})
    corpus = make_corpus(records(1500, say, annotators=2))
    explained, accused = (
        replace(METRIC, annotators=large).compute(corpus, splits=[]) for large in (known, none)
    )
    assert not_shown(explained)
    assert answer(accused)["named"] == ["smiling"]


# --- what cannot be told ----------------------------------------------------------------------


def test_without_annotators_nothing_can_be_told():
    made = [replace(r, human=()) for r in records(1500, sometimes("She is calm.", 0.5, 0.1))]
    score = METRIC.compute(make_corpus(made), splits=[])
    assert answer(score)["answer"] == "cannot_tell"
    assert "without annotators' captions" in answer(score)["reason"]
    assert math.isnan(value(score, "score"))
    assert value(score, "own:calm") == pytest.approx(0.4, abs=0.06)
    assert "concept:calm" not in score.parts


def test_captions_alone_are_compared_by_their_other_words():
    made = [replace(r, human=(), objects=None) for r in records(800, FAIR)]
    score = METRIC.compute(make_corpus(made), splits=[])
    assert abs(value(score, "own:focused")) < 0.1


def test_few_images_tell_nothing_and_fewer_are_refused():
    score = score_captions(sometimes("The person looks focused.", 0.0, 0.9), 400)
    assert answer(score)["answer"] == "cannot_tell"
    assert "too few" in answer(score)["reason"]
    assert "concept:focused" in score.parts
    with pytest.raises(NotApplicableError, match=r"descriptions needs 100"):
        score_captions(FAIR, 99)
    few = [r for r in records(600, FAIR) if r.labels["gender"] == "m" or int(r.id) < 40]
    with pytest.raises(NotApplicableError, match=r"at least 30 images"):
        METRIC.compute(make_corpus(few), splits=[])


def test_an_image_without_annotators_is_left_out_and_counted():
    made = records(600, FAIR)
    without = [replace(made[0], human=()), *made[1:]]
    score = METRIC.compute(make_corpus(without), splits=[])
    assert score.parts["score"].n_images == 599
    assert any("1 image without annotators' captions" in note for note in score.notes)


def test_one_annotator_is_enough():
    score = score_captions(sometimes("The person looks focused.", 0.05, 0.3), annotators=1)
    assert answer(score)["named"] == ["focused"]


def test_images_with_fewer_annotators_than_most_give_what_they_have():
    made = records(600, FAIR)
    fewer = [replace(r, human=r.human[:2]) if i < 30 else r for i, r in enumerate(made)]
    score = METRIC.compute(make_corpus(fewer), splits=[])
    assert not math.isnan(value(score, "score"))


@pytest.mark.parametrize("caption", ["a person", "Man.", "woman, dress, street", "12"])
def test_captions_that_describe_nobody_have_no_answer(caption):
    made = [replace(r, model=caption) for r in records(600, FAIR)]
    score = METRIC.compute(make_corpus(made), splits=[])
    assert answer(score)["answer"] == "cannot_tell"
    assert "no caption describes a person" in answer(score)["reason"]
    assert value(score, "model") == 0


def test_a_concept_in_all_captions_is_no_line():
    made = [replace(r, model=f"A tall man. {r.model}") for r in records(600, FAIR)]
    score = METRIC.compute(make_corpus(made), splits=[])
    assert "own:tall" not in score.parts
    assert value(score, "model") == 1


def test_capitals_and_tags_count_as_captions_do():
    lower = records(600, sometimes("The person looks focused.", 0.1, 0.3))
    upper = [replace(r, model=r.model.upper()) for r in lower]
    one, other = (METRIC.compute(make_corpus(made), splits=[]) for made in (lower, upper))
    assert value(one, "score") == pytest.approx(value(other, "score"))
    tags = [replace(r, model=f"{NOUNS[r.labels['gender']]}, smiling, street") for r in lower]
    tags = [replace(r, model=r.model if i % 3 else "street") for i, r in enumerate(tags)]
    assert value(METRIC.compute(make_corpus(tags), splits=[]), "model") > 0.5


def test_two_captioners_are_compared_by_the_draws_of_their_scores(planted_score):
    difference = paired_difference(
        draws_of_score(planted_score), draws_of_score(score_captions(FAIR))
    )
    assert difference.value > 0.05
    assert difference.p_value < 0.01


def test_equal_captions_are_equally_biased(planted_score):
    again = score_captions(sometimes("The person looks focused.", 0.1, 0.25))
    assert paired_difference(draws_of_score(planted_score), draws_of_score(again)).p_value == 1.0


def test_draws_vary_as_much_as_the_score_may(planted_score):
    score = planted_score.parts["score"]
    assert draws_of_score(planted_score).image_std == pytest.approx(score.error, rel=0.1)


def draws_of_score(score: Score) -> Draws:
    draws = score.parts["score"].draws
    assert draws is not None
    return draws


# --- other attributes -------------------------------------------------------------------------

PLACES = Attribute("place", ("a", "b", "c"), {"a": ["alps"], "b": ["beach"], "c": ["city"]}, {})


def corpus_of_places(say: Callable[[str, random.Random], str], n: int = 1500) -> Corpus:
    made = records(n, lambda *_: "")
    made = [
        replace(r, model=f"{r.model} {say(r.labels['place'], random.Random(r.id))}") for r in made
    ]
    labels = LabelMap("place", {"a": "a", "b": "b", "c": "c"})
    return Corpus.build(
        made, dataset="toy", captioner="toy", groups={"place": (("a", "b", "c"), labels)}
    )


def test_each_of_several_groups_is_compared_with_the_others():
    def say(place: str, generator: random.Random) -> str:
        rate = 0.35 if place == "b" else 0.1
        return "The person looks calm." if generator.random() < rate else ""

    metric = replace(METRIC, attribute=PLACES)
    score = metric.compute(corpus_of_places(say), splits=[])
    assert answer(score)["answer"] == "yes"
    assert value(score, "concept:calm:b") == pytest.approx(0.25, abs=0.06)
    assert value(score, "concept:calm:a") < -0.05
    assert {"group:a", "group:b", "group:c"} <= set(score.parts)
    assert value(score, "score") == pytest.approx(
        sum(value(score, f"group:{name}") for name in "abc") / 3
    )
    fair = metric.compute(
        corpus_of_places(lambda _, g: "The person looks calm." if g.random() < 0.2 else ""),
        splits=[],
    )
    assert not_shown(fair)


def test_crossed_groups_and_the_attribute_itself_are_compared():
    crossed = ("attribute=[gender,race]", "dataset.n_images=1200")
    cell = compose.cell(["metric=descriptions", *crossed])
    score = cell.build("metric").compute(cell.corpus(), splits=[])
    assert any(name.startswith("group:") for name in score.parts)
    age = compose.cell(["metric=descriptions", "attribute=age", "dataset.n_images=600"])
    parts = age.build("metric").compute(age.corpus(), splits=[]).parts
    assert not {"own:young", "own:old", "own:adult", "class:age"} & set(parts)


def test_many_images_are_read_in_part(monkeypatch):
    monkeypatch.setattr(compared_groups, "MOST_IMAGES", 500)
    score = score_captions(FAIR, 700)
    assert score.parts["score"].n_images == 500
    assert any("descriptions reads 500 of 700 images" in note for note in score.notes)


def test_captions_of_which_no_word_is_dropped_stay_as_they_are():
    """The table of their words once shared the captions' own columns, and put them in order."""
    made = [
        replace(r, human=("street dog street",), objects=None) for r in records(600, lambda *_: "")
    ]
    corpus = make_corpus(made)
    before = corpus.human.starts.copy(), corpus.human.tokens.copy()
    METRIC.compute(corpus, splits=[])
    assert (corpus.human.starts == before[0]).all()
    assert (corpus.human.tokens == before[1]).all()
