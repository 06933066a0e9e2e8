"""Labels of pictures by a network; each picture is computed once and cached.

The blocks of :mod:`bias_pipeline.inference.blocks`, a picture under the digest of its file, so its
path does not matter.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path

from bias_pipeline.inference.blocks import BlockStore
from bias_pipeline.inference.runner import Model, describe_share
from bias_pipeline.inference.stamps import by_name
from bias_pipeline.io.cores import n_threads
from bias_pipeline.vision.labels import Labels

BATCH = 16  # pictures at once


def seen_in(
    pictures: Mapping[str, Path], store: BlockStore, load: Callable[[], Model]
) -> tuple[dict[str, Labels], dict[str, str]]:
    """The labels of pictures; cached ones are not computed again.

    Args:
        pictures: digest of a file to its path.
        store: of the network with its settings.
        load: returns the network; not called if nothing is missing.

    Returns:
        Digest to labels and confidences; and digest to the reason for unreadable pictures.

    Raises:
        BiasPipelineError: if the network cannot be loaded, or a block cannot be kept.
    """
    known = _kept(store)
    missing = {digest: path for digest, path in pictures.items() if digest not in known}
    if missing:
        how = Namespace(shard="0/1", batch=BATCH, threads=n_threads())
        describe_share(missing, by_name, store, load, how)
        known = _kept(store, lasting=False)
    labels: dict[str, Labels] = {}
    unreadable: dict[str, str] = {}
    for digest in pictures:
        value, reason = known[digest]
        if reason is None:
            labels[digest] = tuple((label, confidence) for label, confidence in json.loads(value))
        else:
            unreadable[digest] = reason
    return labels, unreadable


def _kept(store: BlockStore, *, lasting: bool = True) -> dict[str, tuple[str, str | None]]:
    """Digest to value and reason; temporary failures only on request."""
    results = {}
    for path in store.index():
        table = store.table(path)
        if table is None:
            continue
        columns = (table[name].to_pylist() for name in ("id", "stamp", "value", "reason"))
        for digest, stamp, value, reason in zip(*columns, strict=True):
            if stamp >= 0 or not lasting:
                results[digest] = (value, reason)
    return results
