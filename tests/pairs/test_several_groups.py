"""Three groups or more at once: Cochran's Q under exchanges of groups within sets."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from bias_pipeline.io.hashing import hash_ids
from bias_pipeline.pairs.several_groups import exchange_p
from bias_pipeline.stats.sign_flips import mean_p
from experiments.counterfactual.twin_worlds import metric
from tests.pairs.test_counterfactual import PERSONS, corpus_of

KEYS = hash_ids(map(str, range(400)))


def cochrans_q(table: np.ndarray) -> float:
    """As Cochran (1950) writes it, with row and column totals."""
    k = table.shape[1]
    columns, rows = table.sum(axis=0), table.sum(axis=1)
    above = (k - 1) * (k * (columns**2).sum() - table.sum() ** 2)
    return float(above / (k * rows.sum() - (rows**2).sum()))


@pytest.mark.parametrize("seed", range(3))
def test_the_p_is_that_of_q_under_all_exchanges(seed):
    table = (np.random.default_rng(seed).random((5, 3)) < [0.2, 0.5, 0.9]).astype(float)
    table = table[np.ptp(table, axis=1) > 0]
    null = [
        cochrans_q(np.array([row[list(order)] for row, order in zip(table, orders, strict=True)]))
        for orders in itertools.product(itertools.permutations(range(3)), repeat=len(table))
    ]
    observed = cochrans_q(table)
    more, equal = np.array(null) > observed + 1e-9, np.abs(np.array(null) - observed) < 1e-9
    assert exchange_p(KEYS[: len(table)], table) == pytest.approx(more.mean() + equal.mean() / 2)


def test_of_two_groups_it_is_mcnemars():
    table = np.array([[0.0, 1.0]] * 8 + [[1.0, 0.0]] * 2)
    assert exchange_p(KEYS[:10], table) == pytest.approx(
        mean_p(KEYS[:10], table[:, 1] - table[:, 0])
    )


def test_in_many_sets_it_is_that_of_chi_squared():
    table = (np.random.default_rng(4).random((400, 3)) < [0.4, 0.45, 0.5]).astype(float)
    differing = np.ptp(table, axis=1) > 0
    q = cochrans_q(table)
    expected = stats.chi2.sf(q, 2)
    assert exchange_p(KEYS[differing], table[differing]) == pytest.approx(expected, abs=0.015)
    contingency = pytest.importorskip("statsmodels.stats.contingency_tables")
    known = contingency.cochrans_q(table)
    assert (known.statistic, known.pvalue) == pytest.approx((q, expected))


def score_of_three(looks: dict[str, str], n_sets: int = 12):
    """The score of three groups, whose persons look as they are said to, or plain."""

    def caption(number: int, person: tuple[str, str], _: int) -> str:
        group = "other" if person[1] == "dark" else person[0]
        look = f" The person looks {looks[group]}." if group in looks else ""
        return f"a person stands in the hall.{look}"

    corpus = corpus_of(caption, n_sets, persons=PERSONS[:3])
    names = ("male", "female", "other")
    codes = np.tile([0, 1, 2], n_sets)
    grouping = replace(corpus.groupings["gender"], names=names, codes=codes)
    attribute = metric().attribute
    wider = replace(attribute, groups=names, words={**attribute.words, "other": ("enby",)})
    of_three = replace(corpus, groupings={"gender": grouping})
    return replace(metric(), attribute=wider).compute(of_three, splits=())


def test_a_class_of_one_group_is_named_with_all_shares_and_with_its_pairs():
    scored = score_of_three({"other": "elegant"})
    part = scored.parts["class:attractiveness"]
    assert (part.value, scored.parts["class:attractiveness:other"].value) == (1.0, 1.0)
    assert part.p_value < 0.001
    assert scored.parts["score"].p_value == part.p_value
    stored = scored.audit["counterfactual"]
    assert (stored["answer"], list(stored["named"])) == ("yes", ["attractiveness"])
    first, *others = stored["sentences"]
    assert first.startswith("attractiveness (male 0.0 %, female 0.0 %, other 100.0 % of captions)")
    assert sum("points more of other" in text for text in others) == 2


def test_groups_that_are_described_alike_have_no_answer():
    scored = score_of_three({})
    stored = scored.audit["counterfactual"]
    assert stored["answer"] == "cannot_tell"
    assert np.isnan(scored.parts["class:attractiveness"].p_value)


def test_few_complete_sets_leave_the_pairs_of_groups_alone():
    assert "class:attractiveness" not in score_of_three({"other": "elegant"}, 5).parts
