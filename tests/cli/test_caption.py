"""``caption``: generated captions, the same from any number of tasks, ready for a metric."""

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bias_pipeline.commands.main import main
from bias_pipeline.models.generation import Captioner
from tests.cli.commands import Run
from tests.cli.test_door import HEAVY
from tests.photo_folder import break_some, swap, write_equal_sizes, write_photos

N_PHOTOS = 20
ONE_THREAD = ("--threads", "1")
Caption = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_photos(tmp_path_factory.mktemp("photos"), N_PHOTOS)


@pytest.fixture(scope="module", params=["blip", "pair"])
def model(request: pytest.FixtureRequest) -> Path:
    """Either kind of captioner."""
    path: Path = request.getfixturevalue(request.param)
    return path


@pytest.fixture
def caption(run: Run, photos: Path, model: Path) -> Caption:
    """Captions the photos into ``out``."""

    def command(*words: str, folder: Path = photos) -> tuple[int, str]:
        return run("caption", str(folder), *options_of(model), *words)

    return command


def options_of(model: Path) -> tuple[str, ...]:
    return ("--model", str(model), "--out", "out", "--max-new-tokens", "12", *ONE_THREAD)


def gathered(run: Run, *words: str) -> dict[Any, str]:
    code, printed = run("caption", "--gather", "out", *words)
    assert code == 0, printed
    return captions_of(Path("out"))


def captions_of(folder: Path) -> dict[Any, str]:
    """Image to caption, of a gathered folder."""
    rows = json.loads((folder / "captions.json").read_text())
    by_image = {row["image_id"]: row["caption"] for row in rows}
    assert len(by_image) == len(rows)
    return by_image


@pytest.fixture(scope="module")
def alone(photos: Path, model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[Any, str]:
    """What one task writes."""
    folder = tmp_path_factory.mktemp("alone")
    with contextlib.chdir(folder):
        assert main(["caption", str(photos), *options_of(model)]) == 0
        assert main(["caption", "--gather", "out"]) == 0
    return captions_of(folder / "out")


def test_captions_are_what_transformers_writes_for_each_alone(alone, model, photos):
    """So padding, which captions of a batch that end early have, plays no part."""
    import torch
    import transformers
    from PIL import Image

    kind = json.loads((model / "config.json").read_text())["architectures"][0]
    network = getattr(transformers, kind).from_pretrained(model).eval()
    prepare = transformers.AutoImageProcessor.from_pretrained(model)
    tokens = transformers.AutoTokenizer.from_pretrained(model)
    for number in range(1, 9):
        pixels = prepare(Image.open(photos / f"{number}.png"), return_tensors="pt")
        with torch.inference_mode():
            written = network.generate(**pixels, max_new_tokens=12, do_sample=False)
        assert alone[number] == tokens.decode(written[0], skip_special_tokens=True)


def test_captions_differ_and_end_at_different_places(alone):
    """Else what is tested here would say nothing."""
    assert len(set(alone.values())) > N_PHOTOS / 3
    assert len({len(text.split()) for text in alone.values()}) > 3


def test_ids_are_numbers_as_in_coco(alone):
    assert list(alone) == list(range(1, N_PHOTOS + 1))


def test_many_tasks_write_what_one_writes(caption, run, alone):
    for number in range(3):
        code, output = caption("--shard", f"{number}/3")
        assert code == 0, output
    assert gathered(run) == alone


@pytest.mark.parametrize("batch", ["1", "13"])
def test_the_batch_changes_nothing(batch, caption, run, alone):
    caption("--batch", batch)
    assert gathered(run) == alone


def test_a_broken_photo_changes_no_other(caption, run, alone, photos):
    folder = Path(shutil.copytree(photos, "broken"))
    break_some(folder)
    caption(folder=folder)
    assert gathered(run, "--no-strict") == alone


def test_photos_that_change_places_are_described_again(caption, run):
    """Though each name stands for as many bytes as before."""
    folder = write_equal_sizes(Path("two"))
    caption(folder=folder)
    before = list(gathered(run).values())
    swap(folder)
    caption(folder=folder)
    assert list(gathered(run).values()) == before[::-1] != before


def test_a_second_run_does_nothing(caption):
    caption()
    assert "blocks existed already" in caption()[1]


def test_beams_are_another_run(caption, run):
    caption("--shard", "0/2")
    caption("--shard", "1/2", "--beams", "2")
    code, printed = run("caption", "--gather", "out")
    assert (code, "beams=1" in printed, "beams=2" in printed) == (3, True, True)


def test_captions_longer_than_the_model_writes_are_refused(caption):
    code, printed = caption("--max-new-tokens", "100")
    assert (code, "--max-new-tokens 62 or less" in printed) == (2, True)


def test_a_prompt_is_no_part_of_the_captions(caption, run, alone):
    caption("--prompt", "a red dog")
    prompted = gathered(run)
    assert prompted != alone
    assert not any(text.startswith("a red dog") for text in prompted.values())


def test_a_file_says_how_its_captions_were_decoded(caption, run):
    caption("--beams", "2", "--prompt", "a dog")
    run("caption", "--gather", "out")
    decodings = {row["decoding"] for row in json.loads(Path("out", "captions.json").read_text())}
    assert decodings == {"best of 2 beams, at most 12 tokens, prompt 'a dog'"}


def samples(run: Run) -> list[tuple[Any, int, str]]:
    """Image, number and caption of each row of the gathered file."""
    assert run("caption", "--gather", "out")[0] == 0
    rows = json.loads(Path("out", "captions.json").read_text())
    return [(row["image_id"], row["sample"], row["caption"]) for row in rows]


def test_draws_are_the_same_from_any_number_of_tasks(caption, run):
    drawn = ("--n", "2", "--temperature", "1", "--seed", "3")
    caption(*drawn)
    expected = samples(run)
    shutil.rmtree("out")
    for number in range(2):
        caption(*drawn, "--shard", f"{number}/2", "--batch", "7")
    assert samples(run) == expected
    assert [number for _, number, _ in expected] == [0, 1] * N_PHOTOS


def test_more_captions_than_beams_need_draws(caption):
    code, printed = caption("--n", "3", "--beams", "2")
    assert (code, "add --temperature 1, or --beams 3" in printed) == (2, True)


def test_draws_and_beams_exclude_each_other(caption):
    code, printed = caption("--temperature", "0.7", "--beams", "2")
    assert (code, "leave out one of the two" in printed) == (2, True)


@pytest.mark.parametrize("model", ["pair"], indirect=True)
def test_captions_go_into_a_metric(caption, run):
    caption()
    run("caption", "--gather", "out", "--to", "mine.json")
    labels = [f"{number},{'Male' if number % 2 else 'Female'}" for number in range(1, N_PHOTOS + 1)]
    Path("labels.csv").write_text("\n".join(["id,bb_gender", *labels]))
    words = ("dataset=coco", "dataset.attributes=labels.csv", "captioner=mine.json")
    code, printed = run("metric=gender_ratio", *words, "logger=csv")
    assert (code, "decoding: greedy, at most 12 tokens" in printed) == (0, True), printed


def test_an_embedding_is_no_captioner(run, photos, clip):
    code, printed = run("caption", str(photos), "--model", str(clip), "--out", "out")
    assert (code, "'clip' writes no texts about pictures" in printed) == (3, True)
    assert "grit" in printed
    assert not Path("out").exists()


def test_help_imports_nothing_heavy():
    code = (
        "import sys, contextlib; from bias_pipeline.commands.main import main\n"
        "for word in ('embed', 'caption'):\n"
        "    with contextlib.suppress(SystemExit): main([word, '--help'])\n"
        f"print([m for m in {(*HEAVY, 'PIL', 'pyarrow')} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_half_precision_is_that_of_transformers_and_is_recorded(run, photos, blip, tmp_path):
    import torch
    import transformers
    from PIL import Image

    words = ("--limit", "4", "--dtype", "bfloat16", "--batch", "1")
    assert run("caption", str(photos), *options_of(blip), *words)[0] == 0
    written = gathered(run, "--no-strict")
    network = transformers.AutoModelForImageTextToText.from_pretrained(
        blip, dtype=torch.bfloat16
    ).eval()
    prepare = transformers.AutoImageProcessor.from_pretrained(blip)
    tokens = transformers.AutoTokenizer.from_pretrained(blip)
    for number, caption in written.items():
        with Image.open(photos / f"{number}.png") as photo:
            pixels = prepare(photo, return_tensors="pt")["pixel_values"].bfloat16()
        with torch.inference_mode():
            row = network.generate(pixel_values=pixels, max_new_tokens=12, do_sample=False)[0]
        assert caption == tokens.decode(row, skip_special_tokens=True)
    rows = json.loads(Path("out", "captions.json").read_text())
    assert rows[0]["decoding"] == "greedy, at most 12 tokens, in bfloat16"


def test_precisions_are_never_mixed(run, photos, blip):
    for dtype in ("float32", "bfloat16"):
        run("caption", str(photos), *options_of(blip), "--limit", "2", "--dtype", dtype)
    code, printed = run("caption", "--gather", "out", "--no-strict")
    assert (code, "dtype='bfloat16'" in printed) == (3, True)


# --- captions that are none


def test_a_model_without_its_tokenizer_ends_with_5(run, photos, blip, tmp_path):
    shutil.copytree(blip, tmp_path / "bare")
    for path in (tmp_path / "bare").glob("token*"):
        path.unlink()
    words = ("--model", str(tmp_path / "bare"), "--out", "out", *ONE_THREAD)
    code, printed = run("caption", str(photos), *words)
    assert (code, f"{tmp_path}/bare: the tokenizer's vocabulary is absent" in printed) == (5, True)
    assert not (tmp_path / "out").exists()


def _written(monkeypatch: pytest.MonkeyPatch, caption_of: Callable[[int], str]) -> None:
    """Have the captioner write something else."""
    monkeypatch.setattr(
        Captioner, "describe", lambda _, photos: [[caption_of(k)] for k in range(len(photos))]
    )


def test_a_captioner_that_writes_nothing_ends_with_3(run, photos, blip, monkeypatch):
    _written(monkeypatch, lambda _: " ")
    words = ("--model", str(blip), "--out", "out", *ONE_THREAD)
    code, printed = run("caption", str(photos), *words)
    assert (code, f"all {N_PHOTOS} captions are empty" in printed) == (3, True)
    code, printed = run("caption", "--gather", "out")
    assert (code, f"all {N_PHOTOS} captions are empty" in printed) == (3, True)
    assert not Path("out", "captions.json").exists()


def test_a_few_empty_captions_are_counted(run, photos, blip, monkeypatch):
    _written(monkeypatch, lambda k: "a dog" if k % 15 else "")
    words = ("--model", str(blip), "--out", "out", "--batch", str(N_PHOTOS), *ONE_THREAD)
    code, printed = run("caption", str(photos), *words)
    assert (code, "2 have an empty text" in printed) == (0, True), printed
    assert f"{N_PHOTOS} captions, 2 of them empty" in run("caption", "--gather", "out")[1]
