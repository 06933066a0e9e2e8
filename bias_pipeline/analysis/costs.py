"""What a cell will take, from what others took."""

from __future__ import annotations

from bias_pipeline.corpus.corpus import Corpus

# Processor seconds a caption and seed (attackers) or a caption (counting), and seconds a cell:
# rather more than benchmarks/audit.py measured from 5,000 to 1,200,000 captions, so that a slower
# machine keeps its time too. leakage and lic train the same attackers, once. dbac is from the COCO
# captions (34 s for 60,000 and three seeds) and the embedded ones (52 s for two).
_PER_SEED = {"lic": 3.5e-5, "leakage": 0.0, "dbac": 3e-4, "dpa": 1e-5}
_PER_CAPTION, _PER_CELL = 3e-6, 0.45
_DEARER = {"quality": 6e-5, "multi_directional": 6e-5}  # of the metrics that train nothing
# What the data do not permit ends at once.
_NEED_PEOPLE = frozenset({"dbac", "quality"})
_NEED_OBJECTS = frozenset({"ba_directional", "ba_mals", "dpa", "multi_directional"})
_TYPICAL = 60_000  # captions of a data set, where it is not known which


def seconds(metric: str, captions: int, seeds: int) -> float:
    """Expected seconds of a cell, of attackers those of ``encoder=ngram``.

    Args:
        metric: its name; an unknown one counts as one that trains nothing.
        captions: of the model and of people.
        seeds: how many.

    Example:
        >>> seconds("dbac", 12_000, 5) > seconds("lic", 12_000, 5) > seconds("dpa", 0, 5)
        True
    """
    if metric in _PER_SEED:
        return _PER_CELL + captions * seeds * _PER_SEED[metric]
    return _PER_CELL + captions * _DEARER.get(metric, _PER_CAPTION)


def seconds_of(metric: str, corpus: Corpus, seeds: int) -> float:
    """Expected seconds of a cell of a corpus; one that the data do not permit ends at once."""
    people, objects = len(corpus.human) > 0, corpus.objects is not None
    refused = (metric in _NEED_PEOPLE and not people) or (metric in _NEED_OBJECTS and not objects)
    return seconds(metric, 0 if refused else len(corpus.model) + len(corpus.human), seeds)


def weight(metric: str, seeds: int) -> float:
    """What a cell takes relative to others, where nothing is known of its data set."""
    return seconds(metric, _TYPICAL, seeds)
