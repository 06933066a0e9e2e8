"""Gives different names to captioners, or versions of a captioner, that share a name."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bias_pipeline.errors import DataError
from bias_pipeline.io.paths import safe_name
from bias_pipeline.results.rows import Result
from bias_pipeline.results.settings import text_settings

SWEPT = "BIAS_PIPELINE_SWEPT"  # the variable that tells jobs the names of a sweep's files
_DIGITS = 8  # digits of a digest, if two names differ in nothing else
_PLAIN = re.compile(r"[A-Za-z0-9-]+(/[A-Za-z0-9-]+)*\.json")  # a path like this needs no digest


def check_distinct(digests: Mapping[str, str]) -> None:
    """Refuse two captioners with the same captions; ``digests`` has a digest of each corpus."""
    name_by_digest: dict[str, str] = {}
    for name, digest in digests.items():
        if name_by_digest.setdefault(digest, name) != name:
            raise DataError(
                f"{name_by_digest[digest]} and {name} have the same captions; there is nothing to "
                "compare"
            )


def resolve_name_collisions(results: Sequence[Result]) -> tuple[list[Result], list[str]]:
    """Rename results so that each name means one corpus; also returns a note on the names."""
    by_file, files = resolve_file_collisions(results)
    # Corpora that differ only in the scored part of captions (text.unit) keep their name
    digests: dict[tuple[str, ...], dict[str, None]] = {}
    for result in by_file:
        digests.setdefault(_corpus_key(result), {})[result.facts.corpus.digest] = None
    several = {key: versions for key, versions in digests.items() if len(versions) > 1}
    sentences = [
        f"{len(versions)} corpora of {dataset} are called {captioner} under {attribute}: captions, "
        "labels or objects differ between runs, so their names end in the first digits of their "
        "digests"
        for (dataset, captioner, attribute, *_), versions in several.items()
    ]
    renamed = [
        _rename(r, f"{r.rows[0].captioner} {r.facts.corpus.digest[:_DIGITS]}")
        if _corpus_key(r) in several
        else r
        for r in by_file
    ]
    return renamed, [*files, *sentences]


def resolve_file_collisions(results: Sequence[Result]) -> tuple[list[Result], list[str]]:
    """Rename results so that each name means one file; also returns a note on the names.

    A new name has the file's name and as many of its folders as are needed to make names different:
    ``A/model.json`` and ``B/model.json`` become ``A_model`` and ``B_model``.
    """
    files: dict[tuple[str, str], dict[str, None]] = {}
    for result in filter(_file, results):
        files.setdefault(_name_key(result), {})[_file(result)] = None
    taken = {_name_key(result) for result in results}
    names: dict[tuple[str, ...], str] = {}
    sentences = []
    for (dataset, captioner), paths in files.items():
        if len(paths) > 1:
            others = {name for known, name in taken if known == dataset}
            new_names = names_of(sorted(paths), others)
            names |= {(dataset, captioner, file): name for file, name in new_names.items()}
            listed = ", ".join(f"{name} ({file})" for file, name in new_names.items())
            sentences.append(f"{len(paths)} files are called {captioner}: {listed}")
    return [_rename(r, names.get((*_name_key(r), _file(r)), "")) for r in results], sentences


def names_of(files: Sequence[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """A different and safe name for each of several files.

    Example:
        >>> names_of(["x/A/model.json", "x/B/model.json"])
        {'x/A/model.json': 'A_model', 'x/B/model.json': 'B_model'}
        >>> list(names_of(["x/my model.json", "x/my_model.json"]).values())
        ['x_my_model_a3ac945a', 'x_my_model_05cb9730']
    """
    taken = set(taken)
    longest = max(len(Path(file).parts) for file in files)
    for folders in range(1, longest):
        names = [safe_name("_".join(_parts(file)[-1 - folders :])) for file in files]
        if len({*names, *taken}) == len(names) + len(taken):
            return dict(zip(files, names, strict=True))
    return {file: _with_digest(file) for file in files}


def as_given(result: Result, captioner: str) -> Result:
    """A result under a name that no other file has.

    Loggers need this name, since they see one result at a time.

    Example:
        >>> given_name("A/model.json"), given_name("../A/model.json"), given_name("model.json")
        ('A_model', 'A_model_ee074b07', '')
    """
    swept = json.loads(os.environ.get(SWEPT, "{}"))
    return _rename(result, swept.get(captioner) or given_name(captioner))


def swept_names(captioners: Sequence[str]) -> dict[str, str]:
    """The new names of a sweep's files that share a name, by the paths that the user gave.

    Example:
        >>> swept_names(["x/A/model.json", "x/B/model.json", "x/B/other.json", "nic"])
        {'x/A/model.json': 'A_model', 'x/B/model.json': 'B_model'}
    """
    files: dict[str, dict[str, str]] = {}
    for given in captioners:
        if len(Path(given).parts) > 1:
            files.setdefault(safe_name(Path(given).stem), {})[str(Path(given).resolve())] = given
    several = [paths for paths in files.values() if len(paths) > 1]
    others = [*captioners, *files]
    return {
        paths[path]: name
        for paths in several
        for path, name in names_of(sorted(paths), {o for o in others if o not in paths}).items()
    }


def given_name(captioner: str) -> str:
    """The name of a captioner, made of its whole path; empty if the path has no folder."""
    if len(Path(captioner).parts) < 2:
        return ""
    whole = "_".join(_parts(captioner))
    return (
        whole
        if _PLAIN.fullmatch(captioner) and safe_name(whole) == whole
        else _with_digest(captioner)
    )


def _with_digest(file: str) -> str:
    digest = hashlib.sha256(file.encode("utf-8", "replace")).hexdigest()
    return f"{safe_name('_'.join(_parts(file)[-2:]))[:50]}_{digest[:_DIGITS]}"


def _parts(file: str) -> tuple[str, ...]:
    return Path(file).with_suffix("").parts


def _name_key(result: Result) -> tuple[str, str]:
    return result.rows[0].dataset, result.rows[0].captioner


def _corpus_key(result: Result) -> tuple[str, ...]:
    return (*_name_key(result), result.rows[0].attribute, *text_settings(result).values())


def _file(result: Result) -> str:
    return result.facts.corpus.file


def _rename(result: Result, name: str) -> Result:
    if not name:
        return result
    return replace(result, rows=[replace(row, captioner=name) for row in result.rows])
