"""Captions that networks write: word by word as they learn, and the likeliest of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from bias_pipeline.pictures.captioners.decoding import END, beam_search
from tests.pictures.captioners import test_grit, test_sat
from tests.pictures.captioners.test_sat import LENGTHS, TOKENS, Plain, regions

SAT = ("paper", "tutorial", "artemis")


def writer(name: str) -> tuple[Any, Mapping[str, Tensor]]:
    """A network and two pictures."""
    if name == "grit":
        return test_grit.net(), test_grit.picture()
    return test_sat.net(name), {"regions": regions()}


@pytest.mark.parametrize("recipe", SAT)
@torch.no_grad()
def test_sat_follows_each_word_as_its_equations_say(recipe):
    net = test_sat.net(recipe)
    output = net.next_word_log_probs(TOKENS, regions=regions())
    for row in range(2):
        plain = Plain(net, regions()[row])
        for place in range(int(LENGTHS[row])):
            plain.read(int(TOKENS[row, place]))
            assert output[row, place].tolist() == pytest.approx(plain.words().tolist(), abs=1e-5)


@torch.no_grad()
def test_grit_follows_each_word_as_if_it_were_the_last():
    net = test_grit.net()
    output = net.next_word_log_probs(TOKENS, **test_grit.picture())
    for row, line in enumerate(test_grit.LINES):
        for place in range(len(line)):
            wanted = test_grit.following(net, line[: place + 1], row).tolist()
            assert output[row, place].tolist() == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("name", [*SAT, "grit"])
@torch.no_grad()
def test_it_writes_as_it_learns(name):
    item, picture = writer(name)
    whole = item.next_word_log_probs(TOKENS, **picture)
    reading = item.initial_state(**picture)
    for place in range(int(LENGTHS.min())):
        reading, likely = item.step(reading, TOKENS[:, place])
        assert likely.flatten().tolist() == pytest.approx(
            whole[:, place].flatten().tolist(), abs=1e-5
        )


@pytest.mark.parametrize("name", [*SAT, "grit"])
@pytest.mark.parametrize("beams", [1, 3])
def test_who_stands_beside_a_picture_plays_no_part(name, beams):
    item, picture = writer(name)
    both = beam_search(item, picture, beams=beams, longest=6)
    for row, wanted in enumerate(both):
        alone = {key: value[row : row + 1] for key, value in picture.items()}
        assert beam_search(item, alone, beams=beams, longest=6) == [wanted]


@pytest.mark.parametrize("name", ["paper", "grit"])
def test_with_every_beam_it_finds_the_likeliest_caption_of_all(name):
    item, picture = writer(name)
    captions = beam_search(item, picture, beams=8**3, longest=3)
    for row in range(2):
        alone = {key: value[row : row + 1] for key, value in picture.items()}
        assert captions[row] == likeliest(item, alone, longest=3)


@torch.no_grad()
def likeliest(writer: Any, picture: Mapping[str, Tensor], longest: int) -> list[int]:
    """Of all captions of so many words or fewer, one after the other."""
    words, lines = range(END, 11), []
    for line in product(words, repeat=longest):
        cut = line[: line.index(END) + 1] if END in line else line
        lines.append(cut)
    best = max(set(lines), key=lambda line: likely(writer, picture, line))
    return [word for word in best if word != END]


def likely(writer: Any, picture: Mapping[str, Tensor], line: tuple[int, ...]) -> float:
    log_probabilities = writer.next_word_log_probs(torch.tensor([[2, *line[:-1]]]), **picture)[0]
    return sum(float(log_probabilities[place, word]) for place, word in enumerate(line))


@dataclass
class Table:
    """After each word, how likely each is to follow; pictures play no part."""

    likely: Tensor

    def initial_state(self, **picture: Tensor) -> Table:
        del picture
        return self

    def take(self, rows: Tensor) -> Table:
        del rows
        return self

    def step(self, reading: Table, words: Tensor) -> tuple[Table, Tensor]:
        return reading, self.likely[words].log()


ONE = {"pixels": torch.zeros(1, 1)}


def table(*rows: tuple[int, Mapping[int, float]]) -> Table:
    probabilities = torch.full((7, 7), 1e-6)
    for word, following in rows:
        for other, p in following.items():
            probabilities[word, other] = p
    return Table(probabilities)


GARDEN = table((2, {4: 0.6, 5: 0.4}), (4, {6: 0.5, 5: 0.5}), (5, {END: 0.9}), (6, {END: 0.9}))


def test_a_search_finds_the_likeliest_caption_of_its_beams():
    assert beam_search(GARDEN, ONE, beams=1, longest=9)[0][0] == 4
    assert beam_search(GARDEN, ONE, beams=2, longest=9) == [[5]]
    assert beam_search(table((2, {4: 0.9}), (4, {4: 0.9})), ONE, beams=1, longest=3) == [[4, 4, 4]]
    assert beam_search(table((2, {END: 0.9})), ONE, beams=2, longest=3) == [[]]


def test_neither_padding_nor_what_is_unknown_is_written():
    built_table = table((2, {0: 0.9, 1: 0.08, 4: 0.01}), (4, {END: 0.9}))
    assert beam_search(built_table, ONE, beams=2, longest=3) == [[4]]
