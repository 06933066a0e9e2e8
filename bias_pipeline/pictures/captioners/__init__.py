"""Captioners that are prompted with pictures, and the networks behind them."""
