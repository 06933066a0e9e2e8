"""A captioner's results in one file, against which later captioners are held without its captions.

Resamplings give an image the same weight wherever it is drawn, and splits depend on images and
seeds alone. So a number under every resampling is all of a captioner that a paired test needs:
where images, labels, people's captions, objects, settings, seeds and versions are the same.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from bias_pipeline import __version__
from bias_pipeline.errors import DataError
from bias_pipeline.io.json_files import load_json
from bias_pipeline.io.sealed import sealed, unsealed
from bias_pipeline.results.identity import deciding
from bias_pipeline.results.manifests import checked
from bias_pipeline.results.store import Result, plain, result_of
from bias_pipeline.stats.bootstrap import Draws, FloatArray

SCHEMA = 1
_WHAT = "what compare --json or audit --json wrote"
_KEPT = ("metric", "corpus", "speech", "config", "keys", "attackers", "notes", "versions")


def stored(results: Sequence[Result], **told: object) -> bytes:
    """The content of a baseline file.

    Args:
        results: of one captioner, with their draws.
        told: what else stands in it, for other readers.
    """
    content = {
        "schema": SCHEMA,
        "about": {"bias_pipeline": __version__},
        **told,
        "results": [_stored(result) for result in results],
    }
    return sealed(plain(content), within="about")


def _stored(result: Result) -> dict[str, Any]:
    """Rows, draws and what tests read of the manifest; no place on this machine."""
    manifest = {name: result.manifest[name] for name in _KEPT if name in result.manifest}
    corpus = _mapping(result.manifest, "corpus")
    manifest |= {"corpus": {**corpus, "file": ""}, "files": {}}
    manifest["config"] = deciding(manifest.get("config"))
    return {
        "run_id": result.run_id,
        "rows": [asdict(row) for row in result.rows],
        "manifest": manifest,
        "draws": {part: _packed(own) for part, own in result.draws.items()},
    }


def _packed(draws: Draws) -> dict[str, Any]:
    return {
        "per_seed": draws.per_seed.tolist(),
        "resampled": base64.b64encode(draws.resampled.astype("<f8").tobytes()).decode(),
        "trained": draws.trained,
        "trials": draws.trials if draws.is_share else None,
    }


def read(path: Path) -> list[Result]:
    """The results of a baseline file, with their draws.

    Raises:
        ResourceError: if it is absent.
        DataError: if it is not what was written.
    """
    content: Any = load_json(path, what=_WHAT, max_depth=50)
    try:
        if not isinstance(content, dict) or content.get("schema") != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        told = checked(unsealed(content, within="about")["results"], list, "results")
        return [_result(own) for own in told]
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise DataError(f"{path}: is not {_WHAT} ({error}); write it again") from error


def _result(told: Mapping[str, Any]) -> Result:
    found = result_of(told["rows"], told["manifest"], told["run_id"])
    return replace(found, draws={part: _unpacked(own) for part, own in told["draws"].items()})


def _unpacked(told: Mapping[str, Any]) -> Draws:
    per_seed = np.array(checked(told["per_seed"], list, "per_seed"), np.float64)
    flat: FloatArray = np.frombuffer(base64.b64decode(told["resampled"], validate=True), "<f8")
    trials = told.get("trials")
    return Draws(
        per_seed,
        flat.reshape(-1, len(per_seed)),
        trained=bool(told["trained"]),
        trials=math.nan if trials is None else float(trials),
    )


def beside(results: Sequence[Result], baseline: Sequence[Result]) -> list[Result]:
    """The baseline's results that stand beside a captioner's, one for each.

    Args:
        results: of the captioner that is held against it.
        baseline: of the other.

    Returns:
        The same metrics and attributes, in the same order, under a name of its own.

    Raises:
        DataError: if one is absent, or was not made alike.
    """
    names = {result.rows[0].captioner for result in results}
    return [_renamed(_match(result, baseline), names) for result in results]


def _match(result: Result, baseline: Sequence[Result]) -> Result:
    row = result.rows[0]
    what = f"{row.metric} of {row.attribute}"
    same = [r for r in baseline if _asked(r) == _asked(result)]
    if not same:
        held = ", ".join(dict.fromkeys(" of ".join(_asked(r)) for r in baseline))
        raise DataError(f"the baseline holds no {what}, but {held}; write it with this metric")
    differing = [_differing(result, other) for other in same]
    if all(differing):
        raise DataError(
            f"the baseline's {what} cannot be paired with this one: other {differing[0]}; run both "
            "alike, or compare the two files of captions"
        )
    return same[differing.index("")]


def _asked(result: Result) -> tuple[str, str]:
    return result.rows[0].metric, result.rows[0].attribute


def _differing(one: Result, two: Result) -> str:
    """In what two results were not made alike, empty if they were."""
    first, second = _made(one), _made(two)
    return ", ".join(name for name in first if first[name] != second[name] or first[name] is None)


def _made(result: Result) -> dict[str, object]:
    """What decides whether resamplings of two results can be subtracted; None is unknown."""
    row = result.rows[0]
    config = _mapping(result.manifest, "config")
    return {
        "data set": row.dataset,
        "images, labels, objects or human captions": _mapping(result.manifest, "corpus").get(
            "reference"
        ),
        "seeds": tuple(row.seeds),
        "version of the metric": row.metric_version,
        "version or settings of attackers": _json(result.manifest.get("attackers", {})),
        **{f"settings ({key})": _json(own) for key, own in _decided(config).items()},
    }


def _decided(config: Mapping[str, object]) -> dict[str, object]:
    found = deciding(config)
    assert isinstance(found, dict)
    return found


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _renamed(result: Result, names: set[str]) -> Result:
    """Under another name where the captioner has the same."""
    own = result.rows[0].captioner
    name = f"{own} (baseline)" if own in names else own
    return replace(result, rows=[replace(row, captioner=name) for row in result.rows])


def _mapping(held: Mapping[str, object], key: str) -> Mapping[str, Any]:
    found = held.get(key, {})
    return found if isinstance(found, Mapping) else {}
