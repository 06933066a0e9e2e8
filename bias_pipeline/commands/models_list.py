"""``models list``: which published weights encoders need, and where they are."""

from __future__ import annotations

from bias_pipeline.commands.arguments import PROGRAM, Parser
from bias_pipeline.errors import ResourceError
from bias_pipeline.io.grid import print_table
from bias_pipeline.models.needs import Need, encoder_needs
from bias_pipeline.models.places import find_place


def parser() -> Parser:
    """It takes nothing."""
    return Parser(
        f"{PROGRAM} models list",
        description="Which published weights encoders need, and where they are",
    )


def command(words: list[str]) -> int:
    """Print what encoders need and where it is; returns the exit code."""
    parser().parse_args(words)
    lines = [[name, need.model, *_state(need)] for name, need in encoder_needs().items()]
    print_table(["encoder", "model", "MB", "licence", "where"], lines, keys=1, left=5)
    return 0


def _state(need: Need) -> list[str]:
    from bias_pipeline.models.prefetch import licence_of

    try:
        place = find_place(need.model, need.revision)
    except ResourceError:
        return ["", "", f"absent: models prefetch {need.model}"]
    size = sum(path.stat().st_size for path in place.folder.glob("*.safetensors"))
    return [f"{size / 1e6:.0f}", licence_of(place.folder), place.source]
