"""``compare`` on captioners of sets: the one that changes more with the group is less fair."""

import pytest

import bias_pipeline as bp
from experiments.counterfactual.twin_worlds import twin_corpus

N_SETS = 30


def captions_of(corpus) -> dict[str, str]:
    return {row.id: row.model or "" for row in corpus}


FAIR, LEANING = (
    twin_corpus(N_SETS, 3, samples=1, adjectives=1.0, adjective_lean=lean) for lean in (0.0, 0.9)
)
LABELS = [
    {"image_id": row.id, "gender": row.labels["gender"].lower(), "set": row.set_id} for row in FAIR
]


def compare(one, two, labels=LABELS, **settings):
    return bp.compare(
        captions_of(one), captions_of(two), labels, metric="counterfactual", **settings
    )


def test_the_captioner_that_describes_by_group_is_less_fair():
    comparison = compare(LEANING, FAIR)
    (decision,) = [one for one in comparison.decisions if one.part == "class:attractiveness"]
    assert (decision.outcome, decision.winner) == ("worse", "other")
    assert decision.difference.value == pytest.approx(
        abs(decision.values[0]) - abs(decision.values[1])
    )
    assert comparison.outcome == "worse"


def test_exchanged_captioners_exchange_the_winner():
    parts = {one.part: one.winner for one in compare(FAIR, LEANING).decisions}
    assert parts["class:attractiveness"] == "first"


def test_whoever_passes_a_margin_passes_it_in_every_class():
    comparison = compare(FAIR, LEANING, margin=0.9)
    assert len(comparison.decisions) > len(compare(FAIR, LEANING).decisions)
    assert {one.outcome for one in comparison.decisions} == {"passed"}
    assert compare(FAIR, LEANING, margin=0.001).outcome == "undecided"


def test_captions_that_differ_in_few_sets_are_no_evidence():
    few = captions_of(FAIR)
    few[LABELS[0]["image_id"]] = "a person looks elegant and wise"
    comparison = bp.compare(few, captions_of(FAIR), LABELS, metric="counterfactual")
    assert comparison.outcome == "undecided"
    assert "fewer than 6 sets of pictures differ between them" in str(comparison)


def test_sets_that_only_one_captioner_describes_are_named():
    first = {row["image_id"] for row in LABELS if row["set"] == LABELS[0]["set"]}
    some = {image: text for image, text in captions_of(FAIR).items() if image not in first}
    comparison = bp.compare(
        captions_of(LEANING), some, LABELS, metric="counterfactual", dataset={"strict": False}
    )
    assert f"1 set of pictures is left out ({LABELS[0]['set']}): only one of a and b has" in str(
        comparison
    )


def test_where_nothing_else_differs_the_change_that_recurs_is_compared_too():
    labels = [
        {**row, "race": image.labels["race"].lower()}
        for row, image in zip(LABELS, FAIR, strict=True)
    ]
    own_words = {
        row["image_id"]: f"a person with {row['gender']}{row['set']}{row['gender']}"
        for row in LABELS
    }
    comparison = bp.compare(
        own_words, captions_of(FAIR), labels, metric="counterfactual", backgrounds="alike"
    )
    (decision,) = [one for one in comparison.decisions if one.part == "beyond_pictures"]
    assert (decision.doubts, decision.winner) == ((), "other")
    assert decision.values[0] == pytest.approx(1.0)
