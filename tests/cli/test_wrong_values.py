"""Values of the wrong kind, and files that are none: a sentence and exit code 2, at once."""

import time

import pytest

from bias_pipeline.data.base import Dataset
from bias_pipeline.errors import UsageError
from bias_pipeline.run import compose, overrides
from tests.cli.commands import SMALL, own_choice
from tests.cli.one_cell import with_values

NEURAL = ("encoder=lstm",)

WRONG = [
    (("dataset.n_images=abc",), "dataset.n_images='abc' must be a whole number"),
    (("stats.resamples=10.5",), "stats.resamples=10.5 must be a whole number"),
    (("stats.level=2",), "level=2"),
    (("alignment.replacement=unk",), "alignment.replacement='unk' must be a list"),
    (("split.balanced=3",), "split.balanced=3 must be true or false"),
    (("metric.positions=0",), "positions=0 must be at least 1"),
    (("metric.wordless_limit=2",), "wordless_limit=2"),
    (("metric.sides=[]",), "one or both of model, human"),
    (("metric.sides=[people]",), "metric.sides.0='people' must be one of model, human"),
    ((*NEURAL, "attacker.lr=-1"), "attacker.lr=-1 must be above 0"),
    ((*NEURAL, "attacker.lr=0"), "attacker.lr=0 must be above 0"),
    ((*NEURAL, "attacker.lr=nan"), "attacker.lr=nan must be a number"),
    ((*NEURAL, "attacker.lr=inf"), "attacker.lr=inf must be a number"),
    ((*NEURAL, "attacker.lr=fast"), "attacker.lr='fast' must be a number"),
    ((*NEURAL, "attacker.dropout=2"), "attacker.dropout=2 must be at least 0 and below 1"),
    ((*NEURAL, "head.dropout=1"), "head.dropout=1 must be at least 0 and below 1"),
    ((*NEURAL, "head.hidden_dims=[64,0]"), "head.hidden_dims.1=0 must be at least 1"),
    ((*NEURAL, "attacker.batch_size=0"), "attacker.batch_size=0 must be at least 1"),
    ((*NEURAL, "attacker.hidden_dim=0"), "attacker.hidden_dim=0 must be at least 1"),
    ((*NEURAL, "probe.optimizer.lr=-1"), "probe.optimizer.lr=-1 must be above 0"),
    (("metric=imagecaptioner2", "encoder=grit", "encoder.size=big"), "error: encoder.size='big'"),
    (("encoder=transformer1", "encoder.n_heads=0"), "encoder.n_heads=0 must be at least 1"),
    ((*NEURAL, "trainer.max_epochs=0"), "trainer.max_epochs=0 must be at least 1"),
    ((*NEURAL, "trainer.max_epochs=-1"), "trainer.max_epochs=-1 must be at least 1"),
    ((*NEURAL, "trainer.max_epochs=null"), "trainer.max_epochs=None must be a whole number"),
    ((*NEURAL, "+trainer.limit_train_batches=0"), "trainer.limit_train_batches cannot be set"),
    ((*NEURAL, "+trainer.fast_dev_run=true"), "trainer.fast_dev_run cannot be set"),
    ((*NEURAL, "trainer.accelerator=cup"), "trainer.accelerator='cup' must be one of cpu"),
    ((*NEURAL, "+trainer.callbacks=[{_target_: x.Y}]"), "is not allowed"),
    ((*NEURAL, "probe.processes=0"), "probe.processes=0 must be at least 1"),
    ((*NEURAL, "probe.head=linear"), "head='linear' must be a configuration of a Head"),
    ((*NEURAL, "+probe.optimizer.momentum=1"), "probe.optimizer.momentum is unknown"),
    (("probe.encoder=${split}",), "must be a configuration of a FeatureEncoder"),
    (("encoder.order=1000000000",), "encoder.order=1000000000 must be at least 1 and at most 100"),
    (("metric.stats=x",), "metric.stats='x' must be a configuration of a Bootstrap"),
    (("metric.stats=null",), "metric.stats=None must be a configuration of a Bootstrap"),
    (("metric.transforms=[x]",), "metric.transforms.0='x' must be a configuration of a transform"),
    (("metric.scoring=${split}",), "must be a configuration of a Scoring"),
    (("~metric.stats",), "metric.stats is missing"),
    (("+metric.stat=1",), "metric.stat is unknown; did you mean 'stats'"),
    (("metric=glob(g*)",), "metric=glob(g*): a sweep must list its values"),
    (("metric=glob(*,exclude=l*)",), "must list its values"),
    (("seeds=[99999999999999999999]",), "seeds=[99999999999999999999]"),
    (("seeds=99999999999999999999",), "seeds=99999999999999999999"),
    (("seeds={a: 1}",), "seeds={'a': 1}"),
    (("seeds=1,x",), "seeds=x: give a positive number"),
    (("metric=lic,gender_error", "encoder.order=1,0"), "encoder.order=0 must be at least 1"),
    (("stats.seed=-1",), "stats.seed=-1 must be at least 0"),
    (("stats.resamples=99999999999999999999",), "stats.resamples=99999999999999999999"),
    (("stats.level=nan",), "stats.level=nan must be a number"),
    (("~seeds",), "seeds is missing; the configuration needs it"),
    (("hydra.launcher=null",), "hydra.launcher: target None is not allowed; choose with"),
    (("+hydra.job_logging.handlers.x={level: INFO}",), "job_logging.handlers.x is not allowed"),
    (("hydra.job_logging.root.level=DEBUG",), "hydra.job_logging.root.level is not allowed; of"),
    (("hydra.mode=MULTIRUN",), "hydra.mode must be empty; several values make a sweep"),
    (("hydra.verbose=inf",), "hydra.verbose=inf must be true or false or text or a list"),
    (("hydra.job.chdir=true",), "hydra.job.chdir is not allowed; of Hydra's own settings only"),
    (("hydra.output_subdir=x",), "hydra.output_subdir is not allowed"),
    (("+metric._target_=[a]",), "is not allowed"),
    (("++metric._target_=[bias_pipeline.metrics.attack.lic.LIC]",), "is not allowed"),
    (("++metric._target_=bias_pipeline.metrics.counting.gender_error.GenderError",), "is unknown"),
    (("++dataset._target_=bias_pipeline.stats.scoring.Lic",), "dataset."),
    (("logger={a: 1}",), ""),
    (("++logger={a: {b: 1}}",), "logger.a={'b': 1} must be a configuration of a ResultLogger"),
    (("++logger.csv=1",), "logger.csv=1 must be a configuration of a ResultLogger"),
    (("attribute.labels.scenes.field=nothing",), "there is no column 'nothing'"),
    (("attribute.words.male=[1,2]",), "attribute.words.male"),
    (("attribute.words.male=['']",), "attribute.words.male.0='' must be a word"),
    (("attribute.words.male=[man,' , ']",), "attribute.words.male.1=' , ' must be a word"),
    (("attribute.words.male=''",), "attribute.words.male='' must be a word"),
    (("attribute.words.male=[man,Mann]",), "'Mann' has capital letters, and captions are"),
    (("text.subjects.closing=[as,on,1]",), "text.subjects.closing.2=1 must be text"),
    (("attribute.name=' '",), "attribute.name=' ' must be a name"),
    (("attribute.groups=['',male]",), "attribute.groups.0='' must be a name"),
    (("metric={}",), "metric={} is empty; name one of assumed_group"),
    (("metric=[lic]",), "a job has one metric"),
    (("metric=[lic, dbac]",), "a sweep over several has no brackets: metric=lic,dbac"),
    (("metric=lic,[dbac]",), "a sweep over several has no brackets: metric=lic,dbac"),
    (("encoder=[]",), "a job has one encoder"),
    (("dataset=[scenes]",), "a job has one dataset"),
    (("logger=[csv,wnadb]",), "did you mean 'wandb'"),
    (("devices=0",), "devices=0 must be a list or null"),
    (("devices=[-1]",), "devices.0=-1 must be"),
    (("devices=['0,1']",), "devices.0='0,1' must be"),
    (("hydra/launcher=submitit_local", "devices=[0]"), "hydra.launcher.gpus_per_node"),
    (("attribute.groups=male",), "attribute.groups='male' must be a list"),
    (("attribute.labels=null",), "attribute.labels=None must be a mapping"),
    (("captioner=[a]",), "captioner=['a'] must be"),
    (("captioner={a: 1}",), "captioner={'a': 1} must be"),
    (("dataset.n_images=99999999999",), "at most 10000000"),
    (("dataset.seed=-1",), "dataset.seed=-1 must be at least 0"),
    (("split=lic", "split.test_share=nan"), "split.test_share=nan must be a number"),
    (("split=lic", "split.test_share=2"), "split.test_share=2 must be above 0 and at most 1"),
    (("split=lic", "split.test_share=1"), "split.test_share=1 leaves no images to train on"),
    (("logger=wandb", "logger.wandb.timeout_s=0"), "logger.wandb.timeout_s=0 must be above 0"),
    (("logger=wandb", "logger.wandb.timeout_s=1e300"), "must be above 0 and at most 604800"),
    (("limit=0",), "limit=0 must be at least 1"),
    (("metric.positions=99999999999999999999999",), "must be a whole number"),
    (("+a=${a}",), "refers to itself"),
    (("+a=${b}", "+b=${a}"), "refers to itself"),
    (("+a={x: ${a}}",), "refers to itself"),
    (("+a=" + "[" * 2000 + "]" * 2000,), "nested too deeply"),
    (("--package=nothing", "--cfg", "job"), "there is no such key"),
    (("--config-dir=nowhere",), "--config-dir=nowhere is not a folder"),
    (("--config-dir=/",), "--config-dir=/ has no configuration; each file goes into a folder"),
]


def sets_values(words: tuple[str, ...]) -> bool:
    """Whether the words set values of a cell, but for the choice of an encoder or a logger."""
    values = [word for word in words if word not in CHOSEN]
    named = [word.lstrip("+~").partition("=")[0] for word in values]
    return all("." in key and not key.startswith("hydra") for key in named) and READ not in words


READ = "attribute.labels.scenes.field=nothing"  # the data set must be asked for that
CHOSEN = (*NEURAL, "encoder=transformer1", "split=lic", "logger=wandb")
VALUES = [item for item in WRONG if sets_values(item[0])]
OTHERS = [item for item in WRONG if not sets_values(item[0])]
DOOR = [*OTHERS, *VALUES[::8]]


@pytest.mark.parametrize(("words", "message"), VALUES, ids=lambda item: str(item)[:60])
def test_a_value_of_the_wrong_kind_is_refused(words, message):
    choices = tuple(word for word in words if word in CHOSEN)
    values = tuple(word for word in words if word not in CHOSEN)
    with pytest.raises(UsageError) as error:
        with_values(choices, values).require()
    assert message in f"error: {error.value}"


def test_values_are_set_as_the_command_line_sets_them():
    values = ("attacker.lr=0.5", "++attacker.dropout=0.1", "attribute.words.male=[man,he]")
    assert with_values(NEURAL, values).tree == compose.cell([*NEURAL, *values]).tree


@pytest.mark.parametrize(("words", "message"), DOOR, ids=lambda item: str(item)[:60])
def test_a_value_of_the_wrong_kind_exits_2_before_any_work(ends, monkeypatch, words, message):
    if READ not in words:
        monkeypatch.setattr(Dataset, "read", lambda *_: pytest.fail("data were read"))
    assert message in ends(2, *SMALL, *words)


def test_a_configuration_that_doubles_with_every_line_is_refused_at_once(ends):
    lines = [f"+a{n}=${{a{n + 1}}}${{a{n + 1}}}" for n in range(40)]
    started = time.monotonic()
    assert "characters with its references resolved" in ends(2, *lines, "+a40=xx")
    assert time.monotonic() - started < 20


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
BROKEN = {
    "tab": ("seeds:\n\t- 1\n", "tab.yaml, line 3"),
    "twice": ("seeds: 1\nseeds: 2\n", "duplicate key seeds"),
    "tag": ("seeds: !!python/name:os.system\n", "the tag"),
    "path": ("seeds: !!python/object/apply:pathlib.Path [x]\n", "the tag"),
    "binary": ("seeds: !!binary aGk=\n", "the tag"),
    "own_tag": ("seeds: !mine 1\n", "the tag"),
    "bracket": ("seeds: [1, 2\n", "no valid YAML"),
    "quote": ('seeds: "1\n', "no valid YAML"),
    "bomb": (BOMB, "its aliases expand to"),
    "loop": ("a: &a [*a]\n", "is used before or inside"),
    "unknown": ("a: *b\n", "is used before or inside"),
    "deep": ("a: " + "[" * 5000 + "]" * 5000 + "\n", "deep"),
    "two": ("a: 1\n---\nb: 2\n", "no valid YAML"),
    "list": ("- 1\n- 2\n", "experiment/list"),
    "number": ("5\n", "number.yaml: a configuration must be a mapping"),
    "control": ("seeds: \x07\n", "no valid YAML"),
    "self": ("defaults: [self]\n", "nested too deeply"),
    "odd_defaults": ("defaults: {a: 1}\n", "efaults"),
    "absent": ("defaults: [nothing]\n", "nothing"),
    "number_key": ("1: 2\n", ""),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_told_at_once(ends, tmp_path, name):
    content, message = BROKEN[name]
    mine = own_choice(tmp_path, "experiment", f"# @package _global_\n{content}", name)
    started = time.monotonic()
    assert message in ends(2, *SMALL, mine, f"experiment={name}")
    assert time.monotonic() - started < 20


def test_bytes_that_are_no_text_are_told(ends, tmp_path):
    mine = own_choice(tmp_path, "experiment", b"seeds: \xff\xfe\n")
    assert "not in UTF-8" in ends(2, mine, "experiment=own")


def test_a_bad_variable_of_a_cluster_is_told(ends, monkeypatch):
    monkeypatch.setenv("BIAS_PIPELINE_MINUTES", "an hour")
    assert "hydra.launcher.timeout_min" in ends(2, "--cfg", "hydra", "cluster=slurm")


def test_a_variable_of_a_cluster_is_a_number(monkeypatch):
    monkeypatch.setenv("BIAS_PIPELINE_MINUTES", "90")
    options = overrides.options_of(["cluster=slurm"])
    config = compose.composer(options).job(options.overrides)
    assert config.hydra.launcher.timeout_min == 90


AUDIT = ("audit", "m.json", "--attributes", "l.csv")
COMPARE = ("compare", "terse", "faithful")
CAPTION = ("caption", "photos", "--model", "m", "--out", "o")
WORDS = ("analysis", "words")
PUSH = ("report", "wandb", "--mode", "offline")
SUBMIT = ("submit", "embed", "photos", "--model", "m", "--out", "o")

OPTIONS = [
    (AUDIT, "--minutes", "above 0", ("-1", "0")),
    (AUDIT, "--minutes", "a number", ("nan", "x", "")),
    (AUDIT, "--limit", "at least 1", ("0", "-1")),
    (AUDIT, "--limit", "a whole number", ("nan", "1e3")),
    (AUDIT, "--least-coverage", "at least 0 and at most 1", ("2", "-1")),
    (AUDIT, "--least-coverage", "a number", ("nan", "")),
    (AUDIT, "--negligible", "at least 0 and at most 1", ("2", "-1")),
    (("report",), "--negligible", "at least 0 and at most 1", ("2",)),
    (COMPARE, "--margin", "at least 0", ("-1",)),
    (COMPARE, "--margin", "a number", ("nan", "inf")),
    (COMPARE, "--least-coverage", "at least 0 and at most 1", ("2",)),
    (COMPARE, "--alike", "at least 0", ("-1",)),
    (CAPTION, "--batch", "at least 1 and at most 65536", ("0", "-1", "99999999")),
    (CAPTION, "--threads", "at least 1 and at most 1024", ("0", "9999")),
    (CAPTION, "--beams", "at least 1 and at most 1000", ("0", "9999")),
    (CAPTION, "--max-new-tokens", "at least 1 and at most 4096", ("0", "99999")),
    (WORDS, "--resamples", "at least 2 and at most 1000000", ("1", "9999999")),
    (WORDS, "--steps", "at least 1", ("0",)),
    (PUSH, "--timeout", "above 0 and at most 604800", ("-1", "0", "1e300")),
    (PUSH, "--timeout", "a number", ("nan", "inf", "x")),
    (SUBMIT, "--shards", "at least 1 and at most 100000", ("0", "999999999")),
    (SUBMIT, "--shards", "a whole number", ("x", "9" * 99)),
]


@pytest.mark.parametrize(
    ("words", "flag", "bounds", "value"),
    [(words, flag, bounds, item) for words, flag, bounds, values in OPTIONS for item in values],
)
def test_a_number_of_an_option_is_one_and_in_range(ends, words, flag, bounds, value):
    text = ends(2, *words, f"{flag}={value}")
    assert f"argument {flag}: " in text
    assert f" must be {bounds}" in text
