"""GRIT, prompted: what its answers depend on, and its attackers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from bias_pipeline.attackers.neural import NeuralProbe
from bias_pipeline.attackers.optimizers import Adam
from bias_pipeline.captioners.grit import Grit
from bias_pipeline.captioners.grit_net import GritNet
from bias_pipeline.captioners.prompt import Prompt
from bias_pipeline.captioners.prompted import Answers
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.predictions import Labelled
from bias_pipeline.models.grit.detector import Detector, Visual
from bias_pipeline.models.grit.sizes import SIZES
from bias_pipeline.vision.masking import Blank
from tests.captioners import test_sat
from tests.captioners.test_sat import FLAGS, data, split

WORDS, C = 11, 8
TINY = replace(SIZES["small"], size=C, n_heads=2, inner=10)
TOKENS = torch.tensor([[2, 3, 4, 5], [2, 6, 1, 1]])
LENGTHS = torch.tensor([4, 2])
GRIT = Grit(Prompt("gender"))


class Given(nn.Module):
    """Passes on what was seen."""

    grid_dim = 5

    def forward(self, grid: Tensor, regions: Tensor) -> Visual:
        return Visual(grid, regions)


def picture() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return {
        "grid": torch.randn(2, 6, 5, generator=generator),
        "regions": torch.randn(2, 3, C, generator=generator),
    }


def net(answers: Sequence[Sequence[int]] = ((7,), (8,))) -> GritNet:
    torch.manual_seed(0)
    own = GritNet(Given(), WORDS, answers, TINY, "released")
    for weight in own.parameters():
        nn.init.normal_(weight, std=0.3)
    return own.eval()


def following(own: GritNet, words: Sequence[int], row: int) -> Tensor:
    """(V,) how likely each word is to follow one line of words."""
    seen = Visual(*(value[row : row + 1] for value in picture().values()))
    seen = seen._replace(grid=own.grid_net(seen.grid))
    states = own.cap_generator(torch.tensor([list(words)]), seen)
    return own.cap_generator.fc(states[0, -1]).log_softmax(dim=0)


def likely(own: GritNet, words: Sequence[int], follows: Sequence[int], row: int) -> float:
    """One word after the other."""
    total, read = 0.0, list(words)
    for word in follows:
        total += following(own, read, row)[word].item()
        read.append(word)
    return total


LINES = [TOKENS[row, : LENGTHS[row]].tolist() for row in range(2)]


def test_answers_are_what_is_likely_to_follow_the_prompt() -> None:
    own = net()
    found = own(TOKENS, LENGTHS, **picture())
    for row, line in enumerate(LINES):
        wanted = following(own, line, row)[[7, 8]].tolist()
        assert found[row].tolist() == pytest.approx(wanted, abs=1e-5)


def test_answers_of_several_words_are_likely_as_all_of_them() -> None:
    answers = ((7, 9), (8,))
    own = net(answers)
    found = own(TOKENS, LENGTHS, **picture())
    for row, line in enumerate(LINES):
        wanted = [likely(own, line, answer, row) for answer in answers]
        assert found[row].tolist() == pytest.approx(wanted, abs=1e-5)


def test_what_follows_the_answer_counts() -> None:
    own = net()
    tail, tail_lengths = torch.tensor([[3, 4], [5, 1]]), torch.tensor([2, 1])
    found = own(TOKENS, LENGTHS, tail, tail_lengths, **picture())
    for row, rest in enumerate(([3, 4], [5])):
        wanted = [likely(own, LINES[row], [answer, *rest], row) for answer in (7, 8)]
        assert found[row].tolist() == pytest.approx(wanted, abs=1e-5)


def parts(own: nn.Module) -> set[type]:
    """The kinds of parts of a network that PyTorch does not have."""
    kinds = {type(part) for part in own.modules()}
    return {kind for kind in kinds if not kind.__module__.startswith("torch.")}


def test_it_shares_no_part_with_show_attend_and_tell() -> None:
    grit = GritNet(Detector(SIZES["small"]), WORDS, ((7,), (8,)), SIZES["small"], "released")
    assert parts(grit).isdisjoint(parts(test_sat.net("paper")))


# --- attackers


def probe(grit: Grit = GRIT, epochs: int = 3) -> NeuralProbe:
    return NeuralProbe(
        grit, Answers(), Adam(0.001), 32, {**FLAGS, "max_epochs": epochs}, processes=1
    )


def test_dropout_is_off_when_it_answers() -> None:
    own = data(64)
    items = GRIT.read(own).fit(np.arange(48))
    asked = GRIT.build(items).eval()
    rows = {k: torch.from_numpy(v) for k, v in items.batch(np.arange(8)).items()}
    assert torch.equal(asked(**rows), asked(**rows))
    assert not torch.equal(asked.train()(**rows), asked(**rows))


def test_where_pictures_are_kept_plays_no_part() -> None:
    assert replace(GRIT, cache="here").spec == GRIT.spec
    assert replace(GRIT, second_gate="paper").spec != GRIT.spec


def test_blank_pictures_tell_all_alike_under_one_caption() -> None:
    own = data(64)
    assert own.pictures is not None
    blank = replace(own, pictures=own.pictures.edited(Blank()))
    found = probe(epochs=1).fit_predict(blank, [split(64)])
    assert np.ptp(found.probs[0], axis=0).max() < 1e-6


def test_words_that_tell_the_group_are_learnt() -> None:
    own = data(240)
    words = np.where(own.labels == 1, "a person with a handbag", "a person with a tie")
    told = Labelled(
        "model", Captions.from_texts(words.tolist()), own.labels, 2, own.classes, own.pictures
    )
    found = probe().fit_predict(told, [split(240)])
    assert (found.probs[0].argmax(axis=1) == found.truth[0]).mean() > 0.95


@pytest.mark.slow
def test_unmasked_pictures_tell_the_group_under_one_caption() -> None:
    own = data(1000)
    found = probe(epochs=6).fit_predict(own, [split(1000)])
    assert (found.probs[0].argmax(axis=1) == found.truth[0]).mean() > 0.8
