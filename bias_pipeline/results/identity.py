"""What a run is: the hash of everything that decides its numbers, and nothing else."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.declared import TARGET, known_name

# Where things are kept, and how many work on them, does not change them.
_PLACES = frozenset({"cache", "checkpoint_minutes", "device", "processes"})
_REFERENCE = re.compile(r"\$\{([a-z_]+)")
_WHOLE = re.compile(r"\$\{([\w.]+)\}")  # a reference and nothing else


def run_id(
    tree: Mapping[str, object],
    corpus: Corpus,
    *,
    metric: str,
    attribute: str,
    metric_version: int,
    seeds: Sequence[int],
) -> str:
    """A readable name that ends in the hash of the run.

    Args:
        tree: the resolved configuration reachable from ``metric``, in composed order (so masking
            then aligning is not aligning then masking).
        corpus: what is scored; its digest counts, its place on disk does not.
        metric: the metric's name.
        attribute: the attribute's name.
        metric_version: of the metric.
        seeds: of the run.

    Returns:
        A name safe as a folder on every system.
    """
    content = {
        "metric": deciding(tree),
        "metric_version": metric_version,
        "dataset": corpus.dataset,
        "captioner": corpus.captioner,
        "corpus": corpus.digest,
        "file_order": _file_order(tree, corpus),
        "seeds": list(seeds),
    }
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]
    names = (metric, corpus.dataset, corpus.captioner, attribute, digest)
    return "-".join(slug(name) for name in names)


def slug(name: str) -> str:
    """A name reduced to letters, digits and underscores, at most 40 of them.

    Example:
        >>> slug("../My captioner.json")
        'my_captioner_json'
    """
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:40] or "unnamed"


def groups_used(config: Mapping[str, object], root: str) -> set[str]:
    """Top-level keys of an unresolved configuration that a node reaches by interpolation.

    Args:
        config: the whole configuration as plain data, interpolations unresolved.
        root: the key to start from.

    Example:
        >>> groups_used({"metric": {"p": "${probe}"}, "probe": "${encoder}", "encoder": 1, "x": 2},
        ...             "metric") == {"metric", "probe", "encoder"}
        True
    """
    found: set[str] = set()
    queue = [root]
    while queue:
        key = queue.pop()
        if key in found or key not in config:
            continue
        found.add(key)
        queue.extend(_REFERENCE.findall(json.dumps(config[key])))
    return found


def keys_of(config: Mapping[str, object], root: str) -> dict[str, str]:
    """Places within a node of an unresolved configuration to the keys that set what stands there.

    Args:
        config: the whole configuration as plain data, interpolations unresolved.
        root: the key of the node.

    Example:
        >>> keys_of({"metric": {"p": "${probe}"}, "probe": {"net": "${encoder}"}, "encoder": {}},
        ...         "metric")
        {'p': 'probe', 'p.net': 'encoder'}
    """
    return dict(_mounts(config.get(root), (), config))


def set_by(config: Mapping[str, object], place: str) -> str:
    """The key of an unresolved configuration that sets what stands at a place.

    Example:
        >>> set_by({"probe": {"net": "${encoder}"}, "encoder": {"side": 1}}, "probe.net.side")
        'encoder.side'
    """
    root, _, inner = place.partition(".")
    keys = keys_of(config, root)
    above = [own for own in keys if inner == own or inner.startswith(f"{own}.")]
    nearest = max(above, key=len, default=None)
    return place if nearest is None else f"{keys[nearest]}{inner.removeprefix(nearest)}"


def _mounts(
    node: object, path: tuple[str, ...], config: Mapping[str, object]
) -> Iterator[tuple[str, str]]:
    """Every place that holds a reference and nothing else, and what that refers to."""
    whole = _WHOLE.fullmatch(node) if isinstance(node, str) else None
    if whole:
        yield ".".join(path), whole[1]
        node = _selected(config, whole[1])
    if isinstance(node, Mapping):
        for name, value in node.items():
            yield from _mounts(value, (*path, str(name)), config)
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from _mounts(value, (*path, str(number)), config)


def _selected(config: Mapping[str, object], key: str) -> object:
    found: object = config
    for name in key.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def deciding(node: object) -> object:
    """What of a configuration decides numbers: classes by their names, and no places.

    So a module may move, and where things are kept or how many work on them plays no part.

    Example:
        >>> deciding({"_target_": "bias_pipeline.encoders.ngram.Ngram", "cache": "outputs/.cache"})
        {'_target_': 'Ngram'}
    """
    if isinstance(node, Mapping):
        named = {k: _class_name(v) if k == TARGET else v for k, v in node.items()}
        return {k: deciding(v) for k, v in named.items() if k not in _PLACES}
    if isinstance(node, list):
        return [deciding(item) for item in node]
    return node


def _class_name(target: object) -> str:
    module, dot, name = str(target).rpartition(".")
    return known_name(module, name) if dot else name


def _file_order(tree: Mapping[str, object], corpus: Corpus) -> str | None:
    """The order of the captioner's file counts only where splits are drawn from it."""
    split = tree.get("split")
    if not isinstance(split, Mapping) or split.get("order") != "file":
        return None
    return hashlib.sha256(corpus.source_order.astype("<i8").tobytes()).hexdigest()
