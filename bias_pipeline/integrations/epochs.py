"""Measures the bias of a captioner after each epoch of its training, for any logger.

One process must see all captions, since the mean over parts of the images is not the number of all
images.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bias_pipeline.errors import DataError, UsageError, did_you_mean, inflect
from bias_pipeline.metrics.catalogue import metric_class, metric_names
from bias_pipeline.metrics.value_names import HEADLINES, MODEL, SCORE

if TYPE_CHECKING:
    from pytorch_lightning import Callback, LightningModule, Trainer

    from bias_pipeline.data.memory import Captions, Labels, Objects

    CaptionsOf = Callable[[LightningModule, Any], tuple[Iterable[Any], Iterable[str]]]

log = logging.getLogger(__name__)


class CaptionBias:
    """The headlines of some metrics for the captions that were collected since the last reset.

    Example:
        >>> bias = CaptionBias({1: "male", 2: "female", 3: "female"}, metrics=["gender_error"])
        >>> bias.update([1, 2], ["a man", "a man"])
        >>> bias.update([3], ["a woman"])
        >>> bias.compute()["gender_error"]
        0.3333333333333333
    """

    def __init__(
        self,
        labels: Labels,
        metrics: str | Sequence[str] = ("lic", "gender_error"),
        human: Captions | None = None,
        objects: Objects | None = None,
        **settings: Any,
    ) -> None:
        self.labels, self.human, self.objects = labels, human, objects
        self.metrics = (metrics,) if isinstance(metrics, str) else tuple(metrics)
        for name in self.metrics:
            if name not in metric_names():
                raise UsageError(
                    f"metric={name!r} is unknown; {did_you_mean(name, metric_names())}"
                )
        dataset = settings.get("dataset", {})
        if isinstance(dataset, Mapping):  # score refuses any other value
            dataset = {"strict": False, **dataset}
        self.settings = {**settings, "dataset": dataset}
        self._captions: dict[Any, str] = {}

    def update(self, ids: Iterable[Any], captions: Iterable[str]) -> None:
        """Add the captions of a batch; a second caption of an image replaces the first caption."""
        plain = [one.item() if hasattr(one, "item") else one for one in ids]
        texts = list(captions)
        if len(plain) != len(texts):
            raise UsageError(
                f"CaptionBias: ids and captions of a batch differ: {inflect(len(plain), 'ids')} "
                f"and {inflect(len(texts), 'captions')}; give one caption for each id"
            )
        self._captions.update(zip(plain, texts, strict=True))

    def compute(self) -> dict[str, float]:
        """Fractions by name; if a metric has two headlines, the name is ``metric:direction``."""
        return self.compute_with_reasons()[0]

    def compute_with_reasons(self) -> tuple[dict[str, float], list[str]]:
        """The numbers of :meth:`compute`, and a sentence for each metric with an undefined number.

        Example:
            >>> bias = CaptionBias({1: "male", 2: "female"}, "gender_error")
            >>> bias.update([1, 2], ["a dog", "a cat"])
            >>> numbers, (reason,) = bias.compute_with_reasons()
            >>> numbers, reason[:40]
            ({'gender_error': nan}, 'gender_error is undefined: the captioner')
        """
        import bias_pipeline as bp

        if not self._captions:
            raise UsageError("CaptionBias: no captions were added; call update before compute")
        values: dict[str, float] = {}
        reasons = []
        for name in self.metrics:
            result = bp.score(
                name, self._captions, self.labels, self.human, self.objects, **self.settings
            )
            rows = {row.part: row.value for row in result.rows}
            parts = [part for part in HEADLINES if part in rows] or [MODEL]
            headlines = {_number_name(name, part): rows[part] for part in parts if part in rows}
            values |= headlines
            if any(math.isnan(value) for value in headlines.values()):
                reasons.append(f"{name} is undefined: {'; '.join(result.notes)}")
        return values, reasons

    def undefined(self) -> dict[str, float]:
        """The names of :meth:`compute`, each with the value NaN.

        Example:
            >>> CaptionBias({}, ["lic", "dbac"]).undefined()
            {'lic': nan, 'dbac:a_to_t': nan, 'dbac:t_to_a': nan}
        """
        headlines = {name: metric_class(name).info.says for name in self.metrics}
        return {
            _number_name(name, part): math.nan for name in headlines for part in headlines[name]
        }

    def reset(self) -> None:
        self._captions.clear()


def _number_name(metric: str, part: str) -> str:
    """The name of a number: the metric, with the direction if the metric has two headlines."""
    return metric if part in (SCORE, MODEL) else f"{metric}:{part}"


def bias_callback(bias: CaptionBias, captions_of: CaptionsOf, prefix: str = "bias/") -> Callback:
    """A callback that logs the bias of an epoch's validation captions.

    Captions that cannot be scored give NaN and a warning, and training goes on, because an
    untrained captioner may write blank captions. Lightning's sanity check computes once without
    logging, so a wrong setting ends training before the first epoch.
    """
    from pytorch_lightning import Callback

    class LogBias(Callback):
        """See :func:`bias_callback`."""

        def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
            if trainer.world_size > 1:
                raise UsageError(
                    f"bias_callback: {trainer.world_size} processes each see a part of the images; "
                    "train with devices=1, or score the captions afterwards"
                )

        def on_validation_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
            bias.reset()

        def on_validation_batch_end(
            self,
            trainer: Trainer,
            pl_module: LightningModule,
            outputs: Mapping[str, Any] | Any,
            batch: Any,
            batch_idx: int,
            dataloader_idx: int = 0,
        ) -> None:
            bias.update(*captions_of(pl_module, batch))

        def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
            try:
                numbers, problems = bias.compute_with_reasons()
            except DataError as error:  # the captions cannot be scored
                numbers, problems = bias.undefined(), [str(error)]
            if trainer.sanity_checking:  # two batches only show whether settings are right
                return
            for problem in problems:
                log.warning("bias_callback: %s", problem)
            pl_module.log_dict({f"{prefix}{name}": value for name, value in numbers.items()})

    return LogBias()
