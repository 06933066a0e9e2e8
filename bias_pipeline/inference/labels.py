"""What a network sees in pictures, each looked at once for whoever asks.

The blocks of :mod:`bias_pipeline.inference.blocks`, a picture under the digest of its file, so
neither its name nor its place plays a part.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path

from bias_pipeline.inference.blocks import BlockStore
from bias_pipeline.inference.runner import Model, describe_share
from bias_pipeline.inference.stamps import by_name
from bias_pipeline.io.cores import n_cores
from bias_pipeline.vision.labels import Labels

BATCH = 16  # pictures at once


def seen_in(
    pictures: Mapping[str, Path], store: BlockStore, load: Callable[[], Model]
) -> tuple[dict[str, Labels], dict[str, str]]:
    """What pictures show; those that were looked at before are not looked at again.

    Args:
        pictures: digest of a file to where it is.
        store: of the network with its settings.
        load: gives the network; not called where nothing is missing.

    Returns:
        Digest to labels and confidences; and digest to why a picture cannot be read.

    Raises:
        BiasPipelineError: if the network cannot be loaded, or a block cannot be kept.
    """
    known = _kept(store)
    missing = {digest: path for digest, path in pictures.items() if digest not in known}
    if missing:
        how = Namespace(shard="0/1", batch=BATCH, threads=n_cores())
        describe_share(missing, by_name, store, load, how)
        known = _kept(store, lasting=False)
    seen: dict[str, Labels] = {}
    unreadable: dict[str, str] = {}
    for digest in pictures:
        value, reason = known[digest]
        if reason is None:
            seen[digest] = tuple((label, confidence) for label, confidence in json.loads(value))
        else:
            unreadable[digest] = reason
    return seen, unreadable


def _kept(store: BlockStore, *, lasting: bool = True) -> dict[str, tuple[str, str | None]]:
    """Digest to value and reason; what may be readable another time only if asked for."""
    found = {}
    for path in store.index():
        table = store.table(path)
        if table is None:
            continue
        columns = (table[name].to_pylist() for name in ("id", "stamp", "value", "reason"))
        for digest, stamp, value, reason in zip(*columns, strict=True):
            if stamp >= 0 or not lasting:
                found[digest] = (value, reason)
    return found
