"""``compare``: is the first captioner fairer than the others?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bias_pipeline import launch
from bias_pipeline.analysis.compare import contests
from bias_pipeline.analysis.namesakes import told_apart
from bias_pipeline.errors import DataError, ResourceError, UsageError
from bias_pipeline.report.contest import print_contests
from bias_pipeline.report.tables import printable
from bias_pipeline.results import Result, ResultStore
from bias_pipeline.stats.bootstrap import Draws

FLAG = "--fail-if-worse"
WORSE = 1

_USAGE = f"""\
python -m bias_pipeline compare A B [C ...] [key=value ...] [{FLAG}]

A, B, C: captioners of the data set, which are run where they have not been yet, or folders of
finished runs. Keys are those of `run`. Differences are paired over images and seeds; p values are
adjusted for all pairs (Holm). With {FLAG} the exit code is {WORSE} if A is less fair than one of
the others beyond chance."""


def run(words: Sequence[str]) -> int:
    """Run what has not been run, compare, print.

    Returns:
        The exit code.

    Raises:
        BiasPipelineError: if the words are wrong or nothing can be compared.
    """
    if {"-h", "--help"} & set(words):
        print(_USAGE)
        return 0
    names = [word for word in words if "=" not in word and not word.startswith("-")]
    rest = [word for word in words if word not in names and word != FLAG]
    if len(set(names)) < 2:
        raise UsageError(f"compare needs two captioners or more, found {len(set(names))}")
    folders = [_folder(name) for name in names]
    results, draws = _stored(folders) if all(folders) else _computed(names, rest)
    results, namesakes = told_apart(results)
    for told in namesakes:
        print(printable(told))
    found = contests(results, draws)
    if not found:
        raise DataError(
            "no two of these results have a score and differ in the captioner alone; compare cells "
            "of one metric, attribute and configuration, and where the score needs human captions "
            "(dataset.captions=...) give them"
        )
    print_contests(found)
    lost = any(duel.winner == "other" for contest in found for duel in contest.duels)
    return WORSE if lost and FLAG in words else 0


def _folder(name: str) -> Path | None:
    """The folder of a finished run, if the word names one."""
    path = Path(name)
    return path if (path / "result.json").is_file() else None


def _stored(folders: Sequence[Path | None]) -> tuple[list[Result], dict[str, dict[str, Draws]]]:
    results, draws = [], {}
    for folder in folders:
        assert folder is not None
        store = ResultStore(folder.resolve().parent)
        result = store.load(folder.resolve().name)
        if result is None:
            raise ResourceError(f"{folder} holds no whole result; run its cell again")
        results.append(result)
        draws[result.run_id] = store.draws(result.run_id)
    return results, draws


def _computed(
    names: Sequence[str], rest: Sequence[str]
) -> tuple[list[Result], dict[str, dict[str, Draws]]]:
    swept = ",".join(names)
    finished = launch.run([*rest, f"captioner={swept}"])
    if finished.exit_code:
        raise DataError("not every captioner could be scored; see above")
    store = ResultStore(finished.outputs)
    print()
    return list(finished.results), {r.run_id: store.draws(r.run_id) for r in finished.results}
