"""doctor: what files are, what they allow, and what this machine has."""

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import yaml

from bias_pipeline.commands import doctor
from bias_pipeline.commands.doctor import LABELS, MODEL, OBJECTS, PEOPLE, PHOTOS, recognise
from bias_pipeline.io import installation
from bias_pipeline.run import loggers
from tests.corpora import REPOSITORY


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A model's captions, labels, human captions, objects, and a photo."""
    monkeypatch.chdir(tmp_path)
    ids = range(40)
    groups = ["male" if number % 2 else "female" for number in ids]
    tables = {
        "mine.csv": ["image_id,caption", *(f"{n},a dog and a {groups[n]}" for n in ids)],
        "labels.csv": ["image_id,gender", *(f"{n},{groups[n]}" for n in ids)],
        "people.csv": ["image_id,caption", *(f"{n},a {word}" for n in ids for word in "xyz")],
        "things.csv": ["image_id,category", *(f"{n},dog" for n in ids)],
    }
    for name, lines in tables.items():
        Path(name).write_text("\n".join(lines))
    Path("photos").mkdir()
    Path("photos/7.jpg").write_bytes(b"")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("mine.csv", MODEL),
        ("labels.csv", LABELS),
        ("people.csv", PEOPLE),
        ("things.csv", OBJECTS),
        ("photos", PHOTOS),
    ],
)
def test_each_file_is_recognised(files, name, kind):
    assert [*recognise(Path(name)).kinds] == [kind]


def test_a_file_may_be_of_several_kinds(files):
    Path("all.csv").write_text("image_id,caption,gender\n1,a dog,male\n2,a cat,female\n")
    assert {*recognise(Path("all.csv")).kinds} == {MODEL, LABELS}


def test_files_that_allow_an_audit_are_read_together_and_it_is_named(ok, files):
    printed = ok("doctor", "labels.csv", "mine.csv")
    assert "labels.csv: labels: gender (40 images)" in printed
    assert "mine.csv: captions of a model: 40 captions, one an image" in printed
    assert re.search(r"model captions +40 of 40 images", printed)
    assert "in part Does it leak the group? (lacks human captions)" in printed
    assert "no      Does it invent objects for one group? (lacks objects)" in printed
    assert "\npython -m bias_pipeline audit mine.csv --attributes labels.csv\n" in printed


def test_only_sets_of_pictures_are_lacking_where_every_kind_of_file_is_there(ok, files):
    printed = ok("doctor", "labels.csv", "mine.csv", "people.csv", "things.csv", "photos")
    assert re.findall(r"\(lacks (.*)\)", printed) == ["sets of pictures"]
    command = "--attributes labels.csv --captions people.csv --objects things.csv --images photos"
    assert f"audit mine.csv {command}\n" in printed


def test_the_command_that_is_named_runs(ok, files):
    lines = ok("doctor", "labels.csv", "mine.csv").splitlines()
    (command,) = (line for line in lines if line.startswith("python -m bias_pipeline audit"))
    assert "female" in ok(*command.split()[3:], "--dry-run")


def test_two_models_are_compared(ok, files):
    Path("other.csv").write_text(Path("mine.csv").read_text().replace("dog", "cat"))
    printed = ok("doctor", "mine.csv", "other.csv", "labels.csv")
    assert "compare mine.csv other.csv --attributes labels.csv\n" in printed


@pytest.mark.parametrize(
    ("names", "advice"),
    [
        (["labels.csv"], "caption PHOTOS --model MODEL --out captions"),
        (["labels.csv", "photos"], "caption photos --model MODEL --out captions"),
        (["mine.csv", "photos"], "rate photos --attribute gender --out labels"),
    ],
)
def test_what_is_missing_before_an_audit_is_made_by_a_command(ok, files, names, advice):
    assert advice in ok("doctor", *names)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("absent.csv", None, "absent.csv is absent"),
        ("page.html", "<p>", "the ending '.html' is unknown"),
        ("odd.csv", "photo,sex\n1.jpg,M\n", "no captions, no objects and no labels"),
        ("odd.csv", "id,gender\n1,Q\n", "unknown labels in 'gender': 'Q'"),
    ],
)
def test_a_file_that_is_of_no_kind_is_said_to_be_so(ok, files, name, content, message):
    if content is not None:
        Path(name).write_text(content)
    printed = ok("doctor", name, "mine.csv", "labels.csv")
    assert f"not read: {name}" in printed
    assert message in printed
    assert "audit mine.csv --attributes labels.csv" in printed


def test_files_that_do_not_belong_together_are_said_to_be_so(ok, files):
    Path("labels.csv").write_text("image_id,gender\nx1,male\nx2,female\n")
    assert "An audit cannot read these files together: " in ok("doctor", "mine.csv", "labels.csv")


def test_without_files_it_says_what_this_machine_has(ok):
    printed = ok("doctor")
    for line in installation.versions():
        assert f"{line}\n" in printed
    for what in (
        "extra report: ",
        "published weights: ",
        "GPU: ",
        "Java ",
        "Slurm: ",
        "W&B: wandb",
    ):
        assert what in printed


def test_a_program_that_hangs_or_fails_counts_as_absent(monkeypatch):
    monkeypatch.setattr(doctor, "_SECONDS", 0.1)
    assert doctor._program_output("sleep", "9") == doctor._program_output("false") == []


def test_what_an_audit_needs_is_part_of_what_the_package_requires(ok):
    """Its own metadata; make release-check installs these alone and audits."""
    lines = ok("doctor", "--requirements", "audit").splitlines()
    named = {re.match(r"[\w-]+", line)[0] for line in lines}
    assert {"hydra-core", "jinja2", "matplotlib", "numpy", "pyarrow", "scipy"} <= named
    assert not {"torch", "transformers", "wandb", "pytorch-lightning"} & named
    assert "--requirements takes no files" in _refusal("doctor", "--requirements", "audit", "x.csv")


def _refusal(*words):
    done = subprocess.run(
        [sys.executable, "-m", "bias_pipeline", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    assert done.returncode == 2
    return done.stderr


def test_what_an_audit_needs_is_printed_where_nothing_else_is_installed(tmp_path):
    folder = tmp_path / f"bias_pipeline-{metadata.version('bias_pipeline')}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(
        "Metadata-Version: 2.4\nName: bias_pipeline\nVersion: 0.1.0\nRequires-Dist: numpy>=1\n"
        "Requires-Dist: torch>=2\nRequires-Dist: jinja2>=3; extra == 'report'\n"
    )
    code = "import sys; from bias_pipeline.commands.main import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, "doctor", "--requirements", "audit"],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": f"{tmp_path}:{REPOSITORY}"},
    )
    assert done.stdout.splitlines() == ["jinja2>=3", "numpy>=1"]


def test_without_wandb_its_logger_says_so_once(monkeypatch, caplog, tmp_path):
    monkeypatch.setattr(loggers, "find_spec", lambda name: None)
    monkeypatch.setattr(loggers, "_warned", set())
    for _ in range(2):
        loggers.WandbLogger(str(tmp_path)).try_log(None)
    (message,) = caplog.messages
    assert "the package wandb is not installed; logger=csv" in message


def test_the_default_loggers_are_csv_and_wandb():
    config = yaml.safe_load((REPOSITORY / "conf" / "config.yaml").read_text("utf-8"))
    assert {"logger": ["csv", "wandb"]} in config["defaults"]
