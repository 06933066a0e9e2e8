"""DPA on the worked case, its closed form, planted captioners, and what it refuses."""

from collections.abc import Sequence

import numpy as np
import pytest

from bias_pipeline.attack.logistic import ConvexProbe
from bias_pipeline.attack.ngram import Ngram
from bias_pipeline.corpus.attribute import TaskVocabulary
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.corpus.split import Split
from bias_pipeline.corpus.split_rules import HoldOut
from bias_pipeline.errors import NotApplicableError, UsageError
from bias_pipeline.metrics.attack.dpa import DPA
from bias_pipeline.metrics.base import Score
from bias_pipeline.metrics.functional.dpa import (
    exchange_labels,
    expected_equalised,
    flip_labels,
    ideal_accuracy,
    ideal_dpa,
)
from bias_pipeline.run import compose
from bias_pipeline.stats.bootstrap import Bootstrap
from bias_pipeline.stats.scoring import Accuracy, InverseCrossEntropy, Scoring
from tests.corpora import GENDER, make_corpus
from tests.oracles import oracle

SEEDS = (0, 1, 2, 3, 4)
TASKS = TaskVocabulary("toy", {"person": (), "umbrella": ("umbrella",), "hot dog": ("hot dog",)})
Cells = Sequence[Sequence[int]]

# A, T, T predicted, how many: the first toy of the worked case, written out so that tests run
# where the file is absent.
AMPLIFIED = [
    [0, 0, 0, 640], [0, 0, 1, 0], [0, 1, 0, 160], [0, 1, 1, 200],
    [1, 0, 0, 200], [1, 0, 1, 160], [1, 1, 1, 640],
]  # fmt: skip


def metric(scoring: Scoring | None = None, **options: object) -> DPA:
    settings = {"min_support": 10, **options}
    return DPA(
        GENDER, TASKS, ConvexProbe(Ngram()), HoldOut(0.2, balanced=False),
        scoring or Accuracy(), Bootstrap(resamples=50), **settings,
    )  # fmt: skip


def triples(cells: Cells) -> list[tuple[int, int, int]]:
    """(A, T, T predicted) of each image."""
    return [(a, t, p) for a, t, p, n in cells for _ in range(n)]


def group_to_task(cells: Cells, tasks: Sequence[str] = ("umbrella",)) -> Corpus:
    """A is the group; T whether the tasks are in the image, all or none."""
    records = []
    for i, (a, task, predicted) in enumerate(triples(cells)):
        text = " ".join(["a", *(tasks if predicted else ["thing"])])
        objects = frozenset({"person", *(tasks if task else [])})
        records.append(Record(str(i), text, labels={"gender": "mf"[a]}, objects=objects))
    return make_corpus(records)


def task_to_group(cells: Cells) -> Corpus:
    """A is whether the image holds an umbrella; T the group, T predicted the group named."""
    records = []
    for i, (present, group, predicted) in enumerate(triples(cells)):
        text = f"a {('man', 'woman')[predicted]}"
        objects = frozenset({"person", *(["umbrella"] if present else [])})
        records.append(Record(str(i), text, labels={"gender": "mf"[group]}, objects=objects))
    return make_corpus(records)


def in_sample(corpus: Corpus, metric: DPA) -> Score:
    """Attackers scored on what they learnt from, as in the worked case."""
    rows, none = np.arange(len(corpus)), np.empty(0, np.int64)
    splits = [Split(seed, rows, rows, none, balanced=False) for seed in SEEDS]
    return metric.compute(corpus, splits=splits)


def value(score: Score, name: str) -> float:
    return score.parts[name].value


def table(cells: Cells, column: int) -> np.ndarray:
    counts = np.zeros((2, 2))
    for line in cells:
        counts[line[0], line[column]] += line[3]
    return counts


def test_the_cells_are_those_of_the_worked_case():
    assert oracle("dpa_toy")["cases"]["amplified"]["cells_A_T_Tpred_count"] == AMPLIFIED


def test_the_closed_form_is_that_of_the_worked_case():
    expected = oracle("dpa_toy")["cases"]["amplified"]["closed_form"]
    labels, predicted, q = table(AMPLIFIED, 1), table(AMPLIFIED, 2), expected["quality_q"]
    lines = [ideal_accuracy(predicted), ideal_accuracy(expected_equalised(labels, q))]
    assert lines == pytest.approx([expected["lambda_M"], expected["lambda_D"]], abs=1e-6)
    assert ideal_dpa(labels, predicted, q) == pytest.approx(expected["DPA_normalised"], abs=1e-6)


@pytest.mark.parametrize(
    ("corpus", "name"),
    [
        (group_to_task(AMPLIFIED), "a_to_t"),
        (group_to_task(AMPLIFIED, ("umbrella", "hot dog")), "a_to_t"),
        (group_to_task(AMPLIFIED, ("umbrella", "hot dog")), "a_to_t:object:hot dog"),
        (task_to_group(AMPLIFIED), "t_to_a"),
    ],
    ids=["A→T", "A→T, two tasks", "A→T, one of two tasks", "T→A"],
)
def test_attackers_reach_the_closed_form(corpus, name):
    """Within the tolerances of the worked case: 0.012 for five seeds, 0.02 for one."""
    expected = ideal_dpa(table(AMPLIFIED, 1), table(AMPLIFIED, 2), 0.84).item()
    estimate = in_sample(corpus, metric()).parts[name]
    assert estimate.value == pytest.approx(expected, abs=0.012)
    assert estimate.draws is not None
    assert estimate.draws.per_seed == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(
    ("corpus", "name"),
    [(group_to_task(AMPLIFIED), "a_to_t"), (task_to_group(AMPLIFIED), "t_to_a")],
    ids=["A→T", "T→A"],
)
def test_held_out_images_give_the_same_and_labels_are_as_wrong_on_them(corpus, name):
    """The noise once went by the numbers of the split: all of it fell on tested images."""
    dpa = metric()
    score = dpa.compute(corpus, splits=dpa.draw_splits(corpus, range(20)))
    estimate = score.parts[name]
    assert estimate.ci_low <= 0.1468 <= estimate.ci_high
    (predictions,) = (p for p in score.predictions if p.name == f"{name}:human")
    right = corpus.groupings["gender"].codes
    if name == "a_to_t":
        right = np.array(["umbrella" in (record.objects or ()) for record in corpus]).astype(int)
    wrong = [(t.ravel() != right[images]).mean() for images, t, _ in predictions]
    assert np.mean(wrong) == pytest.approx(0.16, abs=0.03)


def test_a_captioner_that_guesses_less_than_people_is_below_zero():
    """Groups hold all there is to know of the labels; the captioner names at random."""
    random = [[a, a, p, 250] for a in (0, 1) for p in (0, 1)]
    expected = ideal_dpa(table(random, 1), table(random, 2), 0.5).item()
    equalised, as_they_are = (
        value(in_sample(group_to_task(random), metric(equalise=how)), "a_to_t")
        for how in ("flip", "none")
    )
    assert equalised == pytest.approx(expected, abs=0.02)
    assert as_they_are < -0.2


def test_the_accuracy_that_labels_are_equalised_to_is_told_and_only_they_carry_noise():
    score = in_sample(group_to_task(AMPLIFIED), metric())
    assert value(score, "a_to_t:accuracy") == pytest.approx(0.84)
    model, human = ({t.tobytes() for t in p.truth} for p in score.predictions[:2])
    assert (len(model), len(human)) == (1, len(SEEDS))  # each seed has noise of its own


def test_without_equalising_labels_stay_as_they_are():
    expected = ideal_dpa(table(AMPLIFIED, 1), table(AMPLIFIED, 2), 1.0).item()
    result = value(in_sample(group_to_task(AMPLIFIED), metric(equalise="none")), "a_to_t")
    assert result == pytest.approx(expected, abs=1e-9)


def test_one_over_cross_entropy_is_a_quality_and_stays_finite():
    """A perfect attacker made the public code infinite."""
    certain = [[0, 0, 0, 500], [1, 1, 1, 500]]
    built_metric = metric(InverseCrossEntropy(bound=0.1))
    sample = in_sample(group_to_task(certain), built_metric)
    assert value(sample, "a_to_t:quality:model") == pytest.approx(10.0)
    assert value(sample, "a_to_t") == 0.0


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_equalised_labels_are_right_as_often_as_predictions(n_classes):
    generator = np.random.default_rng(0)
    labels, predicted = generator.integers(0, n_classes, (2, 500))
    keys = generator.integers(0, 2**63, 500).astype(np.uint64)
    result = flip_labels(labels, predicted, n_classes, keys)
    assert (result == labels).sum() == (predicted == labels).sum()
    assert set(result.tolist()) <= set(range(n_classes))


def test_flips_reach_every_other_class():
    generator = np.random.default_rng(0)
    labels, keys = np.zeros(3000, np.int64), generator.integers(0, 2**63, 3000).astype(np.uint64)
    counts = np.bincount(flip_labels(labels, labels + 1, 4, keys))
    assert counts[0] == 0
    assert counts[1:] == pytest.approx(1000, abs=100)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_exchanged_labels_are_as_frequent_as_before_and_as_right_as_predictions(n_classes):
    generator = np.random.default_rng(0)
    labels = generator.integers(0, n_classes, 5000) * (generator.random(5000) < 0.3)
    for n_wrong in (0, 2, 250, 499):
        predicted = labels.copy()
        predicted[:n_wrong] = (predicted[:n_wrong] + 1) % n_classes
        keys = generator.integers(0, 2**63, 5000).astype(np.uint64)
        result = exchange_labels(labels, predicted, n_classes, keys)
        assert sorted(result) == sorted(labels)
        assert abs((result != labels).sum() - n_wrong) <= n_wrong % 2


def test_exchanged_labels_are_no_more_wrong_than_by_chance():
    """A captioner that errs more often than rare labels can has an exchange of all labels."""
    labels, keys = np.array([1] * 10 + [0] * 90), np.arange(100, dtype=np.uint64)
    result = exchange_labels(labels, 1 - labels, 2, np.random.default_rng(0).permutation(keys))
    assert (result != labels).sum() == pytest.approx(2 * 0.1 * 0.9 * 100, abs=4)


def test_labels_of_one_class_cannot_be_exchanged():
    labels = np.zeros(10, np.int64)
    assert (
        exchange_labels(labels, 1 - labels, 2, np.arange(10, dtype=np.uint64)).tolist() == [0] * 10
    )


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"labels": "nothing"}, "labels='nothing' must be one of"),
        ({"equalise": "nothing"}, "equalise='nothing' must be one of"),
        ({"exclude_tasks": ["parasol"]}, r"metric\.exclude_tasks: 'parasol'"),
        ({"min_support": -1}, "min_support=-1"),
    ],
)
def test_odd_settings_are_refused(setting, message):
    with pytest.raises(UsageError, match=message):
        metric(**setting)


def test_what_cannot_be_asked_has_no_value_and_says_why():
    sample = in_sample(group_to_task(AMPLIFIED), metric(min_support=5000))
    assert np.isnan([value(sample, "a_to_t"), value(sample, "t_to_a")]).all()
    reasons = [note.partition(":")[0] for note in sample.notes]
    assert reasons == ["A→T cannot be scored", "T→A cannot be scored"]


def test_label_noise_that_leaves_a_seed_no_test_image_of_a_group_is_told():
    """The two tested images of a seed are then of one group, and nothing balanced is left."""
    records = [
        Record(
            f"26_{i}",
            "a woman with an umbrella" if (i < 14) != (i % 8 == 0) else "a man",
            labels={"gender": "fm"[i >= 14]},
            objects=frozenset({"umbrella"} if i % 2 else ()),
        )
        for i in range(130)
    ]
    corpus = make_corpus(records)
    dpa = metric()
    splits = HoldOut(0.1).draw(corpus, "gender", range(30))
    with pytest.raises(NotApplicableError, match=r"\(t_to_a:human\) can be tested with seed"):
        dpa.compute(corpus, splits=splits)


WORLD = ("metric=dpa", "dataset.n_images=2000", "stats.resamples=50", "probe.cache=null")


def planted_score(captioner: str, *words: str, seeds: Sequence[int] = (0, 12, 456)) -> Score:
    cell = compose.cell([*WORLD, f"captioner={captioner}", *words])
    dpa, corpus = cell.build("metric"), cell.corpus()
    score: Score = dpa.compute(corpus, splits=dpa.draw_splits(corpus, seeds))
    return score


def planted_task(model: float) -> Corpus:
    """Objects in 60 and 40 % of the images of the groups; captions name them at other rates."""
    return group_to_task(
        [
            [a, t, p, round(1000 * (share if t else 1 - share) * (named if p else 1 - named))]
            for a, share, named in ((0, 0.6, model), (1, 0.4, 1 - model))
            for t in (0, 1)
            for p in (0, 1)
        ]
    )


@pytest.mark.parametrize("model", [0.9, 0.75, 0.1], ids=["strongly", "somewhat", "reversed"])
def test_a_common_task_named_by_group_is_amplified(model):
    assert in_sample(planted_task(model), metric()).parts["a_to_t"].ci_low > 0


def test_published_noise_puts_one_that_speaks_like_people_above_zero_and_ours_does_not():
    published, ours = (
        planted_score("faithful", "metric.labels=first", f"metric.equalise={how}").parts["a_to_t"]
        for how in ("flip", "exchange")
    )
    assert published.ci_low > 0
    assert ours.ci_low <= 0 <= ours.ci_high


def test_a_captioner_that_lets_objects_decide_the_group_amplifies_t_to_a():
    assert planted_score("stereotyper", seeds=range(10)).parts["t_to_a"].ci_low > 0


def test_one_that_always_names_the_right_group_does_not():
    assert value(planted_score("faithful"), "t_to_a") == 0.0
