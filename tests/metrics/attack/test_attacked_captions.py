"""LIC and Leakage share attackers, whichever of the two is scored first."""

import pytest

from bias_pipeline.attack.logistic import ConvexProbe
from bias_pipeline.corpus.split_rules import CrossFit
from bias_pipeline.metrics.attack.attacked_captions import attacked_captions
from bias_pipeline.metrics.attack.caption_attack import CaptionAttack
from bias_pipeline.metrics.attack.lic import LIC, Leakage
from bias_pipeline.metrics.base import Score
from bias_pipeline.run import compose, corpora
from bias_pipeline.text.mask import MaskWords
from tests.corpora import GENDER, leaky_corpus
from tests.metrics.attack.test_caption_attack import SEEDS, build, score

EQUAL_SPEECH = ("alignment=matched", "encoder.order=1", "dataset.n_images=400", "seeds=1")
FEW = ("stats.resamples=50", "captioner=stereotyper")


def at_equal_speech(kind: str) -> Score:
    cell = compose.cell([f"metric={kind}", *EQUAL_SPEECH, *FEW])
    metric, corpus = cell.build("metric"), cell.corpus()
    metric.probe.cache = None
    return metric.compute(corpus, splits=metric.draw_splits(corpus, cell.seeds))


def numbers(score: Score) -> dict[str, tuple[str, str, str]]:
    parts = score.parts.items()
    return {
        str(name): (repr(part.value), repr(part.ci_low), repr(part.neutral_rate))
        for name, part in parts
    }


@pytest.mark.parametrize("order", [("lic", "leakage"), ("leakage", "lic")])
def test_the_second_metric_trains_nothing_and_has_the_numbers_of_one_that_is_alone(
    order, monkeypatch
):
    corpora._corpora.clear()
    at_equal_speech(order[0])
    with monkeypatch.context() as patch:
        patch.setattr(ConvexProbe, "train", None)
        shared = at_equal_speech(order[1])
    assert sum(one.training.trained for one in shared.predictions) == 0
    corpora._corpora.clear()  # another corpus of the same images shares nothing
    alone = at_equal_speech(order[1])
    assert {"matched:people", "matched:alike", "learning:half"} <= {*shared.parts}
    assert numbers(shared) == numbers(alone)
    assert shared.notes == alone.notes
    assert [one.name for one in shared.predictions] == [one.name for one in alone.predictions]
    counts = [
        [one.training.trained + one.training.cached for one in score.predictions]
        for score in (shared, alone)
    ]
    assert counts[0] == counts[1]


class Slow(ConvexProbe):
    """Trained as the others are, but too slow for learning curves."""

    quick = False


@pytest.mark.parametrize(
    "options",
    [
        {"transforms": [MaskWords(GENDER.words, "<gender>")]},
        {"split": CrossFit(folds=2)},
        {"positions": 1},
        {"sides": ["model"]},
        {"learning_curve": False},
        {"probe": Slow(build().probe.encoder, inverse_penalty=1.0)},
        {"probe": ConvexProbe(build().probe.encoder, inverse_penalty=0.5)},
    ],
)
def test_what_changes_a_prediction_is_not_shared(options):
    corpus = leaky_corpus()
    metrics = build(), build(Leakage), build(Leakage, **options)
    attacked = [
        attacked_captions(each, each.transforms, corpus, each.draw_splits(corpus, SEEDS))
        for each in metrics
    ]
    assert attacked[0] is attacked[1]
    assert attacked[2] is not attacked[0]


def test_a_metric_with_attackers_of_its_own_shares_none():
    class Further(LIC):
        def extra_parts(self, attack, images):
            del attack, images
            return {}

    corpus = leaky_corpus()
    kinds: list[type[CaptionAttack]] = [Further, Further, LIC]
    attacked = [
        attacked_captions(each, each.transforms, corpus, each.draw_splits(corpus, SEEDS))
        for each in map(build, kinds)
    ]
    assert len({id(each) for each in attacked}) == 3


def test_a_second_score_says_that_nothing_was_trained_again():
    corpus = leaky_corpus()
    first, again = score(corpus), score(corpus)
    assert [one.training.trained for one in again.predictions] == [0] * len(again.predictions)
    assert numbers(first) == numbers(again)
