"""Builds the release and tries it as its first user would: ``make release-check``.

The wheel is installed alone in new environments in a temporary folder: whole under this Python,
and under each later one that is found; without PyTorch where that has no build for CPUs. Packages
come from the index that pip is set to use. Half an hour on two busy cores, so it is no part of
``make test``; the parts that need no installation are tested in tests/test_release.py.
"""

import csv
import random
import re
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bias_pipeline import __version__
from tests.corpora import REPOSITORY
from tests.documents import DOOR, commands, own_package
from tests.environments import CONSTRAINTS, Environment, build, environment, interpreter_of

LATER = ("3.12", "3.13", "3.14")
LARGEST = 3_000_000  # bytes of the wheel
LIGHT = 600  # megabytes of what audit needs, with pip's own
HEAVY = ("torch", "transformers", "wandb")
ONE = f"{sys.version_info.major}.{sys.version_info.minor}"
# Neither counting metrics nor encoder=ngram need them.
LEARNING = ("torch", "pytorch-lightning", "timm")
CONTENT = re.compile(
    r"bias_pipeline/[\w./]+\.(py|yaml|css|js|j2|txt)"
    r"|bias_pipeline/py\.typed"
    r"|bias_pipeline/(studies/features|report/(benchmark_1|flatness|power))\.csv"  # figures and ids
    r"|bias_pipeline/(models/published_captioners|text/phrases)\.csv"  # names, phrases of refusal
    r"|bias_pipeline/people/anonymous_prompts\.csv"
    r"|bias_pipeline/integrations/lmms_eval/README\.md"  # as lmms-eval's own tasks have
    r"|bias_pipeline-[\w.]+\.dist-info/[\w./]+"
)


def faults_of(wheel: Path) -> list[str]:
    """What should not be in a wheel: tests, data, anything that it does not need; its size."""
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
    faults = [f"holds {name}" for name in names if not CONTENT.fullmatch(name)]
    size = wheel.stat().st_size
    return faults + ([f"has {size:,} bytes"] if size > LARGEST else [])


@dataclass(frozen=True)
class Trial:
    """A command and how it must end."""

    words: Sequence[str]
    message: str  # that it must print
    code: int = 0


PROGRAM = "bias-pipeline"
SMALL = ("dataset.n_images=300", "seeds=2", "stats.resamples=50")
BASE = (
    Trial((PROGRAM, "--version"), f"bias_pipeline {__version__}"),
    Trial((PROGRAM, "--help"), "metric="),
    Trial((PROGRAM, "metric=lic,gender_error,ba_mals", "captioner=faithful", *SMALL), "3 jobs"),
    Trial(("python", "-m", "bias_pipeline", "metrics"), "gender_error"),
    Trial((PROGRAM, "report", "outputs"), "pip install 'bias_pipeline[report]'", 5),
    Trial((PROGRAM, "submit", *SMALL), "pip install 'bias_pipeline[slurm]'", 5),
)
EXTRAS = (
    Trial((PROGRAM, "audit", "five.csv", "--attributes", "labels5.csv"), "at least 10 images", 2),
    Trial((PROGRAM, "audit", "sixty.csv", "--attributes", "labels60.csv"), "Does it name the"),
    Trial((PROGRAM, "report", "outputs"), "report.html"),
    Trial((PROGRAM, "cluster=slurm", "captioner=faithful,terse", "--dry-run"), "2 to run"),
)


# Where only what `doctor --requirements audit` prints is installed.
LIGHT_TRIALS = (
    Trial(
        (PROGRAM, "metric=lic,gender_error,ba_mals", "captioner=faithful,amplifier", *SMALL), "W&B"
    ),
    Trial((PROGRAM, "audit", "sixty.csv", "--attributes", "labels60.csv"), "Does it name the"),
    Trial((PROGRAM, "compare", "sixty.csv", "other.csv", "--attributes", "labels60.csv"), "sixty"),
    Trial((PROGRAM, "report", "outputs"), "report.html"),
    Trial((PROGRAM, "doctor"), "torch is not installed"),
    Trial((PROGRAM, "doctor", "sixty.csv", "labels60.csv"), "audit sixty.csv"),
)


def plugin() -> list[Trial]:
    """The metric of CONTRIBUTING.md in a package of one's own."""
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    line = next(line for line in commands(text) if "--include" in line)
    return [Trial((PROGRAM, *line.removeprefix(DOOR).split()), "included: mine")]


def prepare(folder: Path) -> None:
    """An own metric, and captions of five and of sixty images with their labels."""
    own_package(folder, "mine")
    for name, n_images in {"five": 5, "sixty": 60}.items():
        labels = [(i, random.Random(i).choice(["male", "female"])) for i in range(n_images)]
        words = {"male": "man", "female": "woman"}
        for file, things in {name: ("dog", "cake"), "other": ("cup", "bus")}.items():
            captions = [(i, f"a {words[group]} with a {things[i % 3 == 0]}") for i, group in labels]
            _write(folder / f"{file}.csv", "caption", captions)
        _write(folder / f"labels{n_images}.csv", "gender", labels)


def _write(path: Path, column: str, lines: Sequence[tuple[int, str]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("image_id", column), *lines])


def try_commands(env: Environment, trials: Sequence[Trial], folder: Path) -> Iterator[str]:
    """Run commands; yields what went otherwise than it must."""
    for trial in trials:
        done = env.run(trial.words, folder)
        right = done.code == trial.code and trial.message in done.text
        mark = "ok    " if right and "Traceback" not in done.text else "FAILED"
        print(f"  {mark} {done.seconds:5.1f} s  {' '.join(trial.words)}", flush=True)
        if mark == "FAILED":
            yield f"{' '.join(trial.words)} ended with {done.code}:\n{done.text}"


def brings_gpu_packages(env: Environment, wheel: Path) -> bool:
    """Whether pip would install a PyTorch that is built for GPUs."""
    words = ["python", "-m", "pip", "install", "--dry-run", *CONSTRAINTS, str(wheel)]
    return "nvidia" in env.run(words, env.folder).text


def requirements() -> list[str]:
    """What pyproject.toml says that the package always needs."""
    text = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    dependencies: list[str] = tomllib.loads(text)["project"]["dependencies"]
    return dependencies


def lowest(lines: Sequence[str]) -> list[str]:
    """Requirements pinned to the lowest version that they allow."""
    return [
        f"{match[1]}=={match[2]}" for x in lines if (match := re.match(r"([\w-]+)>=([\d.]+)", x))
    ]


def without_learning(lines: Sequence[str]) -> list[str]:
    """Requirements but PyTorch and Lightning."""
    return [line for line in lines if not line.startswith(LEARNING)]


IMPORTED = "import bias_pipeline, pytorch_lightning, timm; print('imported')"


def check_plain(wheel: Path, folder: Path) -> list[str]:
    """Install the wheel as anyone does, without our constraints, and import Lightning; what failed.

    The torchvision that pip chooses must not break what imports it.
    """
    env = environment(folder / "environment")
    seconds = env.install(str(wheel))
    print(
        f"  without constraints: installed in {seconds:.0f} s, {env.megabytes:,.0f} MB", flush=True
    )
    return list(try_commands(env, [Trial(("python", "-c", IMPORTED), "imported")], folder))


def check(python: str, wheel: Path, folder: Path) -> list[str]:
    """Install the wheel under an interpreter and run it; what failed."""
    env = environment(folder / "environment", python)
    away = folder / "elsewhere"
    away.mkdir()
    prepare(away)
    whole = python == sys.executable or not brings_gpu_packages(env, wheel)
    if whole:
        seconds = env.install(*CONSTRAINTS, str(wheel))
    else:
        print("  without PyTorch and Lightning: there is no build for CPUs", flush=True)
        seconds = env.install("--no-deps", str(wheel))
        seconds += env.install(*without_learning(requirements()))
    print(f"  installed in {seconds:.0f} s, {env.megabytes:,.0f} MB", flush=True)
    failed = list(try_commands(env, [*BASE, *plugin()], away))
    # Beside the wheel, not anew: an installation without PyTorch stays one.
    env.install(*CONSTRAINTS, *extra("report"), *extra("slurm"))
    return failed + list(try_commands(env, EXTRAS, away))


def check_light(wheel: Path, folder: Path) -> list[str]:
    """Install the wheel with what ``doctor --requirements audit`` prints; what failed."""
    env = environment(folder / "environment")
    away = folder / "elsewhere"
    away.mkdir()
    prepare(away)
    seconds = env.install("--no-deps", str(wheel))
    printed = env.run(["python", "-m", "bias_pipeline", "doctor", "--requirements", "audit"], away)
    if printed.code != 0:
        return [f"doctor --requirements audit ended with {printed.code}:\n{printed.text}"]
    (away / "audit.txt").write_text(printed.text)
    seconds += env.install("--no-compile", "-r", str(away / "audit.txt"))
    installed = env.megabytes
    failed = list(try_commands(env, LIGHT_TRIALS, away))
    print(
        f"  light: installed in {seconds:.0f} s, {installed:,.0f} MB, "
        f"{env.megabytes:,.0f} MB after use",
        flush=True,
    )
    text = env.run([PROGRAM, "metric=gender_error", "captioner=all", *SMALL], away).text
    if text.count("W&B") != 1:
        failed.append(f"the absence of wandb is said {text.count('W&B')} times")
    if env.megabytes > LIGHT:
        failed.append(f"a light installation has {env.megabytes:,.0f} MB")
    there = env.run(["python", "-m", "pip", "list"], away).text.split()
    return failed + [f"a light installation has {name}" for name in HEAVY if name in there]


def extra(name: str) -> list[str]:
    """The requirements of an extra."""
    text = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    lines: list[str] = tomllib.loads(text)["project"]["optional-dependencies"][name]
    return lines


def main() -> int:
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sdist, wheel = build(folder / "dist")
        for path in (sdist, wheel):
            print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB", flush=True)
        failed += faults_of(wheel)
        failed += check_light(wheel, folder / "light")
        for version in (ONE, *LATER):
            python = sys.executable if version == ONE else interpreter_of(version)
            print(f"Python {version}" + ("" if python else ": skipped, not found"), flush=True)
            if python:
                failed += check(python, wheel, folder / version)
        failed += check_plain(wheel, folder / "plain")
    print(*failed, sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
