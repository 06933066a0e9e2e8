"""Show, Attend and Tell against a plain second writing of its equations, and its attackers."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from bias_pipeline.attack.neural import NeuralProbe
from bias_pipeline.attack.recipe import Adam
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.corpus.split import Split
from bias_pipeline.data.image_masking import Blank
from bias_pipeline.errors import NotApplicableError, UsageError
from bias_pipeline.pictures.captioners.backbones import NamedObject, ObjectInputs
from bias_pipeline.pictures.captioners.nets import Convolutions, ListedObjects
from bias_pipeline.pictures.captioners.prompt import Answers, Prompt
from bias_pipeline.pictures.captioners.sat import Sat
from bias_pipeline.pictures.captioners.sat_net import DESIGNS, SatNet
from bias_pipeline.scenes.pixels import SceneDrawing
from bias_pipeline.scenes.world import generate

WORDS, E, H, A, D, R = 11, 6, 8, 5, 7, 4
TOKENS = torch.tensor([[2, 3, 4, 5], [2, 6, 1, 1]])
LENGTHS = torch.tensor([4, 2])


class Given(nn.Module):
    """Passes regions on."""

    output_dim = D

    def forward(self, regions: Tensor) -> tuple[Tensor, Tensor]:
        return regions, torch.ones(regions.shape[:2], dtype=torch.bool)


def net(
    recipe: str, answers: Sequence[Sequence[int]] = ((7,), (8,)), penalty: float = 0.0
) -> SatNet:
    torch.manual_seed(0)
    network = SatNet(
        Given(),
        WORDS,
        answers,
        DESIGNS[recipe],
        embedding_dim=E,
        hidden_dim=H,
        attention_dim=A,
        dropout=0.0,
        attention_penalty=penalty,
        he=False,
    )
    return network.eval()


def regions() -> Tensor:
    return torch.randn(2, R, D, generator=torch.Generator().manual_seed(1))


class Plain:
    """The paper's equations word by word and caption by caption, with PyTorch's own cell."""

    def __init__(self, net: SatNet, regions: Tensor) -> None:
        self.net, self.visual = net, regions  # seen: (R, D)
        mean = regions.mean(dim=0)
        self.h, self.c = net.first_hidden(mean), net.first_cell(mean)
        if net.design.tanh_start:
            self.h, self.c = torch.tanh(self.h), torch.tanh(self.c)
        self.total = torch.zeros(len(regions))
        self.z = mean

    def read(self, word: int) -> None:
        net = self.net
        bend = torch.tanh if net.design.tanh else torch.relu
        scores = net.score(bend(net.region_key(self.visual) + net.state_key(self.h)))[:, 0]
        weights = scores.softmax(dim=0)
        self.total = self.total + weights
        self.z = torch.sigmoid(net.gate(self.h)) * (weights @ self.visual)
        given = torch.cat([net.vectors.weight[word], self.z])[None]
        h, c = net.cell(given, (self.h[None], self.c[None]))
        self.h, self.c, self.last = h[0], c[0], word

    def words(self) -> Tensor:
        net, state = self.net, self.h
        if net.design.deep_output:
            state = net.vectors.weight[self.last] + net.from_state(state) + net.from_context(self.z)
        return net.next_word(state).log_softmax(dim=0)

    def likely(self, following: Sequence[int]) -> Tensor:
        total = torch.zeros(())
        for word in following:
            total = total + self.words()[word]
            self.read(word)
        return total


def read(net: SatNet, row: int) -> Plain:
    plain = Plain(net, regions()[row])
    for word in TOKENS[row, : LENGTHS[row]].tolist():
        plain.read(word)
    return plain


def begin_to_write(recipe: str) -> SatNet:
    network = net(recipe)
    Sat(Prompt("gender"), recipe=recipe).begin_to_write(network, [0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 1])
    return network


def test_words_begin_as_likely_as_they_are_frequent_in_artemis_alone():
    likely = begin_to_write("artemis").next_word.bias.detach().softmax(dim=0)
    assert (likely[1] / likely[10]).item() == pytest.approx(3)
    assert (begin_to_write("tutorial").next_word.bias == net("tutorial").next_word.bias).all()


@pytest.mark.parametrize("answers", [((7,), (8,)), ((7, 9), (8,))], ids=["words", "several words"])
@pytest.mark.parametrize("recipe", list(DESIGNS))
def test_answers_are_those_of_the_equations(recipe, answers):
    built_net = net(recipe, answers)
    output = built_net(TOKENS, LENGTHS, regions=regions())
    for row in range(2):
        wanted = [read(built_net, row).likely(words).item() for words in answers]
        assert output[row].tolist() == pytest.approx(wanted, abs=1e-5)


def test_what_follows_the_answer_counts():
    built_net = net("paper")
    tail, tail_lengths = torch.tensor([[3, 4], [5, 1]]), torch.tensor([2, 1])
    output = built_net(TOKENS, LENGTHS, tail, tail_lengths, regions=regions())
    for row, rest in enumerate(([3, 4], [5])):
        wanted = [read(built_net, row).likely([answer, *rest]).item() for answer in (7, 8)]
        assert output[row].tolist() == pytest.approx(wanted, abs=1e-5)


def test_the_penalty_is_attention_that_does_not_spread():
    built_net = net("paper", penalty=0.5)
    with torch.no_grad():
        built_net(TOKENS, LENGTHS, regions=regions())
    wanted = np.mean([((1 - read(built_net, row).total) ** 2).mean().item() for row in range(2)])
    assert float(built_net.penalty) == pytest.approx(0.5 * wanted, abs=1e-5)


def test_an_answer_does_not_depend_on_who_stands_beside_it():
    built_net = net("paper")
    together = built_net(TOKENS, LENGTHS, regions=regions())
    alone = built_net(TOKENS[1:, :2], LENGTHS[1:], regions=regions()[1:])
    assert together[1].tolist() == pytest.approx(alone[0].tolist(), abs=1e-5)


def test_backbones_make_a_grid_of_pixels_and_a_list_of_objects():
    recorded, present = Convolutions(64, 4, 8)(torch.zeros(2, 3, 64, 64, dtype=torch.uint8))
    assert recorded.shape == (2, 64, 16)
    assert present.all()
    _, present = ListedObjects(5, 3, 0)(torch.tensor([[2, 4], [0, 0]]))
    assert present.tolist() == [[True, True], [True, False]]


# --- attackers

SAT = Sat(Prompt("gender"), side=32, width=4, embedding_dim=8, hidden_dim=16, attention_dim=8)
FLAGS = {
    "accelerator": "cpu",
    "devices": 1,
    "max_epochs": 8,
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}


def data(n: int = 160) -> LabelledCaptions:
    """Scenes of people, unmasked, all with the same caption."""
    images = [i for i in generate(2 * n, seed=1).images if i.labels["gender"] != "Unsure"][:n]
    labels = np.array([i.labels["gender"] == "Female" for i in images], np.int64)
    pictures = Pictures(tuple(SceneDrawing(image, "gender") for image in images))
    captions = Captions.from_texts(["a person"] * n)
    objects = [image.objects for image in images]
    return LabelledCaptions("model", captions, labels, 2, ("male", "female"), pictures, objects)


def split(n: int = 160) -> Split:
    rows = np.arange(n)
    return Split(0, rows[: n * 3 // 4], rows[n * 3 // 4 :], np.empty(0, np.int64), False)


def probe(
    sat: Sat = SAT, *, renormalise: bool = True, epochs: int = 8, **settings: object
) -> NeuralProbe:
    answers, flags = Answers(renormalise), {**FLAGS, "max_epochs": epochs}
    return NeuralProbe(sat, answers, Adam(0.01), 32, flags, processes=1, **settings)


def accuracy(labelled: LabelledCaptions, sat: Sat = SAT) -> float:
    predictions = probe(sat).fit_predict(labelled, [split(len(labelled.labels))])
    return float((predictions.probs[0].argmax(axis=1) == predictions.truth[0]).mean())


@pytest.mark.slow
@pytest.mark.parametrize("backbone", ["annotations", "own"])
def test_two_processes_learn_as_one(backbone):
    """The own network's batch normalisation sees each process's half of a batch."""
    sat = replace(SAT, backbone=backbone, dropout=0.0)
    curves = []
    for many in ({}, {"devices": 2, "strategy": "ddp"}):
        flags = {**FLAGS, "precision": "32-true", "max_epochs": 3, **many}
        probe = NeuralProbe(sat, Answers(), Adam(0.01), 32, flags, processes=1)
        training = probe.fit_predict(data(), [split()]).training
        assert training.world_size == flags["devices"]
        curves.append([line["train_loss"] for line in training.curves])
    tolerance = {"annotations": 1e-4, "own": 0.1}[backbone]
    assert curves[1] == pytest.approx(curves[0], rel=tolerance)


@pytest.mark.slow
def test_unmasked_pictures_tell_the_group_under_one_caption():
    labelled = data(1000)
    flags = {**FLAGS, "max_epochs": 10}
    whole = NeuralProbe(Sat(Prompt("gender")), Answers(), Adam(0.005), 64, flags, processes=1)
    predictions = whole.fit_predict(labelled, [split(1000)])
    assert (predictions.probs[0].argmax(axis=1) == predictions.truth[0]).mean() > 0.8


def test_blank_pictures_tell_all_alike_under_one_caption():
    labelled = data()
    blank = replace(labelled, pictures=labelled.pictures.with_edit(Blank()))
    predictions = probe(epochs=3).fit_predict(blank, [split()])
    assert np.ptp(predictions.probs[0], axis=0).max() < 1e-6


def test_other_words_keep_their_share_where_answers_do_not_share_it():
    predictions = probe(renormalise=False, epochs=1).fit_predict(data(), [split()])
    assert predictions.probs[0].shape[1] == 3
    assert predictions.probs[0].sum(axis=1) == pytest.approx(1)


def test_other_pictures_are_other_predictions(tmp_path):
    """Although captions and labels are the same."""
    labelled, brief = data(), probe(epochs=1, cache=str(tmp_path))
    blank = replace(labelled, pictures=labelled.pictures.with_edit(Blank()))
    brief.fit_predict(labelled, [split()])
    assert brief.fit_predict(blank, [split()]).training.trained == 1


def test_annotations_are_seen_without_pictures():
    labelled, sees = replace(data(), pictures=None), replace(SAT, backbone="annotations")
    labels = np.array(["tie" in objects for objects in labelled.objects or ()], np.int64)
    lines = [frozenset({"tie" if label else "bus"}) for label in labels]
    assert accuracy(replace(labelled, labels=labels, objects=lines), sees) > 0.95


def test_an_object_of_no_training_picture_is_not_seen():
    """Else it would have a vector that nobody trained."""
    bus, tie = NamedObject("bus"), NamedObject("tie")
    fitted = ObjectInputs.of_lines([(tie,), (bus, tie), (bus,)]).fit(np.array([0]))
    assert fitted.names == ["tie"]
    assert fitted.batch(np.arange(3))["objects"].tolist() == [[1], [1], [0]]


@pytest.mark.parametrize(("backbone", "what"), [("own", "pictures"), ("annotations", "objects")])
def test_what_is_not_there_cannot_be_seen(backbone, what):
    changed = replace(data(), pictures=None, objects=None)
    with pytest.raises(NotApplicableError, match=what):
        replace(SAT, backbone=backbone).digest(changed)


def test_tasks_are_not_guessed_and_answers_are_no_head_of_vectors():
    changed = replace(data(), labels=np.zeros((160, 3), np.int64))
    with pytest.raises(NotApplicableError, match="predicts one group, not tasks"):
        SAT.read(changed)
    with pytest.raises(UsageError, match="encoders that name groups"):
        Answers().build(100, 2)
