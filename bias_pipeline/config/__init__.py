"""Configuration by Hydra: composing, checking, building."""
