"""``models prefetch``: fetch published weights from the hub, by revision, every digest checked.

No other command downloads a model.
"""

from __future__ import annotations

from bias_pipeline.commands.arguments import PROGRAM, Parser
from bias_pipeline.errors import BiasPipelineError
from bias_pipeline.io.terminal import print_out
from bias_pipeline.models.model_location import MAIN, Need, encoder_needs, find_place


def parser() -> Parser:
    """The options and their help."""
    parser = Parser(
        f"{PROGRAM} models prefetch",
        description="Fetch weights from the hub; every digest is checked",
    )
    parser.add_argument(
        "names", nargs="+", metavar="NAME", help="names of models on the hub, or of encoders"
    )
    parser.add_argument("--revision", default=MAIN, help="a branch, a tag or a commit (main)")
    return parser


def command(words: list[str]) -> int:
    """Fetch models; models that a package or folder already has are left there.

    Raises:
        BiasPipelineError: if one cannot be fetched.
    """
    from bias_pipeline.models.model_location import prefetch

    options = parser().parse_args(words)
    for name in options.names:
        model = encoder_needs().get(name, Need(name)).model
        if _is_there(model, options.revision):
            continue
        place = prefetch(model, options.revision, lambda line: print_out(f"  {line}"))
        print_out(f"{model}, revision {place.revision}: {place.folder}")
    return 0


def _is_there(name: str, revision: str) -> bool:
    """Whether a folder or a package has the model; then the hub is not asked."""
    try:
        place = find_place(name, revision)
    except BiasPipelineError:
        return False
    if not place.revision:
        print_out(f"{name}: already present, in {place.source} ({place.folder})")
    return not place.revision
