"""What frozen networks see in pictures: each picture once, whoever asks, however often killed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from bias_pipeline.corpus.pictures import Drawn, Pictures, Pixels, Region
from bias_pipeline.data.image_masking import ImageMasking
from bias_pipeline.data.photos import UnreadableError
from bias_pipeline.models.blocks import BlockStore
from bias_pipeline.models.picture_vectors import labels_in, regions_of


@dataclass(frozen=True)
class Plain:
    """A picture of one shade."""

    shade: int

    @property
    def digest(self) -> str:
        return f"plain {self.shade}"

    def draw(self, side: int) -> Drawn:
        return Drawn(np.full((side, side, 3), self.shade, np.uint8), ())


@dataclass
class Eyes:
    """Sees a shade as two regions, and gets tired."""

    tired_after: int = 10**6

    side: int = 4
    batch_size: int = 16
    shades: list[int] = field(default_factory=list)

    def extract(self, pixels: Pixels) -> np.ndarray:
        if len(self.shades) >= self.tired_after:
            raise RuntimeError("tired")
        shades = pixels[:, 0, 0, 0]
        self.shades += shades[shades > 0].tolist()  # what is black only tells the shape
        return np.stack([shades, shades * 2.0], axis=1)[:, :, None].astype(np.float16)


def pictures(*shades: int) -> Pictures:
    return Pictures(tuple(map(Plain, shades)))


def look_at(cache: Path | None, pictures: Pictures, eyes: Eyes, **settings: object) -> np.ndarray:
    return np.array(
        regions_of(pictures, cache and str(cache), {"eyes": 1, **settings}, "eyes", lambda: eyes)
    )


@pytest.mark.parametrize("retained", [True, False])
def test_each_row_is_what_is_seen_in_its_picture_in_its_precision(tmp_path, retained):
    result = look_at(tmp_path if retained else None, pictures(3, 7, 3), Eyes())
    assert result.tolist() == [[[3], [6]], [[7], [14]], [[3], [6]]]
    assert result.dtype == np.float16


@pytest.mark.parametrize(
    ("first", "then", "settings", "looked_at"),
    [
        ((1, 2, 3), (4, 3, 2), {}, [4]),
        ((1,), (5, 5, 5), {}, [5]),
        ((1,), (1,), {"version": 2}, [1]),
    ],
    ids=["others share what they can", "twice the same", "other settings"],
)
def test_a_picture_is_looked_at_once(first, then, settings, looked_at, tmp_path):
    look_at(tmp_path, pictures(*first), Eyes())
    eyes = Eyes()
    look_at(tmp_path, pictures(*then), eyes, **settings)
    assert eyes.shades == looked_at


@pytest.mark.parametrize(("edited", "looked_at"), [(False, []), (True, [1])])
def test_annotated_regions_count_only_if_pictures_are_edited(tmp_path, edited, looked_at):
    def annotated_picture(left: float) -> Pictures:
        one = Pictures((Plain(1),), ((Region("person", (left, 0, 1, 1), (4, 4)),),))
        return one.with_edit(ImageMasking("box")) if edited else one

    look_at(tmp_path, annotated_picture(0), Eyes())
    eyes = Eyes()
    look_at(tmp_path, annotated_picture(2), eyes)
    assert eyes.shades == looked_at


def test_a_killed_job_goes_on_where_it_was(tmp_path):
    item, first, second = pictures(*range(1, 251)), Eyes(tired_after=230), Eyes()  # some blocks
    with pytest.raises(RuntimeError, match="tired"):
        look_at(tmp_path, item, first)
    look_at(tmp_path, item, second)
    assert 0 < len(second.shades) < 250
    assert len(second.shades) == 250 - len(first.shades)


def test_a_label_that_was_found_later_counts(tmp_path):
    """A picture that could not be read once is in two blocks, of which either may come first."""
    away = {f"{number:03}" for number in range(30)}

    class Labels:
        def read(self, path: Path) -> Path:
            if path.name in away:
                raise UnreadableError("the disk is away", lasting=False)
            return path

        def describe(self, paths: Sequence[Path]) -> list[str]:
            return ['[["dog", 0.5]]'] * len(paths)

    pictures = {f"{number:03}": Path(f"{number:03}") for number in range(300)}
    store = BlockStore(tmp_path, {"job": "labels"}, "a model")
    assert labels_in(pictures, store, Labels)[1].keys() == away
    away.clear()
    assert labels_in(pictures, store, Labels)[1] == {}
