"""``models``: lists the published weights that are needed and present, and fetches weights.

Each wing declares the weights that it reads as ``WEIGHTS``, in a module that :data:`_WINGS` names.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bias_pipeline.commands.arguments import PROGRAM, Parser
from bias_pipeline.errors import BiasPipelineError, ResourceError
from bias_pipeline.io.terminal import print_out
from bias_pipeline.models.generation import (
    PublishedCaptioner,
    fetched_models,
    published_captioners,
)
from bias_pipeline.models.model_location import (
    CARRIED,
    MAIN,
    PUBLISHED,
    Need,
    encoder_needs,
    find_place,
    metric_needs,
    needs_within,
)
from bias_pipeline.models.pretrained import Pretrained, find_pretrained
from bias_pipeline.models.sentences import KINDS
from bias_pipeline.report.screen import print_table
from bias_pipeline.report.table import Cell, NumberCell, Table

ENCODER = "encoder.model"


@dataclass(frozen=True)
class WingWeights:
    """The published weights that a wing reads."""

    kinds: Mapping[str, Iterable[str]]  # by key or option, the `model_type`s that it takes
    # By key, a function that finds a model by name and revision in the wing's own format (not the
    # format of transformers), and returns None for other models
    formats: Mapping[str, Callable[[str, str], Pretrained | None]] = field(default_factory=dict)
    encoders: tuple[type, ...] = ()  # encoders of such formats
    # Function from a metric's settings to the models that they name without a key of their own
    networks: Callable[[Mapping[str, Any]], Iterable[str]] = lambda metric: ()


_WINGS = (
    "bias_pipeline.retrieval.commands.weights",
    "bias_pipeline.pictures.commands.weights",
    "bias_pipeline.language.commands.weights",
)


def _wings() -> list[WingWeights]:
    return [importlib.import_module(module).WEIGHTS for module in _WINGS]


def _other_format(name: str, revision: str) -> tuple[Pretrained, str] | None:
    """A model in a wing's format, with its key, or None if no wing reads the model."""
    for wing in _wings():
        for taker, find in wing.formats.items():
            if model := find(name, revision):
                return model, taker
    return None


def list_parser() -> Parser:
    return Parser(
        f"{PROGRAM} models list",
        description="Print which published weights the encoders and metrics need, which "
        "captioners the papers measured (as far as the papers say), and where "
        "to get these weights and captions",
    )


def list_command(words: list[str]) -> int:
    list_parser().parse_args(words)
    for user, needs in (("encoder", encoder_needs()), ("metric", metric_needs())):
        lines = [[name, need.model, *_state(need)] for name, need in needs.items()]
        head = [user, "model", "MB", "licence", "where"]
        print_table(Table("", head, lines, texts=True))
    captions = _published_captions()
    heads = ["experiment", "captioner", "trained on COCO", "weights", "prompt", "decoding", "where"]
    facts = operator.attrgetter(*(head.replace(" ", "_").lower() for head in heads[2:-1]))
    lines = [
        [one.experiment, f"{one.name} ({one.cited})", *facts(one), _where(one, captions)]
        for one in published_captioners()
    ]
    print_table(Table("", heads, lines, keys=2, texts=True))
    return 0


def _published_captions() -> set[str]:
    """The captioners of ``dataset=lic`` whose files for gender are on this machine."""
    from bias_pipeline.run import compose

    cell = compose.cell(["dataset=lic"])
    dataset, attribute = cell.build("dataset"), cell.build("attribute")
    try:
        return set(dataset.all_captioners(attribute))
    except ResourceError:
        return set()


def _where(captioner: PublishedCaptioner, captions: Collection[str]) -> str:
    """Where a captioner's captions are, or which command writes the captions."""
    if captioner.lic in captions:
        return f"dataset=lic captioner={captioner.lic}"
    if captioner.lic:
        return (
            "absent: data fetch lic says where LIC's authors have its captions "
            f"(captioner={captioner.lic})"
        )
    if not captioner.kind:
        return "absent: score a file of its captions, dataset=coco captioner=FILE"
    fetched = fetched_models(captioner.kind)
    return f"caption --model {' or '.join(fetched) or 'MODEL'}, a {captioner.kind}" + (
        "" if fetched else "; absent"
    )


def _state(need: Need) -> list[str]:
    from bias_pipeline.models.model_location import licence_of

    other = _other_format(need.model, need.revision)
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
    size = other[0].packed if other else 0
    size = size or sum(path.stat().st_size for path in place.folder.glob("*.safetensors"))
    return [f"{size / 1e6:.0f}", licence_of(need.model, place.folder), place.source]


def show_parser() -> Parser:
    parser = Parser(
        f"{PROGRAM} models show",
        description="Print a model's files and digests, or the models that a configuration needs",
    )
    parser.add_argument(
        "what",
        nargs="+",
        metavar="NAME|FOLDER|key=value",
        help="names of models or encoders, or the settings of a run",
    )
    parser.add_argument(
        "--revision", default=MAIN, help="revision of a model on the hub (default: main)"
    )
    return parser


def show_command(words: list[str]) -> int:
    options = show_parser().parse_args(words)
    if any("=" in word for word in options.what):
        return _show_needed(options.what)
    needs = [encoder_needs().get(name, Need(name)) for name in options.what]
    if options.revision != MAIN:
        needs = [replace(need, revision=options.revision) for need in needs]
    _show_all(needs)
    return 0


def _show_needed(words: Sequence[str]) -> int:
    from bias_pipeline.run import compose

    wings = _wings()
    cell = compose.cell(words)
    metric = cell.tree["metric"]
    needs = list(needs_within(metric).values())
    needs += [Need(name) for wing in wings for name in wing.networks(metric)]
    encoder = cell.build("encoder") if "encoder" in cell.used else None
    if encoder is not None and cell.tree["encoder"].get(PUBLISHED) and encoder.model_name:
        needs.append(Need(encoder.model_name, cell.tree["encoder"]["revision"]))
    apart: Any = encoder if any(isinstance(encoder, wing.encoders) for wing in wings) else None
    if apart:
        needs = [need for need in needs if need.model != apart.model]
    elif not needs:
        print_out("this configuration needs no published weights")
    _show_all(dict.fromkeys(needs))
    if apart:
        _print_model(apart.pretrained_model, [ENCODER])
    return 0


def _show_all(needs: Iterable[Need]) -> None:
    """Print every model that is present, then raise an error if models are absent."""
    absent: list[str] = []
    for need in needs:
        try:
            _show(need.model, need.revision)
        except ResourceError as error:
            absent.append(str(error))
    if absent:
        raise ResourceError("; ".join(absent))


def _show(name: str, revision: str) -> None:
    if other := _other_format(name, revision):
        model, taker = other
        _print_model(model, [taker], revision)
        return
    users = _users()
    model = find_pretrained(name, [*users], revision=revision)
    _print_model(model, users[model.kind], revision)


def _print_model(model: Pretrained, users: Sequence[str], revision: str = MAIN) -> None:
    """Print a model's facts, what uses it, and its files."""
    from bias_pipeline.models.model_location import licence_of

    facts = {
        "model": model.name,
        "revision": model.revision or ("none" if model.source.startswith("a ") else revision),
        "type": model.kind,
        "for": ", ".join(users),
        **_pooling(model),
        "licence": licence_of(model.name, model.folder) or "not stated",
        "source": model.source,
        "folder": str(model.folder),
    }
    if model.packed and not model.folder.is_dir():
        facts["folder"] += " (the first run unpacks it there)"
    print_out(*(f"{key + ':':<10} {value}" for key, value in facts.items()))
    sizes = (
        {model.kind: model.packed}
        if model.packed
        else {file: (model.folder / file).stat().st_size for file in model.files}
    )
    rows: list[list[Cell]] = [
        [file, NumberCell(size / 1e6), model.files[file][:16]] for file, size in sizes.items()
    ]
    print_table(Table("", ["file", "MB", "SHA-256"], rows))


def _users() -> dict[str, list[str]]:
    """The keys and options that accept a model, by type of model."""
    takers = {ENCODER: dict.fromkeys(KINDS)}
    for wing in _wings():
        for taker, kinds in wing.kinds.items():
            takers.setdefault(taker, {}).update(dict.fromkeys(kinds))
    users: dict[str, list[str]] = {}
    for taker, kinds in takers.items():
        for kind in kinds:
            users.setdefault(kind, []).append(taker)
    return users


def _pooling(model: Pretrained) -> dict[str, str]:
    """How a language model pools its token vectors; empty for other models."""
    from bias_pipeline.models.sentences import default_pooling, own_pooling

    if model.kind not in KINDS:
        return {}
    pooling = own_pooling(model.folder, default_pooling(model.kind))
    return {"pooling": pooling.how + (", length 1" if pooling.normalize else "")}


def prefetch_parser() -> Parser:
    parser = Parser(
        f"{PROGRAM} models prefetch",
        description="Fetch weights from the hub; every digest is checked",
    )
    parser.add_argument(
        "names", nargs="+", metavar="NAME", help="names of models on the hub, or names of encoders"
    )
    parser.add_argument(
        "--revision", default=MAIN, help="a branch, a tag or a commit of the model (default: main)"
    )
    return parser


def prefetch_command(words: list[str]) -> int:
    """Fetch models, except models that a package or a folder already has."""
    from bias_pipeline.models.model_location import prefetch

    options = prefetch_parser().parse_args(words)
    for name in options.names:
        model = encoder_needs().get(name, Need(name)).model
        if _is_there(model, options.revision):
            continue
        place = prefetch(model, options.revision, lambda line: print_out(f"  {line}"))
        print_out(f"{model}, revision {place.revision}: {place.folder}")
    return 0


def _is_there(name: str, revision: str) -> bool:
    """Whether a folder or a package already has the model."""
    try:
        place = find_place(name, revision)
    except BiasPipelineError:
        return False
    if not place.revision:
        print_out(f"{name}: already present, in {place.source} ({place.folder})")
    return not place.revision
