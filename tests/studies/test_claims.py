"""The register of claims: its tests on small numbers, its files, and what it must find."""

import shutil
from functools import cache
from pathlib import Path

import pytest
import yaml

from bias_pipeline.errors import DataError, ResourceError
from experiments.claims.judge import (
    REGISTER,
    TESTS,
    ClaimCheck,
    ClaimLine,
    ClaimNumber,
    Series,
    all_above,
    all_below,
    all_lower,
    claims_report,
    highest,
    is_raised,
    judge_claims,
    lowest,
    mean_is,
    merge_checks,
    most_above,
    not_copied,
    pearson_is,
    register,
    rising,
    same_numbers,
    same_order,
    same_sign,
    times,
)
from tests.corpora import REPOSITORY

FOLDER = REPOSITORY / "experiments"


@cache
def lines() -> list[ClaimLine]:
    return judge_claims(FOLDER)


def series(*values: float, half: float = float("nan")) -> Series:
    return {
        name: ClaimNumber(value, half) for name, value in zip("abcdefghij", values, strict=False)
    }


UP = series(*range(1, 9))


@pytest.mark.parametrize(
    ("verdict", "follows"),
    [
        (same_order(UP, series(*range(2, 10))), "yes"),
        (same_order(series(1, 2, 3), series(1, 3, 2)), "not shown"),
        (all_above(series(0.1, 2)), "yes"),
        (all_above(series(0.0, 2)), "no"),
        (all_above(series(0.1, 2, half=0.2), sure=True), "no"),
        (all_below(series(-0.1, -2)), "yes"),
        (all_below(series(-0.1, -2, half=0.2), sure=True), "no"),
        (most_above(series(1, 1, -1)), "yes"),
        (most_above(series(1, -1)), "no"),
        (all_lower(series(1, 2), series(2, 3)), "yes"),
        (all_lower(series(1, 3), series(2, 3)), "no"),
        (lowest(series(1, 2, 3), "a"), "yes"),
        (lowest(series(1, 1, 3), "a"), "no"),
        (highest(series(1, 2, 3), "c"), "yes"),
        (highest(series(1, 2, 3), "b"), "no"),
        (is_raised(series(1, 5, half=1), "b", "a"), "yes"),
        (is_raised(series(1, 2, half=1), "b", "a"), "no"),
        (is_raised(series(1, 2, half=1), "b", "a", claimed=False), "yes"),
        (is_raised(series(1, 2), "b", "a"), "yes"),
        (is_raised(series(1, 2), "b", "z"), "not tested"),
        (times(series(1, 3.2), "b", "a", about=3), "yes"),
        (times(series(1, 3.6), "b", "a", about=3), "no"),
        (times(series(1, 3.6), "z", "a", about=3), "not tested"),
        (mean_is(series(1, 2), 1.5), "yes"),
        (mean_is(series(1, 2), 1.6), "no"),
        (pearson_is(UP, series(*range(2, 10)), claimed=100), "yes"),
        (pearson_is(UP, series(*range(2, 10)), claimed=97), "no"),
        (same_numbers(series(1, 2), series(1.01, 2)), "yes"),
        (same_numbers(series(1, 2), series(1, -2)), "no"),
        (same_numbers(series(1, 2), series(1, 3)), "no"),
        (not_copied(series(1, 2), series(1, 2)), "no"),
        (not_copied(series(1, 2), series(1, 3)), "yes"),
        (same_sign(series(1, -2), series(3, -1)), "yes"),
        (same_sign(series(1, -2), series(3, 1)), "no"),
        (rising(series(1, 2, 3)), "yes"),
        (rising(series(1, 1, 3)), "no"),
    ],
)
def test_a_test_says_what_follows(verdict, follows):
    assert verdict.follows == follows


def test_every_test_is_used_by_the_register_and_tested_here():
    used = {check["test"] for entry in register(FOLDER) for check in entry["checks"]}
    assert used == set(TESTS)


@pytest.mark.parametrize(
    ("item", "follows"),
    [
        (["yes", "yes"], "yes"),
        (["yes", "no"], "depends"),
        (["no", "no"], "no"),
        (["not tested", "not tested"], "not tested"),
    ],
)
def test_readings_are_put_together(item, follows):
    assert merge_checks([ClaimCheck("", f) for f in item]).follows == follows


def test_holm_counts_what_is_beyond_chance():
    result = all_lower(series(1, 2, half=0.1), series(2, 2.05, half=0.1))
    assert result.finding == "2 of 2 lower, 1 significantly (Holm)"


@pytest.mark.parametrize(
    ("claim", "what", "finding", "follows"),
    [
        ("3 race less apparent than gender", "LSTM", "6 of 9 lower, 3 significantly", "no"),
        ("mean reduction of variation", "Table 5b", "average 75.80, printed 69.88", "no"),
        ("mean reduction of variation", "Table 6a", "average 59.52, printed 59.52", "yes"),
        (
            "varies less than LIC between encoders",
            "gender, T→A, six networks from scratch, by the preset",
            "7 of 7 lower",
            "yes",
        ),
        ("Tables 9 and 10 agree", "Table 9", "opposite sign: att2in, blip", "no"),
        ("Tables 4 and 11 agree", "Table 4", "blip 11.26 and 6.49", "no"),
        ("Tables 10 and 13 differ", "llava", "6 of 6 cells equal", "no"),
        ("Equalizer three and two times", "Table 3, lic", "3.19 times", "yes"),
        ("ranking consistency", "SAT and GRIT", "96.14", "no"),
        (
            "contextual substitution keeps more meaning",
            "16, race, constant below G",
            "10 of 13",
            "no",
        ),
        ("agrees with people more than LIC", "LIC and people", "54.74", "yes"),
        ("race: NIC least, NIC+ most", "NIC least, SAT", "nic 5.19, next transformer", "yes"),
        ("the Gender Score balances", "Table 3", "7 of 7 lower", "yes"),
        ("the Gender Score balances", "GloVe", "0 of 7 lower", "no"),
        ("objects: close to co-occurrence", "motorcycle", "not: blip_2 88 and 82", "no"),
        ("which base", "RELIC, gender, over nic_plus, BERT_PRE", "+0.7", "no"),
        ("which base", "RELIC, gender, over nic, BERT_PRE", "+1.9", "yes"),
    ],
)
def test_known_entries(claim, what, finding, follows):
    """What was computed from the printed tables by other means."""
    (line,) = (x for x in lines() if x.claim == claim and what in x.what)
    assert finding in line.verdict.finding
    assert line.verdict.follows == follows


def test_every_claim_is_said_in_words():
    assert all(len(entry["says"].split()) >= 6 and entry["checks"] for entry in register(FOLDER))


def test_one_paper_can_be_asked_for():
    assert {line.paper for line in judge_claims(FOLDER, "DBAC v4")} == {"DBAC v4"}


def broken_register(folder: Path, **changes: object) -> Path:
    """A copy of the register whose first check is changed."""
    for name in ("claims", "published"):
        shutil.copytree(FOLDER / name, folder / name)
    content = yaml.safe_load((folder / REGISTER).read_text(encoding="utf-8"))
    content["claims"] = content["claims"][:1]
    content["claims"][0]["checks"] = [{**content["claims"][0]["checks"][0], **changes}]
    (folder / REGISTER).write_text(yaml.safe_dump(content), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"test": "same_ordr"}, DataError, r"claims\.yaml: test 'same_ordr' .*'same_order'"),
        (
            {"a": {"paper": "relic", "table": 9, "column": "lic"}},
            DataError,
            r"claims\.yaml: no cells fit",
        ),
        ({"a": {"rows": "nothing", "part": "score"}}, ResourceError, "from a complete checkout"),
    ],
    ids=["unknown test", "no such cells", "absent study"],
)
def test_a_check_that_cannot_be_made_is_refused(changes, error, message, tmp_path):
    with pytest.raises(error, match=message):
        judge_claims(broken_register(tmp_path, **changes))


def test_the_committed_results_are_up_to_date():
    """Else: python -m experiments.claims.judge > experiments/claims/RESULTS.md."""
    committed = (FOLDER / "claims" / "RESULTS.md").read_text(encoding="utf-8")
    assert f"{claims_report(lines())}\n" == committed


def test_no_line_of_the_table_is_torn():
    table = [line for line in claims_report(lines()).splitlines() if line.startswith("| ")]
    assert {line.count(" | ") for line in table} <= {3, 5}
