"""What a study says of the errors of its labels, from answers whose errors are planted."""

import json
import re
from dataclasses import asdict

import numpy as np
import pytest

from bias_pipeline.people.web.study import Rating
from bias_pipeline.people.web.summary import agreement_lines, error_lines
from bias_pipeline.run.compose import cell

GROUPS = ("male", "female")


def ratings(n_items: int, errors: dict[str, float]) -> list[Rating]:
    """Answers of raters who err independently, half of the items of each group."""
    generator = np.random.default_rng(0)
    return [
        Rating(str(item), rater, GROUPS[(item + (generator.random() < error)) % 2], 1.0, "")
        for item in range(n_items)
        for rater, error in errors.items()
    ]


def test_three_raters_tell_how_often_the_majority_errs():
    """Of three who err in a tenth, two or three err together in 2.8 %."""
    (line,) = error_lines(ratings(2000, dict.fromkeys("abc", 0.1)), GROUPS)
    shares = re.findall(r"([\d.]+)% of (\w+) \[([\d.]+)%, ([\d.]+)%\]", line)
    assert [group for _, group, *_ in shares] == list(GROUPS)
    for error, _, low, high in shares:
        assert float(error) == pytest.approx(2.8, abs=1.0)
        assert float(low) < 2.8 < float(high)


def test_no_error_among_few_items_leaves_some_possible():
    """Of 132 items without an error up to 2.8 % may still be wrong, by Wilson's interval."""
    (line,) = error_lines(ratings(264, dict.fromkeys("abc", 0.0)), GROUPS)
    ends = re.findall(r"0.0% of \w+ \[0.0%, ([\d.]+)%\]", line)
    assert [float(end) for end in ends] == pytest.approx([2.8, 2.8], abs=0.1)


def test_of_a_group_that_is_no_items_label_nothing_is_said():
    male = [Rating(str(item), rater, "male", 1.0, "") for item in range(40) for rater in "cab"]
    *_, last = error_lines([Rating("0", "c", "female", 1.0, ""), *male[1:]], GROUPS)
    assert last.startswith("how often the label female errs is unknown")


def test_two_raters_give_a_range_with_its_assumption():
    (line,) = error_lines(ratings(2000, {"a": 0.0, "b": 0.1}), GROUPS)
    assert "if they err independently" in line
    low, high = (float(end) for end in re.findall(r"([\d.]+)% \((?:one|both)", line))
    assert (low, high) == (pytest.approx(5.0, abs=0.7), pytest.approx(5.3, abs=0.8))


def test_what_three_raters_tell_is_written_for_label_noise(tmp_path):
    study = {"question": "?", "attribute": "gender", "answers": list(GROUPS)}
    (tmp_path / "study.json").write_text(json.dumps(study))
    lines = [asdict(rating) for rating in ratings(1000, dict.fromkeys("abc", 0.1))]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    *_, last = agreement_lines(tmp_path)
    assert f"dataset.label_noise={tmp_path}/label_errors.csv" in last
    here = cell([f"dataset.label_noise={tmp_path}/label_errors.csv"])
    assert here.label_noise is not None
    assert here.label_noise.wrong_shares(GROUPS)["male"] == pytest.approx(0.028, abs=0.01)


def test_of_few_items_it_is_said_that_they_are_few_and_cannot_tell_is_no_answer():
    (line,) = error_lines(ratings(29, dict.fromkeys("abc", 0.1)), GROUPS)
    assert line.endswith("(here 29), or that two could tell (here 0)")
    silent = [Rating(str(n), "c", "Unsure", 1.0, "") for n in range(100)]
    (line,) = error_lines([*ratings(100, dict.fromkeys("ab", 0.1)), *silent], GROUPS)
    assert line.startswith("two raters differ")
