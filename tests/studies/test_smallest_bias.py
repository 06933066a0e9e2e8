"""What an audit says beforehand of bias that it cannot see."""

import numpy as np

from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.report.power import amount, balanced_images, measured_powers, unseen
from tests.corpora import make_corpus


def corpus(n_people: int = 400, labels: str = "mf") -> Corpus:
    """Four hundred images with a caption of the model, some also with one by people."""
    people = [("a cat",) * (i < n_people) for i in range(400)]
    label = [{"gender": labels[i % len(labels)]} for i in range(400)]
    return make_corpus([Record(str(i), "a dog", people[i], label[i]) for i in range(400)])


def test_only_images_that_captioner_and_people_describe_count():
    assert "that 100 images show" in unseen(corpus(100), "gender", ["gender_error"], [])


def test_the_amount_is_the_measured_one():
    (power,) = (
        power for power in measured_powers() if power.any_measurement.metric == "gender_error"
    )
    expected = f"80 %: {amount(power.smallest(400), 'fraction')} (gender_error (named))"
    assert expected in unseen(corpus(), "gender", ["gender_error"], [])


def test_metrics_that_do_not_run_are_left_out():
    assert "lic" not in unseen(corpus(), "gender", ["gender_error", "lic"], [])


def test_of_a_direction_that_needs_objects_nothing_is_said_without_them():
    text = unseen(corpus(), "gender", ["dbac"], [])
    assert ("A→T" in text, "T→A" in text) == (True, False), text


def test_of_one_group_nothing_is_known():
    assert "two groups only" in unseen(corpus(labels="m"), "gender", ["gender_error"], [])


def test_of_several_planted_biases_the_worst_seen_counts():
    balanced = balanced_images(np.array([200, 200]).tolist())
    scores = [p.smallest(balanced) for p in measured_powers() if p.any_measurement.metric == "lic"]
    assert len(scores) > 1
    assert amount(max(scores), "fraction") in unseen(corpus(), "gender", [], ["lic"])
