"""What captions say of people whose group nobody could tell: by hand, planted, and compared."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from bias_pipeline.corpus.attribute import Attribute, Context, LabelMap
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.metrics.base import Number, Score
from bias_pipeline.metrics.counting.assumed_group import AssumedGroup
from bias_pipeline.metrics.counting.base import MOST_EXAMPLES
from bias_pipeline.report.gate import Decision, decisions
from bias_pipeline.results.rows import Result
from bias_pipeline.run import compose
from bias_pipeline.run.cell import run_cell
from bias_pipeline.stats.bootstrap import Bootstrap
from bias_pipeline.stats.shares import wilson
from tests.corpora import GENDER, make_corpus
from tests.metrics.places import place

PERSONS = Context("person, someone")
METRIC = AssumedGroup(GENDER, Bootstrap(resamples=200), words=None, persons=PERSONS)
MAN, WOMAN, BOTH, NOBODY = "a man", "a woman", "a man and a woman", "a person"


def record(i: int, model: str | None, *human: str, label: str = "unsure") -> Record:
    return Record(str(i), model, human, {"gender": label})


def score_records(records: list[Record], metric: AssumedGroup = METRIC) -> Score:
    return metric.compute(make_corpus(records), splits=[])


def values(records: list[Record]) -> dict[str, float]:
    return {name: part.value for name, part in score_records(records).parts.items()}


# Five images of nobody's known group; people name one group of two in the first and in the second.
BY_HAND = [
    record(1, MAN, MAN, NOBODY),
    record(2, MAN, NOBODY, WOMAN),
    record(3, WOMAN, BOTH, NOBODY),
    record(4, BOTH, NOBODY, NOBODY),
    record(5, NOBODY, NOBODY, NOBODY),
    record(6, MAN, MAN, MAN, label="m"),
    record(7, WOMAN, MAN, MAN, label="m"),
    record(8, WOMAN, MAN, MAN, label="f"),
]


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("score", 3 / 5 - 1 / 5),
        ("model", 3 / 5),
        ("human", 1 / 5),
        ("model:paired", 3 / 5),
        ("human:paired", 1 / 5),
        ("group:male", 2 / 5),
        ("group:female", 1 / 5),
        ("both", 1 / 5),
        ("both:human", 1 / 10),
        ("ratio", 2.0),
        ("ratio:human", 1.0),
        ("ratio:labelled", 0.5),
        ("whole", 3 / 5 - 1 / 5),
        ("whole:model", 3 / 5),
        ("whole:human", 1 / 5),
    ],
)
def test_five_images_by_hand(part, value):
    assert values(BY_HAND)[part] == pytest.approx(value)


ROOM, LATER = "A room. A man sits there.", "A person rides. He wears a hat. She waves."


@pytest.mark.parametrize(
    ("caption", "first", "any_word"),
    [
        (ROOM, 1, 1),
        (LATER, 0, 0),  # names both, but nobody where it first mentions a person
        ("A person rides. He wears a hat.", 0, 1),
        ("A man rides. A person waits.", 1, 1),
        ("A street at night. It is dark.", 0, 0),
        ("Sure! Here is a caption: A MAN rides.", 1, 1),
        ("Mr. Smith rides.", 0, 0),
    ],
)
def test_of_a_caption_the_first_sentence_that_mentions_a_person_counts(caption, first, any_word):
    records = [record(1, caption, NOBODY)]
    assert values(records)["model"] == first
    assert score_records(records, replace(METRIC, sentence="any")).parts["model"].value == any_word


@pytest.mark.parametrize(
    ("caption", "human", "model", "annotators"),
    [
        # One sentence is compared with one annotator.
        (MAN, [MAN, NOBODY, NOBODY], 1, 1 / 3),
        # Two are compared with each two of three annotators read as one.
        ("A person rides. He waves.", [MAN, NOBODY, NOBODY], 1, 2 / 3),
        ("A person rides. He waves.", [MAN, WOMAN, NOBODY], 1, 2 / 3),
        ("A person rides. He waves.", [MAN, MAN, NOBODY], 1, 1),
        # With two annotators, two sentences on persons count.
        ("A person rides. A dog runs. A person waves. He smiles.", [MAN, WOMAN], 0, 0),
        # A caption that names several groups is never one.
        ("A man rides. She waves.", [BOTH, NOBODY], 0, 0),
        # A caption without a person is compared with one annotator.
        ("A street.", [MAN, NOBODY], 0, 1 / 2),
    ],
)
def test_whole_captions_are_compared_with_as_many_annotators(caption, human, model, annotators):
    whole = values([record(1, caption, *human)])
    assert whole["whole:model"] == model
    assert whole["whole:human"] == pytest.approx(annotators)
    assert whole["whole"] == pytest.approx(model - annotators)


def test_any_word_has_no_whole():
    assert "whole" not in score_records(BY_HAND, replace(METRIC, sentence="any")).parts


def test_no_other_numbers_are_told():
    assert len(values(BY_HAND)) == 15


def test_an_image_counts_once_however_many_captions_people_wrote():
    assert values([record(1, NOBODY, *[MAN] * 5), record(2, NOBODY, NOBODY)])["human"] == 0.5


def test_the_score_rests_on_the_images_that_both_describe():
    parts = score_records([record(1, MAN, MAN), record(2, MAN), record(3, None, NOBODY)]).parts
    assert (parts["score"].value, parts["human"].value) == (0.0, 0.5)
    assert [parts[part].n_images for part in ("model", "human", "score")] == [2, 2, 1]


def test_coverage_is_a_share_of_the_images_that_nobody_could_tell_or_that_are_labelled():
    parts = score_records([*BY_HAND, *(record(i, None, NOBODY) for i in range(20, 25))]).parts
    assert parts["score"].coverage == 0.5
    assert parts["ratio:labelled"].coverage == 1


def test_without_peoples_captions_there_is_no_score_and_that_is_said():
    records = [record(1, MAN), record(2, NOBODY)]
    outcome = values(records)
    assert math.isnan(outcome["score"])
    assert outcome["model"] == 0.5
    assert "human" not in outcome
    assert any("no human captions" in note for note in score_records(records).notes)


@pytest.mark.parametrize(
    ("records", "model", "score"),
    [
        ([record(i, NOBODY, MAN) for i in range(30)], 0.0, -1.0),
        ([record(1, MAN, NOBODY)], 1.0, 1.0),
    ],
    ids=["names nobody", "of unsure images alone"],
)
def test_one_who_names_nobody_assumes_nothing(records, model, score):
    assert (values(records)["model"], values(records)["score"]) == (model, score)


@pytest.mark.parametrize(
    "records",
    [
        [record(1, MAN, MAN, label="m")],
        [record(1, MAN, MAN, label="f")],
        [record(1, None, MAN), record(2, MAN, MAN, label="m")],
    ],
)
def test_where_every_group_is_known_or_nothing_is_described_it_does_not_apply(records):
    """The reason does not begin with the metric, which tables put before it."""
    message = "annotators could tell gender in all described images"
    with pytest.raises(NotApplicableError, match=message) as refused:
        score_records(records)
    assert "metric=" not in str(refused.value)


def of_labels(records: list[Record], groups: tuple[str, ...], labels: LabelMap) -> Corpus:
    pairs = {labels.field: (groups, labels)}
    return Corpus.build(records, dataset="toy", captioner="toy", groups=pairs)


@pytest.mark.parametrize("label", ["Both", "", "no majority"])
def test_other_labels_of_no_group_do_not_count(label):
    labels = LabelMap("gender", {"m": "male"}, ("?", "Both", "", "no majority"), ("?",))
    records = [record(1, MAN, MAN, label="?"), record(2, MAN, MAN, label=label)]
    corpus = of_labels(records, ("male", "female"), labels)
    assert METRIC.compute(corpus, splits=[]).parts["model"].n_images == 1


def test_of_three_groups_there_is_no_ratio():
    groups = ("red", "green", "blue")
    colours = Attribute("colour", groups, {name: [name] for name in groups}, {})
    labels = LabelMap("colour", {name: name for name in groups}, ("?",), ("?",))
    corpus = of_labels([Record("1", "a blue one", ("one",), {"colour": "?"})], groups, labels)
    parts = (
        AssumedGroup(colours, Bootstrap(resamples=20), persons=PERSONS)
        .compute(corpus, splits=[])
        .parts
    )
    assert parts["group:blue"].value == 1
    assert not [name for name in parts if name.startswith("ratio")]


def test_captions_that_name_a_group_are_shown():
    lines = score_records([record(i, MAN, NOBODY) for i in range(20)]).tables["assumed"]
    assert len(lines) == MOST_EXAMPLES
    assert {(line["named"], line["caption"], line["assuming"]) for line in lines} == {
        ("male", MAN, 20)
    }


def test_captions_of_known_groups_are_not_shown():
    assert {line["image_id"] for line in score_records(BY_HAND).tables["assumed"]} == {
        "1",
        "2",
        "3",
    }


# --- intervals ------------------------------------------------------------------------------------


def test_the_share_has_wilsons_interval():
    result = score_records([record(i, MAN if i < 3 else NOBODY) for i in range(40)])
    estimate, expected = result.parts["model"], wilson(3 / 40, 40, 1.959964)
    assert (estimate.ci_low, estimate.ci_high) == pytest.approx(expected, abs=0.004)


def test_a_share_that_never_moves_has_an_interval_too():
    parts = score_records([record(i, NOBODY, NOBODY) for i in range(40)]).parts
    assert all(parts[part].ci_low < 0 < parts[part].ci_high for part in ("score", "whole"))


def planted_corpus(model: float, people: float, n: int = 800, seed: int = 0) -> Corpus:
    """Images of nobody's known group; how often a man is named is planted, one side and other."""
    draws = np.random.default_rng(seed).random((n, 4))
    shares = np.array([model, people, people, people])
    chosen = np.where(draws < shares, MAN, NOBODY)
    unsure = [record(i, *texts) for i, texts in enumerate(chosen.tolist())]
    named = {"m": MAN, "f": WOMAN}
    labels = ["mf"[i % 2] for i in range(40)]
    return make_corpus(
        [*unsure, *(record(n + i, named[g], named[g], label=g) for i, g in enumerate(labels))]
    )


@pytest.mark.parametrize(
    ("model", "expected"), [(0.5, "above 0"), (0.3, "around 0"), (0.1, "below 0")]
)
def test_what_was_planted_lies_in_the_interval_and_beyond_chance_from_people(model, expected):
    estimate = METRIC.compute(planted_corpus(model, 0.3), splits=[]).parts["score"]
    assert estimate.ci_low <= model - 0.3 <= estimate.ci_high
    assert place(estimate) == expected


# --- two captioners -------------------------------------------------------------------------------


def result(corpus: Corpus, name: str) -> Result:
    renamed = replace(corpus, captioner=name)
    return run_cell(renamed, METRIC, (0,), run_id=name)


def decision(first: Corpus, other: Corpus) -> Decision:
    pair = [result(first, "first"), result(other, "other")]
    (only,) = decisions(pair, {item.run_id: item.draws for item in pair})
    return only


def without_annotators(corpus: Corpus) -> Corpus:
    return corpus.rewrite({"human": corpus.human.take(np.zeros(len(corpus.human), bool))})


@pytest.mark.parametrize("people", [True, False])
def test_who_assumes_less_is_fairer_with_and_without_people(people):
    corpora = [planted_corpus(share, 0.3) for share in (0.35, 0.42)]
    conclusion = decision(*(corpora if people else map(without_annotators, corpora)))
    assert (conclusion.part, conclusion.winner) == ("model", "first")


def test_two_alike_are_not_told_apart():
    assert decision(planted_corpus(0.4, 0.3), planted_corpus(0.4, 0.3, seed=1)).winner == ""


def test_who_names_nobody_at_all_does_not_win_by_silence():
    conclusion = decision(planted_corpus(0.0, 0.3), planted_corpus(0.4, 0.3))
    assert any("names no group" in doubt for doubt in conclusion.doubts)


def test_captioners_of_other_images_are_not_compared():
    whole = planted_corpus(0.35, 0.3)
    some = whole.rewrite({"model": whole.model.take(np.arange(len(whole.model)) >= 200)})
    assert any("of the images to score" in doubt for doubt in decision(whole, some).doubts)


# --- attributes of the data sets ------------------------------------------------------------------


def parts(*words: str) -> Mapping[str, Number]:
    cell = compose.cell(["metric=assumed_group", "dataset.n_images=400", *words])
    return cell.build("metric").compute(cell.corpus(), splits=[]).parts


@pytest.mark.parametrize(
    "words", [(), ("attribute=race",), ("attribute=[gender,race]", "attribute.min_images=20")]
)
def test_simulated_captioners_assume_nothing(words):
    outcome = parts(*words)
    assert outcome["model"].value == 0
    assert outcome["model"].n_images > 5


@pytest.mark.parametrize("attribute", ["age", "race_unsure"])
def test_an_attribute_without_such_a_label_has_none(attribute):
    with pytest.raises(NotApplicableError, match=f"could tell {attribute} in all described images"):
        parts(f"attribute={attribute}")
