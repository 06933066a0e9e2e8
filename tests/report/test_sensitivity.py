"""What a report says of several attackers."""

import pytest

from bias_pipeline.report.report_tables import cell_text
from bias_pipeline.report.sensitivity import MOST_PAIRS, steadiness
from tests.analysis.test_steadiness import TWO, drawn, results


def test_one_attacker_has_no_section():
    assert not list(steadiness(results({"sat": {"lstm": 1}, "nic": {"lstm": 2}}), {}))


def test_scores_stand_beside_their_coefficient():
    (section,) = steadiness(results(), {})
    assert [cell_text(cell) for cell in section.sheets[0].rows[0]] == [
        "sat",
        "10.0",
        "30.0",
        "0.71",
    ]


def test_coefficients_have_intervals_where_draws_are_stored():
    result = results()
    (section,) = steadiness(result, drawn(result))
    assert "[" in cell_text(section.sheets[0].rows[0][-1])


def test_attackers_are_compared_in_pairs():
    (section,) = steadiness(results(), {})
    assert section.sheets[1].rows[0][0] == "lstm x, ngram x"


def test_many_attackers_are_not():
    many = {name: {f"e{i}": float(i + j) for i in range(MOST_PAIRS)} for j, name in enumerate(TWO)}
    (section,) = steadiness(results(many), {})
    assert len(section.sheets) == 1


@pytest.mark.parametrize("absent", ["oscar"])
def test_who_is_left_out_is_told(absent):
    (section,) = steadiness([*results(), *results({absent: {"lstm": 0.1}})], {})
    assert absent in section.notes[0]
