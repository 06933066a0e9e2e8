"""A sweep's jobs, each composed once from files that are read once.

Hydra composes every job twice, to check the sweep before its first job and to run it, and reads
all files anew each time. Where the cells are cached that is most of what a sweep takes.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import ConfigRepository
from hydra.core.global_hydra import GlobalHydra
from hydra.experimental.callback import Callback

if TYPE_CHECKING:
    from hydra.core.config_search_path import ConfigSearchPath
    from hydra.plugins.config_source import ConfigResult
    from omegaconf import DictConfig

KEPT = 500  # jobs composed and not yet run; each takes about half a megabyte


class ComposeOnce(Callback):
    """Hands the sweeper and its launcher one loader that remembers."""

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Called by Hydra before it makes the sweeper."""
        hydra = GlobalHydra.instance().hydra
        assert hydra is not None
        hydra.config_loader = Loader(hydra.config_loader.get_search_path())


class Loader(ConfigLoaderImpl):
    """A loader that keeps each job's configuration until it is asked for again.

    Args:
        config_search_path: where configuration files are.
    """

    def __init__(self, config_search_path: ConfigSearchPath) -> None:
        super().__init__(config_search_path)
        self.repository = Repository(config_search_path)
        self._composed: dict[tuple[str, ...], DictConfig] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Sent to another process without what was composed here."""
        return {**vars(self), "_composed": {}}

    def load_sweep_config(
        self, master_config: DictConfig, sweep_overrides: list[str]
    ) -> DictConfig:
        """The configuration of a job. It is the caller's to change once it was asked for twice."""
        key = tuple(sweep_overrides)
        if key in self._composed:
            return self._composed.pop(key)
        config = super().load_sweep_config(master_config, sweep_overrides)
        if len(self._composed) < KEPT:
            self._composed[key] = config
        return config


class Repository(ConfigRepository):
    """Configuration files, each read once. Composing changes what it is given: it gets copies.

    Args:
        config_search_path: where they are.
    """

    def __init__(self, config_search_path: ConfigSearchPath) -> None:
        super().__init__(config_search_path)
        self._read = _Shared()

    def load_config(self, config_path: str) -> ConfigResult | None:
        """What a file holds, None if there is none."""
        key = (config_path, *(f"{source.provider}:{source.path}" for source in self.sources))
        if key not in self._read:
            self._read[key] = super().load_config(config_path)
        return copy.deepcopy(self._read[key])


class _Shared(dict[tuple[str, ...], "ConfigResult | None"]):
    """What the copies that Hydra makes of a repository have in common, in one process."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()

    def __deepcopy__(self, memo: object) -> _Shared:
        return self
