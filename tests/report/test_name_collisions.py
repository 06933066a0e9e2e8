"""Two captioners of one name are never one row."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bias_pipeline.report.name_collisions import (
    names_of,
    resolve_file_collisions,
    resolve_name_collisions,
)
from bias_pipeline.results.rows import Result
from tests.results.test_store import row

A, B = "/data/A/model.json", "/data/B/model.json"


def result(file: str = "", digest: str = "d" * 64, **changes: object) -> Result:
    headline = row(**{"captioner": "model", "dataset": "coco", "attribute": "gender", **changes})
    return Result("run", [headline, headline], {"corpus": {"file": file, "digest": digest}})


def names(results: list[Result]) -> list[str]:
    return [row.captioner for result in results for row in result.rows[:1]]


def test_files_of_one_name_get_as_much_of_their_path_as_tells_them_apart():
    computed, (sentence,) = resolve_name_collisions([result(A, "a" * 64), result(B, "b" * 64)])
    assert names(computed) == ["A_model", "B_model"]
    assert {row.captioner for row in computed[0].rows} == {"A_model"}
    assert sentence == f"2 files are called model: A_model ({A}), B_model ({B})"


def test_their_order_does_not_matter():
    computed, _ = resolve_name_collisions([result(B, "b" * 64), result(A, "a" * 64)])
    assert names(computed) == ["B_model", "A_model"]


@pytest.mark.parametrize(
    ("resolve", "results"),
    [
        (
            resolve_name_collisions,
            [
                result(A, metric="lic"),
                result(A, metric="dbac"),
                result(A, "e" * 64, attribute="race"),
            ],
        ),
        (resolve_name_collisions, [result(A), result(B, dataset="flickr30k")]),
        # labels of several annotators make several corpora, which are lines of their own there
        (resolve_file_collisions, [result(A, "a" * 64), result(A, "b" * 64)]),
    ],
    ids=["one file, whatever is measured", "two data sets", "a sweep goes by files alone"],
)
def test_what_is_no_namesake_keeps_its_name(resolve, results):
    computed, sentences = resolve(results)
    assert (names(computed), sentences) == (["model"] * len(results), [])


def test_versions_of_one_file_stand_apart_by_digest():
    computed, (sentence,) = resolve_name_collisions([result(A, "a" * 64), result(A, "b" * 64)])
    assert names(computed) == ["model aaaaaaaa", "model bbbbbbbb"]
    assert sentence.startswith("2 corpora of coco are called model under gender")


def test_other_parts_of_the_same_captions_keep_the_name():
    first, second = result(A, "a" * 64), result(A, "b" * 64)
    sentence = replace(second, manifest={**second.manifest, "text": {"unit": "sentence"}})
    assert resolve_name_collisions([first, sentence]) == ([first, sentence], [])


def test_a_name_that_another_captioner_has_is_not_given():
    others = [result("/x/A_model.json", captioner="A_model")]
    computed, _ = resolve_file_collisions([result(A), result(B), *others])
    assert names(computed) == ["data_A_model", "data_B_model", "A_model"]


def test_runs_that_do_not_say_where_they_are_from_stay():
    lines = [Result("run", [row(captioner="model")], {}) for _ in range(2)]
    assert resolve_name_collisions(lines) == (lines, [])


@given(st.lists(st.text("aA ._/-", min_size=1, max_size=8), min_size=2, max_size=5, unique=True))
def test_names_are_distinct_and_safe(paths):
    names = names_of([f"/{path}/m.json" for path in paths])
    assert len(set(names.values())) == len(paths)
    assert all(name.replace("_", "").replace("-", "").isalnum() for name in names.values())
