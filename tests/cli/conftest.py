"""The door, within the test's own process and folder."""

import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bias_pipeline.commands.main import main
from bias_pipeline.run import audit as auditing
from tests.cli.commands import SMALL, Run, results
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


@pytest.fixture
def ok(run: Run) -> Callable[..., str]:
    """Run a command that ends well; returns what was printed."""

    def command(*words: str) -> str:
        code, printed = run(*words)
        assert code == 0, printed
        return printed

    return command


@pytest.fixture
def ends(run: Run) -> Callable[..., str]:
    """Run a command that ends with a code, and without a traceback; returns what was printed."""

    def command(code: int, *words: str) -> str:
        ended, printed = run(*words)
        assert (ended, "Traceback" in printed) == (code, False), printed
        return printed

    return command


@pytest.fixture
def plan(monkeypatch) -> Callable[..., None]:
    """Have audits plan these metrics, whatever the time."""

    def command(
        *metrics: str, left_out: tuple[str, ...] = (), matched: tuple[str, ...] = ()
    ) -> None:
        chosen = auditing.Plan([*metrics], [*left_out], 1, 1.0, matched)
        monkeypatch.setattr(auditing, "plan_for", lambda *_, **__: chosen)

    return command


@dataclass(frozen=True)
class Finished:
    """A run of ``SMALL``, to be read and not changed."""

    folder: Path  # that it ran in
    printed: str

    @property
    def result(self) -> Path:
        (path,) = results(self.folder)
        return path


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """The run folder and the words of one small cell."""
    folder, printed = tmp_path_factory.mktemp("finished"), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        assert main(SMALL) == 0
    return Finished(folder, printed.getvalue())


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
