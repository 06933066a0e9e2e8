"""DPA: are the captioner's objects and groups easier to guess from labels than the labels are?

Attackers guess one variable from the labels of the other one: for Psi_M what captions name, for
Psi_D the labels, after as many of them have been made wrong at random, wherever they stand, as the
captioner gets wrong. Psi is accuracy on test images; DPA = (Psi_M - Psi_D) / (Psi_M + Psi_D) (Tokas
et al. 2024). Of several objects each has attackers and wrong labels of its own, and Psi is their
mean. T→A rests on images whose caption names exactly one group.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from bias_pipeline.corpus.corpus import Record
from tests.witness import lists
from tests.witness.attackers import SEED, Attacked, FloatArray, IntArray, halves
from tests.witness.dbac import EXCLUDED, objects_named
from tests.witness.lic import group_of, is_labelled

TEST_SHARE = 0.2

# Which of N labels are made wrong, from N, how many, the images that are tested, random numbers.
Noise = Callable[[int, int, IntArray, np.random.Generator], IntArray]


@dataclass(frozen=True)
class Question:
    """What attackers of one direction are asked about N images."""

    inputs: Sequence[Sequence[str]]  # the given labels of each, written as words
    groups: IntArray  # (N,) alike in both parts of a split
    truth: dict[str, IntArray]  # label to (N,) 0 or 1
    mentioned: dict[str, IntArray]  # the same by the model's captions


@dataclass(frozen=True)
class Psi:
    """The accuracy of each split's attackers, (splits,) for each label."""

    model: dict[str, FloatArray]
    human: dict[str, FloatArray]

    def score(self, *labels: str) -> FloatArray:
        """(splits,) DPA of some labels together, or of all."""
        model, human = (
            np.mean([side[label] for label in labels or side], axis=0)
            for side in (self.model, self.human)
        )
        return (model - human) / (model + human)


def anywhere(
    n_labels: int, n_wrong: int, test: IntArray, generator: np.random.Generator
) -> IntArray:
    """Wrong labels are as likely in training as in the test."""
    del test
    return generator.choice(n_labels, n_wrong, replace=False)


def predictability(question: Question, n_splits: int, noise: Noise = anywhere) -> Psi:
    """Both sides' attackers, fresh ones with fresh noise for each split and label."""
    attacked = Attacked(question.inputs)
    generator = np.random.default_rng(SEED)
    psi = Psi({label: np.zeros(n_splits) for label in question.truth}, {})
    psi.human.update({label: np.zeros(n_splits) for label in question.truth})
    for number, (train, test) in enumerate(halves(question.groups, n_splits, TEST_SHARE)):
        for label, truth in question.truth.items():
            mentioned, labels = question.mentioned[label], truth.copy()
            wrong = noise(len(truth), int((truth != mentioned).sum()), test, generator)
            labels[wrong] = 1 - labels[wrong]
            for side, inputs in ((psi.model, mentioned), (psi.human, labels)):
                guess = attacked.predict(inputs, train, test) >= 0.5
                side[label][number] = np.mean(guess == (inputs[test] == 1))
    return psi


def a_to_t(images: Sequence[Record], least: float) -> Question:
    """Objects from groups: those that such a share of images hold."""
    used = [image for image in images if answerable(image)]
    present, mentioned = (
        [image.objects or () for image in used],
        [objects_named(image.model or "") for image in used],
    )
    share = {task: float(has(task, present).mean()) for task in lists.task_names()}
    lines = [task for task in share if task != EXCLUDED and share[task] >= least]
    return Question(
        inputs=[[image.labels["gender"]] for image in used],
        groups=group_of(used),
        truth={task: has(task, present) for task in lines},
        mentioned={task: has(task, mentioned) for task in lines},
    )


def t_to_a(images: Sequence[Record]) -> Question:
    """The group from objects, written one after the other in the order of their list."""
    named = [(image, lists.groups().names_in(image.model or "")) for image in images]
    used = [(image, names) for image, names in named if answerable(image) and len(names) == 1]
    groups = group_of([image for image, _ in used])
    second = lists.group_names()[1]
    return Question(
        inputs=[object_words(image.objects or ()) for image, _ in used],
        groups=groups,
        truth={second: groups},
        mentioned={second: has(second, [names for _, names in used])},
    )


def answerable(image: Record) -> bool:
    """Whether the image has a group, a caption and known objects."""
    return is_labelled(image) and bool(image.model) and bool(image.objects)


def object_words(objects: Collection[str]) -> list[str]:
    """Objects as words."""
    return [task for task in lists.task_names() if task in objects and task != EXCLUDED]


def has(value: str, sets: Sequence[Collection[str]]) -> IntArray:
    """(N,) 1 where a value is there."""
    return np.array([value in values for values in sets], np.int64)
