"""Files in other formats: the message has a command, and the command makes a file that is read."""

import bz2
import gzip
import io
import lzma
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import yaml
from pyarrow import feather, ipc

from bias_pipeline.data.captioner_files import CaptionerFolder
from bias_pipeline.data.coco_files import human_captions, model_captions
from bias_pipeline.data.foreign_files import way_to_read
from bias_pipeline.errors import DataError, UsageError

FRAME = pd.DataFrame({"image_id": [7, 8], "caption": ["a dog", "a cat"]})
CSV = FRAME.to_csv(index=False)


def stream(path: Path) -> None:
    table = pa.Table.from_pandas(FRAME)
    with ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)


def archive(path: Path) -> None:
    with tarfile.open(path, "w") as tar:
        info = tarfile.TarInfo("mine.csv")
        info.size = len(CSV)
        tar.addfile(info, io.BytesIO(CSV.encode()))


WRITERS: dict[str, Callable[[Path], object]] = {
    "mine.csv.gz": lambda path: path.write_bytes(gzip.compress(CSV.encode())),
    "mine.csv.bz2": lambda path: path.write_bytes(bz2.compress(CSV.encode())),
    "mine.csv.xz": lambda path: path.write_bytes(lzma.compress(CSV.encode())),
    "mine.parquet.gzip": lambda path: FRAME.to_parquet(path, compression="gzip"),
    "mine.tar": archive,
    "mine.feather": lambda path: feather.write_feather(FRAME, str(path)),
    "my mine.arrow": stream,
    "$mine.arrow": stream,
    "mine.yaml": lambda path: path.write_text(yaml.safe_dump(FRAME.to_dict("records"))),
    "mine.txt": lambda path: path.write_text(CSV),
    "mine.v2.dat": lambda path: path.write_text(FRAME.to_csv(index=False, sep="\t")),
    "mine.token": lambda path: path.write_text("7.jpg#0\ta dog\n8.jpg#0\ta cat\n"),
    "mine.jsonlines": lambda path: FRAME.to_json(path, orient="records", lines=True),
    "mine.js": lambda path: FRAME.to_json(path, orient="records"),
    "mine.pkl": lambda path: FRAME.to_pickle(path),
    "mine.npy": lambda path: np.save(path, np.array(FRAME.to_dict("records"))),
}


@pytest.mark.parametrize("name", WRITERS)
def test_the_command_of_the_message_makes_a_readable_file(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    WRITERS[name](Path(name))
    with pytest.raises(UsageError) as error:
        CaptionerFolder("coco", tmp_path / "captioners").file(name)
    with pytest.raises(DataError, match=r"ending .* is unknown") as other:
        human_captions(Path(name))
    advice = way_to_read(Path(name))
    assert str(error.value).endswith(f" {advice}")
    assert str(other.value).endswith(f" {advice}")
    before = set(tmp_path.iterdir())
    command = advice.split(": ", maxsplit=1)[1]
    if command.startswith("pandas"):
        code = f"import numpy, pandas; {command}"
        subprocess.run([sys.executable, "-c", code], check=True)
    else:
        if shutil.which(command.split()[0]) is None:
            pytest.skip(f"{command.split()[0]} is not installed")
        typed = re.sub("^python", shlex_python(), command)
        subprocess.run(["bash", "-c", typed], check=True)
    (made,) = set(tmp_path.iterdir()) - before
    assert list(model_captions(made).captions.values()) == ["a dog", "a cat"]


def shlex_python() -> str:
    """The Python that runs the tests, for a shell."""
    return sys.executable.replace(" ", "\\ ")


@pytest.mark.parametrize(
    ("name", "content", "advice"),
    [
        ("mine.xls", b"\xd0\xcf\x11\xe0" + bytes(9), "Save it as .xlsx"),
        ("mine.zip", b"PK\x03\x04", "unzip mine.zip"),
        ("mine.zst", b"\x28\xb5\x2f\xfd", "unzstd -c mine.zst > mine"),
        ("mine.h5", b"\x89HDF\r\n\x1a\n\0", "Write a table of it"),
        ("mine.txt", b"a dog\na cat\n", "Its first line has no columns. Write a table"),
        ("mine.txt", b"", "Its first line has no columns. Write a table"),
    ],
)
def test_other_files_are_named_by_what_they_hold(tmp_path, monkeypatch, name, content, advice):
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(content)
    with pytest.raises(UsageError, match=re.escape(advice)):
        CaptionerFolder("coco", tmp_path / "captioners").file(name)
