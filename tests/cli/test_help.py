"""Every word has help that its parser makes and that does nothing else; shells complete it all."""

import os
import resource
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bias_pipeline import __version__
from bias_pipeline.commands.main import WORDS, completions, resolve_command
from bias_pipeline.run import slurm
from tests.corpora import REPOSITORY

NAMES = [word.name for word in WORDS]
MOST_S = 1.5  # CPU seconds of help


def test_every_word_has_help_with_its_options_that_does_nothing_else(ok, tmp_path, monkeypatch):
    monkeypatch.setattr(slurm, "check_slurm", lambda _: pytest.fail("Slurm was asked for"))
    texts = {word: ok(*word.name.split(), "--help") for word in WORDS}
    assert {text[:7] for text in texts.values()} == {"usage: "}
    lacking = [(w.name, flag) for w in WORDS for flag in w.parser().flags if flag not in texts[w]]
    assert lacking == []
    assert list(tmp_path.iterdir()) == []


def test_help_wins_over_whatever_else_is_asked(run):
    codes = {name: run(*name.split(), "x", "metric=nothing", "-h")[0] for name in NAMES}
    assert codes == dict.fromkeys(NAMES, 0)


@pytest.mark.parametrize(
    ("words", "first"),
    [("--help", ""), ("help", ""), ("data --help", "data "), ("analysis --help", "analysis ")],
)
def test_an_overview_names_every_word_below(ok, words, first):
    text = ok(*words.split())
    below = [name for name in NAMES if name.startswith(first)]
    assert [name for name in below if f"python -m bias_pipeline {name}" not in text] == []


def test_the_program_alone_shows_three_examples_and_computes_nothing(ok, tmp_path):
    text = ok()
    lines = text.rstrip("\n").split("\n")
    examples = [shlex.split(line)[3:] for line in lines if line.startswith("  python -m")]
    assert [resolve_command(words)[0].name for words in examples] == ["audit", "caption", "run"]
    assert len(lines) <= 12
    assert max(map(len, lines)) <= 100
    assert list(tmp_path.iterdir()) == []


def test_the_version_is_one_line_and_those_of_packages_are_asked_for(ok):
    assert ok("--version") == f"bias_pipeline {__version__}\n"
    first, *others = ok("--version", "--all").splitlines()
    assert first == f"bias_pipeline {__version__}"
    assert {"Python", "numpy", "torch"} <= {line.split()[0] for line in others}


@pytest.mark.parametrize("words", [("data", "valdate"), ("analysis", "word")], ids=" ".join)
def test_an_unknown_word_below_another_is_answered_with_the_nearest(ends, words):
    assert "did you mean" in ends(2, *words)


def test_a_family_of_words_alone_is_answered_with_its_words(ends):
    assert "python -m bias_pipeline data validate" in ends(2, "data")


def test_help_of_any_word_is_quick():
    """The slowest, by what is imported; in CPU seconds, for the machine may be busy."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    for words in (["audit"], ["submit", "embed"], ["analysis", "consistency"]):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "bias_pipeline", *words, "--help"]
        subprocess.run(command, env=environment, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert after.ru_utime - before.ru_utime < 2 * MOST_S, words


# --- completion


@pytest.mark.parametrize(
    ("line", "result"),
    [
        ("rep", ["report "]),
        ("report w", ["wandb "]),
        ("analysis coll", ["collocations "]),
        ("--dry", ["--dry-run "]),
        ("audit --attr", ["--attributes "]),
        ("metric=gender_", ["gender_error", "gender_ratio"]),
        ("run metric=lic split=db", ["dbac"]),
        ("captioner=terse encoder.or", ["encoder.order="]),
        ("compare a b alignment=con", ["constant"]),
        ("nothing here", []),
    ],
)
def test_a_line_is_completed(line, result):
    assert [
        completion for completion in completions(line) if completion in result or not result
    ] == result


def test_files_that_others_share_are_not_offered():
    assert "_scratch" not in completions("encoder=")


def test_bash_completes(tmp_path):
    results = {
        "python -m bias_pipeline data val": "validate ",
        "python -m bias_pipeline metric=leak": "leakage",
        "python -m other_module metric=leak": "",
        "python scri": "",
    }
    lines = "".join(
        f"COMP_LINE={line!r} COMP_POINT={len(line)}; COMPREPLY=()\n"
        '_bias_pipeline; echo "${COMPREPLY[0]}"\n'
        for line in results
    )
    script = f'eval "$(python -m bias_pipeline completion bash)"\n{lines}'
    place = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": place, "PYTHONPATH": str(REPOSITORY)}
    command = ["bash", "-c", script]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[:-1] == list(results.values())
