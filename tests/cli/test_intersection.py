"""``attribute=[gender,race]`` through the door."""

from tests.cli.commands import part, results

CROSSED = (
    "attribute=[gender,race]",
    "dataset.n_images=1200",
    "seeds=2",
    "stats.resamples=50",
    "logger=csv",
)


def test_an_intersection_is_run_and_its_groups_are_rows(run, tmp_path):
    code, text = run(*CROSSED, "captioner=faithful", "metric.positions=1")
    (path,) = results(tmp_path)
    assert (code, "worst group" in text) == (0, True)
    assert part(path, "group:female-dark")["n_images"] >= 100
    assert part(path, "gap")["attribute"] == "gender_race"


def test_a_group_that_is_too_small_is_refused(ends):
    text = ends(3, *CROSSED, "dataset.n_images=300")
    assert "too few images of" in text
    assert "attribute.min_images" in text


def test_what_the_files_hold_is_told_of_intersections(ok):
    words = ("data", "validate", "attribute=[gender,race]", "dataset.n_images=1200")
    assert "gender_race female-dark" in ok(*words)


def test_all_captioners_of_an_intersection(ok):
    composed = ok(*CROSSED, "captioner=all", "--cfg", "job")
    assert "bias_pipeline.corpus.regrouping.Intersection" in composed
