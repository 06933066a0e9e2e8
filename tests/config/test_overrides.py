"""Names of any signs, quoted for Hydra's grammar."""

from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from bias_pipeline.config.overrides import quoted


@given(name=st.text("\\'\"a${},=é :", min_size=1, max_size=9))
def test_a_quoted_name_is_read_as_it_was(name):
    override = OverridesParser.create().parse_override(f"captioner={quoted(name)}")
    assert OmegaConf.create({"captioner": override.value()}).captioner == name
