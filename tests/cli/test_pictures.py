"""``metric=imagecaptioner2`` through the door."""

TINY = (
    *("metric=imagecaptioner2", "encoder.side=32", "encoder.width=4", "encoder.hidden_dim=16"),
    *("trainer.max_epochs=1", "dataset.n_images=80", "stats.resamples=20", "logger=csv"),
)


def test_pictures_are_looked_at_in_one_command(ok):
    assert "encoder sat" in ok(
        *TINY, "captioner=amplifier,faithful", "seeds=1", "metric.positions=1"
    )


def test_grit_looks_at_pictures_in_one_command(ok):
    words = ("metric=imagecaptioner2", "encoder=grit", "metric.leaks=[]", "trainer.max_epochs=1")
    few = ("dataset.n_images=80", "stats.resamples=20", "logger=csv", "seeds=1")
    words = (*words, "metric.positions=1")
    assert "encoder grit" in ok(*words, *few, "captioner=amplifier", "encoder.second_gate=paper")


def test_an_unknown_size_of_grit_is_refused(fails):
    assert "encoder.size" in fails(
        2, "metric=imagecaptioner2", "encoder=grit", "encoder.size=large", "logger=csv"
    )


def test_attackers_of_texts_are_refused(fails):
    assert "choose encoder=sat" in fails(2, "metric=imagecaptioner2", "encoder=ngram", "logger=csv")


def test_attackers_of_pictures_are_refused_where_there_are_captions_alone(fails):
    assert "metric=lic uses captions only, but encoder=sat needs" in fails(
        2, "metric=lic", "encoder=sat", "logger=csv"
    )


def test_a_prompt_without_an_answer_is_refused(fails):
    assert "{answer} must occur exactly once" in fails(
        2, *TINY, "encoder.prompt.template='{caption} is'"
    )


def test_a_wrong_masking_is_refused_with_the_near_one(fails):
    assert "did you mean 'person_box'" in fails(2, *TINY, "image_masking=person_boxes")
