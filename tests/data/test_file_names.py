"""Names that stand for no file of rows end with a sentence on what they are."""

import os
from pathlib import Path

import pytest

from bias_pipeline.data.tables import check_file
from bias_pipeline.errors import ResourceError


def test_a_folder_is_refused_with_what_it_holds(tmp_path):
    (tmp_path / "sat.csv").write_text("image_id,caption\n")
    with pytest.raises(ResourceError, match=r"is a folder, which holds sat\.csv; name one file"):
        check_file(tmp_path)


@pytest.mark.parametrize("name", ["-", "pipe.csv"])
def test_what_can_be_read_once_only_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe.csv")
    with pytest.raises(ResourceError, match=f"{name} is not a file on disk.*save"):
        check_file(Path(name))
