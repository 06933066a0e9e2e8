"""Lower bounds in pyproject.toml that allow versions with known holes.

``advisories.csv`` lists the holes, with the first version that has none and, where a hole is out of
reach here, why. Whoever reads of a new one adds a line; a workflow runs this every week, so a line
that arrives with a bound unchanged does not wait for a change of code.
"""

import csv
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
ADVISORIES = Path(__file__).with_suffix(".csv")
_BOUND = re.compile(r"([\w.-]+)(?:\[[\w,-]+\])?>=([\d.]+)")


def requirements_of_all() -> list[str]:
    """The package's requirements, and those of its extras."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    return [*project["dependencies"], *(line for lines in extras.values() for line in lines)]


def too_low(requirements: Sequence[str], advisories: Path = ADVISORIES) -> Iterator[str]:
    """A sentence for each lower bound that allows a version with a hole within reach."""
    with advisories.open(newline="", encoding="utf-8") as file:
        holes = [row for row in csv.DictReader(file) if not row["why_not"]]
    for line in requirements:
        bound = _BOUND.match(line)
        for hole in holes if bound else ():
            if name_of(bound[1]) == hole["package"] and comes_before(bound[2], hole["fixed"]):
                yield (
                    f"{line}: {hole['id']} ({hole['what']}) is mended in {hole['fixed']}; raise "
                    "the bound, or say in tests/advisories.csv why it does not matter"
                )


def name_of(package: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", package).lower()


def comes_before(version: str, fixed: str) -> bool:
    """Whether a version comes before another one; 2.10 and 2.10.0 are the same."""
    numbers = [[int(number) for number in text.split(".")] for text in (version, fixed)]
    longest = max(map(len, numbers))
    first, second = (one + [0] * (longest - len(one)) for one in numbers)
    return first < second


def main() -> int:
    sentences = list(too_low(requirements_of_all()))
    print("\n".join(sentences) or "no lower bound allows a known hole")
    return bool(sentences)


if __name__ == "__main__":
    sys.exit(main())
