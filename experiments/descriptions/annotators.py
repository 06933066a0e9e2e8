"""Writes ``conf/annotators/coco.yaml``: what annotators of COCO say of whom.

Usage: python -m experiments.descriptions.annotators DATA
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.io.paths import conf_dir
from bias_pipeline.metrics.functional.descriptions import HazardRatio
from experiments.descriptions.pictures import (
    ANNOTATORS,
    Habits,
    Pictures,
    metric_and_attribute,
)

LEAST = 40  # mentions of a concept whose ratio is written
_FEWEST = 8  # mentions of a concept that is listed
# The concepts that annotators say of one group alone.
ALONE = {"gender": ("facial hair", "bald", "bare-chested", "makeup", "pregnant"), "race": ()}
HEAD = """\
# How often annotators of COCO val2014 use the concepts of concepts/people.yaml for each group; made
# by python -m experiments.descriptions.annotators DATA. Mentions are counted in pictures of one man
# or woman. Ratios, with standard errors, are natural logarithms: hazards of five annotators joined,
# second group over first group, on the same mix of pictures (by their objects).
"""
SOURCE = """least: 40
source: >-
  Captions and objects: Lin et al., Microsoft COCO (ECCV 2014), val2014.
  Labels: Zhao, Wang, Russakovsky, Understanding and Evaluating Racial Biases in Image
  Captioning (ICCV 2021).
"""


def main(data: Path) -> None:
    lines, attributes = [], []
    for name, alone in ALONE.items():
        metric, attribute = metric_and_attribute(f"attribute={name}")
        pictures = Pictures.read(data, attribute.labels["coco"])
        ratios, mentions = Habits(pictures, metric.concepts, attribute).ratios(pictures.pool)
        often = sorted((n for n in mentions if mentions[n] >= _FEWEST), key=mentions.__getitem__)
        if not lines:
            lines += [f"captions: {ANNOTATORS * len(pictures.pool)}", "mentions:"]
            lines += [f"  {concept}: {mentions[concept]}" for concept in reversed(often)]
        frequent = [n for n in reversed(often) if mentions[n] >= LEAST and n not in alone]
        attributes += _attribute_lines(
            attribute, {n: ratios[n] for n in frequent}, ", ".join(alone)
        )
    target = "_target_: bias_pipeline.metrics.counting.large_set.LargeSet"
    text = "\n".join([HEAD + target, *lines, "attributes:", *attributes, SOURCE])
    (conf_dir() / "annotators" / "coco.yaml").write_text(text, encoding="utf-8")


def _attribute_lines(
    attribute: Attribute, ratios: Mapping[str, HazardRatio], alone: str
) -> list[str]:
    return [
        f"  {attribute.name}:",
        "    _target_: bias_pipeline.metrics.counting.large_set.GroupRatios",
        f"    groups: [{', '.join(attribute.groups)}]",
        "    ratios:",
        *(f"      {name}: [{r.log_ratio:.3f}, {r.error:.3f}]" for name, r in ratios.items()),
        *([f"    alone: {alone}"] if alone else []),
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
