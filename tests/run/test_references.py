"""References of a configuration are checked in one walk, which misses none."""

import pytest

from bias_pipeline.errors import UsageError
from bias_pipeline.run.references import References


@pytest.mark.parametrize(
    "config",
    [
        {"a": {1: "${oc.decode:'{}'}", "1": "plain"}},
        {"a": {"1": "plain", 1: "${oc.decode:'{}'}"}},
        {"a": "${b.c}", "b": {"c": ["${now:%Y}"]}},
        {"a": [[{"b": "${a.0} ${oc.create:x}"}]]},
    ],
    ids=["a number and its text", "the text first", "behind a reference", "behind another"],
)
def test_no_key_hides_a_resolver(config):
    with pytest.raises(UsageError, match="is not allowed"):
        References(config).resolve()


@pytest.mark.parametrize(
    "config",
    [
        {"a": "${a}"},
        {"a": "${b}", "b": "${a}"},
        {"a": {"x": "${a}"}},
        {"a": ["${b.0}"], "b": "${a}"},
    ],
)
def test_what_refers_to_itself_is_refused(config):
    with pytest.raises(UsageError, match="refers to itself"):
        References(config).resolve()


@pytest.mark.parametrize("many", [lambda one: f"{one} {one}", lambda one: {"x": one, "y": one}])
def test_what_grows_without_end_is_refused_at_once(many):
    config = {f"a{n}": many(f"${{a{n + 1}}}") for n in range(60)}
    with pytest.raises(UsageError, match="characters with its references resolved"):
        References({**config, "a60": "xx"}).resolve()
