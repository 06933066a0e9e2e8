"""Types of NumPy arrays, named after their elements and, for floats, the number of bits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
Int16Array = npt.NDArray[np.int16]
Int32Array = npt.NDArray[np.int32]
Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]
