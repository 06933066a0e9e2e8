"""DBAC on corpora whose bias is planted, in one direction at a time.

Captions are nothing but "a <word for the person> with a <object>". What attackers of A→T see is
then the object alone, and attackers of T→A see the word for the person alone.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from bias_pipeline.attack.logistic import ConvexProbe
from bias_pipeline.attack.ngram import Ngram
from bias_pipeline.corpus.attribute import Attribute, LabelMap, TaskVocabulary
from bias_pipeline.corpus.corpus import SIDES, Corpus, Record
from bias_pipeline.corpus.split_rules import HoldOut
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.metrics.attack.dbac import DBAC
from bias_pipeline.metrics.base import Number, Score
from bias_pipeline.metrics.functional.dbac import AGGREGATES, PRIORS
from bias_pipeline.metrics.value_names import DIRECTIONS
from bias_pipeline.run import compose
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate
from bias_pipeline.stats.scoring import Accuracy, Confidence, InverseCrossEntropy
from bias_pipeline.text.align import ConstantAlignment
from bias_pipeline.text.mask import MaskWords
from bias_pipeline.text.tokenize import Tokenize
from tests.metrics.places import place

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
def planted_corpus(
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
    return compute(planted_corpus(n, a_to_t=a_to_t, t_to_a=t_to_a, says=says), **options)


def estimate(score: Score, name: str) -> Estimate:
    return score.parts[name]


def change_records(corpus: Corpus, change: Callable[[int, Record], Record]) -> Corpus:
    return corpus_of([change(i, record) for i, record in enumerate(corpus)])


# Planted in one direction, seen in that direction.

MILD: dict[str, object] = {"a_to_t": 0.3}
PLACES: list[tuple[dict[str, object], str, str]] = [
    *(
        ({"a_to_t": strength, "aggregate": aggregate}, "a_to_t", "above 0")
        for aggregate in AGGREGATES
        for strength in (0.3, 0.9)
    ),
    # Weighed by captions every scoring sees a mild A→T.
    *(
        ({**MILD, "aggregate": "per_caption", "scoring": scoring}, "a_to_t", "above 0")
        for scoring in (InverseCrossEntropy(), Confidence(), Accuracy())
    ),
    # A limit of the published form. Omega is then P(t | a): what one group gains the other loses,
    # from a smaller base, so the loss weighs more in a mean of normalised differences.
    ({**MILD, "aggregate": "per_pair", "scoring": Confidence()}, "a_to_t", "below 0"),
    *(
        ({"t_to_a": 1.0, "aggregate": aggregate}, f"t_to_a:{prior}", "above 0")
        for aggregate in AGGREGATES
        for prior in PRIORS
    ),
    ({}, "a_to_t", "around 0"),  # another choice among the objects that are there
]


@pytest.mark.parametrize(("made", "part", "expected"), PLACES)
def test_what_is_planted_in_a_direction_is_seen_in_it(made, part, expected):
    assert place(estimate(score(**made), part)) == expected


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_more_of_it_moves_a_to_t_further(aggregate):
    values = [
        estimate(score(a_to_t=strength, aggregate=aggregate), "a_to_t").value
        for strength in (0.0, 0.3, 0.6, 0.9)
    ]
    assert values == sorted(values)


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("prior", PRIORS)
def test_planted_a_to_t_leaves_t_to_a_at_zero(aggregate, prior):
    assert estimate(score(a_to_t=0.9, aggregate=aggregate), f"t_to_a:{prior}").value == 0


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("prior", PRIORS)
def test_planted_t_to_a_leaves_a_to_t_as_it_was(aggregate, prior):
    """Once the words for the person are masked, the captions are those of the faithful one."""
    name = f"a_to_t:{prior}"
    planted_one, faithful = (score(t_to_a=share, aggregate=aggregate) for share in (1.0, 0.0))
    assert estimate(planted_one, name) == estimate(faithful, name)


@cache
def copying(aggregate: str) -> Score:
    """The captioner writes what people write."""
    corpus = change_records(
        planted_corpus(), lambda _, record: replace(record, model=record.human[0])
    )
    return compute(corpus, aggregate=aggregate)


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_peoples_own_captions_score_exactly_zero(direction, aggregate):
    lines = [estimate(copying(aggregate), f"{direction}:{prior}") for prior in PRIORS]
    assert {(e.value, e.ci_low, e.ci_high) for e in lines} == {(0, 0, 0)}


LOUDER: dict[str, object] = {"says": (0.8, 0.4), "n": 2000}  # twice as often as people


@pytest.mark.parametrize(
    ("made", "part", "value", "tolerance"),
    [
        *(
            ({**LOUDER, "aggregate": aggregate}, f"a_to_t:{prior}", value, tolerance)
            for aggregate in ("per_pair", "per_caption")
            for prior, value, tolerance in (
                ("counts", 1 / 3, 0.05),
                ("shared", 0, 0.03),
                ("none", 0, 0.03),
            )
        ),
        (LOUDER, "a_to_t:priors", 1 / 3, 0.05),
        (LOUDER, "a_to_t:mentions:model", 0.8, 0.03),
        (LOUDER, "a_to_t:mentions:human", 0.4, 0.03),
        ({}, "a_to_t:quality:baseline", 1 / math.log(2), 1e-6),  # of two equal groups: a coin
    ],
)
def test_numbers_are_those_that_follow_from_what_was_planted(made, part, value, tolerance):
    assert estimate(score(**made), part).value == pytest.approx(value, abs=tolerance)


@pytest.mark.parametrize(("made", "cause"), [(LOUDER, "priors"), ({"a_to_t": 0.9}, "attackers")])
def test_a_note_says_where_a_to_t_comes_from(made, cause):
    assert f"A→T is driven by the {cause}" in score(**made).notes[0]


def test_nothing_is_said_to_drive_a_score_of_which_every_interval_contains_0():
    assert not [note for note in score().notes if "driven by" in note]


# What stands beside the headlines.


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_every_number_stands_beside_the_headline(direction):
    sides = [f":{what}:{side}" for what in ("quality", "prior", "mentions") for side in SIDES]
    parts = ["", ":priors", ":quality:baseline", *(f":{prior}" for prior in PRIORS), *sides]
    values = {part: estimate(score(), direction + part).value for part in parts}
    assert [part for part, value in values.items() if not math.isfinite(value)] == []


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


@pytest.mark.parametrize("strength", [0.0, 0.9])  # whatever the captioner names
def test_every_pair_that_people_name_is_a_part(strength):
    result, pairs = score(a_to_t=strength), {(g, o) for g in TWO.groups for o in OBJECTS[:4]}
    assert pair_names(result, "a_to_t") == pairs
    assert pair_names(result, "t_to_a") == {(o, g) for g, o in pairs}


def pair_values(score: Score) -> dict[tuple[str, str], float]:
    pairs = sorted(pair_names(score, "a_to_t"))
    return {(g, o): estimate(score, f"a_to_t:{g}:{o}").value for g, o in pairs}


@pytest.mark.parametrize("aggregate", ["per_pair", "weighted"])
def test_the_headline_is_the_mean_of_its_pairs(aggregate):
    """Alike, or with the captions in which people name each as its weight."""
    result = score(a_to_t=0.3, aggregate=aggregate)
    lines = [(r.labels["race"], r.human[0]) for r in planted_corpus(a_to_t=0.3)]
    pairs = pair_values(result)
    named = [sum(item == g and o in text for item, text in lines) for g, o in pairs]
    weights = named if aggregate == "weighted" else None
    expected = np.average(list(pairs.values()), weights=weights)
    assert estimate(result, "a_to_t").value == pytest.approx(expected)


def test_the_pairs_that_were_planted_are_the_amplified_ones():
    pairs = pair_values(score(a_to_t=0.6))
    assert {pair for pair, value in pairs.items() if value > 0} == TYPICAL


@pytest.mark.parametrize(
    ("n", "scoring", "warned"),
    [
        (200, Accuracy(), ["8 of 8 pairs have fewer than 30 test captions"]),
        (4000, Accuracy(), []),
        (200, InverseCrossEntropy(), []),
    ],
)
def test_accuracies_of_small_pairs_alone_are_warned_of(n, scoring, warned):
    notes = [x for x in score(n=n, scoring=scoring).notes if "scoring=accuracy is too low" in x]
    assert len(notes) == len(warned)
    assert all(words in note for note, words in zip(notes, warned, strict=True))


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

    return change_records(planted_corpus(), change)


@pytest.mark.parametrize(("rare", "others"), [("merge", {"other tasks"}), ("drop", set())])
def test_rare_tasks_count_as_one_or_are_dropped(rare, others):
    score = compute(rare_kites(named=True), min_support=0.1, rare=rare)
    start = "a_to_t:light:"
    tasks = {name.removeprefix(start) for name in score.parts if name.startswith(start)}
    assert tasks == {"laptop", "umbrella", "bicycle"} | others


def test_a_task_that_the_captioner_never_names_is_minus_one():
    score = compute(rare_kites(named=False), min_support=0.1)
    assert estimate(score, "a_to_t:light:other tasks").value == pytest.approx(-1)


def test_attackers_of_people_beat_the_baseline_where_tasks_tell_the_group():
    human, baseline = (
        estimate(score(), f"a_to_t:quality:{n}").value for n in ("human", "baseline")
    )
    assert human > baseline


# Lists for readers: examples and images to draw less often.

STRONG = {"a_to_t": 0.6, "t_to_a": 1.0}


def lines(table: str, direction: str = "a_to_t") -> list[dict[str, object]]:
    tables = score(**{direction: STRONG[direction]}).tables
    return [dict(line) for line in tables[table] if line["direction"] == direction]


@pytest.mark.parametrize("table", ["examples", "resample"])
@pytest.mark.parametrize(
    ("direction", "fits"),
    [
        ("a_to_t", lambda line, record: line["given"] == record.labels["race"]),
        ("a_to_t", lambda line, record: line["other"] in record.model),
        ("t_to_a", lambda line, record: line["given"] in record.objects),
        ("t_to_a", lambda line, record: line["other"] == record.labels["race"]),
    ],
    ids=["of the group", "named", "with the task", "of the other group"],
)
def test_listed_images_are_those_of_the_pair(direction, fits, table):
    records = {record.id: record for record in planted_corpus(**{direction: STRONG[direction]})}
    listed = lines(table, direction)
    assert listed
    assert [line for line in listed if not fits(line, records[str(line["image_id"])])] == []


def test_examples_quote_both_sides():
    (first, *_) = lines("examples")
    record = next(r for r in planted_corpus(a_to_t=0.6) if r.id == first["image_id"])
    assert (first["model"], first["human"]) == (record.model, record.human[0])


def test_there_are_three_examples_a_pair():
    assert len(lines("examples")) == 3 * 4


def test_amplified_pairs_shall_be_drawn_less_often_the_most_amplified_first():
    listed = lines("resample")
    assert all(line["ci_low"] > 0 for line in score(a_to_t=0.6).tables["resample"])
    assert all(0 < line["weight"] < 1 for line in listed)
    assert listed == sorted(listed, key=lambda line: -line["score"])


def test_the_weight_makes_group_and_task_independent():
    (line, *_) = lines("resample")
    group, task = str(line["given"]), str(line["other"])
    of_group, of_task = (
        np.array([test(record) for record in planted_corpus(a_to_t=0.6)])
        for test in (lambda r: r.labels["race"] == group, lambda r: task in (r.model or ""))
    )
    by_hand = of_group.mean() * of_task.mean() / (of_group & of_task).mean()
    assert line["weight"] == pytest.approx(by_hand, abs=1e-4)


def test_a_captioner_that_adds_nothing_gives_nothing_to_resample():
    assert copying("per_pair").tables["resample"] == []


# Attackers.


@pytest.mark.parametrize(("options", "n_people"), [({}, 5), ({"positions": 2}, 2)])
def test_every_human_position_has_its_own_attackers(options, n_people):
    five = change_records(
        planted_corpus(300), lambda _, record: replace(record, human=record.human * 5)
    )
    names = [p.name for p in compute(five, **options).predictions]
    sides = ["model:0", *(f"human:{k}" for k in range(n_people))]
    assert names == [f"{direction}:{side}" for direction in DIRECTIONS for side in sides]


def test_attackers_of_t_to_a_predict_every_task():
    predictions = next(p for p in score().predictions if p.name == "t_to_a:model:0")
    assert (predictions.classes, predictions.probs[0].shape[1]) == (OBJECTS[:4], 4)


def test_both_sides_are_tested_on_the_same_images():
    images = [p.images[0].tolist() for p in score().predictions]
    assert all(image == images[0] for image in images)


@cache
def half_without(field: str) -> Score:
    absent = {"human": (), "objects": None}[field]
    return compute(
        change_records(
            planted_corpus(), lambda i, r: replace(r, **{field: absent}) if i % 4 < 2 else r
        )
    )


@pytest.mark.parametrize(
    ("field", "direction", "n_images"),
    [
        ("human", "a_to_t", 500),
        ("human", "t_to_a", 500),
        ("objects", "a_to_t", 1000),
        ("objects", "t_to_a", 500),
    ],
)
def test_images_that_lack_what_a_direction_needs_are_left_out(field, direction, n_images):
    part: Number = half_without(field).parts[direction]
    assert (part.n_images, part.coverage) == (n_images, n_images / 1000)


def test_each_position_is_judged_by_what_its_own_captions_name():
    """A second human caption that names no object says nothing of any pair."""
    corpus = change_records(
        planted_corpus(), lambda _, item: replace(item, human=(*item.human, "somebody"))
    )
    name = "a_to_t:light:umbrella"
    result = compute(corpus, prior="none")
    assert estimate(result, name) == estimate(score(prior="none"), name)


def test_the_neutral_rate_is_the_share_that_names_no_group():
    corpus = change_records(
        planted_corpus(), lambda i, item: replace(item, model="a hat" if i % 10 < 2 else item.model)
    )
    assert compute(corpus).parts["a_to_t"].neutral_rate == pytest.approx(0.2)


# Data sets that lack something.


@cache
def knowing_objects_of(n: int) -> Score:
    return compute(
        change_records(planted_corpus(), lambda i, r: r if i < n else replace(r, objects=None))
    )


def test_without_objects_only_a_to_t_is_scored_as_with_them():
    result = knowing_objects_of(0)
    assert {name.partition(":")[0] for name in result.parts} == {"a_to_t"}
    assert estimate(result, "a_to_t") == estimate(score(), "a_to_t")


@cache
def wordless() -> Score:
    """The captioner names neither an object nor a group."""
    return compute(
        change_records(
            planted_corpus(), lambda _, record: replace(record, model="somebody outside")
        )
    )


@pytest.mark.parametrize(
    ("result", "directions"),
    [
        (lambda: knowing_objects_of(1), ["t_to_a"]),
        (lambda: knowing_objects_of(15), ["t_to_a"]),
        (wordless, DIRECTIONS),
        (lambda: score(exclude_tasks=tuple(TASKS.tasks)), DIRECTIONS),
    ],
    ids=["one image with objects", "15 with objects", "nothing is named", "no task"],
)
def test_what_cannot_be_scored_is_absent(result, directions):
    assert all(math.isnan(estimate(result(), direction).value) for direction in directions)


@pytest.mark.parametrize(
    ("result", "direction"), [(wordless, "A→T"), (lambda: knowing_objects_of(0), "T→A")]
)
def test_an_absent_headline_is_explained(result, direction):
    assert any(f"{direction} cannot be scored" in note for note in result().notes)


def test_a_group_of_too_few_images_is_named():
    (note,) = [note for note in knowing_objects_of(15).notes if "cannot be scored" in note]
    few = "7 images of dark have captions of both sides and known objects"
    assert note == f"T→A cannot be scored: {few}; attackers need 10 of every group"


def test_nothing_is_trained_for_an_absent_headline():
    assert not wordless().predictions


def test_an_excluded_task_has_no_part():
    assert not any("kite" in name for name in score(exclude_tasks=("person", "kite")).parts)


def test_no_human_captions_are_refused():
    with pytest.raises(DataError, match="needs images with model and human captions"):
        compute(change_records(planted_corpus(), lambda _, item: replace(item, human=())))


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
def three() -> Score:
    return compute(planted_corpus(1500, a_to_t=0.6, n_groups=3), attribute=RACE)


def test_planted_a_to_t_of_three_groups_is_seen_and_leaves_t_to_a_at_zero():
    assert estimate(three(), "a_to_t").ci_low > 0
    assert estimate(three(), "t_to_a").value == 0


def test_a_group_that_no_word_names_is_a_class_of_a_to_t_alone():
    predictions = next(p for p in three().predictions if p.name == "a_to_t:model:0")
    assert predictions.classes == ("light", "dark", "unsure")
    assert {other for _, other in pair_names(three(), "t_to_a")} == {"light", "dark"}


# The embedded data set.


def test_a_talkative_captioner_owes_its_a_to_t_to_the_priors(tmp_path):
    data = ("captioner=talkative", "dataset.n_images=600", f"paths.outputs={tmp_path}")
    few = ("metric.positions=2", "metric.min_support=0.02", "stats.resamples=20")
    cell = compose.cell(["metric=dbac", *data, *few])
    metric, corpus = cell.build("metric"), cell.corpus()
    score = metric.compute(corpus, splits=metric.draw_splits(corpus, SEEDS))
    counts, shared = (estimate(score, f"a_to_t:{prior}").value for prior in ("counts", "shared"))
    assert counts > shared + 0.2


def test_a_pair_of_few_test_captions_has_an_interval():
    """Twelve captions a pair: some resampling holds none of its few test captions."""
    score = compute(planted_corpus(120), min_support=0.05)
    pairs = {name: p for name, p in score.parts.items() if name.startswith("a_to_t:light:")}
    known = [p for p in pairs.values() if math.isfinite(p.value)]
    assert known
    assert all(math.isfinite(e.ci_low) for e in known)


# Groups that no caption names.

NAMELESS = Attribute("race", ("light", "dark"), {"light": ["pale"], "dark": ["brown"]}, {})


@cache
def nameless(prior: str = "labels") -> Score:
    return compute(planted_corpus(t_to_a=0.5), attribute=NAMELESS, prior=prior)


def test_groups_that_no_caption_names_are_scored_by_labels():
    silent, labelled = nameless("counts"), nameless().parts["t_to_a"]
    assert math.isnan(estimate(silent, "t_to_a").value)
    assert any("metric.prior=labels counts groups" in note for note in silent.notes)
    assert math.isfinite(labelled.value)
    assert labelled.n_images == len(planted_corpus())


def test_by_labels_a_pair_is_its_tasks_qualities():
    """P(a) and P(t) are the same on both sides, so the pairs of a task have one score."""
    light, dark = (
        [estimate(nameless(), f"t_to_a:{task}:{group}").value for task in OBJECTS[:4]]
        for group in NAMELESS.groups
    )
    assert light == pytest.approx(dark, abs=1e-9)
    assert len({round(value, 6) for value in light}) == 4


def test_by_labels_weights_are_the_images_of_each_pair():
    pairs = [(task, group) for task in OBJECTS[:4] for group in NAMELESS.groups]
    values = [estimate(nameless(), f"t_to_a:{task}:{group}").value for task, group in pairs]
    images = [
        sum(task in r.objects and r.labels["race"] == group for r in planted_corpus(t_to_a=0.5))
        for task, group in pairs
    ]
    expected = np.average(values, weights=images)
    assert estimate(nameless(), "t_to_a").value == pytest.approx(expected, abs=1e-6)


def test_by_labels_a_to_t_is_as_counted():
    counted, labelled = (
        estimate(score(a_to_t=0.5, prior=prior), "a_to_t").value for prior in ("counts", "labels")
    )
    assert counted == labelled


def test_by_labels_people_as_the_captioner_score_zero():
    corpus = change_records(
        planted_corpus(), lambda _, record: replace(record, model=record.human[0])
    )
    parts = compute(corpus, attribute=NAMELESS, prior="labels").parts
    assert parts["t_to_a"].value == pytest.approx(0, abs=1e-9)
