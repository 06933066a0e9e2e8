"""How many threads this process may use, and memory that it gives back."""

import platform
import subprocess
import sys

import pytest

from bias_pipeline.io.machine import n_cores, n_threads
from tests.corpora import REPOSITORY


def test_the_variable_of_openmp_says_how_many_threads(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert n_threads() == 3


@pytest.mark.parametrize("setting", ["", "0", "many"])
def test_by_default_there_is_a_thread_a_core(setting, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", setting)
    assert n_threads() == n_cores()


LARGE = """
import numpy as np
from bias_pipeline.io.machine import return_freed_memory
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
np.ones(4_000_000)  # from here on glibc takes such arrays from its heap
arrays = [np.ones(1_000_000) for _ in range(20)]
last = np.ones(1_000_000)  # at the end of the heap
del arrays
before = resident()
return_freed_memory()
print(before - resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_freed_memory_is_returned():
    done = subprocess.run(
        [sys.executable, "-c", LARGE], capture_output=True, text=True, check=True, cwd=REPOSITORY
    )
    assert int(done.stdout) > 50_000_000
