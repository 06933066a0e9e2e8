"""Folders of Hugging Face's datasets: what is not as it was saved is refused in a sentence."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from bias_pipeline.data.coco_files import model_captions
from bias_pipeline.errors import DataError
from tests.coco_folder import results, write_folder
from tests.corpora import REPOSITORY
from tests.data.test_parquet_files import captions, load
from tests.variants.test_programs import save


def save_folder(folder: Path) -> Path:
    save(folder, pa.table({key: values[:12] for key, values in captions().items()}))
    return folder


def edit_state(folder: Path, **state: object) -> Path:
    """A saved folder with a changed ``state.json``."""
    path = save_folder(folder) / "state.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **state}))
    return folder


def test_all_files_are_read_in_their_order(tmp_path):
    expected = {str(row["image_id"]): row["caption"] for row in results()[:12]}
    assert list(model_captions(save_folder(tmp_path / "set")).captions.items()) == list(
        expected.items()
    )


def test_rows_chosen_by_indices_are_refused(tmp_path):
    folder = edit_state(tmp_path / "set", _indices_data_files=[{"filename": "indices.arrow"}])
    with pytest.raises(DataError, match="save it again after flatten_indices"):
        model_captions(folder)


def test_a_folder_that_names_no_file_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"state\.json: names no data file"):
        model_captions(edit_state(tmp_path / "set", _data_files=[]))


@pytest.mark.parametrize("name", ["../other/data.arrow", "/etc/passwd", "..", "a\\b"])
def test_a_file_elsewhere_is_not_read(tmp_path, name):
    folder = edit_state(tmp_path / "set", _data_files=[{"filename": name}])
    with pytest.raises(DataError, match="is not in the folder"):
        model_captions(folder)


def test_a_file_of_other_columns_is_refused(tmp_path):
    folder, other = save_folder(tmp_path / "set"), tmp_path / "other"
    save(other, pa.table({"x": list(range(12))}))
    name = "data-00001-of-00002.arrow"
    (folder / name).write_bytes((other / name).read_bytes())
    with pytest.raises(
        DataError, match=r"data-00001-of-00002\.arrow: its columns are not the columns"
    ):
        model_captions(folder)


_READ = """
import sys
from pathlib import Path
from bias_pipeline.data.coco_files import model_captions
from bias_pipeline.errors import BiasPipelineError
for folder in sys.argv[1:]:
    try:
        model_captions(Path(folder))
    except BiasPipelineError:
        pass
"""


def test_damaged_files_end_no_process(tmp_path):
    generator, folders = random.Random(0), []
    for k in range(60):
        folders.append(save_folder(tmp_path / str(k)))
        path = folders[-1] / "data-00000-of-00002.arrow"
        content = bytearray(path.read_bytes())
        for _ in range(1 + k % 8):
            content[generator.randrange(len(content))] = generator.randrange(256)
        path.write_bytes(bytes(content[: len(content) - (k % 5) * 50]))
    subprocess.run([sys.executable, "-c", _READ, *folders], cwd=REPOSITORY, check=True)


def test_a_folder_s_name_is_not_cut_at_a_dot(tmp_path):
    root = write_folder(tmp_path)
    folder = tmp_path / "llava-1.5-7b"
    save(folder, pa.table(captions()))
    assert load(root, f"captioner={folder}").captioner == "llava-1_5-7b"
