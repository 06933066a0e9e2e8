"""``models show``: a model's files and their digests, or what a configuration needs."""

from __future__ import annotations

from collections.abc import Sequence

from bias_pipeline.commands.arguments import PROGRAM, Parser
from bias_pipeline.io.grid import print_table
from bias_pipeline.io.terminal import say
from bias_pipeline.models.needs import Need, encoder_needs
from bias_pipeline.models.places import MAIN
from bias_pipeline.models.pretrained import Pretrained, find_pretrained
from bias_pipeline.models.sentences import KINDS


def parser() -> Parser:
    """What it takes."""
    own = Parser(
        f"{PROGRAM} models show",
        description="A model's files and digests, or what a configuration needs",
    )
    own.add_argument("what", nargs="+", metavar="NAME|FOLDER|key=value", help="or an encoder")
    own.add_argument("--revision", default=MAIN, help="of a name on the hub (main)")
    return own


def command(words: list[str]) -> int:
    """Print one model, or what a configuration needs; returns the exit code.

    Raises:
        BiasPipelineError: if it is not there, or cannot be used.
    """
    options = parser().parse_args(words)
    if any("=" in word for word in options.what):
        return _show_needed(options.what)
    for name in options.what:
        need = encoder_needs().get(name, Need(name))
        _show(need.model, need.revision if options.revision == MAIN else options.revision)
    return 0


def _show_needed(words: Sequence[str]) -> int:
    from bias_pipeline.config import compose

    encoder = compose.cell(words).tree["encoder"]
    if "model" not in encoder:
        say("this configuration needs no published weights")
        return 0
    _show(encoder["model"], encoder["revision"])
    return 0


def _show(name: str, revision: str) -> None:
    from bias_pipeline.models.prefetch import licence_of

    users = _users()
    model = find_pretrained(name, [*users], revision=revision)
    told = {
        "model": model.name,
        "revision": model.revision or (revision if model.source != "a folder" else "none"),
        "type": model.kind,
        "for": users[model.kind],
        **_pooling(model),
        "licence": licence_of(model.folder) or "not stated",
        "source": model.source,
        "folder": str(model.folder),
    }
    say(*(f"{key + ':':<10} {value}" for key, value in told.items()))
    sizes = {name: (model.folder / name).stat().st_size / 1e6 for name in model.files}
    lines = [[own, f"{sizes[own]:.2f}", digest[:16]] for own, digest in model.files.items()]
    print_table(["file", "MB", "SHA-256"], lines, keys=1, left=1)


def _users() -> dict[str, str]:
    """Type of model to what takes it."""
    from bias_pipeline.models import clip, generation

    return {
        **dict.fromkeys(KINDS, "encoder.model"),
        **dict.fromkeys(generation.KINDS, "caption --model"),
        **dict.fromkeys(clip.KINDS, "embed --model"),
    }


def _pooling(model: Pretrained) -> dict[str, str]:
    """How the vectors of a language model's tokens become one; nothing of other models."""
    from bias_pipeline.models.pooling import own_pooling
    from bias_pipeline.models.sentences import default_pooling

    if model.kind not in KINDS:
        return {}
    own = own_pooling(model.folder, default_pooling(model.kind))
    return {"pooling": own.how + (", length 1" if own.normalize else "")}
