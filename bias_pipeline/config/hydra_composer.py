"""Composes configurations: checks the files first, then the result.

Each file is read and each job composed once, however often it is needed: by our checks before
anything runs, by Hydra's check of a sweep, and by Hydra's run of each job. Composing is most of the
time of a sweep of cached cells.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra import version
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import ConfigRepository
from hydra._internal.utils import create_config_search_path
from hydra.core.config_search_path import SearchPathQuery
from hydra.core.object_type import ObjectType
from hydra.core.utils import JobRuntime
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from bias_pipeline.config.hydra_allowlist import BY_FLAGS, check_hydra
from bias_pipeline.config.targets import PACKAGE
from bias_pipeline.config.yaml_files import (
    broken,
    check_defaults,
    check_references,
    check_yaml,
    restrict_environment,
)
from bias_pipeline.errors import BiasPipelineError, ResourceError, UsageError, did_you_mean
from bias_pipeline.io.machine import LAUNCHERS
from bias_pipeline.io.paths import conf_dir, conf_dirs

if TYPE_CHECKING:
    from hydra._internal.config_repository import CachingConfigRepository, IConfigRepository
    from hydra.core.config_search_path import ConfigSearchPath
    from hydra.core.default_element import InputDefault, ResultDefault
    from hydra.core.override_parser.types import Override
    from hydra.plugins.config_source import ConfigResult, ConfigSource
    from omegaconf import DictConfig

KEPT = 500  # composed jobs that a loader caches; each takes about 40 kB


def loader_of(config_dir: str | None = None) -> Loader:
    """A loader of our configuration and of the user's folder."""
    version.setbase("1.3")
    restrict_environment()
    JobRuntime().set("name", PACKAGE)  # which names the log of a job
    path = create_config_search_path(str(conf_dir()))
    schema = SearchPathQuery(provider="schema", path=None)
    for number, folder in enumerate(_folders(config_dir)):
        path.prepend(provider=f"command-line-{number}", path=f"file://{folder}", anchor=schema)
    return Loader(path)


def _folders(config_dir: str | None) -> list[Path]:
    """Folders searched before ours; the last one is searched first."""
    *included_folders, _ = conf_dirs()
    if config_dir is None:
        return included_folders[::-1]
    folder = Path(config_dir).resolve()
    if not folder.is_dir():
        raise UsageError(f"--config-dir={config_dir} is not a folder")
    if not any(next((folder / group).rglob("*.yaml"), None) for group in _groups()):
        raise UsageError(
            f"--config-dir={config_dir} has no configuration; each file goes into a folder named "
            "after its group, such as attribute/NAME.yaml"
        )
    return [*included_folders[::-1], folder]


def _groups() -> list[str]:
    """The names of the folders of configuration files."""
    return [path.name for folder in conf_dirs() for path in folder.iterdir() if path.is_dir()]


class Loader(ConfigLoaderImpl):
    """Composes and checks, without running or importing anything that a configuration names.

    It caches composed jobs and returns copies.

    Args:
        config_search_path: where configuration files are.
    """

    def __init__(self, config_search_path: ConfigSearchPath) -> None:
        super().__init__(config_search_path)
        self.repository: Repository = Repository(config_search_path)
        self._composed: dict[tuple[object, ...], _Kept] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Without the cache, for another process."""
        return {**vars(self), "_composed": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restrict the environment in that process too."""
        restrict_environment()
        vars(self).update(state)

    def job(self, overrides: Sequence[str]) -> DictConfig:
        """The configuration of one job."""
        return self.load_configuration("config", [*overrides], RunMode.RUN, False)

    def load_configuration(
        self,
        config_name: str | None,
        overrides: list[str],
        run_mode: RunMode,
        from_shell: bool = True,
        validate_sweep_overrides: bool = True,
    ) -> DictConfig:
        """The files with overrides applied, references unresolved.

        Raises:
            UsageError: if it does not compose, or sets a key of Hydra that is not allowed.
            ResourceError: if a file cannot be read.
        """
        key = (config_name, *overrides, run_mode, validate_sweep_overrides)
        if key in self._composed:
            return self._composed[key].copy()
        try:
            config = super().load_configuration(
                config_name, overrides, run_mode, from_shell, validate_sweep_overrides
            )
            written = _Kept(config)  # copied first, since checking resolves parts of it
            check_composed(config)
        except BiasPipelineError:
            raise
        except HydraException as error:  # some of them are OSErrors too
            _check_launcher(str(error))
            raise UsageError(composition_message(error)) from error
        except OSError as error:
            place = error.filename or "the working folder"
            raise ResourceError(f"{place} cannot be read: {error.strerror}") from error
        except Exception as error:  # Hydra's parts raise any exception
            raise UsageError(composition_message(error)) from error
        if len(self._composed) < KEPT:
            self._composed[key] = written
        return config

    def _compose_config_from_defaults_list(
        self, defaults: list[ResultDefault], repo: IConfigRepository
    ) -> DictConfig:
        """The merged files of a defaults list; once for all jobs that differ only in values."""
        names = [default.config_path for default in defaults if default.config_path is not None]
        key = (*map(astuple, defaults), *map(self.repository.version, names))
        if key not in _MERGED:
            while len(_MERGED) >= KEPT:
                _MERGED.pop(next(iter(_MERGED)))
            _MERGED[key] = _Kept(super()._compose_config_from_defaults_list(defaults, repo))
        return _MERGED[key].copy()

    def _process_config_searchpath(
        self,
        config_name: str | None,
        parsed_overrides: list[Override],
        repo: CachingConfigRepository,
    ) -> None:
        """Refuse to extend the search path: Hydra would import a package to read it."""
        del config_name, repo
        for override in parsed_overrides:
            if override.key_or_group.split("@")[0].startswith("hydra.searchpath"):
                raise UsageError(f"{override.input_line}: {BY_FLAGS.instead}")


class _Kept:
    """A snapshot of a configuration that returns copies.

    Unpickling is four times as fast as ``copy.deepcopy``, but schemas of launchers cannot be
    pickled.
    """

    def __init__(self, config: DictConfig) -> None:
        self._kept: bytes | DictConfig
        try:
            self._kept = pickle.dumps(config)
        except pickle.PicklingError:
            self._kept = copy.deepcopy(config)

    def copy(self) -> DictConfig:
        """A copy."""
        if not isinstance(self._kept, bytes):
            return copy.deepcopy(self._kept)
        config: DictConfig = pickle.loads(self._kept)  # noqa: S301 - from above
        return config


def _check_launcher(words: str) -> None:
    """Name the extra of a launcher that is not installed."""
    name = words.partition("Could not find 'hydra/launcher/")[2].partition("'")[0]
    if name in LAUNCHERS:
        LAUNCHERS[name].require()


def check_composed(config: DictConfig) -> None:
    """Refuse references and keys of Hydra that are not allowed.

    Raises:
        UsageError: naming the key.
    """
    written: Any = OmegaConf.to_container(config, resolve=False)
    hydra_part = written.pop("hydra", None)
    if not isinstance(hydra_part, dict):
        raise UsageError("hydra: Hydra's own settings cannot be removed")
    # Hydra's part repeats the command line; it comes last, so that errors name the user's key.
    check_references({**{str(key): value for key, value in written.items()}, "hydra": hydra_part})
    check_hydra(config)


def composition_message(error: BaseException) -> str:
    """A sentence on a configuration error, with the nearest known key."""
    if isinstance(error, RecursionError):
        return "the configuration is nested too deeply"
    explained = isinstance(error, HydraException | OmegaConfBaseException | ValueError)
    words = str(error) or str(error.__cause__ or "")
    if not explained or not words:
        words = f"this does not compose ({type(error).__name__} {words})"
    first = " ".join(line.strip() for line in words.splitlines() if line.strip())
    key = first.partition("Could not override '")[2].partition("'")[0]
    if not key or "@" in key:
        return first
    return f"{first} {did_you_mean(key, [*_groups(), 'captioner', 'limit', 'seeds', 'paths'])}"


class Repository(ConfigRepository):
    """Configuration files, each read once by a process unless it changes.

    Composing changes its input, so it gets copies.
    """

    def load_config(self, config_path: str) -> ConfigResult | None:
        """The content of a file, None if there is no file."""
        key = self.version(config_path)
        if key is None:
            return super().load_config(config_path)
        if key not in _READ:
            _READ[key] = pickle.dumps(self._load(config_path))
        result: ConfigResult | None = pickle.loads(_READ[key])  # noqa: S301 - from above
        return result

    def version(self, config_path: str) -> tuple[object, ...] | None:
        """What changes if the file does; None for schemas of plugins, which are no files."""
        source = self._find_object_source(config_path, ObjectType.CONFIG)
        if source is None or source.scheme() == "structured":
            return None
        path = _file(source, config_path)
        return config_path, source.provider, source.path, path and _stamp(path)

    def _load(self, config_path: str) -> ConfigResult | None:
        source = self._find_object_source(config_path, ObjectType.CONFIG)
        path = None if source is None else _file(source, config_path)
        foreign = path is not None and not path.is_relative_to(conf_dir())
        if path is not None and foreign:
            check_yaml(path)
        try:
            read = super().load_config(config_path)
            if foreign and read is not None:
                check_defaults(_named_by(read.defaults_list or ()), path)
            return read
        except YAMLError as error:
            raise UsageError(broken(path or Path(config_path), error)) from error
        except OSError as error:
            if error.errno is None:  # OmegaConf's error for a file with only a number
                raise UsageError(f"{path}: a configuration must be a mapping of keys") from error
            raise


def _named_by(defaults: Iterable[InputDefault]) -> Iterator[str]:
    """Every group, file and package that a defaults list names."""
    for entry in defaults:
        for field in fields(entry):
            value = getattr(entry, field.name)
            values = value if isinstance(value, list) else [value]
            yield from (text for text in values if isinstance(text, str))


_READ: dict[tuple[object, ...], bytes] = {}  # by path and time of change
_MERGED: dict[tuple[object, ...], _Kept] = {}  # by a defaults list and its files' versions


def _file(source: ConfigSource, config_path: str) -> Path | None:
    """The file of a source, None if it is inside a package."""
    if source.scheme() != "file":
        return None
    return Path(source.path, source._normalize_file_name(config_path)).resolve()


def _stamp(path: Path) -> tuple[int, int, int]:
    """Inode, size and time of change, to notice a changed file."""
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns
