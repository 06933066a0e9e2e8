"""What is fuzzed: each kind of file of strangers, sound ones of it, and what reads it."""

import json
import pickle
import shutil
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.data.coco import CocoDataset
from bias_pipeline.data.picture_files import detections_by_id
from bias_pipeline.io.digests import seal, sha256_of
from bias_pipeline.published.convert import convert
from bias_pipeline.published.pickles import load_pickle
from bias_pipeline.report.page import report_of_folder
from bias_pipeline.report.word_attribution import save_words
from bias_pipeline.results.store import ResultStore
from bias_pipeline.run import compose
from bias_pipeline.run.loggers import WandbLogger
from bias_pipeline.run.push import _with_curves
from tests import coco_folder, lic_folder
from tests.fuzz.further_readers import FURTHER
from tests.fuzz.reader import Read, Reader
from tests.variants import test_programs


def parquet(columns: Mapping[str, Any]) -> bytes:
    file = pa.BufferOutputStream()
    pq.write_table(pa.table({name: list(column) for name, column in columns.items()}), file)
    return bytes(file.getvalue())


def gender() -> Attribute:
    built: Attribute = compose.cell(["dataset=coco", "attribute=gender"]).build("attribute")
    return built


def coco(folder: Path, key: str) -> Read:
    """Loads the data set with one file of another place."""
    coco_folder.write_folder(folder)
    attribute = gender()
    usual = {
        "attributes": coco_folder.LABELS,
        "captions": coco_folder.CAPTIONS,
        "instances": coco_folder.INSTANCES,
        "captioner": coco_folder.MINE,
    }

    def read(path: Path) -> object:
        named = {name: str(folder / usual[name]) for name in usual} | {key: str(path)}
        captioner = named.pop("captioner")
        return CocoDataset(str(folder), **named, strict=False).load(captioner, attribute)

    return read


def captions(folder: Path) -> Reader:
    lines = coco_folder.results(20)
    ids, texts = [line["image_id"] for line in lines], [line["caption"] for line in lines]
    files = {
        "mine.json": json.dumps(lines).encode(),
        "mine.jsonl": "\n".join(map(json.dumps, lines)).encode(),
        "mine.csv": b"image_id,caption\n"
        + "".join(f'{i},"{t}"\n' for i, t in zip(ids, texts, strict=True)).encode(),
        "mine.parquet": parquet({"image_id": ids, "caption": texts}),
        "nested.parquet": parquet(
            {"image_id": [[i] for i in ids], "caption": [{"a": t} for t in texts]}
        ),
        "bytes.parquet": parquet({"image_id": map(str, ids), "caption": map(str.encode, texts)}),
    }
    return Reader(files, coco(folder, "captioner"))


def programs(folder: Path) -> Reader:
    """Captions as other programs write them."""
    sound = folder / "sound"
    test_programs.save(sound / "set", test_programs.table(image=test_programs.pictures()))
    test_programs.tsv(sound / "sheet.tsv")
    arrow, state = "data-00000-of-00002.arrow", "state.json"
    files = {
        "samples.jsonl": test_programs.SAMPLES.encode(),
        "batch.jsonl": test_programs.batch("{}").encode(),
        "conversations.json": test_programs.conversations().encode(),
        "sheet.tsv": (sound / "sheet.tsv").read_bytes(),
        **{name: (sound / "set" / name).read_bytes() for name in (arrow, state)},
    }
    if find_spec("openpyxl"):
        test_programs.xlsx(sound / "sheet.xlsx")
        files["sheet.xlsx"] = (sound / "sheet.xlsx").read_bytes()
    read_file = coco(folder, "captioner")

    def read(path: Path) -> object:
        if path.name not in (arrow, state):
            return read_file(path)
        copy = folder / "own"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(sound / "set", copy)
        shutil.copy(path, copy / path.name)
        return read_file(copy)

    return Reader(files, read)


def labels(folder: Path) -> Reader:
    text = coco_folder.labels(20)
    rows = [line.split(",") for line in text.splitlines()]
    columns = {
        name: list(column)
        for name, column in zip(rows[0], zip(*rows[1:], strict=True), strict=True)
    }
    annotated = "id,annotator,gender\n" + "".join(f"{100 + i},a{i % 3},Male\n" for i in range(20))
    files = {
        "labels.csv": text.encode(),
        "people.csv": annotated.encode(),
        "labels.parquet": parquet(columns),
    }
    return Reader(files, coco(folder, "attributes"))


def instances(folder: Path) -> Reader:
    files = {"instances.json": json.dumps(coco_folder.instances(20)).encode()}
    return Reader(files, coco(folder, "instances"))


def detections(_: Path) -> Reader:
    rows = [{"image_id": i, "label": "dog, hound", "score": i / 20} for i in range(20)]
    table = "".join(f'{row["image_id"]},"{row["label"]}",{row["score"]}\n' for row in rows)
    columns = {name: [row[name] for row in rows] for name in ("image_id", "label", "score")}
    files = {
        "seen.json": json.dumps(rows).encode(),
        "seen.jsonl": "\n".join(map(json.dumps, rows)).encode(),
        "seen.csv": f"image_id,label,confidence\n{table}".encode(),
        "seen.parquet": parquet(columns),
    }
    return Reader(files, detections_by_id)


def humans(folder: Path) -> Reader:
    files = {"captions.json": json.dumps(coco_folder.human(10)).encode()}
    return Reader(files, coco(folder, "captions"))


def pickle_files() -> dict[str, bytes]:
    entries = {"model": lic_folder.entries(6), "human": lic_folder.human_entries(6)}
    return {
        f"{name}{protocol}.pkl": pickle.dumps(entry, protocol)
        for name, entry in entries.items()
        for protocol in (0, 2, 4)
    }


def pickles(folder: Path) -> Reader:
    del folder
    return Reader(pickle_files(), load_pickle)


def converting(folder: Path) -> Reader:
    files = {
        "mine.json": json.dumps(coco_folder.results(10)).encode(),
        "captions.json": json.dumps(coco_folder.human(5)).encode(),
        "instances.json": json.dumps(coco_folder.instances(10)).encode(),
        "model4.pkl": pickle_files()["model4.pkl"],
    }
    return Reader(files, lambda path: convert(path, folder / "out"))


def configurations(folder: Path) -> Reader:
    """A file of ``experiment``, composed, checked and built."""
    target = folder / "own" / "experiment"
    target.mkdir(parents=True)
    files = {
        "a.yaml": b"# @package _global_\nseeds: 2\nmetric:\n  positions: 3\n  relation: ratio\n",
        "b.yaml": b"# @package _global_\ndefaults:\n  - override /encoder: lstm\n"
        b"attacker: {lr: 0.1}\n",
        "c.yaml": b"# @package _global_\nattribute:\n  words: {male: [a, b], female: &x [c]}\n"
        b"  also_masked: ['${seeds}', !!str 7]\n"
        b"logger: {csv: {path: a.csv}}\n",
    }

    def read(path: Path) -> None:
        shutil.copy(path, target / "own.yaml")
        cell = compose.cell([f"--config-dir={folder / 'own'}", "experiment=own"])
        for key in ("dataset", "attribute", "metric", "logger"):
            cell.build(key)

    return Reader(files, read)


def run_folders(folder: Path) -> Reader:
    """One file of a run in a folder of two, with checksums that fit."""
    from tests.report.test_word_attribution import make_words
    from tests.results.test_sealed_runs import result

    sound = folder / "sound"
    ResultStore(sound).save(result(captioner="sat"))
    ResultStore(sound).save(result("bad", captioner="oscar"))
    words = save_words(sound, "bad", make_words("a", "b"))
    paths = [*(sound / "bad").iterdir(), words, words.with_name("word_examples-bad.csv")]
    files = {path.name: path.read_bytes() for path in paths}

    def read(path: Path) -> None:
        outputs = folder / "outputs"
        shutil.rmtree(outputs, ignore_errors=True)
        shutil.copytree(sound, outputs)
        place = outputs if "word" in path.name else outputs / "bad"
        shutil.copy(path, place / path.name)
        _fit(outputs, path.name)
        report_of_folder(outputs)
        store = ResultStore(outputs)
        result = store.load_unchanged("bad")
        if result is not None:
            WandbLogger(str(folder)).content(_with_curves(store, result))
            store.predictions("bad", ["100", "101"])

    return Reader(files, read)


def _fit(outputs: Path, name: str) -> None:
    """Make the checksums fit what was changed, as whoever sends a folder can."""
    if "word" in name:
        paths = [outputs / "words-bad.csv", outputs / "word_examples-bad.csv"]
        sums = "".join(f"{sha256_of(path)}  {path.name}\n" for path in paths)
        (outputs / "words-bad.sha256").write_text(sums)
        return
    path = outputs / "bad" / "result.json"
    try:
        content = json.loads(path.read_bytes())
        content["manifest"].pop("checksum", None)
        if name != path.name:
            content["manifest"]["files"][name] = sha256_of(path.with_name(name))
        path.write_bytes(seal(content, within="manifest"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return


def model_folders(folder: Path) -> Reader:
    """One file of a CLIP's folder; its weights are loaded and its words cut."""
    import torch
    from transformers import CLIPModel

    from bias_pipeline.models.pretrained import Preprocessing, find_pretrained, load, tokenizer
    from tests.tiny_models import write_clip

    sound = write_clip(folder / "clip")
    files = {path.name: path.read_bytes() for path in sound.iterdir()}

    def read(path: Path) -> None:
        copy = folder / "own"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(sound, copy)
        shutil.copy(path, copy / path.name)
        model = find_pretrained(str(copy), ("clip",))
        Preprocessing(model)
        tokenizer(model)
        load(model, CLIPModel, torch.device("cpu"))

    return Reader(files, read)


def released_weights(folder: Path) -> Reader:
    """One file of a FIBER's folder."""
    import torch

    from bias_pipeline.retrieval.fiber.folder import FiberSize, find_fiber
    from bias_pipeline.retrieval.fiber.model import FiberModel
    from tests.fiber_files import WORDS, write_fiber

    size = FiberSize(8, (1, 1), (1, 2), 4, 64, 8, 2, len(WORDS), 48, n_pairs=1, joint=6)
    sound = write_fiber(folder / "fiber", size)
    files = {path.name: path.read_bytes() for path in sound.iterdir()}

    def read(path: Path) -> None:
        copy = folder / "own"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(sound, copy)
        shutil.copy(path, copy / path.name)
        FiberModel(find_fiber(str(copy)), torch.device("cpu"), 40)

    return Reader(files, read)


def open_clip_configs(folder: Path) -> Reader:
    """What a folder of open_clip's says of its model; open_clip itself need not be there."""
    from bias_pipeline.retrieval import open_clip_folder

    sound = {
        "model_cfg": {
            "embed_dim": 16,
            "quick_gelu": True,
            "vision_cfg": {"image_size": 32, "layers": 2, "width": 32, "patch_size": 8},
            "text_cfg": {"context_length": 16, "vocab_size": 99, "heads": 2, "layers": 2},
        },
        "preprocess_cfg": {
            "size": [32, 32],
            "mode": "RGB",
            "mean": [0.4, 0.5, 0.6],
            "std": [0.2, 0.25, 0.3],
            "interpolation": "bicubic",
            "resize_mode": "shortest",
        },
    }

    def read(path: Path) -> None:
        place = folder / "own"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        (place / "open_clip_model.safetensors").write_bytes(b"")
        shutil.copy(path, place / path.name)
        open_clip_folder.find_open_clip(str(place))
        open_clip_folder.model_config(place)
        open_clip_folder.tokenizing(place)
        open_clip_folder.quick_gelu(place, None)
        open_clip_folder.preprocessing(place)

    return Reader({open_clip_folder.CONFIG: json.dumps(sound).encode()}, read)


READERS: dict[str, Callable[[Path], Reader]] = {
    "captions": captions,
    "programs": programs,
    "labels": labels,
    "instances": instances,
    "detections": detections,
    "humans": humans,
    "pickles": pickles,
    "convert": converting,
    "configurations": configurations,
    "runs": run_folders,
    "models": model_folders,
    "weights": released_weights,
    "open_clip": open_clip_configs,
    **FURTHER,
}
