"""Twins with a planted bias, and the comparison of their groups."""

from __future__ import annotations

from functools import cache

from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.pairs.comparison import GroupsCompared, SetPictures
from bias_pipeline.pairs.counterfactual import Counterfactual
from bias_pipeline.run import compose
from bias_pipeline.scenes.slots import BiasSettings
from bias_pipeline.scenes.twins import Twins, set_of

COLUMNS = {"gender": "gender", "race": "skin"}


@cache
def metric(*words: str) -> Counterfactual:
    built = compose.cell(["metric=counterfactual", *words]).build("metric")
    assert isinstance(built, Counterfactual)
    return built


def twin_corpus(
    n_sets: int, seed: int, noise: float = 0.0, samples: int = 2, **dials: float
) -> Corpus:
    """Captions of twins, without files."""
    from dataclasses import replace

    twins = Twins(n_sets, seed, noise)
    attributes = {"gender": metric().attribute, "race": metric().others["race"]}
    first, *others = (
        Corpus.build(
            [
                Record(
                    str(image.id),
                    captions[image.id],
                    labels={name: image.labels[column] for name, column in COLUMNS.items()},
                    set_id=str(set_of(image)),
                )
                for image in twins.pictures()
            ],
            dataset="scenes",
            captioner="planted",
            groups={name: attribute.groups_of("scenes") for name, attribute in attributes.items()},
        )
        for captions in (twins.captions(BiasSettings(**dials), k) for k in range(samples))
    )
    return replace(first, samples=tuple(others))


def compare(corpus: Corpus) -> GroupsCompared:
    pictures = metric()._pictures(corpus)
    assert isinstance(pictures, SetPictures)
    (comparison,) = metric()._comparisons(pictures)
    return comparison
