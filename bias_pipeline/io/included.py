"""Packages of the user's whose classes a configuration may build, besides ours.

Who runs a command names them, with ``--include`` or in ``BIAS_PIPELINE_INCLUDE``; no configuration
file can. The names stand in the environment, so every process that a command starts has them: its
workers, the children of a distributed training, jobs on Slurm.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from bias_pipeline.errors import ResourceError, UsageError
from bias_pipeline.io.paths import choices_of, conf_dir

FLAG = "--include"
VARIABLE = "BIAS_PIPELINE_INCLUDE"
_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)


def included() -> tuple[str, ...]:
    """The names of the packages, in the order of naming."""
    found = os.environ.get(VARIABLE, "")
    return tuple(found.split(",")) if found else ()


@contextmanager
def including(words: Sequence[str]) -> Iterator[list[str]]:
    """The words of a command without ``--include NAME``, while what they name is included.

    Raises:
        UsageError: if a name is missing, or is none of a package.
        ResourceError: if a package is not found.
    """
    names, rest = _split(words)
    before = os.environ.get(VARIABLE)
    try:
        if names:
            os.environ[VARIABLE] = ",".join(dict.fromkeys([*included(), *names]))
        places()
        yield rest
    finally:
        os.environ.pop(VARIABLE, None)
        if before is not None:
            os.environ[VARIABLE] = before


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The names behind ``--include``, and all other words.

    Example:
        >>> _split(["metric=mine", "--include", "own", "--include=other"])
        (['own', 'other'], ['metric=mine'])
    """
    names, rest, left = [], [], list(words)
    while left:
        flag, equals, value = left.pop(0).partition("=")
        if flag != FLAG:
            rest.append(f"{flag}{equals}{value}")
            continue
        name = value if equals or not left else left.pop(0)
        if not name:
            raise UsageError(f"{FLAG} needs the name of a package, as {FLAG} my_package")
        names.append(name)
    return names, rest


def flags() -> list[str]:
    """The words that include the same packages in another command."""
    return [word for name in included() for word in (FLAG, name)]


def places() -> dict[str, Path]:
    """Each package and where it is; nothing of it is run.

    Raises:
        UsageError: if a name is none of a package.
        ResourceError: if there is no such package.
    """
    return {name: _place(name) for name in included()}


def _place(name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise UsageError(f"{FLAG} {name}: give the name of a package, as {FLAG} my_package")
    found = find_spec(name)
    if found is None or not (found.submodule_search_locations or found.origin):
        raise ResourceError(
            f"{FLAG} {name}: there is no such package; install it, or start in the folder that "
            "holds it"
        )
    folders = list(found.submodule_search_locations or [])
    return Path(folders[0] if folders else str(found.origin))


def conf_dirs() -> list[Path]:
    """The folders of configuration: ``conf`` within each included package, then ours."""
    own = [place / "conf" for place in places().values()]
    return [*(folder for folder in own if folder.is_dir()), conf_dir()]


def conf_file(group: str, name: str) -> Path:
    """The file of a choice: the first that there is, as in Hydra's search path."""
    files = [folder / group / f"{name}.yaml" for folder in conf_dirs()]
    return next((path for path in files if path.is_file()), files[-1])


def group_choices(group: str) -> list[str]:
    """The choices of a configuration group, of included packages too."""
    return sorted({name for folder in conf_dirs() for name in choices_of(folder / group)})
