"""What the documents say is true: commands compose, examples run, links lead somewhere."""

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest
import yaml

from bias_pipeline.commands import arguments
from bias_pipeline.commands.main import WORDS, main
from bias_pipeline.metrics.value_names import BEYOND
from bias_pipeline.run import compose, overrides
from bias_pipeline.run.launch import parse_sweep
from bias_pipeline.studies.metric_cards import cards
from tests.corpora import REPOSITORY
from tests.documented import NEEDS, documented_commands, reason_to_skip
from tests.documents import (
    DOCUMENTS,
    DOOR,
    blocks,
    commands,
    copy_package,
    links,
    own_package,
    recipes,
)
from tests.lic_folder import write_folder

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLES = [line for line in commands(CONTRIBUTING) if line.startswith(DOOR)]
PACKAGE = REPOSITORY / "bias_pipeline"
FOOTGUNS = (REPOSITORY / "docs" / "footguns.md").read_text(encoding="utf-8")
START = (REPOSITORY / "docs" / "start.md").read_text(encoding="utf-8")
PAGES = ("start", "audit", "sweeping", "python")
GUIDES = [README, *((REPOSITORY / "docs" / f"{page}.md").read_text("utf-8") for page in PAGES)]
DOOR_LINES = [line for text in GUIDES for line in commands(text) if line.startswith(DOOR)]
OWN_WORDS = ("audit", "benchmark", "browse", "caption", "compare", "data", "fit", "report")
OWN_ARGUMENTS = [[word] for word in OWN_WORDS]
DOOR_COMMANDS = [
    line for line in dict.fromkeys(DOOR_LINES) if line.split()[3:4] not in OWN_ARGUMENTS
]


def is_large(line: str) -> bool:
    """Whether a command has so many metrics that composing them takes its time."""
    return "metric=all" in line or line.count(",") > 6


@pytest.mark.parametrize(
    "line", [pytest.param(x, marks=pytest.mark.slow) if is_large(x) else x for x in DOOR_COMMANDS]
)
def test_a_command_of_the_readme_composes(line, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line.replace("DIR", str(write_folder(tmp_path / "data"))))[3:]
    if words[:1] == ["submit"]:
        del words[0]
    if words[:1] == ["analysis"]:
        words += ["dataset.n_images=50", "seeds=2"]
        words += ["--resamples=2"] if words[1] == "words" else []
    elif words[:1] != ["metrics"]:
        assert parse_sweep(arguments.expand_flags(words)).config
        return
    assert main(words) == 0
    assert capfd.readouterr().out


@pytest.mark.parametrize("line", commands(FOOTGUNS))
def test_a_command_of_the_footguns_composes(line, tmp_path, monkeypatch):
    """Its first choices; running them all is what the page's numbers were made by."""
    monkeypatch.chdir(tmp_path)
    words = [word for word in shlex.split(line)[3:] if "=" in word]
    options = overrides.options_of(words)
    overrides.check_names(options)
    compose.composed_cell(overrides.representative_overrides(options.overrides), options)


def test_every_reason_to_skip_a_command_is_that_of_one():
    shown = [command for _, command in documented_commands(())]
    assert [what for what, *_ in NEEDS if not any(re.search(what, item) for item in shown)] == []


def test_most_documented_commands_need_nothing_that_is_not_here():
    skipped = [reason_to_skip(command) is not None for _, command in documented_commands(())]
    assert len(skipped) > 60
    assert sum(skipped) < len(skipped) / 2


def test_every_footgun_says_what_is_done_about_it():
    sections = FOOTGUNS.split("\n## ")[1:]
    assert len(sections) >= 12
    assert [text for text in sections if "*Here*" not in text and "](" not in text] == []


def test_the_metric_cards_are_those_of_the_code():
    written = (REPOSITORY / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert written == cards(), "run: python -m bias_pipeline metrics --cards > docs/metrics.md"


def words_of(line: str) -> str:
    """The word of a command, or both of its words."""
    first = shlex.split(line)[3:5]
    return max((w.name for w in WORDS if w.name in (first[0], " ".join(first))), key=len)


@pytest.mark.parametrize("word", [w.name for w in WORDS if w.name.split()[:1] in OWN_ARGUMENTS])
def test_flags_that_the_readme_uses_are_in_the_help(word, capsys):
    with contextlib.suppress(SystemExit):  # argparse ends the process after its help
        main([*word.split(), "--help"])
    known = capsys.readouterr().out
    lines = [line for line in DOOR_LINES if f"{DOOR} {word}" in line and words_of(line) == word]
    used = {flag for line in lines for flag in re.findall("--[a-z-]+", line)}
    assert [flag for flag in used if flag not in known] == []


def test_the_first_pages_show_the_door():
    assert len(DOOR_COMMANDS) >= 10


def test_make_targets_exist():
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"(?m)^([a-z-]+):", makefile))
    texts = {path.name: path.read_text(encoding="utf-8") for path in DOCUMENTS}
    assert [
        (name, absent) for name, t in texts.items() if (absent := make_targets(t) - targets)
    ] == []


def test_attributes_that_the_docs_list_have_these_groups():
    labels = (REPOSITORY / "docs" / "labels.md").read_text(encoding="utf-8")
    section = labels.partition("## Built-in attributes")[2].partition("\n## ")[0]
    shown = re.findall(r"(?m)^\| `(\w+)` \| ([^|(]+)", section)
    assert len(shown) >= 6
    for name, groups in shown:
        conf = REPOSITORY / "conf" / "attribute" / f"{name}.yaml"
        declared = yaml.safe_load(conf.read_text(encoding="utf-8"))["groups"]
        assert groups.strip().split(", ") == declared, name


def test_what_the_makefile_runs_exists():
    lines = re.findall(r"(?m)^\t(.*)$", (REPOSITORY / "Makefile").read_text(encoding="utf-8"))
    paths = {path for line in lines for path in re.findall(r"(?<![\w./])tests/[\w/.]+", line)}
    modules = {name for line in lines for name in re.findall(r"-m ([\w]+\.[\w.]+)", line)}
    places = {module: module.replace(".", "/") for module in modules}
    assert len(paths) >= 3
    assert [path for path in paths if not (REPOSITORY / path).exists()] == []
    assert [
        module
        for module, place in places.items()
        if not (REPOSITORY / f"{place}.py").is_file() and not (REPOSITORY / place).is_dir()
    ] == []


def make_targets(text: str) -> set[str]:
    """The targets of make that a document names."""
    lines = {line.split()[1] for line in commands(text) if line.startswith("make ")}
    return lines | set(re.findall(r"`make ([a-z-]+)", text))


def test_the_files_of_the_house_exist():
    house = CONTRIBUTING.partition("## The house in ten minutes")[2].partition("\n## ")[0]
    for line in house.splitlines():
        room, *names = re.findall(r"`([\w/]+(?:/|\.\w+))`", line) or [""]
        for name in (room, *names) if room else ():
            pattern = name.replace("NAME", "*").rstrip("/")
            places = (REPOSITORY, PACKAGE, PACKAGE / room)
            assert any(any(place.glob(pattern)) for place in places), name


def test_links_lead_to_files():
    assert [
        (str(path.relative_to(REPOSITORY)), target)
        for path in DOCUMENTS
        for target in links(path.read_text(encoding="utf-8"))
        if "://" not in target and not (path.parent / target).exists()
    ] == []


@pytest.mark.parametrize("block", [item for text in GUIDES for item in blocks(text, "python")])
def test_a_python_example_runs(block):
    exec(compile(block, "a guide", "exec"), {})


@pytest.mark.slow
def test_the_examples_of_contributing_run_in_the_package(tmp_path):
    """In a copy of the package: files are written as shown, commands are run as shown."""
    copy_package(tmp_path)
    files = recipes()
    assert len(files) == 8
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    _run_the_examples(tmp_path, [line for line in EXAMPLES if "--include" not in line])


@pytest.mark.slow
@pytest.mark.parametrize("check", ["ruff check -q", "ruff format -q --check", "mypy"])
def test_the_examples_of_contributing_pass_the_linters(check, tmp_path):
    copy_package(tmp_path)
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    files = recipes()
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    modules = [name for name in files if name.endswith(".py")]
    command = [sys.executable, "-m", *check.split(), *modules]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_examples_of_contributing_run_in_a_package_of_ones_own(tmp_path):
    """In an empty folder: the same files in another package, which is included."""
    own_package(tmp_path, "mine")
    included = [line for line in EXAMPLES if "--include" in line]
    assert len(included) == 1
    _run_the_examples(tmp_path, included, PYTHONPATH=str(REPOSITORY))
    others = [line for line in EXAMPLES if line not in included]
    _run_the_examples(tmp_path, others, PYTHONPATH=str(REPOSITORY), BIAS_PIPELINE_INCLUDE="mine")


def _run_the_examples(folder: Path, lines: Sequence[str], **environment: str) -> None:
    sheet = [f"{i},{'mf'[i % 2]},a red {('car', 'cat')[i % 2]},a dog" for i in range(80)]
    (folder / "captions.csv").write_text("\n".join(["id,sex,mine,human", *sheet]))
    for line in lines:
        command = [sys.executable, *shlex.split(line)[1:]]
        variables = {**os.environ, "PYTHONPATH": str(folder), **environment}
        subprocess.run(command, cwd=folder, env=variables, check=True)


def test_the_readme_has_the_rows_of_the_study():
    """The table of real captioners is the committed one, digit by digit."""
    study = (REPOSITORY / "experiments" / "leaderboard" / "RESULTS.md").read_text(encoding="utf-8")
    _, _, after = study.partition("## gender: every metric\n\n")
    lines = [line.strip("| ").split(" | ") for line in after.partition("\n\n")[0].splitlines()]
    table = {name: cells for name, *cells in lines}
    table["at equal style"] = [_at_equal_speech(name) for name in table["gender"]]
    shown = ("gender", "LIC", "at equal style", "Error", "Quality")
    expected = {f"| {' | '.join(line)} |" for line in zip(*map(table.get, shown), strict=True)}
    assert expected - set(README.splitlines()) == set()


def _at_equal_speech(captioner: str) -> str:
    rows = pd.read_csv(REPOSITORY / "experiments" / "equal_speech" / "rows.csv")
    of = {"attribute": "gender", "metric": "lic", "alignment": "matched", "part": BEYOND}
    (row,) = rows[(rows[[*of]] == [*of.values()]).all(axis=1)].query("captioner == @captioner").iloc
    arrow = "↑" if row.ci_low > 0 else "↓" if row.ci_high < 0 else "≈"
    value, low, high = (f"{100 * x:.1f}" for x in (row.value, row.ci_low, row.ci_high))
    letters = "" if arrow == "↓" else f" {row.letters}"  # leaking less than people is no merit
    return f"{value} [{low}, {high}] {arrow}{letters}"


@pytest.mark.slow
def test_the_first_page_has_the_table_of_the_demo(tmp_path, monkeypatch, capfd):
    """Every number within a tenth of a percentage point, which another machine may round off."""
    monkeypatch.chdir(tmp_path)
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    (demo,) = re.findall(r"(?m)^demo:.*\n\t@.* -m bias_pipeline (.*)$", makefile)
    assert main(shlex.split(demo)) == 0
    (block,) = [item for item in blocks(START, "text") if "dampener" in item]
    printed = capfd.readouterr().out
    assert printed.count("learning curve") == 1
    shown, measured = _planted_and_found(block), _planted_and_found(printed)
    assert len(shown) == 14
    assert max(map(len, block.splitlines())) <= 80
    assert shown.keys() == measured.keys()
    for cell, values in measured.items():
        assert shown[cell] == pytest.approx(values, abs=0.101), cell


def _planted_and_found(text: str) -> dict[tuple[str, str], list[float]]:
    """(captioner, metric) to what was planted, and what was found with its interval."""
    table = text[text.index("what we planted") :]
    return {
        (captioner, metric): [float(number) for number in re.findall(r"-?\d+\.\d+", numbers)]
        for captioner, metric, numbers in re.findall(r"(?m)^  (\w+) +(lic|leakage) +(.*)$", table)
    }


def test_no_document_names_a_machine():
    home = os.path.expanduser("~")  # noqa: PTH111 - the text, not a path
    place = re.compile(rf"(?<![\w.]){re.escape(home)}/|(?<![\w.])/(work|tmp|home)/")
    assert [path for path in DOCUMENTS if place.search(path.read_text(encoding="utf-8"))] == []


FAULTS = (REPOSITORY / "docs" / "faults.md").read_text(encoding="utf-8")


def test_every_fault_is_told_once():
    assert re.findall(r"(?m)^\| (\d+) \|", FAULTS) == [str(number) for number in range(1, 25)]


def test_every_fault_is_held_by_tests_that_exist():
    for line in re.findall(r"(?m)^\| \d.*$", FAULTS):
        tests = re.findall(r"\[(test_\w+)\]\(\.\./(tests/[\w/]+\.py)\)", line)
        assert tests, line
        for name, path in tests:
            assert f"\ndef {name}(" in (REPOSITORY / path).read_text(encoding="utf-8"), name
