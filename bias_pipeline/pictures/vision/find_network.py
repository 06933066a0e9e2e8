"""Finds the vision network that ``encoder.backbone`` names."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from bias_pipeline.declared import Text
from bias_pipeline.errors import ResourceError
from bias_pipeline.pictures.vision.hf_networks import find_hf
from bias_pipeline.pictures.vision.model import VisionModel
from bias_pipeline.pictures.vision.timm_networks import LITE0, find_lite0, find_timm

OWN_NETWORK, ANNOTATIONS, BOXES = "own", "annotations", "boxes"
TIMM, HF = "timm:", "hf:"
_NAMED = rf"{LITE0}|(?:{TIMM}|{HF})[^\x00-\x1f\x7f]+"
_NAMED_WORDS = f"{LITE0}, {TIMM}NAME, {TIMM}FOLDER, {HF}NAME or {HF}FOLDER"


def _text(words: tuple[str, ...]) -> Text:
    return Text("|".join((*words, _NAMED)), ", ".join((*words, _NAMED_WORDS)))


BackboneName = Annotated[str, _text((OWN_NETWORK, ANNOTATIONS, BOXES))]
PictureBackboneName = Annotated[str, _text((OWN_NETWORK,))]


def is_network(backbone: str) -> bool:
    return backbone == LITE0 or backbone.startswith((TIMM, HF))


def find_network(backbone: str) -> VisionModel:
    """A published vision network on disk; nothing is loaded."""
    if backbone == LITE0:
        return find_lite0()
    kind, _, name = backbone.partition(":")
    return find_timm(name) if f"{kind}:" == TIMM else find_hf(name)


def lasting_name(backbone: str) -> str:
    """The name of a backbone wherever a command is started: folders by their whole paths."""
    kind, colon, name = backbone.partition(":")
    folder = Path(name).expanduser()
    return f"{kind}:{folder.resolve()}" if colon and folder.is_dir() else backbone


def find_again(backbone: str, files: object, folder: Path) -> str:
    """The backbone of a captioner's folder: where it was, or ``backbone`` within the folder."""
    kind, colon, place = backbone.partition(":")
    beside = folder / "backbone"
    places = [backbone, *([f"{kind}:{beside}"] if colon and beside.is_dir() else [])]
    for name in places:
        moved = Path(place).is_absolute() and not Path(place).is_dir() and name == backbone
        if not moved and dict(find_network(name).files) == files:
            return name
    raise ResourceError(
        f"{folder}: was fitted with {backbone}, which is not there as it was; name the folder that "
        f"has the network's files: ln -s FOLDER {beside}"
    )
