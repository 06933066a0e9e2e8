"""Ranges and choices of annotations hold for objects that are built from Python."""

import copy
import inspect
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from bias_pipeline.declared import Configurable, ConfiguredAs, Count, Share
from bias_pipeline.errors import UsageError


@dataclass(frozen=True)
class Settings(Configurable):
    count: Count = 1
    optional: Count | None = None
    either: Literal["auto"] | Share = "auto"
    several: Sequence[Literal["a", "b"]] = ()
    named: Mapping[Literal["a"], Share] | None = None
    other: Annotated[object, ConfiguredAs(Count)] = 0


class Plain(Configurable):
    def __init__(self, count: Count, *, names: Sequence[str] = ()) -> None:
        self.count, self.names = count, names


class Further(Plain):
    """Has the constructor of its base."""


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"count": 0}, "count=0 must be at least 1"),
        ({"optional": 0}, "optional=0 must be at least 1"),
        ({"either": "none"}, "either='none' must be auto"),
        ({"either": 2}, "either=2 must be auto or at least 0 and at most 1"),
        ({"either": float("nan")}, "either=nan must be"),
        ({"several": ("a", "c")}, "must be one of a, b"),
        ({"several": "ac"}, "must be one of a, b"),
        ({"named": {"b": 0.5}}, "must be a$"),
        ({"named": {"a": 1.5}}, "must be at least 0 and at most 1"),
    ],
)
def test_a_value_out_of_its_range_is_refused(wrong, words):
    with pytest.raises(UsageError, match=f"^Settings: .*{words}"):
        Settings(**wrong)


@pytest.mark.parametrize(
    "right",
    [
        {"count": np.int64(3), "optional": 2, "either": 0.5, "several": ["a"], "named": {"a": 1}},
        {"either": np.float64(0.5), "named": {}, "other": "anything"},
    ],
)
def test_a_value_within_its_range_is_taken(right):
    assert {key: getattr(Settings(**right), key) for key in right} == right


@pytest.mark.parametrize("kind", [Plain, Further])
def test_arguments_by_place_are_checked(kind):
    with pytest.raises(UsageError, match=f"{kind.__name__}: count=0"):
        kind(0)


def test_a_changed_copy_is_checked():
    with pytest.raises(UsageError, match="count=-1"):
        replace(Settings(), count=-1)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_it_can_be_copied_and_pickled(copied):
    assert copied(Settings(count=2)) == Settings(count=2)


def test_a_signature_is_that_of_the_constructor():
    assert [*inspect.signature(Further).parameters] == ["count", "names"]


def test_an_unknown_argument_is_a_type_error():
    wrong: Any = {"counts": 1}
    with pytest.raises(TypeError, match="counts"):
        Settings(**wrong)
