"""Computes the identity of a run, a hash of all that decides its numbers and of nothing else."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence

from bias_pipeline.corpus.attribute import ENGLISH, Attribute
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.gold_labels import GoldLabels
from bias_pipeline.corpus.regrouping import LabelNoise
from bias_pipeline.declared import TARGET, known_name
from bias_pipeline.text.tokenize import Tokenize

# Settings of objects that change no number: places of files, and numbers of processes.
_PLACES = frozenset({"cache", "checkpoint_minutes", "device", "processes"})
# Settings of the tokenizer that decide how captions are read: the corpus's digest covers them.
_OF_CORPUS = frozenset({"preambles", "declined", "stock", "unit", "subjects"})
_PROSE = frozenset({"source"})  # says where words come from; left out only in our own classes
# By class, the parameters that were added later, each with the value with which earlier runs
# keep their ids.
LATER: Mapping[str, Mapping[str, object]] = {
    "Attribute": {"language": ENGLISH, "english_check": None},
    "Frozen": {"dtype": "float32"},
    "Grit": {"backbone": "own"},
}
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
    label_noise: LabelNoise | None = None,
    gold: GoldLabels | None = None,
) -> str:
    """The run's name, made of readable words and the hash of all that decides its numbers."""
    content = {
        "metric": deciding(tree, corpus.dataset),
        "metric_version": metric_version,
        "dataset": corpus.dataset,
        "captioner": corpus.captioner,
        "corpus": corpus.digest,
        "file_order": _file_order(tree, corpus),
        "seeds": list(seeds),
        **({"label_noise": label_noise.rates} if label_noise else {}),
        **({"gold": gold.digest} if gold else {}),
    }
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]
    names = (metric, corpus.dataset, corpus.captioner, attribute, digest)
    return "-".join(slug(name) for name in names)


def slug(name: str) -> str:
    """A name reduced to at most 40 letters, digits and underscores.

    Example:
        >>> slug("../My captioner.json")
        'my_captioner_json'
    """
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:40] or "unnamed"


def groups_used(config: Mapping[str, object], root: str) -> set[str]:
    """The top-level keys of an unresolved configuration that a node reaches by references.

    Example:
        >>> groups_used({"metric": {"p": "${probe}"}, "probe": "${encoder}", "encoder": 1, "x": 2},
        ...             "metric") == {"metric", "probe", "encoder"}
        True
    """
    reached: set[str] = set()
    queue = [root]
    while queue:
        key = queue.pop()
        if key in reached or key not in config:
            continue
        reached.add(key)
        queue.extend(_REFERENCE.findall(json.dumps(config[key])))
    return reached


def keys_of(config: Mapping[str, object], root: str) -> dict[str, str]:
    """Map each path within a node of an unresolved configuration to the key that sets its value.

    Example:
        >>> keys_of({"metric": {"p": "${probe}"}, "probe": {"net": "${encoder}"}, "encoder": {}},
        ...         "metric")
        {'p': 'probe', 'p.net': 'encoder'}
    """
    return dict(_mounts(config.get(root), (), config))


def set_by(config: Mapping[str, object], place: str) -> str:
    """The key that sets the value at a path, in a configuration with unresolved references.

    Example:
        >>> set_by({"probe": {"net": "${encoder}"}, "encoder": {"side": 1}}, "probe.net.side")
        'encoder.side'
    """
    root, _, inner = place.partition(".")
    keys = keys_of(config, root)
    above = [mount for mount in keys if inner == mount or inner.startswith(f"{mount}.")]
    nearest = max(above, key=len, default=None)
    return place if nearest is None else f"{keys[nearest]}{inner.removeprefix(nearest)}"


def _mounts(
    node: object, path: tuple[str, ...], config: Mapping[str, object]
) -> Iterator[tuple[str, str]]:
    """Every path whose value is only a reference, with the key to which the reference leads."""
    whole = _WHOLE.fullmatch(node) if isinstance(node, str) else None
    if whole:
        yield ".".join(path), whole[1]
        node = _select(config, whole[1])
    if isinstance(node, Mapping):
        for name, value in node.items():
            yield from _mounts(value, (*path, str(name)), config)
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from _mounts(value, (*path, str(number)), config)


def _select(config: Mapping[str, object], key: str) -> object:
    node: object = config
    for name in key.split("."):
        node = node.get(name) if isinstance(node, Mapping) else None
    return node


def deciding(node: object, dataset: str) -> object:
    """The part of a configuration that decides numbers, with names of classes without modules.

    So a class may move to another module. The result leaves out paths, numbers of processes, prose,
    settings that the corpus's digest covers, labels of other data sets, and parameters with their
    value in :data:`LATER`.

    Example:
        >>> node = {"_target_": "bias_pipeline.attack.ngram.Ngram", "cache": "outputs/.cache"}
        >>> deciding(node, "coco")
        {'_target_': 'Ngram'}
    """
    if isinstance(node, Mapping):
        settings = _deciding_settings(node, dataset) if TARGET in node else node
        return {key: deciding(value, dataset) for key, value in settings.items()}
    if isinstance(node, list):
        return [deciding(item, dataset) for item in node]
    return node


def _deciding_settings(node: Mapping[str, object], dataset: str) -> dict[str, object]:
    """The settings of an object that decide numbers, with the name of its class."""
    module, dot, name = str(node[TARGET]).rpartition(".")
    target = known_name(module, name) if dot else name
    left_out = _PLACES if "." in target else _PLACES | _PROSE
    left_out |= _OF_CORPUS if target == Tokenize.__name__ else frozenset()
    # Compared as JSON, so that 1, 1.0 and true differ
    later = {key: json.dumps(value) for key, value in LATER.get(target, {}).items()}
    settings = {
        key: value
        for key, value in node.items()
        if key not in left_out and not (key in later and json.dumps(value) == later[key])
    }
    labels = settings.get("labels")
    if target == Attribute.__name__ and isinstance(labels, Mapping):
        bare = dataset.partition(" (limit ")[0]
        settings["labels"] = {name: labels[name] for name in labels if name in (dataset, bare)}
    return {**settings, TARGET: target}


def _file_order(tree: Mapping[str, object], corpus: Corpus) -> str | None:
    """A digest of the order of captions in the file, or None unless splits depend on the order."""
    split = tree.get("split")
    if not isinstance(split, Mapping) or split.get("order") != "file":
        return None
    return hashlib.sha256(corpus.source_order.astype("<i8").tobytes()).hexdigest()
