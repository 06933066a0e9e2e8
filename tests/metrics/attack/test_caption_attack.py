"""LIC and Leakage on corpora whose bias is planted."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from bias_pipeline.attack.logistic import ConvexProbe
from bias_pipeline.attack.ngram import Ngram
from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.corpus.split_rules import CrossFit, HoldOut
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.metrics.attack.caption_attack import CaptionAttack
from bias_pipeline.metrics.attack.lic import LIC, Leakage
from bias_pipeline.metrics.base import Score
from bias_pipeline.run.cell import run_cell
from bias_pipeline.stats.bootstrap import Bootstrap
from bias_pipeline.stats.scoring import Accuracy, InverseCrossEntropy, Lic
from bias_pipeline.text.align import ConstantAlignment
from bias_pipeline.text.mask import MaskWords
from bias_pipeline.text.tokenize import Tokenize
from tests.corpora import GENDER, leaky_corpus, make_corpus
from tests.metrics.places import place

METRICS = [LIC, Leakage]
SEEDS = (0, 12, 456)
EVERY_POSITION = ["model", *(f"human:{k}" for k in range(5))]


def build(kind: type[CaptionAttack] = LIC, **options: object) -> CaptionAttack:
    settings: dict[str, object] = {
        "attribute": GENDER,
        "transforms": [Tokenize(), MaskWords(GENDER.words, "<gender>"), ConstantAlignment()],
        "probe": ConvexProbe(Ngram(), inverse_penalty=1.0),
        "split": HoldOut(),
        "scoring": Lic() if kind is LIC else Accuracy(),
        "stats": Bootstrap(resamples=200),
    }
    return kind(**{**settings, **options})


def score(corpus: Corpus, kind: type[CaptionAttack] = LIC, **options: object) -> Score:
    metric = build(kind, **options)
    return metric.compute(corpus, splits=metric.draw_splits(corpus, SEEDS))


@cache
def leaky() -> Score:
    return score(leaky_corpus())


def plain_records() -> list[Record]:
    corpus = leaky_corpus()
    return [replace(r, labels={"gender": r.labels["gender"][0]}) for r in corpus]


def change_records(change: Callable[[int, Record], Record]) -> Corpus:
    """The leaky corpus, each image changed."""
    return make_corpus([change(i, record) for i, record in enumerate(plain_records())])


def mute(i: int, record: Record) -> Record:
    return replace(record, human=())


def half_mute(i: int, record: Record) -> Record:
    return replace(record, human=() if i % 4 < 2 else record.human)


def two_captions(i: int, record: Record) -> Record:
    return replace(record, human=record.human[:2])


def tenth_wordless(i: int, record: Record) -> Record:
    return replace(record, model="man" if i % 10 == 0 else record.model)


@pytest.mark.parametrize("kind", METRICS)
@pytest.mark.parametrize(
    ("leaks", "expected"),
    [
        ({"model_leak": 0.9, "human_leak": 0.6}, "above 0"),
        ({"model_leak": 0.5, "human_leak": 0.9}, "below 0"),
        ({"model_leak": 0.7, "human_leak": 0.7, "n": 4000}, "around 0"),
    ],
    ids=["more than people", "less than people", "as people"],
)
def test_a_planted_leak_is_amplification_if_it_is_more_than_peoples(leaks, expected, kind):
    assert place(score(leaky_corpus(**leaks), kind).parts["score"]) == expected


@pytest.mark.parametrize("kind", METRICS)
def test_swapping_groups_changes_nothing(kind):
    other = {"m": "f", "f": "m"}
    swapped = change_records(lambda _, r: replace(r, labels={"gender": other[r.labels["gender"]]}))
    one, two = (score(c, kind).parts["score"].value for c in (leaky_corpus(), swapped))
    assert one == pytest.approx(two, abs=1e-4)


def test_leakage_matches_the_planted_accuracy():
    value = score(leaky_corpus(n=2000, model_leak=0.8), Leakage).parts["model"].value
    assert value == pytest.approx(0.8, abs=0.04)


def test_lic_by_hand():
    """Two captions tell the group for sure, so the attacker's one confidence is LIC_M."""
    corpus = leaky_corpus(model_leak=1.0)
    metric = build()
    score = metric.compute(corpus, splits=metric.draw_splits(corpus, (0,)))
    predictions = next(p for p in score.predictions if p.name == "model")
    pairs = zip(predictions.probs[0], predictions.truth[0], strict=True)
    by_hand = np.mean([p[t] if p.argmax() == t else 0 for p, t in pairs])
    assert score.parts["model"].value == pytest.approx(by_hand)


def test_the_score_is_the_difference_of_the_paired_sides_and_comes_from_accuracy_and_confidence():
    values = {name: part.value for name, part in leaky().parts.items()}
    assert values["score"] == pytest.approx(values["model:paired"] - values["human:paired"])
    assert values["score"] == pytest.approx(
        values["lic_from:accuracy"] + values["lic_from:confidence"]
    )


@pytest.mark.parametrize(
    ("relation", "words"), [("ratio", "above 1, "), ("difference", "above 0, ")]
)
def test_a_table_says_above_which_value_captions_leak_more(relation, words):
    result = run_cell(leaky_corpus(), build(relation=relation), SEEDS, run_id="x")
    assert words in result.manifest["metric"]["direction"]


@pytest.mark.parametrize(("relation", "neutral"), [("ratio", 1.0), ("normalised", 0.0)])
def test_other_relations_are_taken_per_seed(relation, neutral):
    assert score(leaky_corpus(), relation=relation).parts["score"].value > neutral


def test_both_sides_are_tested_on_the_same_images():
    images = [p.images[0].tolist() for p in leaky().predictions]
    assert all(image == images[0] for image in images)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda _, record: record, EVERY_POSITION),
        (half_mute, [*EVERY_POSITION, "model:paired"]),
        (two_captions, ["model", "human:0", "human:1"]),
    ],
)
def test_every_position_and_the_paired_side_have_attackers_of_their_own(change, names):
    assert [p.name for p in score(change_records(change)).predictions] == names


def test_the_score_rests_on_images_with_both_and_the_model_side_on_all():
    parts = score(change_records(half_mute), split=CrossFit()).parts
    assert (parts["score"].n_images, parts["score"].coverage) == (200, 0.5)
    assert parts["model"].n_images == 400


def test_a_hold_out_counts_the_images_that_were_tested():
    tested = {image for one in leaky().predictions[0].images for image in one.tolist()}
    assert leaky().parts["model"].n_images == len(tested) < 400


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (half_mute, "200 images"),
        (mute, "amplification cannot be measured"),
        (tenth_wordless, "10% of the model captions contain no word"),
    ],
    ids=["half without people", "without people", "wordless"],
)
def test_what_captions_lack_is_noted(change, note):
    assert any(note in one for one in score(change_records(change)).notes)


def test_captions_without_a_word_of_the_list_are_noted():
    assert (
        sum(
            note.endswith("caption contains a word of attribute 'gender'") for note in leaky().notes
        )
        == 2
    )


def test_without_human_captions_there_is_no_score():
    assert set(score(change_records(mute)).parts) == {"model"}


def test_without_any_caption_nothing_is_scored():
    with pytest.raises(DataError, match="no image of a group of 'gender' has a caption"):
        score(change_records(lambda _, record: replace(record, model=None, human=())))


def test_one_side_alone_scores_as_it_does_beside_the_other():
    alone, both = (score(leaky_corpus(), sides=s).parts for s in (["model"], ["model", "human"]))
    assert set(alone) == {"model"}
    assert alone["model"] == both["model"]


@pytest.mark.parametrize("text", ["man", "man . !"], ids=["masked", "signs"])
def test_mostly_wordless_captions_are_refused(text):
    with pytest.raises(DataError, match="contain no word"):
        score(change_records(lambda i, r: replace(r, model=text if i % 10 else "a dog")))


def test_one_caption_for_all_is_verbatim_and_scores_chance():
    result = score(change_records(lambda _, record: replace(record, model="a dog")))
    assert result.parts["model"].value == pytest.approx(result.audit["chance"])
    assert result.audit["verbatim_share"]["model"] == 1


def test_descriptive_parts_have_no_interval():
    assert math.isnan(leaky().parts["ece:model"].ci_low)


@pytest.mark.parametrize(
    ("part", "relation", "unit"),
    [
        ("model", "difference", "1/nat"),
        ("human:paired", "difference", "1/nat"),
        ("score", "difference", "1/nat"),
        ("score", "ratio", "ratio"),
    ],
)
def test_a_score_that_is_no_fraction_says_so(part, relation, unit):
    parts = score(leaky_corpus(), scoring=InverseCrossEntropy(), relation=relation).parts
    assert parts[part].unit == unit


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"relation": "ratios"}, "relation='ratios' must be one of difference, ratio"),
        ({"positions": 0}, "positions"),
        ({"wordless_limit": -0.1}, "wordless_limit"),
        ({"wordless_limit": 2}, "wordless_limit"),
        ({"sides": []}, "sides"),
    ],
)
def test_odd_settings_are_refused(options, message):
    with pytest.raises(UsageError, match=message):
        build(**options)


# Several groups.


def of_groups(name: str, groups: tuple[str, ...], records: list[Record]) -> Corpus:
    labels = LabelMap(name, {group: group for group in groups})
    return Corpus.build(records, dataset="toy", captioner="toy", groups={name: (groups, labels)})


def test_three_groups_work_and_chance_is_a_ninth():
    records = [replace(r, labels={"hair": "abc"[i % 3]}) for i, r in enumerate(plain_records())]
    three = of_groups("hair", ("a", "b", "c"), records)
    result = score(three, attribute=Attribute("hair", "abc", {}, {}), transforms=[Tokenize()])
    assert result.parts["model"].value == pytest.approx(1 / 9, abs=0.06)


MOODS = ("calm", "glad", "sad")


@cache
def moody(kind: type[CaptionAttack], **options: object) -> Score:
    """Images of three groups, of which the last is by far the smallest."""
    records = [
        Record(f"{mood}{i}", f"a {('sea', 'sun', 'rain')[k]} {i}", (f"a hill {i}",), {"mood": mood})
        for k, (mood, n) in enumerate(zip(MOODS, (60, 50, 20), strict=True))
        for i in range(n)
    ]
    mood = Attribute("mood", MOODS, {}, {})
    settings = {"attribute": mood, "transforms": [Tokenize()], **options}
    return score(of_groups("mood", MOODS, records), kind, **settings)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (LIC, "a uniform guess scores 11.1 %"),
        (Leakage, "scores 33.3 %"),
        # A tenth of the smallest group is tested, and as many of the others.
        (LIC, "learns from 18 images of each group and is tested on 2 (the smallest group is sad)"),
    ],
)
def test_of_several_groups_chance_and_the_images_after_balancing_are_told(kind, words):
    assert any(words in note for note in moody(kind).notes)


def test_chance_of_an_inverse_entropy_is_in_no_per_cent():
    (note,) = [n for n in moody(LIC, scoring=InverseCrossEntropy()).notes if "uniform guess" in n]
    assert "a uniform guess scores 0.91;" in note


def test_two_groups_need_no_such_note():
    assert not any("a uniform guess" in note for note in leaky().notes)
