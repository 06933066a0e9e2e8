"""The page that says which metric answers which question, from how many images, moved by what."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import pandas as pd

from bias_pipeline.metrics.base import QUESTIONS, MetricInfo
from bias_pipeline.metrics.catalogue import infos
from bias_pipeline.report.power import (
    MATCHED,
    PLANTED,
    Power,
    Usability,
    amount,
    measured_of,
    movements_of,
    usability,
)
from experiments.study import markdown

SIZES = (500, 2000, 8000)
_HEAD = """\
# Which metric answers which question

Written by `python -m experiments.power.study`, from what
[experiments/power](../experiments/power/README.md) and
[experiments/flatness](../experiments/flatness/README.md) measured.

Choose the question first, then a metric that may be used for it. The columns:

* **use it**: whether `audit` draws a conclusion from the metric if the captioner writes differently
  from annotators, as published captioners do. [The metric's card](metrics.md) says why not. *only a
  yes*: if the metric finds bias, you may conclude that there is some; if it finds none, there may
  still be some (it missed 20 % at every size).
* **20 % found from**: the fewest images with which an audit of the metric alone called a captioner
  biased in at least four of five trials. *people words*: human captions, 20 % of which got a
  word that annotators use more often for the group. *scenes a_to_t*: a simulated captioner
  that imagines 20 % of the details as typical of the group. *scenes t_to_a*: a captioner that
  takes the group from the scene in 20 % of its captions. *none*: none of the measured sizes, 250
  to 8,000 images, was enough.
  [RESULTS.md](../experiments/power/RESULTS.md) has the trials, which are few.
* **smallest score**: the score that is detected with a power of 80 % with 500, 2,000 and 8,000
  images in two groups of equal size (the largest of several planted biases). A smaller bias may be
  missed, so "not beyond chance" does not rule it out.
* **moved without bias**: the largest change between speakers without bias, with half the width of
  its interval and the speaker; under `alignment=matched` for metrics to be used only there.

```sh
python -m bias_pipeline analysis power --n 500
```

prints how small a bias any number of images can show; `audit` prints it for yours before it runs.

* If several metrics answer one question, `audit` corrects for their number (Holm). If only one
  of them is significant, its score must be larger: by a tenth for two metrics.
* Groups of unequal size show as much as fewer images in equal groups: 900 and 100 as much as 360
  in total (`--groups 900,100`). This is a rule of thumb and was not measured.
* More than two groups were not measured, and neither were metrics with a dash. DBAC was measured as
  published.

"""


def page() -> str:
    """The page as Markdown."""
    lines = [
        line
        for question in QUESTIONS
        for info in infos().values()
        if info.question == question
        for line in _lines(info)
    ]
    return _HEAD + markdown(pd.DataFrame(lines).set_index("question"))


def _lines(info: MetricInfo) -> Iterator[dict[str, str]]:
    for answer in usability(info):
        alignment = "matched" if answer.answer == MATCHED else "constant"
        powers = measured_of(info.name, answer.part)
        yield {
            "question": QUESTIONS[info.question],
            "metric": f"`{info.name}`" + (f" `{answer.part}`" if answer.part != "score" else ""),
            "use it": answer.answer,
            f"{PLANTED} % found from": "; ".join(map(_least_images, powers)) or "–",
            "smallest score": _smallest(powers),
            "moved without bias": _reaction(info.name, answer, alignment),
        }


def _least_images(power: Power) -> str:
    size = power.smallest_size(PLANTED)
    return f"{'none' if size is None else f'{size:,} images'} ({power.any_measurement.design})"


def _smallest(powers: Sequence[Power]) -> str:
    if not powers:
        return "–"
    scores = (max(power.smallest(size) for power in powers) for size in SIZES)
    texts = [amount(score, powers[0].any_measurement.unit) for score in scores]
    unit = texts[0].partition(" ")[2]
    return f"{', '.join(text.partition(' ')[0] for text in texts)} {unit}"


def _reaction(metric: str, answer: Usability, alignment: str) -> str:
    lines = movements_of(metric, answer.part, alignment)
    if not lines:
        return "–"
    most = max(lines, key=lambda line: line.moved)
    half = "" if math.isnan(most.half_width) else f" ±{amount(most.half_width, most.unit)}"
    return f"{amount(most.moved, most.unit).partition(' ')[0]}{half} ({most.speaker})"
