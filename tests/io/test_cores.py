"""How many threads this process may use."""

from __future__ import annotations

import pytest

from bias_pipeline.io.cores import n_cores, n_threads


def test_the_variable_of_openmp_says_how_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert n_threads() == 3


@pytest.mark.parametrize("setting", ["", "0", "many"])
def test_by_default_there_is_a_thread_a_core(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", setting)
    assert n_threads() == n_cores()
