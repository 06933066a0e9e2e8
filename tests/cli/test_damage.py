"""Through the door, damaged run folders are told of, left by readers, made again by runs."""

import json

from bias_pipeline.io.digests import seal, unseal
from bias_pipeline.report.page import finished_runs
from bias_pipeline.results.store import ResultStore
from tests.cli.commands import COUNTING, results
from tests.results.test_sealed_runs import result

WORDS = (*COUNTING, "captioner=faithful,stereotyper")


def test_a_cell_whose_draws_are_cut_is_run_again(run, ok, tmp_path):
    run(*WORDS)
    (path, _) = results(tmp_path)
    draws = path.with_name("draws.parquet")
    content = draws.read_bytes()
    draws.write_bytes(content[:-9])
    printed = ok(*WORDS)
    assert "draws.parquet is damaged or absent; the run will be done again" in printed
    assert "cached, not run again: 1 of 2" in printed
    assert draws.read_bytes() == content


def test_a_comparison_of_damaged_draws_ends_with_3(run, ends, tmp_path):
    run(*WORDS)
    paths = results(tmp_path)
    paths[0].with_name("draws.parquet").write_bytes(b"PAR1")
    assert "draws.parquet: is damaged" in ends(3, "compare", *(str(path.parent) for path in paths))


def test_no_damage_of_one_run_ends_a_report(ok, tmp_path, caplog):
    store = ResultStore(tmp_path / "outputs")
    for name in ("whole", "folder", "deep", "types", "draws", "link"):
        store.save(result(name))
    at = {path.parent.name: path for path in results(tmp_path)}
    at["folder"].unlink()
    at["folder"].mkdir()
    at["deep"].write_text('{"schema": 1, "rows": ' + "[" * 10**5)
    content = unseal(json.loads(at["types"].read_text()), within="manifest")
    broken = {**content, "manifest": {**content["manifest"], "notes": {"a": []}}}
    at["types"].write_bytes(seal(broken, within="manifest"))
    at["draws"].with_name("draws.parquet").write_bytes(b"no Arrow")
    at["link"].unlink()
    at["link"].symlink_to("nowhere")
    (tmp_path / "outputs" / "words-gender.csv").write_text("side,ngr")
    (tmp_path / "outputs" / "words-race.csv").mkdir()
    ok("report", "outputs")
    assert "4 of 6 runs cannot be read." in caplog.messages
    for name in ("words-gender.csv", "words-race.csv", "draws.parquet", "damaged (notes is"):
        assert name in caplog.text


def test_a_folder_is_loaded_with_a_warning_of_what_is_damaged(tmp_path, caplog):
    store = ResultStore(tmp_path)
    for name in ("whole", "cut", "draws"):
        store.save(result(name))
    (tmp_path / "cut" / "result.json").write_text("{")
    (tmp_path / "draws" / "draws.parquet").write_bytes(b"no Arrow")
    loaded, draws = finished_runs(tmp_path)
    assert ([one.run_id for one in loaded], list(draws)) == (["draws", "whole"], ["whole"])
    assert [name in caplog.text for name in ("cut/result.json", "draws.parquet")] == [True, True]
