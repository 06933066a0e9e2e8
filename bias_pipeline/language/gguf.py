"""Unpacks a quantised language model in one file (GGUF) into weights that transformers reads.

Unpacking takes a minute or two, and happens once. The weights are cached under the file's digest,
so moving the file does not matter.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

from bias_pipeline.errors import DataError, ResourceError, refused_by_system
from bias_pipeline.io.digests import digest_of, is_whole, seal_folder, sha256_of
from bias_pipeline.io.machine import GGUF, package_folder
from bias_pipeline.io.paths import user_cache
from bias_pipeline.io.terminal import warn
from bias_pipeline.models.model_location import CARRIED, MAIN
from bias_pipeline.models.pretrained import WEIGHTS, Pretrained

ENDING = ".gguf"
KIND = "gguf"  # kind of a model whose own kind was not read yet
VERSION = 1  # raise it whenever the weights that are written change
_MAGIC = b"GGUF"


def find_gguf(name: str, revision: str = MAIN) -> Pretrained | None:
    """Find a quantised model in a file or a package; only its digest is read."""
    carried = CARRIED.get(name)
    if carried is not None and carried.parts and revision == MAIN:
        parts = [path for path in _parts(carried.parts) if path is not None and path.is_file()]
        if len(parts) < len(carried.parts):
            return None
        return _packed_model(name, carried.sha256, f"the package {carried.package}", parts)
    path = Path(name).expanduser()
    if path.suffix != ENDING:
        return None
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        raise refused_by_system(error) from error
    if magic != _MAGIC:
        raise DataError(f"{name}: is not a GGUF file; give one, a folder, or a name on the hub")
    return _packed_model(name, digest_of(path), "a file", [path])


def _packed_model(name: str, digest: str, source: str, paths: Sequence[Path]) -> Pretrained:
    return Pretrained(
        name,
        user_cache() / KIND / f"{digest[:16]}-{VERSION}",
        KIND,
        {KIND: digest, "unpacked by": str(VERSION)},
        source,
        packed=sum(path.stat().st_size for path in paths),
    )


def unpack(model: Pretrained) -> Pretrained:
    """The model with its weights in a folder; models that are not quantised stay unchanged.

    If several processes ask, one process unpacks and the others wait. A folder appears complete or
    not at all.
    """
    if model.kind != KIND:
        return model
    if not is_whole(model.folder):
        GGUF.require()
        try:
            model.folder.parent.mkdir(parents=True, exist_ok=True)
            with _file_lock(model.folder.with_suffix(".lock")):
                if not is_whole(model.folder):
                    if model.folder.exists():
                        warn(f"{model.folder}: has no checksums that fit; removed")
                        shutil.rmtree(model.folder)
                    warn(
                        f"{model.name}: is being unpacked into {model.folder}, once; this takes "
                        "a few minutes"
                    )
                    _write_unpacked(model)
        except OSError as error:
            raise ResourceError(
                f"{model.folder.parent}: cannot be written ({error.strerror}); the weights of "
                f"{model.name} take four bytes each there (XDG_CACHE_HOME chooses another place)"
            ) from error
    config = json.loads((model.folder / "config.json").read_text(encoding="utf-8"))
    kind = str(config.get("model_type"))
    # Its vocabulary is in the same file; that file's digest covers both.
    files = {**model.files, "tokenizer.json": model.files[KIND]}
    return Pretrained(model.name, model.folder, kind, files, model.source)


@contextmanager
def _file_lock(path: Path) -> Iterator[None]:
    import fcntl  # not on Windows

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _write_unpacked(model: Pretrained) -> None:
    with tempfile.TemporaryDirectory(dir=model.folder.parent) as folder:
        whole = _joined_file(model, Path(folder))
        made = Path(folder, "model")
        made.mkdir()
        try:
            _write(*read_gguf(whole), made)
        except (ImportError, MemoryError, OSError):
            raise
        except Exception as error:  # whatever the library raises on a broken file
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise DataError(
                f"{model.name}: cannot be read as a language model ({reason})"
            ) from error
        seal_folder(made)
        made.rename(model.folder)


def _joined_file(model: Pretrained, folder: Path) -> Path:
    """The file in one piece, checked by its digest."""
    carried = CARRIED.get(model.name)
    if carried is None:
        return Path(model.name).expanduser().resolve()
    whole = folder / f"model{ENDING}"
    with whole.open("wb") as file:
        for part in _parts(carried.parts):
            assert part is not None
            with part.open("rb") as source:
                shutil.copyfileobj(source, file, 1 << 20)
    if sha256_of(whole) != carried.sha256:
        raise DataError(
            f"{model.name}: the weights in {model.source} are not the published ones; "
            "reinstall the package"
        )
    return whole


def _parts(names: tuple[str, ...]) -> Iterator[Path | None]:
    for name in names:
        module, _, inside = name.partition("/")
        folder = package_folder(module)
        yield None if folder is None else folder / inside


def read_gguf(path: Path) -> tuple[Any, Any]:
    """The network (float32) and the tokenizer that a file contains."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging as library

    library.set_verbosity_error()  # type: ignore[no-untyped-call]
    library.disable_progress_bar()  # type: ignore[no-untyped-call]
    options = {"gguf_file": path.name, "local_files_only": True, "trust_remote_code": False}
    with redirect_stderr(StringIO()):  # the library's progress bar, which no setting turns off
        network: Any = AutoModelForCausalLM.from_pretrained(path.parent, **options)
        return network.to(torch.float32), AutoTokenizer.from_pretrained(path.parent, **options)


def _write(network: Any, tokenizer: Any, folder: Path) -> None:
    """Write what ``save_pretrained`` would write if it did not refuse quantised models."""
    from safetensors.torch import save_file

    tied = bool(network.config.tie_word_embeddings)
    weights = {
        name: weight.contiguous()
        for name, weight in network.state_dict().items()
        if not (tied and name == "lm_head.weight")
    }
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
    (folder / WEIGHTS).chmod(0o644)
    config = network.config.to_dict()
    config.pop("quantization_config", None)
    (folder / "config.json").write_text(json.dumps(config, default=str, indent=1))
    tokenizer.save_pretrained(folder)
