"""``caption``: generated captions, ready for a metric.

What it shares with other commands of photos is in ``test_photo_commands.py``.
"""

import contextlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from bias_pipeline.commands.main import main
from bias_pipeline.models.generation import Captioner
from tests.photo_folder import write_photos

N_PHOTOS = 20


@pytest.fixture(scope="module")
def photos(tmp_path_factory) -> Path:
    return write_photos(tmp_path_factory.mktemp("photos"), N_PHOTOS)


@pytest.fixture(scope="module", params=["blip", "pair"])
def model(request) -> Path:
    """Either kind of captioner."""
    return request.getfixturevalue(request.param)


def words_of(photos: Path, model: Path) -> tuple[str, ...]:
    options = ("--out", "out", "--max-new-tokens", "12", "--threads", "1")
    return ("caption", str(photos), "--model", str(model), *options)


@pytest.fixture
def caption(ends, photos, model) -> Callable[..., str]:
    """Captions the photos into ``out``; returns what was printed."""
    return lambda *words, code=0: ends(code, *words_of(photos, model), *words)


@pytest.fixture
def gather(ok) -> Callable[..., list[dict[str, Any]]]:
    """The rows of the gathered file."""

    def command(*words: str) -> list[dict[str, Any]]:
        ok("caption", "--gather", "out", *words)
        return json.loads(Path("out", "captions.json").read_text())

    return command


@pytest.fixture(scope="module")
def captions_of_one_task(photos, model, tmp_path_factory) -> dict[Any, str]:
    """What one task writes, by image."""
    with contextlib.chdir(tmp_path_factory.mktemp("alone")):
        assert main(words_of(photos, model)) == 0
        assert main(["caption", "--gather", "out"]) == 0
        rows = json.loads(Path("out", "captions.json").read_text())
    return {row["image_id"]: row["caption"] for row in rows}


def of_transformers(model: Path, photo: Path, **settings: Any) -> str:
    """What the library writes about one photo."""
    import torch
    import transformers

    kind = json.loads((model / "config.json").read_text())["architectures"][0]
    network = getattr(transformers, kind).from_pretrained(model, **settings).eval()
    prepare = transformers.AutoImageProcessor.from_pretrained(model)
    tokens = transformers.AutoTokenizer.from_pretrained(model)
    with Image.open(photo) as picture:
        pixels = prepare(picture, return_tensors="pt")["pixel_values"].to(network.dtype)
    with torch.inference_mode():
        row = network.generate(pixel_values=pixels, max_new_tokens=12, do_sample=False)[0]
    return tokens.decode(row, skip_special_tokens=True)


def test_captions_are_what_transformers_writes_for_each_alone(captions_of_one_task, model, photos):
    """So padding, which captions of a batch that end early have, plays no part."""
    for number in range(1, 9):
        assert captions_of_one_task[number] == of_transformers(model, photos / f"{number}.png")


def test_captions_differ_and_end_at_different_places(captions_of_one_task):
    """Else what is tested here would say nothing."""
    assert len(set(captions_of_one_task.values())) > N_PHOTOS / 3
    assert len({len(text.split()) for text in captions_of_one_task.values()}) > 3


def test_half_precision_is_that_of_transformers_and_is_recorded(ok, gather, photos, blip):
    import torch

    ok(*words_of(photos, blip), "--limit", "4", "--dtype", "bfloat16", "--batch", "1")
    for row in gather("--no-strict"):
        photo = photos / f"{row['image_id']}.png"
        assert row["caption"] == of_transformers(blip, photo, dtype=torch.bfloat16)
        assert row["decoding"] == "greedy, at most 12 tokens, in bfloat16"


def test_a_prompt_is_no_part_of_the_captions_and_is_recorded(caption, gather, captions_of_one_task):
    caption("--prompt", "a red dog")
    prompted = {row["image_id"]: row["caption"] for row in gather()}
    assert prompted != captions_of_one_task
    assert not any(text.startswith("a red dog") for text in prompted.values())


def test_a_file_says_how_its_captions_were_decoded(caption, gather):
    caption("--beams", "2", "--prompt", "a dog", "--limit", "4")
    assert {row["decoding"] for row in gather("--no-strict")} == {
        "best of 2 beams, at most 12 tokens, prompt 'a dog'"
    }


def test_draws_are_the_same_from_any_number_of_tasks(caption, gather):
    drawn = ("--n", "2", "--temperature", "1", "--seed", "3")
    caption(*drawn)
    expected = gather()
    shutil.rmtree("out")
    for number in range(2):
        caption(*drawn, "--shard", f"{number}/2", "--batch", "7")
    assert gather() == expected
    assert [row["sample"] for row in expected] == [0, 1] * N_PHOTOS


@pytest.mark.parametrize("model", ["pair"], indirect=True)
def test_captions_go_into_a_metric(caption, ok):
    caption()
    ok("caption", "--gather", "out", "--to", "mine.json")
    labels = [f"{number},{'Male' if number % 2 else 'Female'}" for number in range(1, N_PHOTOS + 1)]
    Path("labels.csv").write_text("\n".join(["id,bb_gender", *labels]))
    words = ("dataset=coco", "dataset.attributes=labels.csv", "captioner=mine.json")
    assert "decoding: greedy, at most 12 tokens" in ok("metric=gender_ratio", *words, "logger=csv")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--max-new-tokens 100", "--max-new-tokens 62 or less"),
        ("--n 3 --beams 2", "add --temperature 1, or --beams 3"),
        ("--temperature 0.7 --beams 2", "leave out one of the two"),
    ],
)
def test_what_a_model_cannot_write_is_refused(caption, words, message):
    assert message in caption(*words.split(), code=2)


def test_an_embedding_is_no_captioner(ends, photos, clip):
    printed = ends(3, *words_of(photos, clip))
    assert "'clip' writes no texts about pictures" in printed
    assert "grit" in printed
    assert not Path("out").exists()


# --- captions that are none


@pytest.fixture
def writes(monkeypatch) -> Callable[[Callable[[int], str]], None]:
    """Have the captioner write something else, by a photo's place in its batch."""

    def command(caption_of: Callable[[int], str]) -> None:
        captions = lambda _, photos: [[caption_of(k)] for k in range(len(photos))]  # noqa: E731
        monkeypatch.setattr(Captioner, "describe", captions)

    return command


def test_a_captioner_that_writes_nothing_ends_with_3(ends, photos, blip, writes):
    writes(lambda _: " ")
    for words in (words_of(photos, blip), ("caption", "--gather", "out")):
        assert f"all {N_PHOTOS} captions are empty" in ends(3, *words)
    assert not Path("out", "captions.json").exists()


def test_a_few_empty_captions_are_counted(ok, photos, blip, writes):
    writes(lambda k: "a dog" if k % 15 else "")
    assert "2 have an empty text" in ok(*words_of(photos, blip), "--batch", str(N_PHOTOS))
    assert f"{N_PHOTOS} captions, 2 of them empty" in ok("caption", "--gather", "out")
