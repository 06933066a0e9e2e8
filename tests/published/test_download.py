"""Downloads, from a server of the test's own."""

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bias_pipeline.errors import ResourceError
from bias_pipeline.published.sources import Archive, download

MEMBERS = {"annotations/captions.json": "annotations/mine.json"}


class Silent(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    folder = tmp_path_factory.mktemp("served")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("annotations/captions.json", "[1]")
        file.writestr("annotations/other.json", "[2]")
    (folder / "a.zip").write_bytes(packed.getvalue())
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    sha = hashlib.sha256(packed.getvalue()).hexdigest()
    url = f"http://127.0.0.1:{server.server_port}/a.zip"
    yield Archive(url, sha, len(packed.getvalue()), MEMBERS)
    server.shutdown()
    server.server_close()
    thread.join()


def files(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_what_is_wanted_is_unpacked_under_its_name_and_nothing_else_is_kept(archive, tmp_path):
    download(archive, tmp_path / "coco")
    assert (tmp_path / "coco/annotations/mine.json").read_text() == "[1]"
    assert files(tmp_path) == ["coco/annotations/mine.json"]


def test_a_file_that_is_there_stays(archive, tmp_path):
    (tmp_path / "annotations").mkdir()
    (tmp_path / "annotations/mine.json").write_text("own")
    assert download(archive, tmp_path) == []
    assert (tmp_path / "annotations/mine.json").read_text() == "own"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sha256": "0" * 64}, "is not the file expected: its SHA-256 is"),
        ({"url": "http://127.0.0.1:9/a.zip"}, "cannot be downloaded"),
        ({"members": {"absent.json": "absent.json"}}, "no item named .*absent.json"),
        ({"size": 10**15}, "GB free"),
    ],
)
def test_what_cannot_be_had_leaves_nothing(archive, tmp_path, changes, message):
    with pytest.raises(ResourceError, match=message):
        download(replace(archive, **changes), tmp_path)
    assert files(tmp_path) == []
    with pytest.raises(ResourceError, match="404"):  # a page that is not there
        download(replace(archive, url=archive.url + "x"), tmp_path)
