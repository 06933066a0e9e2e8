"""Attackers of half and of a quarter of the images: how a score grows with their number."""

import numpy as np
import pytest

from bias_pipeline.attack.logistic import ConvexProbe
from bias_pipeline.attack.ngram import Ngram
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.split_rules import CrossFit
from bias_pipeline.metrics.attack.dbac import DBAC
from bias_pipeline.metrics.attack.extra_parts import learning_note, smaller_shares
from bias_pipeline.metrics.attack.lic import LIC
from bias_pipeline.metrics.base import Metric, Number, Score
from bias_pipeline.run import compose
from bias_pipeline.stats.bootstrap import Bootstrap
from bias_pipeline.stats.scoring import Lic
from bias_pipeline.text.mask import MaskWords
from bias_pipeline.text.tokenize import Tokenize
from tests.corpora import GENDER
from tests.metrics.attack.test_equal_speech import SEEDS, add_stereotype, corpus, keep_words

FEW = "stats.resamples=50"
NOT_LEVEL = ": not level, so compare captioners on equally many images"


def build(**options: bool) -> LIC:
    return LIC(
        GENDER,
        [Tokenize(), MaskWords(GENDER.words, "<gender>")],
        ConvexProbe(Ngram(order=1), inverse_penalty=1.0),
        CrossFit(),
        Lic("groups"),
        Bootstrap(resamples=200),
        **options,
    )


def curve_with(*values: float, unit: str = "fraction") -> dict[str, Number]:
    """Of all, half and a quarter of the images."""
    parts = [Number(value, n_seeds=1, unit=unit, n_images=100, coverage=1.0) for value in values]
    return dict(zip(("all", "half", "quarter"), parts, strict=True))


def score(captions: Corpus, **options: bool) -> Score:
    metric = build(**options)
    return metric.compute(captions, splits=metric.draw_splits(captions, SEEDS))


def curve_of(score: Score, whose: str = "") -> str:
    """The note on the learning curve."""
    (note,) = [note for note in score.notes if note.startswith(f"learning curve{whose}")]
    return note


def test_attackers_of_fewer_images_see_less_of_a_planted_bias_and_a_note_says_so():
    """An amplifier of the embedded data set; pairs of words take many images to learn."""
    cell = compose.cell(["metric=lic", "captioner=amplifier", "seeds=1", FEW])
    score = of_metric(cell.build("metric"), cell.corpus())
    parts = [score.parts[name] for name in ("score", "learning:half", "learning:quarter")]
    whole, half, quarter = (part.value for part in parts)
    assert whole > half + 0.01 > quarter + 0.02
    assert parts[2].n_images == parts[0].n_images  # tested on all
    assert f"{100 * half:.1f} with half" in curve_of(score)
    assert curve_of(score).endswith(NOT_LEVEL)


def test_a_group_without_images_leaves_the_others_their_curve():
    assert smaller_shares(np.repeat([1, 2], 100)) == smaller_shares(np.repeat([0, 1], 100))


def test_they_leave_the_score_as_it_is():
    captions = corpus(add_stereotype)
    scores = [score(captions, learning_curve=curve).parts["score"] for curve in (True, False)]
    assert scores[0].value == scores[1].value


def test_who_has_no_bias_has_a_level_curve():
    assert curve_of(score(corpus(keep_words))).endswith(": level")


@pytest.mark.parametrize("values", [(0.05, 0.03, 0.02), (0.02, 0.03, 0.05)], ids=["up", "down"])
def test_a_score_that_rises_or_falls_with_the_images_is_not_level(values):
    assert learning_note(curve_with(*values), 0.009)[0].endswith(NOT_LEVEL)


def test_what_noise_explains_is_level():
    (note,) = learning_note(curve_with(0.05, 0.03, 0.024), 0.009)
    assert note.endswith(": level")


def test_a_ratio_is_in_no_per_cent():
    (note,) = learning_note(curve_with(1.44, 1.4, 1.2, unit="ratio"), 0.01)
    assert note.startswith("learning curve: 1.44 with all training images, 1.40 with half")


def test_scores_that_look_the_same_are_level_however_little_they_vary():
    (note,) = learning_note(curve_with(2e-6, 1e-6, -3e-6), 1e-7)
    assert note == (
        "learning curve: 0.0 with all training images, 0.0 with half of them, "
        "0.0 with a quarter of them: level"
    )


def test_noise_is_that_of_the_seed_whose_curve_it_is():
    """One caption in ten names the other group; the mean over seeds varies less than the first."""
    cell = compose.cell(
        ["metric=dpa", "captioner=faithful", "dataset.n_images=400", "dataset.seed=45", FEW]
    )
    metric, captions = cell.build("metric"), cell.corpus()
    texts = [captions.model.text(row) for row in range(len(captions.model))]
    other = {"man": "woman", "woman": "man"}
    for row in range(0, len(texts), 10):
        texts[row] = " ".join(other.get(word, word) for word in texts[row].split())
    model = Captions.from_texts(texts, captions.model.image_rows.tolist())
    misnamed = captions.rewrite({"model": model})
    score = metric.compute(misnamed, splits=metric.draw_splits(misnamed, range(5)))
    assert curve_of(score, " of T→A").endswith(": level")


def test_the_whole_of_a_curve_is_the_first_seed_alone():
    """All its points are tested on the same images, also where seeds test different ones."""
    metric, captions = build(), corpus(add_stereotype)
    splits = metric.draw_splits(captions, (3, 4))
    first = metric.compute(captions, splits=[s for s in splits if s.seed == splits[0].seed])
    whole = metric.compute(captions, splits=splits).parts["learning:all"].value
    assert whole == pytest.approx(first.parts["score"].value, abs=1e-12)


def test_groups_too_small_for_a_quarter_have_none():
    parts = score(corpus(keep_words, n_images=120)).parts
    assert ("learning:half" in parts, "learning:quarter" in parts) == (True, False)


def test_half_of_a_split_leaves_no_group_out():
    captions = corpus(keep_words)
    (split, *_) = build().draw_splits(captions, SEEDS)
    codes = captions.groupings["gender"].codes
    sizes = [np.bincount(codes[one.train]) for one in (split, split.with_fewer(1 / 2))]
    assert np.abs(sizes[0] - 2 * sizes[1]).max() <= 1


class Slow(ConvexProbe):
    """Attackers that count as slow to train."""

    quick = False


def of_tasks(name: str, *words: str) -> tuple[Metric, Corpus]:
    cell = compose.cell(
        [f"metric={name}", "captioner=amplifier", "dataset.n_images=1200", "seeds=1", FEW, *words]
    )
    return cell.build("metric"), cell.corpus()


def of_metric(metric: Metric, captions: Corpus) -> Score:
    return metric.compute(captions, splits=metric.draw_splits(captions, (0,)))


@pytest.fixture(scope="module")
def dbac() -> Score:
    return of_metric(*of_tasks("dbac", "metric.positions=2"))


def test_dbac_has_a_curve_of_the_attackers_that_guess_the_group_with_a_note(dbac):
    names = [f"a_to_t:learning:{share}" for share in ("all", "half", "quarter")]
    assert [name for name in dbac.parts if ":learning:" in name] == names
    values = [abs(dbac.parts[name].value) for name in names]
    assert values == sorted(values, reverse=True)
    assert curve_of(dbac, " of A→T")


def test_the_curve_of_dbac_is_of_one_position():
    score = of_metric(*of_tasks("dbac", "metric.positions=1"))
    whole = score.parts["a_to_t:learning:all"].value
    assert whole == pytest.approx(score.parts["a_to_t"].value, abs=1e-12)


def test_attackers_that_are_slow_to_train_have_no_curve_on_which_no_other_number_depends(dbac):
    metric, captions = of_tasks("dbac", "metric.positions=2")
    assert isinstance(metric, DBAC)
    probe = metric.probe
    assert isinstance(probe, ConvexProbe)
    metric.probe = Slow(probe.encoder, probe.inverse_penalty)
    slow = of_metric(metric, captions)
    assert not [name for name in slow.parts if ":learning:" in name]
    values, others = (
        {n: (score.parts[n].value, score.parts[n].ci_low) for n in slow.parts}
        for score in (slow, dbac)
    )
    np.testing.assert_equal(values, others)


def test_dpa_has_a_curve_in_both_directions():
    shares = ("learning:all", "learning:half", "learning:quarter")
    parts = of_metric(*of_tasks("dpa")).parts
    assert {f"{way}:{share}" for way in ("a_to_t", "t_to_a") for share in shares} <= {*parts}
