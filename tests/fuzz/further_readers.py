"""More of what is fuzzed: tables of pixels, what lies beside weights, masks, keys of the shell."""

import json
import os
import shutil
from pathlib import Path

import numpy as np

from bias_pipeline.corpus.pictures import Region
from bias_pipeline.data.picture_files import regions_by_id
from bias_pipeline.data.regions import region_mask
from bias_pipeline.errors import BiasPipelineError
from bias_pipeline.io.arrays import Filling, mapped_table
from bias_pipeline.run import compose
from tests.fuzz.reader import Reader

KEY = "hf_aBcDeFgHiJkL"
SIDE = 8


class LeakError(Exception):
    """A wrong number was read, or a key of the environment told."""


def pixel_tables(folder: Path) -> Reader:
    """A file of the cache of pixels: read back as it was written, or made anew."""
    cache = folder / "cache"
    numbers = np.arange(3 * SIDE * SIDE * 3, dtype=np.uint8).reshape(3, SIDE, SIDE, 3)

    def make() -> Filling:
        return Filling(numbers.shape, np.uint8, enumerate(numbers))

    mapped_table(str(cache), "key", make)
    (sound,) = cache.iterdir()
    files = {sound.name: sound.read_bytes()}

    def read(path: Path) -> None:
        shutil.copy(path, cache / path.name)
        if not (mapped_table(str(cache), "key", make) == numbers).all():
            raise LeakError("a changed table was read")

    return Reader(files, read)


def adapters(folder: Path) -> Reader:
    """What lies beside a language model's weights: an adapter, configurations, a template."""
    import torch

    from bias_pipeline.models.pretrained import find_pretrained
    from bias_pipeline.models.sentences import KINDS, Sentences, pooling_of
    from tests.models.test_digests_cover import add_adapter, add_neighbours
    from tests.tiny_models import write_bert

    sound = write_bert(folder / "bert")
    add_adapter(sound)
    add_neighbours(sound)
    beside = ("adapter_", "chat_template", "generation_config", "tokenizer_config")
    files = {p.name: p.read_bytes() for p in sound.iterdir() if p.name.startswith(beside)}

    def read(path: Path) -> None:
        copy = folder / "own"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(sound, copy)
        shutil.copy(path, copy / path.name)
        model = find_pretrained(str(copy), KINDS)
        Sentences(model, torch.device("cpu"), pooling_of(model, None, None)).embed(["a dog"])

    return Reader(files, read)


def masks(folder: Path) -> Reader:
    """Polygons and run lengths, read and drawn."""
    del folder
    outline = [1.5, 1, 30, 2, 25, 28.5, 3, 20]
    rows = [
        {"segmentation": [outline, [5, 5, 9, 5, 9, 9]], "bbox": [1, 1, 30, 30]},
        {"segmentation": {"size": [32, 40], "counts": [100, 20, 1000, 60, 100]}},
        {"segmentation": {"size": [32, 40], "counts": "T3d0l;d1d3"}},
        {"segmentation": [outline * 50]},
    ]
    annotations = [
        {"image_id": k, "category_id": 1, "score": 0.9, **row} for k, row in enumerate(rows)
    ]
    files = {"masks.json": json.dumps(annotations[:2] + annotations[3:]).encode()} | {
        f"mask{k}.json": json.dumps([row]).encode() for k, row in enumerate(annotations)
    }

    def read(path: Path) -> None:
        for regions in regions_by_id(path).values():
            for region in regions or ():
                _draw(region)

    return Reader(files, read)


def _draw(region: Region) -> None:
    """As pictures are masked: of 32 x 40 pixels where the annotation does not say."""
    sized = region if all(region.size) else Region(**{**vars(region), "size": (32, 40)})
    try:
        region_mask(sized, 32, 40)
    except ValueError as error:
        if not str(error):
            raise


def environment_keys(folder: Path) -> Reader:
    """A configuration that asks for a key: whatever is said of it, the key is not."""
    target = folder / "keys" / "experiment"
    target.mkdir(parents=True)
    files = {
        f"{name}.yaml": f"# @package _global_\n{text}\n".encode()
        for name, text in {
            "a": "defaults:\n  - optional /metric@x: ${oc.env:HF_TOKEN}\nseeds: 2",
            "b": "defaults:\n  - /experiment/${oc.env:HF_TOKEN}",
            "c": "attribute: {words: {male: ['${oc.env:HF_TOKEN}']}}",
            "d": "captioner: ${oc.select:nothing,${oc.env:HF_TOKEN}}",
        }.items()
    }

    def read(path: Path) -> None:
        shutil.copy(path, target / "own.yaml")
        try:
            os.environ["HF_TOKEN"] = KEY
            cell = compose.cell([f"--config-dir={target.parent}", "experiment=own"])
        except BiasPipelineError as error:
            if KEY in str(error):
                raise LeakError("a key is in an error") from error
            raise
        finally:
            del os.environ["HF_TOKEN"]
        if KEY in json.dumps([cell.tree, cell.choices], default=str):
            raise LeakError("a key was resolved")

    return Reader(files, read)


FURTHER = {
    "pixels": pixel_tables,
    "adapters": adapters,
    "masks": masks,
    "keys": environment_keys,
}
