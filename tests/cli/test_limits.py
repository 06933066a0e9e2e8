"""What would hang, fill the memory or end in a traceback: a sentence and an exit code, soon."""

import json
import os
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator

import numpy as np
import pytest
from PIL import Image

from bias_pipeline.commands import main as door
from bias_pipeline.data.photos import find_photos, read_photo
from bias_pipeline.errors import DataError, ResourceError, is_out_of_memory
from bias_pipeline.io import signals
from bias_pipeline.models.pretrained import find_pretrained
from bias_pipeline.models.sentences import KINDS, Sentences, pooling_of
from bias_pipeline.models.weight_files import read_numbers
from bias_pipeline.run.lightning_loggers import MlflowLogger
from tests.cli.commands import SMALL
from tests.corpora import REPOSITORY
from tests.results.test_store import row
from tests.tiny_models import write_bert


@pytest.mark.parametrize("value", ["range(1e8)", "range(0,1,1e-9)", "shuffle(range(100000000))"])
def test_a_range_without_end_is_refused_at_once(ends, value):
    started = time.monotonic()
    assert "at most 10,000 values" in ends(2, *SMALL, f"seeds={value}")
    assert time.monotonic() - started < 10


def test_a_sweep_of_too_many_jobs_is_refused_with_their_number(ends):
    assert "the sweep has 1,000,000 jobs" in ends(
        2, *SMALL, "seeds=range(1,1001)", "limit=range(1,1001)"
    )


def test_a_link_that_loops_is_named(tmp_path):
    Image.new("RGB", (4, 4)).save(tmp_path / "1.png")
    (tmp_path / "2.png").symlink_to("2.png")
    with pytest.raises(ResourceError, match=r"2\.png: cannot be read"):
        find_photos(tmp_path)


def test_packed_weights_are_refused_before_they_are_unpacked(tmp_path):
    path = tmp_path / "bomb.pth"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("archive/data.pkl", b"\x80\x02}q\x00.")
        file.writestr("archive/data/0", bytes(50_000_000))
    with pytest.raises(DataError, match="unpacks to 50,000"):
        read_numbers(path)


@pytest.mark.parametrize("longest", [-1, 0, "many"])
def test_a_tokenizer_that_reads_nothing_is_refused(tmp_path, longest):
    import torch

    write_bert(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "model_max_length": longest}))
    model = find_pretrained(str(tmp_path), KINDS)
    with pytest.raises(DataError, match=r"model_max_length=|tokenizer cannot be loaded"):
        Sentences(model, torch.device("cpu"), pooling_of(model, None, None))


@pytest.mark.parametrize("mode", ["RGBA", "LA", "PA"])
def test_a_transparent_photo_in_strips_is_as_it_is_whole(tmp_path, mode):
    noise = np.random.default_rng(0).integers(0, 256, (600, 30, 4), np.uint8)
    photo = Image.fromarray(noise, "RGBA").convert(mode)
    photo.save(tmp_path / "1.png" if mode != "PA" else tmp_path / "1.tiff")
    (path,) = tmp_path.iterdir()
    whole = Image.open(path).convert("RGBA")
    ground = Image.new("RGBA", whole.size, "white")
    wanted = Image.alpha_composite(ground, whole).convert("RGB")
    assert (np.asarray(read_photo(path)) == np.asarray(wanted)).all()


PEAK = """\
import re, sys
from pathlib import Path
from PIL import Image
from bias_pipeline.data.photos import read_photo
read_photo(Path(sys.argv[1]))
status = Path("/proc/self/status").read_text()  # its own peak: getrusage has its parent's too
print(int(re.search("VmHWM:[^0-9]+([0-9]+)", status)[1]) // 1000)
"""


@pytest.mark.slow
def test_the_largest_transparent_photo_takes_less_than_a_gigabyte(tmp_path):
    path = tmp_path / "1.png"
    Image.new("RGBA", (9400, 9400), (1, 2, 3, 4)).save(path, compress_level=1)
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(path)],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) < 900


# --- servers that are down


@pytest.fixture
def deaf() -> Iterator[str]:
    """The address of a server that takes connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("kind", ["deaf", "absent"])
def test_an_mlflow_server_that_is_down_costs_ten_seconds_at_most(tmp_path, deaf, kind, caplog):
    pytest.importorskip("mlflow")
    from bias_pipeline.results.rows import Result

    address = deaf if kind == "deaf" else "http://127.0.0.1:1"
    logger = MlflowLogger(str(tmp_path), uri=address)
    started = time.monotonic()
    for number in range(3):
        result = Result(f"r{number}", [row(f"r{number}", part="score")], {})
        logger.try_log(result)
    assert time.monotonic() - started < 10
    assert caplog.text.count("does not answer") == 1


# --- memory


LATE = pytest.param(1010, 1, marks=pytest.mark.slow)  # while it trains
HELPED = pytest.param(1010, 2, marks=pytest.mark.slow)  # seeds are trained by two processes


@pytest.mark.parametrize(("megabytes", "seeds"), [(200, 1), (300, 1), (700, 1), LATE, HELPED])
def test_a_memory_limit_is_a_sentence(tmp_path, megabytes, seeds):
    words = [*SMALL, "metric=lic", "encoder=lstm", f"seeds={seeds}"]
    done = subprocess.run(
        ["sh", "-c", f'ulimit -v {megabytes * 1000}; exec "$0" "$@"', sys.executable, "-m",
         "bias_pipeline", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )  # fmt: skip
    text = done.stdout + done.stderr
    assert (done.returncode, "memory" in text, "Traceback" in text) == (5, True, False), text


@pytest.mark.parametrize(
    "words",
    ["error return without exception set", "<f> returned NULL without setting an exception"],
)
def test_memory_that_an_import_lacks_is_no_bug(words):
    assert is_out_of_memory(SystemError(words))


@pytest.mark.parametrize("word", ["create", "execute"])
def test_memory_that_onednn_lacks_is_no_bug(word):
    assert is_out_of_memory(RuntimeError(f"could not {word} a primitive"))


# --- the last instant


def test_ctrl_c_when_all_is_done_leaves_no_traceback(monkeypatch):
    def interrupt() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(door, "main", interrupt)
    ignored = []
    monkeypatch.setattr(signals, "ignore_signals", lambda: ignored.append(1))
    assert (door.program(), ignored) == (130, [1])


def test_ctrl_c_while_the_process_ends_is_too_late():
    code = (
        "import atexit, os, signal, sys\n"
        "from bias_pipeline.commands.main import program\n"
        "sys.argv = ['x', '--version']\n"
        "atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))\n"
        "sys.exit(program())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
