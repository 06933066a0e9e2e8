"""The pictures that queries retrieve first: whose they are, and when they may be shown."""

from dataclasses import replace

from bias_pipeline.data.photos import thumbnail
from bias_pipeline.data.regions import crop_person
from bias_pipeline.retrieval.retrieval_view import ENDS, FIRST, RETRIEVED
from tests.retrieval.test_fairness import cell, compute, plant, planted_score


def shown_lines(*words: str) -> list[dict[str, str]]:
    lines = planted_score(2.0, *words).tables[RETRIEVED]
    return [{key: str(item) for key, item in line.items()} for line in lines]


def test_the_ends_are_there_each_with_its_first_pictures():
    lines = shown_lines()
    ordered = [str(line["concept"]) for line in planted_score(2.0).tables["concepts"]]
    ends = [*ordered[:ENDS], *ordered[-ENDS:]]
    assert list(dict.fromkeys(line["concept"] for line in lines)) == ends
    assert [line["place"] for line in lines] == [str(n + 1) for n in range(FIRST)] * 2 * ENDS


def test_each_picture_is_that_of_its_image_and_group():
    corpus = cell().corpus()
    assert corpus.pictures is not None
    groups = corpus.groupings["gender"]
    for line in shown_lines()[::7]:
        row = corpus.ids.index(line["image"])
        assert line["group"] == groups.names[groups.codes[row]]
        assert line["picture"] == thumbnail(crop_person(corpus.pictures, row, "person"))


def test_the_least_fair_retrieve_whom_they_lean_to():
    pairs = {(line["concept"], line["group"]) for line in shown_lines()[: ENDS * FIRST]}
    assert len(pairs) == len({concept for concept, _ in pairs}) == ENDS


def test_few_queries_are_told_once():
    lines = shown_lines("metric.concepts=[surfing,cooking]", "metric.k=3")
    assert [line["place"] for line in lines] == ["1", "2", "3"] * 2


def test_without_permission_no_picture_is_written(monkeypatch):
    corpus = cell().corpus()
    plant(monkeypatch, corpus, 2.0)
    score = compute(corpus=replace(corpus, shown_under=""))
    assert {line["picture"] for line in score.tables[RETRIEVED]} == {""}
    assert score.audit["shown_under"] == ""


def test_permission_changes_no_run():
    here = cell()
    corpus = here.corpus()
    assert corpus.shown_under
    assert here.run_id(corpus) == here.run_id(replace(corpus, shown_under=""))
