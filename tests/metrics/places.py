"""Where intervals lie."""

from bias_pipeline.stats.bootstrap import Estimate


def place(estimate: Estimate) -> str:
    """An interval of 95 % against no bias."""
    return "above 0" if estimate.ci_low > 0 else "below 0" if estimate.ci_high < 0 else "around 0"
