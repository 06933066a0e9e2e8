from __future__ import annotations

import pickle
import subprocess
import sys

import pytest
from hydra import compose, initialize_config_dir
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.utils import create_config_search_path
from omegaconf import DictConfig, OmegaConf

from bias_pipeline.config.hydra_composer import Loader
from bias_pipeline.io.paths import conf_dir

JOB = ["metric=leakage", "seeds=[0]"]


@pytest.fixture
def loader() -> Loader:
    return Loader(create_config_search_path(str(conf_dir())))


@pytest.fixture(scope="module")
def master() -> DictConfig:
    with initialize_config_dir(config_dir=str(conf_dir()), version_base="1.3"):
        return compose("config", return_hydra_config=True)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that composing reads."""
    from hydra._internal.core_plugins.file_config_source import FileConfigSource

    paths: list[str] = []
    original = FileConfigSource.load_config

    def load_config(self: FileConfigSource, config_path: str) -> object:
        paths.append(config_path)
        return original(self, config_path)

    monkeypatch.setattr(FileConfigSource, "load_config", load_config)
    return paths


def test_a_job_is_as_hydra_composes_it(loader: Loader, master: DictConfig) -> None:
    hydra = ConfigLoaderImpl(create_config_search_path(str(conf_dir())))
    assert loader.load_sweep_config(master, JOB) == hydra.load_sweep_config(master, JOB)


def test_a_job_asked_for_again_is_not_composed_again(
    loader: Loader, master: DictConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = loader.load_sweep_config(master, JOB)
    monkeypatch.delattr(ConfigLoaderImpl, "load_sweep_config")
    assert loader.load_sweep_config(master, JOB) is first


def test_no_file_is_read_for_two_jobs(loader: Loader, master: DictConfig, read: list[str]) -> None:
    for job in (JOB, ["metric=dbac", "seeds=[1]"]):
        loader.load_sweep_config(master, job)
    assert len(read) == len(set(read))


def test_changing_a_job_leaves_the_next_as_it_was(loader: Loader, master: DictConfig) -> None:
    job = loader.load_sweep_config(master, JOB)
    OmegaConf.update(job, "attribute.name", "changed")
    assert loader.load_sweep_config(master, ["seeds=[1]"]).attribute.name == "gender"


def test_it_is_sent_to_a_process_without_what_was_composed(
    loader: Loader, master: DictConfig
) -> None:
    empty = len(pickle.dumps(loader))
    loader.load_sweep_config(master, JOB)
    assert len(pickle.dumps(loader)) == empty


def test_few_jobs_are_kept(
    loader: Loader, master: DictConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bias_pipeline.config.hydra_composer.KEPT", 1)
    loader.load_sweep_config(master, ["seeds=[0]"])
    second = loader.load_sweep_config(master, ["seeds=[1]"])
    assert loader.load_sweep_config(master, ["seeds=[1]"]) is not second


def test_it_arrives_in_a_process_that_knows_no_plugins(loader: Loader) -> None:
    """As in a worker of a launcher, before Hydra has told it of anything."""
    code = "import pickle, sys; pickle.load(sys.stdin.buffer)"
    subprocess.run([sys.executable, "-c", code], input=pickle.dumps(loader), check=True)
