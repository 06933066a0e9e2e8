import copy
import importlib
import pkgutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bias_pipeline
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.declared import Configurable
from bias_pipeline.results.identity import groups_used, run_id, slug
from tests.corpora import make_corpus

PROBE = {"_target_": "bias_pipeline.a.Probe", "cache": "/x"}
TREE = {"transforms": [{"a": 1}, {"b": 2}], "probe": PROBE, "split": {"order": "hashed"}}


def corpus(caption: str = "a dog") -> Corpus:
    return make_corpus([Record("1", caption), Record("2", "a cat")])


def identity(tree: object = TREE, source: Corpus | None = None, **changes: object) -> str:
    options = {"metric": "lic", "attribute": "gender", "metric_version": 1, "seeds": (0, 12)}
    return run_id(tree, source or corpus(), **{**options, **changes})


def changed(**changes: object) -> dict[str, object]:
    return {**copy.deepcopy(TREE), **changes}


def test_equal_runs_have_equal_names():
    assert identity() == identity()


@pytest.mark.parametrize(
    "changes",
    [
        {"tree": changed(relation="ratio")},
        {"metric_version": 2},
        {"seeds": (0,)},
        {"source": corpus("a bird")},
        {"tree": changed(transforms=[{"b": 2}, {"a": 1}])},  # mask, then align
    ],
    ids=["setting", "metric version", "seeds", "caption", "order of transforms"],
)
def test_e19_what_is_changed_is_another_run(changes):
    assert identity(**changes) != identity()


@pytest.mark.parametrize("probe", [{**PROBE, "cache": "/elsewhere"}, {**PROBE, "processes": 2}])
def test_the_place_of_the_cache_and_how_many_train_at_once_do_not_matter(probe):
    assert identity(changed(probe=probe)) == identity()


def test_a_list_of_words_matters_whatever_its_name():
    one, other = (identity(changed(task={"tasks": {"device": w}})) for w in ("phone", "laptop"))
    assert one != other


def test_the_name_of_a_class_matters_and_not_where_it_is_defined():
    here, there, other = (
        identity(changed(split={"_target_": f"bias_pipeline.{path}"}))
        for path in ("a.Rule", "b.c.Rule", "a.Role")
    )
    assert here == there != other


def test_no_two_classes_of_the_configuration_share_a_name():
    for module in pkgutil.walk_packages(bias_pipeline.__path__, "bias_pipeline."):
        if not module.name.rpartition(".")[2].startswith("_"):
            importlib.import_module(module.name)
    names = [kind.__name__ for kind in _kinds(Configurable)]
    assert sorted(names) == sorted(set(names))


def _kinds(kind: type) -> set[type]:
    below = {one for subclass in kind.__subclasses__() for one in _kinds(subclass)}
    return {one for one in {kind} | below if one.__module__.startswith("bias_pipeline.")}


@pytest.mark.parametrize(("order", "same"), [("hashed", True), ("file", False)])
def test_the_order_of_the_file_counts_only_where_splits_follow_it(order, same):
    tree = changed(split={"order": order})
    turned = make_corpus([Record("2", "a cat"), Record("1", "a dog")])
    assert (identity(tree, turned) == identity(tree)) is same


@given(st.text(max_size=80))
def test_e9_a_name_never_leaves_its_folder(text):
    assert set(slug(text)) <= set("abcdefghijklmnopqrstuvwxyz0123456789_")


def test_a_counting_metric_does_not_use_the_encoder():
    config = {"metric": {"attribute": "${attribute}"}, "attribute": {}, "encoder": {}}
    assert groups_used(config, "metric") == {"metric", "attribute"}


WORDS = {"_target_": "bias_pipeline.corpus.attribute.Attribute", "name": "gender"}


def test_that_the_words_are_english_changes_no_identity_and_another_language_does():
    """Runs from before the key keep their ids."""
    plain, english, german = (
        identity(changed(attribute={**WORDS, **more}))
        for more in ({}, {"language": "en"}, {"language": "de"})
    )
    assert plain == english
    assert plain != german
