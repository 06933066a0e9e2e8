"""What all metrics for Hugging Face's ``evaluate`` share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bias_pipeline.metrics.catalogue import bibtex, metric_class


def caption_metric(name: str, human: bool) -> type:
    """Make the class that ``evaluate.load`` looks for in the file of a metric.

    The method ``compute`` of this class takes aligned lists: ``predictions`` (captions), ``groups``
    (the label of each image, as annotators saw it) and, with ``human``, ``references`` (human
    captions of each image). Further arguments are settings of :func:`bias_pipeline.score`, such as
    ``seeds=3``. ``compute`` returns the score and its interval: ``NAME``, ``NAME_ci_low`` and
    ``NAME_ci_high``.
    """
    import datasets
    import evaluate

    info = metric_class(name).info
    text = datasets.Value("string")
    columns = {"predictions": text, "groups": text}
    if human:
        columns["references"] = datasets.Sequence(text)

    class CaptionMetric(evaluate.Metric):  # type: ignore[misc]  # evaluate has no types
        """See :func:`caption_metric`."""

        def _info(self) -> Any:
            return evaluate.MetricInfo(
                description=info.title,
                citation=bibtex([name]),
                inputs_description=str(caption_metric.__doc__),
                features=datasets.Features(columns),
            )

        def _compute(
            self,
            predictions: Sequence[str],
            groups: Sequence[str],
            references: Sequence[Sequence[str]] | None = None,
            **settings: Any,
        ) -> Mapping[str, float]:
            import bias_pipeline as bp

            people = None if references is None else [list(texts) for texts in references]
            result = bp.score(name, list(predictions), list(groups), people, **settings)
            row = next(row for row in result.rows if row.part == "score")
            return {name: row.value, f"{name}_ci_low": row.ci_low, f"{name}_ci_high": row.ci_high}

    return CaptionMetric
