"""Planted biases that move a counting metric, and ones that must not."""

import math
from functools import cache

import pytest

from bias_pipeline.corpus.attribute import TaskVocabulary
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.errors import DataError, NotApplicableError, UsageError
from bias_pipeline.metrics.base import Number
from bias_pipeline.metrics.counting.ba_directional import DirectionalBiasAmplification
from bias_pipeline.metrics.counting.ba_mals import BiasAmplificationMALS
from bias_pipeline.metrics.counting.base import MOST_EXAMPLES
from bias_pipeline.metrics.counting.cooccurrence import Cooccurrence
from bias_pipeline.metrics.counting.gender_error import GenderError
from bias_pipeline.metrics.counting.gender_ratio import GenderRatio
from bias_pipeline.metrics.counting.multi_directional import MultiDirectional
from bias_pipeline.metrics.counting.resampling import FEWEST_BUNDLES, MOST_BUNDLES
from bias_pipeline.run import compose
from bias_pipeline.scenes.captioners import CAPTIONERS
from bias_pipeline.scenes.truth import truth
from bias_pipeline.stats.bootstrap import Bootstrap
from tests.corpora import GENDER, make_corpus
from tests.metrics.places import place

ALIKE = ("metric.labels=each", "metric.denominator=named")
FEW = Bootstrap(resamples=50)
TASKS = TaskVocabulary("toy", {"cake": ["cake"], "car": ["car"]})


@cache
def scores(metric: str, captioner: str, *words: str) -> dict[str, Number]:
    data = (f"captioner={captioner}", "dataset.n_images=2000", "stats.resamples=100")
    cell = compose.cell([f"metric={metric}", *data, *words])
    return dict(cell.build("metric").compute(cell.corpus(), splits=[]).parts)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(str(tmp_path))


@pytest.mark.parametrize(
    ("metric", "part", "words"),
    [
        ("ba_directional", "a_to_t", ALIKE),
        ("multi_directional", "a_to_t:signed", ALIKE),
        ("differential_fairness", "score", ()),
        ("cooccurrence", "score", ()),
    ],
)
def test_a_captioner_that_imagines_typical_objects_amplifies(metric, part, words):
    assert place(scores(metric, "amplifier", *words)[part]) == "above 0"
    assert place(scores(metric, "faithful", *words)[part]) != "above 0"


@pytest.mark.parametrize(
    ("metric", "part"), [("gender_error", "score"), ("group_accuracy", "incorrect:female")]
)
def test_a_captioner_that_follows_the_scene_misgenders(metric, part):
    assert place(scores(metric, "stereotyper")[part]) == "above 0"
    assert scores(metric, "faithful")[part].value == 0


def test_gender_error_is_the_share_that_was_planted():
    planted = truth(CAPTIONERS["stereotyper"])
    result = scores("gender_error", "stereotyper", "metric.over=named", "metric.words=null")
    expected = planted.contradicted.mean()
    estimate = result["score"]
    assert estimate.value == pytest.approx(expected, abs=3 * estimate.image_std + 0.01)


def test_a_talkative_captioner_has_no_bias_but_moves_a_to_t_as_published():
    """What DEFINITIONS warn of: the published form follows the mention rate."""
    loud, same = (scores("ba_directional", c) for c in ("talkative", "faithful"))
    assert loud["mentions:model"].value > same["mentions:model"].value
    assert loud["a_to_t"].value > same["a_to_t"].value


def test_silence_lowers_the_error_and_stands_beside_it():
    words = ("+dataset.captioners.quiet={t_to_a:0.4,gender_word_rate:0.4}",)
    quiet, loud = scores("gender_error", "quiet", *words), scores("gender_error", "stereotyper")
    assert quiet["score"].value < loud["score"].value
    assert quiet["score"].neutral_rate > loud["score"].neutral_rate


@pytest.mark.parametrize("captioner", ["faithful", "neutral_speaker", "terse"])
def test_the_ratio_of_a_captioner_without_bias_is_that_of_the_labels(captioner):
    assert place(scores("gender_ratio", captioner)["score"]) == "around 0"


# --- by hand --------------------------------------------------------------------------------------


def record(i: int, model: str | None, label: str, *human: str, objects: str = "") -> Record:
    object_set = frozenset(objects.split()) | {"person"} if objects else None
    return Record(str(i), model, human, {"gender": label}, object_set)


def follower() -> Corpus:
    """Seven of ten cakes are women's and cars men's; the captioner goes by the object alone."""
    records = []
    for i in range(40):
        item, label = ("cake", "car")[i % 2], "fm"[i % 2] if i % 20 < 14 else "mf"[i % 2]
        who = {"cake": "woman", "car": "man"}[item]
        records.append(record(i, f"a {who} with a {item}", label, objects=item))
    return make_corpus(records)


@pytest.mark.parametrize(
    ("kind", "part", "expected"),
    [
        (DirectionalBiasAmplification, "t_to_a", 0.3),
        (DirectionalBiasAmplification, "a_to_t", 0),
        (BiasAmplificationMALS, "score", 0.3),
        (BiasAmplificationMALS, "predictions:task", 0),
    ],
)
def test_following_the_object_amplifies_task_to_attribute_alone(kind, part, expected):
    parts = kind(GENDER, FEW, TASKS, exclude_tasks=()).compute(follower(), splits=[]).parts
    assert parts[part].value == pytest.approx(expected)


def test_error_and_ratio_by_hand():
    lines = [
        ("a man", "m"), ("a woman", "m"), ("a man and a woman", "f"), ("she", "f"),
        ("a person", "m"), (None, "m"), ("a man", "unsure"),
    ]  # fmt: skip
    corpus = make_corpus([record(i, *line) for i, line in enumerate(lines)])
    error = GenderError(GENDER, FEW).compute(corpus, splits=[]).parts
    assert error["score"].value == pytest.approx(1 / 5)
    assert error["named"].value == pytest.approx(1 / 3)
    assert (error["score"].n_images, error["score"].coverage) == (5, pytest.approx(5 / 6))
    assert error["score"].neutral_rate == pytest.approx(1 / 5)
    assert error["score"].n_seeds == 0
    assert "human" not in error
    ratio = GenderRatio(GENDER, FEW).compute(corpus, splits=[]).parts
    assert [ratio[p].value for p in ("model", "human", "score")] == [0.5, 1.5, -1.0]


@pytest.mark.parametrize(
    ("texts", "n_lines", "wrong"),
    [
        (["a man", "a woman", "a man and a woman", "a person"], 1, 1),
        (["a woman"] * 50, MOST_EXAMPLES, 50),
        (["a man"] * 5, 0, 0),
    ],
    ids=["one", "a dozen of many", "no table"],
)
def test_captions_that_name_the_wrong_group_are_shown(texts, n_lines, wrong):
    corpus = make_corpus([record(i, text, "m") for i, text in enumerate(texts)])
    tables = GenderError(GENDER, FEW).compute(corpus, splits=[]).tables
    assert list(tables) == ["misnamed"] * bool(wrong)
    lines = [(x["caption"], x["named"], x["wrong"]) for x in tables.get("misnamed", ())]
    assert lines == [("a woman", "female", wrong)] * n_lines


def test_undefined_pairs_are_absent_and_counted():
    records = [record(0, "a man", "m", objects="car"), record(1, "a woman", "f", objects="car")]
    metric = DirectionalBiasAmplification(GENDER, FEW, TASKS, exclude_tasks=())
    parts = metric.compute(make_corpus(records), splits=[]).parts
    assert parts["t_to_a:undefined"].value == 2
    assert math.isnan(parts["t_to_a:object:cake"].value)


def test_undefined_pairs_that_are_kept_are_no_change_of_a_group_or_an_object_either():
    records = [
        record(0, "a man with a car", "m", objects="car"),
        record(1, "a woman with a car", "m", objects="car"),
        record(2, "a woman", "f", objects="person"),
    ]
    metric = DirectionalBiasAmplification(GENDER, FEW, TASKS, exclude_tasks=(), undefined="keep")
    parts = metric.compute(make_corpus(records), splits=[]).parts
    groups = [parts[f"t_to_a:group:{name}"].value for name in GENDER.groups]
    assert sum(groups) / len(groups) == pytest.approx(parts["t_to_a"].value)
    assert parts["t_to_a:object:cake"].value == 0.0


def test_an_image_without_objects_counts_and_one_of_unknown_objects_does_not():
    shown = [frozenset({"car"}), frozenset[str](), None]
    records = [
        Record(f"{i}{label}", "a man", (), {"gender": label}, objects)
        for i, objects in enumerate(shown)
        for label in "mf"
    ]
    metric = DirectionalBiasAmplification(GENDER, FEW, TASKS, exclude_tasks=())
    assert metric.compute(make_corpus(records), splits=[]).parts["a_to_t"].n_images == 4


@pytest.mark.parametrize(
    ("metric", "words", "problem"),
    [
        ("ba_mals", ["metric.labels=object"], "metric.labels='object' must be one of objects"),
        ("ba_directional", ["metric.tie=one"], "tie"),
        ("cooccurrence", ["metric.groups=label"], "metric.groups='label' must be one of labels"),
        ("gender_ratio", ["metric.numerator=men"], "numerator"),
        ("differential_fairness", ["metric.prior=flat"], "prior"),
        ("multi_directional", ["metric.exclude_tasks=[persons]"], "did you mean 'person'"),
    ],
)
def test_an_unknown_choice_is_refused(metric, words, problem):
    with pytest.raises(UsageError, match=problem):
        compose.cell([f"metric={metric}", *words]).build("metric")


SCENES_OF_EMOTIONS = ["metric=cooccurrence", "attribute=emotion", "dataset.n_images=300"]


def test_a_ratio_is_of_the_first_group_that_is_labelled():
    cell = compose.cell(SCENES_OF_EMOTIONS)  # the first emotion is not one of them
    assert cell.build("metric").compute(cell.corpus(), splits=[]).parts


def test_a_divergence_of_five_groups_may_exceed_a_bit():
    cell = compose.cell(["metric=group_accuracy", *SCENES_OF_EMOTIONS[1:]])
    score = cell.build("metric").compute(cell.corpus(), splits=[])
    assert score.parts["divergence"].range == (0.0, math.log2(5))


def test_a_ratio_of_a_group_that_is_not_labelled_is_refused():
    cell = compose.cell([*SCENES_OF_EMOTIONS, "metric.numerator=amusement"])
    with pytest.raises(UsageError, match=r"metric\.numerator: 'amusement' is unknown"):
        cell.build("metric").compute(cell.corpus(), splits=[])


def test_complete_sets_are_those_of_scored_images():
    both = [record(i, "a man with a cake", "mf"[i % 2], objects="cake car") for i in range(20)]
    corpus = make_corpus([*both, record(20, "a man", "unsure", objects="cake")])
    metric = MultiDirectional(GENDER, FEW, TASKS, exclude_tasks=(), sets="complete")
    assert metric.compute(corpus, splits=[]).parts["sets"].value == 1


def test_rates_of_naming_are_of_images_whose_objects_are_known():
    people = "a man with a cake"
    records = [record(i, "a man", "m", people, objects="cake" * (i % 2)) for i in range(20)]
    metric = Cooccurrence(GENDER, FEW, TASKS, exclude_tasks=())
    parts = metric.compute(make_corpus(records), splits=[]).parts
    assert parts["distance:male"].value == pytest.approx(1, abs=1e-3)


def test_a_share_of_captions_that_is_just_enough_counts():
    cake, car = "a man with a cake", "a man with a car"
    records = [record(i, cake, "m", cake if i < 6 else car, *[car] * 4) for i in range(24)]
    metric = Cooccurrence(GENDER, FEW, TASKS, exclude_tasks=(), min_support=0.05)
    audit = metric.compute(make_corpus(records), splits=[]).audit
    assert audit["objects_without_support"] == 0  # 6 of 120


def test_sets_of_tasks_that_too_few_captions_name_have_no_score():
    text = "a man with a cake"
    records = [record(i, text, "mf"[i % 2], text, objects="cake") for i in range(9)]
    metric = MultiDirectional(GENDER, FEW, TASKS, exclude_tasks=(), min_support=10)
    with pytest.raises(NotApplicableError, match=r"no set of tasks has metric\.min_support=10"):
        metric.compute(make_corpus(records), splits=[])


def test_three_groups_have_no_ratio_of_two():
    cell = compose.cell(
        ["metric=gender_ratio", "attribute=race_unsure", "dataset.n_images=60", "captioner=terse"]
    )
    with pytest.raises(NotApplicableError, match="3 groups, and gender_ratio compares two"):
        cell.build("metric").compute(cell.corpus(), splits=[])


def test_images_without_a_caption_or_a_group_are_no_corpus():
    corpus = make_corpus([record(0, None, "m", "a man"), record(1, "a man", "unsure")])
    with pytest.raises(DataError, match="no image has both"):
        GenderError(GENDER, FEW).compute(corpus, splits=[])


def test_the_captioner_is_described_without_people():
    texts = ["a man and a car", "a woman and a cake"] * 5
    corpus = make_corpus([record(i, t, "mf"[i % 2]) for i, t in enumerate(texts)])
    metric = Cooccurrence(GENDER, FEW, TASKS, min_support=1, exclude_tasks=())
    score = metric.compute(corpus, splits=[])
    assert score.parts["model"].value == pytest.approx(0.5)
    assert "score" not in score.parts
    assert list(score.notes) == ["no human captions: there is no score"]


@pytest.mark.parametrize("n_images", [MOST_BUNDLES // 2, MOST_BUNDLES * 3])
def test_bundles_of_images_leave_the_interval_as_wide_as_it_is(n_images):
    assert FEWEST_BUNDLES < MOST_BUNDLES
    texts = ["a man", "a man", "a man", "a woman"] * (n_images // 4)
    corpus = make_corpus([record(i, text, "m") for i, text in enumerate(texts)])
    score = GenderError(GENDER, Bootstrap(resamples=1000)).compute(corpus, splits=[])
    estimate = score.parts["score"]
    assert estimate.image_std == pytest.approx((0.25 * 0.75 / n_images) ** 0.5, rel=0.1)
