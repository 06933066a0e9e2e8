"""``analysis rebalance``: its formula, and what it undoes."""

import numpy as np
import pytest

from bias_pipeline.corpus.attribute import TaskVocabulary
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.errors import NotApplicableError, UsageError
from bias_pipeline.results.rows import Result
from bias_pipeline.studies.rebalance import TooOften, image_weights, too_often
from tests.corpora import make_corpus
from tests.report.test_tables import row

OBJECTS = TaskVocabulary("objects", {"dog": ["dog"], "tie": ["tie"], "cat": ["cat"]})
GROUPS = ("male", "female")


def corpus(*counts: tuple[str, str, int]) -> Corpus:
    """So many images with a label and a caption."""
    flat = [(label, text) for label, text, n in counts for _ in range(n)]
    return make_corpus(
        [Record(str(i), text, (text,), {"gender": label}) for i, (label, text) in enumerate(flat)]
    )


def weights(data: Corpus, *objects: TooOften) -> np.ndarray:
    return image_weights(data, "human", "gender", OBJECTS, GROUPS, objects)


def test_an_object_that_is_never_named_with_a_group_is_drawn_five_times_at_most():
    assert TooOften("dog", model=1.0, human=0.5).factors.tolist() == [0.5, 5.0]


def test_captions_drawn_by_their_weights_have_peoples_share():
    """Of ten captions of dogs eight are of men; people name as many with women."""
    data = corpus(("m", "a dog", 8), ("f", "a dog", 2), ("m", "a cat", 992), ("f", "a cat", 998))
    weight = weights(data, TooOften("dog", model=0.8, human=0.5))
    dogs = np.array([record.model == "a dog" for record in data])
    men = np.array([record.labels["gender"] == "male" for record in data])
    share = weight[dogs & men].sum() / weight[dogs].sum()
    assert share == pytest.approx(0.5, abs=0.01)  # a group's mean shifts by a hundredth


def test_every_group_keeps_its_share():
    data = corpus(("m", "a dog", 8), ("f", "a dog", 2), ("m", "a cat", 5), ("f", "a cat", 9))
    weight = weights(data, TooOften("dog", model=0.8, human=0.5))
    men = np.array([record.labels["gender"] == "male" for record in data])
    assert weight[men].sum() == pytest.approx(13)
    assert weight[~men].sum() == pytest.approx(11)


def test_a_caption_of_two_objects_has_the_mean_of_their_factors():
    data = corpus(("m", "a dog", 1), ("m", "a dog with a tie", 1), ("m", "a cat", 1), ("f", "a", 1))
    items = TooOften("dog", model=0.8, human=0.4), TooOften("tie", model=0.5, human=0.75)
    both = weights(data, *items)[:3]
    assert (both / both[2]).tolist() == pytest.approx([0.5, (0.5 + 1.5) / 2, 1])


def test_images_of_no_group_keep_their_weight():
    data = corpus(("unsure", "a dog", 1), ("m", "a dog", 3), ("f", "a dog", 1), ("f", "a cat", 1))
    assert weights(data, TooOften("dog", model=0.8, human=0.5))[0] == 1


def test_people_who_describe_other_images_give_nothing_to_rebalance():
    rows = [row(metric="cooccurrence", part=part) for part in ("model", "human")]
    result = Result("x", rows, {"config": {"attribute": {"groups": list(GROUPS)}}})
    with pytest.raises(NotApplicableError, match="x: has no score, since no image has captions of"):
        too_often(result)


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("tie", NotApplicableError, "no caption names an object of the run, such as tie"),
        ("bus", UsageError, "has no object 'bus'"),
    ],
)
def test_an_object_that_cannot_be_weighted_is_refused(name, error, message):
    with pytest.raises(error, match=message):
        weights(corpus(("m", "a dog", 1), ("f", "a dog", 1)), TooOften(name, model=1, human=0.5))
