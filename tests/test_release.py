"""What a release promises, as far as it needs no installation; the rest is make release-check."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import bias_pipeline
from bias_pipeline.io import installation
from tests import newest
from tests.advisories import requirements_of_all, too_low
from tests.corpora import REPOSITORY
from tests.environments import interpreter_of
from tests.release import CONTENT, LATER, faults_of, lowest

PROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))[
    "project"
]
WORKFLOWS = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))


def check_schema(schema: str, *files: Path) -> str:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema]
    done = subprocess.run([*command, *map(str, files)], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout


@pytest.mark.parametrize(
    "schema", ["vendor.github-workflows", "custom.github-workflows-require-timeout"]
)
def test_workflows_fit_their_schema(schema):
    assert len(WORKFLOWS) == 4
    assert check_schema(schema, *WORKFLOWS) == ""


def test_a_workflow_with_a_misspelt_key_would_be_noticed(tmp_path):
    text = WORKFLOWS[0].read_text(encoding="utf-8").replace("runs-on:", "run-on:")
    (tmp_path / "w.yml").write_text(text)
    assert "runs-on" in check_schema("vendor.github-workflows", tmp_path / "w.yml")


def test_workflows_call_targets_that_exist():
    targets = set(re.findall(r"(?m)^([a-z-]+):", (REPOSITORY / "Makefile").read_text("utf-8")))
    called = {
        target
        for path in WORKFLOWS
        for target in re.findall(r"run: make ([a-z-]+)", path.read_text("utf-8"))
    }
    assert "release-check" in called
    assert called <= targets


def test_only_the_job_that_publishes_may_prove_who_it_is():
    proving = [
        (path.stem, name)
        for path in WORKFLOWS
        for name, job in yaml.safe_load(path.read_text("utf-8"))["jobs"].items()
        if "id-token" in job.get("permissions", {})
    ]
    assert proving == [("release", "publish")]


def test_a_release_is_refused_while_its_page_has_placeholders():
    """The one place where the package's home is named."""
    assert {*PROJECT["urls"]} == {"Documentation", "Source", "Changelog", "Issues"}
    assert all(url.startswith("https://") for url in PROJECT["urls"].values())
    workflow = yaml.safe_load((REPOSITORY / ".github/workflows/release.yml").read_text("utf-8"))
    assert workflow["jobs"]["publish"]["needs"] == "check"
    (check,) = (
        step["run"]
        for step in workflow["jobs"]["check"]["steps"]
        if "placeholders" in step.get("name", "")
    )
    done = subprocess.run(["bash", "-c", check], cwd=REPOSITORY, capture_output=True, check=False)
    placeholders = [url for url in PROJECT["urls"].values() if "example.org" in url]
    assert (done.returncode != 0) == bool(placeholders)


def test_the_versions_of_python_are_the_same_everywhere():
    classified = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if ":: 3." in name]
    tests = yaml.safe_load((REPOSITORY / ".github/workflows/tests.yml").read_text("utf-8"))
    assert tests["jobs"]["test"]["strategy"]["matrix"]["python"] == classified
    assert [classified[0], *LATER] == classified
    release = (REPOSITORY / ".github/workflows/release.yml").read_text("utf-8")
    assert re.findall(r"(?m)^ +(3\.\d+)$", release) == classified[::-1]
    assert PROJECT["requires-python"] == f">={classified[0]}"
    assert f"from {classified[0]} to {classified[-1]}" in (
        (REPOSITORY / "docs" / "versions.md").read_text("utf-8")
    )


def test_the_newest_tested_version_of_each_package_is_listed_and_allowed():
    lines = newest.PATH.read_text("utf-8").splitlines()
    listed = dict(line.split("==") for line in lines if not line.startswith("#"))
    requirements = [Requirement(line) for line in requirements_of_all()]
    named = {canonicalize_name(one.name): one.specifier for one in requirements}
    del named["bias-pipeline"]
    always = {canonicalize_name(Requirement(line).name) for line in PROJECT["dependencies"]}
    assert always <= {*listed} <= {*named}
    assert {name: v for name, v in listed.items() if v not in named[name]} == {}


def test_what_runs_before_a_commit_is_make_lint():
    hooks = yaml.safe_load((REPOSITORY / ".pre-commit-config.yaml").read_text("utf-8"))
    (repository,) = hooks["repos"]
    assert repository["repo"] == "local"
    assert [hook["entry"] for hook in repository["hooks"]] == ["make -s lint"]


ISSUE_FORMS = sorted((REPOSITORY / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def test_forms_of_issues_fit_their_schema():
    *forms, config = sorted(ISSUE_FORMS, key=lambda path: path.stem == "config")
    assert len(forms) == 3
    assert check_schema("vendor.github-issue-forms", *forms) == ""
    assert check_schema("vendor.github-issue-config", config) == ""


def test_a_wrong_number_is_reported_with_command_manifest_and_files():
    (form,) = [path for path in ISSUE_FORMS if path.stem == "wrong-number"]
    fields = {field["id"] for field in yaml.safe_load(form.read_text())["body"]}
    assert {"command", "manifest", "files"} <= fields


def test_the_citation_fits_its_schema():
    assert check_schema("vendor.citation-file-format", REPOSITORY / "CITATION.cff") == ""


def test_the_version_is_one():
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text("utf-8"))
    changelog = (REPOSITORY / "CHANGELOG.md").read_text("utf-8")
    version, day = re.findall(r"(?m)^## \[(\d[\d.]*)\] - (\S+)$", changelog)[0]
    assert {version, PROJECT["version"], str(citation["version"])} == {bias_pipeline.__version__}
    assert day == str(citation["date-released"])


def test_the_section_of_a_release_takes_two_minutes_to_read():
    changelog = (REPOSITORY / "CHANGELOG.md").read_text("utf-8")
    sections = re.split(r"(?m)^## \[\d", changelog)[1:]
    assert [len(text.split()) for text in sections if len(text.split()) > 480] == []  # 240 a minute


def test_every_file_of_the_package_may_be_in_the_wheel():
    """A new table in the package is named in tests/release.py, or is no part of it."""
    files = [path for path in (REPOSITORY / "bias_pipeline").rglob("*") if path.is_file()]
    names = [str(path.relative_to(REPOSITORY)) for path in files if path.suffix != ".pyc"]
    assert [name for name in names if not CONTENT.fullmatch(name)] == []


def wheel_of(folder: Path, **contents: str) -> Path:
    with zipfile.ZipFile(folder / "some.whl", "w") as file:
        for name, content in contents.items():
            file.writestr(name, content)
    return folder / "some.whl"


def test_a_wheel_with_tests_or_data_or_above_three_megabytes_is_refused(tmp_path):
    names = ("bias_pipeline/api.py", "tests/test_api.py", "bias_pipeline/captions.csv")
    faults = faults_of(wheel_of(tmp_path, **dict.fromkeys(names, "")))
    assert faults == ["holds tests/test_api.py", "holds bias_pipeline/captions.csv"]
    (fault,) = faults_of(wheel_of(tmp_path, **{"bias_pipeline/api.py": "x" * 3_000_001}))
    assert fault.startswith("has 3,000,")


def test_no_lower_bound_allows_a_known_hole():
    assert list(too_low(requirements_of_all())) == []


@pytest.mark.parametrize(
    ("line", "hole"),
    [
        ("torch>=2.4", "CVE-2026-24747"),
        ("torch>=2.9.1,<3", "CVE-2026-24747"),
        ("torch>=2.10.0", ""),
        ("Starlette[full]>=0.49", "CVE-2025-62727"),
        ("starlette>=1", ""),
        ("pyarrow>=16", ""),  # out of reach, as the list says
    ],
)
def test_a_lower_bound_that_allows_a_known_hole_is_named(line, hole):
    *_, last = ["", *too_low([line])]
    assert (hole in last, last.startswith(f"{line}: ") if hole else not last) == (True, True)


def test_the_lowest_versions_are_those_that_pyproject_names():
    assert lowest(["a>=1.3.6,<1.4", "b-c>=2.4,<3,!=2.6.2"]) == ["a==1.3.6", "b-c==2.4"]
    assert len(lowest(PROJECT["dependencies"])) == len(PROJECT["dependencies"])


def test_an_older_python_is_refused_in_one_sentence():
    python = interpreter_of("3.10")
    if python is None:
        pytest.skip("no Python 3.10")
    command = [python, "-m", "bias_pipeline", "--help"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 5
    assert re.fullmatch(
        r"error: bias_pipeline needs Python 3\.11 or later; this is Python 3\.10\.\d+\n",
        done.stderr,
    )


def test_a_python_without_the_packages_is_named_in_one_sentence():
    command = [
        sys.executable,
        "-S",
        "-m",
        "bias_pipeline",
        "metrics",
    ]  # as an environment not activated
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 5
    assert re.fullmatch(
        r"error: the module '\w+' is not installed for this Python, .*: activate .*\n", done.stderr
    )


def install(folder: Path, version: str, *, code: bool = True) -> Path:
    """A folder as pip leaves it: the record of a version, and its configuration and code."""
    (folder / f"bias_pipeline-{version}.dist-info").mkdir(parents=True)
    (folder / "bias_pipeline" / "conf").mkdir(parents=True, exist_ok=True)
    if code:
        (folder / "bias_pipeline" / "__init__.py").touch()
    return folder


def test_one_copy_raises_no_doubt_nor_does_an_installed_checkout(tmp_path, monkeypatch):
    record = install(tmp_path, "0.1.0", code=False)
    for places in ([str(REPOSITORY)], [str(REPOSITORY), str(record)]):
        monkeypatch.setattr(sys, "path", places)
        assert installation.doubts() == []


def test_a_checkout_in_front_of_an_installed_copy_is_named(tmp_path, monkeypatch):
    installed = install(tmp_path, "0.1.0")
    monkeypatch.setattr(sys, "path", [str(REPOSITORY), str(installed)])
    (sentence,) = installation.doubts()
    assert f"not the copy installed in {installed}: start in another folder" in sentence


def test_two_versions_in_one_environment_are_named(tmp_path, monkeypatch):
    install(tmp_path, "0.1.0", code=False)
    install(tmp_path, "0.2.0", code=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    (sentence,) = installation.doubts()
    assert "installed in 2 versions, 0.1.0 and 0.2.0: run pip uninstall" in sentence


def test_a_doubt_is_a_warning_of_every_command(tmp_path):
    """A wheel beside a checkout: the command runs, and says which copy it is."""
    variables = {"PATH": "", "PYTHONPATH": str(install(tmp_path, "0.1.0"))}
    command = [sys.executable, "-m", "bias_pipeline", "--help"]
    done = subprocess.run(
        command, cwd=REPOSITORY, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stderr.startswith("warning: this is bias_pipeline in ")


def test_the_version_comes_with_those_of_what_is_always_needed():
    names = {line.split()[0] for line in installation.versions()}
    assert {re.split(r"[><=!]", line)[0] for line in PROJECT["dependencies"]} <= names


def test_no_interpreter_is_invented():
    assert interpreter_of("2.99") is None
    assert shutil.which(interpreter_of(f"3.{sys.version_info.minor}") or "") is not None
