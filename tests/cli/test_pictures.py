"""``metric=imagecaptioner2`` through the door."""

import pytest

FEW = (
    *("metric=imagecaptioner2", "trainer.max_epochs=1", "dataset.n_images=80", "seeds=1"),
    *("stats.resamples=20", "logger=csv", "metric.positions=1"),
)
TINY = ("encoder.side=32", "encoder.width=4", "encoder.hidden_dim=16")


def test_pictures_are_looked_at_in_one_command(ok):
    assert "encoder sat" in ok(*FEW, *TINY, "captioner=amplifier,faithful")


def test_grit_looks_at_pictures_in_one_command(ok):
    words = ("encoder=grit", "metric.leaks=[]", "encoder.second_gate=paper")
    assert "encoder grit" in ok(*FEW, *words, "captioner=amplifier")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("encoder=grit", "encoder.size=large"), "encoder.size"),
        (("encoder=ngram",), "choose encoder=sat"),
        (("metric=lic", "encoder=sat"), "metric=lic uses captions only, but encoder=sat needs"),
        (("encoder.prompt.template='{caption} is'",), "{answer} must occur exactly once"),
        (("image_masking=person_boxes",), "did you mean 'person_box'"),
    ],
)
def test_what_cannot_be_is_refused(ends, words, message):
    assert message in ends(2, "metric=imagecaptioner2", "logger=csv", *words)
