"""Attackers trained from scratch: each its own, reproducible, and retried when it fails."""

import json
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children
from typing import Any

import numpy as np
import pytest
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf

from bias_pipeline.array_types import Float64Array
from bias_pipeline.attack import lightning_loop as loop
from bias_pipeline.attack import neural, training
from bias_pipeline.attack.encoder import PAD, UNKNOWN
from bias_pipeline.attack.neural import ATTEMPTS, NeuralProbe
from bias_pipeline.attack.probe import ProbeResult, TrainingJob
from bias_pipeline.attack.recipe import Adam
from bias_pipeline.commands.main import main
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.predictions import LabelledCaptions, Predictions
from bias_pipeline.corpus.split import Split
from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.io.hashing import derived_seed
from bias_pipeline.io.machine import has_bf16
from bias_pipeline.io.paths import conf_dir

ENCODERS = ("lstm", "bilstm", "rnn", "birnn", "transformer1", "transformer5")
HEADS = ("linear", "mlp3")
TELLING = ("truck", "flower", "kite")
N_TRAIN, N = 180, 240


def small_parts(group: str, name: str) -> Any:
    """What ``encoder=name`` or ``head=name`` describes, at sizes for tests."""
    content = OmegaConf.load(conf_dir() / group / f"{name}.yaml")
    sizes = {"embedding_dim": 16, "hidden_dim": 16, "n_layers": 1, "dropout": 0.1}
    node = OmegaConf.merge(content, {"attacker": sizes}).encoder if group == "encoder" else content
    return instantiate(OmegaConf.to_container(node, resolve=True), _convert_="all")


def flags(**changed: object) -> dict[str, Any]:
    settings = OmegaConf.to_container(OmegaConf.load(conf_dir() / "trainer" / "cpu.yaml"))
    assert isinstance(settings, dict)
    return {**{str(key): value for key, value in settings.items()}, "max_epochs": 3, **changed}


def probe(
    encoder: str = "lstm", head: str = "linear", lr: float = 0.02, **options: Any
) -> NeuralProbe:
    settings: dict[str, Any] = {"batch_size": 32, "trainer": flags(), "processes": 1, **options}
    return NeuralProbe(
        small_parts("encoder", encoder), small_parts("head", head), Adam(lr), **settings
    )


def telling_captions(
    n_classes: int = 2, change: Callable[[int, str], str] = lambda i, text: text
) -> LabelledCaptions:
    """Captions of four words, the last of which tells the class."""
    generator = np.random.default_rng(0)
    labels = np.arange(N) % n_classes
    fillers = generator.choice(["red", "big", "old", "wet"], (N, 2))
    texts = [
        f"a {' '.join(filler)} {TELLING[k]}" for filler, k in zip(fillers, labels, strict=True)
    ]
    changed = [change(i, text) for i, text in enumerate(texts)]
    return LabelledCaptions("model", Captions.from_texts(changed), labels, n_classes)


def tasks() -> LabelledCaptions:
    """Two tasks that are named or not, independently of each other."""
    labels = np.stack([np.arange(N) % 2, np.arange(N) // 2 % 2], axis=1)
    texts = [f"a {'truck' if one else 'red'} {'kite' if two else 'big'}" for one, two in labels]
    return LabelledCaptions("model", Captions.from_texts(texts), labels, 2)


def splits(*seeds: int) -> list[Split]:
    rows, none = np.arange(N), np.empty(0, np.int64)
    return [Split(seed, rows[:N_TRAIN], rows[N_TRAIN:], none, False) for seed in seeds or (0,)]


def accuracy(predictions: Predictions) -> float:
    return float(np.mean(predictions.probs[0].argmax(axis=1) == predictions.truth[0]))


# What attackers learn.


@pytest.mark.parametrize(
    ("encoder", "head", "n_classes"),
    [*((e, h, 2) for e in ENCODERS for h in HEADS), *(("lstm", h, 3) for h in HEADS)],
)
def test_a_planted_word_is_learnt(encoder, head, n_classes):
    predictions = probe(encoder, head).fit_predict(telling_captions(n_classes), splits())
    assert accuracy(predictions) > 0.95


@pytest.mark.parametrize("n_classes", [2, 3])
def test_predictions_hold_every_group_and_test_caption_and_sum_to_one(n_classes):
    (probs,) = probe().fit_predict(telling_captions(n_classes), splits()).probs
    assert probs.shape == (N - N_TRAIN, n_classes)
    np.testing.assert_allclose(probs.sum(axis=1), 1, rtol=0, atol=1e-12)


@pytest.mark.parametrize("encoder", ["lstm", "transformer1"])
def test_independent_tasks_are_learnt_and_do_not_exclude_each_other(encoder):
    built_probe = probe(encoder, lr=0.005, trainer=flags(max_epochs=8))
    predictions = built_probe.fit_predict(tasks(), splits())
    assert np.mean((predictions.probs[0] > 0.5) == predictions.truth[0]) > 0.95
    both = predictions.probs[0].sum(axis=1)
    assert both.min() < 0.5 < 1.5 < both.max()


def without_words(i: int, text: str) -> str:
    return "" if i % 5 == 0 else text


@pytest.mark.parametrize("encoder", ENCODERS)
def test_captions_without_words_have_predictions(encoder):
    predictions = probe(encoder).fit_predict(telling_captions(change=without_words), splits())
    assert np.isfinite(predictions.probs[0]).all()


def test_all_captions_without_words_have_predictions():
    predictions = probe().fit_predict(telling_captions(change=lambda i, text: ""), splits())
    np.testing.assert_allclose(predictions.probs[0], 0.5, atol=0.2)


# Seeds.


@pytest.mark.parametrize("encoder", ["lstm", "transformer5"])
def test_one_of_four_seeds_predicts_as_it_does_alone(encoder):
    together = probe(encoder).fit_predict(telling_captions(), splits(0, 12, 456, 789))
    alone = probe(encoder).fit_predict(telling_captions(), splits(12))
    np.testing.assert_array_equal(together.probs[1], alone.probs[0])


def test_seeds_have_predictions_of_their_own_in_whatever_order():
    one, two = (
        probe().fit_predict(telling_captions(), splits(*seeds)).probs
        for seeds in ((0, 12), (12, 0))
    )
    np.testing.assert_array_equal(one[0], two[1])
    assert not np.allclose(one[0], one[1])


@pytest.fixture
def weights_of_trainings(
    monkeypatch: pytest.MonkeyPatch,
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The weights of every attacker before and after its training."""
    recorded: list[tuple[dict[str, Any], dict[str, Any]]] = []
    fit = training.fit

    def weights(attacker: Any) -> dict[str, Any]:
        return {name: value.clone() for name, value in attacker.state_dict().items()}

    def spy(attacker: Any, *rest: Any) -> None:
        before = weights(attacker)
        fit(attacker, *rest)
        recorded.append((before, weights(attacker)))

    monkeypatch.setattr(training, "fit", spy)
    return recorded


@pytest.mark.parametrize("encoder", ["lstm", "transformer1"])
def test_a_seed_starts_from_weights_of_its_own_and_from_the_same_again(
    encoder, weights_of_trainings
):
    probe(encoder, trainer=flags(max_epochs=1)).fit_predict(telling_captions(), splits(0, 12, 0))
    (one, _), (two, _), (again, _) = weights_of_trainings
    assert not torch.equal(one["head.0.weight"], two["head.0.weight"])
    assert all(torch.equal(one[name], again[name]) for name in one)


@pytest.mark.parametrize("change", [lambda i, text: text, without_words])
@pytest.mark.parametrize("encoder", ["lstm", "transformer1"])
def test_every_weight_is_trained_but_unknown_words_stay_zero(encoder, change, weights_of_trainings):
    probe(encoder).fit_predict(telling_captions(change=change), splits())
    ((before, after),) = weights_of_trainings
    assert [name for name in before if torch.equal(before[name], after[name])] == []
    for weights in (before, after):
        assert not weights["encoder.vectors.weight"][[UNKNOWN, PAD]].any()


def test_test_captions_alone_bring_no_words(weights_of_trainings):
    data = telling_captions(change=lambda i, text: f"{text} {'here' if i < N_TRAIN else f'new{i}'}")
    probe().fit_predict(data, splits())
    n_words = len(weights_of_trainings[0][0]["encoder.vectors.weight"])
    assert n_words == 2 + len({"a", "red", "big", "old", "wet", "truck", "flower", "here"})


# Failures.


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int]]:
    """Let the first attackers fail; returns the list of seeds that will be trained."""

    def prepare(times: int, prediction: float = np.nan) -> list[int]:
        seeds: list[int] = []
        train = neural.train_attacker

        def spoil(recipe: Any, data: LabelledCaptions, job: TrainingJob) -> ProbeResult:
            seeds.append(job.seed)
            trained = train(recipe, data, job)
            failed = ProbeResult(np.full_like(trained.probs, prediction))
            return failed if len(seeds) <= times else trained

        monkeypatch.setattr(neural, "train_attacker", spoil)
        return seeds

    return prepare


QUICK = {"trainer": flags(max_epochs=1)}


@pytest.mark.parametrize("prediction", [np.nan, np.inf, 0.5])
def test_a_failed_attacker_is_trained_again_and_never_averaged_in(failing, prediction, caplog):
    """From the next derived seed."""
    retries = [derived_seed("retry", 12, attempt) for attempt in (1, 2)]
    alone = probe(**QUICK).fit_predict(telling_captions(), splits(retries[1]))
    seeds = failing(2, prediction)
    predictions = probe(**QUICK).fit_predict(telling_captions(), splits(12))
    assert seeds == [12, *retries]
    np.testing.assert_array_equal(predictions.probs[0], alone.probs[0])
    assert "model, seed 12: failed attackers: 2" in caplog.text


def test_a_retried_attacker_keeps_its_seeds_name_and_others_are_not_touched(failing):
    alone = probe(**QUICK).fit_predict(telling_captions(), splits(0))
    failing(1)
    predictions = probe(**QUICK).fit_predict(telling_captions(), splits(12, 0))
    assert predictions.seeds == (12, 0)
    np.testing.assert_array_equal(predictions.probs[1], alone.probs[0])


def test_after_three_failures_it_is_given_up_and_nothing_is_kept(failing, tmp_path):
    seeds = failing(9)
    with pytest.raises(DataError, match="seed 12: 3 attackers in a row") as refused:
        probe(cache=str(tmp_path), **QUICK).fit_predict(telling_captions(), splits(12))
    assert len(seeds) == ATTEMPTS == 3
    for key in ("probe.optimizer.lr", "trainer.max_epochs"):  # what to change
        assert key in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_a_diverging_attacker_is_given_up():
    with pytest.raises(DataError, match="diverged"):
        probe("transformer1", lr=1e10).fit_predict(telling_captions(), splits())


def test_equal_captions_may_have_equal_predictions(failing):
    seeds = failing(0)
    probe().fit_predict(telling_captions(change=lambda i, text: "a dog"), splits(12))
    assert seeds == [12]


# What identifies predictions, and where they come from.


def test_how_many_processes_share_the_work_is_no_part_of_the_spec():
    assert probe(processes=1).spec == probe(processes=7).spec


@pytest.mark.parametrize(
    "changed",
    [
        {"encoder": "rnn"},
        {"encoder": "transformer1"},
        {"head": "mlp3"},
        {"lr": 0.03},
        {"batch_size": 33},
        {"trainer": flags(max_epochs=4)},
        {"trainer": flags(precision="32-true")},
    ],
)
def test_everything_else_is_part_of_the_spec(changed):
    assert probe().spec != probe(**changed).spec


@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_spec_is_plain_data(encoder):
    spec = probe(encoder, "mlp3").spec
    assert json.loads(json.dumps(spec)) == spec


def test_predictions_come_from_the_cache_as_they_were_with_losses_that_fell(failing, tmp_path):
    """Losses are the mean over an epoch's captions, of every epoch."""
    seeds = failing(0)
    lines = [
        probe(cache=str(tmp_path)).fit_predict(telling_captions(), splits(*requested))
        for requested in ((0, 12), (12, 0, 456))
    ]
    assert seeds == [0, 12, 456]
    np.testing.assert_array_equal(lines[0].probs[0], lines[1].probs[1])
    curves, again = ([x for x in one.training.curves if x["seed"] == 0] for one in lines)
    assert curves == again
    assert [line["epoch"] for line in curves] == [1, 2, 3]
    assert curves[0]["train_loss"] > curves[2]["train_loss"]


@pytest.mark.parametrize(
    ("accelerator", "processes"), [("cpu", len(os.sched_getaffinity(0))), ("gpu", 1)]
)
def test_there_is_one_process_a_core_or_one_on_a_gpu(accelerator, processes):
    built_probe = probe(trainer=flags(accelerator=accelerator), processes=None)
    assert built_probe.processes == processes


def test_the_default_precision_fits_the_processor():
    wanted = "bf16-mixed" if has_bf16() else "32-true"
    assert loop.precision(flags()) == wanted


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_two_processes_predict_as_one_does():
    one, two = (probe(processes=n).fit_predict(telling_captions(), splits(0, 12)) for n in (1, 2))
    np.testing.assert_array_equal(one.probs, two.probs)


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_trainings_that_nobody_waits_for_are_ended():
    """The first attacker has few captions; the second still trains when the first is done."""
    rows = np.arange(N)
    jobs = [TrainingJob(seed, rows[:n], rows[N_TRAIN:]) for seed, n in ((0, 4), (12, N_TRAIN))]
    built_probe = probe(batch_size=8, trainer=flags(max_epochs=200), processes=2)
    predictions = built_probe.train(telling_captions(), jobs)
    next(predictions)
    predictions.close()
    deadline = time.monotonic() + 5
    while active_children():
        assert time.monotonic() < deadline, "a training goes on"
        time.sleep(0.02)


def test_an_error_survives_the_way_between_processes():
    error = pickle.loads(pickle.dumps(DataError("diverged")))
    assert (type(error), str(error)) == (DataError, "diverged")


def test_a_process_ended_from_outside_is_a_want_of_resources(monkeypatch):
    class Broken:
        def map(self, *_: object) -> Iterator[tuple[Float64Array, int]]:
            raise BrokenProcessPool
            yield

    class Pool:
        cache_clear = staticmethod(lambda: None)

        def __call__(self, processes: int) -> Broken:
            return Broken()

    monkeypatch.setattr(loop, "pool", Pool())
    with pytest.raises(ResourceError, match=r"probe\.processes=1"):
        probe(processes=2).fit_predict(telling_captions(), splits(0, 12))


def test_killed_workers_leave_no_thread_that_python_would_wake_at_its_end():
    loop.kill_workers()
    before = set(threading.enumerate())
    loop.pool(1).submit(os.getpid).result()
    loop.kill_workers()
    assert set(threading.enumerate()) <= before


def test_an_interrupted_training_is_an_interrupt(monkeypatch):
    """Lightning would end the program with exit code 1 instead."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("bias_pipeline.attack.attacker.Attacker.training_step", interrupt)
    with pytest.raises(KeyboardInterrupt):
        probe().fit_predict(telling_captions(), splits())


TINY = (
    *("metric=dbac", "metric.positions=1", "metric.min_support=10", "encoder=lstm", "seeds=1"),
    *("attacker.hidden_dim=4", "attacker.embedding_dim=4", "trainer.max_epochs=1"),
    *("dataset.n_images=300", "probe.processes=1", "logger=csv"),
)


def test_cached_predictions_need_no_pytorch(tmp_path, monkeypatch):
    """Other intervals of the same predictions: another cell, but nothing to train."""
    monkeypatch.chdir(tmp_path)
    assert main([*TINY, "stats.resamples=20"]) == 0
    code = (
        "import sys; from bias_pipeline.commands.main import main; assert main(sys.argv[1:]) == 0; "
        "print([m for m in ('torch', 'pytorch_lightning') if m in sys.modules])"
    )
    command = [sys.executable, "-c", code, *TINY, "stats.resamples=21"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
