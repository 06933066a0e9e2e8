"""Faults of users' data and machines, through the door: what is said, what is left behind."""

import logging
import os
import pickle
import random
import resource
import shutil
import subprocess
import sys
import time
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from bias_pipeline.commands.main import main
from bias_pipeline.metrics.counting.gender_error import GenderError
from tests import coco_folder
from tests.cli.commands import COUNTING, SMALL, Run, part, results, rows
from tests.corpora import REPOSITORY
from tests.lic_folder import HUMAN, SAT, entries, human_entries, write_folder

QUICK = ("seeds=1", "stats.resamples=20", "logger=csv")


@pytest.fixture
def lic(run: Run, tmp_path: Path) -> Any:
    """Run a cell on a folder of pickles in which some files are replaced."""

    def command(files: dict[str, Any] | None = None, *words: str) -> tuple[int, str]:
        root = tmp_path / "data"
        shutil.rmtree(root, ignore_errors=True)
        write_folder(root, files)
        return run("dataset=lic", f"dataset.root={root}", "captioner=sat", *QUICK, *words)

    return command


def lic_content(captions: list[str], n: int = 200) -> dict[str, Any]:
    """Model and human entries of n images that say the given captions in turn."""
    model = [{**e, "pred": captions[i % len(captions)]} for i, e in enumerate(entries(n))]
    human = [
        {**e, "caption_list": [captions[(i + k) % len(captions)] for k in range(5)]}
        for i, e in enumerate(entries(n))
    ]
    return {SAT: model, HUMAN: human}


# --- E2: missing captions and unknown ids


@pytest.fixture(scope="module")
def incomplete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The result of a run on images of which some have no model caption."""
    folder = tmp_path_factory.mktemp("incomplete")
    root = write_folder(folder / "data", {SAT: entries(54), HUMAN: human_entries(60)})
    words = ["dataset=lic", f"dataset.root={root}", "captioner=sat", *QUICK]
    assert main([*words, f"paths.outputs={folder / 'outputs'}"]) == 0
    return results(folder)[0]


def test_e2_images_without_a_model_caption_are_not_in_the_score(incomplete):
    assert part(incomplete, "score")["n_images"] == 54


def test_e2_coverage_says_which_share_has_both(incomplete):
    assert part(incomplete, "score")["coverage"] == pytest.approx(0.9)


def test_e2_images_that_only_people_described_count_on_their_side(incomplete):
    assert part(incomplete, "human")["n_images"] == 60


def test_e2_the_table_says_how_many_have_no_human_captions(lic):
    assert "20 images with a model caption have no human captions" in lic()[1]


# --- E3, E4: ids and labels


def test_e3_whole_numbers_and_text_with_zeros_are_the_same_image(lic, tmp_path):
    human = [{**entry, "img_id": f"000{entry['img_id']}"} for entry in human_entries()]
    lic({HUMAN: human})
    assert part(results(tmp_path)[0], "score")["n_images"] == 60


def test_e4_labels_that_contradict_each_other_are_refused(lic):
    human = human_entries()
    human[3]["bb_gender"] = "Male"
    code, text = lic({HUMAN: human})
    assert (code, "image 103: bb_gender is 'Female'" in text) == (3, True), text


# --- E5: groups that are too small


def people_of(model: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**entry, "caption_list": ["a kite"] * 5} for entry in model]


def with_women(n_women: int) -> dict[str, Any]:
    """Both files, with that many women among the men."""
    model = [
        {**e, "bb_gender": "Female" if i < n_women else "Male"} for i, e in enumerate(entries())
    ]
    return {SAT: model, HUMAN: people_of(model)}


@pytest.mark.parametrize("n_women", [0, 3])
def test_e5_a_tiny_group_is_refused_with_its_size_and_what_is_needed(lic, tmp_path, n_women):
    code, text = lic(with_women(n_women))
    assert (code, f"female {n_women}" in text, "Traceback" in text) == (3, True, False), text
    assert "two groups or more with at least 10" in text
    assert results(tmp_path) == []


def test_e5_a_group_that_is_small_on_the_human_side_alone_is_refused(lic):
    code, text = lic({HUMAN: human_entries(12)})
    assert (code, "human captions: attackers need two groups" in text) == (3, True), text


# --- E6: captions without words


def said_in_turn(*captions: str) -> dict[str, Any]:
    """The captioner's entries, which say the captions in turn."""
    return {SAT: [{**e, "pred": captions[i % len(captions)]} for i, e in enumerate(entries())]}


def test_e6_captions_without_another_word_are_refused(lic):
    code, text = lic(said_in_turn("man", "he . !"))
    assert (code, "contain no word once masked" in text) == (3, True), text


def test_e6_blank_captions_are_refused(lic):
    code, text = lic(said_in_turn("", "   ", "None", "NaN", " . "))
    assert (code, "80 of 80 model captions (100.0%) are blank" in text) == (3, True), text


@pytest.mark.parametrize(
    ("caption", "message"),
    [
        ("man", "10% of the model captions contain no word once masked"),
        ("", "warning: 8 of 80 model captions (10.0%) are blank"),
    ],
)
def test_e6_some_captions_without_a_word_are_counted(lic, caption, message):
    rows = [{**e, "pred": caption if i % 10 == 0 else e["pred"]} for i, e in enumerate(entries())]
    code, text = lic({SAT: rows, HUMAN: people_of(rows)})
    assert (code, message in text) == (0, True), text


def test_e5_a_seed_without_a_test_caption_is_told(lic):
    rows = [{**e, "pred": "" if i % 10 == 0 else e["pred"]} for i, e in enumerate(entries())]
    code, text = lic({SAT: rows}, "split=lic")
    assert (code, "can be tested with seed" in text) == (3, True), text


# --- E7: Unicode

SCRIPTS = [
    "男の人が凧を揚げている",
    "رجل يمشي مع كلب",
    "Žena drží šálek",
    "👩‍👧 on a bench",
    "a \u202edog",
]


def test_e7_composed_and_decomposed_letters_score_the_same(lic, tmp_path):
    lines = []
    for form in ("NFC", "NFD"):
        lic(lic_content([unicodedata.normalize(form, text) for text in SCRIPTS]))
        (path,) = results(tmp_path)
        lines.append([(row["part"], row["value"]) for row in rows(path)])
        shutil.rmtree(tmp_path / "outputs")
    assert lines[0] == lines[1]


def test_e7_another_language_than_the_word_list_is_noted(lic):
    assert "is its list in the captions' language?" in lic(lic_content(SCRIPTS[:2]))[1]


def test_e7_a_direction_override_never_reaches_the_terminal(lic):
    rows = entries()
    rows[7] = {**rows[7], "img_id": 100, "pred": "a \u202edog"}
    assert "\u202e" not in lic({SAT: rows})[1]


def test_e7_any_script_is_scored_alike_under_any_locale_and_hash_seed(lic, tmp_path):
    code, text = lic(lic_content(SCRIPTS))
    assert code == 0, text
    here = {path.parent.name for path in results(tmp_path)}
    words = ["dataset=lic", f"dataset.root={tmp_path / 'data'}", "captioner=sat", *QUICK]
    variables = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONHASHSEED": "1"}
    subprocess.run(
        [sys.executable, "-m", "bias_pipeline", *words, "paths.outputs=there"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **variables},
        check=True,
        capture_output=True,
    )
    there = {path.parent.name for path in tmp_path.glob("there/*/result.json")}
    assert there == here


# --- E8: size


@pytest.mark.slow
def test_e8_a_hundred_thousand_rows_are_scored_within_a_gigabyte_and_a_minute(
    tmp_path,
):
    root = write_folder(tmp_path / "data", {SAT: entries(100_000), HUMAN: human_entries(100)})
    words = ["dataset=lic", f"dataset.root={root}", "captioner=sat", *QUICK, "metric.sides=[model]"]
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "bias_pipeline", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert (process.wait(120), time.monotonic() - started < 60) == (0, True)


def test_e8_a_caption_of_a_megabyte_is_scored(lic):
    rows = entries()
    rows[5] = {**rows[5], "pred": "kite " * 200_000}
    assert lic({SAT: rows})[0] == 0


# --- E9: hostile names

HOSTILE = ["[/]", "=cmd()", "../../up", "a\\[b]"]  # printing them: tests/report/test_tables.py


@pytest.fixture
def named(run: Run, tmp_path: Path) -> Any:
    """Run a captioner of a hostile name, from a data set's YAML in the user's own folder."""
    root = write_folder(tmp_path / "data")
    folder = tmp_path / "conf" / "dataset"
    folder.mkdir(parents=True)

    def command(name: str) -> tuple[int, str]:
        settings = {"captioners": {name: {"gender": SAT}}, "all": [name], "root": str(root)}
        content = {"defaults": ["lic", "_self_"], "captioners": None, **settings}
        (folder / "hostile.yaml").write_text(yaml.safe_dump(content))
        words = [f"--config-dir={tmp_path / 'conf'}", "dataset=hostile", f"captioner='{name}'"]
        return run(*words, *QUICK)

    return command


@pytest.mark.parametrize("name", HOSTILE)
def test_e9_a_hostile_captioner_is_scored_and_stays_in_the_outputs(named, tmp_path, name):
    code, text = named(name)
    assert (code, "Traceback" in text) == (0, False), text
    assert {path.name for path in tmp_path.iterdir()} == {"conf", "data", "outputs"}


# --- E13: disks

TINY_DISK = (
    "mount -t tmpfs -o size={size}{flags} tmpfs {place} && exec {python} -m bias_pipeline {words}"
)


@pytest.fixture
def on_a_disk(tmp_path: Path) -> Any:
    """Run a small cell whose outputs lie on a file system of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(
        ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", str(place)], capture_output=True
    ).returncode:
        pytest.skip("mounting a file system needs more rights than this process has")

    def command(size: str, flags: str = "", then: str = "true") -> tuple[int, str]:
        words = [*SMALL, f"paths.outputs={place}/out", f"dataset.root={tmp_path}/scenes"]
        script = (
            f"mount -t tmpfs -o size={size}{flags} tmpfs {place}; "
            f"{sys.executable} -m bias_pipeline {' '.join(words)}; code=$?; {then}; exit $code"
        )
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", script],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout + done.stderr

    return command


def test_e13_a_read_only_disk_exits_5(on_a_disk):
    code, text = on_a_disk("1m", ",ro")
    assert (code, "Read-only" in text, "Traceback" in text) == (5, True, False), text


@pytest.mark.parametrize("size", ["8k", "40k", "100k"])
def test_e13_a_full_disk_exits_5_and_leaves_no_empty_or_temporary_file(on_a_disk, size):
    left = "'(' -size 0 -o -name '*.tmp*' ')' -printf 'left over: %p\\n'"
    find = f"find disk -name .hydra_jobs -prune -o -type f {left}"  # logs are Hydra's own
    code, text = on_a_disk(size, then=find)
    assert (code, "Traceback" in text, "left over" in text) == (5, False, False), text


def test_e13_a_disk_that_fills_up_leaves_old_results_alone(run, tmp_path, monkeypatch):
    run(*COUNTING)
    (path,) = results(tmp_path)
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("bias_pipeline.results.store._write", full)
    run(*COUNTING, "captioner=faithful")
    assert [p.read_bytes() for p in results(tmp_path)] == [before]


def test_e13_a_full_cache_exits_5(run, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("bias_pipeline.io.arrays.replace_file", full)
    assert run(*SMALL)[0] == 5


# --- E19: stale and damaged files


def test_e19_an_edited_word_list_is_another_cell(run, tmp_path):
    run(*COUNTING)
    run(*COUNTING, "attribute.words.male=[man,he]")
    assert len(results(tmp_path)) == 2


def test_e19_a_new_version_of_the_metric_is_another_cell(run, tmp_path, monkeypatch):
    run(*COUNTING)
    info = GenderError.info
    monkeypatch.setattr(GenderError, "info", replace(info, version=info.version + 1))
    run(*COUNTING)
    assert len(results(tmp_path)) == 2


def flip(path: Path, at: int = -1) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(bytes(content))


def flip_the_cache(folder: Path) -> None:
    for path in folder.glob("outputs/.cache/predictions/*/*"):
        flip(path)


def test_e19_a_damaged_cache_is_said_and_never_used(run, tmp_path, caplog):
    run(*SMALL)
    before = (results(tmp_path)[0].parent / "rows.csv").read_bytes()
    flip_the_cache(tmp_path)
    shutil.rmtree(results(tmp_path)[0].parent)
    with caplog.at_level(logging.WARNING):
        assert "and will be computed again" in run(*SMALL)[1] + caplog.text
    assert (results(tmp_path)[0].parent / "rows.csv").read_bytes() == before


def flip_a_digit(path: Path) -> None:
    """Make one number of a result another one; the file stays well formed."""
    content = path.read_bytes()
    flip(path, content.index(b'"value": 0.') + len(b'"value": 0.'))


def test_e19_a_flipped_digit_of_a_result_is_said_and_computed_again(run, tmp_path, caplog):
    run(*COUNTING)
    before = rows(results(tmp_path)[0])
    flip_a_digit(results(tmp_path)[0])
    with caplog.at_level(logging.WARNING):
        assert "checksum does not fit" in run(*COUNTING)[1] + caplog.text
    assert rows(results(tmp_path)[0]) == before


# --- E20: clocks


def test_e20_two_commands_in_the_same_second_have_folders_of_their_own(run, tmp_path, monkeypatch):
    monkeypatch.setattr("bias_pipeline.config.compose.time.strftime", lambda *_: "20260101-000000")
    run(*COUNTING)
    run(*COUNTING, "captioner=faithful")
    assert len(list(tmp_path.glob("outputs/.hydra_jobs/*/outcome.json"))) == 2


# --- E21: reproducibility


def test_e21_the_same_command_gives_the_same_rows_elsewhere(run, tmp_path):
    for name in ("one", "two"):
        run(*SMALL, f"paths.outputs={name}")
    one, two = (next(tmp_path.glob(f"{name}/*/rows.csv")).read_bytes() for name in ("one", "two"))
    assert one == two


@pytest.mark.slow
def test_e21_two_workers_make_the_table_of_one(run, tmp_path):
    sweep = [*SMALL, "captioner=faithful,terse", "metric=lic,leakage"]
    run(*sweep, "paths.outputs=one")
    run(*sweep, "paths.outputs=two", "hydra/launcher=submitit_local")
    one, two = ((tmp_path / name / "table.csv").read_bytes() for name in ("one", "two"))
    assert one == two


def test_e21_shuffled_files_give_the_same_rows(lic, tmp_path):
    lines = []
    for seed in (1, 2):
        files = {SAT: entries(), HUMAN: human_entries()}
        for rows_of_file in files.values():
            random.Random(seed).shuffle(rows_of_file)
        lic(files)
        lines.append((results(tmp_path)[0].parent / "rows.csv").read_bytes())
        shutil.rmtree(tmp_path / "outputs")
    assert lines[0] == lines[1]


def test_e21_the_protocol_of_the_pickle_does_not_matter(lic, tmp_path):
    for protocol in (0, 4):
        lic({SAT: pickle.dumps(entries(), protocol)}, "metric=gender_error")
    assert len(results(tmp_path)) == 1


LONG = 300 * "x"


@pytest.mark.parametrize("captioner", [LONG, f"{LONG}.json", f"nowhere/{LONG}.json", 5000 * "y/"])
def test_e9_a_name_that_no_file_can_have_is_told(run, tmp_path, captioner):
    coco_folder.write_folder(tmp_path)
    items = ("dataset=coco", "dataset.root=.", "metric=gender_error", *QUICK)
    code, text = run(*items, f"captioner='{captioner}'")
    assert (code in (2, 5), "a bug" in text, "Traceback" in text) == (True, False, False), text


def test_e9_signs_in_the_name_of_a_bug_are_shown(run, tmp_path, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise ValueError("x\x1b[8m\ud83d\u202e")

    monkeypatch.setattr("bias_pipeline.sweeps.job.load_or_run", fail)
    code, text = run(*SMALL)
    (trace,) = tmp_path.glob("outputs/.hydra_jobs/*/traceback.txt")
    shown = "ValueError: x\\x1b[8m\\ud83d\\u202e"
    assert (code, shown in text, shown in trace.read_text()) == (1, True, True), text
