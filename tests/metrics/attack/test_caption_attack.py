"""LIC and Leakage on corpora whose bias is planted."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from bias_pipeline.attackers.logistic import ConvexProbe
from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.corpus.split_rules import CrossFit, HoldOut
from bias_pipeline.encoders.ngram import Ngram
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.metrics.attack.caption_attack import CaptionAttack
from bias_pipeline.metrics.attack.lic import LIC, Leakage
from bias_pipeline.metrics.base import Score
from bias_pipeline.scoring import Accuracy, InverseCrossEntropy, Lic
from bias_pipeline.stats.bootstrap import Bootstrap
from bias_pipeline.text.align import ConstantAlignment
from bias_pipeline.text.mask import MaskWords
from bias_pipeline.text.tokenize import Tokenize
from tests.corpora import GENDER, leaky_corpus, make_corpus

METRICS = [LIC, Leakage]
SEEDS = (0, 12, 456)


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


def without(corpus: Corpus, keep: Callable[[int], Record]) -> Corpus:
    return make_corpus([keep(i) for i in range(len(corpus))])


def record(corpus: Corpus, i: int, **changes: object) -> Record:
    original = corpus[i]
    return replace(original, labels={"gender": original.labels["gender"][0]}, **changes)


@pytest.mark.parametrize("kind", METRICS)
def test_a_planted_leak_is_amplification(kind):
    estimate = score(leaky_corpus(), kind).parts["score"].estimate
    assert estimate.ci_low > 0


@pytest.mark.parametrize("kind", METRICS)
def test_less_than_people_is_negative(kind):
    estimate = score(leaky_corpus(model_leak=0.5, human_leak=0.9), kind).parts["score"].estimate
    assert estimate.ci_high < 0


@pytest.mark.parametrize("kind", METRICS)
def test_a_captioner_like_people_is_neutral(kind):
    corpus = leaky_corpus(n=4000, model_leak=0.7, human_leak=0.7)
    estimate = score(corpus, kind).parts["score"].estimate
    assert estimate.ci_low <= 0 <= estimate.ci_high


@pytest.mark.parametrize("kind", METRICS)
def test_swapping_groups_changes_nothing(kind):
    corpus = leaky_corpus()
    swapped = without(
        corpus,
        lambda i: replace(
            record(corpus, i), labels={"gender": "fm"["mf".index(corpus[i].labels["gender"][0])]}
        ),
    )
    one, two = (score(c, kind).parts["score"].estimate.value for c in (corpus, swapped))
    assert one == pytest.approx(two, abs=1e-4)


def test_leakage_matches_the_planted_accuracy():
    value = score(leaky_corpus(n=2000, model_leak=0.8), Leakage).parts["model"].estimate.value
    assert value == pytest.approx(0.8, abs=0.04)


def test_lic_by_hand():
    """Two captions tell the group for sure, so the attacker's one confidence is LIC_M."""
    corpus = leaky_corpus(model_leak=1.0)
    metric = build()
    score = metric.compute(corpus, splits=metric.draw_splits(corpus, (0,)))
    predictions = next(p for p in score.predictions if p.name == "model")
    by_hand = np.mean(
        [
            p[t] if p.argmax() == t else 0
            for p, t in zip(predictions.probs[0], predictions.truth[0], strict=True)
        ]
    )
    assert score.parts["model"].estimate.value == pytest.approx(by_hand)


def test_the_score_is_the_difference_of_the_paired_sides():
    parts = score(leaky_corpus()).parts
    sides = [parts[f"{side}:paired"].estimate.value for side in ("model", "human")]
    assert parts["score"].estimate.value == pytest.approx(sides[0] - sides[1])


def test_accuracy_and_confidence_add_up_to_the_score():
    parts = score(leaky_corpus()).parts
    both = [parts[f"lic_from:{part}"].estimate.value for part in ("accuracy", "confidence")]
    assert sum(both) == pytest.approx(parts["score"].estimate.value)


@pytest.mark.parametrize("relation", ["ratio", "normalised"])
def test_other_relations_are_taken_per_seed(relation):
    parts = score(leaky_corpus(), relation=relation).parts
    assert parts["score"].estimate.value > {"ratio": 1.0, "normalised": 0.0}[relation]


def test_an_unknown_relation_is_refused():
    with pytest.raises(UsageError, match="relation='ratios' must be one of difference, ratio"):
        build(relation="ratios")


def test_both_sides_are_tested_on_the_same_images():
    result = score(leaky_corpus())
    images = [p.images[0].tolist() for p in result.predictions]
    assert all(image == images[0] for image in images)


def test_every_position_has_its_own_attacker():
    names = [p.name for p in score(leaky_corpus()).predictions]
    assert names == ["model", *(f"human:{k}" for k in range(5))]


def partly_described() -> Corpus:
    corpus = leaky_corpus()
    return without(corpus, lambda i: record(corpus, i, human=() if i % 4 < 2 else corpus[i].human))


def test_the_model_side_keeps_images_without_human_captions():
    assert score(partly_described(), split=CrossFit()).parts["model"].n_images == 400


def test_a_hold_out_counts_the_images_that_were_tested():
    result = score(leaky_corpus())
    tested = {image for one in result.predictions[0].images for image in one.tolist()}
    assert result.parts["model"].n_images == len(tested) < 400


def test_the_score_rests_on_images_with_both():
    assert score(partly_described(), split=CrossFit()).parts["score"].n_images == 200


def test_the_paired_side_has_predictions_of_its_own():
    names = [p.name for p in score(partly_described()).predictions]
    assert names == ["model", *(f"human:{k}" for k in range(5)), "model:paired"]


def test_coverage_says_which_share_that_is():
    assert score(partly_described()).parts["score"].coverage == 0.5


def test_missing_human_captions_are_noted():
    assert any("200 images" in note for note in score(partly_described()).notes)


def test_without_human_captions_there_is_no_score():
    corpus = leaky_corpus()
    result = score(without(corpus, lambda i: record(corpus, i, human=())))
    assert set(result.parts) == {"model"}


def test_without_human_captions_it_says_what_cannot_be_said():
    corpus = leaky_corpus()
    result = score(without(corpus, lambda i: record(corpus, i, human=())))
    assert "nothing can be said of amplification" in result.notes[0]


def test_fewer_than_five_captions_use_fewer_positions():
    corpus = leaky_corpus()
    result = score(without(corpus, lambda i: record(corpus, i, human=corpus[i].human[:2])))
    assert [p.name for p in result.predictions] == ["model", "human:0", "human:1"]


def test_e6_a_few_wordless_captions_are_noted():
    corpus = leaky_corpus()
    result = score(
        without(
            corpus, lambda i: record(corpus, i, model="man" if i % 10 == 0 else corpus[i].model)
        )
    )
    assert any("10% of the model captions contain no word" in note for note in result.notes)


def test_e6_mostly_wordless_captions_are_refused():
    corpus = leaky_corpus()
    with pytest.raises(DataError, match="contain no word"):
        score(without(corpus, lambda i: record(corpus, i, model="man" if i % 10 else "a dog")))


def test_an_attacker_that_learns_nothing_scores_chance():
    corpus = leaky_corpus()
    result = score(without(corpus, lambda i: record(corpus, i, model="a dog")))
    assert result.parts["model"].estimate.value == pytest.approx(result.audit["chance"])


def test_verbatim_share_of_one_caption_is_all():
    corpus = leaky_corpus()
    result = score(without(corpus, lambda i: record(corpus, i, model="a dog")))
    assert result.audit["verbatim_share"]["model"] == 1


def test_three_groups_work_and_chance_is_a_ninth():
    corpus = leaky_corpus()
    records = [
        replace(record(corpus, i), labels={"hair": "abc"[i % 3]}) for i in range(len(corpus))
    ]
    from bias_pipeline.corpus.attribute import Attribute, LabelMap

    hair = Attribute("hair", "abc", {}, {})
    labels = LabelMap("hair", {g: g for g in "abc"})
    three = Corpus.build(
        records, dataset="toy", captioner="toy", groups={"hair": (("a", "b", "c"), labels)}
    )
    result = score(three, attribute=hair, transforms=[Tokenize()])
    assert result.parts["model"].estimate.value == pytest.approx(1 / 9, abs=0.06)


def test_descriptive_parts_have_no_interval():
    assert math.isnan(score(leaky_corpus()).parts["ece:model"].estimate.ci_low)


def test_one_side_can_be_attacked_alone():
    assert set(score(leaky_corpus(), sides=["model"]).parts) == {"model"}


def test_one_side_alone_scores_as_it_does_beside_the_other():
    alone, both = (score(leaky_corpus(), sides=s) for s in (["model"], ["model", "human"]))
    assert alone.parts["model"].estimate == both.parts["model"].estimate


def test_e6_signs_are_no_words():
    corpus = leaky_corpus()
    with pytest.raises(DataError, match="contain no word"):
        score(without(corpus, lambda i: record(corpus, i, model="man . !")))


def test_e7_captions_without_a_word_of_the_list_are_noted():
    notes = score(leaky_corpus()).notes
    assert sum("is its list in the captions' language?" in note for note in notes) == 2


def test_a_score_that_is_no_fraction_says_so():
    parts = score(leaky_corpus(), scoring=InverseCrossEntropy()).parts
    assert [parts[name].unit for name in ("model", "human:paired", "score")] == ["1/nat"] * 3


def test_a_ratio_of_any_scoring_is_a_ratio():
    result = score(leaky_corpus(), scoring=InverseCrossEntropy(), relation="ratio")
    assert result.parts["score"].unit == "ratio"


@pytest.mark.parametrize(
    "options",
    [{"positions": 0}, {"wordless_limit": -0.1}, {"wordless_limit": 2}, {"sides": []}],
)
def test_odd_settings_are_refused(options):
    with pytest.raises(UsageError, match=next(iter(options))):
        build(**options)


MOODS = ("calm", "glad", "sad")


def moody_corpus() -> Corpus:
    """Images of three groups, of which the last is by far the smallest."""
    labels = LabelMap("mood", {mood: mood for mood in MOODS})
    records = [
        Record(f"{mood}{i}", f"a {('sea', 'sun', 'rain')[k]} {i}", (f"a hill {i}",), {"mood": mood})
        for k, (mood, n) in enumerate(zip(MOODS, (60, 50, 20), strict=True))
        for i in range(n)
    ]
    groups = {"mood": (MOODS, labels)}
    return Corpus.build(records, dataset="toy", captioner="toy", groups=groups)


@pytest.mark.parametrize(
    ("kind", "chance"), [(LIC, "a uniform guess scores 0.111"), (Leakage, "scores 0.333")]
)
def test_of_several_groups_chance_is_told(kind, chance):
    mood = Attribute("mood", MOODS, {}, {})
    notes = score(moody_corpus(), kind, attribute=mood, transforms=[Tokenize()]).notes
    assert any(chance in note for note in notes)


def test_of_several_groups_the_images_after_balancing_are_told():
    """A tenth of the smallest group is tested, and as many of the others."""
    mood = Attribute("mood", MOODS, {}, {})
    notes = score(moody_corpus(), attribute=mood, transforms=[Tokenize()]).notes
    sentence = "learns from 18 images of each and is tested on 2 (fewest: sad)"
    assert any(sentence in note for note in notes)


def test_two_groups_need_no_such_note():
    assert not any("a uniform guess" in note for note in score(leaky_corpus()).notes)
