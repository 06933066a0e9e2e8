"""The private parts of other packages that we use: a release that moves one is named here first."""

import importlib
import re
from importlib.metadata import version

import pytest

from tests.corpora import REPOSITORY

# Module and what is used of it, by distribution.
USED = {
    "hydra-core": [
        "hydra._internal.config_loader_impl ConfigLoaderImpl load_configuration",
        "hydra._internal.config_loader_impl ConfigLoaderImpl _process_config_searchpath",
        "hydra._internal.config_loader_impl ConfigLoaderImpl _load_configuration_impl",
        "hydra._internal.config_loader_impl ConfigLoaderImpl _compose_config_from_defaults_list",
        "hydra._internal.config_loader_impl ConfigLoaderImpl _load_single_config",
        "hydra._internal.config_loader_impl ConfigLoaderImpl _parse_overrides_and_create_caching_repo",  # noqa: E501
        "hydra._internal.config_loader_impl ConfigLoaderImpl _apply_overrides_to_config",
        "hydra._internal.config_loader_impl get_overrides_dirname __call__",
        "hydra._internal.config_repository ConfigRepository _find_object_source",
        "hydra._internal.config_repository CachingConfigRepository load_config",
        "hydra._internal.utils create_config_search_path __call__",
        "hydra._internal.utils get_args_parser __call__",
        "hydra._internal.hydra Hydra show_cfg",
        "hydra._internal.core_plugins.bash_completion BashCompletion _query",
        "hydra._internal.core_plugins.basic_launcher BasicLauncher __init__",
        "hydra._internal.core_plugins.basic_sweeper BasicSweeper __init__",
    ],
    "omegaconf": [
        "omegaconf._utils OmegaConfDumper str_representer",
    ],
    # Its two packages do not say which of these they promise to keep.
    "pytorch-lightning": [
        "lightning_fabric.utilities.exceptions MisconfigurationException __init__",
        "pytorch_lightning.plugins.environments LightningEnvironment main_port",
        "pytorch_lightning.utilities.types OptimizerLRScheduler __args__",
        "pytorch_lightning LightningModule configure_gradient_clipping",
    ],
    "uvicorn": [
        "uvicorn.protocols.http.h11_impl H11Protocol connection_made",
        "uvicorn.protocols.http.h11_impl H11Protocol connection_lost",
        "uvicorn.protocols.http.h11_impl H11Protocol on_response_complete",
        "uvicorn.protocols.http.h11_impl RequestResponseCycle run_asgi",
    ],
    "wandb-workspaces": ["wandb_workspaces.workspaces.internal View from_name"],
}
# The last release that all of it was seen in.
CHECKED = {
    "hydra-core": "1.3",
    "omegaconf": "2.3",
    "pytorch-lightning": "2.",
    "uvicorn": "0.",
    "wandb-workspaces": "0.",
}
_PRIVATE = re.compile(
    r"\b(hydra\._internal[\w.]*|omegaconf\._\w+|wandb\.sdk[\w.]*|lightning_fabric\.[\w.]+|"
    r"pytorch_lightning\.(?:plugins|utilities|[\w.]*\._\w+)[\w.]*)"
)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # theirs, of pydantic
@pytest.mark.parametrize(
    ("package", "part"), [(package, part) for package, parts in USED.items() for part in parts]
)
def test_a_private_part_that_we_use_is_there(package, part):
    module, name, member = part.split()
    attribute = getattr(importlib.import_module(module), name, None)
    assert hasattr(attribute, member), (
        f"{package} {version(package)} has no {module}.{name}.{member}; it was last seen in "
        f"{CHECKED[package]}*"
    )


def test_every_private_module_that_we_name_is_listed():
    listed = {part.split()[0] for parts in USED.values() for part in parts}
    texts = [path.read_text("utf-8") for path in REPOSITORY.glob("bias_pipeline/**/*.py")]
    named = {item for text in texts for item in _PRIVATE.findall(text)}
    assert {item for item in named if not any(item.startswith(known) for known in listed)} == set()


@pytest.mark.parametrize("package", CHECKED)
def test_the_release_is_one_that_they_were_seen_in(package):
    assert version(package).startswith(CHECKED[package])
