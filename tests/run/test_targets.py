import sys
from collections.abc import Iterator, Mapping

import pytest

from bias_pipeline.errors import UsageError
from bias_pipeline.run import targets
from bias_pipeline.run.targets import build, check_nodes, is_allowed


@pytest.mark.parametrize(
    "target",
    [
        "os.system",
        "logging.os.system",
        "builtins.eval",
        "torch.utils.cpp_extension.shutil.which",
        "bias_pipeline.results.store.os.system",
        "bias_pipeline.results.store.shutil.rmtree",
        "bias_pipeline.corpus.split.random.Random",
        "bias_pipeline.io.arrays.Path",  # ours to import, not ours by definition
        "bias_pipeline.metrics.attack.lic.MetricInfo",
        "bias_pipeline.nothing.here",
        "bias_pipeline.stats.scoring",
        "bias_pipeline_evil.x",
        "",
    ],
)
def test_foreign_targets_are_refused(target):
    assert not is_allowed(target)


def test_our_own_classes_are_allowed():
    assert is_allowed("bias_pipeline.corpus.split_rules.HoldOut")


@pytest.mark.parametrize(
    "target",
    [
        "bias_pipeline.run.loggers.run_apart",  # no function is built
        "bias_pipeline.commands.main.main",
        "bias_pipeline.run.slurm._has_ended",
        "bias_pipeline.published._unpickle_child._restrict",
        "bias_pipeline.corpus.split.seeds_of",
        "bias_pipeline.results.store.ResultStore",  # a class, but none to be configured
        "bias_pipeline.io.arrays.ArrayCache",
        "bias_pipeline.declared.Configurable",
        "bias_pipeline.attack.encoder.Encoder",  # a kind, not a thing
        "bias_pipeline.metrics.base.Metric",
        "bias_pipeline.metrics.attack.caption_attack.CaptionAttack",
        "bias_pipeline.metrics.attack.lic.LIC.__init__",
        "bias_pipeline.metrics.attack.lic.LIC\n",
        "bias_pipeline..hold_out.HoldOut",
    ],
)
def test_what_is_ours_but_no_thing_to_configure_is_refused(target):
    assert not is_allowed(target)


def test_no_private_module_is_imported_to_be_looked_into(monkeypatch):
    monkeypatch.delitem(sys.modules, "bias_pipeline.published._unpickle_child", raising=False)
    is_allowed("bias_pipeline.published._unpickle_child.Anything")
    assert "bias_pipeline.published._unpickle_child" not in sys.modules


@pytest.mark.parametrize(
    "config",
    [
        {"a": {"b": [{"_target_": "os.system"}]}},
        {"launcher": {"_target_": "${oc.env:X}"}},
        {"_target_": 3},
        {"_target_": ["bias_pipeline.corpus.split_rules.HoldOut"]},
        {"_target_": {"_target_": "bias_pipeline.corpus.split_rules.HoldOut"}},
        {"_target_": None},
    ],
)
def test_nested_targets_are_refused(config):
    with pytest.raises(UsageError, match="is not allowed"):
        check_nodes(config)


def test_building_checks_for_itself():
    with pytest.raises(UsageError, match="is not allowed"):
        build({"a": [{"_target_": "os.system", "command": "true"}]})


def test_plain_data_passes():
    check_nodes({"seeds": [1, 2], "class": "logging.StreamHandler"})


RULE = "bias_pipeline.corpus.split_rules.HoldOut"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("test_share", "0.1"),
        ("test_share", True),
        ("test_share", None),
        pytest.param("test_share", 10**400, id="too large"),
        ("balanced", 1),
        ("balanced", "no"),
        ("order", 3),
        ("order", ["hashed"]),
    ],
)
def test_a_value_of_another_kind_is_refused(key, value):
    with pytest.raises(UsageError, match=rf"^split\.{key}="):
        check_nodes({"split": {"_target_": RULE, key: value}})


@pytest.mark.parametrize(("key", "value"), [("validation_share", 0), ("balanced", False)])
def test_a_value_of_the_declared_kind_is_accepted(key, value):
    check_nodes({"_target_": RULE, key: value})


def test_text_is_no_list():
    node = {"_target_": "bias_pipeline.text.align.ConstantAlignment", "replacement": "unk"}
    with pytest.raises(UsageError, match="must be a list"):
        check_nodes({"metric": {"transforms": [node]}})


def test_null_is_accepted_where_it_is_declared():
    encoder = {"_target_": "bias_pipeline.attack.ngram.Ngram"}
    probe = "bias_pipeline.attack.logistic.ConvexProbe"
    check_nodes({"_target_": probe, "encoder": encoder, "cache": None})


class Odd(Mapping[str, object]):
    """A mapping that is no dict, as calls from Python may give."""

    def __init__(self, **content: object) -> None:
        self.content = content

    def __getitem__(self, key: str) -> object:
        return self.content[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.content)

    def __len__(self) -> int:
        return len(self.content)


@pytest.mark.parametrize("text", ["os.system", "${oc.env:HOME}"])
def test_any_mapping_is_walked(text):
    with pytest.raises(UsageError, match=r"not allowed|may not contain"):
        check_nodes({"a": Odd(b=[Odd(_target_=text)])})
    with pytest.raises(UsageError, match=r"not allowed|may not contain"):
        check_nodes({"a": [Odd(b="${c}")]})


def test_what_places_share_is_checked_once_and_at_the_first(monkeypatch):
    rule = {"_target_": RULE, "test_share": 0.2}
    checked = []
    names = targets.check_value
    monkeypatch.setattr(targets, "check_value", lambda *a: (checked.append(a[2]), names(*a)))
    check_nodes({"a": {"_target_": RULE, "test_share": 0.5}, "b": rule, "c": [rule, rule]})
    assert checked == ["a.test_share", "b.test_share"]


def test_a_configuration_within_itself_ends():
    config: dict[str, object] = {"_target_": "os.system"}
    config["self"] = config
    with pytest.raises(UsageError, match="is not allowed"):
        check_nodes({"x": {"y": config}})
