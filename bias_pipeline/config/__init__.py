"""All that knows Hydra: composing, checking, building, identity."""
