import copy
import dataclasses
import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.declared import Configurable
from bias_pipeline.results.identity import LATER, groups_used, run_id, slug
from bias_pipeline.run import compose
from tests.all_modules import all_modules
from tests.corpora import make_corpus

PROBE = {"_target_": "bias_pipeline.a.Probe", "cache": "/x"}
TREE = {"transforms": [{"a": 1}, {"b": 2}], "probe": PROBE, "split": {"order": "hashed"}}


def corpus(caption: str = "a dog") -> Corpus:
    return make_corpus([Record("1", caption), Record("2", "a cat")])


def identity(tree: object = TREE, source: Corpus | None = None, **changes: object) -> str:
    options = {"metric": "lic", "attribute": "gender", "metric_version": 1, "seeds": (0, 12)}
    return run_id(tree, source or corpus(), **{**options, **changes})


def tree_with(**changes: object) -> dict[str, object]:
    return {**copy.deepcopy(TREE), **changes}


def test_equal_runs_have_equal_names():
    assert identity() == identity()


@pytest.mark.parametrize(
    "changes",
    [
        {"tree": tree_with(relation="ratio")},
        {"metric_version": 2},
        {"seeds": (0,)},
        {"source": corpus("a bird")},
        {"tree": tree_with(transforms=[{"b": 2}, {"a": 1}])},  # mask, then align
    ],
    ids=["setting", "metric version", "seeds", "caption", "order of transforms"],
)
def test_what_is_changed_is_another_run(changes):
    assert identity(**changes) != identity()


@pytest.mark.parametrize("probe", [{**PROBE, "cache": "/elsewhere"}, {**PROBE, "processes": 2}])
def test_the_place_of_the_cache_and_how_many_train_at_once_do_not_matter(probe):
    assert identity(tree_with(probe=probe)) == identity()


def test_a_list_of_words_matters_whatever_its_name():
    one, other = (identity(tree_with(task={"tasks": {"device": w}})) for w in ("phone", "laptop"))
    assert one != other


def test_the_name_of_a_class_matters_and_not_where_it_is_defined():
    here, there, other = (
        identity(tree_with(split={"_target_": f"bias_pipeline.{path}"}))
        for path in ("a.Rule", "b.c.Rule", "a.Role")
    )
    assert here == there != other


def test_no_two_classes_of_the_configuration_share_a_name():
    names = [kind.__name__ for kind in all_kinds()]
    assert sorted(names) == sorted(set(names))


def all_kinds() -> set[type]:
    """Every class of ours that a configuration may name."""
    list(all_modules())
    return _kinds(Configurable)


def _kinds(kind: type) -> set[type]:
    below = {one for subclass in kind.__subclasses__() for one in _kinds(subclass)}
    return {one for one in {kind} | below if one.__module__.startswith("bias_pipeline.")}


@pytest.mark.parametrize(("order", "same"), [("hashed", True), ("file", False)])
def test_the_order_of_the_file_counts_only_where_splits_follow_it(order, same):
    tree = tree_with(split={"order": order})
    turned = make_corpus([Record("2", "a cat"), Record("1", "a dog")])
    assert (identity(tree, turned) == identity(tree)) is same


@given(st.text(max_size=80))
def test_a_name_never_leaves_its_folder(text):
    assert set(slug(text)) <= set("abcdefghijklmnopqrstuvwxyz0123456789_")


def test_a_counting_metric_does_not_use_the_encoder():
    config = {"metric": {"attribute": "${attribute}"}, "attribute": {}, "encoder": {}}
    assert groups_used(config, "metric") == {"metric", "attribute"}


WORDS = {"_target_": "bias_pipeline.corpus.attribute.Attribute", "name": "gender"}


def test_that_the_words_are_english_changes_no_identity_and_another_language_does():
    """Runs from before the key keep their ids."""
    plain, english, german = (
        identity(tree_with(attribute={**WORDS, **more}))
        for more in ({}, {"language": "en"}, {"language": "de"})
    )
    assert plain == english
    assert plain != german


LABELS = {"toy": {"field": "sex"}, "other": {"field": "gender"}}


@pytest.mark.parametrize(
    ("more", "same"),
    [
        ({"source": "two papers"}, True),
        ({"labels": {"toy": LABELS["toy"]}}, True),
        ({"labels": {**LABELS, "other": {"field": "label"}}}, True),
        ({"labels": {**LABELS, "toy": {"field": "label"}}}, False),
    ],
    ids=["prose", "fewer data sets", "labels of another data set", "labels of the data set"],
)
def test_prose_and_labels_of_other_data_sets_are_no_part_of_an_attribute(more, same):
    plain, described = (
        identity(tree_with(attribute={**WORDS, "labels": LABELS, **given})) for given in ({}, more)
    )
    assert (plain == described) is same


def test_a_limited_data_set_keeps_its_labels():
    limited = dataclasses.replace(corpus(), dataset="toy (limit 2)")
    ids = {
        identity(tree_with(attribute={**WORDS, "labels": {"toy": {"field": f}}}), limited)
        for f in ("sex", "gender")
    }
    assert len(ids) == 2


def test_the_prose_of_our_classes_is_what_nobody_must_write():
    """A setting called ``source`` is left out of ids, so it may not decide a number."""
    sources = {
        kind.__name__: inspect.signature(kind).parameters["source"].default
        for kind in all_kinds()
        if "source" in inspect.signature(kind).parameters
    }
    assert sources
    assert set(sources.values()) == {""}


def test_a_user_class_may_have_a_source_that_decides():
    one, other = (
        identity(tree_with(data={"_target_": "mine.Data", "source": s})) for s in ("a", "b")
    )
    assert one != other


@pytest.mark.parametrize(
    ("value", "same"), [(1, True), (1.0, False), (True, False), ("1", False), (2, False)]
)
def test_a_parameter_added_later_is_left_out_only_while_neutral(monkeypatch, value, same):
    monkeypatch.setattr("bias_pipeline.results.identity.LATER", {"Probe": {"power": 1}})
    assert (identity(tree_with(probe={**PROBE, "power": value})) == identity()) is same


def test_parameters_added_later_are_parameters_of_our_classes():
    classes = {kind.__name__: kind for kind in all_kinds()}
    for name, neutral in LATER.items():
        assert set(neutral) <= set(inspect.signature(classes[name]).parameters)


def test_one_and_one_point_zero_are_two_ids_and_checking_replaces_neither():
    """A float may be configured as 1 or as 1.0; what checks it leaves it as it was written."""
    ids, values = [], []
    for written in ("1", "1.0"):
        composed = compose.cell(
            ["metric=dbac", "dataset.n_images=60", f"probe.inverse_penalty={written}"]
        )
        ids.append(composed.run_id(composed.corpus()))
        values.append(repr(composed.tree["metric"]["probe"]["inverse_penalty"]))
    assert values == ["1", "1.0"]
    assert ids[0] != ids[1]
