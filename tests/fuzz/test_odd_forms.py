"""Odd forms of one truth give the numbers of the plain form, or are refused in a sentence."""

import random

import pytest

from tests.fuzz.odd_forms import FORMS, OtherNumberError, compare, truth_of
from tests.fuzz.readers import READERS
from tests.fuzz.truth import METRICS, Files, Truth, numbers, plain_files

SEED = 20261128
TRIALS = 2


def test_no_form_has_the_name_of_a_reader():
    """A round of the fuzzer makes a folder of each."""
    assert FORMS.keys() & READERS.keys() == set()


@pytest.mark.parametrize("kind", FORMS)
def test_odd_forms_give_the_same_numbers_or_are_refused(tmp_path, kind):
    ends = [
        compare(kind, tmp_path, random.Random(f"{SEED}-{kind}-{number}"))
        for number in range(TRIALS)
    ]
    assert all(ends)


@pytest.mark.parametrize(
    ("kind", "form"), [(kind, form) for kind, forms in FORMS.items() for form in forms]
)
def test_each_form_changes_a_file(tmp_path, kind, form):
    generator = random.Random(SEED)
    files = plain_files(tmp_path, truth_of(kind, generator))
    before = {setting: path.read_bytes() for setting, path in files.paths.items()}
    form(files, generator)
    assert {setting: path.read_bytes() for setting, path in files.paths.items()} != before


def test_the_metrics_have_numbers(tmp_path):
    values = numbers(plain_files(tmp_path, Truth.draw(random.Random(SEED))))
    assert {name.split()[0] for name in values if " " in name} == {*METRICS}
    assert 0.1 < float(values["gender_error score"]) < 0.35


def test_another_number_in_silence_is_a_finding(tmp_path, monkeypatch):
    def swap(files: Files, generator: random.Random) -> None:
        del generator
        files.table("attributes", "odd.csv", [("image_id", "gender"), *_swap_groups(files)])

    monkeypatch.setitem(FORMS, "objects", (swap,))
    with pytest.raises(OtherNumberError, match=r"swap: \d+ numbers differ, such as"):
        compare("objects", tmp_path, random.Random(SEED))


def _swap_groups(files: Files) -> list[tuple[str, str]]:
    other = {"Male": "Female", "Female": "Male"}
    return [(image, other[label]) for image, label in files.truth.groups.items()]


def test_a_trial_is_the_same_again(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    ends = {compare("objects", tmp_path / name, random.Random(7)) for name in "ab"}
    assert len({end.replace("/a/", "/b/") for end in ends}) == 1
