"""A study of pairs in ``rate``: what raters see and what is gathered. All answers are made up."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="needs the extra web")

from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.people.commands.rated_items import PAIR_QUESTION, pair_study
from bias_pipeline.people.commands.web import rate_command, rate_parser
from bias_pipeline.people.web.rating import RatingPages
from bias_pipeline.people.web.study import AnswerStore
from bias_pipeline.people.web.summary import number_correlations, pair_lines
from bias_pipeline.report.caption_pairs import CaptionPair, write_pairs
from bias_pipeline.results.rows import Result
from bias_pipeline.results.store import ResultStore
from tests.people.web.conftest import Visitor
from tests.report.test_tables import row


def pair(number: int, captioner: str = "mine", **changes: str) -> CaptionPair:
    groups = ("male", "female") if number % 2 else ("female", "male")
    made = CaptionPair(
        f"pair{number:03d}", "gender", "coco", captioner,
        f"{number}0", groups[0], f"a {groups[0]} <b>rider</b> {number}",
        f"{number}1", groups[1], f"a {groups[1]} rider & dog {number}", 0.8, number % 3,
    )  # fmt: skip
    return replace(made, **changes)


def file_of(folder: Path, captioner: str = "mine", n: int = 8) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{captioner}.csv"
    path.write_bytes(write_pairs([pair(number, captioner) for number in range(n)]))
    return path


def open_study(path: Path, out: Path, *words: str) -> AnswerStore:
    options = rate_parser().parse_args(["--pairs", str(path), "--out", str(out), *words])
    study, pairs = pair_study(options)
    store = AnswerStore(out, study)
    (out / "pairs.csv").write_bytes(write_pairs(pairs))
    return store


def answer_pairs(path: Path, out: Path, *raters: str, choose) -> None:
    """A study with made-up answers."""
    store = open_study(path, out)
    try:
        for rater in raters:
            for name in store.study.images:
                store.put(rater, name, choose(rater, int(name.removeprefix("pair"))), 1.0)
    finally:
        store.close()


@pytest.fixture
def store(tmp_path):
    store = open_study(file_of(tmp_path / "files"), tmp_path / "out")
    yield store
    store.close()


def test_raters_see_both_captions_escaped_with_four_answers(store):
    anna = Visitor(RatingPages(store))
    anna.join("anna")
    page = anna.client.get("/item/1").text
    assert PAIR_QUESTION in page
    assert page.count("<blockquote>") == 2
    assert "&lt;b&gt;rider&lt;/b&gt;" in page
    assert "rider &amp; dog" in page
    assert re.findall(r'name="value" value="(\w+)"', page) == ["A", "B", "alike", "Unsure"]
    for hidden in ("pair0", "mine", "0.8", "concepts"):
        assert hidden not in page


def test_answers_lead_through_all_pairs_and_can_be_continued(store, tmp_path):
    anna = Visitor(RatingPages(store))
    anna.join("anna")
    place = "/item/1"
    for _ in range(5):
        place = anna.answer(int(place.rpartition("/")[2]), "alike")
    store.close()
    reopened = open_study(tmp_path / "files" / "mine.csv", tmp_path / "out")
    assert reopened.n_answers("anna") == 5
    reopened.close()


def test_other_pairs_or_a_second_caption_that_changed_are_another_study(store, tmp_path):
    store.close()
    with pytest.raises(UsageError, match="holds another study"):
        open_study(file_of(tmp_path / "files", n=9), tmp_path / "out")
    path = tmp_path / "other.csv"
    pairs = [pair(number) for number in range(8)]
    path.write_bytes(write_pairs([*pairs[:7], replace(pairs[7], caption_b="other words")]))
    with pytest.raises(UsageError, match="holds another study"):
        open_study(path, tmp_path / "out")


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["--captions", "a.json"], "leave --captions out"),
        (["--attribute", "gender"], "leave --attribute out"),
        (["photos"], "leave photos out"),
        (["--runs", "outputs"], "--runs DIR goes with --gather"),
    ],
)
def test_words_that_do_not_fit_pairs_are_refused(words, fault, tmp_path):
    path = file_of(tmp_path)
    with pytest.raises(UsageError, match=fault):
        rate_command([*words, "--pairs", str(path), "--out", str(tmp_path / "out")])


def test_what_raters_say_is_gathered_with_their_agreement(tmp_path, capsys):
    path = file_of(tmp_path / "files", n=40)

    def choose(rater: str, number: int) -> str:
        if number % 4 == 0:
            return "alike"
        return "A" if pair(number).group_a == "female" else "B"

    assert pair_lines(tmp_path) == []  # of a folder without pairs
    answer_pairs(path, tmp_path / "out", "anna", "ben", "cleo", choose=choose)
    rate_command(["--gather", str(tmp_path / "out")])
    printed = capsys.readouterr().out
    assert "120 answers of 3 raters about 40 items" in printed
    assert "Krippendorff's alpha 1.00" in printed
    assert "mine: in 75.0 [" in printed
    assert "the caption of female in 75.0 [" in printed
    assert "of male in 0.0 [" in printed
    assert "r = " in printed


def studies(tmp_path: Path, shares: dict[str, int]) -> list[Path]:
    """A study for each captioner, in which raters choose A so many times of ten."""
    folders = []
    for captioner, share in shares.items():
        path = file_of(tmp_path / "files", captioner, 20)
        answer_pairs(
            path,
            tmp_path / captioner,
            "anna",
            choose=lambda _, number, share=share: "A" if number % 10 < share else "alike",
        )
        folders.append(tmp_path / captioner)
    return folders


def result_of(captioner: str, value: float) -> Result:
    fields = {"metric": "descriptions", "dataset": "coco", "attribute": "gender"}
    headline = row(run_id=f"of_{captioner}", captioner=captioner, value=value, **fields)
    return Result(f"of_{captioner}", [headline], {"started": "2026-01-01"})


def test_numbers_are_correlated_with_raters_share_over_captioners(tmp_path, capsys):
    shares = {"one": 2, "two": 4, "three": 9}
    folders = studies(tmp_path, shares)
    results = [result_of(name, share / 20) for name, share in shares.items()]
    (line,) = number_correlations(folders, [*results, result_of("four", 0.9)])
    assert line.name[:2] == ("descriptions", "score")
    assert line.n_captioners == 3
    assert line.correlation.value == pytest.approx(1)
    store = ResultStore(tmp_path / "runs")
    for result in results:
        store.save(result)
    rate_command(["--gather", *map(str, folders), "--runs", str(tmp_path / "runs")])
    assert "1.00 [-1.00, 1.00]" in capsys.readouterr().out.replace("\u2212", "-")


def test_two_captioners_give_no_correlation(tmp_path, capsys):
    shares = {"one": 2, "two": 4}
    folders = studies(tmp_path, shares)
    store = ResultStore(tmp_path / "runs")
    for name, share in shares.items():
        store.save(result_of(name, share / 20))
    rate_command(["--gather", *map(str, folders), "--runs", str(tmp_path / "runs")])
    assert "needs 3 of them, and here are 2" in capsys.readouterr().out


def test_two_studies_of_one_captioner_are_refused(tmp_path):
    (folder,) = studies(tmp_path, {"one": 2})
    answer_pairs(tmp_path / "files" / "one.csv", tmp_path / "more", "ben", choose=lambda *_: "A")
    with pytest.raises(DataError, match="gather one study of each captioner"):
        number_correlations([folder, tmp_path / "more"], [result_of("one", 0.1)])
