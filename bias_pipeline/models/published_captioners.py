"""The captioners that papers measured, as far as the papers say which; and models at hand."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from bias_pipeline.io.files import read_csv
from bias_pipeline.models.model_location import hub_cache


@dataclass(frozen=True)
class PublishedCaptioner:
    """A captioner of a paper's table."""

    experiment: str  # the preset of the table
    name: str  # as the paper writes it
    cited: str  # the work that the paper cites for it
    trained_on_coco: str  # `yes`, `no` or `unsaid`; as are the next three, of what the paper says
    weights: str  # which ones
    prompt: str  # that it was given
    decoding: str  # how words were chosen
    lic: str  # its name in `dataset=lic`, whose authors published captions of it; may be empty
    kind: str  # the model type of transformers that `caption` takes for it; may be empty


@cache
def published_captioners() -> tuple[PublishedCaptioner, ...]:
    """Nair et al. (DBAC, WACV 2026), Table 9; Sabir and Padro (Gender Score), Table 3.

    Example:
        >>> [one.name for one in published_captioners() if one.trained_on_coco == "no"]
        ['BakLLaVA', 'Florence', 'LLaVA']
    """
    text = files("bias_pipeline.models").joinpath("published_captioners.csv").read_text("utf-8")
    return tuple(PublishedCaptioner(**row) for row in read_csv(text))


def fetched_models(kind: str) -> list[str]:
    """The models of a kind in the hub's cache, by their names."""
    names = set()
    for path in hub_cache().glob("models--*/snapshots/*/config.json"):
        try:
            config = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(config, dict) and config.get("model_type") == kind:
            names.add(path.parents[2].name.removeprefix("models--").replace("--", "/"))
    return sorted(names)
