"""Retrieval fairness on planted embeddings: what leans is found, what does not is not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.errors import NotApplicableError, UsageError
from bias_pipeline.metrics.base import Score
from bias_pipeline.retrieval.dual_encoders import DualEncoder
from bias_pipeline.retrieval.encoders import Clip
from bias_pipeline.retrieval.retrieval_view import concepts_of, dalleval
from bias_pipeline.run import compose
from bias_pipeline.run.cell import run_cell
from tests.corpora import DATA
from tests.tiny_models import tiny_clip

SIZE = 24
AXIS = 0  # of the vectors: where the group is
LEANING = ("repairing", "hair", "motorcycling", "flowers", "gaming", "cooking", "skiing", "zoo",
           "wine", "laptop")  # fmt: skip
SEEDS = (0, 12, 456)
# Leaves out what stands beside the score.
OTHERS = tuple(
    f"~attribute@metric.others.{name}" for name in ("gender", "race", "ethnicity", "age", "emotion")
)
WORDS = (
    *("dataset.n_images=600", "stats.resamples=120", "metric.k=50", "encoder.cache=null"),
    *("metric.recall=[]", *OTHERS),  # recall and other attributes have tests of their own
)


# For what any pictures show.
FEW = ("dataset.n_images=120", "metric.k=10", "stats.resamples=20")


@cache
def cell(*words: str) -> compose.Cell:
    named = f"encoder.model={tiny_clip()}"
    return compose.cell(["metric=retrieval_fairness", named, *WORDS, *words])


@dataclass(frozen=True)
class Planted:
    """Vectors in which pictures show the group, and some queries lean towards one."""

    strength: float
    codes: Mapping[str, int]
    spec: Mapping[str, object] = None

    @property
    def images(self) -> Planted:
        return self

    def embed(self, items: Pictures | Sequence[str]) -> np.ndarray:
        vectors = np.stack(
            [self._picture(str(content)) for content in items.contents]
            if isinstance(items, Pictures)
            else [self._text(content) for content in items]
        )
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)

    def _picture(self, digest: str) -> np.ndarray:
        vector = np.random.default_rng(int(digest[:12], 16)).standard_normal(SIZE)
        vector[AXIS] = 2.0 * (1 - 2 * self.codes[digest])
        return vector

    def _text(self, query: str) -> np.ndarray:
        names = {asked_for: concept for concept, asked_for in concepts_of("scenes").items()}
        name = names.get(query, query)
        vector = np.random.default_rng(sum(map(ord, name))).standard_normal(SIZE)
        vector[AXIS] = 0.0
        if name in LEANING:
            sign = -1 if LEANING.index(name) % 2 else 1
            vector[AXIS] = sign * self.strength * np.linalg.norm(vector)
        return vector


def plant(monkeypatch: pytest.MonkeyPatch, corpus: Corpus, strength: float) -> None:
    assert corpus.pictures is not None
    codes = corpus.groupings["gender"].codes.tolist()
    model = Planted(strength, dict(zip(map(str, corpus.pictures.contents), codes, strict=True)), {})
    monkeypatch.setattr(Clip, "dual", lambda *_: DualEncoder(model, model))


def compute(*words: str, corpus: Corpus | None = None) -> Score:
    here = cell(*words)
    metric, corpus_used = here.build("metric"), corpus or here.corpus()
    return metric.compute(corpus_used, splits=metric.draw_splits(corpus_used, SEEDS))


@cache
def planted_score(strength: float, *words: str) -> Score:
    """The score of queries that lean so much."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        plant(monkeypatch, cell().corpus(), strength)
        return compute(*words)


@pytest.mark.parametrize("strength", [0.5, 1.0, 2.0])
def test_planted_concepts_are_the_least_fair(strength):
    least = [str(line["concept"]) for line in planted_score(strength).tables["concepts"][:10]]
    assert len(set(least) & set(LEANING)) >= 9


def test_each_concept_retrieves_and_names_the_group_it_leans_to():
    by_concept = {str(line["concept"]): line for line in planted_score(2.0).tables["concepts"]}
    lines = [by_concept[name] for name in LEANING]
    assert [float(str(line["share:male"])) > 0.6 for line in lines] == [True, False] * 5
    assert [line["over_represented"] for line in lines] == ["male", "female"] * 5
    assert max(float(str(line["p_holm"])) for line in lines) < 0.05


def test_one_seed_has_the_p_of_permuted_labels_and_nothing_denies_it():
    here = cell(*FEW, "metric.concepts=[zoo,laptop]")
    result = run_cell(here.corpus(), here.build("metric"), (0,), run_id="x")
    assert math.isfinite(next(row for row in result.rows if row.part == "score").p_value)
    assert "there is no p" not in str(result.manifest["notes"])


def test_a_query_that_evens_out_an_uneven_pool_is_not_fair():
    """Nearly as many women as men are retrieved, from a pool of more men: entropy is at its top."""
    score = planted_score(0.12, "metric.concepts=[hair,flowers,cooking,zoo,laptop]")
    lines = score.tables["concepts"]
    assert {line["over_represented"] for line in lines} == {"female"}
    assert score.parts["score"].value > score.parts["null"].value - 0.03
    assert score.parts["score"].p_value < 0.01


def test_more_strongly_planted_is_less_fair():
    scores = [planted_score(strength).parts["score"].value for strength in (0.0, 0.5, 1.0, 2.0)]
    assert scores == sorted(scores, reverse=True)


def test_without_leaning_the_null_is_held_and_no_concept_is_accused():
    score = planted_score(0.0)
    estimate, null = score.parts["score"], score.parts["null"]
    assert estimate.ci_low <= null.value <= estimate.ci_high
    lines = score.tables["concepts"]
    assert [line["concept"] for line in lines if float(str(line["p_holm"])) < 0.05] == []


def test_a_projection_restores_fairness_on_images_it_was_not_fitted_to():
    projected = ("debias=subspace", "debias.side=image", "debias.k=1")
    before, after = (planted_score(2.0, *words).parts for words in ((), projected))
    null = before["null"].value
    assert before["score"].ci_high < null - 0.05
    assert after["score"].value == pytest.approx(null, abs=0.02)


def test_debiasings_retrieve_from_the_same_images_that_nothing_was_fitted_to():
    one, other = (
        cell(f"debias={name}").build("metric").draw_splits(cell().corpus(), SEEDS)
        for name in ("none", "subspace")
    )
    assert [item.digest for item in one] == [item.digest for item in other]
    assert not any(set(split.train.tolist()) & set(split.test.tolist()) for split in one)


def test_a_depth_near_all_images_is_noted():
    score = compute(*FEW, "metric.k=40", "metric.concepts=[zoo]")
    assert any("more than half of the images" in note for note in score.notes)


@pytest.mark.parametrize("seed", [0, 1000])
def test_pictures_that_the_clip_learnt_from_are_noted(monkeypatch, seed):
    words = (f"dataset.seed={seed}", "encoder.model=null", "metric.concepts=[zoo]")
    corpus = cell(*words).corpus()
    plant(monkeypatch, corpus, 1.0)
    monkeypatch.setattr(Clip, "require", lambda _: None)
    noted = any("the CLIP was fitted to 600 of" in note for note in compute(*words).notes)
    assert noted == (seed == 1000)


def test_a_data_set_without_pictures_is_passed_over():
    with pytest.raises(NotApplicableError, match="no pictures"):
        compute(corpus=replace(cell().corpus(), pictures=None))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("metric.normalise=texts", "debias=subspace"), r"set debias\.renormalise=false"),
        (("metric.template=a person",), "must contain {concept} or {query}"),
        (("metric.concepts=[]",), "give at least one"),
        (("metric.concepts=[a,a]",), "each once"),
        (
            ("split.test_share=1.0", "debias=subspace", "debias.side=both"),
            r"test_share=1\.0 leaves no images to train on",
        ),
    ],
)
def test_what_is_asked_must_be_something_and_what_is_fitted_needs_images(words, message):
    with pytest.raises(UsageError, match=message):
        cell(*words).build("metric")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("metric.groups=[male]", "two or more"),
        ("metric.groups=[male,femal]", "did you mean 'female'"),
    ],
)
def test_groups_must_be_there(word, message):
    with pytest.raises(UsageError, match=message):
        compute(word)


def test_too_few_images_let_metric_all_skip_it_and_are_a_wrong_setting_elsewhere():
    with pytest.raises(NotApplicableError, match=r"metric\.k=400: only \d+ images") as error:
        compute("metric.k=400")
    assert error.value.exit_code == UsageError.exit_code


@pytest.mark.parametrize(
    ("template", "zoo", "nurse"),
    [
        ((), "a person feeding an elephant", "a photo of a nurse"),
        (
            ("metric.template='one {concept}: {query}'",),
            "one zoo: a person feeding an elephant",
            "one nurse: a photo of a nurse",
        ),
    ],
    ids=["the list's query or a photo", "a template"],
)
def test_what_is_asked_of_concepts(template, zoo, nurse):
    score = compute(*FEW, "metric.concepts=[zoo,nurse]", *template)
    assert score.audit["queries"] == {"zoo": zoo, "nurse": nurse}


def test_the_concepts_are_those_of_the_published_list():
    path = DATA / "lexicons" / "dalleval_neutral_concepts.csv"
    if not path.is_file():
        pytest.skip(f"no lexicon at {path}; set BIAS_PIPELINE_DATA to have this test run")
    lines = path.read_text().splitlines()[1:]
    assert set(dalleval().values()) == {line.partition(",")[2] for line in lines}


def test_groups_that_are_not_chosen_are_not_retrieved():
    names = cell("attribute=age").corpus().groupings["age"].names
    chosen = f"metric.groups=[{names[-1].upper()},{names[0]}]"
    score = compute("attribute=age", "metric.k=20", "metric.concepts=[zoo,nurse]", chosen)
    shares = {key for line in score.tables["concepts"] for key in line if "share:" in key}
    assert shares == {f"share:{names[0]}", f"share:{names[-1]}"}


# --- all images, as the paper retrieves


def test_all_labelled_images_may_be_retrieved_from_and_attacked(monkeypatch):
    corpus = cell().corpus()
    plant(monkeypatch, corpus, 1.0)
    parts = compute("split.test_share=1.0").parts
    labelled = int((corpus.groupings["gender"].codes >= 0).sum())
    assert (parts["score"].n_images, parts["score"].coverage) == (labelled, 1.0)
    assert parts["attacker:linear"].coverage == 1.0


def test_seeds_that_retrieve_the_same_have_the_p_of_one(monkeypatch):
    plant(monkeypatch, cell().corpus(), 0.2)
    here = cell("split.test_share=1.0")
    metric, corpus = here.build("metric"), here.corpus()
    one, three = (
        metric.compute(corpus, splits=metric.draw_splits(corpus, seeds)).parts
        for seeds in (SEEDS[:1], SEEDS)
    )
    names = [name for name in one if name.startswith("concept:")]
    assert [three[n].p_value for n in names] == [one[n].p_value for n in names]


# --- several folds a seed


@cache
def by_folds() -> Score:
    """The score of two seeds with three folds each."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        plant(monkeypatch, cell().corpus(), 1.0)
        here = cell("split=crossfit", "split.folds=3", "metric.recall=[5]")
        metric, corpus = here.build("metric"), here.corpus()
        return metric.compute(corpus, splits=metric.draw_splits(corpus, SEEDS[:2]))


def test_folds_are_no_seeds_and_attackers_of_all_folds_are_cross_fitted():
    parts = by_folds().parts
    counts = {n: part.n_seeds for n, part in parts.items() if not str(n).startswith("null")}
    assert counts == dict.fromkeys(counts, 2)
    assert parts["attacker:linear"].draws.cross_fitted


def test_the_value_of_a_seed_is_the_mean_over_its_folds(monkeypatch):
    plant(monkeypatch, cell().corpus(), 1.0)
    here = cell("split=crossfit", "split.folds=3")
    metric, corpus = here.build("metric"), here.corpus()
    of_folds = [
        metric.compute(corpus, splits=[split]).parts["score"].value
        for split in metric.draw_splits(corpus, SEEDS[:2])
    ]
    expected = [np.mean(of_folds[:3]), np.mean(of_folds[3:])]
    assert by_folds().parts["score"].draws.per_seed == pytest.approx(expected)
