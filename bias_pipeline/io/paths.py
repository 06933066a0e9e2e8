"""Finds folders of configuration, of studies, of the user's cache and of the user's packages.

A configuration may build classes of the packages that ``--include`` or ``BIAS_PIPELINE_INCLUDE``
names. A configuration file cannot name packages. The environment passes the names on to every
process that a command starts: workers, distributed training, jobs on Slurm.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from bias_pipeline.errors import ResourceError, UsageError, nearest_name
from bias_pipeline.io.installation import PACKAGE


def conf_dir() -> Path:
    """The configuration folder: inside an installed package, next to it in a checkout."""
    inside = PACKAGE / "conf"
    return inside if inside.is_dir() else PACKAGE.parent / "conf"


def user_cache() -> Path:
    root = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    try:
        return root.expanduser() / "bias_pipeline"
    except RuntimeError as error:
        raise ResourceError(f"{error}; set XDG_CACHE_HOME to a folder of your own") from error


def choices_of(folder: Path) -> list[str]:
    """The choices of a configuration group; files with a leading underscore are not choices."""
    return sorted(path.stem for path in folder.glob("[!_]*.yaml"))


def nearest_folder(path: Path) -> str:
    """An existing folder whose path differs from an absent path in one similar name, or empty."""
    absent = next(place for place in (*reversed(path.parents), path) if not place.exists())
    rest = path.relative_to(absent)
    try:
        others = [place for place in absent.parent.iterdir() if (place / rest).is_dir()]
    except OSError:  # not a folder, or not a readable one
        return ""
    near = nearest_name(absent.name, [place.name for place in others])
    return str(absent.parent / near / rest) if near else ""


def safe_name(stem: str) -> str:
    """A file's stem as the name of a captioner: at most 60 letters, digits, ``_`` and ``-``.

    Example:
        >>> safe_name("../BLIP 2 (large)")
        'BLIP_2_large'
    """
    return re.sub(r"[^\w-]+", "_", stem).strip("_-")[:60] or "unnamed"


FLAG = "--include"
VARIABLE = "BIAS_PIPELINE_INCLUDE"
_CONFIG_DIR = "BIAS_PIPELINE_CONFIG_DIR"  # for the processes of a command that audits
_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)


def included_packages() -> tuple[str, ...]:
    names = os.environ.get(VARIABLE, "")
    return tuple(names.split(",")) if names else ()


@contextmanager
def including(words: Sequence[str]) -> Iterator[list[str]]:
    """A command's words without ``--include NAME``; inside the block, NAME is included."""
    names, rest = _split(words)
    before = os.environ.get(VARIABLE)
    try:
        if names:
            os.environ[VARIABLE] = ",".join(dict.fromkeys([*included_packages(), *names]))
        places()
        yield rest
    finally:
        os.environ.pop(VARIABLE, None)
        if before is not None:
            os.environ[VARIABLE] = before


@contextmanager
def with_config_dir(folder: Path | None) -> Iterator[None]:
    """Inside the block, also look for configuration in a folder of the user's YAML files."""
    before = os.environ.get(_CONFIG_DIR)
    try:
        if folder is not None:
            os.environ[_CONFIG_DIR] = str(folder.resolve())
        yield
    finally:
        os.environ.pop(_CONFIG_DIR, None)
        if before is not None:
            os.environ[_CONFIG_DIR] = before


def config_dir_flag() -> list[str]:
    """The words that make another command use the same folder of the user's YAML files."""
    folder = os.environ.get(_CONFIG_DIR)
    return ["--config-dir", folder] if folder else []


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The names after ``--include``, and all other words.

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
    """The arguments with which another command includes the same packages."""
    return [word for name in included_packages() for word in (FLAG, name)]


class _IncludedFinder(MetaPathFinder):
    """Finds included packages that lie in the working folder, and no other modules there."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of an included package, or None for all other modules."""
        del path, target
        if fullname not in included_packages():
            return None
        return PathFinder.find_spec(fullname, [str(Path.cwd())])


def advice_to_include(name: str) -> str:
    """How to include an absent module if it lies in the working folder; empty if it does not."""
    module = name.partition(".")[0]
    if (
        not module
        or module in included_packages()
        or PathFinder.find_spec(module, [str(Path.cwd())]) is None
    ):
        return ""
    return (
        f"; the module {module} of this folder runs only if you include it: if you trust it, add "
        f"{FLAG} {module}"
    )


def shield_processes() -> None:
    """Prevent processes that we start from importing files of the working folder as modules.

    Such a process still finds this package if the package lies in the working folder.
    """
    with suppress(FileNotFoundError):  # a working folder that is gone has no files
        if PACKAGE.parent != Path.cwd():
            os.environ.setdefault("PYTHONSAFEPATH", "1")


def find_included_packages() -> None:
    """Search the working folder for included packages, after all other places."""
    if not any(isinstance(finder, _IncludedFinder) for finder in sys.meta_path):
        sys.meta_path.append(_IncludedFinder())


def places() -> dict[str, Path]:
    """The folder of each included package; no code of the packages is run."""
    find_included_packages()
    return {name: _place(name) for name in included_packages()}


def _place(name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise UsageError(f"{FLAG} {name}: give the name of a package, as {FLAG} my_package")
    spec = find_spec(name)
    if spec is None or not (spec.submodule_search_locations or spec.origin):
        raise ResourceError(
            f"{FLAG} {name}: there is no such package; install it, or start in the folder that "
            "holds it"
        )
    folders = list(spec.submodule_search_locations or [])
    return Path(folders[0] if folders else str(spec.origin))


def conf_dirs() -> list[Path]:
    """Folders of configuration: of this package, ``--config-dir``, and of included packages."""
    further = os.environ.get(_CONFIG_DIR)
    folders = [Path(further)] if further else []
    folders += [place / "conf" for place in places().values()]
    return [conf_dir(), *(folder for folder in folders if folder.is_dir())]


def conf_file(group: str, name: str) -> Path:
    """The file of a choice, which is the first file in the order of Hydra's search path."""
    files = [folder / group / f"{name}.yaml" for folder in conf_dirs()]
    return next((path for path in files if path.is_file()), files[0])


def group_choices(group: str) -> list[str]:
    """The choices of a configuration group in all folders of configuration."""
    return sorted({name for folder in conf_dirs() for name in choices_of(folder / group)})
