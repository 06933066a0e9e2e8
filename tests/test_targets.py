from __future__ import annotations

import pytest

from bias_pipeline.errors import UsageError
from bias_pipeline.targets import check_arguments, check_targets, is_allowed


@pytest.mark.parametrize(
    "target",
    [
        "os.system",
        "logging.os.system",
        "builtins.eval",
        "torch.utils.cpp_extension.shutil.which",
        "bias_pipeline.results.os.system",
        "bias_pipeline.results.shutil.rmtree",
        "bias_pipeline.split.random.Random",
        "bias_pipeline.cache.Path",  # ours to import, not ours by definition
        "bias_pipeline.metrics.lic.MetricInfo",
        "bias_pipeline.nothing.here",
        "bias_pipeline.scoring",
        "bias_pipeline_evil.x",
        "",
    ],
)
def test_e11_foreign_targets_are_refused(target: str) -> None:
    assert not is_allowed(target)


def test_our_own_classes_are_allowed() -> None:
    assert is_allowed("bias_pipeline.split.SplitRule")


@pytest.mark.parametrize(
    "config",
    [
        {"a": {"b": [{"_target_": "os.system"}]}},
        {"launcher": {"_target_": "${oc.env:X}"}},
        {"handlers": {"x": {"()": "os.system"}}},
        {"handlers": {"x": {"class": "subprocess.Popen"}}},
        {"_target_": 3},
    ],
)
def test_e11_nested_targets_are_refused(config: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="is not allowed"):
        check_targets(config)


def test_plain_data_passes() -> None:
    check_targets({"seeds": [1, 2], "class": "logging.StreamHandler"})


RULE = "bias_pipeline.split.SplitRule"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("test_share", "0.1"),
        ("test_share", True),
        ("test_share", None),
        ("balanced", 1),
        ("balanced", "no"),
        ("order", 3),
        ("order", ["hashed"]),
    ],
)
def test_a_value_of_another_kind_is_refused(key: str, value: object) -> None:
    with pytest.raises(UsageError, match=rf"^split\.{key}="):
        check_arguments({"split": {"_target_": RULE, key: value}})


@pytest.mark.parametrize(("key", "value"), [("test_share", 1), ("balanced", False)])
def test_a_value_of_the_declared_kind_is_accepted(key: str, value: object) -> None:
    check_arguments({"_target_": RULE, key: value})


def test_text_is_no_list() -> None:
    node = {"_target_": "bias_pipeline.text.align.ConstantAlignment", "replacement": "unk"}
    with pytest.raises(UsageError, match="must be a list"):
        check_arguments({"metric": {"transforms": [node]}})


def test_null_is_accepted_where_it_is_declared() -> None:
    check_arguments({"_target_": "bias_pipeline.attackers.convex.ConvexProbe", "cache": None})
