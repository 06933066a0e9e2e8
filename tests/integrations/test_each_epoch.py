"""The script that shows the callback: a small training logs both numbers each epoch."""

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # of Lightning, about loaders without workers
]


def test_both_numbers_are_logged_after_each_epoch(tmp_path):
    from experiments.each_epoch.study import table, train

    train(tmp_path, trained=60, others=80, epochs=2)
    logged = table(tmp_path)
    assert logged.index.tolist() == [0, 1]
    assert set(logged) == {"bias/gender_error", "bias/lic", "train_loss"}
    assert logged["bias/lic"].notna().all()  # an error of captions that name nobody is absent
