"""Ten thousand configurations with something odd in them: each is refused in a sentence or built.

What the odd things would do, if anything ran or imported them, is to leave a canary.
"""

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from bias_pipeline.commands.main import main
from bias_pipeline.errors import BiasPipelineError, UsageError
from bias_pipeline.run import compose, overrides
from bias_pipeline.run.hydra_allowlist import check_hydra
from bias_pipeline.run.hydra_composer import loader_of
from bias_pipeline.run.references import References
from bias_pipeline.run.yaml_files import as_written
from tests.fuzz.mutations import odd_tree

SEED = 20261122
N_TREES = 10_000
N_WORDS = 200

CALLED = [
    {"_target_": "evil.leave"},
    {"_target_": "os.system", "command": "touch canary"},
    {"_target_": "subprocess.run", "args": ["touch", "canary"]},
    {"_target_": "builtins.exec", "_args_": ["open('canary', 'w')"]},
    {"_target_": "setuptools._distutils.spawn.spawn", "cmd": ["touch", "canary"]},
    {"_target_": "pathlib.Path.touch", "self": "canary"},
    {"_target_": "numpy.load", "file": "evil.pkl", "allow_pickle": True},
    {"_target_": "pandas.read_pickle", "filepath_or_buffer": "evil.pkl"},
    {
        "_target_": "bias_pipeline.run.loggers.run_apart",
        "module": "loggers",
        "function": "x",
    },
    {"_target_": "bias_pipeline.commands.main.main", "arguments": ["--version"]},
    {"_target_": "bias_pipeline.run.loggers.CsvLogger", "path": "canary"},
    {"_target_": "bias_pipeline.corpus.split_rules.HoldOut", "_partial_": True},
    {"_target_": "bias_pipeline.text.transform.Identity"},
    {"()": "evil.leave"},
    {"class": "evil.Handler"},
]
PLAIN: list[Any] = [
    *(None, True, False, 0, -1, 1, 2, 10**30, 10**400, 0.5, -0.5),
    *(float("nan"), float("inf"), 1e308),
    *("", "x", "a\nb", "ext://evil.leave", "cfg://x", "pkg://evil", "evil", "../../x", "\x00"),
    *("${paths.outputs}", "${metric}", "${encoder}", "${hydra.launcher}", "${oc.env:HOME}"),
    *("${oc.env:SECRET}", "${oc.decode:'{_target_: evil.leave}'}", "${oc.create:{a: 1}}"),
    *("${oc.select:nothing,{_target_: evil.leave}}", "\\${oc.decode:x}", "${", "${now:%f}"),
    *("${hydra:job.name}", "${${paths.outputs}:x}", "${.x}", "${..x}", "$(touch canary)"),
    *([], {}, [[]], [{}], {"": 1}, {"_target_": ["x"]}, {"a.b": 1}, [None], {"x": {"y": []}}),
]
ODD = [*CALLED, *PLAIN]
KEYS = ("_target_", "callbacks", "()", "class", "setup", "env_set", "searchpath", "x", "cache")


@pytest.fixture
def canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where it would be; importing ``evil`` or reading its pickle leaves it too."""
    left = tmp_path / "canary"
    code = f"open({str(left)!r}, 'w').close()"
    (tmp_path / "evil.py").write_text(code)
    (tmp_path / "evil.pkl").write_bytes(b"cbuiltins\nexec\n(V" + code.encode() + b"\ntR.")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SECRET", "told")
    yield left
    sys.modules.pop("evil", None)


@dataclass(frozen=True)
class Base:
    """A sound configuration, without what only slows the fuzzing down.

    Attributes:
        written: plain data, references as they are written.
        task: all but Hydra's part, resolved.
        hydra: Hydra's part, as it is checked.
    """

    written: dict[str, Any]
    task: dict[str, Any]
    hydra: dict[str, Any]


def base(*words: str) -> Base:
    options = overrides.options_of(words)
    config = compose.composer(options).job(options.overrides)
    with open_dict(config):
        attribute = config.attribute
        attribute.words = {"male": "man", "female": "woman"}
        attribute.also_masked, attribute.presets = "person", {}
        attribute.labels = {"scenes": attribute.labels.scenes}
        if "task" in config:
            config.task.tasks = {"dog": "dog, dogs", "person": "person"}
        hydra = OmegaConf.to_container(config.hydra)
    written: Any = OmegaConf.to_container(config, resolve=False)
    for key in ("help", "hydra_help", "runtime", "overrides"):
        del written["hydra"][key]
        del hydra[key]
    return Base(written, dict(compose.checked_cell(as_written(config), {}).tree), hydra)


@cache
def usual_hydra() -> dict[str, Any]:
    return base().hydra


def build_all(tree: dict[str, Any]) -> None:
    """What the program does with a checked configuration, short of reading data."""
    compose.check_task(tree)
    cell = compose.Cell(tree, frozenset(), {})
    for key in ("dataset", "attribute", "metric", "logger", "masking"):
        if key in cell.tree:
            cell.build(key)


def put_together(tree: dict[str, Any]) -> None:
    """All of it, by way of OmegaConf."""
    config = OmegaConf.create(tree)
    loader_of().check(config)
    build_all(dict(compose.checked_cell(as_written(config), {}).tree))


WAYS: list[tuple[str, Callable[[Any], None]]] = [
    ("written", lambda tree: References(tree).resolve()),
    ("task", build_all),
    ("task", build_all),
    ("hydra", lambda tree: check_hydra(tree, tree, usual_hydra())),
]


def end_of(way: Callable[[Any], None], tree: Any) -> str:
    """How a configuration ends; anything but a sentence is raised."""
    try:
        way(tree)
    except (UsageError, OmegaConfBaseException) as error:
        return "refused" if str(error) else "refused without a word"
    return "accepted"


@pytest.fixture(scope="module")
def bases() -> list[Base]:
    slurm = base("hydra/launcher=submitit_slurm", "encoder=lstm")
    return [base(), base("metric=dbac", "hydra/launcher=submitit_local"), slurm]


@pytest.mark.slow
def test_ten_thousand_odd_configurations_end_in_a_sentence_or_are_built(canary, bases):
    generator = random.Random(SEED)
    ends: Counter[str] = Counter()
    for number in range(N_TREES):
        part, way = WAYS[number % len(WAYS)]
        tree = odd_tree(getattr(bases[number % len(bases)], part), generator, ODD, KEYS)
        ends[end_of(way, tree)] += 1
        assert not canary.exists(), (SEED, number, tree)
    assert min(ends.values()) > N_TREES / 20, ends  # neither end is left untried


@pytest.mark.slow
def test_hundreds_of_odd_configurations_are_put_together(canary, bases):
    generator = random.Random(SEED)
    for number in range(N_WORDS):
        tree = odd_tree(bases[number % len(bases)].written, generator, ODD, KEYS)
        end_of(put_together, tree)
        assert not canary.exists(), (SEED, number, tree)


WORDS = [
    *("metric=", "metric=lic", "metric=x", "metric=lic,dbac", "metric=[lic]", "metric=glob(*)"),
    *("encoder=lstm", "encoder={_target_: evil.leave}", "~encoder", "+encoder=x", "seeds="),
    *("seeds=[]", "seeds=-1", "seeds=range(3)", "seeds=interval(0,1)", "seeds=choice(1,2)"),
    *("captioner=all", "captioner='\\n'", "attribute=[gender,race]", "attribute=[gender]"),
    *("dataset=coco", "dataset=nowhere", "hydra.mode=RUN", "hydra/launcher=joblib"),
    *("hydra/launcher=../../x", "+hydra.callbacks={a: b}", "hydra.verbose=[a]", "--multirun"),
    *("--info=all", "--package=x", "--resolve", "--config-dir=evil", "--config-name=x"),
    *(
        "hydra=x",
        "~hydra",
        "+hydra.x=1",
        "hydra.job=null",
        "hydra.launcher=null",
        "=",
        "a",
        "a=b=c",
    ),
    *("+a={b:{c:[d]}}", "+a='${oc.decode:x}'", "+a=\x07", "+a='\ud83d'", "paths=null", "~paths"),
    *("paths.outputs=[a]", "logger=[csv,wandb]", "logger=null", "logger=[]", "metric=null", "-x"),
    *("cluster=slurm", "experiment=relic_gender", "trainer=ddp", "stats=null", "split=null"),
    *("task=coco_objects", "+task=coco_objects", "masking=tasks_only", "text=null", "~dataset"),
    *(
        "hydra.sweep.dir=x",
        "hydra.run.dir=x",
        "hydra/sweeper=x",
        "hydra.sweeper={_target_: evil.x}",
    ),
    *("metric@x=lic", "metric@_global_=lic", "+experiment@hydra=survivors", "dataset@hydra=lic"),
]


@pytest.mark.slow
def test_hundreds_of_odd_command_lines_end_in_a_sentence(canary, capfd):
    generator = random.Random(SEED)
    for number in range(N_WORDS):
        words = generator.sample(WORDS, generator.randint(1, 4))
        try:
            code = main(["--cfg", "job", *words])
        except SystemExit as end:  # argparse, of Hydra's own flags
            code = int(end.code or 0)
        except BiasPipelineError as error:
            pytest.fail(f"{words}: {error}")
        printed = capfd.readouterr()
        assert code in (0, 2, 3, 5), (SEED, number, words, printed.err)
        assert code == 0 or printed.err.strip(), words
        assert "Traceback" not in printed.err, words
        assert not canary.exists(), (SEED, number, words)
