"""The committed false alarms of ``experiments/counterfactual``."""

import pandas as pd

from experiments.counterfactual.study import ALARMS

MOST = 28  # of 400 draws, the target


def test_no_test_gives_more_false_alarms_than_its_level_allows():
    alarms = pd.read_csv(ALARMS)
    assert set(alarms["draws"]) == {400}
    assert {20, 50, 200} <= set(alarms["sets"])
    assert alarms["rejected"].max() <= MOST
