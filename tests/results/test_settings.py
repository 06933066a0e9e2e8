"""In which settings results differ: what tells them apart beyond the columns of their rows."""

from dataclasses import replace

from bias_pipeline.results.settings import Results, label, with_settings
from bias_pipeline.results.store import Result
from tests.report.test_tables import row

KEYS = {"probe": "probe", "probe.encoder": "encoder"}


def cell(run_id: str, order: int = 2, **columns: object) -> Result:
    tree = {"_target_": "a.Metric", "probe": {"encoder": {"order": order}, "cache": run_id}}
    return Result(run_id, [row(run_id=run_id, **columns)], {"config": tree, "keys": KEYS})


def settings_of(*results: Result) -> list[dict[str, str]]:
    return [dict(result.settings) for result in with_settings(results)]


def test_a_value_that_differs_is_told_by_the_key_that_sets_it():
    assert settings_of(cell("a", 1), cell("b", 2)) == [
        {"encoder.order": "1"},
        {"encoder.order": "2"},
    ]


def test_what_is_the_same_is_not_told():
    assert settings_of(cell("a"), cell("b", captioner="other")) == [{}, {}]


def test_where_things_are_kept_is_not_told():
    assert settings_of(cell("a"), cell("b")) == [{}, {}]


def test_other_captioners_have_their_settings_told_too():
    settings = settings_of(cell("a", 1, captioner="one"), cell("b", 2, captioner="two"))
    assert settings == [{"encoder.order": "1"}, {"encoder.order": "2"}]


def test_seeds_are_told_as_they_are_asked_for():
    settings = settings_of(cell("a", seeds=(0, 12)), cell("b", seeds=(0, 456)))
    assert settings == [{"seeds": "2"}, {"seeds": "[0,456]"}]


def test_versions_of_a_metric_are_told():
    settings = settings_of(cell("a", metric_version=1), cell("b", metric_version=2))
    assert settings == [{"metric_version": "1"}, {"metric_version": "2"}]


def test_choices_are_told_by_their_names():
    settings = settings_of(cell("a", encoder="ngram"), cell("b", encoder="lstm"))
    assert settings == [{"encoder": "ngram"}, {"encoder": "lstm"}]


def test_cells_of_different_choices_do_not_tell_their_values():
    settings = settings_of(cell("a", 1, encoder="ngram"), cell("b", 2, encoder="lstm"))
    assert settings == [{"encoder": "ngram"}, {"encoder": "lstm"}]


def test_metrics_do_not_tell_each_others_settings():
    assert settings_of(cell("a", 1, metric="lic"), cell("b", 2, metric="leakage")) == [{}, {}]


def test_a_value_without_a_key_is_told_by_its_place():
    results = [
        replace(item, manifest={"config": item.manifest["config"]})
        for item in (cell("a", 1), cell("b", 2))
    ]
    assert settings_of(*results)[0] == {"metric.probe.encoder.order": "1"}


def test_what_a_sweep_told_as_a_whole_is_not_told_by_its_values():
    one = replace(cell("a", 1), settings={"encoder": "a"})
    other = replace(cell("b", 2), settings={"encoder": "b"})
    assert settings_of(one, other) == [{"encoder": "a"}, {"encoder": "b"}]


def test_many_settings_make_a_label_that_no_others_have():
    labels = [
        label(Result("x", [], {}, settings={f"k{i}": str(i + item) for i in range(9)}))
        for item in (0, 1)
    ]
    assert labels[0].rpartition("more")[2] != labels[1].rpartition("more")[2]


def test_long_values_that_begin_alike_are_told_apart():
    lines = [
        replace(cell("a"), manifest={"config": {"words": ["word"] * 50 + [end]}})
        for end in ("one", "two")
    ]
    first, second = settings_of(*lines)
    assert first["metric.words"] != second["metric.words"]


def test_a_frame_has_a_column_for_what_differs():
    assert Results([cell("a", 1), cell("b", 2)]).frame()["encoder.order"].tolist() == ["1", "2"]


def test_a_frame_has_no_further_column_where_nothing_differs():
    assert Results([cell("a")]).frame().columns[-1] == "seeds"


def test_a_choice_tells_the_values_of_its_file_wherever_they_stand():
    results = [
        replace(cell("a", 1), settings={"order": "first"}),
        replace(cell("b", 2), settings={"order": "second"}),
    ]
    assert settings_of(*results) == [{"order": "first"}, {"order": "second"}]
