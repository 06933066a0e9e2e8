"""DBAC of exact sets of objects is what loops over captions find, and what was published of it."""

from collections import Counter
from functools import cache

import numpy as np
import pytest

from bias_pipeline.corpus.corpus import SIDES
from bias_pipeline.corpus.split_rules import SameImages
from bias_pipeline.errors import UsageError
from bias_pipeline.metrics.base import Score
from bias_pipeline.run import compose
from bias_pipeline.stats.scoring import Confidence
from tests.corpora import DATA
from tests.metrics.attack.test_dbac import OBJECTS, build, planted_corpus

FOLDER = DATA / "lic" / "bias_data"
# A→T of published captioners as measured independently, per cent, and that of the sets alone.
MEASURED = {"att2in": (-46.6, -49.1), "sat": (-11.6, -12.4)}


@cache
def score() -> Score:
    corpus = planted_corpus(300, a_to_t=0.4, says=(0.9, 0.6))
    dbac = build(prior="object_set", aggregate="images", split=SameImages(), scoring=Confidence())
    return dbac.compute(corpus, splits=dbac.draw_splits(corpus, (0, 12)))


def expected_score(prior: str) -> float:
    """A→T by loops over captions, mean over seeds."""
    corpus = planted_corpus(300, a_to_t=0.4, says=(0.9, 0.6))
    codes = corpus.groupings["race"].codes
    p_group = Counter(codes.tolist())
    by_seed = []
    for seed in range(2):
        omega = {}
        for side in SIDES:
            captions = corpus.side(side)
            texts = [captions.text(row) for row in range(len(captions))]
            sets = [frozenset(o for o in OBJECTS if o in text.split()) for text in texts]
            frequency = Counter(sets)
            (guesses,) = (p for p in score().predictions if p.name == f"a_to_t:{side}:0")
            values = []
            for image, probs in zip(guesses.images[seed], guesses.probs[seed], strict=True):
                quality = 1.0 if prior == "priors" else probs[codes[image]]
                named = frequency[sets[image]] / len(sets)
                values.append(quality * named / (p_group[codes[image]] / len(codes)))
            omega[side] = np.mean(values)
        by_seed.append((omega["model"] - omega["human"]) / (omega["model"] + omega["human"]))
    return float(np.mean(by_seed))


@pytest.mark.parametrize("part", ["", "priors"])
def test_a_to_t_is_a_mean_over_captions(part):
    name = ":".join(filter(None, ["a_to_t", part]))
    assert score().parts[name].value == pytest.approx(expected_score(part), abs=1e-6)


def test_t_to_a_has_an_interval():
    assert score().parts["t_to_a"].ci_low < score().parts["t_to_a"].ci_high


@pytest.mark.parametrize("settings", [{"prior": "object_set"}, {"aggregate": "images"}])
def test_sets_are_averaged_over_images_alone(settings):
    with pytest.raises(UsageError, match=r"set metric\.prior=object_set and"):
        build(**settings)


def test_a_reader_is_told_that_attackers_saw_the_captions():
    corpus = planted_corpus(300)
    (split,) = SameImages().draw(corpus, "race", (0,))
    assert split.notes() == [
        "attackers are tested on the captions that they learnt from (split=same)"
    ]


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no captions at {FOLDER}; set BIAS_PIPELINE_DATA")
@pytest.mark.parametrize("captioner", MEASURED)
def test_published_captioners_score_as_measured_independently(captioner):
    cell = compose.cell(
        [
            "experiment=dbac_authors",
            "split=crossfit_natural",
            "alignment=none",
            "seeds=1",
            "dataset=lic",
            f"dataset.root={FOLDER}",
            f"captioner={captioner}",
            "probe.cache=null",
        ]
    )
    corpus, dbac = cell.corpus(), cell.build("metric")
    parts = dbac.compute(corpus, splits=dbac.draw_splits(corpus, (0,))).parts
    scores = [100 * parts[name].value for name in ("a_to_t", "a_to_t:priors")]
    assert scores == pytest.approx(MEASURED[captioner], abs=2)
