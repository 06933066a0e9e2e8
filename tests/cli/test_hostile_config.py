"""Configuration and overrides of strangers: nothing that they name runs, whatever it is wrapped in.

A canary is a file that an attack would leave in the test's own folder.
"""

import sys
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest
import yaml

from bias_pipeline.commands.run import submit_command
from bias_pipeline.errors import UsageError
from bias_pipeline.run import launch, slurm
from bias_pipeline.run.compose import cell
from tests.cli.commands import SMALL, own_choice

CANARY = "canary"
SPAWN = f"{{_target_: setuptools._distutils.spawn.spawn, cmd: [touch, {CANARY}]}}"
APART = "{_target_: bias_pipeline.run.loggers.run_apart, module: loggers, function: x}"


def decode(text: str) -> str:
    """A mapping that is text until it is resolved."""
    return f"'${{oc.decode:\"{text}\"}}'"


HIDDEN = [
    "encoder._target_=os.system",
    "encoder._target_=bias_pipeline.attack.ngram.Ngram,os.system",
    "metric._target_=bias_pipeline.results.store.os.system",
    "hydra.launcher._target_=os.system",
    f"+hydra.callbacks.e={decode(SPAWN)}",
    f"+hydra.callbacks.e='${{oc.create:{SPAWN}}}'",
    f"+hydra.callbacks.e='${{oc.select:nothing,{SPAWN}}}'",
    f"+hydra.callbacks.e='${{${{paths.outputs}}:{SPAWN}}}'",
    f"+hydra.callbacks.e='\\${{oc.decode:\"{SPAWN}\"}}'",
    "+hydra.callbacks={e: '${dataset}'}",
    f"hydra.launcher={decode(SPAWN)}",
    f"hydra.sweeper={decode(SPAWN)}",
    f"++metric={decode(SPAWN)}",
    f"probe.encoder={decode(SPAWN)}",
    f"++probe.encoder={SPAWN}",
    f"++logger.csv={SPAWN}",
    "+hydra.callbacks.e={_target_: pandas.read_pickle, filepath_or_buffer: evil.pkl}",
    "+hydra.callbacks.e={_target_: joblib.load, filename: evil.pkl}",
    "+hydra.callbacks.e={_target_: numpy.load, file: evil.pkl, allow_pickle: true}",
    "++logger.csv={_target_: numpy.load, file: evil.pkl, allow_pickle: true}",
    f"+hydra.callbacks.e={APART}",
    f"++logger.csv={APART}",
    "++logger.csv={_target_: bias_pipeline.commands.main.main, arguments: [--version]}",
    "++logger.csv={_target_: bias_pipeline.run.slurm._has_ended, script: x}",
    "++logger.csv={_target_: bias_pipeline.published._unpickle_child._restrict}",
    "++logger.csv._target_=bias_pipeline.evil.Evil",
    "+hydra.job_logging.handlers.x={class: subprocess.Popen}",
    "+hydra.job_logging.handlers.x={class: logging.StreamHandler, stream: 'ext://evil.x'}",
    "+hydra.job_logging.formatters.x={class: evil.Formatter}",
    "hydra.job_logging.root.level='ext://evil.x'",
    "hydra.job_logging.handlers.file.filename=evil.py",
    "+hydra.job_logging.handlers.x={class: logging.FileHandler, filename: evil.py}",
    "hydra.job.name=../../evil",
    "hydra.output_subdir=../../evil",
    "hydra.output_subdir=..",
    "hydra.run.dir=evil",
    "hydra.sweep.dir=evil",
    "hydra.searchpath=[pkg://evil]",
    "+hydra.searchpath=[pkg://evil]",
    "++hydra.searchpath=[pkg://evil]",
    "+hydra.job.env_set={PYTHONPATH: .}",
    "+hydra.job.env_set.LD_PRELOAD=evil.so",
    "hydra.job.env_copy=[NOTHING]",
    "logger.csv.path=sitecustomize.py",
    "++captioner='${oc.env:WANDB_API_KEY}'",
    "hydra.mode=MULTIRUN",
]


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The canary of code that is imported or unpickled."""
    code = f"open({str(tmp_path / CANARY)!r}, 'w').close()"
    for name in ("evil", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(code)
    (tmp_path / "evil.pkl").write_bytes(b"cbuiltins\nexec\n(V" + code.encode() + b"\ntR.")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path / CANARY
    sys.modules.pop("evil", None)


FLAGS = [(), ("--multirun",), ("--cfg", "job", "--resolve")]


@pytest.mark.parametrize(("override", "flags"), [*zip(HIDDEN, cycle(FLAGS), strict=False)])
def test_nothing_that_an_override_hides_runs(run, evil, override, flags):
    code, text = run(*SMALL, override, *flags)
    assert (code, "Traceback" in text, evil.exists()) == (2, False, False), text
    assert "is not allowed" in text or "_target_=" not in override.partition("{")[0], text


@pytest.mark.parametrize("words", [*FLAGS, ("submit",)])
def test_every_command_line_is_checked_before_anything_else(monkeypatch, words):
    """So the tests here need to try each override with one of them alone."""

    def check(_: object) -> None:
        raise UsageError("checked")

    monkeypatch.setattr(launch, "parse_sweep", check)
    with pytest.raises(UsageError, match="checked"):
        (submit_command if words == ("submit",) else launch.run)([*SMALL, *words])


FILES = [
    {"hydra": {"callbacks": {"e": {"_target_": "evil.Callback"}}}},
    {"hydra": {"job_logging": {"handlers": {"x": {"()": "evil.x"}}}}},
    {"hydra": {"job_logging": {"filters": {"x": {"()": "evil.x"}}}}},
    {"hydra": {"hydra_logging": {"version": 1, "handlers": {"x": {"()": "evil.x"}}}}},
    {"hydra": {"job_logging": {"formatters": {"x": {"()": "evil.x"}}}}},
    {"hydra": {"launcher": {"_target_": "evil.Launcher"}}},
    {"hydra": {"sweeper": {"_target_": "evil.Sweeper"}}},
    {"hydra": {"job": {"env_set": {"PYTHONPATH": "."}}}},
    {"logger": {"csv": {"_target_": "evil.Logger"}}},
    {"probe": {"encoder": {"_target_": ["evil.Encoder"]}}},
]


@pytest.mark.parametrize(("content", "swept"), [*zip(FILES, cycle([False, True]), strict=False)])
def test_nothing_that_a_file_names_runs(run, evil, tmp_path, content, swept):
    for name, item in (("bad", content), ("good", {"seeds": 1})):
        text = f"# @package _global_\n{yaml.safe_dump(item)}"
        mine = own_choice(tmp_path, "experiment", text, name)
    code, text = run(*SMALL, mine, "experiment=good,bad" if swept else "experiment=bad")
    assert code in ((2, 4) if swept else (2,)), text
    assert ("Traceback" in text, evil.exists()) == (False, False), text


def test_what_a_sweeper_is_given_is_looked_at(run, evil):
    params = "+hydra.sweeper.params={+hydra.callbacks.x: '{_target_: evil.Callback}'}"
    code, text = run(*SMALL, "--multirun", params)
    assert (code, evil.exists()) == (2, False), text


def test_a_file_of_another_kind_of_launcher_is_still_looked_at(ends, tmp_path):
    """The name of the file says nothing: what it makes Hydra use is what counts."""
    launcher = {"defaults": ["submitit_slurm"], "setup": ["touch canary"]}
    mine = own_choice(tmp_path, "hydra/launcher", yaml.safe_dump(launcher))
    assert "hydra.launcher.setup" in ends(2, *SMALL, mine, "hydra/launcher=own")


LAUNCHING = [
    "setup=[touch canary]",
    "partition='x\n touch canary\n#'",
    "partition='x --export=PYTHONPATH=.'",
    "account='$(touch)'",
    "qos='`touch`'",
    "comment='a\nb'",
    "name='a\nb'",
    "constraint='a b'",
    "timeout_min=0",
    "mem_per_cpu='4G --wrap=x'",
    "additional_parameters={wrap: touch canary}",
    "additional_parameters={export: 'PYTHONPATH=.'}",
    "additional_parameters={mail-user: 'a b'}",
    "submitit_folder=evil",
    "max_num_timeout=-1",
    "python=evil",
    "srun_args=['--task-prolog=evil']",
]


@pytest.mark.parametrize(
    ("option", "word"), [*zip(LAUNCHING, cycle([(), ("submit",)]), strict=False)]
)
def test_a_launcher_takes_no_text_for_the_shell(ends, evil, option, word, monkeypatch):
    monkeypatch.setattr(slurm, "submit", lambda *_: pytest.fail("it was submitted"))
    monkeypatch.setattr(slurm, "check_slurm", lambda _: None)
    words = (*word, *SMALL, "cluster=slurm", f"++hydra.launcher.{option}")
    assert "hydra.launcher" in ends(2, *words)


def test_a_launcher_that_is_not_needed_names_what_is(ends):
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    assert "processes=4" in ends(2, *SMALL, "hydra/launcher=joblib")


def test_a_folder_of_outputs_is_one_line_of_a_script(ends):
    assert "paths.outputs" in ends(2, "submit", *SMALL, "paths.outputs='a\ntouch canary'")


@pytest.mark.parametrize(
    "word",
    [
        *(
            f"hydra/job_logging={name}"
            for name in ("default", "stdout", "none", "disabled", "quiet")
        ),
        *(f"hydra/launcher={name}" for name in ("basic", "submitit_local", "submitit_slurm")),
    ],
)
def test_the_logging_and_the_launchers_that_hydra_and_we_bring_are_accepted(word):
    assert cell([word])
