"""The sign of a counting metric turns where the groups, or captioner and people, change places."""

from collections.abc import Callable, Sequence
from copy import copy

import pytest

from bias_pipeline.corpus.attribute import TaskVocabulary
from bias_pipeline.corpus.corpus import Corpus, Record
from tests.corpora import make_corpus
from tests.metrics.counting.test_null import METRICS


def world(model: Callable[[str, str], str], human: Callable[[str, str], str]) -> Corpus:
    """40 images of an object: seven of ten cakes are with women, seven of ten cars with men.

    Args:
        model: the captioner's caption of a person (``man``, ``woman``) and an object.
        human: people's.
    """
    records = []
    for i in range(40):
        food = ("cake", "car")[i % 2]
        female = (food == "cake") == (i % 20 < 14)
        who, label = ("woman", "f") if female else ("man", "m")
        objects = frozenset([food, "person"])
        records.append(
            Record(str(i), model(who, food), (human(who, food),), {"gender": label}, objects)
        )
    return make_corpus(records)


def truly(who: str, item: str) -> str:
    return f"{who} {item}"


def by_object(who: str, item: str) -> str:
    """A captioner that takes the person for the one whom the object goes with."""
    return f"{'woman' if item == 'cake' else 'man'} {item}"


def by_person(who: str, item: str) -> str:
    """A captioner that sees the object that goes with the person."""
    return f"{who} {'cake' if who == 'woman' else 'car'}"


def mostly_men(who: str, item: str) -> str:
    return f"man {item}" if item == "car" else f"{who} {item}"


def swap_words(
    caption: Callable[[str, str], str], words: Sequence[str]
) -> Callable[[str, str], str]:
    """The same captions with two words in each other's stead."""
    other = dict(zip(words, reversed(words), strict=True))
    return lambda who, item: " ".join(other.get(w, w) for w in caption(who, item).split())


GROUPS, OBJECTS = ("man", "woman"), ("cake", "car")
CAKES_AND_CARS = TaskVocabulary("two", {name: [name] for name in OBJECTS})


def value(name: str, part: str, corpus: Corpus) -> float:
    """Of the two objects of :func:`world` alone, however rare."""
    metric = copy(METRICS[name])
    for key, setting in {"task": CAKES_AND_CARS, "min_support": 1}.items():
        if hasattr(metric, key):
            setattr(metric, key, setting)
    return metric.compute(corpus, splits=[]).parts[part].value


@pytest.mark.parametrize(
    ("name", "part", "caption", "words"),
    [
        ("ba_directional", "t_to_a", by_object, GROUPS),
        ("ba_directional as published", "t_to_a", by_object, GROUPS),
        ("ba_mals", "score", by_object, GROUPS),
        ("multi_directional", "t_to_a", by_object, GROUPS),
        ("ba_directional", "a_to_t", by_person, OBJECTS),
        ("ba_directional as published", "a_to_t", by_person, OBJECTS),
        ("multi_directional", "a_to_t", by_person, OBJECTS),
    ],
)
def test_the_sign_turns_when_captions_swap_the_groups(name, part, caption, words):
    """Everything goes with its own group instead of 7 in 10, and then with the other: 0.3, -0.7."""
    assert value(name, part, world(caption, truly)) == pytest.approx(0.3)
    assert value(name, part, world(swap_words(caption, words), truly)) == pytest.approx(-0.7)


def test_the_sign_of_the_ratio_turns_when_captions_swap_the_groups():
    before = value("gender_ratio", "score", world(mostly_men, truly))
    after = value("gender_ratio", "score", world(swap_words(mostly_men, GROUPS), truly))
    assert before > 0 > after
    assert before + 1 == pytest.approx(1 / (after + 1))  # as many men as women by label


@pytest.mark.parametrize("name", ["differential_fairness", "cooccurrence"])
def test_the_sign_turns_when_captioner_and_people_change_places(name):
    """Skews have no side, so whom an object goes with is the same to them; who says it is not."""
    result = value(name, "score", world(by_person, truly))
    assert result > 0
    assert value(name, "score", world(truly, by_person)) == pytest.approx(-result)
    same = value(name, "score", world(swap_words(by_person, OBJECTS), truly))
    assert same == pytest.approx(result)


def test_the_parts_of_groups_change_places_in_co_occurrence():
    one, other = world(by_person, truly), world(swap_words(by_person, GROUPS), truly)
    ratio, disparity = "object:cake:model", "disparity:male:car"
    before = value("cooccurrence", ratio, one)
    assert value("cooccurrence", ratio, other) == pytest.approx(1 - before)
    assert value("cooccurrence", disparity, one) > 0 > value("cooccurrence", disparity, other)


def test_right_and_wrong_change_places_when_captions_swap_the_groups():
    right, wrong = world(by_object, truly), world(swap_words(by_object, GROUPS), truly)
    assert value("gender_error", "score", right) == pytest.approx(0.3)
    assert value("gender_error", "score", wrong) == pytest.approx(0.7)
    assert value("group_accuracy", "group:female", right) == pytest.approx(
        value("group_accuracy", "incorrect:female", wrong)
    )
