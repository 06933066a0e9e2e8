"""A published model that is fine-tuned by LoRA: as what it begins, and what it learns."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("peft", reason="extra lora is not installed")

import torch
from torch.nn.functional import cross_entropy

from bias_pipeline.attack.neural import NeuralProbe
from bias_pipeline.attack.recipe import Adam
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.corpus.split import Split
from bias_pipeline.errors import ResourceError
from bias_pipeline.io import machine
from bias_pipeline.pictures.captioners.judge import Judge, TunedJudge
from bias_pipeline.pictures.captioners.nets import TunedNet
from bias_pipeline.pictures.captioners.prompt import Answers, Prompt
from bias_pipeline.run import compose
from tests.photo_folder import write_photos
from tests.pictures.captioners.test_sat import FLAGS
from tests.tiny_picture_text import WRITERS, write

PROMPT = Prompt("gender", template="{caption} {answer}")
TELLING = ("a person rides a horse", "a dog on the beach")  # what the group can be told by
ALL = np.arange(4)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> LabelledCaptions:
    pictures = Pictures(tuple(sorted(write_photos(tmp_path_factory.mktemp("photos"), 4).iterdir())))
    labels = ALL % 2
    texts = Captions.from_texts([TELLING[label] for label in labels])
    return LabelledCaptions("model", texts, labels, 2, ("male", "female"), pictures=pictures)


def build_net(folder: Path, data: LabelledCaptions) -> TunedNet:
    judge = TunedJudge(PROMPT, str(folder), side=32, dropout=0.0)
    return judge.build(judge.read(data).fit(ALL))


@pytest.mark.parametrize("kind", WRITERS)
def test_it_begins_as_the_model_is(kind, data, tmp_path):
    folder = write(tmp_path, kind)
    with torch.no_grad():
        result = build_net(folder, data).eval()(rows=torch.from_numpy(ALL))
    as_it_is = Judge(PROMPT, str(folder), side=32).answer_log_probs(data)
    np.testing.assert_allclose(result.numpy(), as_it_is, atol=1e-5)


KINDS = [pytest.param(kind, marks=[pytest.mark.slow] * (kind != "git")) for kind in WRITERS]


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns_what_it_does_not_say_and_leaves_the_models_weights(kind, data, tmp_path):
    net = build_net(write(tmp_path, kind), data).eval()  # four captions bear no dropout
    learnt = [weight for weight in net.parameters() if weight.requires_grad]
    frozen = {n: weight.clone() for n, weight in net.named_parameters() if not weight.requires_grad}
    optimizer, rows = torch.optim.Adam(learnt, 0.01), torch.from_numpy(ALL)
    labels = torch.from_numpy(data.labels)
    first = net(rows=rows).detach()
    truth = max(labels, 1 - labels, key=lambda answers: cross_entropy(first, answers))
    before = loss = cross_entropy(first, truth).item()
    for _ in range(60):
        if loss < before / 2:
            break
        error = cross_entropy(net(rows=rows), truth)
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        loss = error.item()
    assert loss < before / 2
    now = dict(net.named_parameters())
    assert all(torch.equal(now[name], weight) for name, weight in frozen.items())


def test_little_of_it_is_learnt(data, tmp_path):
    net = build_net(write(tmp_path, "git"), data)
    learnt = [name for name, item in net.named_parameters() if item.requires_grad]
    assert learnt
    assert all("lora_" in name for name in learnt)


@pytest.mark.slow
def test_a_metric_has_it_as_attacker(tmp_path):
    built = compose.cell(
        [
            *(
                "metric=imagecaptioner2",
                "encoder=hf_lora",
                f"encoder.model={write(tmp_path, 'git')}",
            ),
            *("encoder.side=32", "probe.cache=null", "metric.leaks=[]", "trainer.max_epochs=1"),
            *("captioner=faithful", "dataset.n_images=40", "stats.resamples=20"),
            *("split=ic2", "metric.sides=[model]", "metric.learning_curve=false"),
            "probe.processes=1",
        ]
    )
    metric, corpus = built.build("metric"), built.corpus()
    score = metric.compute(corpus, splits=metric.draw_splits(corpus, (0, 1)))
    assert 0 < score.parts["model"].value < 1


@pytest.mark.slow
def test_two_processes_learn_as_one(data, tmp_path):
    """Without dropout, of which each process draws its own; the tiny GIT has none by itself."""
    folder = write(tmp_path, "git")
    config = json.loads((folder / "config.json").read_text())
    still = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (folder / "config.json").write_text(json.dumps({**config, **still}))
    curves = []
    for settings in ({"devices": 1}, {"devices": 2, "strategy": "ddp"}):
        judge = TunedJudge(PROMPT, str(folder), side=32, dropout=0.0)
        flags = {**FLAGS, "max_epochs": 3, "precision": "32-true", **settings}
        probe = NeuralProbe(judge, Answers(), Adam(0.01), 2, flags, ensemble=1)
        predictions = probe.fit_predict(data, [Split(0, ALL, ALL[2:], ALL[:0], False)])
        curves.append([line["train_loss"] for line in predictions.training.curves])
    assert curves[1] == pytest.approx(curves[0], rel=1e-4)


def test_without_peft_it_is_told_before_any_work(monkeypatch):
    monkeypatch.setattr(machine, "find_spec", lambda _: None)
    with pytest.raises(ResourceError, match=r"bias_pipeline\[lora\]"):
        TunedJudge(PROMPT, "Salesforce/blip-image-captioning-large").require()
