import json
import os
import pickle
import subprocess
import sys
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.utils import create_config_search_path
from omegaconf import DictConfig, OmegaConf

from bias_pipeline.io.paths import conf_dir, group_choices
from bias_pipeline.run.hydra_composer import _ORDINARY, Loader, loader_of
from bias_pipeline.run.yaml_files import as_resolved, as_written

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


@pytest.fixture
def composed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The jobs that Hydra composes, by their last override."""
    jobs: list[str] = []
    original = ConfigLoaderImpl.load_configuration

    def load_configuration(
        self: Loader, name: str, overrides: list[str], *further: Any
    ) -> DictConfig:
        jobs.append(overrides[-1])
        return original(self, name, overrides, *further)

    monkeypatch.setattr(ConfigLoaderImpl, "load_configuration", load_configuration)
    return jobs


@pytest.mark.parametrize(
    "job",
    [
        JOB,
        ["experiment=dbac_table3", "seeds=[1,2]", "++limit=4", "~paths.cache"],
        ["+attribute@other=race", "+x={a:1}", "captioner='a b.json'", "+task=coco_objects"],
        ["hydra.job.config.override_dirname.exclude_keys=[seeds]", *JOB, "hydra.verbose=true"],
    ],
)
def test_a_job_is_as_hydra_composes_it(loader, master, job):
    hydra = ConfigLoaderImpl(create_config_search_path(str(conf_dir())))
    loader.job(["experiment=dbac_table3"])  # whose files are merged once
    composed = loader.load_sweep_config(master, job)
    assert composed == hydra.load_sweep_config(master, job)


def test_a_defaults_list_that_refers_to_a_choice_is_as_hydra_reads_it(tmp_path):
    (folder := tmp_path / "attribute" / "parts").mkdir(parents=True)
    (folder / "of_lic.yaml").write_text("x: 7\n")
    text = "defaults:\n  - parts: of_${metric}\n  - _self_\nname: own\n"
    (tmp_path / "attribute" / "own.yaml").write_text(text)
    job = ["metric=lic", "attribute=own"]
    assert loader_of(str(tmp_path)).job(job).attribute.parts.x == 7


def test_a_job_asked_for_again_is_not_composed_again(loader, composed):
    assert loader.job(JOB) == loader.job(JOB)
    assert len(composed) == 1


def test_the_job_that_was_checked_is_the_one_that_a_sweep_runs(loader, master, composed):
    assert loader.job(JOB) == loader.load_sweep_config(master, JOB)
    assert len(composed) == 1


def test_changing_a_job_leaves_the_same_job_as_it_was(loader):
    loader.job(JOB)
    OmegaConf.update(loader.job(JOB), "attribute.name", "changed")
    assert loader.job(JOB).attribute.name == "gender"


def test_a_reference_is_resolved_anew_in_a_job_asked_for_again(loader, monkeypatch):
    monkeypatch.setenv("BIAS_PIPELINE_INVOCATION", "one")
    assert loader.job(JOB).hydra.run.dir.endswith("/one")
    monkeypatch.setenv("BIAS_PIPELINE_INVOCATION", "two")
    assert loader.job(JOB).hydra.run.dir.endswith("/two")


def test_no_file_of_ours_is_read_by_a_second_loader(read):
    Loader(create_config_search_path(str(conf_dir()))).job(JOB)
    read.clear()
    Loader(create_config_search_path(str(conf_dir()))).job(JOB)
    assert read == []


def test_files_merged_in_another_folder_are_not_merged_again(tmp_path, monkeypatch, read):
    loader_of().job(JOB)
    read.clear()
    monkeypatch.chdir(tmp_path)
    assert (loader_of().job(JOB).hydra.runtime.cwd, read) == (str(tmp_path), [])


def test_a_file_that_changed_is_read_again(tmp_path):
    path = tmp_path / "experiment" / "own.yaml"
    path.parent.mkdir()
    for seeds in (1, 2):
        path.write_text(f"# @package _global_\nseeds: {seeds}\n")
        os.utime(path, ns=(seeds, seeds))
        assert loader_of(str(tmp_path)).job(["experiment=own"]).seeds == seeds


def test_no_file_is_read_for_two_jobs(loader, master, read):
    for job in (JOB, ["metric=dbac", "seeds=[1]"]):
        loader.load_sweep_config(master, job)
    assert len(read) == len(set(read))


def test_changing_a_job_leaves_the_next_as_it_was(loader, master):
    job = loader.load_sweep_config(master, JOB)
    OmegaConf.update(job, "attribute.name", "changed")
    assert loader.load_sweep_config(master, ["seeds=[1]"]).attribute.name == "gender"


def test_it_is_sent_to_a_process_without_what_was_composed(loader, master):
    empty = len(pickle.dumps(loader))
    loader.load_sweep_config(master, JOB)
    assert len(pickle.dumps(loader)) == empty


def test_so_many_jobs_are_kept(loader, composed, monkeypatch):
    monkeypatch.setattr("bias_pipeline.run.hydra_composer.MOST_CACHED", 1)
    for seeds in ("seeds=[0]", "seeds=[1]", "seeds=[0]", "seeds=[1]"):
        loader.job([seeds])
    assert composed == ["seeds=[0]", "seeds=[1]", "seeds=[1]"]


def test_it_arrives_in_a_process_that_knows_no_plugins(loader):
    """As in a worker of a launcher, before Hydra has told it of anything."""
    code = "import pickle, sys; pickle.load(sys.stdin.buffer)"
    subprocess.run([sys.executable, "-c", code], input=pickle.dumps(loader), check=True)


def test_what_is_written_is_plain_as_omegaconf_has_it(loader):
    job = loader.job([*JOB, "+x={a: null, b: [1, {c: ???}], d: '${seeds}', e: 1.5, f: {}}"])
    assert as_written(job) == OmegaConf.to_container(job, resolve=False)


@pytest.mark.parametrize("name", ["lic", "dbac", "imagecaptioner2"])
def test_what_is_resolved_is_as_omegaconf_resolves_it(loader, name):
    references = "+x={a: '${metric}', b: ['${seeds}', {c: ???}], d: 'to ${limit}', e: '\\${f}'}"
    other = "+y='${oc.select:n,{v: [N]}}'"  # plain data that no key has
    job = loader.job([f"metric={name}", "limit=7", references, other])
    parts = {str(key): job[key] for key in job if key != "hydra"}
    resolved = {name: as_resolved(node) for name, node in parts.items()}
    assert resolved == OmegaConf.to_container(OmegaConf.create(parts), resolve=True)


CHOICES = {group: group_choices(group) for group in sorted(_ORDINARY)}
TURNS = [
    [f"{group}={names[turn % len(names)]}" for group, names in CHOICES.items()]
    for turn in range(max(map(len, CHOICES.values())))
]


@pytest.mark.parametrize(
    "job",
    [
        *TURNS,
        *([f"metric={name}", "dataset=coco", "logger=csv"] for name in CHOICES["metric"]),
        ["metric=lic", "alignment=matched", "encoder.order=1", "attribute=race", "seeds=2"],
    ],
    ids=" ".join,
)
def test_exchanged_nodes_give_what_hydra_merges(job, monkeypatch):
    """Key by key and in the same order, since a run's id follows it."""
    monkeypatch.setattr("bias_pipeline.run.hydra_composer._MERGED", {})
    quick = _plain(loader_of().job(job))
    monkeypatch.setattr("bias_pipeline.run.hydra_composer._MERGED", {})
    monkeypatch.setattr(Loader, "_merged_over_base", lambda *_: None)
    assert quick == _plain(loader_of().job(job))


def _plain(config: DictConfig) -> tuple[str, object]:
    tree = as_written(config)
    return json.dumps({**tree, "hydra": None}), tree["hydra"]
