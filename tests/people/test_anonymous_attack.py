"""Attackers of anonymous pictures: what they learn from, and what they look at."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.data.photos import read_pixels
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.people.anonymous import anonymous_attack, anonymous_corpus, join_tables
from bias_pipeline.pictures.imagecaptioner2 import ImageCaptioner2
from bias_pipeline.run.compose import cell
from bias_pipeline.text.scored_text import ScoredText

N_LABELLED, N_ANONYMOUS = 60, 5
SCENES = ("dataset=scenes", f"dataset.n_images={N_LABELLED}", "captioner=faithful", "seeds=1")
SAT = ("metric=imagecaptioner2", "encoder.side=32", "trainer.max_epochs=1")
LIC = ("dataset.n_images=400", "metric=lic", "encoder=ngram")


@pytest.fixture
def photos(tmp_path: Path) -> dict[str, Path]:
    """Pictures of one colour each."""
    files = {str(number): tmp_path / f"{number}.png" for number in range(1, N_ANONYMOUS + 1)}
    for number, path in enumerate(files.values(), 1):
        Image.new("RGB", (40, 40), (40 * number, 0, 0)).save(path)
    return files


def anonymous_captions(photos: dict[str, Path], text: str) -> Corpus:
    """One caption of all of them."""
    return anonymous_corpus("faithful", dict.fromkeys(photos, text), photos, ScoredText())


def test_people_are_masked_where_attackers_learn_and_nowhere_else(photos):
    metric = cell([*SCENES, *SAT]).build("metric")
    assert isinstance(metric, ImageCaptioner2)
    reference = cell([*SCENES, *SAT]).corpus()
    masked = metric.image_masking(reference)
    grouping = masked.groupings["gender"]
    table = LabelledCaptions("model", masked.model, grouping.codes, 2, grouping.names)
    both = join_tables(
        metric.with_inputs(table, masked), anonymous_captions(photos, "a person"), len(masked)
    ).pictures
    assert both is not None
    assert reference.pictures is not None
    plain = [read_pixels(reference.pictures, row, 32) for row in range(N_LABELLED)]
    shown = [read_pixels(both, row, 32) for row in range(len(both))]
    assert all(not np.array_equal(*pair) for pair in zip(plain, shown, strict=False))
    for number, pixels in enumerate(shown[N_LABELLED:], 1):
        assert np.unique(pixels.reshape(-1, 3), axis=0).tolist() == [[40 * number, 0, 0]]


def attack(photos: dict[str, Path], text: str, *words: str) -> Any:
    """The score of attackers on one caption of all pictures."""
    parts = cell([*SCENES, *words])
    scored = [parts.build("text"), parts.build("masking")]
    metric = parts.build("metric")
    return anonymous_attack(
        metric, scored, parts.corpus(), anonymous_captions(photos, text), parts.seeds
    )


def test_captions_that_say_nothing_are_guessed_at_chance_and_one_has_no_interval(photos):
    """Groups are balanced where attackers learn, so the larger one is not preferred."""
    score = attack(photos, "xyzzy", *LIC, "seeds=2")
    assert score.value == pytest.approx(0.5, abs=0.05)
    assert score.n_images == N_ANONYMOUS
    score = attack({"1": photos["1"]}, "xyzzy", *LIC)
    assert np.isnan([score.value, score.ci_low, score.ci_high]).tolist() == [False, True, True]


def test_a_captioner_of_too_few_labelled_images_is_refused_by_name(photos):
    """One command attacks the captions of several captioners."""
    with pytest.raises(NotApplicableError, match=r"captioner 'faithful': attackers need two"):
        attack(photos, "xyzzy", *LIC, "dataset.n_images=12")


def test_words_of_the_attribute_are_masked(photos):
    values = {attack(photos, f"a {word} sits", *LIC).value for word in ("man", "woman")}
    assert len(values) == 1


@pytest.mark.slow
def test_attackers_that_look_at_pictures_read_them_too(photos):
    score = attack(photos, "a person sits", *SAT)
    assert 0.5 <= score.value <= 1
    assert score.ci_low < score.ci_high
