"""The captioners of papers: those of the printed tables, and models of their kinds at hand."""

import json

import pytest

from bias_pipeline.io.files import read_csv
from bias_pipeline.models.generation import KINDS, fetched_models, published_captioners
from bias_pipeline.run.compose import cell
from tests.corpora import REPOSITORY

_SHORT = {"updown": "updn"}  # in our file of printed numbers


def names_in_table(paper: str, table: str, part: str) -> set[str]:
    """The captioners of a printed table, without capitals and signs."""
    text = (REPOSITORY / "experiments" / "published" / f"{paper}.csv").read_text()
    rows = [row for row in read_csv(text) if row["table"] == table and row["part"] == part]
    return {plain_name(row["row"]) for row in rows}


def plain_name(name: str) -> str:
    letters = "".join(filter(str.isalnum, name.lower()))
    return _SHORT.get(letters, letters)


@pytest.mark.parametrize(
    ("paper", "table", "part"), [("dbac", "9", ""), ("gender_score", "3", "gender_score")]
)
def test_the_captioners_are_those_of_the_table(paper, table, part):
    names = [
        plain_name(one.name)
        for one in published_captioners()
        if one.experiment == f"{paper}_table{table}"
    ]
    assert sorted(names) == sorted(names_in_table(paper, table, part))


def test_captioners_name_captions_of_lic_and_kinds_of_caption():
    named = {one.lic for one in published_captioners()} - {""}
    assert named <= set(cell(["dataset=lic"]).build("dataset").captioners())
    assert {one.kind for one in published_captioners()} - {""} <= set(KINDS)


def test_a_fetched_model_of_the_kind_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    for name, kind in (("mine--small-blip", "blip"), ("mine--llava", "llava"), ("a--b", None)):
        folder = tmp_path / f"models--{name}" / "snapshots" / "abc"
        folder.mkdir(parents=True)
        text = json.dumps({"model_type": kind}) if kind else "{"
        (folder / "config.json").write_text(text)
    assert fetched_models("blip") == ["mine/small-blip"]
