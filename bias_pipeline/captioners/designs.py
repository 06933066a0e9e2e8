"""Where published versions of Show, Attend and Tell differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Design:
    """One version of the network."""

    tanh: bool  # whether attention scores pass a tanh first, else a ReLU
    bent_start: bool  # whether the first state is a tanh of the mean region, else linear in it
    # Whether the next word depends on state, regions and last word (the paper's equation 7), else
    # only on the state
    deep_output: bool
    # Whether a captioner's word probabilities start as word frequencies. Not for an attacker: its
    # loss is on the answers, which masked captions lack.
    frequent_first: bool = False


# ImageCaptioner2 does not say which it uses.
DESIGNS: Mapping[str, Design] = {
    "paper": Design(tanh=True, bent_start=True, deep_output=True),
    "tutorial": Design(tanh=False, bent_start=False, deep_output=False),
    "artemis": Design(tanh=False, bent_start=False, deep_output=False, frequent_first=True),
}
