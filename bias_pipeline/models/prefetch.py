"""Downloads a model from the hub and checks every file against the hub's digest.

Only this module uses the network for models. Code, and weights in formats that can run code, are
not downloaded.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.io.checksummed_json import sha256_of
from bias_pipeline.models.model_location import CARRIED, Place, find_place

if TYPE_CHECKING:
    from huggingface_hub.hf_api import RepoSibling

# Weights, configuration, vocabulary, preprocessing; how a sentence model pools; the licence.
_WANTED = re.compile(r"[^/]+\.(safetensors|safetensors\.index\.json|json|txt|model)"
                     r"|README\.md|[0-9]+_\w+/config\.json")  # fmt: skip


def prefetch(name: str, revision: str, tell: Callable[[str], None]) -> Place:
    """Fetch a model into the hub's cache; existing files are only checked.

    Args:
        name: on the hub.
        revision: a branch, a tag or a commit.
        tell: called with a line for each file.

    Returns:
        Its folder.

    Raises:
        DataError: if a file does not have the hub's digest, or there are no safetensors.
        ResourceError: if the hub refuses it, or it cannot be written.
    """
    import huggingface_hub

    with _asking(name, revision):
        hub = huggingface_hub.HfApi()
        info = hub.model_info(name, revision=revision, files_metadata=True)
    files = [file for file in info.siblings or () if _WANTED.fullmatch(file.rfilename)]
    if not any(file.rfilename.endswith(".safetensors") for file in files):
        raise DataError(
            f"model {name}, revision {revision}: has no safetensors; other formats can run code "
            "and are not fetched: convert it where you trust it, with save_pretrained"
        )
    for file in files:
        with _asking(name, revision):
            path = huggingface_hub.hf_hub_download(name, file.rfilename, revision=revision)
        check_digest(Path(path), file)
        tell(f"{file.rfilename}: {_size(file.size)}, as the hub has it")
    place = find_place(name, revision)
    if info.sha and place.revision and place.revision != info.sha:
        raise ResourceError(f"model {name}: changed while it was fetched; start again")
    return place


def _size(size: int | None) -> str:
    return f"{(size or 0) / 1e6:.1f} MB"


def check_digest(path: Path, file: RepoSibling) -> None:
    """Refuse and remove a file that does not have the hub's digest.

    Raises:
        DataError: naming it.
    """
    large = file.lfs
    wanted = large["sha256"] if large else file.blob_id
    digest = sha256_of(path) if large else _git_blob(path)
    if wanted is not None and digest != wanted:
        path.resolve().unlink()
        raise DataError(
            f"{path.name}: its digest is {digest[:12]}, the hub's {wanted[:12]}; it was removed, "
            "fetch it again"
        )


def _git_blob(path: Path) -> str:
    """The git hash of a file."""
    content = path.read_bytes()
    header = f"blob {len(content)}\0".encode()
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest()


@contextmanager
def _asking(name: str, revision: str) -> Iterator[None]:
    """Turn errors of the hub and the network into one sentence."""
    from huggingface_hub import errors

    reasons: dict[type[Exception], str] = {
        errors.HFValidationError: "is not a valid name on the hub",
        errors.GatedRepoError: "asks for a login: accept its terms, then `hf auth login`",
        errors.RepositoryNotFoundError: "is not on the hub, or not for you; check the spelling",
        errors.RevisionNotFoundError: f"has no revision {revision!r} on the hub",
        errors.OfflineModeIsEnabled: "cannot be fetched: the hub is switched off (HF_HUB_OFFLINE)",
    }
    try:
        yield
    except Exception as error:  # of the hub's client, of its transport, of the disk
        known = next((reason for kind, reason in reasons.items() if isinstance(error, kind)), "")
        reason = known or f"cannot be fetched ({str(error).strip().partition(chr(10))[0][:200]})"
        raise ResourceError(f"model {name}: {reason}") from error


def licence_of(name: str, folder: Path) -> str:
    """The licence that a model's README states, empty if neither it nor a package states one.

    Example:
        >>> licence_of("mine", Path("nowhere"))
        ''
    """
    carried = CARRIED.get(name)
    if carried is not None and carried.licence:
        return carried.licence
    try:
        head = (folder / "README.md").read_text(encoding="utf-8", errors="replace")[:4000]
    except OSError:
        return ""
    match: Any = re.search(r"^license:\s*([\w.+-]+)\s*$", head, re.MULTILINE)
    return match[1] if match and head.startswith("---") else ""
