"""Tiny corpora made by hand, and where the real captions are."""

import os
from functools import cache
from pathlib import Path

import numpy as np

from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.corpus.corpus import Corpus, Record

REPOSITORY = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("BIAS_PIPELINE_DATA", REPOSITORY.parent / "shared" / "data"))

LABELS = LabelMap("gender", {"m": "male", "f": "female"}, ("unsure",), ("unsure",))
GENDER = Attribute(
    "gender", ("male", "female"), {"male": ["man", "he"], "female": ["woman", "she"]}, {}
)


def make_corpus(records: list[Record], **options: object) -> Corpus:
    """A corpus of hand-made records with gender labels m, f and unsure."""
    groups = {"gender": (("male", "female"), LABELS)}
    return Corpus.build(records, dataset="toy", captioner="toy", groups=groups, **options)


@cache
def leaky_corpus(n: int = 400, model_leak: float = 0.9, human_leak: float = 0.6) -> Corpus:
    """Half of the images male; one word of a caption tells the group with a given probability."""
    generator = np.random.default_rng(0)
    records = []
    for i in range(n):
        female = i % 2

        def caption(leak: float, female: int = female) -> str:
            named = female if generator.random() < leak else 1 - female
            filler = " ".join(generator.choice(["red", "big", "old", "wet"], 2))
            return f"a {filler} {['truck', 'flower'][named]}"

        humans = tuple(caption(human_leak) for _ in range(5))
        records.append(Record(str(i), caption(model_leak), humans, {"gender": "mf"[female]}))
    return make_corpus(records)
