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

from bias_pipeline.errors import UsageError
from bias_pipeline.io.paths import conf_dir, group_choices
from bias_pipeline.run.compose import Sweep
from bias_pipeline.run.hydra_composer import _ORDINARY, Loader, loader_of
from bias_pipeline.run.overrides import options_of
from bias_pipeline.run.references import References
from bias_pipeline.run.yaml_files import as_written

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
def composed_jobs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The jobs that Hydra composes, by their last override."""
    jobs: list[str] = []
    original = ConfigLoaderImpl.load_configuration

    def load_configuration(
        self: Loader, name: str, overrides: list[str], *further: Any
    ) -> DictConfig:
        jobs.extend(overrides[-1:])  # none for what Hydra composes without overrides
        return original(self, name, overrides, *further)

    monkeypatch.setattr(ConfigLoaderImpl, "load_configuration", load_configuration)
    return jobs


@pytest.mark.parametrize(
    "job",
    [
        JOB,
        ["experiment=dbac_table3", "seeds=[1,2]", "++limit=4", "~paths.cache"],
        ["+attribute@other=race", "+x={a:1}", "captioner='a b.json'", "+task=coco_objects"],
        ["hydra/job_logging=stdout", *JOB, "hydra.verbose=true"],
    ],
)
def test_a_job_is_as_hydra_composes_it(loader, master, job):
    hydra = ConfigLoaderImpl(create_config_search_path(str(conf_dir())))
    loader.job(["experiment=dbac_table3"])  # whose files are merged once
    config = loader.load_sweep_config(master, job)
    assert config == hydra.load_sweep_config(master, job)


def test_a_defaults_list_that_refers_to_a_choice_is_as_hydra_reads_it(tmp_path):
    (folder := tmp_path / "attribute" / "parts").mkdir(parents=True)
    (folder / "of_lic.yaml").write_text("x: 7\n")
    text = "defaults:\n  - parts: of_${metric}\n  - _self_\nname: own\n"
    (tmp_path / "attribute" / "own.yaml").write_text(text)
    job = ["metric=lic", "attribute=own"]
    assert loader_of(str(tmp_path)).job(job).attribute.parts.x == 7


def test_a_job_asked_for_again_is_not_composed_again(loader, composed_jobs):
    assert loader.job(JOB) == loader.job(JOB)
    assert len(composed_jobs) == 1


def test_the_job_that_was_checked_is_the_one_that_a_sweep_runs(loader, master, composed_jobs):
    assert loader.job(JOB) == loader.load_sweep_config(master, JOB)
    assert len(composed_jobs) == 1


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


def test_so_many_jobs_are_kept(loader, composed_jobs, monkeypatch):
    monkeypatch.setattr("bias_pipeline.run.hydra_composer.MOST_CACHED", 1)
    for seeds in ("seeds=[0]", "seeds=[1]", "seeds=[0]", "seeds=[1]"):
        loader.job([seeds])
    assert composed_jobs == ["seeds=[0]", "seeds=[1]", "seeds=[1]"]


def test_a_sweep_arrives_in_a_helper_which_composes_its_cells_itself():
    sweep = Sweep([["seeds=[1]"], ["seeds=[2]"]], options_of([]))
    alone = len(pickle.dumps(sweep))
    assert sweep[1].seeds == (2,)
    sent = pickle.dumps(sweep)
    assert len(sent) == alone
    code = "import pickle, sys; print(*(cell.seeds for cell in pickle.load(sys.stdin.buffer)))"
    done = subprocess.run([sys.executable, "-c", code], input=sent, check=True, capture_output=True)
    assert done.stdout == b"(1,) (2,)\n"


def test_what_is_written_is_plain_as_omegaconf_has_it(loader):
    job = loader.job([*JOB, "+x={a: null, b: [1, {c: ???}], d: '${seeds}', e: 1.5, f: {}}"])
    assert as_written(job) == OmegaConf.to_container(job, resolve=False)


@pytest.mark.parametrize("name", ["lic", "dbac", "imagecaptioner2"])
def test_what_is_resolved_is_as_omegaconf_resolves_it(loader, name):
    references = "+x={a: '${metric}', b: ['${seeds}', {c: ???}], d: 'to ${limit}', e: '\\${f}'}"
    other = "+y='${oc.select:n,{v: [N]}}'"  # plain data that no key has
    job = loader.job([f"metric={name}", "limit=7", references, other])
    parts = {str(key): job[key] for key in job if key != "hydra"}
    resolved = References(as_written(OmegaConf.create(parts))).resolve()
    assert resolved == OmegaConf.to_container(OmegaConf.create(parts), resolve=True)


def test_what_several_places_refer_to_is_one_object():
    tree = References({"a": {"x": 1}, "b": "${a}", "c": ["${a}"]}).resolve()
    assert tree["a"] is tree["b"] is tree["c"][0]


@pytest.mark.parametrize(
    "text",
    [
        *("${a.b}", "${a[b]}", "${a.c[1]}", "${a.c.1}", "x ${n} ${a.b}", "${n}", "${ n }", "${no}"),
        *("${oc.select:x}", "${oc.select:n,last}", "${oc.select:x,last}", "${oc.select:x,[]}"),
        *("${oc.select:x,Null}", "${oc.select:x,007}", "${oc.select:x,1.5}", "${oc.select:x,-3}"),
        *("${oc.select:x,12}", "${oc.select:x,TRUE}", "${oc.select:x, a}", "${oc.select:x,'a b'}"),
        *("${oc.select:x,[1,{k: v}]}", "${oc.select:x,${n}}", "${oc.select:gone,4}"),
        *(
            "${oc.env:HOME}/x",
            "${oc.env:BIAS_PIPELINE_NONE,3}",
            "${oc.env:BIAS_PIPELINE_NONE,null}",
        ),
        *("${no} x", "${yes}", "${yes}.", "${f}.", "${through.b}", "${whole}"),
    ],
)
def test_a_reference_is_resolved_as_omegaconf_does(text):
    config = {
        "a": {"b": "B", "c": [1, "two"]},
        "n": 7,
        "no": None,
        "yes": True,
        "f": 1.5,
        "gone": "???",
        "through": "${a}",
        "whole": "${through}",
        "value": text,
    }
    expected = OmegaConf.to_container(OmegaConf.create(config), resolve=True)
    references = References(config)
    assert references.resolve() == expected
    assert not references.faults


@pytest.mark.parametrize("key", ["x", "a.x", "gone"])
@pytest.mark.parametrize("text", ["${{{}}}", "to ${{{}}}"])
def test_a_reference_to_what_is_absent_is_told(key, text):
    references = References({"a": {}, "gone": "???", "b": text.format(key)})
    references.resolve()
    assert repr(key) in references.faults[0]


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
    quick = to_plain(loader_of().job(job))
    monkeypatch.setattr("bias_pipeline.run.hydra_composer._MERGED", {})
    monkeypatch.setattr(Loader, "_merged_over_base", lambda *_: None)
    config = loader_of().job(job)
    assert quick == to_plain(config)
    task, choices = loader_of().task(job)
    assert json.dumps(task) == json.dumps(
        {k: v for k, v in as_written(config).items() if k != "hydra"}
    )
    named = {k: v for k, v in choices.items() if isinstance(v, str)}
    assert named.items() <= config.hydra.runtime.choices.items()


@pytest.mark.parametrize(
    "job",
    [
        ["dataset=coco", "captioner='a, b.json'", "dataset.strict=False", "seeds=[0,12]"],
        ["stats.level=0.9", "paths.outputs='o (1)'", "limit=null", "paths.outputs=o"],
        ["+x=1", "metric=lic"],
        ["++limit=3"],
        ["~paths.cache"],
        ["metric={sides: [model]}"],
        ["logger=[csv]"],
        ["metric.sides=[model]", "metric=leakage"],
        ["dataset.root='${paths.outputs}/x'"],
        ["experiment=dbac_table3", "encoder.hidden_dim=8"],
        ["attribute=_intersection", "attribute@attribute.parts.first=gender"],
        ["metric=dbac", "metric=lic"],
    ],
    ids=" ".join,
)
def test_a_task_is_that_of_the_job(loader, job):
    task, _ = loader.task(job)
    written = as_written(loader.job(job))
    written.pop("hydra")
    assert json.dumps({k: v for k, v in task.items() if k != "hydra"}) == json.dumps(written)


@pytest.mark.parametrize(
    "word", ["metric=none", "encoder.no=1", "paths.x.y=2", "metric", "seeds=1,2"]
)
def test_a_wrong_task_is_refused_as_the_job_is(loader, word):
    messages = []
    for compose_one in (loader.task, loader.job):
        with pytest.raises(UsageError) as refused:
            compose_one([word])
        messages.append(str(refused.value))
    assert messages[0] == messages[1]


def to_plain(config: DictConfig) -> tuple[str, object]:
    tree = as_written(config)
    return json.dumps({**tree, "hydra": None}), tree["hydra"]
