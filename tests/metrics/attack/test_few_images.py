"""Attackers where images are few, or those of a third group: what is scored still."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import UNSURE, Corpus, Record
from bias_pipeline.corpus.regrouping import FEWEST_OF_SEVERAL, without_small_groups
from bias_pipeline.corpus.split import Split
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.results.rows import Result, Row
from bias_pipeline.run import compose
from bias_pipeline.run.cell import run_cell
from bias_pipeline.stats.scores import ScoreTable
from bias_pipeline.stats.scoring import Accuracy
from bias_pipeline.text.mentions import NO_GROUP, SEVERAL_GROUPS
from tests.corpora import make_corpus

SEEDS = (0, 12)
FEW = ("stats.resamples=100",)
FURTHER = {"dbac": ("metric.positions=1",)}
NAMES = ("a", "b", "c")
# As the gender of scenes, with a third group that no label names: images are dealt into it.
THREE = """
_target_: bias_pipeline.corpus.attribute.Attribute
name: three
groups: [male, female, nonbinary]
words: {male: [man, boy, he], female: [woman, girl, she], nonbinary: [enby]}
also_masked: []
labels:
  scenes:
    _target_: bias_pipeline.corpus.attribute.LabelMap
    field: bb_gender
    groups: {Male: male, Female: female, Third: nonbinary}
    strata: [Unsure, Both]
source: made up for a test
"""


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Words that choose the attribute of three groups."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "attribute").mkdir()
    (folder / "attribute" / "three.yaml").write_text(THREE)
    return ("attribute=three", "--config-dir", str(folder))


@cache
def score_scenes(metric: str, images: int, words: tuple[str, ...], third: int = 0) -> Result:
    """A cell of scenes, with so many images in the third group."""
    small = (f"dataset.n_images={images}", *FEW, *FURTHER.get(metric, ()))
    cell = compose.cell([f"metric={metric}", *small, *words])
    corpus = with_third(cell.corpus(), third) if third else cell.corpus()
    return run_cell(corpus, cell.build("metric"), SEEDS, run_id="x")


def with_third(corpus: Corpus, n: int) -> Corpus:
    grouping = corpus.groupings["three"]
    codes = grouping.codes.copy()
    codes[np.flatnonzero(codes >= 0)[:n]] = 2
    return replace(corpus, groupings={"three": replace(grouping, codes=codes)})


def headline(result: Result, part: str = "score") -> Row:
    return next(row for row in result.rows if row.part == part)


def test_a_seed_without_an_image_leaves_the_others_their_scores():
    images, seeds = np.array([0, 1]), np.array([0, 1])
    values, group = np.array([[1.0, np.nan], [np.nan, 0.5]]), np.zeros(2, np.int64)
    table = ScoreTable(images, values, seeds, 2, group, Accuracy())
    assert table.per_seed(np.array([[1.0, 0.0]]))[0] == pytest.approx([1.0, np.nan], nan_ok=True)


@pytest.mark.parametrize("metric", ["lic", "leakage"])
@pytest.mark.parametrize("images", [60, 100])
def test_a_score_of_few_images_has_an_interval(metric, images):
    assert not math.isnan(headline(score_scenes(metric, images, ("split=lic",))).ci_low)


def test_it_is_told_how_many_images_have_an_interval():
    result = score_scenes("lic", 40, ("split=lic",))
    assert math.isnan(headline(result).ci_low)
    (note,) = (note for note in result.manifest["notes"] if "has no interval" in note)
    assert "some attacker is tested on only 2 images; about 59 images would be enough" in note


@pytest.mark.parametrize("metric", ["lic", "leakage", "dbac", "dpa"])
def test_a_group_that_is_too_small_is_named(metric, three):
    notes = score_scenes(metric, 400, three, third=12).manifest["notes"]
    assert any("groups of fewer than 20 images: nonbinary (12)" in note for note in notes)


def test_the_others_are_scored_as_if_it_were_not_there_and_its_images_are_not_covered(three):
    row = headline(score_scenes("lic", 400, three, third=12))
    assert row.ci_high - row.ci_low < 0.5
    assert round(row.n_images / row.coverage) == row.n_images + 12


def test_a_group_without_captions_is_named(three):
    cell = compose.cell(["metric=lic", "dataset.n_images=400", *FEW, *three])
    corpus = with_third(cell.corpus(), 40)
    described = corpus.groupings["three"].codes[corpus.model.image_rows] != 2
    silent = replace(corpus, model=corpus.model.take(described))
    with pytest.raises(NotApplicableError, match=r"images of each; found .* nonbinary 0"):
        run_cell(silent, cell.build("metric"), SEEDS, run_id="x")


def test_t_to_a_of_dpa_is_of_the_groups_that_captions_name(three):
    result = score_scenes("dpa", 400, three, third=60)
    assert not math.isnan(headline(result, "t_to_a").value)
    assert any("T→A leaves out" in note for note in result.manifest["notes"])


def test_words_of_a_group_that_is_left_out_still_count():
    """A caption that names it, too, does not name one group alone."""
    attribute = Attribute("gender", NAMES, {name: [f"{name}-word"] for name in NAMES}, {})
    texts = ["an a-word", "an a-word and a c-word", "a c-word"] * 30
    corpus = make_corpus([Record(str(k), t, labels={"gender": "m"}) for k, t in enumerate(texts)])
    codes = np.array([0] * 44 + [1] * 43 + [2] * 3)
    grouping = replace(corpus.groupings["gender"], names=NAMES, codes=codes)
    whole = replace(corpus, groupings={"gender": grouping})
    without = without_small_groups(whole, "gender")
    assert without.groupings["gender"].names == ("a", "b")
    named = CorpusView(without, attribute, None).named_group("model")
    assert named[:3].tolist() == [0, SEVERAL_GROUPS, NO_GROUP]


def of_sizes(*sizes: int) -> Corpus:
    """A corpus of groups of these sizes."""
    codes = np.repeat(np.arange(len(sizes)), sizes)
    labels = {"gender": "m"}
    corpus = make_corpus([Record(str(k), "a dog", labels=labels) for k in range(len(codes))])
    gender = corpus.groupings["gender"]
    grouping = replace(gender, names=NAMES[: len(sizes)], codes=codes)
    return replace(corpus, groupings={"gender": grouping})


@pytest.mark.parametrize(
    ("sizes", "left"),
    [
        ((30, 30, FEWEST_OF_SEVERAL - 1), {"a": 30, "b": 30}),
        ((30, 30, FEWEST_OF_SEVERAL), {"a": 30, "b": 30, "c": FEWEST_OF_SEVERAL}),
        ((5, 30, 30), {"b": 30, "c": 30}),
        ((30, 12, 5), {"a": 30, "b": 12}),
        ((30, 12, 12), {"a": 30, "b": 12, "c": 12}),
        ((30, 5, 5), {"a": 30, "b": 5, "c": 5}),
        ((30, 5), {"a": 30, "b": 5}),
    ],
    ids=["small", "large enough", "the first", "ten", "all ten", "one would be left", "of two"],
)
def test_small_groups_are_left_out_where_two_remain(sizes, left):
    assert without_small_groups(of_sizes(*sizes), "gender").groupings["gender"].sizes == left


def corpus_with_known_objects(n: int) -> Corpus:
    """40 images, of the first n of which the objects are known and people wrote a caption."""
    records = []
    for i in range(40):
        text = f"a {('man', 'woman')[i % 2]} with a cake"
        human, objects = ((text,), frozenset({"cake"})) if i < n else ((), None)
        records.append(Record(str(i), text, human, {"gender": "mf"[i % 2]}, objects=objects))
    return make_corpus(records)


@pytest.mark.parametrize(("images", "scored"), [(18, False), (20, True)])
def test_dpa_needs_ten_images_of_two_groups_in_either_direction(images, scored):
    metric = compose.cell(["metric=dpa", *FEW]).build("metric")
    corpus = corpus_with_known_objects(images)
    parts = metric.compute(corpus, splits=metric.draw_splits(corpus, SEEDS)).parts
    values = [parts[direction].value for direction in ("a_to_t", "t_to_a")]
    assert [not math.isnan(value) for value in values] == [scored, scored]


@pytest.mark.parametrize("metric", ["dbac", "dpa"])
def test_images_of_which_none_is_tested_are_refused(metric):
    corpus = corpus_with_known_objects(20)
    rows, none = np.arange(40), np.empty(0, np.int64)
    split = Split(0, rows[:20], rows[20:], none, balanced=False)
    with pytest.raises(NotApplicableError, match="can be tested with seed 0"):
        compose.cell([f"metric={metric}", *FEW]).build("metric").compute(corpus, splits=[split])


def test_unsure_images_stay_unsure_where_a_small_group_is_left_out():
    whole = of_sizes(30, 5, 30, 4)
    grouping = whole.groupings["gender"]
    unsure = replace(
        grouping, names=NAMES, codes=np.where(grouping.codes == 3, UNSURE, grouping.codes)
    )
    left = without_small_groups(replace(whole, groupings={"gender": unsure}), "gender")
    assert left.groupings["gender"].unsure.sum() == 4
