"""``metric=imagecaptioner2`` through the door."""

TINY = (
    *("metric=imagecaptioner2", "encoder.side=32", "encoder.width=4", "encoder.hidden_dim=16"),
    *("trainer.max_epochs=1", "dataset.n_images=80", "stats.resamples=20", "logger=csv"),
)


def test_pictures_are_looked_at_in_one_command(run):
    code, output = run(*TINY, "captioner=amplifier,faithful", "seeds=1", "metric.positions=1")
    assert code == 0, output
    assert "encoder sat" in output


def test_grit_looks_at_pictures_in_one_command(run):
    words = ("metric=imagecaptioner2", "encoder=grit", "metric.leaks=[]", "trainer.max_epochs=1")
    few = ("dataset.n_images=80", "stats.resamples=20", "logger=csv", "seeds=1")
    words = (*words, "metric.positions=1")
    code, output = run(*words, *few, "captioner=amplifier", "encoder.second_gate=paper")
    assert code == 0, output
    assert "encoder grit" in output


def test_an_unknown_size_of_grit_is_refused(run):
    code, output = run("metric=imagecaptioner2", "encoder=grit", "encoder.size=large", "logger=csv")
    assert (code, "encoder.size" in output) == (2, True)


def test_attackers_of_texts_are_refused(run):
    code, output = run("metric=imagecaptioner2", "encoder=ngram", "logger=csv")
    assert (code, "choose encoder=sat" in output) == (2, True)


def test_attackers_of_pictures_are_refused_where_there_are_captions_alone(run):
    code, output = run("metric=lic", "encoder=sat", "logger=csv")
    assert (code, "metric=lic uses captions only, but encoder=sat needs" in output) == (2, True)


def test_a_prompt_without_an_answer_is_refused(run):
    code, output = run(*TINY, "encoder.prompt.template='{caption} is'")
    assert (code, "{answer} must occur exactly once" in output) == (2, True)


def test_a_wrong_masking_is_refused_with_the_near_one(run):
    code, output = run(*TINY, "image_masking=person_boxes")
    assert (code, "did you mean 'person_box'" in output) == (2, True)
