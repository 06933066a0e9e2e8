"""Tests, which run side by side: threads within one would only wait for each other."""

import os

for setting in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before NumPy and PyTorch are loaded
    os.environ.setdefault(setting, "1")
