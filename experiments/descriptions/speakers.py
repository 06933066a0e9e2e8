"""Captioners with known behaviour: annotators' own captions, and paragraphs made from them.

Paragraphs are those of ``speakers/paragraphs_today.py`` beside the folder of data: captions and
objects of COCO in the style of GPT-4o and LLaVA, with descriptions at the rates of annotators who
speak as often. Some come without a difference beyond annotators, others with a planted one.
"""

from __future__ import annotations

import importlib.util
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from types import ModuleType

import numpy as np
from scipy import sparse

from experiments.descriptions.pictures import ANNOTATORS, Habits, Pictures

STYLES = ("gpt4o", "llava")
FAIR = ("fair", "context", "synonyms", "late", "nn")
PLANTED = ("focus", "hair", "smile", "looks", "mild")
# Speakers that differ from annotators in style or in which annotators they are, not in whom they
# describe as what.
SPOKEN_BY_ANNOTATORS = (
    "one annotator", "two annotators", "three annotators", "four annotators", "same annotators"
)  # fmt: skip
ALIKE = (*SPOKEN_BY_ANNOTATORS, "young alike", "annotators' ratio", "bystanders")
# What of an annotator's rate the paragraphs are set by, and the concept.
_BY_SCENE = {"smile": "smiling", "hair": "hair", "beard": "facial hair", "skilled": "skilled"}
_NEIGHBOURS = 40  # pictures of the same group
_MOST = 1500  # images of draws of which the smaller ones are a part
_OVERALL = {  # share of captions to which the descriptions of `nn` are set
    "gpt4o": {"smile": 0.13, "hair": 0.34, "beard": 0.02, "skilled": 0.02},
    "llava": {"smile": 0.10, "hair": 0.02, "beard": 0.004, "skilled": 0.08},
}


@dataclass(frozen=True, eq=False)
class Drawn:
    """Captions of a draw of pictures."""

    model: Mapping[int, str]
    human: Mapping[int, Sequence[str]]


class Speakers:
    """All captioners of the study.

    Args:
        data: the folder of data.
        pictures: of it.
        habits: of annotators.
    """

    def __init__(self, data: Path, pictures: Pictures, habits: Habits) -> None:
        self.pictures, self.habits = pictures, habits
        self.paragraphs = _module(data.parent / "speakers" / "paragraphs_today.py")
        self.rates = {style: self.paragraphs.speakers(style) for style in STYLES}

    def draw(self, name: str, style: str, n_images: int, seed: int) -> Drawn:
        """The captions of one draw of pictures."""
        generator = _random(f"descriptions {seed}")
        chosen = sorted(generator.sample(self.pictures.pool, max(n_images, _MOST))[:n_images])
        if name in SPOKEN_BY_ANNOTATORS:
            return self._annotators(name, chosen, seed)
        chosen_two = {i: _two(seed, i) for i in chosen}
        version = name if name in (*FAIR, *PLANTED) else "fair"
        model = {i: self._paragraph(i, version, style, seed) for i in chosen}
        changed = self._change_paragraphs(name, model, seed) if name in ALIKE else model
        human = {
            i: [c for k, c in enumerate(self.pictures.captions[i]) if k not in chosen_two[i]]
            for i in chosen
        }
        return Drawn(changed, human)

    def _annotators(self, name: str, chosen: Sequence[int], seed: int) -> Drawn:
        """Some annotators joined against the others; or all against themselves."""
        number = {"one": 1, "two": 2, "three": 3, "four": 4, "same": ANNOTATORS}[name.split()[0]]
        model, human = {}, {}
        for i in chosen:
            captions = list(self.pictures.captions[i])
            _random(f"{seed} {i}").shuffle(captions)
            model[i] = " ".join(f"{caption.rstrip('. ')}." for caption in captions[:number])
            human[i] = captions[number:] or captions
        return Drawn(model, human)

    @lru_cache(maxsize=2 * _MOST)  # noqa: B019 - the smaller draws are parts of the larger ones
    def _paragraph(self, picture: int, version: str, style: str, seed: int) -> str:
        rates, objects = self.rates[style], self.pictures.objects[picture]
        if version == "nn":
            version, rates = "fair", self._as_neighbours(picture, style)
        one, two = (self.pictures.captions[picture][k] for k in _two(seed, picture))
        group = self.pictures.group(picture)
        make = self.paragraphs.make
        return str(make(picture, version, style, one, two, group, set(objects), rates, seed))

    def _as_neighbours(
        self, picture: int, style: str
    ) -> dict[tuple[str, str], tuple[float, float]]:
        """The rates of as many annotators of the most similar pictures of the same group."""
        rates = dict(self.rates[style])
        scene = self.paragraphs.scene(set(self.pictures.objects[picture]))
        row = self.habits.place[picture]
        for name, speakers in self._neighbour_speakers[style].items():
            rate = 1 - (1 - min(self._neighbour_shares[name][row], 0.9)) ** speakers
            rates[name, scene] = (rate, rate)
        return rates

    @cached_property
    def _neighbour_shares(self) -> dict[str, np.ndarray]:
        """(N,) share of annotators of the most similar pictures that say each description."""
        images = self.habits.images
        words, objects = images.features, self.habits.objects
        weight = np.log(words.shape[0] / np.maximum((words > 0).sum(axis=0), 1))
        table = sparse.hstack([_unit(words.multiply(weight)), 0.7 * _unit(objects)]).tocsr()
        shares = images.counts / ANNOTATORS
        columns = {name: images.names.index(concept) for name, concept in _BY_SCENE.items()}
        local = {name: np.zeros(len(shares)) for name in columns}
        for group in (0, 1):
            rows = np.flatnonzero(self.habits.groups == group)
            similar = (table[rows] @ table[rows].T).toarray()
            np.fill_diagonal(similar, -1)
            nearest = np.argpartition(-similar, _NEIGHBOURS, axis=1)[:, :_NEIGHBOURS]
            for name, column in columns.items():
                local[name][rows] = shares[rows, column][nearest].mean(axis=1)
        return local

    @cached_property
    def _neighbour_speakers(self) -> dict[str, dict[str, float]]:
        """How many annotators speak, so that the rates over all pictures are those of the style."""
        return {
            style: {
                name: _annotators_to_reach(self._neighbour_shares[name], rate)
                for name, rate in of_style.items()
            }
            for style, of_style in _OVERALL.items()
        }

    def _change_paragraphs(self, name: str, model: Mapping[int, str], seed: int) -> dict[int, str]:
        """The paragraphs with a further sentence, or other words for age."""
        change = {
            "young alike": self._young,
            "annotators' ratio": self._good_looking(model),
            "bystanders": self._bystanders,
        }[name]
        return {i: change(i, text, _random(f"{name} {seed} {i}")) for i, text in model.items()}

    def _young(self, _: int, text: str, generator: random.Random) -> str:
        """Every fourth is called young, whoever it is, and nobody else."""
        text = re.sub(r"\b(young|little|small)\s+", "", text)
        text = re.sub(r"\b(girl|boy|child|kid|toddler|baby)\b", "person", text)
        text = re.sub(r"\b(girls|boys|children|kids|babies)\b", "people", text)
        return f"{text} The person looks young." if generator.random() < 0.25 else text

    def _good_looking(self, model: Mapping[int, str]) -> Callable[[int, str, random.Random], str]:
        """Six of 100 are called attractive, as annotators would share them between the groups."""
        ratios, _ = self.habits.ratios(self.pictures.pool)
        women = float(np.mean([self.pictures.group(i) == "Female" for i in model]))
        rates = _shared_rates(0.06, ratios["good-looking"].log_ratio, women)

        def change(picture: int, text: str, generator: random.Random) -> str:
            rate = rates[self.pictures.group(picture)]
            return f"{text} The person looks attractive." if generator.random() < rate else text

        return change

    def _bystanders(self, picture: int, text: str, generator: random.Random) -> str:
        """More bystanders are described in women's pictures, all of them alike."""
        chances = (0.55, 0.25) if self.pictures.group(picture) == "Female" else (0.30, 0.10)
        rates = {"is smiling": 0.25, "has short hair": 0.3, "looks focused": 0.2, "is young": 0.15}
        for _ in range(sum(generator.random() < chance for chance in chances)):
            for what, rate in rates.items():
                text += f" Another person nearby {what}." if generator.random() < rate else ""
        return text


def _two(seed: int, picture: int) -> list[int]:
    """The two annotators whose captions a paragraph is made from."""
    return _random(f"{seed} {picture}").sample(range(ANNOTATORS), 2)


def _random(seed: str) -> random.Random:
    return random.Random(seed)  # noqa: S311 - nothing is secret


def _shared_rates(rate: float, log_ratio: float, women: float) -> dict[str, float]:
    """The rates of both groups that have one rate together, and this log hazard ratio."""
    low, high = 1e-6, 30.0
    for _ in range(60):
        hazard = math.sqrt(low * high)
        rates = {
            "Female": -math.expm1(-hazard * math.exp(log_ratio)), "Male": -math.expm1(-hazard)
        }  # fmt: skip
        together = women * rates["Female"] + (1 - women) * rates["Male"]
        low, high = (hazard, high) if together < rate else (low, hazard)
    return rates


def _annotators_to_reach(shares: np.ndarray, rate: float) -> float:
    """How many annotators with these shares reach a rate."""
    low, high = 0.01, 3000.0
    for _ in range(60):
        speakers = math.sqrt(low * high)
        reached = float(np.mean(1 - (1 - np.minimum(shares, 0.9)) ** speakers))
        low, high = (speakers, high) if reached < rate else (low, speakers)
    return speakers


def _unit(table: sparse.spmatrix) -> sparse.csr_array:
    """Rows of length 1."""
    lengths = np.sqrt(np.asarray(table.multiply(table).sum(axis=1)).ravel())
    return sparse.csr_array(sparse.diags_array(1 / np.maximum(lengths, 1e-9)) @ table)


def _module(path: Path) -> ModuleType:
    """A script as a module."""
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module
