"""DBAC on corpora whose bias is planted, in one direction at a time.

Captions are nothing but "a <word for the person> with a <object>". What attackers of A->T see is
then the object alone, and attackers of T->A see the word for the person alone.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from bias_pipeline.attackers.logistic import ConvexProbe
from bias_pipeline.config import compose
from bias_pipeline.corpus.attribute import Attribute, LabelMap, TaskVocabulary
from bias_pipeline.corpus.corpus import SIDES, Corpus, Record
from bias_pipeline.corpus.split_rules import HoldOut
from bias_pipeline.encoders.ngram import Ngram
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.metrics.attack.dbac import DBAC
from bias_pipeline.metrics.base import Part, Score
from bias_pipeline.metrics.functional.dbac import AGGREGATES, PRIORS
from bias_pipeline.metrics.value_names import DIRECTIONS
from bias_pipeline.scoring import Accuracy, Confidence, InverseCrossEntropy
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate
from bias_pipeline.text.align import ConstantAlignment
from bias_pipeline.text.mask import MaskWords
from bias_pipeline.text.tokenize import Tokenize

OBJECTS = ("umbrella", "kite", "laptop", "bicycle", "giraffe", "pizza")
TASKS = TaskVocabulary("toy", {"person": ["person"], **{o: [o] for o in OBJECTS}})
WORDS = {"light": "white", "dark": "black", "unsure": "somebody"}
RACE = Attribute("race", tuple(WORDS), {"light": ["white"], "dark": ["black"]}, {})
TWO = Attribute("race", ("light", "dark"), {"light": ["white"], "dark": ["black"]}, {})
TYPICAL = {("light", "umbrella"), ("light", "laptop"), ("dark", "kite"), ("dark", "bicycle")}
SEEDS = (0, 12, 456)


def corpus_of(records: Sequence[Record], n_groups: int = 2) -> Corpus:
    names = tuple(WORDS)[:n_groups]
    groups = {"race": (names, LabelMap("race", {name: name for name in names}))}
    return Corpus.build(records, dataset="toy", captioner="toy", groups=groups)


@cache
def planted(
    n: int = 1000,
    *,
    a_to_t: float = 0.0,
    t_to_a: float = 0.0,
    says: tuple[float, float] = (1.0, 1.0),
    n_groups: int = 2,
) -> Corpus:
    """Images of two objects, each typical of the person's group with probability 0.65.

    Args:
        n: images.
        a_to_t: how often the captioner names an object typical of the group, there or not.
        t_to_a: how often its word for the person follows the objects instead of the person.
        says: how often the captioner and people name an object at all.
        n_groups: groups; each has two objects that are typical of it.
    """
    generator = np.random.default_rng(0)
    names = tuple(WORDS)[:n_groups]
    records = []
    for i in range(n):
        group = i % n_groups
        others = [g for g in range(n_groups) if g != group]

        def typical(of: int) -> str:
            return OBJECTS[of + n_groups * generator.integers(2)]

        there = [
            typical(group if generator.random() < 0.65 else generator.choice(others))
            for _ in range(2)
        ]
        human, model = (there[generator.integers(2)] for _ in range(2))
        imagined, following = typical(group), OBJECTS.index(there[0]) % n_groups
        draws = generator.random(4)
        model = imagined if draws[0] < a_to_t else model
        named = following if draws[1] < t_to_a else group
        model, human = (
            name if draw < says else "hat"
            for name, draw, says in zip((model, human), draws[2:], says, strict=True)
        )
        records.append(
            Record(
                str(i),
                f"a {WORDS[names[named]]} with a {model}",
                (f"a {WORDS[names[group]]} with a {human}",),
                {"race": names[group]},
                frozenset({"person", *there}),
            )
        )
    return corpus_of(records, n_groups)


def build(**options: object) -> DBAC:
    attribute = {"attribute": TWO, **options}["attribute"]
    assert isinstance(attribute, Attribute)
    settings: dict[str, object] = {
        "attribute": attribute,
        "task": TASKS,
        "a_to_t": [Tokenize(), MaskWords(attribute.words, "<race>"), ConstantAlignment()],
        "t_to_a": [Tokenize(), MaskWords(TASKS.tasks, "<task>"), ConstantAlignment()],
        "probe": ConvexProbe(Ngram(), inverse_penalty=1.0),
        "split": HoldOut(test_share=0.2, balanced=False),
        "scoring": InverseCrossEntropy(),
        "stats": Bootstrap(resamples=100),
        "min_support": 0.02,
    }
    return DBAC(**{**settings, **options})


def compute(corpus: Corpus, **options: object) -> Score:
    metric = build(**options)
    return metric.compute(corpus, splits=metric.draw_splits(corpus, SEEDS))


@cache
def score(
    a_to_t: float = 0.0,
    t_to_a: float = 0.0,
    says: tuple[float, float] = (1.0, 1.0),
    n: int = 1000,
    **options: object,
) -> Score:
    return compute(planted(n, a_to_t=a_to_t, t_to_a=t_to_a, says=says), **options)


def estimate(score: Score, name: str) -> Estimate:
    return score.parts[name].estimate


def altered(corpus: Corpus, change: Callable[[int, Record], Record]) -> Corpus:
    return corpus_of([change(i, record) for i, record in enumerate(corpus)])


# Planted in one direction, seen in that direction.


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("strength", [0.3, 0.9])
def test_planted_a_to_t_moves_a_to_t_up(aggregate, strength):
    result = score(a_to_t=strength, aggregate=aggregate)
    assert estimate(result, "a_to_t").ci_low > 0


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_more_of_it_moves_a_to_t_further(aggregate):
    values = [
        estimate(score(a_to_t=strength, aggregate=aggregate), "a_to_t").value
        for strength in (0.0, 0.3, 0.6, 0.9)
    ]
    assert values == sorted(values)


@pytest.mark.parametrize("scoring", [InverseCrossEntropy, Confidence, Accuracy])
def test_weighed_by_captions_every_scoring_sees_a_mild_a_to_t(scoring):
    result = score(a_to_t=0.3, aggregate="per_caption", scoring=scoring())
    assert estimate(result, "a_to_t").ci_low > 0


def test_the_mean_of_pairs_misreads_a_mild_a_to_t_of_calibrated_confidence():
    """Omega is then P(t | a): what one group gains the other loses, from a smaller base.

    So the loss weighs more in a mean of normalised differences. A limit of the published form.
    """
    result = score(a_to_t=0.3, aggregate="per_pair", scoring=Confidence())
    assert estimate(result, "a_to_t").ci_high < 0


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("prior", PRIORS)
def test_planted_a_to_t_leaves_t_to_a_at_zero(aggregate, prior):
    result = score(a_to_t=0.9, aggregate=aggregate)
    assert estimate(result, f"t_to_a:{prior}").value == 0


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("prior", PRIORS)
def test_planted_t_to_a_moves_t_to_a_up(aggregate, prior):
    result = score(t_to_a=1.0, aggregate=aggregate)
    assert estimate(result, f"t_to_a:{prior}").ci_low > 0


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("prior", PRIORS)
def test_planted_t_to_a_leaves_a_to_t_as_it_was(aggregate, prior):
    """Once the words for the person are masked, the captions are those of the faithful one."""
    name = f"a_to_t:{prior}"
    planted_one, faithful = (score(t_to_a=share, aggregate=aggregate) for share in (1.0, 0.0))
    assert estimate(planted_one, name) == estimate(faithful, name)


def test_another_choice_among_the_objects_there_is_no_a_to_t():
    interval = estimate(score(), "a_to_t")
    assert interval.ci_low <= 0 <= interval.ci_high


LOUDER = {"says": (0.8, 0.4), "n": 2000}


@pytest.mark.parametrize("aggregate", ["per_pair", "per_caption"])
def test_saying_twice_as_much_is_a_third_under_the_published_prior(aggregate):
    result = score(**LOUDER, aggregate=aggregate)
    assert estimate(result, "a_to_t:counts").value == pytest.approx(1 / 3, abs=0.05)


@pytest.mark.parametrize("aggregate", ["per_pair", "per_caption"])
@pytest.mark.parametrize("prior", ["shared", "none"])
def test_saying_twice_as_much_is_nothing_under_the_other_priors(aggregate, prior):
    result = score(**LOUDER, aggregate=aggregate)
    assert estimate(result, f"a_to_t:{prior}").value == pytest.approx(0, abs=0.03)


def test_saying_twice_as_much_is_told_by_the_priors_alone():
    assert estimate(score(**LOUDER), "a_to_t:priors").value == pytest.approx(1 / 3, abs=0.05)


def test_saying_twice_as_much_is_said_to_come_from_the_priors():
    assert "A->T is driven by the priors" in score(**LOUDER).notes[0]


def test_planted_a_to_t_is_said_to_come_from_the_attackers():
    assert "A->T is driven by the attackers" in score(a_to_t=0.9).notes[0]


@cache
def copying(aggregate: str) -> Score:
    """The captioner writes what people write."""
    corpus = altered(planted(), lambda _, record: replace(record, model=record.human[0]))
    return compute(corpus, aggregate=aggregate)


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_peoples_own_captions_score_exactly_zero(direction, prior, aggregate):
    interval = estimate(copying(aggregate), f"{direction}:{prior}")
    assert (interval.value, interval.ci_low, interval.ci_high) == (
        0,
        0,
        0,
    )


# What stands beside the headlines.


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(
    "part",
    [
        "",
        *(f":{prior}" for prior in PRIORS),
        ":priors",
        *(f":{what}:{side}" for what in ("quality", "prior", "mentions") for side in SIDES),
        ":quality:baseline",
    ],
)
def test_every_number_stands_beside_the_headline(direction, part):
    assert math.isfinite(estimate(score(), direction + part).value)


@pytest.mark.parametrize("prior", PRIORS)
def test_the_headline_is_the_score_under_the_chosen_prior(prior):
    result = score(a_to_t=0.3, prior=prior)
    assert estimate(result, "a_to_t") == estimate(result, f"a_to_t:{prior}")


def pair_names(score: Score, direction: str) -> set[tuple[str, str]]:
    names = {*OBJECTS, "person", *WORDS}
    split = (name.split(":") for name in score.parts)
    return {
        (given, other)
        for its_direction, given, other in (parts for parts in split if len(parts) == 3)
        if its_direction == direction and {given, other} <= names
    }


def test_a_to_t_has_a_part_for_every_pair():
    assert pair_names(score(), "a_to_t") == {(g, o) for g in TWO.groups for o in OBJECTS[:4]}


def test_t_to_a_names_its_pairs_the_other_way_round():
    assert pair_names(score(), "t_to_a") == {(o, g) for g in TWO.groups for o in OBJECTS[:4]}


def test_the_printed_headline_is_the_mean_of_its_pairs():
    result = score(a_to_t=0.3, aggregate="per_pair")
    pairs = [estimate(result, f"a_to_t:{g}:{o}").value for g, o in pair_names(result, "a_to_t")]
    assert estimate(result, "a_to_t").value == pytest.approx(np.mean(pairs))


def test_a_pair_weighs_as_much_as_people_name_it():
    result, corpus = score(a_to_t=0.3), planted(a_to_t=0.3)
    lines = [(r.labels["race"], r.human[0]) for r in corpus]
    pairs = sorted(pair_names(result, "a_to_t"))
    weights = [sum(item == g and o in text for item, text in lines) for g, o in pairs]
    values = [estimate(result, f"a_to_t:{g}:{o}").value for g, o in pairs]
    expected = np.average(values, weights=weights)
    assert estimate(result, "a_to_t").value == pytest.approx(expected)


def test_the_pairs_that_were_planted_are_the_amplified_ones():
    result = score(a_to_t=0.6)
    up = {
        (g, o)
        for g, o in pair_names(result, "a_to_t")
        if estimate(result, f"a_to_t:{g}:{o}").value > 0
    }
    assert up == {("light", "umbrella"), ("light", "laptop"), ("dark", "kite"), ("dark", "bicycle")}


def test_the_pairs_are_those_of_people_whatever_the_captioner_names():
    assert pair_names(score(a_to_t=0.9), "a_to_t") == pair_names(score(), "a_to_t")


def leaning(score: Score) -> list[str]:
    return [note for note in score.notes if "scoring=accuracy is too low" in note]


def test_accuracies_of_small_pairs_are_warned_of():
    (note,) = leaning(score(n=200, scoring=Accuracy()))
    assert "8 of 8 pairs have fewer than 30 test captions" in note


def test_accuracies_of_large_pairs_are_not_warned_of():
    assert not leaning(score(n=4000, scoring=Accuracy()))


def test_cross_entropies_of_small_pairs_are_not_warned_of():
    assert not leaning(score(n=200))


def rare_kites(*, named: bool) -> Corpus:
    """Kites are in one human caption in fifty; the captioner may pass over them."""

    def change(i: int, record: Record) -> Record:
        human, model = (
            text.replace("kite", "laptop") for text in (record.human[0], record.model or "")
        )
        kite = "somebody with a kite"
        if i % 50 < 2:
            return replace(record, human=(kite,), model=kite if named else model)
        return replace(record, human=(human,), model=model)

    return altered(planted(), change)


def test_rare_tasks_count_as_one():
    score = compute(rare_kites(named=True), min_support=0.1)
    names = {name for name in score.parts if name.startswith("a_to_t:light:")}
    assert names == {
        f"a_to_t:light:{task}" for task in ("laptop", "umbrella", "bicycle", "other tasks")
    }


def test_rare_tasks_may_be_dropped():
    score = compute(rare_kites(named=True), min_support=0.1, rare="drop")
    assert not any("other tasks" in name for name in score.parts)


def test_a_task_that_the_captioner_never_names_is_minus_one():
    score = compute(rare_kites(named=False), min_support=0.1)
    assert estimate(score, "a_to_t:light:other tasks").value == pytest.approx(-1)


def test_mention_rates_are_those_that_were_planted():
    rates = [estimate(score(**LOUDER), f"a_to_t:mentions:{side}").value for side in SIDES]
    assert rates == pytest.approx([0.8, 0.4], abs=0.03)


def test_the_baseline_of_two_equal_groups_is_a_coin():
    assert estimate(score(), "a_to_t:quality:baseline").value == pytest.approx(1 / math.log(2))


def test_attackers_of_people_beat_the_baseline_where_tasks_tell_the_group():
    result = score()
    sides = [estimate(result, f"a_to_t:quality:{who}").value for who in ("human", "baseline")]
    assert sides[0] > sides[1]


# Lists for readers: examples and images to draw less often.


def lines(table: str, score: Score, direction: str) -> list[dict[str, object]]:
    return [dict(line) for line in score.tables[table] if line["direction"] == direction]


@pytest.mark.parametrize("table", ["examples", "resample"])
def test_a_to_t_lists_images_of_the_given_group(table):
    corpus = planted(a_to_t=0.6)
    group = {record.id: record.labels["race"] for record in corpus}
    listed = lines(table, score(a_to_t=0.6), "a_to_t")
    assert listed
    assert all(group[str(line["image_id"])] == line["given"] for line in listed)


@pytest.mark.parametrize("table", ["examples", "resample"])
def test_a_to_t_lists_captions_that_name_the_task(table):
    caption = {record.id: record.model or "" for record in planted(a_to_t=0.6)}
    listed = lines(table, score(a_to_t=0.6), "a_to_t")
    assert all(str(line["other"]) in caption[str(line["image_id"])] for line in listed)


@pytest.mark.parametrize("table", ["examples", "resample"])
def test_t_to_a_lists_images_that_hold_the_task(table):
    objects = {record.id: record.objects or frozenset() for record in planted(t_to_a=1.0)}
    listed = lines(table, score(t_to_a=1.0), "t_to_a")
    assert listed
    assert all(line["given"] in objects[str(line["image_id"])] for line in listed)


@pytest.mark.parametrize("table", ["examples", "resample"])
def test_t_to_a_lists_images_of_the_other_group(table):
    group = {record.id: record.labels["race"] for record in planted(t_to_a=1.0)}
    listed = lines(table, score(t_to_a=1.0), "t_to_a")
    assert all(group[str(line["image_id"])] == line["other"] for line in listed)


def test_examples_quote_both_sides():
    (first, *_) = lines("examples", score(a_to_t=0.6), "a_to_t")
    record = next(r for r in planted(a_to_t=0.6) if r.id == first["image_id"])
    assert (first["model"], first["human"]) == (record.model, record.human[0])


def test_there_are_three_examples_a_pair():
    assert len(lines("examples", score(a_to_t=0.6), "a_to_t")) == 3 * 4


def test_only_amplified_pairs_are_listed():
    assert all(line["ci_low"] > 0 for line in score(a_to_t=0.6).tables["resample"])


def test_the_most_amplified_pair_is_listed_first():
    values = [line["score"] for line in lines("resample", score(a_to_t=0.6), "a_to_t")]
    assert values == sorted(values, reverse=True)


def test_images_of_pairs_that_a_to_t_amplified_shall_be_drawn_less_often():
    weights = [line["weight"] for line in lines("resample", score(a_to_t=0.6), "a_to_t")]
    assert all(0 < weight < 1 for weight in weights)


def test_the_weight_makes_group_and_task_independent():
    (line, *_) = lines("resample", score(a_to_t=0.6), "a_to_t")
    group, task = str(line["given"]), str(line["other"])
    of_group, of_task = (
        np.array([test(record) for record in planted(a_to_t=0.6)])
        for test in (lambda r: r.labels["race"] == group, lambda r: task in (r.model or ""))
    )
    by_hand = of_group.mean() * of_task.mean() / (of_group & of_task).mean()
    assert line["weight"] == pytest.approx(by_hand, abs=1e-4)


def test_a_captioner_that_adds_nothing_gives_nothing_to_resample():
    assert copying("per_pair").tables["resample"] == []


# Attackers.


def five_captions() -> Corpus:
    return altered(planted(300), lambda _, record: replace(record, human=record.human * 5))


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_every_human_position_has_its_own_attackers(direction):
    names = [p.name for p in compute(five_captions()).predictions if p.name.startswith(direction)]
    assert names == [f"{direction}:model:0", *(f"{direction}:human:{k}" for k in range(5))]


def test_fewer_positions_may_be_asked_for():
    names = {p.name for p in compute(five_captions(), positions=2).predictions}
    assert names == {
        f"{d}:{item}" for d in DIRECTIONS for item in ("model:0", "human:0", "human:1")
    }


def test_attackers_of_t_to_a_predict_every_task():
    predictions = next(p for p in score().predictions if p.name == "t_to_a:model:0")
    assert (predictions.classes, predictions.probs[0].shape[1]) == (OBJECTS[:4], 4)


def test_both_sides_are_tested_on_the_same_images():
    images = [p.images[0].tolist() for p in score().predictions]
    assert all(image == images[0] for image in images)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_images_without_human_captions_are_left_out(direction):
    corpus = altered(
        planted(), lambda i, item: replace(item, human=() if i % 4 < 2 else item.human)
    )
    part: Part = compute(corpus).parts[direction]
    assert (part.n_images, part.coverage) == (500, 0.5)


@pytest.mark.parametrize(("direction", "n_images"), [("a_to_t", 1000), ("t_to_a", 500)])
def test_images_of_unknown_objects_are_left_out_of_t_to_a_alone(direction, n_images):
    corpus = altered(
        planted(), lambda i, item: replace(item, objects=item.objects if i % 4 < 2 else None)
    )
    assert compute(corpus).parts[direction].n_images == n_images


def test_each_position_is_judged_by_what_its_own_captions_name():
    """A second human caption that names no object says nothing of any pair."""
    corpus = altered(planted(), lambda _, item: replace(item, human=(*item.human, "somebody")))
    name = "a_to_t:light:umbrella"
    result = compute(corpus, prior="none")
    assert estimate(result, name) == estimate(score(prior="none"), name)


def test_the_neutral_rate_is_the_share_that_names_no_group():
    corpus = altered(
        planted(), lambda i, item: replace(item, model="a hat" if i % 10 < 2 else item.model)
    )
    assert compute(corpus).parts["a_to_t"].neutral_rate == pytest.approx(0.2)


# Data sets that lack something.


def without_objects() -> Score:
    return compute(altered(planted(), lambda _, record: replace(record, objects=None)))


def test_without_objects_only_a_to_t_is_scored():
    assert {name.partition(":")[0] for name in without_objects().parts} == {"a_to_t"}


def test_without_objects_a_to_t_is_as_with_them():
    assert estimate(without_objects(), "a_to_t") == estimate(score(), "a_to_t")


def test_without_objects_a_note_says_so():
    assert any("T->A cannot be scored" in note for note in without_objects().notes)


@pytest.mark.parametrize("n", [1, 15])
def test_too_few_images_with_objects_leave_the_headline_absent(n):
    corpus = altered(
        planted(), lambda i, item: replace(item, objects=item.objects if i < n else None)
    )
    assert np.isnan(compute(corpus).parts["t_to_a"].estimate.value)


def wordless() -> Score:
    """The captioner names neither an object nor a group."""
    return compute(altered(planted(), lambda _, record: replace(record, model="somebody outside")))


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_captioner_that_names_nothing_has_no_headline(direction):
    assert np.isnan(wordless().parts[direction].estimate.value)


def test_an_absent_headline_is_explained():
    assert any("A->T cannot be scored" in note for note in wordless().notes)


def test_nothing_is_trained_for_an_absent_headline():
    assert not wordless().predictions


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_without_any_task_both_headlines_are_absent(direction):
    score = compute(planted(), exclude_tasks=tuple(TASKS.tasks))
    assert np.isnan(estimate(score, direction).value)


def test_an_excluded_task_has_no_part():
    score = compute(planted(), exclude_tasks=("person", "kite"))
    assert not any("kite" in name for name in score.parts)


def test_no_human_captions_are_refused():
    with pytest.raises(DataError, match="needs images with model and human captions"):
        compute(altered(planted(), lambda _, item: replace(item, human=())))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"aggregate": "per_pairs"}, "aggregate='per_pairs' must be one of weighted, per_pair"),
        ({"prior": "count"}, "prior='count' must be one of counts"),
        ({"rare": "merged"}, "rare='merged' must be one of merge"),
        ({"min_support": -1}, "min_support=-1 must be at least 0"),
        ({"exclude_tasks": ["kites"]}, "metric.exclude_tasks: .* did you mean 'kite'"),
    ],
)
def test_an_unknown_choice_is_refused_with_the_known_ones(options, message):
    with pytest.raises(UsageError, match=message):
        build(**options)


# Three groups, one of which no word names.


@cache
def three(a_to_t: float) -> Score:
    return compute(planted(1500, a_to_t=a_to_t, n_groups=3), attribute=RACE)


def test_three_groups_are_told_apart_by_attackers():
    predictions = next(p for p in three(0.0).predictions if p.name == "a_to_t:model:0")
    assert predictions.classes == ("light", "dark", "unsure")


def test_planted_a_to_t_is_seen_in_three_groups():
    assert estimate(three(0.6), "a_to_t").ci_low > 0


def test_planted_a_to_t_of_three_groups_leaves_t_to_a_at_zero():
    assert estimate(three(0.6), "t_to_a").value == 0


def test_a_group_that_no_word_names_is_no_class_of_t_to_a():
    assert {other for _, other in pair_names(three(0.0), "t_to_a")} == {"light", "dark"}


# The embedded data set.


def test_a_talkative_captioner_owes_its_a_to_t_to_the_priors(tmp_path):
    words = [
        "metric=dbac",
        "captioner=talkative",
        "dataset.n_images=600",
        "metric.min_support=0.02",
    ]
    cell = compose.cell([*words, "stats.resamples=20", f"paths.outputs={tmp_path}"])
    metric, corpus = cell.build("metric"), cell.corpus()
    score = metric.compute(corpus, splits=metric.draw_splits(corpus, SEEDS))
    counts, shared = (estimate(score, f"a_to_t:{prior}").value for prior in ("counts", "shared"))
    assert counts > shared + 0.2


def test_a_pair_of_few_test_captions_has_an_interval():
    """Twelve captions a pair: some resampling holds none of its few test captions."""
    score = compute(planted(120), min_support=0.05)
    pairs = {name: p for name, p in score.parts.items() if name.startswith("a_to_t:light:")}
    known = [p.estimate for p in pairs.values() if math.isfinite(p.estimate.value)]
    assert known
    assert all(math.isfinite(e.ci_low) for e in known)


NAMELESS = Attribute("race", ("light", "dark"), {"light": ["pale"], "dark": ["brown"]}, {})


def test_groups_that_no_caption_names_are_scored_by_labels():
    corpus = planted(a_to_t=0.5)
    silent = compute(corpus, attribute=NAMELESS)
    assert math.isnan(silent.parts["t_to_a"].estimate.value)
    assert any("metric.prior=labels counts groups" in note for note in silent.notes)
    labelled = compute(corpus, attribute=NAMELESS, prior="labels")
    assert math.isfinite(labelled.parts["t_to_a"].estimate.value)
    assert labelled.parts["t_to_a"].n_images == len(corpus)


def test_by_labels_a_pair_is_its_tasks_qualities():
    """P(a) and P(t) are the same on both sides, so the pairs of a task have one score."""
    parts = compute(planted(t_to_a=0.5), attribute=NAMELESS, prior="labels").parts
    by_task = {
        task: {group: parts[f"t_to_a:{task}:{group}"].estimate.value for group in NAMELESS.groups}
        for task in OBJECTS[:4]
    }
    for scores in by_task.values():
        assert scores["light"] == pytest.approx(scores["dark"], abs=1e-9)
    assert len({round(scores["light"], 6) for scores in by_task.values()}) == 4


def test_by_labels_weights_are_the_images_of_each_pair():
    corpus = planted(t_to_a=0.5)
    parts = compute(corpus, attribute=NAMELESS, prior="labels").parts
    total = weight = 0.0
    for name, part in parts.items():
        _, *pair = str(name).split(":")
        if len(pair) == 2 and pair[1] in NAMELESS.groups:
            task, group = pair
            images = sum(
                task in record.objects and record.labels["race"] == group for record in corpus
            )
            total, weight = total + images * part.estimate.value, weight + images
    assert parts["t_to_a"].estimate.value == pytest.approx(total / weight, abs=1e-6)


def test_by_labels_a_to_t_is_as_counted():
    counted, labelled = (
        compute(planted(a_to_t=0.5), prior=prior).parts["a_to_t"].estimate.value
        for prior in ("counts", "labels")
    )
    assert counted == labelled


def test_by_labels_people_as_the_captioner_score_zero():
    corpus = planted()
    people = corpus_of([Record(r.id, r.human[0], r.human, r.labels, r.objects) for r in corpus])
    parts = compute(people, attribute=NAMELESS, prior="labels").parts
    assert parts["t_to_a"].estimate.value == pytest.approx(0, abs=1e-9)
