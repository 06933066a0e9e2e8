"""Overrides as text: names quoted for Hydra's grammar, sweeps, folders."""

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from bias_pipeline.errors import UsageError
from bias_pipeline.run.overrides import check_folders, jobs_of, quote_value


@given(name=st.text("\\'\"a${},=é :", min_size=1, max_size=9))
def test_a_quoted_name_is_read_as_it_was(name):
    override = OverridesParser.create().parse_override(f"captioner={quote_value(name)}")
    assert OmegaConf.create({"captioner": override.value()}).captioner == name


def test_a_value_that_a_sweep_names_twice_is_one_job():
    assert jobs_of(["metric=lic,dbac,lic"]) == [["metric=lic"], ["metric=dbac"]]


def test_a_range_without_a_step_is_refused():
    with pytest.raises(
        UsageError, match=r"limit=range\(1,5,0\): the step of a range must not be 0"
    ):
        jobs_of(["limit=range(1,5,0)"])


def test_a_folder_of_results_is_a_key_below_paths():
    with pytest.raises(UsageError, match=r"paths=x: name .* as paths\.outputs=x"):
        check_folders(["paths=x"])
