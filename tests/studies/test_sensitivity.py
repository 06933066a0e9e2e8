"""What a report says of several attackers."""

from bias_pipeline.report.page import page
from bias_pipeline.report.sensitivity import MOST_PAIRS, steadiness
from bias_pipeline.report.table import cell_text
from tests.studies.test_steadiness import TWO, drawn, results


def test_one_attacker_has_no_section():
    assert not list(steadiness(results({"sat": {"lstm": 1}, "nic": {"lstm": 2}}), {}))


def test_scores_stand_beside_their_coefficient_and_attackers_are_compared_in_pairs():
    (section,) = steadiness(results(), {})
    cells = [cell_text(cell) for cell in section.tables[0].rows[0]]
    assert cells == ["sat", "10.0", "30.0", "0.71"]
    assert section.tables[1].rows[0][0] == "lstm x, ngram x"


def test_coefficients_have_intervals_where_draws_are_stored():
    result = results()
    (section,) = steadiness(result, drawn(result))
    assert "[" in cell_text(section.tables[0].rows[0][-1])


def test_many_attackers_are_not():
    many = {name: {f"e{i}": float(i + j) for i in range(MOST_PAIRS)} for j, name in enumerate(TWO)}
    (section,) = steadiness(results(many), {})
    assert len(section.tables) == 1


def test_who_is_left_out_is_told():
    (section,) = steadiness([*results(), *results({"oscar": {"lstm": 0.1}})], {})
    assert "oscar" in section.notes[0]


def test_the_mean_over_captioners_is_no_captioner():
    text = page(results(), {})
    assert ('data-captioner="sat"' in text, 'data-captioner="mean"' in text) == (True, False)


def test_a_score_that_is_no_fraction_is_not_in_per_cent():
    (section,) = steadiness(results(unit="1/nat"), {})
    assert [cell_text(cell) for cell in section.tables[0].rows[0]][1:3] == ["0.10", "0.30"]
