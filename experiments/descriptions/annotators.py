"""Writes ``conf/annotators/coco.yaml``: what annotators of COCO say of women and men.

Usage: python -m experiments.descriptions.annotators DATA
"""

from __future__ import annotations

import sys
from pathlib import Path

from bias_pipeline.io.paths import conf_dir
from experiments.descriptions.pictures import (
    ANNOTATORS,
    Habits,
    Pictures,
    metric_and_attribute,
)

LEAST = 40  # mentions of a concept whose ratio is written
_FEWEST = 8  # mentions of a concept that is listed
ALONE = ("facial hair", "bald", "bare-chested", "makeup", "pregnant")
HEAD = """# How often annotators of COCO val2014 say the concepts of concepts/people.yaml, of whom;
# made by python -m experiments.descriptions.annotators DATA. Ratios are natural logarithms of
# hazards of five annotators joined, women over men, on one mix of pictures (by their objects), with
# standard errors.
"""


def main(data: Path) -> None:
    pictures = Pictures.read(data)
    metric, attribute = metric_and_attribute()
    habits = Habits(pictures, metric.concepts, attribute)
    ratios, mentions = habits.ratios(pictures.pool)
    listed = sorted((name for name in mentions if mentions[name] >= _FEWEST), key=mentions.get)
    lines = [
        HEAD + "_target_: bias_pipeline.metrics.counting.large_set.LargeSet",
        f"captions: {ANNOTATORS * len(pictures.pool)}",
        "mentions:",
        *(f"  {name}: {mentions[name]}" for name in reversed(listed)),
        "attributes:",
        "  gender:",
        "    _target_: bias_pipeline.metrics.counting.large_set.GroupRatios",
        f"    groups: [{', '.join(attribute.groups)}]",
        "    ratios:",
        *(
            f"      {name}: [{ratios[name].log_ratio:.3f}, {ratios[name].error:.3f}]"
            for name in reversed(listed)
            if mentions[name] >= LEAST and name not in ALONE
        ),
        f"    alone: {', '.join(ALONE)}",
        f"least: {LEAST}",
        "source: >-",
        "  Captions and objects: Lin et al., Microsoft COCO (ECCV 2014), val2014.",
        "  Labels: Zhao, Wang, Russakovsky, Understanding and Evaluating Racial Biases in Image",
        "  Captioning (ICCV 2021).",
    ]
    file = conf_dir() / "annotators" / "coco.yaml"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
