"""Fixtures of attackers' tests."""

from collections.abc import Iterator

import pytest

from bias_pipeline.attack import neural


@pytest.fixture(scope="module")
def processes() -> Iterator[None]:
    """Started once for the tests of a module: they import PyTorch, which takes seconds."""
    yield
    neural._stop_workers()
