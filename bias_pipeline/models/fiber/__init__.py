"""FIBER: a Swin transformer and a RoBERTa used separately or fused."""
