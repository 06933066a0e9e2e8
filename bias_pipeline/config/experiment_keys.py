"""Keys that an experiment sets for its choice of a group, where the command line chose another.

``experiment=relic_gender`` chooses ``alignment=constant`` and sets ``alignment.vocabulary``. With
``alignment=none``, which has no such key, the key is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from omegaconf import DictConfig

from bias_pipeline.config.targets import parameters_of, resolve
from bias_pipeline.config.yaml_files import as_written
from bias_pipeline.declared import TARGET

if TYPE_CHECKING:
    from hydra.plugins.config_source import ConfigResult


def leave_out_keys_of_others(loaded: Sequence[tuple[str, ConfigResult]]) -> None:
    """Remove keys from experiments that the file chosen instead of theirs does not have.

    Args:
        loaded: the path and content of all files, in the order in which they are merged.
    """
    experiments = [file for path, file in loaded if path.startswith("experiment/")]
    others = [file for path, file in loaded if not path.startswith("experiment/")]
    paths = {path for path, _ in loaded}
    for group, name in dict(_choices(experiments)).items():
        nodes = [as_written(_node(file, group)) for file in others]
        target = next((node[TARGET] for node in nodes if TARGET in node), None)
        if target is None or f"{group}/{name}" in paths:
            continue
        known = {*parameters_of(resolve(target)), *(key for node in nodes for key in node)}
        for settings in (_node(file, group) for file in experiments):
            for key in settings.keys() - known:
                del settings[key]


def _choices(experiments: Sequence[ConfigResult]) -> Iterator[tuple[str, str]]:
    """Groups and the files that experiments choose for them; the last one counts."""
    for file in experiments:
        for entry in file.defaults_list or ():
            if entry.is_override():
                yield str(entry.group).lstrip("/"), str(entry.value)  # type: ignore[attr-defined]


def _node(file: ConfigResult, group: str) -> DictConfig:
    """The keys of a group in a file; empty if it has none."""
    node = file.config._get_node(group) if isinstance(file.config, DictConfig) else None
    return node if isinstance(node, DictConfig) and not node._is_none() else DictConfig({})
