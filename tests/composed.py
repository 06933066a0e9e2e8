"""Corpora of overrides: the files of each choice are composed once, values are set in a copy."""

from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Any

import yaml

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.run import compose


@cache
def _compose(*choices: str) -> compose.Cell:
    return compose.cell(choices)


def corpus(*words: str) -> Corpus:
    """The corpus of ``dataset=NAME``, ``attribute=NAME`` and values of keys that are there."""
    choices = [word for word in words if word.startswith(("dataset=", "attribute="))]
    cell = _compose(*choices)
    tree = deepcopy(dict(cell.tree))
    for word in words:
        if word not in choices:
            path, _, value = word.partition("=")
            *parents, key = path.split(".")
            node: Any = tree
            for parent in parents:
                node = node[parent]
            assert key in node, word
            node[key] = yaml.safe_load(value)
    compose.check_task(tree)
    return replace(cell, tree=tree).corpus()
