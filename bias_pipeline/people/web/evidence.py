"""The images behind a run's numbers: what attackers guessed, what captions name, what they add."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from starlette.exceptions import HTTPException

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.errors import DataError
from bias_pipeline.io.digests import sha256_of
from bias_pipeline.people.image_scores import ImageScores, image_scores
from bias_pipeline.people.web.captions_behind import NO_CAPTION, CaptionsBehind
from bias_pipeline.people.web.views import View
from bias_pipeline.results.parquet import EXCLUSIVE
from bias_pipeline.results.rows import Result, mapping_in
from bias_pipeline.stats import scoring
from bias_pipeline.text.descriptions import ConceptTable
from bias_pipeline.text.mentions import NO_GROUP, SEVERAL_GROUPS

MOST_GUESSES = 10_000_000  # of a run that are added up; some 2 GB
SUMS = ("score", "model", "human")  # parts that may be sums over images
GUESSES = ("right", "wrong")
FILTERS = ("group", "names", "guess", "object", "word", "concept", "class")
NAMES = ("right", "wrong", "none", "several")
ORDERS = {
    "-share": "raises the number most",
    "share": "lowers it most",
    "-sure": "attackers surest of the group",
    "sure": "attackers least sure",
    "image": "image",
}
_SCORINGS: Mapping[str, Callable[..., scoring.Scoring]] = {
    kind.__name__: kind for kind in (scoring.Accuracy, scoring.Lic, scoring.Confidence)
}


@dataclass(frozen=True, eq=False)
class Evidence:
    """N images that a run scored."""

    result: Result  # of the run
    # Of attackers' guesses; None if the run has none that are sums over images
    scores: ImageScores | None
    captions: CaptionsBehind | None  # what was scored, None if it cannot be read
    reason: str = ""  # why `captions` is None; empty otherwise

    @cached_property
    def rows(self) -> IntArray:
        """(N,) the image's row in the corpus; -1 where it is unknown."""
        if self.captions is None:
            return np.full(0 if self.scores is None else len(self.scores.ids), -1)
        if self.scores is None:
            return np.arange(len(self.captions.corpus))
        known = pa.array(self.captions.corpus.ids, pa.string())
        places = pc.fill_null(pc.index_in(self.scores.ids, value_set=known), -1)
        return np.asarray(places.to_numpy(), np.int64)

    def __len__(self) -> int:
        return len(self.rows)

    def id_of(self, place: int) -> str:
        """An image's id."""
        if self.scores is not None:
            return str(self.scores.ids[place].as_py())
        assert self.captions is not None  # or there is no image
        return self.captions.corpus.ids[self.rows[place]]

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups."""
        if self.captions is not None:
            return self.captions.groups
        return () if self.scores is None else self.scores.groups

    @cached_property
    def group(self) -> IntArray:
        """(N,) the group of each image, below 0 for none."""
        if self.captions is None:
            return np.empty(0, np.int64) if self.scores is None else self.scores.truth
        codes = self.captions.corpus.groupings[self.captions.attribute.name].codes
        return codes[self.rows]

    @cached_property
    def named(self) -> IntArray | None:
        """(N,) the group that each image's caption names; None without captions."""
        return None if self.captions is None else self.captions.named[self.rows]

    def shares(self, part: str) -> Float64Array | None:
        """(N,) what each image adds to a part, None if the part is no sum over images."""
        relation = mapping_in(self.result.manifest, "config").get("relation", "difference")
        if self.scores is None or (part == "score" and relation != "difference"):
            return None
        return self.scores.shares(part)

    def part(self, view: View) -> str:
        """The part whose images a view shows, without ``paired``; the model's without a score."""
        usual = "model" if self.shares("score") is None and self.scores is not None else "score"
        part = (view["part"] or usual).removesuffix(":paired")
        _known(part, SUMS)
        return part

    def value(self, part: str) -> float:
        """The run's number, NaN if it has none of that name."""
        values = {row.part: row.value for row in self.result.rows}
        return values.get(f"{part}:paired", values.get(part, math.nan))

    def places(self, view: View) -> IntArray:
        """The images that a view shows, in its order."""
        part = self.part(view)
        keep = np.ones(len(self), bool)
        for name in FILTERS:
            if view[name]:
                keep &= self._fitting(name, view[name])
        order = self._order(view["sort"] or self.usual_order(part), part)
        return np.flatnonzero(keep) if order is None else order[keep[order]]

    def usual_order(self, part: str) -> str:
        """The order if a view names none."""
        return "image" if self.shares(part) is None else "-share"

    def _order(self, name: str, part: str) -> IntArray | None:
        """(N,) all images in an order; None for the order of their ids."""
        if name not in ORDERS:
            raise HTTPException(400, f"sort={name} is unknown; choose {', '.join(ORDERS)}")
        if name == "image":
            return None
        by = "sure" if name.endswith("sure") else part
        shared = by == "sure" or self.shares(part) is not None
        if self.scores is None or not shared:
            raise HTTPException(400, "this number is not a mean of guesses; choose sort=image")
        return self.scores.order(by, descending=name.startswith("-"))

    def _fitting(self, name: str, wanted: str) -> BoolArray:
        """(N,) the images that one filter leaves."""
        if name == "group":
            return self.group == _known(wanted, self.groups)
        if name == "guess":
            _known(wanted, GUESSES)
            if self.scores is None:
                raise HTTPException(400, "this run has no guesses of attackers from captions")
            right = self.scores.right
            return right >= 0.5 if wanted == "right" else right < 0.5
        captions = self.captions
        if captions is None:
            raise HTTPException(409, self.reason)
        if name == "names":
            _known(wanted, NAMES)
            return self._naming(wanted, captions.named[self.rows])
        if name == "object":
            return captions.with_object(wanted)[self.rows]
        if name == "word":
            return captions.holding(wanted)[self.rows]
        table = captions.concepts
        _known(wanted, table.concepts if name == "concept" else table.classes)
        concepts = [wanted] if name == "concept" else _of_class(table, wanted)
        return captions.describing(concepts)[self.rows]

    def _naming(self, which: str, named: IntArray) -> BoolArray:
        codes = {"none": NO_GROUP, "several": SEVERAL_GROUPS}
        if which in codes:
            return named == codes[which]
        return (named >= 0) & (self.group >= 0) & ((named == self.group) == (which == "right"))

    def concepts(self, view: View) -> frozenset[str]:
        """The concepts that a view filters captions by; empty without such a filter."""
        if self.captions is None:
            return frozenset()
        table = self.captions.concepts
        return frozenset(
            {view["concept"]} & table.class_of.keys() | _of_class(table, view["class"])
        )


def _of_class(table: ConceptTable, name: str) -> set[str]:
    return {concept for concept, kind in table.class_of.items() if kind == name}


def _known(name: str, names: Sequence[str]) -> int:
    if name not in names:
        raise HTTPException(400, f"{name} is unknown; choose {', '.join(names)}")
    return names.index(name)


def scores_of(result: Result, root: Path) -> ImageScores | None:
    """The guesses of a run's attackers, added up by image; None if its numbers are no such sums."""
    settings = mapping_in(result.manifest, "config")
    node = settings.get("scoring")
    node = node if isinstance(node, Mapping) else {}
    kind = _SCORINGS.get(str(node.get("_target_", "")).rpartition(".")[2])
    if kind is None:
        return None
    _check_count(root / result.run_id / EXCLUSIVE)
    path = predictions_path(result, root)
    if path is None:
        return None
    try:
        return image_scores(path, kind(node.get("average", "captions")), paired=True)
    except ValueError:  # no guesses from captions, such as those of DBAC
        return None
    except (ArithmeticError, LookupError, OSError, RuntimeError, TypeError) as error:
        raise DataError(f"{path}: cannot be read ({error}); run the job again") from error


def _check_count(path: Path) -> None:
    """Refuse a file with more guesses than memory should hold; what is damaged is seen later."""
    import pyarrow.parquet as pq

    with contextlib.suppress(OSError, ValueError):
        n_guesses = pq.read_metadata(path).num_rows
        if n_guesses > MOST_GUESSES:
            raise DataError(
                f"{path}: has {n_guesses:,} guesses of attackers; those of a run are added up by "
                f"image if it has {MOST_GUESSES:,} or fewer, so no guesses and no shares are shown"
            )


def predictions_path(result: Result, root: Path) -> Path | None:
    """The file of a run's guesses, None if it has none."""
    written = mapping_in(result.manifest, "files").get(EXCLUSIVE)
    if written is None:
        return None
    path = root / result.run_id / EXCLUSIVE
    try:
        about = path.stat()
        checksum = _checksum(path, about.st_mtime_ns, about.st_size, about.st_ino)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); run the job again") from error
    if checksum != written:
        raise DataError(
            f"{path}: is damaged (its checksum does not fit), so its guesses are not shown; run "
            "the job again"
        )
    return path


@lru_cache(64)
def _checksum(path: Path, *_: int) -> str:
    """Of a file that is what it was when it was written, of that size, as that file."""
    return sha256_of(path)


def named_text(code: int, groups: Sequence[str]) -> str:
    """What a caption names, in words.

    Example:
        >>> named_text(1, ("male", "female")), named_text(-2, ("male", "female"))
        ('female', 'several groups')
    """
    others = {NO_GROUP: "no group", SEVERAL_GROUPS: "several groups", NO_CAPTION: "no caption"}
    return groups[code] if code >= 0 else others[code]
