"""FIBER: a Swin transformer and a RoBERTa that read each other, or stand beside each other."""
