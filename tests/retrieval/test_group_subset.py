"""Some of an attribute's groups: whose images stay, whatever the groups are called."""

from dataclasses import replace

import numpy as np
import pytest

from bias_pipeline.corpus.corpus import Corpus, Grouping
from bias_pipeline.errors import UsageError
from bias_pipeline.retrieval.retrieval_view import of_groups
from tests.corpora import leaky_corpus


def corpus() -> Corpus:
    leaky = leaky_corpus(5)
    grouping = Grouping(("Dark", "light", "East Asian"), np.array([0, 1, 2, -1, 1]), {})
    return replace(leaky, groupings={"skin": grouping})


@pytest.mark.parametrize("wanted", [("light", "Dark"), ("Light", "dark")])
def test_groups_are_found_however_they_are_written(wanted):
    grouping = of_groups(corpus(), "skin", wanted).groupings["skin"]
    assert grouping.names == ("light", "Dark")
    assert grouping.codes.tolist() == [1, 0, -1, -1, 0]


def test_a_blank_in_a_name_makes_no_difference():
    grouping = of_groups(corpus(), "skin", ("east_asian", "light")).groupings["skin"]
    assert grouping.names == ("East Asian", "light")


def test_an_unknown_group_is_told():
    with pytest.raises(UsageError, match="did you mean 'light'"):
        of_groups(corpus(), "skin", ("ligth", "dark"))
