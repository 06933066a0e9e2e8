"""The metrics as ``evaluate.load`` finds them in a local folder, without a hub."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import bias_pipeline as bp
from bias_pipeline.integrations import evaluate_metrics

FOLDER = Path(evaluate_metrics.__path__[0])
GROUPS = [("male", "female")[i % 2] for i in range(80)]
CAPTIONS = [
    f"a {('man', 'woman')[i % 2 if i > 9 else 0]} with a {('dog', 'cake')[i % 2]}"
    for i in range(80)
]
PEOPLE = [[f"a person with a {('dog', 'cake')[i // 40]}"] for i in range(80)]
SMALL = {"seeds": 2, "stats": {"resamples": 20}}


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Any]]:
    """``evaluate.load`` of one of our folders; it copies their files into its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HOME", str(tmp_path_factory.mktemp("hub")))
        patch.setenv("HF_HUB_OFFLINE", "1")
        reason = "Hugging Face's evaluate is not installed"
        evaluate = pytest.importorskip("evaluate", reason=reason)
        yield lambda name: evaluate.load(str(FOLDER / name))


def test_gender_error_in_batches(load):
    metric = load("gender_error")
    for start in range(0, 80, 32):
        part = slice(start, start + 32)
        metric.add_batch(predictions=CAPTIONS[part], groups=GROUPS[part])
    row = bp.score("gender_error", CAPTIONS, GROUPS).rows[0]
    assert metric.compute() == {
        "gender_error": row.value,
        "gender_error_ci_low": row.ci_low,
        "gender_error_ci_high": row.ci_high,
    }


def test_lic_takes_people_s_captions(load):
    metric = load("lic")
    numbers = metric.compute(predictions=CAPTIONS, groups=GROUPS, references=PEOPLE, **SMALL)
    rows = bp.score("lic", CAPTIONS, GROUPS, PEOPLE, **SMALL).rows
    assert numbers["lic"] == next(row.value for row in rows if row.part == "score") > 0.3


def test_the_card_names_the_paper(load):
    assert "hirota2022lic" in load("lic").citation
