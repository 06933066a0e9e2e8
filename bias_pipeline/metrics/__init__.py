"""Metrics: one file each, over the formulas of :mod:`bias_pipeline.metrics.functional`."""
