"""The private parts of other packages that we use: a release that moves one is named here first."""

import importlib
import re
from importlib.metadata import version

import pytest

from tests.corpora import REPOSITORY

# Distribution, private module, what is used of it; the last release that all of it was seen in.
USED = [
    ("hydra-core", "hydra._internal.config_loader_impl", "ConfigLoaderImpl", "load_sweep_config"),
    ("hydra-core", "hydra._internal.config_loader_impl", "ConfigLoaderImpl", "load_configuration"),
    (
        "hydra-core",
        "hydra._internal.config_loader_impl",
        "ConfigLoaderImpl",
        "_process_config_searchpath",
    ),
    ("hydra-core", "hydra._internal.config_repository", "ConfigRepository", "_find_object_source"),
    ("hydra-core", "hydra._internal.config_repository", "CachingConfigRepository", "load_config"),
    ("hydra-core", "hydra._internal.utils", "create_config_search_path", "__call__"),
    ("hydra-core", "hydra._internal.utils", "get_args_parser", "__call__"),
    ("hydra-core", "hydra._internal.hydra", "Hydra", "multirun"),
    ("hydra-core", "hydra._internal.hydra", "Hydra", "show_cfg"),
    ("hydra-core", "hydra._internal.core_plugins.bash_completion", "BashCompletion", "_query"),
    ("hydra-core", "hydra._internal.core_plugins.basic_launcher", "BasicLauncher", "launch"),
    ("hydra-core", "hydra._internal.core_plugins.basic_sweeper", "BasicSweeper", "sweep"),
    # Its two packages do not say which of these they promise to keep.
    (
        "pytorch-lightning",
        "lightning_fabric.utilities.exceptions",
        "MisconfigurationException",
        "__init__",
    ),
    (
        "pytorch-lightning",
        "pytorch_lightning.plugins.environments",
        "LightningEnvironment",
        "main_port",
    ),
    ("pytorch-lightning", "pytorch_lightning.utilities.types", "OptimizerLRScheduler", "__args__"),
    ("pytorch-lightning", "pytorch_lightning", "LightningModule", "configure_gradient_clipping"),
    ("wandb-workspaces", "wandb_workspaces.workspaces.internal", "View", "from_name"),
]
SEEN = {"hydra-core": "1.3", "pytorch-lightning": "2.", "wandb-workspaces": "0."}
_PRIVATE = re.compile(
    r"\b(hydra\._internal[\w.]*|wandb\.sdk[\w.]*|lightning_fabric\.[\w.]+|"
    r"pytorch_lightning\.(?:plugins|utilities|[\w.]*\._\w+)[\w.]*)"
)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # theirs, of pydantic
@pytest.mark.parametrize(("package", "module", "name", "member"), USED)
def test_a_private_part_that_we_use_is_there(package, module, name, member):
    attribute = getattr(importlib.import_module(module), name, None)
    assert hasattr(attribute, member), (
        f"{package} {version(package)} has no {module}.{name}.{member}; it was last seen in "
        f"{SEEN[package]}*"
    )


@pytest.mark.parametrize("package", SEEN)
def test_the_release_is_one_that_they_were_seen_in(package):
    assert version(package).startswith(SEEN[package])


def test_every_private_module_that_we_name_is_listed():
    listed = {module for _, module, *_ in USED}
    files = [*REPOSITORY.glob("bias_pipeline/**/*.py")]
    named = {item for path in files for item in _PRIVATE.findall(path.read_text(encoding="utf-8"))}
    unknown = {item for item in named if not any(item.startswith(known) for known in listed)}
    assert unknown == set()
