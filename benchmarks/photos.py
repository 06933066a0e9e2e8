"""Embedding and captioning of a folder of photos, by models of the published sizes.

Weights are random, so the vectors and captions mean nothing; the time they take does. A random
captioner hardly ever ends a caption, so each is as long as it may be: the dearest case.

Usage: python -m benchmarks.photos [FOLDER]
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.cells import Usage, run
from benchmarks.record import REPOSITORY, met, publish, table
from bias_pipeline.models.blocks import Block, BlockStore, blocks_of
from tests.tiny_models import write_blip, write_clip, write_preprocessing, write_words

DATA = Path(os.environ.get("BIAS_PIPELINE_DATA", REPOSITORY.parent / "shared" / "data"))
N_GATHERED, SIZE = 200_000, 512
TARGET_RATE = 600  # of a small network

_RATE = re.compile(r"(\d+) images in [\d.]+ s: ([\d.]+) images/s")


def write_vit_b_32(folder: Path) -> Path:
    """CLIP ViT-B/32: 151 million weights."""
    from transformers import CLIPConfig, CLIPModel

    CLIPModel(CLIPConfig()).save_pretrained(folder)
    write_preprocessing(folder, "CLIPImageProcessor", 224)
    return folder


def write_blip_base(folder: Path) -> Path:
    """BLIP with ViT-B/16 and 384 pixels: 247 million weights, and made-up words."""
    from transformers import BlipConfig, BlipForConditionalGeneration

    text = {"pad_token_id": 0, "bos_token_id": 4, "eos_token_id": 3, "sep_token_id": 3}
    config = BlipConfig(text_config=text, vision_config={"image_size": 384})
    BlipForConditionalGeneration(config).save_pretrained(folder)
    write_preprocessing(folder, "BlipImageProcessor", 384)
    write_words(folder)
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    words = tokenizer["model"]["vocab"]
    missing = range(len(words), config.text_config.vocab_size)
    words |= {f"word{number}": number for number in missing}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    return folder


@dataclass(frozen=True)
class Case:
    """A model and a command.

    Attributes:
        word: ``embed`` or ``caption``.
        write: makes the model.
        n_photos: how many of the folder's.
    """

    word: str
    write: Callable[[Path], Path]
    n_photos: int


CASES: Mapping[str, Case] = {
    "embed, CLIP of two small layers": Case("embed", write_clip, 2500),
    "embed, CLIP ViT-B/32": Case("embed", write_vit_b_32, 320),
    "caption, BLIP of two small layers": Case("caption", write_blip, 2500),
    "caption, BLIP base, 30 tokens": Case("caption", write_blip_base, 16),
}


def measure(case: Case, photos: Sequence[Path]) -> tuple[Usage, int, float, Usage]:
    """Time of the command, images, images per second after loading; then of a second run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "photos").mkdir()
        for path in photos[: case.n_photos]:
            (folder / "photos" / path.name).symlink_to(path)
        model = folder / "model"
        write_elsewhere(case.write, model)
        out = ["--out", str(folder / "out"), "--threads", "1"]
        words = [case.word, str(folder / "photos"), "--model", str(model), *out]
        usage = run(words, folder)
        match = _RATE.search((folder / "bench.log").read_text(encoding="utf-8"))
        assert match is not None
        return usage, int(match[1]), float(match[2]), run(words, folder)


def write_elsewhere(write: Callable[[Path], object], folder: Path) -> None:
    """Make a model's folder in another process, since its memory would count as the command's."""
    folder.mkdir()
    process = multiprocessing.get_context("spawn").Process(target=write, args=(folder,))
    process.start()
    process.join()


def measure_gathering() -> Usage:
    """Blocks of many vectors into one file."""
    with tempfile.TemporaryDirectory() as name:
        store = BlockStore(Path(name, "out"), {"job": "embed"}, "made up")
        ids = [str(number) for number in range(N_GATHERED)]
        store.plan(ids)
        generator = np.random.default_rng(0)
        for block in blocks_of(ids):
            vectors = generator.normal(size=(len(block), SIZE)).astype(np.float32)
            store.put(Block(block, [0] * len(block), list(vectors), [None] * len(block)))
        return run(["embed", "--gather", str(store.root)], Path(name))


def main(folder: str = str(DATA / "photos" / "images")) -> None:
    photos = sorted(Path(folder).resolve().glob("*.jpg"))
    if not photos:
        print(f"no photos in {folder}: not measured")
        return
    lines, rates = [], {}
    for name, case in CASES.items():
        usage, n_images, rate, again = measure(case, photos)
        cpu = f"{1000 * (usage.cpu - again.cpu) / n_images:.1f}"
        lines.append([name, str(n_images), f"{rate:.1f}", cpu, f"{usage.peak / 1e6:.0f}"])
        lines[-1].append(f"{again.wall:.1f}")
        rates[name] = rate
        print(name, lines[-1], file=sys.stderr, flush=True)
    header = ["what", "photos", "images/s", "CPU ms an image", "peak (MB)", "again (s)"]
    gathering = measure_gathering()
    body = table(header, lines) + (
        f"\nOne thread, batches of 32, at a load of {os.getloadavg()[1]:.1f} on "
        f"{os.cpu_count()} cores. CPU includes starting and loading the model; 'again' is the same "
        f"command when all is there. Weights are random.\n\n"
        f"`embed --gather` of {N_GATHERED:,} vectors of {SIZE} numbers: {gathering.wall:.0f} s "
        f"({gathering.cpu:.0f} s of CPU), {gathering.peak / 1e6:.0f} MB.\n"
    )
    name, rate = next(iter(rates.items()))
    bar = [
        name,
        "",
        f"{rate:.0f} images/s",
        "",
        f"{TARGET_RATE} images/s",
        met(rate >= TARGET_RATE),
    ]
    publish("Photos", "python -m benchmarks.photos", body, bars=[bar])


if __name__ == "__main__":
    main(*sys.argv[1:])
