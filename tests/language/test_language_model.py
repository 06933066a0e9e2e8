"""Language models as judges: nothing is scored twice, and wrong models are told."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bias_pipeline.errors import DataError
from bias_pipeline.language.language_model import LanguageModel
from bias_pipeline.language.likelihoods import Likelihoods
from tests.tiny_models import write_causal, write_masked

TEXTS = ["a man rides", "a woman rides", "a dog", "a man rides"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    root = tmp_path_factory.mktemp("models")
    return write_causal(root / "causal"), write_masked(root / "masked")


@pytest.fixture
def model(folders: tuple[Path, Path], tmp_path: Path) -> LanguageModel:
    return LanguageModel(str(folders[0]), cache=str(tmp_path / "kept"))


@pytest.fixture
def texts_scored(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that any model scores."""
    scored_texts: list[str] = []
    embed = Likelihoods.embed

    def record_texts(self: Likelihoods, texts: Any) -> Any:
        scored_texts.extend(texts)
        return embed(self, texts)

    monkeypatch.setattr(Likelihoods, "embed", record_texts)
    return scored_texts


def test_each_distinct_text_is_scored_once(model, texts_scored):
    model.log_likelihood(TEXTS)
    model.log_likelihood([*TEXTS, "a horse"])
    assert sorted(texts_scored) == sorted({*TEXTS, "a horse"})


def test_other_poolings_read_what_is_kept(model, texts_scored):
    lines = [
        replace(model, term=term, eos=eos).log_likelihood(TEXTS)
        for term in ("arithmetic", "geometric", "total", "cloze")
        for eos in (True, False)
    ]
    assert len(texts_scored) == 3
    assert len({tuple(item.round(6)) for item in lines}) == 7  # the end plays no part in cloze


def test_repeated_texts_have_equal_scores(model):
    log_likelihood = model.log_likelihood(TEXTS)
    assert log_likelihood[0] == log_likelihood[3] != log_likelihood[1]


def test_what_is_kept_is_what_is_computed(model):
    fresh = replace(model, cache=None).log_likelihood(TEXTS)
    np.testing.assert_allclose(model.log_likelihood(TEXTS), fresh, rtol=1e-5)


def test_the_beginning_is_kept_apart(model):
    with_it, without = (replace(model, bos=item).log_likelihood(TEXTS) for item in (True, False))
    assert (with_it != without).all()


def test_no_texts_are_no_work(model, texts_scored):
    assert (len(model.log_likelihood([])), texts_scored) == (0, [])


@pytest.mark.parametrize(
    ("place", "kind", "other"), [(0, "masked", "causal"), (1, "causal", "masked")]
)
def test_a_model_of_the_other_kind_is_refused(folders, place, kind, other):
    with pytest.raises(DataError, match=f"set metric.lm_kind={other}"):
        LanguageModel(str(folders[place]), kind=kind).require()


def test_a_masked_model_has_no_end(folders):
    model = LanguageModel(str(folders[1]), kind="masked")
    assert np.isfinite(model.log_likelihood(TEXTS)).all()


def test_a_model_without_an_end_is_refused(tmp_path):
    write_causal(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    path.write_text(path.read_text().replace('"eos_token": "[SEP]"', '"eos_token": null'))
    with pytest.raises(DataError, match=r"has no end token; set metric.eos=false"):
        LanguageModel(str(tmp_path)).log_likelihood(TEXTS)
    assert LanguageModel(str(tmp_path), eos=False).log_likelihood(TEXTS).shape == (4,)


def test_a_model_without_an_end_scores_last_words(tmp_path):
    write_causal(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    path.write_text(path.read_text().replace('"eos_token": "[SEP]"', '"eos_token": null'))
    assert np.isfinite(LanguageModel(str(tmp_path), term="cloze").log_likelihood(TEXTS)).all()
