"""The door, within the test's own process and folder."""

from pathlib import Path

import pytest

from bias_pipeline.commands.main import main
from tests.cli.commands import Run
from tests.tiny_models import write_blip, write_clip, write_pair


@pytest.fixture
def run(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in its own folder; returns exit code and what was printed."""
    monkeypatch.chdir(tmp_path)

    def command(*words: str) -> tuple[int, str]:
        code = main([*words])
        printed = capfd.readouterr()
        return code, printed.out + printed.err

    return command


@pytest.fixture(scope="session")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CLIP of random weights."""
    return write_clip(tmp_path_factory.mktemp("clip"))


@pytest.fixture(scope="session")
def blip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BLIP of random weights."""
    return write_blip(tmp_path_factory.mktemp("blip"))


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A VisionEncoderDecoder of random weights."""
    return write_pair(tmp_path_factory.mktemp("pair"))
