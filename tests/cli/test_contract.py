"""The Contract of the design, to the letter: what users' scripts rely on."""

import csv
import io
import json
import signal
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from bias_pipeline import __version__
from bias_pipeline.commands.main import main
from bias_pipeline.datasets.scenes.captioners import CAPTIONERS
from bias_pipeline.errors import UsageError
from bias_pipeline.metrics.attack.lic import LIC
from tests.cli.commands import COUNTING, SMALL, SWEEP, part, results, rows, start, wait_for
from tests.cli.one_cell import with_values
from tests.lic_folder import write_folder

COLUMNS = (
    "run_id,metric,metric_version,part,attribute,dataset,captioner,encoder,head,masking,alignment,"
    "scoring,value,unit,seed_std,ci_low,ci_high,p_value,n_images,n_seeds,coverage,neutral_rate,"
    "seeds"
)


# Words given as text, no further masked words, a data set's own column.
OWN_ATTRIBUTE = """
_target_: bias_pipeline.corpus.attribute.Attribute
name: own
groups: [male, female]
words: {male: "man, men", female: "woman, women"}
labels:
  scenes:
    _target_: bias_pipeline.corpus.attribute.LabelMap
    field: bb_gender
    groups: {Male: male, Female: female}
    strata: [Unsure]
"""


@pytest.fixture(scope="module")
def printed_cell(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of one finished cell, and what was printed."""
    outputs, printed = tmp_path_factory.mktemp("cell"), io.StringIO()
    with redirect_stdout(printed):
        assert main([*SMALL, f"paths.outputs={outputs}"]) == 0
    (path,) = outputs.glob("[!.]*/result.json")
    return path.parent, printed.getvalue()


@pytest.fixture(scope="module")
def cell(printed_cell: tuple[Path, str]) -> Path:
    """The folder."""
    return printed_cell[0]


# --- the run folder


def test_no_logger_is_needed(run):
    assert run("metric=gender_error", *SMALL[:-1], "logger=[]")[0] == 0


def test_result_json_holds_schema_rows_and_manifest(cell):
    assert set(json.loads((cell / "result.json").read_text())) == {"schema", "rows", "manifest"}


def test_the_schema_is_one(cell):
    assert json.loads((cell / "result.json").read_text())["schema"] == 1


def test_a_row_has_the_columns_of_the_contract(cell):
    assert ",".join(rows(cell / "result.json")[0]) == COLUMNS


@pytest.mark.parametrize("name", ["rows.csv", "../table.csv"])
def test_a_csv_has_the_columns_of_the_contract(cell, name):
    assert (cell / name).read_text().splitlines()[0] == COLUMNS


def test_the_folder_is_named_after_the_run(cell):
    assert {row["run_id"] for row in rows(cell / "result.json")} == {cell.name}


@pytest.mark.parametrize("name", ["score", "human", "model", "model:paired", "human:paired"])
def test_the_parts_of_the_contract_are_there(cell, name):
    assert part(cell / "result.json", name)["part"] == name


def test_values_are_fractions(cell):
    assert 0 < part(cell / "result.json", "model")["value"] < 1


def test_per_cent_only_when_printed(printed_cell):
    folder, text = printed_cell
    assert f"{100 * part(folder / 'result.json', 'model')['value']:.1f} [" in text


def test_what_plays_no_part_is_empty(cell):
    assert part(cell / "result.json", "score")["head"] == ""


def test_the_manifest_says_what_the_corpus_was(cell):
    assert len(json.loads((cell / "result.json").read_text())["manifest"]["corpus"]["digest"]) == 64


def test_the_manifest_says_how_much_of_the_test_captions_stood_in_training(cell):
    audit = json.loads((cell / "result.json").read_text())["manifest"]["audit"]
    assert 0 <= audit["verbatim_share"]["model"] <= 1


def test_a_table_has_a_line_for_every_row_of_every_cell(run, tmp_path):
    run(*COUNTING, "captioner=faithful,terse")
    table = csv.DictReader(io.StringIO((tmp_path / "outputs" / "table.csv").read_text()))
    assert len(list(table)) == sum(len(rows(path)) for path in results(tmp_path))


# --- seeds


def test_lists_of_seeds_spread_a_sweep(run, tmp_path):
    run(*SMALL, "seeds=[0,12],[456,789]")
    ordered = sorted(part(path, "score")["seeds"] for path in results(tmp_path))
    assert ordered == [[0, 12], [456, 789]]


def predictions(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("outputs/.cache/predictions/*/*")}


def test_three_seeds_then_ten_train_seven_more(run, tmp_path):
    few = (*SMALL[1:], "dataset.n_images=300", "metric.positions=1")
    run(*few, "seeds=3")
    assert part(results(tmp_path)[0], "score")["seeds"] == [0, 12, 456]  # the published ones
    before = predictions(tmp_path)
    run(*few, "seeds=10")
    new = predictions(tmp_path) - before
    sides, folds, of_fewer_images = 1 + 1, 5, 2
    assert len(before) == (3 + of_fewer_images) * folds * sides
    assert len(new) == 7 * folds * sides
    assert before < predictions(tmp_path)


def test_both_metrics_use_the_same_predictions(run, tmp_path):
    run(*SMALL, "metric.positions=1")
    before = predictions(tmp_path)
    run(*SMALL, "metric.positions=1", "metric=leakage")
    assert predictions(tmp_path) == before


def test_seeds_trained_apart_score_as_together(run, tmp_path):
    few = (*SMALL[1:], "dataset.n_images=300", "metric.positions=1")
    run(*few, "seeds=[0,12]", "paths.outputs=together", "paths.cache=one")
    run(*few, "seeds=[0]", "paths.outputs=apart", "paths.cache=two")
    run(*few, "seeds=[0,12]", "paths.outputs=apart", "paths.cache=two")
    table = [(tmp_path / name / "table.csv").read_bytes() for name in ("together", "apart")]
    assert table[0] == table[1]


# --- captioners


def test_a_known_captioner_without_a_file_exits_5(run, tmp_path):
    root = write_folder(tmp_path / "data")
    code, text = run("dataset=lic", f"dataset.root={root}", "captioner=updn", "logger=csv")
    assert (code, "UpDn/gender_val_updn_cap_mw_entries.pkl" in text) == (5, True)


@pytest.mark.parametrize(
    "word",
    [
        "metric=licc",
        "encoder=ngrm",
        "attribute=gendre",
        "dataset=scnes",
        "masking=atribute",
        "alignment=constnt",
        "scoring=acuracy",
        "split=lics",
        "captioner=faithfull",
        "captioner=faithful,fathful",
        "head=linar",
    ],
)
def test_an_unknown_name_exits_2_with_a_suggestion(run, word):
    code, text = run(word)
    assert (code, "did you mean" in text) == (2, True), text


def test_an_unknown_captioner_of_a_sweep_is_refused_before_any_job(run, tmp_path):
    run(*SMALL, "captioner=faithful,fathful")
    assert results(tmp_path) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["metric="], "Known:"),
        (["metric=lic,"], "Known:"),
        (["=3"], "error:"),
        (["seeds=[a]"], "seeds=['a']"),
        (["seeds=[0,null]"], "seeds=[0, None]"),
        (["seeds=1.5"], "seeds=1.5"),
        (["seeds=true"], "seeds=True"),
        (["paths.outputs="], "paths.outputs='' must name a folder"),
        (["paths.outputs=null"], "paths.outputs=None must name a folder"),
        (["paths.outputs=2024"], "paths.outputs=2024 must name a folder"),
        (["dataset.n_images=0"], "n_images is 0"),
    ],
)
def test_a_wrong_value_exits_2_and_says_what_is_wrong(run, words, message):
    code, text = run(*words)
    assert (code, message in text, "Traceback" in text) == (2, True, False), text


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("dataset.n_images=abc", "dataset.n_images='abc' must be a whole number"),
        ("stats.resamples=10.5", "stats.resamples=10.5 must be a whole number"),
        ("stats.level=2", "level=2"),
        ("alignment.replacement=unk", "alignment.replacement='unk' must be a list"),
        ("split.balanced=3", "split.balanced=3 must be true or false"),
        ("metric.positions=0", "positions=0 must be at least 1"),
        ("metric.wordless_limit=2", "wordless_limit=2"),
        ("metric.sides=[]", "one or both of model, human"),
        ("metric.sides=[people]", "metric.sides.0='people' must be one of model, human"),
    ],
)
def test_a_wrong_value_of_a_key_is_refused(value, message):
    with pytest.raises(UsageError) as error:
        with_values((), (value,)).require()
    assert message in str(error.value)


def test_a_failed_job_is_named_by_what_is_its_own(run):
    text = run(*SMALL, "dataset.n_images=20,300", "seeds=1")[1]
    assert "error: dataset.n_images=20: dataset 'scenes'" in text


@pytest.mark.slow  # fourteen cells
def test_all_captioners_of_several_attributes(run, tmp_path):
    words = (*COUNTING, "attribute=gender,race", "captioner=all")
    code, text = run(*words)
    assert (code, len(results(tmp_path))) == (0, 14), text
    table = csv.DictReader(io.StringIO((tmp_path / "outputs" / "table.csv").read_text()))
    assert {row["captioner"] for row in table} == set(CAPTIONERS) - {"verbose"}  # ten times as long


def test_what_a_sweep_varies_is_a_column(run):
    text = run(*SMALL, "metric.relation=ratio,normalised", "metric.positions=1")[1]
    assert "metric.relation" in text


@pytest.mark.parametrize("flags", [(), ("-m",)])
def test_cfg_prints_the_first_job_of_a_sweep(run, flags):
    code, text = run(*flags, "captioner=all", "--cfg", "job")
    assert (code, "captioner: amplifier" in text) == (0, True), text


def test_choices_may_lie_in_a_folder_of_ones_own(run, tmp_path):
    (tmp_path / "mine" / "scoring").mkdir(parents=True)
    (tmp_path / "mine" / "scoring" / "own.yaml").write_text(
        "_target_: bias_pipeline.scoring.Confidence\n"
    )
    run(*SMALL, "--config-dir=mine", "scoring=own")
    assert part(results(tmp_path)[0], "score")["scoring"] == "own"


def test_a_bug_is_reported_with_its_traceback_in_a_file(run, tmp_path, monkeypatch):
    monkeypatch.setattr(LIC, "compute", lambda *_, **__: 1 / 0)
    code, text = run(*SMALL)
    (trace,) = tmp_path.glob("outputs/.hydra_jobs/*/traceback.txt")
    assert (code, str(trace.name) in text, "ZeroDivisionError" in trace.read_text()) == (
        1,
        True,
        True,
    )


def test_the_version_is_our_own(run):
    code, text = run("--version")
    assert (code, text.splitlines()[0]) == (0, f"bias_pipeline {__version__}")


def test_nothing_is_said_of_results_where_there_are_none(run):
    assert "results in" not in run(*SMALL, "split=lic", "split.test_share=0.0001")[1]


def test_an_attribute_needs_no_further_masked_words(run, tmp_path):
    (tmp_path / "mine" / "attribute").mkdir(parents=True)
    (tmp_path / "mine" / "attribute" / "own.yaml").write_text(OWN_ATTRIBUTE)
    code, text = run(*SMALL, "--config-dir=mine", "attribute=own")
    assert code == 0, text


def test_masking_tasks_says_that_it_needs_them(run):
    code, text = run(*SMALL, "masking=tasks_only")
    assert (code, "+task=coco_objects" in text) == (2, True), text


def test_masking_tasks_works_once_they_are_there(run):
    code, text = run(*SMALL, "masking=rest_only", "+task=coco_objects")
    assert code == 0, text


# --- launchers and signals


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR2])
def test_a_job_that_slurm_stops_asks_to_be_queued_again(tmp_path, number):
    process = start(tmp_path, *SWEEP, SLURM_JOB_ID="1")
    wait_for(lambda: results(tmp_path))
    process.send_signal(number)
    assert process.wait(30) == 75
