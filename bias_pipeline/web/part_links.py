"""From a run's number to the images behind it: the filters that its name asks for."""

from __future__ import annotations

from collections.abc import Mapping

from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.metrics.value_names import direction_of
from bias_pipeline.results.store import Result, Row
from bias_pipeline.web.evidence import SUMS
from bias_pipeline.web.views import View

_WRONG = ("gender_error",)  # metrics whose numbers are about captions that name another group
_OBJECT = "object"


def images_link(row: Row, result: Result) -> str:
    """The address of the images behind a number; empty if no images are its own.

    Args:
        row: of the number.
        result: of its run.
    """
    filters = _filters(row.part, _groups(result))
    if filters is None:
        return ""
    if row.metric in _WRONG:
        filters = {**filters, "names": "wrong"}
    return View(f"/run/{result.run_id}/images", {}).link(**filters)


def _filters(part: str, groups: tuple[str, ...]) -> dict[str, str] | None:
    """The filters of a part.

    Example:
        >>> _filters("a_to_t:female:stop sign", ("male", "female"))
        {'group': 'female', 'word': 'stop sign'}
        >>> _filters("model:paired", ("male", "female")), _filters("ece:model", ("male", "female"))
        ({'part': 'model'}, None)
    """
    plain = part.removesuffix(":paired")
    if plain in SUMS:
        return {} if plain == "score" else {"part": plain}
    if part in HEADLINES:
        return {}
    pieces = part.split(":")
    group = [piece for piece in pieces if piece in groups]
    others = [piece for piece in pieces[1:] if piece not in groups]
    filters = {"group": group[0]} if group else {}
    of_pair = bool(direction_of(part) and group)
    if len(others) == 1 and (of_pair or pieces[0] == _OBJECT):
        filters["word"] = others[0]
    return filters or None


def _groups(result: Result) -> tuple[str, ...]:
    config = result.manifest.get("config")
    attribute = config.get("attribute") if isinstance(config, Mapping) else None
    groups = attribute.get("groups") if isinstance(attribute, Mapping) else None
    return tuple(map(str, groups)) if isinstance(groups, list) else ()
