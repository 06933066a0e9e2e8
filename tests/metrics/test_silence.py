"""Where captions name next to no group nothing is said of whom they name, by any metric."""

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bias_pipeline.corpus.attribute import Attribute, Context, LabelMap
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.corpus.regrouping import Intersection
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.metrics.base import HEADLINES, Metric, Number, Score
from bias_pipeline.metrics.catalogue import metric_class, metric_names
from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.metrics.counting.base import CountingMetric
from bias_pipeline.metrics.counting.gender_error import GenderError
from bias_pipeline.metrics.value_names import SCORE, T_TO_A
from bias_pipeline.results.identity import run_id
from bias_pipeline.run import compose
from bias_pipeline.stats.bootstrap import Bootstrap
from tests.corpora import DATA, GENDER, Record, make_corpus
from tests.tiny_models import tiny_weights

SMALL = ("dataset.n_images=600", "stats.resamples=20")
FURTHER = {
    "cooccurrence": ("metric.min_support=5",),
    "differential_fairness": ("metric.min_support=20",),
}
CROSSED = ("attribute=[gender,race]", "attribute.min_images=20")
NOTHING = "too few to measure which groups it names"


@cache
def cell(metric: str, *words: str) -> compose.Cell:
    further = tiny_weights() if metric == "gender_score" else FURTHER.get(metric, ())
    return compose.cell([f"metric={metric}", *SMALL, *further, *words])


COUNTING = [name for name in metric_names() if issubclass(metric_class(name), CountingMetric)]


def rests_on_names(metric: str) -> bool:
    """Whether a headline rests on the groups that captions name."""
    built: CountingMetric = compose.cell([f"metric={metric}"]).build("metric")
    return any(map(built.rests_on_names, (SCORE, T_TO_A)))


BUILT_IN = {
    *("ba_directional", "ba_mals", "cooccurrence", "gender_error", "gender_ratio"),
    *("gender_score", "group_accuracy", "multi_directional"),
}
NAMES = [name for name in COUNTING if rests_on_names(name)]


def quiet(corpus: Corpus) -> Corpus:
    """A corpus whose captioner writes the same of everybody."""
    captions = corpus.model
    texts = ["somebody with a tie, a bench and a handbag"] * len(captions)
    return corpus.rewrite({"model": type(captions).from_texts(texts, captions.image_rows.tolist())})


def compute(metric: str, corpus: Corpus, *words: str) -> Score:
    built: Metric = cell(metric, *words).build("metric")
    return built.compute(corpus, splits=[])


def resting(metric: str, score: Score) -> dict[str, Number]:
    """The headlines that rest on names."""
    built: CountingMetric = cell(metric).build("metric")
    return {
        name: part
        for name, part in score.parts.items()
        if name in HEADLINES and built.rests_on_names(name)
    }


def test_built_in_metrics_that_rest_on_names_are_among_those_tested():
    assert {*NAMES} >= BUILT_IN


@pytest.mark.parametrize("metric", NAMES)
@pytest.mark.parametrize(
    "words", [(), CROSSED, ("attribute=race",)], ids=["gender", "both", "race"]
)
def test_a_captioner_that_names_nobody_has_no_score(metric, words):
    corpus = quiet(cell(metric, *words).corpus())
    # The embedded people name no race either, so no object is named with one.
    crossed = metric in ("gender_ratio", "gender_score") and words == CROSSED
    if crossed or (metric == "cooccurrence" and words):
        with pytest.raises(
            NotApplicableError, match=f"{NOTHING}|gender_ratio compares two|is an intersection"
        ):
            compute(metric, corpus, *words)
        return
    try:
        score = compute(metric, corpus, *words)
    except NotApplicableError:
        assert words  # of gender, a metric says what it can, and the rest is absent
        assert metric not in BUILT_IN
        return
    values = list(resting(metric, score).values())
    assert values
    assert all(math.isnan(x) for e in values for x in (e.value, e.ci_low, e.ci_high))
    assert any(NOTHING in note for note in score.notes)


@pytest.mark.parametrize("metric", sorted({*NAMES, *COUNTING} - {"gender_ratio"}))
def test_what_does_not_rest_on_names_is_left_as_it_was(metric):
    built: CountingMetric = cell(metric).build("metric")
    try:
        score = compute(metric, quiet(cell(metric).corpus()))
    except NotApplicableError:
        assert all(built.rests_on_names(name) for name in HEADLINES)
        return
    lines = [p for n, p in score.parts.items() if n in HEADLINES and not built.rests_on_names(n)]
    assert all(math.isfinite(part.value) for part in lines)
    assert lines or all(built.rests_on_names(name) for name in HEADLINES)


@pytest.mark.parametrize(("retained", "absent"), [(9, True), (10, False)])
def test_ten_captions_are_enough(retained, absent):
    corpus = cell("gender_error").corpus()
    captions = corpus.model
    texts = np.full(len(captions), "somebody", object)
    labelled = np.flatnonzero(corpus.groupings["gender"].codes[captions.image_rows] >= 0)
    texts[labelled[:retained]] = "a man"
    rewrite = corpus.rewrite(
        {"model": type(captions).from_texts(texts.tolist(), captions.image_rows.tolist())}
    )
    value = compute("gender_error", rewrite).parts["score"].value
    assert math.isnan(value) is absent


def too_few_named(texts: list[str]) -> str:
    records = [Record(str(i), text, (), {"gender": "mf"[i % 2]}) for i, text in enumerate(texts)]
    return CorpusView(make_corpus(records), GENDER, None).too_few_named("model")


@pytest.mark.parametrize(
    ("n_named", "n", "named"),
    [(29, 3000, False), (30, 3000, True), (0, 15, False), (1, 15, True), (2, 15, True)],
)
def test_it_takes_one_in_a_hundred_of_many_captions_and_a_tenth_of_few(n_named, n, named):
    assert (too_few_named(["a man"] * n_named + ["a person"] * (n - n_named)) == "") is named


def test_captions_that_name_everybody_name_nobody_alone():
    assert "in 0 of 200 captions" in too_few_named(["a man and a woman"] * 200)


def test_the_ratio_of_the_labels_is_there_however_silent_the_captions_are():
    corpus = cell("gender_ratio").corpus()
    parts = compute("gender_ratio", quiet(corpus)).parts
    codes = corpus.groupings["gender"].codes
    assert math.isnan(parts["model"].value)
    assert parts["human"].value == pytest.approx((codes == 0).sum() / (codes == 1).sum())


def test_people_who_name_nobody_have_no_number_beside_a_captioner_that_does():
    corpus = cell("gender_error").corpus()
    people = corpus.human
    texts = ["somebody"] * len(people)
    mute = corpus.rewrite({"human": type(people).from_texts(texts, people.image_rows.tolist())})
    score = compute("gender_error", mute)
    assert math.isfinite(score.parts["score"].value)
    assert math.isnan(score.parts["human"].value)
    assert any(note.startswith("the human side names") for note in score.notes)


def hardly_named() -> Corpus:
    """Of human captions one in 300 names men, and one names women."""
    corpus = cell("gender_error").corpus()
    people = corpus.human
    names = {0: "a man", 150: "a woman"}
    texts = [names.get(row % 300, "somebody") for row in range(len(people))]
    return corpus.rewrite({"human": type(people).from_texts(texts, people.image_rows.tolist())})


def test_nothing_is_compared_with_people_who_hardly_name_a_group():
    parts = compute("gender_error", hardly_named()).parts
    assert math.isnan(parts["named:increase"].value)


def test_a_ratio_has_no_p_beside_people_who_hardly_name_a_group():
    score = compute("gender_ratio", hardly_named()).parts["score"]
    assert np.isnan([score.value, score.p_value]).tolist() == [False, True]


@pytest.mark.parametrize("metric", NAMES)
def test_a_captioner_that_is_mostly_neutral_still_has_a_score(metric):
    corpus = cell(metric, "captioner=neutral_speaker").corpus()
    result = resting(metric, compute(metric, corpus))
    assert all(math.isfinite(part.value) for part in result.values())
    assert all(part.neutral_rate > 0.5 for part in result.values())


# --- intersections --------------------------------------------------------------------------------

COLOURS = {"light": "white", "dark": "black"}
RACE = Attribute("race", ("light", "dark"), COLOURS, {}, applies_to=Context("man, woman"))
BOTH = Intersection("both", (), {}, {}, parts={"first": GENDER, "second": RACE}, min_images=1)


def product_corpus(texts: dict[str, str]) -> Corpus:
    """An image a group of the product, in its order, with the caption given for it."""
    groups = {"both": (tuple(BOTH.groups), LabelMap("both", {g: g for g in BOTH.groups}))}
    records = [Record(g, text, (text,), {"both": g}) for g, text in texts.items()]
    return Corpus.build(records, dataset="toy", captioner="toy", groups=groups)


RIGHT = {
    "male-light": "a white man",
    "male-dark": "a black man",
    "female-light": "a white woman",
    "female-dark": "a black woman",
}


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({}, 0.0),
        ({"male-dark": "a white man"}, 0.25),
        ({"male-dark": "a black woman", "female-dark": "a white woman"}, 0.5),
        ({"male-dark": "a man with a white dog"}, 0.0),
        ({"male-dark": "a black dog"}, 0.0),
    ],
)
def test_a_group_of_two_attributes_is_named_by_a_word_of_each(changed, error):
    score = GenderError(BOTH, Bootstrap(resamples=2)).compute(
        product_corpus(RIGHT | changed), splits=[]
    )
    silent = sum("dog" in text for text in changed.values())
    assert score.parts["score"].value == error
    assert score.parts["score"].neutral_rate == silent / 4


# --- race: a colour of a thing changes nothing ----------------------------------------------------

# Not quality, which compares all words with people's, nor gender_score, which judges every word.
RACES = [name for name in COUNTING if name not in ("quality", "gender_score")]


def add_colours(corpus: Corpus, colour: str, thing: str) -> Corpus:
    """Captions of which some name race, and every other has a thing, with or without a colour."""
    sides = {}
    for side in SIDES:
        captions = corpus.side(side)
        words = f" and a {colour} {thing}".replace("  ", " ")
        who = ("a black man with ", "a white woman with ", "")
        texts = [
            who[i % 3] + captions.text(i) + (words if i % 2 else "") for i in range(len(captions))
        ]
        sides[side] = type(captions).from_texts(texts, captions.image_rows.tolist())
    return corpus.rewrite(sides)


@cache
def values_beside(metric: str, colour: str, thing: str) -> dict[str, list[float]]:
    """Value and neutral rate of each part, where captions have a thing of a colour."""
    corpus = add_colours(cell(metric, "attribute=race").corpus(), colour, thing)
    parts = compute(metric, corpus, "attribute=race").parts
    return {name: [part.value, part.neutral_rate] for name, part in parts.items()}


@given(
    st.sampled_from(RACES),
    st.sampled_from(["black", "white", "pale", "ebony"]),
    st.sampled_from(["dog", "cat", "horse", "umbrella"]),
)
@settings(deadline=None, max_examples=12)
def test_the_colour_of_a_dog_changes_no_metric_of_race(metric, colour, thing):
    plain, painted = (values_beside(metric, of, thing) for of in ("", colour))
    assert list(plain) == list(painted)
    np.testing.assert_array_equal(list(painted.values()), list(plain.values()))
    assert any(math.isfinite(plain[name][0]) for name in HEADLINES if name in plain)


def test_the_colour_of_a_dog_changes_dpa_and_dbac_no_more():
    """They read names through the same two functions, before any attacker."""
    built = cell("dbac", "attribute=race").build("metric")
    corpus = cell("dbac", "attribute=race").corpus()
    plain, painted = (add_colours(corpus, colour, "dog") for colour in ("", "black"))
    lines = [built.see(item) for item in (plain, painted)]
    for side in SIDES:
        assert np.array_equal(*(item.groups_named(side).toarray() for item in lines))
        assert np.array_equal(*(item.named_group(side) for item in lines))


# --- identity -------------------------------------------------------------------------------------


def test_the_context_is_part_of_a_runs_identity():
    race = {"metric": "gender_error", "attribute": "race", "metric_version": 1, "seeds": [0]}
    cells = [
        cell("gender_error", "attribute=race", *words)
        for words in ((), ("attribute.applies_to=null",))
    ]
    assert len({run_id(item.tree["metric"], item.corpus(), **race) for item in cells}) == 2


# --- real captions --------------------------------------------------------------------------------


@pytest.mark.real
@pytest.mark.parametrize("metric", ["gender_error", "group_accuracy", "ba_mals", "ba_directional"])
@pytest.mark.parametrize(
    "attribute", ["race", pytest.param("[gender,race]", marks=pytest.mark.slow)]
)
def test_nothing_is_said_of_race_by_counting_on_real_captions(metric, attribute):
    if not (DATA / "lic").is_dir():
        pytest.skip(f"no real captions at {DATA}; set BIAS_PIPELINE_DATA to have this test run")
    words = ("dataset=lic", f"dataset.root={DATA}/lic/bias_data", "captioner=sat")
    built = compose.cell(
        [f"metric={metric}", *words, f"attribute={attribute}", "stats.resamples=2"]
    )
    score = built.build("metric").compute(built.corpus(), splits=[])
    values = {n: p.value for n, p in score.parts.items() if n in HEADLINES}
    assert math.isnan(values.get("score", values.get("t_to_a", 0.0)))
    assert math.isfinite(values.get("a_to_t", 0.0))
    assert {score.parts[name].neutral_rate for name in values} == {1}
    assert math.isnan(score.parts["human"].value if "human" in score.parts else math.nan)
