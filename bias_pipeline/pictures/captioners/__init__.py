"""Captioners that read a picture and a prompt, and the networks behind them."""
