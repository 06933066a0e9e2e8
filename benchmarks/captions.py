"""Captions of photos of mixed sizes, beside a plain loop of transformers over the same photos.

Weights are random, so captions mean nothing, and hardly any ends before its longest length.

Usage: python -m benchmarks.captions [FOLDER]
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.cells import run
from benchmarks.record import REPOSITORY, beside, publish, table
from bias_pipeline.models.generation import usual_prompt
from tests.tiny_chat_models import write_qwen
from tests.tiny_models import write_blip, write_preprocessing

DATA = Path(os.environ.get("BIAS_PIPELINE_DATA", REPOSITORY.parent / "shared" / "data"))
N_PHOTOS, TOKENS = 256, 30
_RATE = re.compile(r"images in [\d.]+ s: ([\d.]+) images/s")


def write_larger_qwen(folder: Path) -> None:
    """Qwen2-VL of 7 million weights, whose inputs are as large as the photo."""
    import torch
    from transformers import Qwen2VLConfig, Qwen2VLForConditionalGeneration

    config = Qwen2VLConfig.from_pretrained(write_qwen(folder)).to_dict()
    config["text_config"] |= {
        "hidden_size": 256,
        "intermediate_size": 1024,
        "num_hidden_layers": 6,
        "layer_types": ["full_attention"] * 6,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "rope_parameters": {
            **config["text_config"]["rope_parameters"],
            "mrope_section": [8, 12, 12],
        },
    }
    config["vision_config"]["hidden_size"] = 256
    torch.manual_seed(0)  # weights of some seeds say nothing but signs, which are no captions
    Qwen2VLForConditionalGeneration(Qwen2VLConfig(**config)).save_pretrained(folder)


def write_small_blip(folder: Path) -> None:
    """BLIP of two small layers that sees squares of 32 pixels, whatever the photo's size."""
    write_blip(folder)
    write_preprocessing(folder, "BlipImageProcessor")


MODELS: Mapping[str, Callable[[Path], Any]] = {
    "Qwen2-VL of six small layers": write_larger_qwen,
    "BLIP of two small layers": write_small_blip,
}


def loop_rate(folder: Path, photos: list[Path], results: Path) -> None:
    """Photos per second of a loop over photos, and their captions, written to a file."""
    import torch
    import transformers
    from PIL import Image

    torch.set_num_threads(1)
    network = transformers.AutoModelForImageTextToText.from_pretrained(folder).eval()
    processor = transformers.AutoProcessor.from_pretrained(folder)
    processor.image_processor = transformers.AutoImageProcessor.from_pretrained(
        folder, backend="pil"
    )
    prompt = usual_prompt(network.config.model_type)
    captions = {}
    started = time.monotonic()
    for path in photos:
        photo = Image.open(path).convert("RGB")
        cut, inputs = 0, processor(images=photo, return_tensors="pt") if not prompt else None
        if inputs is None:
            content = [{"type": "image", "image": photo}, {"type": "text", "text": prompt}]
            inputs = processor.apply_chat_template(
                [{"role": "user", "content": content}],
                add_generation_prompt=True,
                tokenize=True,
                return_dict=True,
                return_tensors="pt",
            )
            cut = inputs["input_ids"].shape[1]
        with torch.inference_mode():
            written = network.generate(**inputs, max_new_tokens=TOKENS, do_sample=False)
        text = processor.tokenizer.decode(written[0][cut:], skip_special_tokens=True)
        captions[path.stem.lstrip("0")] = " ".join(text.split())
    rate = len(photos) / (time.monotonic() - started)
    results.write_text(json.dumps({"rate": rate, "captions": captions}))


def command_rate(folder: Path) -> tuple[float, dict[str, str]]:
    """Photos per second of the command, without its start, and its captions."""
    out = str(folder / "out")
    words = ["--model", str(folder / "model"), "--out", out, "--threads", "1"]
    run(["caption", str(folder / "photos"), *words, "--max-new-tokens", str(TOKENS)], folder)
    match = _RATE.search((folder / "bench.log").read_text(encoding="utf-8"))
    assert match is not None
    run(["caption", "--gather", out], folder)
    rows = json.loads((folder / "out" / "captions.json").read_text(encoding="utf-8"))
    return float(match[1]), {str(row["image_id"]): row["caption"] for row in rows}


def elsewhere(target: Callable[..., None], *given: object) -> None:
    """Run a function in a separate process."""
    process = multiprocessing.get_context("spawn").Process(target=target, args=given)
    process.start()
    process.join()
    assert process.exitcode == 0


def measure(write: Callable[[Path], Any], photos: list[Path]) -> tuple[float, float, int]:
    """Photos per second of the loop and of the command, and how many captions are the same."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for inner in ("photos", "model"):
            (folder / inner).mkdir()
        for path in photos:
            (folder / "photos" / path.name).symlink_to(path)
        elsewhere(write, folder / "model")
        elsewhere(loop_rate, folder / "model", photos, folder / "loop.json")
        loop = json.loads((folder / "loop.json").read_text(encoding="utf-8"))
        rate, captions = command_rate(folder)
        same = sum(captions[image] == text for image, text in loop["captions"].items())
        return loop["rate"], rate, same


def main(folder: str = str(DATA / "photos" / "images")) -> None:
    photos = sorted(Path(folder).resolve().glob("*.jpg"))[:N_PHOTOS]
    if not photos:
        print(f"no photos in {folder}: not measured")
        return
    lines, peers = [], []
    for name, write in MODELS.items():
        loop, command, same = measure(write, photos)
        ratio = f"{command / loop:.1f}"
        lines.append([name, f"{loop:.1f}", f"{command:.1f}", ratio, f"{same} of {len(photos)}"])
        rates = f"{command:.1f} images/s", "a loop of transformers", f"{loop:.1f} images/s"
        peers.append(beside(f"captions by {name}", *rates, command / loop))
        print(name, lines[-1], file=sys.stderr, flush=True)
    header = [
        "model",
        "plain loop (images/s)",
        "`caption` (images/s)",
        "times the loop",
        "same text",
    ]
    body = table(header, lines) + (
        f"\n{len(photos)} photos of COCO of many sizes (shorter side 160 pixels), {TOKENS} tokens "
        f"at most, one thread, batches of 32, float32, at a load of {os.getloadavg()[1]:.1f} on "
        f"{os.cpu_count()} cores. Starting is not included. Weights are random.\n"
    )
    publish("Captions", "python -m benchmarks.captions", body, peers=peers[:1])


if __name__ == "__main__":
    main(*sys.argv[1:])
