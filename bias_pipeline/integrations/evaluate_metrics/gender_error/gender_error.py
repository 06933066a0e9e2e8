"""The gender error, for ``evaluate.load``."""

from bias_pipeline.integrations.evaluate_metrics.caption_metric import caption_metric

Metric = caption_metric("gender_error", human=False)
