"""The published captions give the published ranking of captioners."""

import csv
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.split import seeds_of
from bias_pipeline.run import compose
from bias_pipeline.text.scored_text import declined_images, declines, openings, preamble_of
from tests.corpora import DATA, REPOSITORY

CAPTIONERS = ("nic", "sat", "fc", "att2in", "transformer", "oscar", "nic_plus")


def printed_lic(column: str) -> dict[str, float]:
    """RELIC Table 1, LIC with an LSTM attacker, in per cent."""
    with (REPOSITORY / "experiments" / "published" / "relic.csv").open(newline="") as file:
        return {
            line["row"]: float(line["value"])
            for line in csv.DictReader(file)
            if (line["table"], line["part"], line["column"]) == ("1", "LIC_LSTM", column)
        }


@pytest.fixture(scope="module")
def correlations(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """LIC_M of the real captioners, in per cent."""
    if not (DATA / "lic").is_dir():
        pytest.skip(f"no real captions at {DATA}; set BIAS_PIPELINE_DATA to have this test run")
    words = ["dataset=lic", f"dataset.root={DATA}/lic/bias_data", "metric.sides=[model]"]
    words += ["stats.resamples=2", f"paths.outputs={tmp_path_factory.mktemp('real')}"]
    cell = compose.cell(words)
    dataset, metric, attribute = (cell.build(key) for key in ("dataset", "metric", "attribute"))
    values = {}
    for name in CAPTIONERS:
        captions = dataset.load(name, attribute)
        score = metric.compute(captions, splits=metric.draw_splits(captions, seeds_of(2)))
        values[name] = 100 * score.parts["model"].value
    return values


@pytest.mark.real
@pytest.mark.slow
def test_lic_m_ranks_captioners_as_relics_lstm_does_and_lies_near_it(correlations):
    reference = printed_lic("lic_m")
    pairs = np.array([(correlations[name], reference[name]) for name in CAPTIONERS])
    assert np.corrcoef(pairs.T)[0, 1] >= 0.9
    assert np.abs(pairs[:, 0] - pairs[:, 1]).mean() <= 1.5


@cache
def corpus(data_root: Path, captioner: str) -> Corpus:
    """The captions of a captioner; they are read once."""
    words = ["dataset=lic", f"dataset.root={data_root}/lic/bias_data", f"captioner={captioner}"]
    return compose.cell(words).corpus()


@pytest.mark.real
def test_what_language_models_write_is_rare_among_people(data_root):
    """The numbers of docs/language_models.md."""
    human = openings(corpus(data_root, "sat").human)
    assert (int(declines(human).sum()), len(human)) == (10, 39_945)
    assert 0.0075 < sum(map(bool, map(preamble_of, human))) / len(human) < 0.0085


@pytest.mark.real
@pytest.mark.parametrize(
    "captioner",
    ["sat", *(pytest.param(x, marks=pytest.mark.slow) for x in CAPTIONERS if x != "sat")],
)
def test_a_published_captioner_describes_all_images_and_declines_none(data_root, captioner):
    captions = corpus(data_root, captioner)
    assert len(captions.model) == 10_780
    assert not declined_images(captions).any()
    assert not any("open with" in note for note in captions.notes)


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize(("captioner", "lic"), [("sat", 4.1), ("oscar", 7.6), ("nic_plus", -1.0)])
def test_lic_of_age_is_what_an_independent_regression_gave(data_root, tmp_path, captioner, lic):
    """Logistic regression on the same ten splits under RELIC's protocol, measured apart."""
    words = [f"dataset.root={data_root}/relic", f"captioner={captioner}", "stats.resamples=2"]
    words += ["experiment=relic_age", "encoder=ngram", f"paths.outputs={tmp_path}"]
    cell = compose.cell(words)
    captions, metric = cell.corpus(), cell.build("metric")
    score = metric.compute(captions, splits=metric.draw_splits(captions, seeds_of(10)))
    assert 100 * score.parts["score"].value == pytest.approx(lic, abs=0.15)
