"""Models that embed pictures and texts, their debiasing, and the fairness of searches."""
