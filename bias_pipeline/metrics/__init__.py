"""Metrics of societal bias in captions; formulas are in :mod:`bias_pipeline.metrics.functional`."""
