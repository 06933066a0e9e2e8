"""Answers on disk: none is lost, none is mixed up, and data sets read them."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from bias_pipeline.data.label_files import read_labels
from bias_pipeline.data.rating_tables import CANNOT_TELL, SEVERAL
from bias_pipeline.errors import DataError, ResourceError, UsageError
from bias_pipeline.io.files import read_csv
from bias_pipeline.io.paths import group_choices
from bias_pipeline.people.web.study import (
    DELIVERIES,
    LOG,
    TABLE,
    AnswerStore,
    NameTakenError,
    RatingQuestion,
    Study,
)
from bias_pipeline.people.web.summary import agreement_lines
from bias_pipeline.run.compose import cell


def table(store: AnswerStore) -> list[dict[str, str]]:
    """The table at the end."""
    store.close()
    return read_csv((store.folder / TABLE).read_text())


Reopen = Callable[..., AnswerStore]


@pytest.fixture
def reopen() -> Iterator[Reopen]:
    """Opens a store as the next process does."""
    with ExitStack() as stack:

        def open_again(store: AnswerStore, study: Study | None = None) -> AnswerStore:
            store.close()
            after = AnswerStore(store.folder, study or store.study)
            stack.callback(after.close)
            return after

        yield open_again


def asking(study: Study, **changes: object) -> Study:
    return replace(study, question=replace(study.question, **changes))


def test_an_answer_is_in_the_log_at_once_and_then_in_the_table(store):
    store.put("anna", "3", "yes", 1.26)
    (line,) = (store.folder / LOG).read_text().splitlines()
    assert json.loads(line)["value"] == "yes"
    (row,) = table(store)
    fields = ("image_id", "rater", "value", "attribute", "seconds")
    assert tuple(row[name] for name in fields) == ("3", "anna", "yes", "dog", "1.3")


def test_many_answers_are_stored_in_time_that_grows_with_their_number(store, monkeypatch):
    """So the table, which is written whole, is not written for each of them."""
    written = []
    monkeypatch.setattr(
        "bias_pipeline.people.web.study.write_file", lambda *a, sync: written.append(a)
    )
    monkeypatch.setattr("bias_pipeline.people.web.study._PAUSE", 1000)
    for rater in range(50):
        store.put(f"r{rater}", "1", "yes", None)
    assert len(written) < 25


def test_the_next_process_knows_all_answers_but_half_a_line_of_a_kill(store, reopen):
    store.put("anna", "1", "yes", None)
    with (store.folder / LOG).open("ab") as file:
        file.write(b'{"image_id": "2", "rat')
    after = reopen(store)
    after.put("anna", "3", "no", None)
    assert reopen(after).n_answers("anna") == 2


@pytest.mark.parametrize("value", ["no", "yes"], ids=["another answer", "a page sent twice"])
def test_a_second_answer_is_the_one_answer(value, store, reopen):
    store.put("anna", "1", "yes", 1.0)
    store.put("anna", "1", value, 9.0)
    (row,) = table(store)
    assert (row["value"], row["seconds"]) == (value, "9.0" if value == "no" else "1.0")
    assert reopen(store).value("anna", "1") == value


def test_a_full_disk_stores_nothing_of_the_answer(store, monkeypatch, reopen):
    store.put("anna", "1", "yes", None)
    before = (store.folder / LOG).read_bytes()

    def raise_full(handle: int) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", raise_full)
        with pytest.raises(ResourceError, match="No space left"):
            store.put("anna", "2", "yes", None)
    assert (store.folder / LOG).read_bytes() == before
    assert store.value("anna", "2") is None
    store.put("anna", "2", "no", None)
    assert reopen(store).value("anna", "2") == "no"


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        (lambda study: asking(study, text="Is it a cat?"), "question"),
        (lambda study: asking(study, answers=("yes", "no", "perhaps")), "answers"),
        (lambda study: replace(study, photos=dict([*study.photos.items()][:2])), "items"),
    ],
    ids=["question", "answers", "photos"],
)
def test_a_folder_of_another_study_is_refused(change, differs, store, reopen):
    with pytest.raises(UsageError, match=f"differs in {differs}"):
        reopen(store, change(store.study))


@pytest.mark.parametrize("replaced", [False, True], ids=["log", "replaced log"])
def test_two_processes_do_not_share_a_folder(replaced, store):
    if replaced:
        (store.folder / LOG).unlink()
    with pytest.raises(ResourceError, match="another rate uses it"):
        AnswerStore(store.folder, store.study)


def replace_log(log: Path) -> None:
    """As an editor saves a file."""
    log.with_name("new").write_bytes(log.read_bytes())
    log.with_name("new").replace(log)


def empty_log(log: Path) -> None:
    log.write_bytes(b"")


def remove_folder(log: Path) -> None:
    shutil.rmtree(log.parent)


def append_to_log(log: Path) -> None:
    with log.open("ab") as file:
        file.write(log.read_bytes())


@pytest.mark.parametrize(
    "change", [replace_log, Path.unlink, empty_log, append_to_log, remove_folder]
)
def test_a_log_that_somebody_replaced_takes_no_answers_and_loses_none(change, store, reopen):
    for image in "123":
        store.put("anna", image, "yes", None)
    change(store.folder / LOG)
    for image in "45":
        with pytest.raises(ResourceError, match="all 3 answers that were taken are in") as refused:
            store.put("anna", image, "no", None)
    assert store.n_answers("anna") == 3
    command = re.search(r"\((mv .*?)\), and start", str(refused.value))
    assert command
    store.close()
    subprocess.run(command[1], shell=True, check=True)
    after = reopen(store)
    after.put("anna", "4", "no", None)
    assert [one.value for one in reopen(after).ratings()] == ["yes"] * 3 + ["no"]


def test_a_log_that_is_replaced_while_an_answer_is_written_does_not_count_it(store, monkeypatch):
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (sync(handle), replace_log(store.folder / LOG)))
    with pytest.raises(ResourceError, match="was replaced or changed"):
        store.put("anna", "1", "yes", None)
    assert store.value("anna", "1") is None


def test_a_line_of_deliveries_that_is_cut_is_left_out(store, reopen):
    store.deliveries.add("v", "1")
    path = store.folder / DELIVERIES
    path.write_bytes(path.read_bytes() + b'\n["v", "2')
    after = reopen(store)
    after.deliveries.add("v", "3")
    deliveries = reopen(after).deliveries
    assert [deliveries.has("v", image) for image in "123"] == [True, False, True]


def test_a_damaged_log_is_named(store):
    store.close()
    (store.folder / LOG).write_text("what\n")
    with pytest.raises(DataError, match=r"answers\.jsonl, line 1"):
        AnswerStore(store.folder, store.study)


def test_a_name_is_one_raters_who_goes_on_with_the_code_after_a_restart(store, reopen):
    visit, code = store.join("anna", "")
    text = "".join(path.read_text() for path in store.folder.iterdir())
    assert (visit in text, code in text) == (False, False)  # neither is readable on disk
    with pytest.raises(NameTakenError):
        store.join("anna", "00000000")
    after = reopen(store)
    later, fresh = after.join("anna", f" {code.upper()} ")
    assert (after.rater(visit), after.rater(later), fresh) == ("anna", "anna", "")


def test_each_rater_has_an_order_that_lasts(study):
    orders = {study.order(name) for name in ("anna", "ben", "cleo", "dan")}
    assert len(orders) == 4
    assert study.order("anna") == study.order("anna")
    assert {tuple(sorted(order)) for order in orders} == {tuple(sorted(study.images))}


# --- what reads them


def test_answers_are_read_without_what_serves_pages():
    program = "import sys; sys.modules['starlette'] = None; import bias_pipeline.people.web.summary"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.fixture
def gender_answers(tmp_path: Path, study: Study) -> Path:
    """Three raters' genders of six photos."""
    question = RatingQuestion("Whom do you see?", "gender", ("male", "female"))
    store = AnswerStore(tmp_path / "genders", replace(study, question=question))
    for rater in ("anna", "ben", "cleo"):
        for image in study.images:
            value = "female" if int(image) < 4 else "male"
            value = CANNOT_TELL if image == "6" and rater != "ben" else value
            store.put(rater, image, "male" if (rater, image) == ("ben", "1") else value, None)
    store.close()
    return store.folder


def test_data_sets_read_the_answers_with_their_raters(gender_answers):
    gender = cell(["attribute=gender"]).build("attribute")
    labels = read_labels(gender_answers / TABLE, "coco", gender, {})
    assert labels.annotators == ("anna", "ben", "cleo")
    assert [labels.raw[image] for image in "12345"] == ["female"] * 3 + ["male"] * 2
    assert labels.map.is_unsure(labels.raw["6"])
    assert "Fleiss' kappa" in labels.notes[-1]
    assert read_labels(gender_answers / TABLE, "coco", gender, {}, "ben").raw["1"] == "male"


@pytest.mark.parametrize("name", group_choices("attribute"))
def test_answers_about_every_attribute_are_read_as_its_groups(name, tmp_path):
    attribute = cell([f"attribute={name}"]).build("attribute")
    question = RatingQuestion("?", attribute.name, tuple(attribute.groups), several=True)
    items = {str(number): value for number, value in enumerate(question.values)}
    store = AnswerStore(tmp_path, Study(question, {}, items))
    for image, value in items.items():
        store.put("anna", image, value, None)
    store.close()
    labels = read_labels(tmp_path / TABLE, "coco", attribute, {})
    groups = [labels.map.group_of(labels.raw[image]) for image in items]
    assert [group for group in groups if group] == list(attribute.groups)


def test_several_people_are_an_answer_of_their_own_and_no_doubt(tmp_path, study):
    question = RatingQuestion("Whom do you see?", "gender", ("male", "female"), several=True)
    assert list(question.values) == ["male", "female", SEVERAL, CANNOT_TELL]
    store = AnswerStore(tmp_path / "several", replace(study, question=question))
    for image, value in zip("123", ("male", SEVERAL, CANNOT_TELL), strict=True):
        store.put("anna", image, value, None)
    store.close()
    gender = cell(["attribute=gender"]).build("attribute")
    labels = read_labels(store.folder / TABLE, "coco", gender, {})
    assert labels.map.group_of(labels.raw["2"]) is None
    assert [labels.map.is_unsure(labels.raw[image]) for image in "23"] == [False, True]
    assert any(
        line.endswith("cannot tell: 1, several people: 1") for line in agreement_lines(store.folder)
    )


def test_agreement_is_that_of_the_answers(gender_answers):
    lines = agreement_lines(gender_answers)
    assert "18 answers of 3 raters about 6 items; cannot tell: 2" in lines
    (kappa,) = (line for line in lines if line.startswith("Fleiss"))
    assert kappa.startswith("Fleiss' kappa 0.62 [")


def test_known_answers_are_scored(store, reopen):
    gold = {"1": "yes", "2": "yes"}
    after = reopen(store, replace(store.study, gold=gold))
    for image, value in zip("123", ("yes", "no", "yes"), strict=True):
        after.put("anna", image, value, None)
    lines = agreement_lines(after.folder)
    assert "anna: 1 of 2 known answers [9%, 91%]" in lines
    assert lines[-1].startswith("all raters: 50% of known answers")


def test_ranks_have_an_alpha_of_their_own(store, tmp_path):
    question = RatingQuestion("How large?", "size", ("1", "2", "3"), ordinal=True)
    ranked = AnswerStore(tmp_path / "ranks", replace(store.study, question=question))
    for image, (one, other) in zip("1234", ("11", "22", "33", "23"), strict=True):
        ranked.put("anna", image, one, None)
        ranked.put("ben", image, other, None)
    ranked.close()
    assert any("alpha for ordinal data" in line for line in agreement_lines(ranked.folder))


@pytest.mark.parametrize("started", [False, True])
def test_a_study_without_answers_says_so(started, store, tmp_path):
    with pytest.raises(ResourceError, match="nobody has answered" if started else "holds no study"):
        agreement_lines(store.folder if started else tmp_path)


def test_a_cell_that_a_spreadsheet_would_run_is_quoted(store):
    question = RatingQuestion("Formula?", "sum", ("=1+1", "no"))
    other = AnswerStore(store.folder.with_name("sums"), replace(store.study, question=question))
    other.put("anna", "1", "=1+1", None)
    other.close()
    assert "'=1+1" in (other.folder / TABLE).read_text()
    assert json.loads((other.folder / LOG).read_text())["value"] == "=1+1"
