"""The documents and what they hold: fenced blocks, commands, links."""

import re
import shutil
from pathlib import Path

from tests.corpora import REPOSITORY

DOOR = "python -m bias_pipeline"
DOCUMENTS = sorted(
    path
    for path in REPOSITORY.rglob("*.md")
    if not {part for part in path.relative_to(REPOSITORY).parts if part[0] == "."}
    and "outputs" not in path.relative_to(REPOSITORY).parts[:-1]
)


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", text)


def commands(text: str) -> list[str]:
    """The lines of a document's shell blocks."""
    shell_blocks = [block.replace("\\\n", "") for block in blocks(text, "sh")]  # one command a line
    return [line for block in shell_blocks for line in block.splitlines()]


def links(text: str) -> list[str]:
    """What a document's links lead to, anchors left out."""
    outside_code = re.sub(r"(?ms)^```.*?^```$", "", text)
    return [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", outside_code)]


def recipes() -> dict[str, str]:
    """The files that CONTRIBUTING.md adds to the package: path to content."""
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    path = r"`((?:bias_pipeline|conf)/[a-z/]+\.(?:py|yaml))`"
    return dict(re.findall(rf"(?s){path}[^`]*```\w+\n(.*?)```", text))


def copy_package(folder: Path) -> None:
    """A copy of the package and its configuration, to add files to."""
    for name in ("bias_pipeline", "conf"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(REPOSITORY / name, folder / name, ignore=ignored)


def own_package(folder: Path, name: str) -> None:
    """The files of CONTRIBUTING.md in a package of one's own, as it says they may be."""
    (folder / name).mkdir()
    (folder / name / "__init__.py").touch()
    for path, content in recipes().items():
        place = folder / name / re.sub(r"^bias_pipeline/\w+/", "", path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(_move_classes(content, name))


def _move_classes(content: str, name: str) -> str:
    """A recipe whose own classes stand in another package."""
    for path in recipes():
        if path.endswith(".py"):
            module = path.removesuffix(".py").replace("/", ".")
            content = content.replace(module, f"{name}.{Path(path).stem}")
    return content
