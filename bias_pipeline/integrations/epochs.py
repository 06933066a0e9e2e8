"""Bias of a captioner while it is trained: numbers of each epoch, for any logger.

:class:`CaptionBias` collects captions batch by batch, as the metrics of torchmetrics do;
:func:`bias_callback` makes a callback of Lightning of it. One process sees all captions: under
several, a metric of a part of the images would be another number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bias_pipeline.errors import UsageError

if TYPE_CHECKING:
    from pytorch_lightning import Callback, LightningModule, Trainer

    from bias_pipeline.datasets.memory import Captions, Labels, Objects

    CaptionsOf = Callable[[LightningModule, Any], tuple[Iterable[Any], Iterable[str]]]


class CaptionBias:
    """Headlines of some metrics of the captions that were collected since the last reset.

    Args:
        labels: image id to label, see :func:`bias_pipeline.score`. Captions of other images do not
            count.
        metrics: names, as in ``python -m bias_pipeline metrics``.
        human: people's captions, see there; without them a metric of attackers has no score, and
            ``model``, the captioner's own level, is its number.
        objects: see there.
        settings: see there, such as ``seeds=3``; few seeds keep an epoch short.

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
        metrics: Sequence[str] = ("lic", "gender_error"),
        human: Captions | None = None,
        objects: Objects | None = None,
        **settings: Any,
    ) -> None:
        self.labels, self.human, self.objects = labels, human, objects
        self.metrics, self.settings = tuple(metrics), settings
        self._captions: dict[Any, str] = {}

    def update(self, ids: Iterable[Any], captions: Iterable[str]) -> None:
        """Add the captions of a batch; a second caption of an image replaces the first.

        Args:
            ids: of the images, as in the labels.
            captions: one for each.

        Raises:
            UsageError: if there are more of one than of the other.
        """
        try:
            self._captions.update(zip(ids, captions, strict=True))
        except ValueError as error:
            raise UsageError(f"CaptionBias: ids and captions of a batch differ: {error}") from error

    def compute(self) -> dict[str, float]:
        """Name to value, fractions as fractions; ``metric:direction`` of a metric of two headlines.

        Raises:
            BiasPipelineError: in one sentence, if there are no captions, or too few to score.
        """
        import bias_pipeline as bp
        from bias_pipeline.metrics.value_names import HEADLINES, MODEL, SCORE

        if not self._captions:
            raise UsageError("CaptionBias: no captions were added; call update before compute")
        values: dict[str, float] = {}
        for name in self.metrics:
            result = bp.score(
                name, self._captions, self.labels, self.human, self.objects, **self.settings
            )
            rows = {row.part: row.value for row in result.rows}
            parts = [part for part in HEADLINES if part in rows] or [MODEL]
            alone = (SCORE, MODEL)
            values |= {name if p in alone else f"{name}:{p}": rows[p] for p in parts if p in rows}
        return values

    def reset(self) -> None:
        """Forget all captions."""
        self._captions.clear()


def bias_callback(bias: CaptionBias, captions_of: CaptionsOf, prefix: str = "bias/") -> Callback:
    """A callback that logs the bias of an epoch's validation captions.

    Args:
        bias: what is computed.
        captions_of: from the module and a validation batch to the images' ids and the captions
            that the module writes for them.
        prefix: of the names under which numbers are logged.

    Raises:
        UsageError: when training starts with several processes.
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
            if not trainer.sanity_checking:  # of the first two batches alone
                numbers = {f"{prefix}{name}": value for name, value in bias.compute().items()}
                pl_module.log_dict(numbers)

    return LogBias()
