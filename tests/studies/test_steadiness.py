"""Sensitivity and consistency: printed tables, planted scores and finished runs."""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bias_pipeline.commands.main import main
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.results.rows import Result, Row
from bias_pipeline.stats.bootstrap import Draws
from bias_pipeline.studies.attacker_agreement import (
    Variants,
    agreements,
    coefficient_of_variation,
    reduction,
    sensitivity,
    variants,
)
from experiments.encoder_sensitivity.published import coefficients, consistency, reductions, scores
from tests.report.test_tables import row

TWO = {"sat": {"lstm": 0.1, "ngram": 0.3}, "nic": {"lstm": 0.2, "ngram": 0.2}}


def results(
    table: Mapping[str, Mapping[str, float]] = TWO, metric: str = "lic", **same: str
) -> list[Result]:
    """A finished run for each captioner and encoder."""
    collected = []
    for captioner, by_encoder in table.items():
        for encoder, value in by_encoder.items():
            name = f"{metric}-{captioner}-{encoder}"
            fields = {"run_id": name, "captioner": captioner, "encoder": encoder, "metric": metric}
            line = row(value=value, **fields, **same)
            collected.append(Result(name, [line], {"metric": {"neutral": {"score": 0.0}}}))
    return collected


def draws_of(
    scored: list[Result], spread: float = 0.01, n: int = 200
) -> dict[str, dict[str, Draws]]:
    """Draws of each, independent, around its value."""
    generator = np.random.default_rng(1)
    by_run = {}
    for one in scored:
        value = one.rows[0].value
        draws = value + spread * generator.normal(size=(n, 2))
        by_run[one.run_id] = {"score": Draws(np.full(2, value), draws)}
    return by_run


# --- printed tables


@pytest.mark.parametrize(("metric", "follow", "off"), [("dbac", 50, 0.009), ("lic", 21, 2)])
def test_printed_coefficients_follow_from_printed_scores(metric, follow, off):
    """Table 15b holds scores of 1e-4 with four decimals, of which LIC's cannot follow."""
    query = coefficients().query("metric == @metric")
    differences = (query["ours"] - query["printed"]).abs()
    assert (int((differences <= 0.005).sum()), bool(differences.max() < off)) == (follow, True)


def test_the_printed_reduction_is_the_mean_over_captioners():
    row = reductions().iloc[0]
    assert row["from scores"] == pytest.approx(row["printed"], abs=0.01)


def test_a_printed_mean_that_is_not_that_of_its_rows():
    row = reductions().iloc[1]
    assert (round(row["mean of printed rows"], 1), row["printed"]) == (75.8, 69.88)


@pytest.mark.parametrize(
    ("line", "share", "pearson", "spearman"),
    [
        ("Table 4, LIC", 11.11, 0.93, 0.93),
        ("Table 4, ImageCaptioner2", 0, 0.96, 0.75),
        ("Table 8, LIC", 11.11, 0.50, 0.51),
        ("Table 8, ImageCaptioner2", 0, 0.96, 0.98),
    ],
)
def test_conflicts_and_correlations_of_printed_tables(line, share, pearson, spearman):
    row = consistency().loc[line]
    assert row[["conflicts (%)", "Pearson", "Spearman"]].tolist() == pytest.approx(
        [share, pearson, spearman], abs=0.006
    )


# --- arithmetic


def test_the_coefficient_does_not_depend_on_the_unit():
    values = np.array([0.1, 0.25, 0.2])
    assert coefficient_of_variation(100 * values) == pytest.approx(coefficient_of_variation(values))


def test_one_variant_has_no_coefficient():
    assert np.isnan(coefficient_of_variation(np.array([[0.3]]))).all()


def test_a_reduction_against_itself_is_none():
    assert reduction(scores("10"), scores("10")).mean.value == 0


THREE = {"sat": {"lstm": 0.1, "ngram": 0.3, "mpnet": 0.9}}


def test_against_a_number_that_does_not_vary_there_is_no_reduction():
    one, other = (Variants.of_table("x", {"sat": {"a": 1.0, "b": b}}) for b in (2.0, 1.0))
    assert np.isnan(reduction(one, other).mean.value)


def test_a_reduction_is_of_the_variants_that_both_have():
    one, two = Variants.of_table("a", {"sat": TWO["sat"]}), Variants.of_table("b", THREE)
    there, back = reduction(one, two), reduction(two, one)
    assert (there.mean.value, back.mean.value) == (0, 0)
    assert there.left_out == ("mpnet",)


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        ({"sat": {"lstm": 0.1, "bert": 0.2}}, THREE, "fewer than two variants"),
        ({"x": {"p": 1, "q": 2}}, TWO, "share no captioner"),
    ],
)
def test_what_shares_too_little_is_not_compared(one, other, message):
    with pytest.raises(DataError, match=message):
        reduction(Variants.of_table("a", one), Variants.of_table("b", other))


def test_the_interval_of_a_mean_holds_it():
    result = results({f"c{i}": {"lstm": 0.1 * i, "ngram": 0.2 * i} for i in range(1, 6)})
    (variant,) = variants(result, draws_of(result), ["encoder"])
    mean = sensitivity(variant).mean
    assert mean.low < mean.value < mean.high


def test_without_draws_there_is_no_interval():
    (variant,) = variants(results(), {}, ["encoder"])
    assert np.isnan(sensitivity(variant).mean.low)


def test_a_conflict_is_named():
    table = {"sat": {"lstm": 0.1, "ngram": -0.1}, "nic": {"lstm": 0.2, "ngram": 0.3}}
    (agreement,) = agreements(variants(results(table), {}, ["encoder"])[0])
    assert (agreement.conflicts.value, agreement.conflicting) == (0.5, ("sat",))


def test_correlations_of_scipy():
    from scipy import stats

    pairs = np.random.default_rng(2).integers(0, 5, (9, 2))
    table = {f"c{i}": {"a": a, "b": b} for i, (a, b) in enumerate(pairs)}
    (agreement,) = agreements(Variants.of_table("x", table))
    measured = (agreement.pearson, agreement.spearman, agreement.kendall)
    theirs = (stats.pearsonr, stats.spearmanr, stats.kendalltau)
    expected = [function(*pairs.T).statistic for function in theirs]
    assert [number.value for number in measured] == pytest.approx(expected)


# --- finished runs


def test_what_is_the_same_stands_in_the_setting():
    (variant,) = variants(results(alignment="top_n"), {}, ["encoder"])
    setting = variant.setting
    assert (setting.headline, setting.encoder, setting.alignment) == ("lic", "", "top_n")


def test_variants_are_named_by_what_varies():
    assert variants(results(), {}, ["encoder"])[0].variants == ("lstm", "ngram")


def test_a_captioner_without_a_variant_is_left_out_and_told():
    lines = [*results(), *results({"oscar": {"lstm": 0.1}})]
    (variant,) = variants(lines, {}, ["encoder"])
    assert (variant.captioners, variant.absent) == (("sat", "nic"), ("oscar",))


def test_metrics_may_be_the_variants():
    table = {"sat": {"ngram": 0.1}, "nic": {"ngram": 0.2}}
    lines = [*results(table), *results(table, metric="leakage")]
    assert variants(lines, {}, ["metric"])[0].variants == ("lic", "leakage")


def test_each_setting_of_a_metric_is_a_variant_where_metrics_are():
    table = {"sat": {"ngram": 0.1}, "nic": {"ngram": 0.2}}
    same = [variant for order in (0, 1) for variant in with_order(results(table), order)]
    (variant,) = variants([*same, *results(table, metric="leakage")], {}, ["metric"])
    assert variant.variants == ("lic metric.order=0", "lic metric.order=1", "leakage")


def rename_row(one: Result, name: str) -> Row:
    return replace(one.rows[0], run_id=name)


def test_two_runs_of_one_variant_are_refused():
    again = [replace(one, rows=[rename_row(one, f"{one.run_id}-2")]) for one in results()]
    with pytest.raises(
        DataError, match=r"two runs of sat that do not differ in what is compared \(lstm\)"
    ):
        variants([*results(), *again], {}, ["encoder"])


def test_a_value_within_a_choice_may_vary():
    table = {name: {"ngram": values["ngram"]} for name, values in TWO.items()}
    lines = [one for order in (0, 1) for one in with_order(results(table), order)]
    (variant,) = variants(lines, {}, ["metric.order"])
    assert variant.variants == ("metric.order=0", "metric.order=1")


def with_order(scored: list[Result], order: int) -> list[Result]:
    """The same runs with a value within a choice."""
    manifest = {"config": {"order": order}, "keys": {}}
    return [
        replace(
            one,
            rows=[rename_row(one, f"{one.run_id}-{order}")],
            manifest={**one.manifest, **manifest},
        )
        for one in scored
    ]


def test_runs_are_set_beside_those_that_share_their_values():
    """Though only the runs of one variant tell them: they alone were tried with two orders."""
    both = with_order(results(), 1)
    more = with_order([one for one in results() if one.rows[0].encoder == "ngram"], 2)
    (variant,) = variants([*both, *more], {}, ["encoder"])
    assert (variant.variants, variant.setting.others) == (("lstm", "ngram"), "metric.order=1")


def test_an_unknown_key_is_refused():
    with pytest.raises(UsageError, match="did you mean 'encoder'"):
        variants(results(), {}, ["encodr"])


SWEEP = (
    *("metric=lic", "scoring=lic,accuracy", "seeds=2", "logger=csv"),
    *("dataset.n_images=120", "stats.resamples=20", "metric.positions=1"),
)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real sweep over two kinds of guesses."""
    folder = tmp_path_factory.mktemp("outputs")
    assert main([*SWEEP, "captioner=faithful,stereotyper", f"paths.outputs={folder}"]) == 0
    return folder


@pytest.mark.parametrize(("word", "message"), [("sensitivity", "mean"), ("consistency", "Kendall")])
def test_runs_are_analysed_without_training(outputs, word, message, capfd):
    assert main(["analysis", word, str(outputs), "--over", "scoring"]) == 0
    assert message in capfd.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["sensitivity", "--over", "scoring", "--against", "lci"], 2, "did you mean 'lic'"),
        (["consistency", "--over", "encoder"], 3, "encoder=ngram,lstm"),
    ],
    ids=["an unknown metric", "nothing varies"],
)
def test_what_cannot_be_analysed_is_refused(words, code, message, outputs, capfd):
    assert main(["analysis", words[0], str(outputs), *words[1:]]) == code
    assert message in capfd.readouterr().err


def test_variants_that_one_captioner_lacks_are_named_as_the_reason(outputs, tmp_path, capfd):
    folder = shutil.copytree(outputs, tmp_path / "outputs")
    assert (
        main([*SWEEP, "scoring=confidence", "captioner=faithful", f"paths.outputs={folder}"]) == 0
    )
    assert main(["analysis", "consistency", str(folder), "--over", "scoring"]) == 3
    assert "no two captioners were scored under all variants" in capfd.readouterr().err


def test_a_single_captioner_varies_too():
    (variant,) = variants(results({"sat": TWO["sat"]}), {}, ["encoder"], fewest=1)
    assert sensitivity(variant).mean.value == pytest.approx(
        coefficient_of_variation(np.array([[0.1, 0.3]]))[0]
    )


def test_a_single_captioner_has_no_order_to_keep():
    assert variants(results({"sat": TWO["sat"]}), {}, ["encoder"]) == []


def test_two_captioners_have_no_correlation():
    table = {"sat": {"a": 0.1, "b": 0.2}, "nic": {"a": 0.3, "b": 0.5}}
    result = results({c: {"lstm": v["a"], "ngram": v["b"]} for c, v in table.items()})
    (agreement,) = agreements(variants(result, draws_of(result), ["encoder"])[0])
    for measure in (agreement.pearson, agreement.spearman, agreement.kendall):
        assert np.isnan([measure.value, measure.low, measure.high]).all()
    assert agreement.conflicts.value == 0


def test_three_captioners_have_one():
    table = {f"c{i}": {"lstm": 0.1 * i, "ngram": 0.2 * i} for i in range(3)}
    (agreement,) = agreements(variants(results(table), {}, ["encoder"])[0])
    assert agreement.pearson.value == pytest.approx(1)
