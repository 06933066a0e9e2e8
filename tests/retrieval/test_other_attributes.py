"""What stands beside the score: other attributes, skews, and their choices, on planted vectors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest

from bias_pipeline.corpus.corpus import Grouping
from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.metrics.base import Score
from bias_pipeline.retrieval.dual_encoders import DualEncoder
from bias_pipeline.retrieval.encoders import Clip
from bias_pipeline.retrieval.ranked import Ranked
from bias_pipeline.retrieval.side_effects import ranked_others
from bias_pipeline.run import compose
from tests.tiny_models import tiny_clip

SEEDS = (0, 12)
WORDS = (
    *("dataset.n_images=600", "stats.resamples=60", "metric.k=50", "encoder.cache=null"),
    "metric.recall=[]",  # has tests of its own
)
GENDER, AGE = 0, 1  # of the vectors: where they are
# Only the score and its skews.
ALONE = tuple(f"~attribute@metric.others.{name}" for name in ("race", "ethnicity", "emotion"))
LEANS = {GENDER: 2.0, AGE: 1.0}


def cell(*words: str) -> compose.Cell:
    named = f"encoder.model={tiny_clip()}"
    return compose.cell(["metric=retrieval_fairness", named, *WORDS, *words])


@dataclass(frozen=True)
class Planted:
    """Pictures show gender and age, and every query leans to the first group of each."""

    codes: Mapping[str, tuple[int, int]]
    copies: bool = False
    spec: Mapping[str, object] = field(default_factory=dict)

    def embed(self, items: Pictures | Sequence[str]) -> np.ndarray:
        vectors = np.stack(
            [self._picture(str(content)) for content in items.contents]
            if isinstance(items, Pictures)
            else [self._text(number) for number in range(len(items))]
        )
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)

    def _picture(self, digest: str) -> np.ndarray:
        if self.copies:
            return np.eye(12)[int(digest[:8], 16) % 5 + 2]
        vector = np.random.default_rng(int(digest[:12], 16)).standard_normal(12)
        vector[[GENDER, AGE]] = [1.0 - 2 * c if c >= 0 else 0.0 for c in self.codes[digest]]
        return vector

    def _text(self, number: int) -> np.ndarray:
        vector = np.random.default_rng(number).standard_normal(12) / 3
        vector[list(LEANS)] = list(LEANS.values())
        return vector


@cache
def compute(*words: str, copies: bool = False) -> Score:
    here = cell(*words)
    corpus, metric = here.corpus(), here.build("metric")
    assert corpus.pictures is not None
    codes = [corpus.groupings[name].codes.tolist() for name in ("gender", "age")]
    codes_of_content = dict(
        zip(map(str, corpus.pictures.contents), zip(*codes, strict=True), strict=True)
    )
    planted = Planted(codes_of_content, copies)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(Clip, "dual", lambda *_: DualEncoder(planted, planted))
        score: Score = metric.compute(corpus, splits=metric.draw_splits(corpus, SEEDS))
    return score


def value(score: Score, part: str) -> float:
    return score.parts[part].value


def test_taking_one_attribute_out_brings_another_forth_but_none_that_queries_do_not_lean_to():
    before, after = compute(), compute("debias=mean_difference", "debias.side=image")
    assert value(after, "score") > value(before, "score") + 0.3
    assert value(after, "other:age") < value(before, "other:age") - 0.05
    estimate, null = before.parts["other:emotion"], value(before, "null:other:emotion")
    assert estimate.ci_low <= null <= estimate.ci_high


def others(score: Score) -> set[str]:
    return {name[6:] for name in score.parts if name.startswith("other:")}


def test_every_other_attribute_and_every_two_are_there():
    assert others(compute()) == {
        *("race", "age", "emotion", "gender_race", "gender_age", "gender_emotion"),
        *("race_age", "race_emotion", "age_emotion"),
    }


def test_an_intersection_has_its_attributes_beside_it_and_no_bias_of_two_groups():
    score = compute("attribute=[gender,age]", "attribute.min_images=1", "metric.k=20")
    assert {"gender", "age", "race", "gender_race"} <= others(score)
    assert "gender_age" not in others(score)
    assert "skew:bias" not in score.parts


def test_an_attribute_that_too_few_are_labelled_with_is_left_out():
    vectors = np.random.default_rng(0).standard_normal((20, 4)).astype(np.float32)
    rows, two = np.arange(20), np.arange(20) % 2
    like = Ranked.rank(vectors[:3], vectors, rows, two, 2, 10)
    few = Grouping(("a", "b"), np.where(rows < 9, two, -1), {})
    enough = Grouping(("a", "b"), np.where(rows < 10, two, -1), {})
    result = ranked_others(vectors[:3], vectors, rows, {"few": few, "enough": enough}, like)
    assert set(result) == {"enough"}
    assert result["enough"].images.max() < 10


def test_all_skews_are_there_with_their_nulls_and_queries_that_lean_to_men_have_a_positive_bias():
    score = compute()
    names = [f"skew:{name}" for name in ("max", "min", "bias", "ndkl", "kl")]
    assert {*names, *(f"null:{name}" for name in names)} <= {*score.parts}
    null = value(score, "null:skew:bias")
    assert score.parts["skew:bias"].ci_low > null + 0.1


def test_the_target_of_the_data_set_is_not_the_uniform_one():
    uniform = value(compute(*ALONE, "metric.target=uniform"), "skew:max")
    assert uniform > value(compute(), "skew:max")  # men are more than half of the scenes


def test_all_that_are_equally_near_are_counted_and_leave_no_null():
    few, more = (compute(*ALONE, f"metric.ties={ties}", copies=True) for ties in ("stable", "all"))
    assert value(more, "skew:max") > value(few, "skew:max")
    assert "null:skew:max" not in more.parts
    assert any("skews have no part null" in note for note in more.notes)


def test_where_none_are_equally_near_ties_play_no_part():
    parts = ("score", "skew:max", "skew:ndkl")
    stable, *others = (
        [value(score, part) for part in parts]
        for score in (
            compute(),
            *(compute(*ALONE, f"metric.ties={ties}") for ties in ("all", "expected")),
        )
    )
    assert others == [pytest.approx(stable)] * 2


def test_pictures_can_be_left_as_long_as_they_are():
    here = cell("metric.normalise=texts")
    corpus, dual = here.corpus(), here.build("encoder").dual("none", "texts")
    assert corpus.pictures is not None
    lengths = np.linalg.norm(dual.images.embed(corpus.pictures.take(np.arange(3))), axis=1)
    assert abs(lengths - 1).max() > 0.01
