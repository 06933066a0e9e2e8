"""Declared numbers: shares by group, differences, and the largest gap between groups."""

import numpy as np
import pytest
from scipy import sparse

from bias_pipeline.metrics.counting.numbers import CountedNumber, LargestGap, Tally, counted_share
from bias_pipeline.metrics.counting.resampling import estimates_of
from bias_pipeline.metrics.value_names import SCORE, PartName
from bias_pipeline.stats.bootstrap import Bootstrap

N_IMAGES = 300
EVERY = np.ones(N_IMAGES, bool)
CODES = np.arange(N_IMAGES) % 3
GROUPS = ("a", "b", "c")


def gap_of(*rows: tuple[float, ...]) -> LargestGap:
    values = np.array(rows)
    groups = [CountedNumber(values=column, images=EVERY) for column in values.T]
    return LargestGap(groups=groups, images=EVERY)


def test_a_group_has_its_column_and_its_images():
    share = counted_share(np.array([[1.0, 2.0, 3.0]]), np.array([[4.0, 4.0, 0.0]]), EVERY)
    shares = share.by_group(GROUPS, "named", CODES)
    assert [*shares] == ["named:a", "named:b", "named:c"]
    one, other, absent = shares.values()
    assert (one.values.item(), other.values.item()) == (0.25, 0.5)
    assert np.isnan(absent.values.item())
    assert one.observations.item() == 4
    assert (one.images == (CODES == 0)).all()


def test_the_gap_is_that_of_the_same_groups_in_every_resampling():
    whole = gap_of((0.1, 0.5, 0.9))
    drawn = gap_of((0.9, 0.5, 0.1), (0.2, 0.9, 0.4))
    number = drawn.between_extremes(whole)
    assert number.values.tolist() == pytest.approx([-0.8, 0.2])
    assert number.chosen_from == 3


def test_the_gap_of_two_groups_has_no_sign():
    number = gap_of((0.9, 0.1)).between_extremes(gap_of((0.1, 0.9)))
    assert number.values.tolist() == pytest.approx([0.8])


def test_a_gap_that_no_group_has_is_absent():
    number = gap_of((np.nan, np.nan)).between_extremes(gap_of((np.nan, np.nan)))
    assert np.isnan(number.values).all()


def test_a_difference_of_shares_without_an_event_has_an_interval():
    """Resampling never moves it; the shares have Wilson's intervals."""
    table = sparse.csr_array(np.eye(3)[CODES])

    def numbers(sums):
        shares = counted_share(0 * sums["all"], sums["all"], EVERY).by_group(GROUPS)
        one, other, _ = shares.values()
        return {SCORE: one - other, **shares}

    tally = Tally({"all": table}, numbers)
    keys = np.arange(N_IMAGES, dtype=np.uint64)
    estimates = estimates_of(
        tally, tally.counted_numbers(tally.totals), keys, Bootstrap(resamples=50)
    )
    score, group = estimates[SCORE], estimates[PartName(group="a")]
    assert (score.value, group.value, group.ci_low) == (0, 0, 0)
    assert score.ci_low < 0 < score.ci_high == group.ci_high


@pytest.mark.parametrize("count", [3.0, 2.0**24 + 1, 0.1])
def test_sums_of_images_are_exact_whatever_is_counted(count):
    """Whole numbers are multiplied in single precision, which has 24 binary digits."""
    totals = []

    def numbers(sums):
        totals.append(sums["all"])
        return {SCORE: CountedNumber(values=sums["all"][:, 0], images=EVERY)}

    tally = Tally({"all": sparse.csr_array(np.full((N_IMAGES, 1), count))}, numbers)
    keys, stats = np.arange(N_IMAGES, dtype=np.uint64), Bootstrap(resamples=50)
    estimates_of(tally, tally.counted_numbers(tally.totals), keys, stats)
    assert {each.dtype for each in totals} == {np.dtype(np.float64)}
    drawn = np.concatenate(totals) / count
    assert np.abs(drawn - np.rint(drawn)).max() < 1e-12 * N_IMAGES
