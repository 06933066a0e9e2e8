"""Measures how much of a captioner's attention to a word lies outside the people of a picture.

For each picture, the captioner writes a caption and reads the caption again with gradients. Then
the map of the word that names a group (:mod:`~bias_pipeline.pictures.gradcam.maps`) is compared
with the mask of the people. The result is the attribution score of Nair et al. (2025), table 4.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bias_pipeline.array_types import BoolArray, Float64Array
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.pictures import PERSON, Drawn, Pixels
from bias_pipeline.data.image_masking import ImageMasking
from bias_pipeline.data.photos import draw_picture
from bias_pipeline.errors import DataError, NotApplicableError, inflect
from bias_pipeline.pictures.gradcam.layers import LayerSearch, MapLayer
from bias_pipeline.pictures.gradcam.maps import Shares, Target, area_means, maps, shares_outside
from bias_pipeline.report.example_pictures import PICTURES, TABLE, drawing_name
from bias_pipeline.stats.bootstrap import quantile
from bias_pipeline.text.mentions import listed_words

if TYPE_CHECKING:
    from PIL.Image import Image

    from bias_pipeline.pictures.forced_captions import ForcedCaptioner, WrittenCaption

AUTO = "auto"
_LARGEST_DRAWING = 256


@dataclass(frozen=True, eq=False)
class WordMap:
    word: str  # lower case; empty if the caption has none of the words
    heatmap: Float64Array  # (h, w) the map
    shares: Shares  # the shares of the map outside people


@dataclass(frozen=True, eq=False)
class Explained:
    image_id: str  # the image's id
    caption: str  # the caption that the captioner wrote
    # A map for each of the words in the caption, in order; without such words, one map
    words: Sequence[WordMap]
    pixels: Pixels  # (H, W, 3) the picture as it was shown, before the captioner's preprocessing


@dataclass(frozen=True)
class ExplainedWords:
    attribute: Attribute  # its words for groups are explained if they name a group
    chosen: Sequence[str] = ()  # words that are explained instead; empty: the attribute's words

    @property
    def word_list(self) -> Sequence[str]:
        if self.chosen:
            return [word.lower() for word in self.chosen]
        namings = self.attribute.namings()
        return sorted({word for one in namings for _, words in one.words for word in words})

    def spans(self, text: str) -> list[tuple[str, int, int]]:
        """The explained words of a caption with their beginning and end, in the caption's order.

        Example:
            >>> gender = Attribute("gender", ("m", "f"), {"m": ["man"], "f": ["woman"]}, {})
            >>> ExplainedWords(gender).spans("A woman and the man's hat")
            [('woman', 2, 7), ('man', 16, 19)]
        """
        text = text.lower()
        if self.chosen:
            spans = {
                match.span(): word for word in self.word_list for match in _matches(word, text)
            }
        else:
            spans = _naming_spans(text, dict(_naming_words(text, self.attribute)))
        return [(word, *span) for span, word in sorted(spans.items())]


def _matches(word: str, text: str) -> Iterator[re.Match[str]]:
    """The places of a word or phrase in a text; a blank also matches a hyphen."""
    pattern = r"[\s-]+".join(re.escape(part) for part in word.split())
    return re.finditer(rf"(?<!\w){pattern}(?!\w)", text)


def _naming_spans(text: str, places: Mapping[str, set[int]]) -> dict[tuple[int, int], str]:
    """Where each word or phrase that names a group begins and ends; a phrase counts as a whole."""
    phrases: list[tuple[int, int]] = []
    spans: dict[tuple[int, int], str] = {}
    for word in sorted(places, key=lambda word: -len(word.split())):
        alone = [
            match.span()
            for match in _matches(word, text)
            if not any(first <= match.start() and match.end() <= last for first, last in phrases)
        ]
        phrases += alone
        spans |= {span: word for number, span in enumerate(alone) if number in places[word]}
    return spans


def _naming_words(text: str, attribute: Attribute) -> Iterator[tuple[str, set[int]]]:
    """Each listed word of a caption, with its occurrences that name a group."""
    for naming in attribute.namings():
        listed = listed_words(Captions.from_texts([text]), naming)
        words = listed.captions.words(0)
        for word in dict.fromkeys(words[place] for place in listed.places.tolist()):
            places = [place for place, other in enumerate(words) if other == word]
            naming_places = set(listed.places[listed.names].tolist())
            yield word, {n for n, place in enumerate(places) if place in naming_places}


class Picture(NamedTuple):
    row: int
    drawn: Drawn
    shown: Any


@dataclass(frozen=True, eq=False)
class Attribution:
    captioner: ForcedCaptioner[Any]  # the captioner that is explained
    layer: MapLayer  # the layer where maps are read
    words: ExplainedWords  # the words that have maps
    # Which people count: `all`, the `largest`, or those in the `foreground`; see `ImageMasking`
    target: str = "all"
    together: int = 32  # pictures of a batch

    @cached_property
    def _masks(self) -> SeenMasks:
        return SeenMasks(self.captioner)

    def explain(self, corpus: Corpus) -> Iterator[Explained]:
        """Every picture of a corpus, with its maps, in the order of the corpus."""
        words = self.words.word_list
        single = [word for word in words if " " not in word]  # "light" names no group
        numbers = {self.captioner.first_token(word) for word in single or words}
        known = sorted(number for number in numbers if number is not None)
        if not known:
            raise DataError(
                f"{self.captioner.name}: its vocabulary has none of the words "
                f"{', '.join(words[:5])}; name other words (--words)"
            )
        pictures = captioned_pictures(self.captioner, corpus)
        while batch := list(islice(pictures, self.together)):
            forms: dict[object, list[Picture]] = {}
            for picture in batch:
                form = self.captioner.pixels(picture.shown).shape
                forms.setdefault(form, []).append(picture)
            explained: dict[int, Explained] = {}
            for alike in forms.values():
                rows = [picture.row for picture in alike]
                explained |= zip(rows, self._explain_alike(corpus.ids, alike, known), strict=True)
            yield from (explained[picture.row] for picture in batch)

    def _explain_alike(
        self, ids: Sequence[str], pictures: Sequence[Picture], known: Sequence[int]
    ) -> Iterator[Explained]:
        """Pictures with their maps; all pictures form one batch of the captioner."""
        shown = [picture.shown for picture in pictures]
        captions = self.captioner.write(shown)
        targets = [self._targets(caption) for caption in captions]
        heatmaps = maps(self.captioner, self.layer, shown, captions, targets, known)
        for picture, caption, *maps_of in zip(pictures, captions, targets, heatmaps, strict=True):
            people = self._people(picture)
            words = [
                WordMap(target.word, heatmap, shares_outside(heatmap, people))
                for target, heatmap in zip(*maps_of, strict=True)
            ]
            text = " ".join(caption.text.split())
            yield Explained(ids[picture.row], text, words, picture.drawn.pixels)

    def _targets(self, caption: WrittenCaption) -> list[Target]:
        targets = []
        for word, start, end in self.words.spans(caption.text):
            tokens = [n for n, (a, b) in enumerate(caption.spans) if a < end and b > start]
            targets += [Target(word, tokens)] if tokens else []
        return targets or [Target()]

    def _people(self, picture: Picture) -> Float64Array:
        """(h, w) the share of each place of the map that people cover, or NaN without outlines."""
        people = [one for one in picture.drawn.regions if one.category == PERSON]
        if not people or not all(one.has_outline for one in people):
            return np.full(self.layer.grid, np.nan)
        try:
            mask = ImageMasking(target=self.target).mask(picture.drawn)  # type: ignore[arg-type]
        except ValueError as error:
            raise DataError(f"a mask in the annotations cannot be used: {error}") from error
        return area_means(self._masks.shares(mask), self.layer.grid)


def captioned_pictures(captioner: ForcedCaptioner[Any], corpus: Corpus) -> Iterator[Picture]:
    """The edited pictures of a corpus, in the form that the captioner takes."""
    from PIL import Image as Pillow

    pictures = corpus.pictures
    if pictures is None:
        raise NotApplicableError(
            f"dataset {corpus.dataset!r} has no pictures here; set dataset.images=DIR"
        )
    side = min(captioner.side, _LARGEST_DRAWING)
    for row in np.flatnonzero(pictures.present).tolist():
        one = draw_picture(pictures, row, side)
        yield Picture(row, one, captioner.prepare(Pillow.fromarray(one.pixels)))


class SeenMasks:
    """Masks after the preprocessing of a captioner."""

    def __init__(self, captioner: ForcedCaptioner[Any]) -> None:
        self._captioner = captioner
        self._extremes: dict[tuple[int, int], tuple[Float64Array, Float64Array]] = {}

    def shares(self, mask: BoolArray) -> Float64Array:
        """(H', W') the share of each pixel of the captioner that a mask (H, W) covers.

        The mask is preprocessed like a picture, which is resized, cropped and padded. Padding is in
        no mask.
        """
        from PIL import Image as Pillow

        photo = Pillow.fromarray(np.repeat(255 * mask[..., None].astype(np.uint8), 3, axis=2))
        if photo.size not in self._extremes:
            black, white = (
                self._grey(Pillow.new("RGB", photo.size, colour)) for colour in ("black", "white")
            )
            self._extremes[photo.size] = black, white - black
        black, span = self._extremes[photo.size]
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(span > 0, (self._grey(photo) - black) / span, 0.0)
        return np.clip(shares, 0.0, 1.0)

    def _grey(self, photo: Image) -> Float64Array:
        pixels = self._captioner.pixels(self._captioner.prepare(photo))
        return pixels.double().cpu().numpy().mean(axis=0)


def layer_of(captioner: ForcedCaptioner[Any], corpus: Corpus, name: str = AUTO) -> MapLayer:
    from PIL import Image as Pillow

    first = next(captioned_pictures(captioner, corpus))
    noise = np.random.default_rng(0).integers(0, 256, first.drawn.pixels.shape, np.uint8)
    other = captioner.prepare(Pillow.fromarray(noise))
    (caption,) = captioner.write([first.shown])
    if not caption.tokens:
        raise DataError(f"{captioner.name}: its caption of the first picture is empty")
    search = LayerSearch(captioner, [first.shown, other], caption)
    return search.find() if name == AUTO else search.find_named(name)


MAPS = "maps.parquet"
_SIDE = 256  # pixels of a drawn map's shorter side
_HOT = np.array([255.0, 60.0, 0.0])
_LEVEL = 0.95


def attribution_row(one: Explained) -> dict[str, Any]:
    first = one.words[0]
    return {
        "image_id": one.image_id,
        "caption": one.caption,
        "word": first.word or None,
        "attribution_score": first.shares.mass,
        "pixel_share": first.shares.pixels,
        "uniform_share": first.shares.uniform,
    }


def write_attribution(
    folder: Path, explained: Iterable[Explained], *, pictures: int, with_maps: bool
) -> list[dict[str, Any]]:
    import pandas as pd

    rows: list[dict[str, Any]] = []
    maps: list[dict[str, Any]] = []
    for number, one in enumerate(explained):
        rows.append(attribution_row(one))
        for place, word in enumerate(one.words) if with_maps else ():
            maps.append(
                {
                    "image_id": one.image_id,
                    "number": place,
                    "word": word.word or None,
                    "attribution_score": word.shares.mass,
                    "height": word.heatmap.shape[0],
                    "width": word.heatmap.shape[1],
                    "map": word.heatmap.ravel().tolist(),
                }
            )
        if number < pictures:
            draw_maps(folder / PICTURES, one)
    pd.DataFrame(rows).to_parquet(folder / TABLE, index=False)
    if with_maps:
        pd.DataFrame(maps).to_parquet(folder / MAPS, index=False)
    return rows


def draw_maps(folder: Path, one: Explained) -> None:
    """Write a PNG file for each word, with the picture, and with the map over the picture."""
    from PIL import Image

    folder.mkdir(exist_ok=True)
    for number, word in enumerate(one.words):
        name = drawing_name(one.image_id, number, word.word)
        Image.fromarray(overlay(one.pixels, word.heatmap)).save(folder / name)


def overlay(pixels: Pixels, heatmap: Float64Array) -> Pixels:
    """(H', 2 W', 3) a picture (H, W, 3) beside the picture in grey under a map."""
    from PIL import Image

    photo = Image.fromarray(pixels)
    scale = max(_SIDE / min(photo.size), 1.0)
    size = (round(photo.width * scale), round(photo.height * scale))
    large = np.asarray(photo.resize(size, Image.Resampling.NEAREST), np.float64)
    top = float(np.nanmax(heatmap, initial=0.0))
    strength = np.nan_to_num(heatmap / top) if top > 0 else np.zeros_like(heatmap)
    shown = Image.fromarray((255 * strength).astype(np.uint8)).resize(
        size, Image.Resampling.NEAREST
    )
    share = 0.8 * np.asarray(shown, np.float64)[..., None] / 255
    grey = np.repeat(large.mean(axis=2, keepdims=True), 3, axis=2)
    return np.hstack([large, (1 - share) * grey + share * _HOT]).round().astype(np.uint8)


def describe_attribution(rows: Sequence[Mapping[str, Any]], words: Sequence[str]) -> list[str]:
    scores = np.array([row["attribution_score"] for row in rows], np.float64)
    uniform = np.array([row["uniform_share"] for row in rows], np.float64)
    known = np.isfinite(scores)
    if not known.any():
        raise DataError(
            "no picture has a score: "
            + (
                "none has an outline of a person with something beside it; name a file with "
                "outlines (dataset.regions=FILE)" if np.isnan(uniform).all() else
               "every map is zero or not of numbers; choose another layer (--layer)")
        )  # fmt: skip
    mean, low, high = _interval(scores[known])
    lines = [
        f"attribution score {mean:.3f} [{low:.3f}, {high:.3f}], mean of "
        f"{inflect(known.sum(), 'pictures')}; "
        f"a uniform map would have {uniform[known].mean():.3f}"
    ]
    silent = sum(row["word"] is None for row in rows)
    counts = {
        "captions have none of the words; their maps are of the step at which the words were "
        "likeliest":
            silent,
        "pictures have no outline of a person, or nothing beside one, and no score":
            int(np.isnan(uniform).sum()),
        "maps are zero everywhere, or not of numbers, and have no score":
            int((~known & np.isfinite(uniform)).sum()),
    }  # fmt: skip
    lines += [f"{count} of {len(rows)} {what}" for what, count in counts.items() if count]
    used = {row["word"] for row in rows}
    lines += [
        f"{word!r} is in no caption the first of the words" for word in words if word not in used
    ]
    return lines


def _interval(scores: Float64Array) -> tuple[float, float, float]:
    """The mean over N pictures with Student's interval."""
    mean = float(scores.mean())
    if len(scores) < 2:
        return mean, math.nan, math.nan
    half = quantile(_LEVEL, len(scores) - 1) * float(scores.std(ddof=1)) / math.sqrt(len(scores))
    return mean, mean - half, mean + half
