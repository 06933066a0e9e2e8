"""In which settings results differ: what tells them apart beyond the columns of their rows."""

from dataclasses import replace

import pytest

from bias_pipeline.results.rows import Result
from bias_pipeline.results.settings import Results, label, with_settings
from tests.report.test_tables import row

KEYS = {"probe": "probe", "probe.encoder": "encoder"}


def cell(run_id: str, order: int = 2, **columns: object) -> Result:
    probe = {"_target_": "a.Probe", "encoder": {"order": order}, "cache": run_id}
    tree = {"_target_": "a.Metric", "probe": probe}
    return Result(run_id, [row(run_id=run_id, **columns)], {"config": tree, "keys": KEYS})


def settings_of(*results: Result) -> list[dict[str, str]]:
    return [dict(result.settings) for result in with_settings(results)]


@pytest.mark.parametrize(
    ("one", "other", "settings"),
    [
        (cell("a", 1), cell("b", 2), ("encoder.order", "1", "2")),
        (cell("a", 1, captioner="x"), cell("b", 2, captioner="y"), ("encoder.order", "1", "2")),
        (cell("a", seeds=(0, 12)), cell("b", seeds=(0, 456)), ("seeds", "2", "[0,456]")),
        (cell("a", metric_version=1), cell("b", metric_version=2), ("metric_version", "1", "2")),
        (cell("a", encoder="ngram"), cell("b", encoder="lstm"), ("encoder", "ngram", "lstm")),
        # the values of different choices are not told
        (cell("a", 1, encoder="ngram"), cell("b", 2, encoder="lstm"), ("encoder", "ngram", "lstm")),
        # nor those of what a sweep told as a whole, wherever they stand
        (
            replace(cell("a", 1), settings={"encoder": "a"}),
            replace(cell("b", 2), settings={"encoder": "b"}),
            ("encoder", "a", "b"),
        ),
        (
            replace(cell("a", 1), settings={"order": "first"}),
            replace(cell("b", 2), settings={"order": "second"}),
            ("order", "first", "second"),
        ),
    ],
)
def test_what_differs_is_told_by_the_key_that_sets_it(one, other, settings):
    key, first, second = settings
    assert settings_of(one, other) == [{key: first}, {key: second}]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (cell("a"), cell("b", captioner="other")),
        (cell("a"), cell("b")),
        (cell("a", 1, metric="lic"), cell("b", 2, metric="leakage")),
    ],
    ids=["the same", "where things are kept", "settings of another metric"],
)
def test_nothing_is_told(one, other):
    assert settings_of(one, other) == [{}, {}]


def test_a_value_without_a_key_is_told_by_its_place():
    results = [
        replace(item, manifest={"config": item.manifest["config"]})
        for item in (cell("a", 1), cell("b", 2))
    ]
    assert settings_of(*results)[0] == {"metric.probe.encoder.order": "1"}


def test_what_of_captions_is_scored_is_told_and_named_unless_it_is_all():
    alone = cell("b", alignment="matched")
    alone = replace(alone, manifest={**alone.manifest, "text": {"unit": "sentence"}})
    first, second = with_settings([cell("a", alignment="constant"), alone])
    assert first.settings == {"alignment": "constant", "text.unit": "caption"}
    assert [label(first), label(second)] == ["constant", "matched text.unit=sentence"]


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
