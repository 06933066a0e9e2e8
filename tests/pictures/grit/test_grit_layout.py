"""The names and shapes that test files of GRIT have are those of the authors' modules."""

import json

import pytest

from bias_pipeline.pictures.grit.sizes import SIZES
from tests import grit_layout
from tests.corpora import DATA
from tests.grit_layout import RELEASED

LAYOUTS = DATA.parent / "layouts"


@pytest.mark.parametrize("name", RELEASED)
def test_names_and_shapes_are_those_of_the_authors_modules(name):
    path = LAYOUTS / f"{name}.json"
    if not path.is_file():
        pytest.skip(f"{path} is absent")
    of = grit_layout.captioner if "captioner" in name else grit_layout.detector
    shapes = {key: list(shape) for key, shape in of(SIZES["released"], RELEASED[name]).items()}
    assert shapes == json.loads(path.read_text())
