"""Writes and reads baseline files: the results of a captioner for comparison with later captioners.

A resample gives each image the same weight for every captioner. Splits depend only on images and
seeds. So a paired test needs no captions of the earlier captioner, only its number under every
resample. Images, labels, human captions, objects, settings, seeds and versions must be the same.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bias_pipeline import __version__
from bias_pipeline.array_types import Float64Array
from bias_pipeline.errors import DataError
from bias_pipeline.io.digests import seal, unseal
from bias_pipeline.io.json_files import load_json
from bias_pipeline.io.terminal import reword
from bias_pipeline.results.identity import deciding
from bias_pipeline.results.plain_data import checked_value, plain_values
from bias_pipeline.results.rows import Result, mapping_in, result_of
from bias_pipeline.results.settings import deciding_seeds, text_settings
from bias_pipeline.stats.bootstrap import Draws

SCHEMA = 2
_WHAT = "a file that compare --json or audit --json wrote"
_SEEDS = "seeds"
_MANIFEST_KEYS = (
    *("metric", "corpus", "speech", "language", "config", "keys", "text", "attackers", "notes"),
    "versions",
)


def baseline_bytes(results: Sequence[Result], **further: object) -> bytes:
    content = {
        "schema": SCHEMA,
        "about": {"bias_pipeline": __version__},
        **{key: _reword(value) for key, value in further.items()},
        "results": [_plain_result(result) for result in results],
    }
    return seal(plain_values(content), within="about")


def _reword(value: Any) -> Any:
    """Plain data in which texts are reworded like the lines that commands print."""
    if isinstance(value, str):
        return reword(value)
    if isinstance(value, Mapping):
        return {key: _reword(item) for key, item in value.items()}
    return [*map(_reword, value)] if isinstance(value, list) else value


def _plain_result(result: Result) -> dict[str, Any]:
    """Rows, draws and the manifest entries that tests need, without paths of this machine."""
    manifest = {name: result.manifest[name] for name in _MANIFEST_KEYS if name in result.manifest}
    corpus = mapping_in(result.manifest, "corpus")
    manifest |= {"corpus": {**corpus, "file": ""}, "files": {}}
    manifest["config"] = deciding(manifest.get("config"), result.rows[0].dataset)
    manifest["notes"] = result.notes
    return {
        "run_id": result.run_id,
        "rows": result.rows,
        "manifest": manifest,
        "draws": {part: _pack(part_draws) for part, part_draws in result.draws.items()},
    }


def _pack(draws: Draws) -> dict[str, Any]:
    return {
        "per_seed": draws.per_seed.tolist(),
        "resampled": base64.b64encode(draws.resampled.astype("<f8").tobytes()).decode(),
        "trained": draws.trained,
        "trials": draws.trials if draws.is_share else None,
        "cross_fitted": draws.cross_fitted,
    }


@dataclass(frozen=True)
class Baseline:
    file: Path
    results: Sequence[Result]  # results of the captioner, with draws
    skipped: Mapping[str, str]  # cell, such as `metric=lic attribute=age`, to the reason

    def reason(self, metric: str, attribute: str) -> tuple[str, str] | None:
        """The skipped cell of a metric and an attribute, and the reason, or None if it has run."""
        for cell, reason in self.skipped.items():
            settings = dict(word.partition("=")[::2] for word in cell.split())
            named = settings.get("metric"), settings.get("attribute", attribute)
            if named == (metric, attribute):
                return cell, reason
        return None


def read(path: Path) -> Baseline:
    content: Any = load_json(path, what=_WHAT, max_depth=50)
    if isinstance(content, dict) and content.get("schema") == 1:
        raise DataError(
            f"{path}: was written by an earlier version (schema 1, now {SCHEMA}); make the file "
            "anew: python -m bias_pipeline audit CAPTIONS --attributes LABELS --captions PEOPLE "
            f"--json {path.name}"
        )
    try:
        if not isinstance(content, dict) or content.get("schema") != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}, as this version writes it")
        body = unseal(content, within="about")
        records = checked_value(body["results"], list, "results")
        skipped = {str(one["cell"]): str(one["reason"]) for one in body.get("skipped", ())}
        return Baseline(path, [_result(record) for record in records], skipped)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise DataError(f"{path}: is not {_WHAT} ({error}); write it again") from error


def _result(record: Mapping[str, Any]) -> Result:
    result = result_of(record["rows"], record["manifest"], record["run_id"])
    return replace(
        result, draws={part: _unpack(packed) for part, packed in record["draws"].items()}
    )


def _unpack(packed: Mapping[str, Any]) -> Draws:
    per_seed = np.array(checked_value(packed["per_seed"], list, "per_seed"), np.float64)
    flat: Float64Array = np.frombuffer(base64.b64decode(packed["resampled"], validate=True), "<f8")
    trials = packed.get("trials")
    return Draws(
        per_seed,
        flat.reshape(-1, len(per_seed)),
        trained=bool(packed["trained"]),
        trials=math.nan if trials is None else float(trials),
        cross_fitted=bool(packed.get("cross_fitted", False)),
    )


def compare_to_baseline(
    results: Sequence[Result], baseline: Baseline
) -> tuple[list[Result], dict[str, str]]:
    """The baseline's result for each result, and the reasons why other cells were skipped."""
    names = {result.rows[0].captioner for result in results}
    matches: list[Result] = []
    skipped: dict[str, str] = {}
    for result in results:
        key = _metric_and_attribute(result)
        same = [earlier for earlier in baseline.results if _metric_and_attribute(earlier) == key]
        if same:
            matches.append(_rename(_match(result, same), names))
        elif passed_over := baseline.reason(*key):
            skipped |= [passed_over]
        else:
            known = dict.fromkeys(" of ".join(_metric_and_attribute(r)) for r in baseline.results)
            raise DataError(
                f"{baseline.file}: was written without {' of '.join(key)}; it has "
                f"{', '.join(known)}. Write it again with metric={key[0]} attribute={key[1]}, or "
                "compare without it"
            )
    return matches, skipped


def _match(result: Result, same: Sequence[Result]) -> Result:
    what = " of ".join(_metric_and_attribute(result))
    differing = [_differing(result, other) for other in same]
    if all(differing):
        seeds = ",".join(map(str, same[0].rows[0].seeds))
        remedy = f"add seeds=[{seeds}]" if differing[0] == _SEEDS else "run both the same way"
        raise DataError(
            f"the baseline's {what} cannot be paired with these: {differing[0]} differ; "
            f"{remedy}, or compare the two files of captions"
        )
    return same[differing.index("")]


def _metric_and_attribute(result: Result) -> tuple[str, str]:
    return result.rows[0].metric, result.rows[0].attribute


def _differing(one: Result, two: Result) -> str:
    """The kinds of facts that differ and prevent a paired test; empty if none differs."""
    first, second = _comparable_facts(one), _comparable_facts(two)
    names = dict.fromkeys([*first, *second])  # versions differ in settings
    return ", ".join(n for n in names if first.get(n) is None or first[n] != second.get(n))


def _comparable_facts(result: Result) -> dict[str, object]:
    """The facts that must agree before resamples can be subtracted, or None if they are unknown."""
    row = result.rows[0]
    settings = deciding(result.facts.config, row.dataset)
    assert isinstance(settings, dict)
    return {
        "data set": row.dataset,
        "images, labels, objects or human captions": result.facts.corpus.reference,
        "gold labels": result.facts.gold or "",
        _SEEDS: deciding_seeds(result),
        "what of captions is scored": text_settings(result),
        "version of the metric": row.metric_version,
        "version or settings of attackers": _json(result.facts.attackers),
        **{f"settings ({key})": _json(value) for key, value in settings.items()},
    }


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _rename(result: Result, names: set[str]) -> Result:
    """The result, under another name if the new captioner has the same name."""
    captioner = result.rows[0].captioner
    name = f"{captioner} (baseline)" if captioner in names else captioner
    return replace(result, rows=[replace(row, captioner=name) for row in result.rows])
