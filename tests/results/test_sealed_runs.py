"""What was written is read, or nothing is; reading changes nothing."""

import io
import json
import logging
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bias_pipeline.corpus.predictions import Predictions
from bias_pipeline.errors import BiasPipelineError, DataError
from bias_pipeline.io.arrays import ArrayCache
from bias_pipeline.io.digests import seal, sha256, unseal
from bias_pipeline.report.page import finished_results, report_of_folder, write_page
from bias_pipeline.results.rows import Result
from bias_pipeline.results.store import ResultStore
from bias_pipeline.stats.bootstrap import Draws
from tests.results.test_store import row

FLIPS = 300
IDS = [str(100 + k) for k in range(40)]
FILES = ("result.json", "draws.parquet", "predictions.parquet", "rows.csv", "curves.csv")


def result(run_id: str = "run", **changes: Any) -> Result:
    generator = np.random.default_rng(7)
    images = tuple(generator.permutation(len(IDS))[:20] for _ in range(2))
    predictions = Predictions(
        "model",
        (0, 12),
        images,
        truth=tuple(generator.integers(0, 2, 20) for _ in range(2)),
        probs=tuple(generator.dirichlet(np.ones(2), 20) for _ in range(2)),
        classes=("male", "female"),
    )
    draws = {"score": Draws(generator.random(2), generator.random((50, 2)))}
    rows = [row(run_id, **{"metric": "lic", "part": "score", "unit": "fraction", **changes})]
    manifest = {"corpus": {"digest": "d"}, "config": {}, "notes": ["a note"]}
    curves = [{"side": "model", "seed": 0, "epoch": k, "train_loss": 0.5} for k in range(3)]
    return Result(run_id, rows, manifest, [predictions], IDS, {"curves": curves}, draws)


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("whole")
    ResultStore(root).save(result())
    return root


@pytest.fixture
def copied_run(whole_run: Path, tmp_path: Path) -> Path:
    """The run, to be damaged."""
    return Path(shutil.copytree(whole_run, tmp_path / "copied"))


def everything(store: ResultStore) -> str:
    """All that is read back of the run."""
    np.set_printoptions(threshold=10**6)
    run = store.read("run")
    return repr((run, run and store.draws(run), store.predictions("run", IDS)))


def flip_byte(content: bytes, name: str) -> list[bytes]:
    """A content with one bit turned, many times."""
    generator = np.random.default_rng(len(name))
    copies = []
    for place, bit in zip(
        generator.integers(0, len(content), FLIPS), generator.integers(0, 8, FLIPS), strict=True
    ):
        buffer = bytearray(content)
        buffer[place] ^= 1 << bit
        copies.append(bytes(buffer))
    return copies


@pytest.mark.parametrize("name", FILES[:3])
def test_a_flipped_bit_is_never_read_as_another_number(copied_run, name):
    store, path = ResultStore(copied_run), copied_run / "run" / name
    wanted, others = everything(store), 0
    for content in flip_byte(path.read_bytes(), name):
        path.write_bytes(content)
        try:
            others += everything(store) != wanted
        except BiasPipelineError:
            continue
    assert others == 0


@pytest.mark.parametrize("name", FILES[1:])
def test_a_flipped_bit_of_any_other_file_asks_for_the_run_again(copied_run, name):
    path = copied_run / "run" / name
    for content in flip_byte(path.read_bytes(), name):
        path.write_bytes(content)
        assert ResultStore(copied_run).load_unchanged("run") is None


def test_a_flipped_bit_of_a_cache_is_computed_again(tmp_path):
    cache = ArrayCache(tmp_path)
    cache.put("abc", np.random.default_rng(0).random((20, 3)))
    path = tmp_path / "ab" / "abc"
    for content in flip_byte(path.read_bytes(), "abc"):
        path.write_bytes(content)
        assert cache.get("abc") is None


@pytest.mark.parametrize("name", FILES[1:])
def test_a_file_that_is_absent_asks_for_the_run_again(copied_run, name, caplog):
    (copied_run / "run" / name).unlink()
    assert ResultStore(copied_run).load_unchanged("run") is None
    assert f"{name} is damaged or absent" in caplog.text


def test_whole_files_are_not_asked_for_again_whatever_a_person_puts_beside_them(copied_run):
    (copied_run / "run" / "notes.txt").write_text("mine")
    assert ResultStore(copied_run).load_unchanged("run") is not None


def test_only_who_computes_a_cell_sets_a_damaged_one_aside(copied_run):
    (copied_run / "run" / "draws.parquet").write_bytes(b"PAR1")
    ResultStore(copied_run).save(result())
    assert ResultStore(copied_run).load_unchanged("run") is not None
    (aside,) = copied_run.glob(".run.damaged.*")
    assert (aside / "draws.parquet").read_bytes() == b"PAR1"


# --- run folders of others


def reseal(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """A result with something changed and a checksum that fits."""
    content = json.loads(path.read_text())
    del content["manifest"]["checksum"]
    change(content)
    path.write_bytes(seal(content, within="manifest"))


def folder_of_that_name(path: Path) -> None:
    path.unlink()
    path.mkdir()


def dangling_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def nothing_of_it(key: str, value: object) -> Callable[[Path], None]:
    def change(content: dict[str, Any]) -> None:
        content["manifest"][key] = value

    return lambda path: reseal(path, change)


def column(key: str, value: object) -> Callable[[Path], None]:
    return lambda path: reseal(path, lambda content: content["rows"][0].update({key: value}))


FOREIGN: dict[str, Callable[[Path], object]] = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "empty": lambda path: path.write_bytes(b""),
    "no text": lambda path: path.write_bytes(b"\xff\xfe\x00"),
    "a list": lambda path: path.write_text("[]"),
    "deep": lambda path: path.write_text("[" * 100_000),
    "deep manifest": lambda path: path.write_text('{"a":' * 3000 + "1" + "}" * 3000),
    "a folder": folder_of_that_name,
    "a dangling link": dangling_link,
    "another schema": lambda path: reseal(path, lambda content: content.update(schema=2)),
    "no schema": lambda path: reseal(path, lambda content: content.pop("schema")),
    "rows no list": lambda path: reseal(path, lambda content: content.update(rows={"a": 1})),
    "a row no object": lambda path: reseal(path, lambda content: content.update(rows=[7])),
    "a row without a column": lambda path: reseal(path, lambda c: c["rows"][0].pop("value")),
    "a row with one more": column("more", 1),
    "it has no rows, or rows of another run": column("run_id", "other"),
    "a text as value": column("value", "0.5"),
    "a number as metric": column("metric", 7),
    "a huge value": column("value", 10**400),
    "truth as number": column("n_images", True),
    "seeds of text": column("seeds", ["0"]),
    "seeds no list": column("seeds", 0),
    "manifest no object": lambda path: reseal(path, lambda c: c.update(manifest={})),
    "files no object": nothing_of_it("files", ["draws.parquet"]),
    "a file elsewhere": nothing_of_it("files", {"../draws.parquet": "0"}),
    "metric no object": nothing_of_it("metric", [1]),
    "neutral of text": nothing_of_it("metric", {"neutral": {"score": "none"}}),
    "range of text": nothing_of_it("metric", {"range": {"score": "01"}}),
    "range of one end": nothing_of_it("metric", {"range": {"score": [0]}}),
    "truth of a number": nothing_of_it("corpus", {"trained_on_reference": 1}),
    "training of text": nothing_of_it("training", {"cached": "all"}),
    "overrides no texts": nothing_of_it("overrides", [7]),
    "corpus no object": nothing_of_it("corpus", 7),
    "notes no list": nothing_of_it("notes", 7),
}


def two_runs(folder: Path) -> Path:
    """A folder of two runs, of which one is to be damaged; its result."""
    ResultStore(folder).save(result(captioner="sat"))
    ResultStore(folder).save(result("bad", captioner="oscar"))
    return folder / "bad" / "result.json"


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_run_that_cannot_be_read_ends_no_report_and_stays(tmp_path, kind):
    FOREIGN[kind](two_runs(tmp_path))
    before = tree(tmp_path)
    report = report_of_folder(tmp_path)
    assert [row.run_id for row in report.rows] == ["run"]
    assert tree(tmp_path) == before
    (section,) = (item for item in report.sections if item.title == "Left out")
    assert section.texts[0] == "1 of 2 runs cannot be read."
    assert str(tmp_path / "bad" / "result.json") in section.texts[1]


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_run_that_cannot_be_read_is_computed_again(tmp_path, kind):
    FOREIGN[kind](two_runs(tmp_path))
    store = ResultStore(tmp_path)
    assert store.load_unchanged("bad") is None
    store.save(result("bad"))
    assert store.load_unchanged("bad") is not None


def test_what_is_left_out_stands_on_the_page_and_is_said(tmp_path, caplog):
    FOREIGN["another schema"](two_runs(tmp_path))
    with caplog.at_level(logging.WARNING):
        write_page(tmp_path, tmp_path / "report.html")
    for text in (caplog.text, (tmp_path / "report.html").read_text()):
        assert "1 of 2 runs cannot be read." in text
        assert "its schema is not 1" in text


def test_without_faults_there_is_no_such_section(tmp_path):
    two_runs(tmp_path)
    assert "Left out" not in {section.title for section in report_of_folder(tmp_path).sections}


def test_a_folder_of_nothing_but_damage_says_how_many(tmp_path):
    FOREIGN["cut"](two_runs(tmp_path))
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(DataError, match=r"no finished run that can be read \(1 cannot: .*bad"):
        finished_results(tmp_path)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"no Arrow at all", None])
def test_draws_that_cannot_be_read_cost_the_comparison_alone(tmp_path, content):
    path = two_runs(tmp_path).with_name("draws.parquet")
    path.unlink() if content is None else path.write_bytes(content)
    report = report_of_folder(tmp_path)
    assert [row.run_id for row in report.rows] == ["bad", "run"]
    (section,) = (item for item in report.sections if item.title == "Left out")
    assert f"{path}: " in section.texts[0]
    assert section.texts[0].endswith("Its numbers are shown, but not compared")


def parquet(columns: dict[str, list[object]]) -> bytes:
    file = io.BytesIO()
    pd.DataFrame(columns).to_parquet(file)
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no Arrow",
        parquet({"score:0": ["a", "b"], "score:1": ["a", "b"]}),
        parquet({"score:0": [], "score:1": []}),
        parquet({"score:0": [[1.0], [2.0]], "score:1": [[1.0], [2.0]]}),
        parquet({"score:0": [0.5, 0.5]}),
        parquet({"other:0": [0.5, 0.5], "other:1": [0.5, 0.5]}),
        parquet({"score:0": [0.5, 0.5], "score:1": [0.5, 0.5]}),
    ],
)
def test_foreign_draws_with_a_fitting_checksum_end_no_report(tmp_path, content):
    for name in ("a", "b"):
        built = result(name, captioner=name)
        config = {"stats": {"resamples": 50}}
        ResultStore(tmp_path).save(replace(built, manifest={**built.manifest, "config": config}))
    (tmp_path / "a" / "draws.parquet").write_bytes(content)
    path = tmp_path / "a" / "result.json"
    outcome = unseal(json.loads(path.read_text()), within="manifest")
    outcome["manifest"]["files"]["draws.parquet"] = sha256(content)
    path.write_bytes(seal(outcome, within="manifest"))
    assert "Its numbers are shown, but not compared" in str(report_of_folder(tmp_path))


@pytest.mark.parametrize(("name", "epochs"), [("curves", ["0", "1", "2"]), ("nothing", [])])
def test_tables_come_back(whole_run, name, epochs):
    store = ResultStore(whole_run)
    assert [line["epoch"] for line in store.table(store.read("run"), name)] == epochs


def test_a_cut_table_is_not_read(copied_run):
    path = copied_run / "run" / "curves.csv"
    path.write_bytes(path.read_bytes()[:-4])
    store = ResultStore(copied_run)
    with pytest.raises(DataError, match=r"curves\.csv: is damaged"):
        store.table(store.read("run"), "curves")


READING = {"part": "score", "follows": ["words"], "named": True}


@pytest.mark.parametrize(
    "changes",
    [{"part": "nowhere"}, {"part": None}, {"named": None}, {"follows": ["height"]}, {"follows": 1}],
)
def test_conclusions_that_rest_on_nothing_make_a_run_unreadable(tmp_path, changes):
    """Sealed all the same: whoever writes a folder can write any manifest."""
    reading = {key: value for key, value in {**READING, **changes}.items() if value is not None}
    metric = {"question": "leakage", "readings": {"score": reading}}
    built = result()
    ResultStore(tmp_path).save(replace(built, manifest={**built.manifest, "metric": metric}))
    with pytest.raises(DataError, match=r"metric\.readings"):
        ResultStore(tmp_path).read("run")
