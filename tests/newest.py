"""Writes ``constraints.txt``: the versions of packages that the tests ran with.

``python -m tests.newest``, before a release, in the environment of ``make test``.
"""

import re
import sys
from importlib import metadata

from tests.advisories import name_of, requirements_of_all
from tests.corpora import REPOSITORY

PATH = REPOSITORY / "constraints.txt"
_HEAD = """\
# The newest versions that the tests ran with: pip install -c constraints.txt bias_pipeline
# Written by python -m tests.newest. Without a GPU, constraints-cpu.txt has a PyTorch without CUDA.
"""


def versions() -> dict[str, str]:
    """Each package that pyproject.toml names, with the version that is installed here."""
    names = {name_of(re.split(r"[^\w.-]", line)[0]) for line in requirements_of_all()}
    installed = {}
    for name in sorted(names - {"bias-pipeline"}):
        try:
            installed[name] = metadata.version(name).partition("+")[0]
        except metadata.PackageNotFoundError:
            print(f"{name} is not installed here, so no version of it was tested", file=sys.stderr)
    return installed


if __name__ == "__main__":
    lines = [f"{name}=={version}\n" for name, version in versions().items()]
    PATH.write_text(_HEAD + "".join(lines), encoding="utf-8")
