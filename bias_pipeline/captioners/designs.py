"""Where published versions of Show, Attend and Tell differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Design:
    """One version of the network.

    Attributes:
        tanh: whether attention scores pass a tanh first, else a ReLU.
        bent_start: whether the first state is a tanh of the mean region, else linear in it.
        deep_output: whether the next word depends on state, regions and last word (the paper's
            equation 7), else only on the state.
        frequent_first: whether a captioner's word probabilities start as word frequencies. Not for
            an attacker: its loss is on the answers, which masked captions lack.
    """

    tanh: bool
    bent_start: bool
    deep_output: bool
    frequent_first: bool = False


# ImageCaptioner2 does not say which it uses.
DESIGNS: Mapping[str, Design] = {
    "paper": Design(tanh=True, bent_start=True, deep_output=True),
    "tutorial": Design(tanh=False, bent_start=False, deep_output=False),
    "artemis": Design(tanh=False, bent_start=False, deep_output=False, frequent_first=True),
}
