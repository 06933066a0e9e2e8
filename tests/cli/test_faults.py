"""Faults of users' data and machines, through the door: what is said, what is left behind."""

import json
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
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from bias_pipeline.metrics.counting.gender_error import GenderError
from bias_pipeline.run import corpora
from tests import coco_folder
from tests.cli.commands import COUNTING, SMALL, part, results, rows
from tests.corpora import REPOSITORY
from tests.lic_folder import HUMAN, SAT, entries, human_entries, write_folder

QUICK = ("seeds=1", "stats.resamples=20", "logger=csv")
ONE = "metric.positions=1"


@pytest.fixture
def lic(ends, tmp_path) -> Callable[..., str]:
    """Run a cell on a folder of pickles in which some files are replaced."""

    def command(files: dict[str, Any], *words: str, code: int = 0) -> str:
        root = tmp_path / "data"
        shutil.rmtree(root, ignore_errors=True)
        write_folder(root, files)
        data = ("dataset=lic", f"dataset.root={root}", "captioner=sat")
        return ends(code, *data, *QUICK, *words)

    return command


def said_in_turn(*captions: str) -> dict[str, Any]:
    """The captioner's entries, which say the captions in turn."""
    return {SAT: [{**e, "pred": captions[i % len(captions)]} for i, e in enumerate(entries())]}


def one_in_ten(caption: str) -> list[dict[str, Any]]:
    return [{**e, "pred": caption if i % 10 == 0 else e["pred"]} for i, e in enumerate(entries())]


def people_of(model: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**entry, "caption_list": ["a kite"] * 5} for entry in model]


# --- missing captions and unknown ids


def test_coverage_says_which_share_has_both(lic, tmp_path):
    lic({SAT: entries(54), HUMAN: human_entries(60)})
    (path,) = results(tmp_path)
    assert part(path, "score")["n_images"] == 54  # without images that have no model caption
    assert part(path, "score")["coverage"] == pytest.approx(0.9)
    assert part(path, "human")["n_images"] == 60


def test_the_table_says_how_many_have_no_human_captions(lic):
    assert "20 images with a model caption have no human captions" in lic({}, ONE)


# --- ids, labels, groups that are too small, captions without words


def test_whole_numbers_and_text_with_zeros_are_the_same_image(lic, tmp_path):
    lic({HUMAN: [{**entry, "img_id": f"000{entry['img_id']}"} for entry in human_entries()]}, ONE)
    assert part(results(tmp_path)[0], "score")["n_images"] == 60


def test_labels_that_contradict_each_other_are_refused(lic):
    human = human_entries()
    human[3]["bb_gender"] = "Male"
    assert "image 103: bb_gender is 'Female'" in lic({HUMAN: human}, code=3)


@pytest.mark.parametrize("n_women", [0, 3])
def test_a_tiny_group_is_refused_with_its_size_and_what_is_needed(lic, tmp_path, n_women):
    model = [
        {**e, "bb_gender": "Female" if i < n_women else "Male"} for i, e in enumerate(entries())
    ]
    text = lic({SAT: model, HUMAN: people_of(model)}, code=3)
    assert f"female {n_women}" in text
    assert "two groups or more with at least 10" in text
    assert results(tmp_path) == []


@pytest.mark.parametrize(
    ("files", "words", "message"),
    [
        ({HUMAN: human_entries(12)}, (), "human captions: attackers need two groups"),
        ({SAT: one_in_ten("")}, ("split=lic",), "can be tested with seed"),
        (said_in_turn("man", "he . !"), (), "contain no word once masked"),
        (
            said_in_turn("", "   ", "None", "NaN", " . "),
            (),
            "80 of 80 model captions (100.0%) are blank",
        ),
    ],
    ids=["a group small on one side", "a seed", "no other word", "blanks"],
)
def test_captions_that_permit_no_attack_are_refused(lic, files, words, message):
    assert message in lic(files, *words, code=3)


# --- Unicode

SCRIPTS = [
    "男の人が凧を揚げている",
    "رجل يمشي مع كلب",
    "Žena drží šálek",
    "👩‍👧 on a bench",
    "a \u202edog",
]


def of_scripts(*captions: str) -> dict[str, Any]:
    """Model and human entries of 200 images that say the captions in turn."""
    model = [{**e, "pred": captions[i % len(captions)]} for i, e in enumerate(entries(200))]
    human = [
        {**e, "caption_list": [captions[(i + k) % len(captions)] for k in range(5)]}
        for i, e in enumerate(entries(200))
    ]
    return {SAT: model, HUMAN: human}


def test_composed_and_decomposed_letters_score_the_same(lic, tmp_path):
    lines = []
    for form in ("NFC", "NFD"):
        lic(of_scripts(*(unicodedata.normalize(form, text) for text in SCRIPTS)), ONE)
        (path,) = results(tmp_path)
        lines.append([(row["part"], row["value"]) for row in rows(path)])
        shutil.rmtree(tmp_path / "outputs")
    assert lines[0] == lines[1]


def test_another_language_than_the_word_list_is_noted(lic):
    assert "gender cannot be tested: the word lists are English, and 0% of" in lic(
        of_scripts(*SCRIPTS[:2]), ONE
    )


def test_a_direction_override_never_reaches_the_terminal(lic):
    model = entries()
    model[7] = {**model[7], "img_id": 100, "pred": "a \u202edog"}
    assert "\u202e" not in lic({SAT: model}, code=3)


def test_any_script_is_scored_alike_under_any_locale_and_hash_seed(lic, tmp_path):
    lic(of_scripts(*SCRIPTS), ONE)
    here = {path.parent.name for path in results(tmp_path)}
    words = ["dataset=lic", f"dataset.root={tmp_path / 'data'}", "captioner=sat", *QUICK, ONE]
    variables = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONHASHSEED": "1"}
    subprocess.run(
        [sys.executable, "-m", "bias_pipeline", *words, "paths.outputs=there"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **variables},
        check=True,
        capture_output=True,
    )
    assert {path.parent.name for path in tmp_path.glob("there/*/result.json")} == here


# --- size


@pytest.mark.slow
def test_a_hundred_thousand_rows_are_scored_within_a_gigabyte_and_a_minute(tmp_path):
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


def test_a_caption_of_a_megabyte_is_scored(lic):
    model = entries()
    model[5] = {**model[5], "pred": "kite " * 200_000}
    lic({SAT: model}, ONE)


# --- hostile names

HOSTILE = ["[/]", "=cmd()", "../../up", "a\\[b]"]  # printing them: tests/report/test_tables.py


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_captioner_is_scored_and_stays_in_the_outputs(ok, tmp_path, name):
    """Its name comes from a data set's YAML in the user's own folder."""
    root, folder = write_folder(tmp_path / "data"), tmp_path / "conf" / "dataset"
    settings = {"captioners": {name: {"gender": SAT}}, "all": [name], "root": str(root)}
    content = {"defaults": ["lic", "_self_"], "captioners": None, **settings}
    folder.mkdir(parents=True)
    (folder / "hostile.yaml").write_text(yaml.safe_dump(content))
    words = [f"--config-dir={tmp_path / 'conf'}", "dataset=hostile", f"captioner='{name}'"]
    ok(*words, *QUICK, ONE)
    assert {path.name for path in tmp_path.iterdir()} == {"conf", "data", "outputs"}


LONG = 300 * "x"


@pytest.mark.parametrize(
    "captioner", [LONG, f"{LONG}.json", f"nowhere/{LONG}.json", 5000 * "y/", 100_000 * "a"]
)
def test_a_name_that_no_file_can_have_is_told(run, tmp_path, captioner):
    coco_folder.write_folder(tmp_path)
    words = ("dataset=coco", "dataset.root=.", "metric=gender_error", *QUICK)
    code, text = run(*words, f"captioner='{captioner}'")
    assert (code in (2, 5), "a bug" in text, "Traceback" in text) == (True, False, False), text


def test_signs_in_the_name_of_a_bug_are_shown(ends, tmp_path, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise ValueError("x\x1b[8m\ud83d\u202e")

    monkeypatch.setattr("bias_pipeline.run.job.load_or_run", fail)
    text, shown = ends(1, *SMALL), "ValueError: x\\x1b[8m\\ud83d\\u202e"
    (trace,) = tmp_path.glob("outputs/.hydra_jobs/*/traceback.txt")
    assert (shown in text, shown in trace.read_text()) == (True, True), text


# --- disks

ON_DISKS = """\
import contextlib, io, json, subprocess, sys
from pathlib import Path
from bias_pipeline.commands.main import main
from bias_pipeline.run import compose

place, words, ends = Path(sys.argv[1]), sys.argv[2:], {}
for options in ("size=1m,ro", "size=8k", "size=40k", "size=100k"):
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], check=True)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = main([*words, f"paths.outputs={place}/out"])
    files = [path for path in place.rglob("*") if path.is_file()]
    files = [path for path in files if ".hydra_jobs" not in path.parts]  # logs are Hydra's own
    left = [str(path) for path in files if ".tmp" in path.name or not path.stat().st_size]
    ends[options] = [code, printed.getvalue(), left]
    subprocess.run(["umount", "-l", place], check=True)
print(json.dumps(ends))
"""


@pytest.fixture(scope="module")
def on_disks(tmp_path_factory) -> dict[str, Any]:
    """Code, text and files left over of a cell whose outputs lie on a small file system."""
    folder = tmp_path_factory.mktemp("disk")
    mounting = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", str(folder)]
    if subprocess.run(mounting, capture_output=True).returncode:
        pytest.skip("mounting a file system needs more rights than this process has")
    (folder / "place").mkdir()
    words = [str(folder / "place"), *SMALL, f"dataset.root={folder}/scenes"]
    done = subprocess.run(
        ["unshare", "--mount", sys.executable, "-c", ON_DISKS, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_a_read_only_disk_exits_5(on_disks):
    code, text, _ = on_disks["size=1m,ro"]
    assert (code, "Read-only" in text, "Traceback" in text) == (5, True, False), text


@pytest.mark.parametrize("size", ["8k", "40k", "100k"])
def test_a_full_disk_exits_5_and_leaves_no_empty_or_temporary_file(on_disks, size):
    code, text, left = on_disks[f"size={size}"]
    assert (code, "Traceback" in text, left) == (5, False, []), text


def fill_disk(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_disk_that_fills_up_leaves_old_results_alone(ok, ends, tmp_path, monkeypatch):
    ok(*COUNTING)
    (path,) = results(tmp_path)
    before = path.read_bytes()
    monkeypatch.setattr("bias_pipeline.results.store._write", fill_disk)
    assert "choose another" in ends(5, *COUNTING, "captioner=faithful")
    assert [p.read_bytes() for p in results(tmp_path)] == [before]


def test_a_reason_that_cells_share_is_printed_once(ends, monkeypatch):
    monkeypatch.setattr("bias_pipeline.results.store._write", fill_disk)
    printed = ends(4, *COUNTING, "metric=gender_error,gender_ratio")
    assert "error: cannot write" in printed  # without the labels, for it is that of all jobs
    assert printed.count("No space left on device") == 1


def test_a_full_cache_exits_5(ends, monkeypatch):
    monkeypatch.setattr("bias_pipeline.io.arrays.replace_file", fill_disk)
    ends(5, *SMALL)


# --- stale and damaged files


def test_an_edited_word_list_is_another_cell(ok, tmp_path):
    ok(*COUNTING)
    ok(*COUNTING, "attribute.words.male=[man,he]")
    assert len(results(tmp_path)) == 2


def test_a_new_version_of_the_metric_is_another_cell(ok, tmp_path, monkeypatch):
    ok(*COUNTING)
    info = GenderError.info
    monkeypatch.setattr(GenderError, "info", replace(info, version=info.version + 1))
    ok(*COUNTING)
    assert len(results(tmp_path)) == 2


def flip(path: Path, at: int = -1) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(bytes(content))


def test_a_damaged_cache_is_said_and_never_used(ok, tmp_path, caplog):
    ok(*SMALL, ONE)
    (path,) = results(tmp_path)
    before = path.with_name("rows.csv").read_bytes()
    for table in tmp_path.glob("outputs/.cache/predictions/*/*"):
        flip(table)
    shutil.rmtree(path.parent)
    corpora._corpora.clear()  # as in another process, which has no attackers in memory
    with caplog.at_level(logging.WARNING):
        assert "and will be computed again" in ok(*SMALL, ONE) + caplog.text
    assert path.with_name("rows.csv").read_bytes() == before


def test_a_flipped_digit_of_a_result_is_said_and_computed_again(ok, tmp_path, caplog):
    """The file stays well formed."""
    ok(*COUNTING)
    (path,) = results(tmp_path)
    before = rows(path)
    flip(path, path.read_bytes().index(b'"value": 0.') + len(b'"value": 0.'))
    with caplog.at_level(logging.WARNING):
        assert "checksum does not fit" in ok(*COUNTING) + caplog.text
    assert rows(path) == before


# --- clocks


def test_two_commands_in_the_same_second_have_folders_of_their_own(ok, tmp_path, monkeypatch):
    monkeypatch.setattr("bias_pipeline.run.compose.time.strftime", lambda *_: "20260101-000000")
    ok(*COUNTING)
    ok(*COUNTING, "captioner=faithful")
    assert len(list(tmp_path.glob("outputs/.hydra_jobs/*/outcome.json"))) == 2


# --- reproducibility


def test_the_same_command_gives_the_same_rows_elsewhere(ok, finished_run, tmp_path):
    ok(*SMALL)
    one, two = (path.with_name("rows.csv") for path in (finished_run.result, *results(tmp_path)))
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.slow
def test_two_workers_make_the_table_of_one(ok, tmp_path):
    sweep = [*SMALL, "captioner=faithful,terse", "metric=lic,leakage"]
    ok(*sweep, "paths.outputs=one")
    ok(*sweep, "paths.outputs=two", "hydra/launcher=submitit_local")
    one, two = ((tmp_path / name / "table.csv").read_bytes() for name in ("one", "two"))
    assert one == two


def test_shuffled_files_give_the_same_rows(lic, tmp_path):
    lines = []
    for seed in (1, 2):
        files = {SAT: entries(), HUMAN: human_entries()}
        for rows_of_file in files.values():
            random.Random(seed).shuffle(rows_of_file)
        lic(files, ONE)
        lines.append((results(tmp_path)[0].parent / "rows.csv").read_bytes())
        shutil.rmtree(tmp_path / "outputs")
    assert lines[0] == lines[1]


def test_the_protocol_of_the_pickle_does_not_matter(lic, tmp_path):
    for protocol in (0, 4):
        lic({SAT: pickle.dumps(entries(), protocol)}, "metric=gender_error")
    assert len(results(tmp_path)) == 1
