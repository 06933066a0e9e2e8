"""Metrics of societal bias in captions; :mod:`bias_pipeline.metrics.functional` has formulas."""
