"""Environments of their own: what a package costs and does where nothing else is installed."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.corpora import REPOSITORY

CONSTRAINTS = [] if shutil.which("nvidia-smi") else ["-c", str(REPOSITORY / "constraints-cpu.txt")]
# What shapes how Python and this package run must come from the environment that is tried.
_OURS = re.compile(r"PYTHON|VIRTUAL_ENV|BIAS_PIPELINE_|PIP_CONSTRAINT")


@dataclass(frozen=True)
class Done:
    """What a command did."""

    code: int
    text: str  # that it printed
    seconds: float


@dataclass(frozen=True)
class Environment:
    """A virtual environment in a folder."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def megabytes(self) -> float:
        """The size of what is installed, links not followed."""
        files = (path for path in self.folder.rglob("*") if path.is_file())
        return sum(path.lstat().st_size for path in files) / 1e6

    def run(self, words: Sequence[str | Path], folder: Path, **variables: str) -> Done:
        """Run one of its programs in a folder, without our settings of Python but with these."""
        command = [str(self.folder / "bin" / words[0]), *map(str, words[1:])]
        others = {key: value for key, value in os.environ.items() if not _OURS.match(key)}
        started = time.monotonic()
        done = subprocess.run(
            command,
            cwd=folder,
            env={**others, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return Done(done.returncode, done.stdout, time.monotonic() - started)

    def install(self, *words: str) -> float:
        """Install packages; returns the seconds.

        Raises:
            RuntimeError: with what pip printed.
        """
        done = self.run(["python", "-m", "pip", "install", "-q", *words], self.folder)
        if done.code != 0:
            raise RuntimeError(done.text)
        return done.seconds


def environment(folder: Path, interpreter: str = sys.executable) -> Environment:
    """A new, empty environment of an interpreter."""
    subprocess.run([interpreter, "-m", "venv", str(folder)], check=True)
    return Environment(folder)


def interpreter_of(version: str) -> str | None:
    """The interpreter of a version such as 3.12: on the path, or one that pyenv keeps; or None."""
    names = [f"python{version}", *_of_pyenv(version)]
    return next((name for name in names if _runs(name)), None)


def _of_pyenv(version: str) -> list[str]:
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    return [str(path) for path in sorted(root.glob(f"versions/{version}.*/bin/python"))]


def _runs(name: str) -> bool:
    """A shim of pyenv exists for versions that it would not start."""
    if shutil.which(name) is None:
        return False
    return subprocess.run([name, "-V"], capture_output=True, check=False).returncode == 0


def build(folder: Path) -> list[Path]:
    """The sdist of this repository, and the wheel that is made of it."""
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(REPOSITORY)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return sorted(folder.iterdir(), key=lambda path: path.suffix)
