"""Loggers of results besides the run folder: CSV, W&B, TensorBoard, MLflow."""
