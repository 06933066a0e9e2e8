"""How small a bias can be seen: the rule between measured sizes, and what the command prints."""

from dataclasses import replace

import numpy as np
import pytest

from bias_pipeline.commands.main import main
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.report.power import (
    Measurement,
    Power,
    amount,
    balanced_images,
    detectable,
    measured_powers,
    unseen,
)
from tests.corpora import make_corpus

FIVE = Measurement(
    "d", "lic", "matched", "score", "fraction", 100, 100.0, 5, 4, 0.01, 0.01, 1, 0
)  # fmt: skip
TWENTY = replace(FIVE, planted=20, score=0.5, error=0.07)
LARGE = replace(FIVE, n_images=400, balanced=400.0, error=0.005)
POWER = Power([FIVE, TWENTY, LARGE])


@pytest.mark.parametrize(
    ("n_images", "smallest"),
    [(400, detectable(0.005)), (100, detectable(0.01)), (1600, detectable(0.005) / 2)],
    ids=["a measured size", "of two biases the nearest to what is seen", "beyond, by the root"],
)
def test_the_smallest_bias_follows_from_measured_errors(n_images, smallest):
    assert POWER.smallest(n_images) == pytest.approx(smallest)


def test_the_nearest_measured_size_is_shown():
    assert {m.n_images for m in POWER.at_size(350)} == {400}


def test_a_score_that_is_just_detectable_is_above_chance_in_four_of_five_cases():
    from scipy.stats import norm

    assert norm.sf(1.96 - detectable(1.0)) == pytest.approx(0.8, abs=0.001)


@pytest.mark.parametrize("freedom", [3, 5, 30])
def test_of_few_seeds_four_of_five_tests_by_students_t_find_it(freedom):
    from scipy.stats import nct, t

    power = nct.sf(t.ppf(0.975, freedom), freedom, detectable(1.0, freedom=freedom))
    assert power == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(
    "power",
    measured_powers(),
    ids=lambda p: f"{p.any_measurement.design} {p.any_measurement.metric}",
)
def test_more_images_show_smaller_bias(power):
    assert power.smallest(8000) < power.smallest(250)


def test_the_command_has_a_line_for_each_measured_part(capsys):
    assert main(["analysis", "power", "--n", "500"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(" points " in line or " nat " in line for line in lines) == len(measured_powers())


def test_a_size_that_was_not_measured_is_called_so(capsys):
    main(["analysis", "power", "--n", "50"])
    assert "fall with the root of the number" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [(["--groups", "9"], "images of two groups"), (["--n", "0"], "at least 1"), ([], "--n")],
)
def test_what_is_no_number_of_images_is_refused(words, message, capsys):
    assert main(["analysis", "power", *words]) == 2
    assert message in capsys.readouterr().err


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
