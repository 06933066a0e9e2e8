"""Models of pictures and texts, their debiasing, and the fairness of searches with them."""
