"""Tests of counting metrics and ``encoder=ngram`` under the lowest versions of pyproject.toml.

``make oldest-all``. PyTorch and Lightning are left out, since what is run needs neither, and
old builds for CPUs are not on every index; ``make oldest`` covers published models under the
oldest transformers.
"""

import sys
import tempfile
from pathlib import Path

from tests.corpora import REPOSITORY
from tests.environments import environment
from tests.release import extra, lowest, requirements, without_learning

TESTS = (
    "tests/attack/test_newton.py",
    "tests/attack/test_logistic_probe.py",
    "tests/cli/test_contract.py",
    "tests/cli/test_own_data.py",
    "tests/corpus",
    "tests/datasets",
    "tests/models/test_blocks.py",
    "tests/metrics/counting",
    "tests/stats",
    "tests/text",
)
RUNNERS = ("hypothesis", "pytest", "pytest-xdist", "scikit-learn")


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        env = environment(Path(name))
        pins = lowest([*without_learning(requirements()), *extra("slurm")])
        seconds = env.install(*pins, *RUNNERS)
        print(f"{', '.join(pins)}: installed in {seconds:.0f} s", flush=True)
        words = ["python", "-m", "pytest", "-q", "-m", "not slow and not slurm", *TESTS]
        done = env.run(words, REPOSITORY, PYTHONPATH=str(REPOSITORY))
    print("\n".join(done.text.splitlines()[-60:]))
    return done.code


if __name__ == "__main__":
    sys.exit(main())
