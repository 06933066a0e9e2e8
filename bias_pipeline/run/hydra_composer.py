"""Composes configurations: checks the files first, and then the result.

Checks, sweep and job all ask for a job's configuration. Still, a process reads each file once (and
again if it changes), and composes each job once. Otherwise composing would take most of the time of
a sweep of cached cells.
"""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra import version
from hydra._internal.config_loader_impl import ConfigLoaderImpl, get_overrides_dirname
from hydra._internal.config_repository import ConfigRepository
from hydra._internal.utils import create_config_search_path
from hydra.core.config_search_path import SearchPathQuery
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.types import OverrideType
from hydra.core.utils import JobRuntime
from hydra.errors import HydraException, OverrideParseException
from hydra.types import RunMode
from omegaconf import DictConfig, Node, OmegaConf, flag_override
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from bias_pipeline.errors import (
    BiasPipelineError,
    ResourceError,
    UsageError,
    did_you_mean,
    listed_names,
)
from bias_pipeline.io.machine import LAUNCHERS
from bias_pipeline.io.paths import conf_dir, conf_dirs, group_choices
from bias_pipeline.io.terminal import warn
from bias_pipeline.results.rows import mapping_in
from bias_pipeline.run.defaults_lists import ChosenFiles, merged_files, merged_over
from bias_pipeline.run.hydra_allowlist import BY_FLAGS, LOGGINGS, check_hydra
from bias_pipeline.run.overrides import (
    CHOICE,
    choices_with,
    parsed_override,
    refused_choice,
    refused_key,
    refused_sign,
    representative_overrides,
    unreadable,
)
from bias_pipeline.run.references import References, restrict_environment
from bias_pipeline.run.targets import PACKAGE
from bias_pipeline.run.yaml_files import (
    as_written,
    check_defaults,
    check_yaml,
    leave_out_keys_of_others,
    stamp,
    yaml_fault,
)

if TYPE_CHECKING:
    from hydra._internal.config_repository import CachingConfigRepository, IConfigRepository
    from hydra.core.config_search_path import ConfigSearchPath
    from hydra.core.default_element import InputDefault, ResultDefault
    from hydra.core.override_parser.types import Override
    from hydra.plugins.config_source import ConfigResult, ConfigSource

_WITH_DEFAULTS = "HYDRA_REMOVE_TOP_LEVEL_DEFAULTS"  # Hydra's flag on a file's content
# Groups whose files set neither Hydra's keys nor keys of another chosen file.
_ORDINARY = frozenset(
    {
        *("alignment", "attribute", "dataset", "encoder", "head", "logger", "masking", "metric"),
        *("probe", "scoring", "split", "stats", "text", "trainer"),
    }
)
MOST_CACHED = (
    500  # composed jobs that a loader caches, and merges that a process caches; 40 kB each
)


def loader_of(config_dir: str | None = None) -> Loader:
    """A loader of our configuration and of the user's folder."""
    version.setbase("1.3")
    restrict_environment()
    JobRuntime().set("name", PACKAGE)  # the log of a job has this name
    path = create_config_search_path(str(conf_dir()))
    schema = SearchPathQuery(provider="schema", path=None)
    for number, folder in enumerate(further_folders(config_dir)):
        path.prepend(provider=f"command-line-{number}", path=f"file://{folder}", anchor=schema)
    return Loader(path)


def further_folders(config_dir: str | None) -> list[Path]:
    """The folders that are searched after our own folder, in this order."""
    _, *included_folders = conf_dirs()
    if config_dir is None:
        return included_folders
    folder = Path(config_dir).resolve()
    if not folder.is_dir():
        raise UsageError(f"--config-dir={config_dir} is not a folder")
    if not any(next((folder / group).rglob("*.yaml"), None) for group in _groups()):
        raise UsageError(
            f"--config-dir={config_dir} has no configuration; each file goes into a folder named "
            "after its group, such as attribute/NAME.yaml"
        )
    return [folder, *included_folders]


def _groups() -> list[str]:
    return [path.name for folder in conf_dirs() for path in folder.iterdir() if path.is_dir()]


class Loader(ConfigLoaderImpl):
    """Composes and checks configurations, but runs and imports nothing that they name.

    The loader caches composed jobs and returns copies.
    """

    def __init__(self, config_search_path: ConfigSearchPath) -> None:
        super().__init__(config_search_path)
        self.repository: Repository = Repository(config_search_path)
        self._has_further = any(
            one.provider.startswith("command-line-") for one in config_search_path.get_path()
        )
        self._composed: dict[tuple[object, ...], _Snapshot] = {}
        self._usual: dict[tuple[str, ...], Mapping[str, Any]] = {}  # by loggings

    def job(self, overrides: Sequence[str]) -> DictConfig:
        return self.load_configuration("config", [*overrides], RunMode.RUN, False)

    def task(self, overrides: Sequence[str]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The configuration of one job as plain data with unresolved references; its choices."""
        merged = self._merged_files(overrides)
        if merged is not None:
            return merged
        config = self.job(overrides)
        return as_written(config), config.hydra.runtime.choices

    def with_hydra(self, overrides: Sequence[str]) -> Mapping[str, Any]:
        """The configuration of one job as plain data, with Hydra's part (the choices)."""
        merged = self._merged_files(overrides)
        if merged is None:
            written: Mapping[str, Any] = as_written(self.job(overrides))
            return written
        (task, choices), hydra = merged, self._usual_hydra()
        runtime, job = hydra["runtime"], hydra["job"]
        chosen = {key: one for key, one in choices.items() if not isinstance(one, list)}
        dirname = get_overrides_dirname(
            [parsed_override(word) for word in overrides], **job["config"]["override_dirname"]
        )
        noted = {
            "runtime": {**runtime, "choices": {**runtime["choices"], **chosen}},
            "overrides": {**hydra["overrides"], "task": [*overrides]},
            "job": {**job, "override_dirname": dirname},
        }
        return {"hydra": {**hydra, **noted}, **task}

    def _usual_hydra(self, *loggings: str) -> Mapping[str, Any]:
        """The part for Hydra if only loggings are chosen, which no file of ``conf/`` changes."""
        if loggings not in self._usual:
            config = super().load_configuration("config", [*loggings], RunMode.RUN, False)
            self._usual[loggings] = as_written(config.hydra)
        return self._usual[loggings]

    def check(self, config: DictConfig) -> None:
        """Refuse references and keys of Hydra that are not allowed."""
        written = as_written(config)
        part = written.get("hydra")
        if not isinstance(part, dict):
            raise UsageError("hydra: Hydra's own settings cannot be removed")
        # Hydra's part repeats the command line; it comes last, so that errors name the user's key.
        ordered = {str(key): value for key, value in written.items() if key != "hydra"}
        resolved = References({**ordered, "hydra": part}).resolve()["hydra"]
        launcher: Any = config.hydra.get("launcher")
        if OmegaConf.is_config(launcher):  # converting turns texts into numbers
            launcher = OmegaConf.to_container(launcher, resolve=True)
        chosen = mapping_in(part, "runtime", "choices")
        loggings = [
            f"{group}={chosen[group]}"
            for group, names in LOGGINGS.items()
            if chosen.get(group) in names
        ]
        usual = self._usual_hydra(*loggings)
        check_hydra(part, {**resolved, "launcher": launcher}, usual)

    def _merged_files(
        self, overrides: Sequence[str]
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
        """The result of :meth:`task`, if overrides only choose files of ``conf/`` and set values.

        Otherwise None; Hydra then composes the job, which takes thirty times as long.
        """
        if len(conf_dirs()) > 1 or self._has_further:
            return None
        chosen: dict[str, str] = {}
        values: list[tuple[Sequence[str], Any]] = []
        for word in overrides:
            key, _, name = word.partition("=")
            if key in _ORDINARY and key not in chosen and name in group_choices(key):
                chosen[key] = name
            elif (setting := _plain_setting(word)) is not None:
                values.append(setting)
            else:
                return None
        tree, choices = merged_files(chosen)
        for path, value in values:
            if not _has_value(tree, path):
                return None
            content = value
            for name in reversed(path):
                content = {name: content}
            tree = merged_over(tree, content)
        return tree, choices

    def load_configuration(
        self,
        config_name: str | None,
        overrides: list[str],
        run_mode: RunMode,
        from_shell: bool = True,
        validate_sweep_overrides: bool = True,
    ) -> DictConfig:
        """The files after overrides were applied, with unresolved references."""
        key = (config_name, *overrides, run_mode, validate_sweep_overrides)
        if key in self._composed:
            return self._composed[key].copy()
        try:
            config = super().load_configuration(
                config_name, overrides, run_mode, from_shell, validate_sweep_overrides
            )
            written = _Snapshot(config)  # copied first, since checking resolves parts of it
            self.check(config)
        except BiasPipelineError:
            raise
        except HydraException as error:  # some of Hydra's errors are OSErrors too
            _check_launcher(str(error))
            reason = refused_sign(str(error), overrides) or self._unknown_key(
                refused_key(str(error)), overrides
            )
            raise UsageError(reason or composition_message(error)) from error
        except OSError as error:
            place = error.filename or "the working folder"
            raise ResourceError(f"{place} cannot be read: {error.strerror}") from error
        except Exception as error:  # Hydra's parts raise any exception
            raise UsageError(composition_message(error)) from error
        if len(self._composed) < MOST_CACHED:
            self._composed[key] = written
        return config

    def _unknown_key(self, key: str, overrides: Sequence[str]) -> str:
        """A sentence on an override of an absent key, with the keys that exist."""
        rest = [word for word in overrides if word.lstrip("+~").partition("=")[0] != key]
        if not key or "@" in key or len(rest) == len(overrides):
            return ""
        config, (first, *_) = self.job(rest), key.split(".")
        above, _, name = key.rpartition(".") if first in config else ("", "", first)
        node = OmegaConf.select(config, above) if above else config
        if not isinstance(node, DictConfig) or not node:
            return f"{key} is not in the configuration; to add it, write a plus sign, +{key}=..."
        if isinstance(inner := OmegaConf.select(config, key), DictConfig):
            add = f"to add one, write a plus sign, +{key}.NAME=..."
            fix = listed_names(map(str, inner)) if inner else add
            return f"{key} has no such keys as it is set to; {fix}"
        groups = [] if above else _groups()
        known = {str(one) for one in (*node, *groups) if str(one)[0] != "_"}
        choice = str(config.hydra.runtime.choices.get(first, CHOICE)) if above else CHOICE
        place = "" if choice == CHOICE else f" for {first}={choice}"
        with_it = choices_with(first, name) if above == first else []
        has = "have" if len(with_it) > 1 else "has"
        elsewhere = f" {first}={', '.join(with_it)} {has} it." if 0 < len(with_it) < 5 else ""
        unknown = f"{key if above else name} is unknown{place}"
        return f"{unknown}; {did_you_mean(name, known)}{elsewhere}"

    def _load_configuration_impl(
        self,
        config_name: str | None,
        overrides: list[str],
        run_mode: RunMode,
        from_shell: bool = True,
        validate_sweep_overrides: bool = True,
    ) -> DictConfig:
        """Like Hydra's method, but jobs that differ only in values share one merge of files."""
        parsed, repo = self._parse_overrides_and_create_caching_repo(config_name, overrides)
        if validate_sweep_overrides:
            self.validate_sweep_overrides_legal(parsed, run_mode, from_shell)
        choices: list[str] = []
        values: list[Override] = []
        for one in parsed:
            if one.is_sweep_override():  # the first job's choice, so that its keys can be set
                chosen = repo.group_exists(one.key_or_group)
                choices += representative_overrides([str(one.input_line)]) if chosen else []
            elif repo.group_exists(one.key_or_group) and not isinstance(one.value(), dict):
                choices.append(str(one.input_line))  # a file, as metric=lic does
            else:
                values.append(one)
        config = self._merge_choices(config_name, choices, run_mode)
        self._apply_overrides_to_config(values, config)
        task = [one for one in parsed if not one.is_hydra_override()]
        config.hydra.overrides.task = [one.input_line for one in task]
        hydra_lines = [one.input_line for one in parsed if one.is_hydra_override()]
        config.hydra.overrides.hydra = hydra_lines
        job = config.hydra.job
        job.override_dirname = get_overrides_dirname(task, **job.config.override_dirname)
        return config

    def _merge_choices(
        self, config_name: str | None, choices: list[str], run_mode: RunMode
    ) -> DictConfig:
        """The configuration of choices before values are set; a changed file is merged again."""
        repository = self.repository
        key = self._key(config_name, choices, run_mode)
        snapshot, versions = _MERGED.pop(key, (None, {}))
        if snapshot is None or any(repository.version(name) != versions[name] for name in versions):
            repository.versions.clear()
            config = self._merged_over_base(config_name, choices, run_mode)
            if config is None:
                load = super()._load_configuration_impl
                config = load(config_name, choices, run_mode, False, False)
            snapshot, versions = _Snapshot(config), dict(repository.versions)
        else:
            config = snapshot.copy()
        _MERGED[key] = snapshot, versions
        while len(_MERGED) > MOST_CACHED:
            _MERGED.pop(next(iter(_MERGED)))
        config.hydra.runtime.cwd = str(Path.cwd())
        return config

    def _key(
        self, config_name: str | None, choices: list[str], run_mode: RunMode
    ) -> tuple[object, ...]:
        return (str(self.config_search_path), config_name, *choices, run_mode)

    def _merged_over_base(
        self, config_name: str | None, choices: list[str], run_mode: RunMode
    ) -> DictConfig | None:
        """The base configuration, in which nodes that choices change are replaced.

        Hydra would take five times as long. None if a choice is no plain file of ``conf/``; Hydra
        then merges the choice.
        """
        named = dict(choice.split("=", 1) for choice in choices if choice.count("=") == 1)
        if not choices or len(named) < len(choices) or len(conf_dirs()) > 1 or self._has_further:
            return None
        if not all(group in _ORDINARY and n in group_choices(group) for group, n in named.items()):
            return None
        base, files = ChosenFiles({}), ChosenFiles(named)
        before, after = base.merge(), files.merge()
        config = self._merge_choices(config_name, [], run_mode)
        content: dict[str, Node] = config._content  # type: ignore[assignment]
        with flag_override(config, ["struct", "readonly"], False):
            for key in before.keys() - after.keys():
                del config[key]
            for key, value in after.items():
                if json.dumps(before.get(key)) != json.dumps(value) or key not in before:
                    config[key] = value
                content[key] = content.pop(key)  # in the order of merging
            chosen = {key: one for key, one in files.chosen.items() if not isinstance(one, list)}
            config.hydra.runtime.choices = {**config.hydra.runtime.choices, **chosen}
        _, versions = _MERGED[self._key(config_name, [], run_mode)]
        self.repository.versions.update(versions)
        for path in files.stamps.keys() - base.stamps.keys():
            name = str(path.relative_to(conf_dir()).with_suffix(""))
            self.repository.versions[name] = self.repository.version(name)
        return config

    def _compose_config_from_defaults_list(
        self, defaults: list[ResultDefault], repo: IConfigRepository
    ) -> DictConfig:
        """Like Hydra's method, but goes through the merged tree once, not after each file."""
        config = OmegaConf.create()
        loaded = [(str(one.config_path), self._load_single_config(one, repo)) for one in defaults]
        leave_out_keys_of_others(loaded)
        try:
            with flag_override(config, "no_deepcopy_set_nodes", True):
                config.merge_with(*(file.config for _, file in loaded))
        except OmegaConfBaseException:
            return super()._compose_config_from_defaults_list(defaults, repo)  # names the file
        _remove_defaults(config)
        return config

    def _load_single_config(self, default: ResultDefault, repo: IConfigRepository) -> ConfigResult:
        """The content of a file at its path in the tree; each version of a file is placed once."""
        version = self.repository.versions.get(str(default.config_path))
        key = (version, default.package, default.primary)
        if version is None:
            return super()._load_single_config(default, repo)
        if key not in _PLACED:
            _PLACED[key] = pickle.dumps(super()._load_single_config(default, repo))
        result: ConfigResult = pickle.loads(_PLACED[key])  # noqa: S301 - from above
        return result

    def _process_config_searchpath(
        self,
        config_name: str | None,
        parsed_overrides: list[Override],
        repo: CachingConfigRepository,
    ) -> None:
        """Refuse to extend the search path, since Hydra would import a package to read it."""
        del config_name, repo
        for override in parsed_overrides:
            if override.key_or_group.split("@")[0].startswith("hydra.searchpath"):
                raise UsageError(f"{override.input_line}: {BY_FLAGS}")


@lru_cache(maxsize=1000)
def _plain_setting(word: str) -> tuple[Sequence[str], Any] | None:
    """The path and the value that an override sets, or None unless it sets a plain value."""
    try:
        parsed = parsed_override(word)
    except HydraException:
        return None
    path = parsed.key_or_group.split(".")
    special = parsed.type != OverrideType.CHANGE or parsed.package or parsed.is_sweep_override()
    if special or path[0] == "hydra" or not all(map(str.isidentifier, path)):
        return None
    value = parsed.value()
    items = value if isinstance(value, list) else [value]
    plain = all(one is None or isinstance(one, str | int | float) for one in items)
    return (path, value) if plain and "${" not in str(value) else None


def _has_value(tree: Mapping[str, Any], path: Sequence[str]) -> bool:
    """Whether a path leads to a value, and through mappings only."""
    node: Any = tree
    for name in path:
        if not isinstance(node, Mapping) or name not in node:
            return False
        node = node[name]
    return not isinstance(node, Mapping)


def _remove_defaults(node: Any) -> None:
    """Remove the files' defaults lists from a merged tree."""
    if not isinstance(node, DictConfig) or node._is_none() or node._is_missing():
        return
    if node._get_flag(_WITH_DEFAULTS):
        with flag_override(node, ["readonly", "struct"], False):
            node._set_flag(_WITH_DEFAULTS, None)
            node.pop("defaults", None)
    for key in node:
        _remove_defaults(node._get_node(key))


class _Snapshot:
    """A snapshot of a configuration that returns copies.

    Unpickling is four times as fast as ``copy.deepcopy``. But schemas of launchers cannot be
    pickled.
    """

    def __init__(self, config: DictConfig) -> None:
        self._snapshot: bytes | DictConfig
        try:
            self._snapshot = pickle.dumps(config)
        except pickle.PicklingError:
            self._snapshot = copy.deepcopy(config)

    def copy(self) -> DictConfig:
        if not isinstance(self._snapshot, bytes):
            return copy.deepcopy(self._snapshot)
        config: DictConfig = pickle.loads(self._snapshot)  # noqa: S301 - from above
        return config


def _check_launcher(words: str) -> None:
    """Refuse a launcher whose package is not installed, and name the extra that installs it."""
    name = words.partition("Could not find 'hydra/launcher/")[2].partition("'")[0]
    if name in LAUNCHERS:
        LAUNCHERS[name].require()


def composition_message(error: BaseException) -> str:
    """A sentence on a configuration error."""
    if isinstance(error, RecursionError):
        return "the configuration is nested too deeply"
    if isinstance(error, OverrideParseException):
        reason = error.message.partition("\n")[0]
        signs = "a quotation mark is not closed, or a character is in the wrong place"
        return unreadable(error.override, signs if reason.startswith("Lexer") else reason)
    explained = isinstance(error, HydraException | OmegaConfBaseException | ValueError)
    words = str(error) or str(error.__cause__ or "")
    if refused := refused_choice(words):
        return refused
    if not explained or not words:
        words = f"this does not compose ({type(error).__name__} {words})"
    return " ".join(line.strip() for line in words.splitlines() if line.strip())


class Repository(ConfigRepository):
    """Configuration files, each read once by a process unless it changes.

    Composing changes its input, so each call returns a copy.
    """

    def __init__(self, config_search_path: ConfigSearchPath) -> None:
        super().__init__(config_search_path)
        self.versions: dict[str, object] = {}  # by loaded path, also of absent files

    def __deepcopy__(self, memo: object) -> Repository:
        """The repository itself; Hydra asks for a copy in case a job changes the search path."""
        return self

    def load_config(self, config_path: str) -> ConfigResult | None:
        """The content of a file, or None if the file does not exist."""
        if config_path not in self.versions:
            self._warn_of_namesakes(config_path)
        key = self.versions[config_path] = self.version(config_path)
        if key is None:
            return super().load_config(config_path)
        if key not in _READ:
            _READ[key] = pickle.dumps(self._load(config_path))
        result: ConfigResult | None = pickle.loads(_READ[key])  # noqa: S301 - from above
        return result

    def version(self, config_path: str) -> tuple[object, ...] | None:
        """A value that changes with the file, or None for plugins' schemas, which are no files."""
        source = self._find_object_source(config_path, ObjectType.CONFIG)
        if source is None or source.scheme() == "structured":
            return None
        path = _file(source, config_path)
        return config_path, source.provider, source.path, path and stamp(path)

    def _load(self, config_path: str) -> ConfigResult | None:
        source = self._find_object_source(config_path, ObjectType.CONFIG)
        path = None if source is None else _file(source, config_path)
        foreign = path is not None and not path.is_relative_to(conf_dir())
        if path is not None and foreign:
            check_yaml(path)
        try:
            read = super().load_config(config_path)
            if foreign and read is not None:
                if not isinstance(read.config, DictConfig):
                    raise UsageError(f"{path}: a configuration must be a mapping of keys")
                check_defaults(_named_by(read.defaults_list or ()), path)
            return read
        except YAMLError as error:
            raise UsageError(yaml_fault(path or Path(config_path), error)) from error
        except OSError as error:
            if error.errno is None:  # OmegaConf's error for a file with only a number
                raise UsageError(f"{path}: a configuration must be a mapping of keys") from error
            raise

    def _warn_of_namesakes(self, config_path: str) -> None:
        """Warn of each file that is not read because an earlier folder has a file of this name."""
        files = [_file(source, config_path) for source in self.get_sources()]
        first, *others = [*dict.fromkeys(path for path in files if path and path.is_file()), None]
        for path in others:
            if path and path not in _UNREAD:
                _UNREAD.add(path)
                warn(f"warning: {path} is not read, since {first} has the same name; rename it")


def _named_by(defaults: Iterable[InputDefault]) -> Iterator[str]:
    for entry in defaults:
        for field in fields(entry):
            value = getattr(entry, field.name)
            values = value if isinstance(value, list) else [value]
            yield from (text for text in values if isinstance(text, str))


_READ: dict[tuple[object, ...], bytes] = {}  # content by path and stamp
_UNREAD: set[Path] = set()  # files that a warning named
_PLACED: dict[tuple[object, ...], bytes] = {}  # content at its path in the tree
# Choices, to the merged configuration and the versions of its files
_MERGED: dict[tuple[object, ...], tuple[_Snapshot, Mapping[str, object]]] = {}


def _file(source: ConfigSource, config_path: str) -> Path | None:
    """The path of a configuration file, or None if its source is not a folder."""
    if source.scheme() != "file":
        return None
    return Path(source.path, source._normalize_file_name(config_path)).resolve()
