"""``models prefetch``: fetch published weights from the hub, by revision, every digest checked.

Nothing else asks a network for a model.
"""

from __future__ import annotations

from bias_pipeline.commands.arguments import PROGRAM, Parser
from bias_pipeline.errors import BiasPipelineError
from bias_pipeline.io.terminal import say
from bias_pipeline.models.needs import Need, encoder_needs
from bias_pipeline.models.places import MAIN, find_place


def parser() -> Parser:
    """What it takes."""
    own = Parser(
        f"{PROGRAM} models prefetch",
        description="Fetch weights from the hub; every digest is checked",
    )
    own.add_argument("names", nargs="+", metavar="NAME", help="of the hub, or an encoder")
    own.add_argument("--revision", default=MAIN, help="a branch, a tag or a commit (main)")
    return own


def command(words: list[str]) -> int:
    """Fetch models; those that packages or folders hold stay where they are.

    Raises:
        BiasPipelineError: if one cannot be had.
    """
    from bias_pipeline.models.prefetch import prefetch

    options = parser().parse_args(words)
    for name in options.names:
        own = encoder_needs().get(name, Need(name)).model
        if _is_there(own, options.revision):
            continue
        place = prefetch(own, options.revision, lambda line: say(f"  {line}"))
        say(f"{own}, revision {place.revision}: {place.folder}")
    return 0


def _is_there(name: str, revision: str) -> bool:
    """Whether a folder or a package has it, so that the hub need not be asked."""
    try:
        place = find_place(name, revision)
    except BiasPipelineError:
        return False
    if not place.revision:
        say(f"{name}: is there already, in {place.source} ({place.folder})")
    return not place.revision
