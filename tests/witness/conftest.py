"""Fixtures for the witness."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where data sets and attackers' predictions are kept between cells."""
    return tmp_path_factory.mktemp("witness")
