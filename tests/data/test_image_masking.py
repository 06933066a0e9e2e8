"""What masking paints over, what it leaves, and which pictures it cannot mask."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.corpus.pictures import Drawn, Region
from bias_pipeline.data.image_masking import Blank, ImageMasking, Silhouette
from bias_pipeline.errors import DataError, NotApplicableError
from tests.corpora import make_corpus

SIZE = (8, 8)
BIG = Region("person", (0, 0, 4, 4), SIZE, polygons=((0, 0, 4, 0, 4, 4, 0, 4),))
SMALL = Region("person", (6, 6, 1, 1), SIZE, polygons=((6, 6, 7, 6, 7, 7, 6, 7),))
DOG = Region("dog", (4, 0, 2, 2), SIZE)
UNSURE = Region("person", (0, 6, 2, 2), SIZE, score=0.2)


def draw_picture_of(*regions: Region) -> Drawn:
    pixels = np.random.default_rng(0).integers(0, 100, (*SIZE, 3), np.uint8)
    return Drawn(pixels, regions)


def changed_pixels(masking: ImageMasking, *regions: Region) -> np.ndarray:
    """(8, 8) which pixels are painted over."""
    before = draw_picture_of(*regions)
    return (masking.apply(before) != before.pixels).any(axis=2)


@pytest.mark.parametrize(
    ("settings", "n_painted"),
    [
        ({"person": "none"}, 0),
        ({"person": "segment"}, 17),
        ({"person": "box"}, 17),
        ({"person": "segment", "objects": True}, 21),
        ({"person": "none", "objects": True}, 4),
        ({"target": "largest"}, 16),
        ({"target": "foreground"}, 16),
        ({"person": "part"}, 8),
        ({"grow": 1}, 25 + 9),
        ({"person": "box", "min_score": 0.1}, 21),
    ],
)
def test_so_many_pixels_are_painted_over(settings, n_painted):
    regions = (BIG, SMALL, DOG, UNSURE) if settings.get("person") != "part" else (BIG,)
    assert changed_pixels(ImageMasking(**settings), *regions).sum() == n_painted


def test_a_part_is_of_the_height_with_gaps_in_the_outline():
    head, legs = (0, 0, 2, 0, 2, 1, 0, 1), (0, 4, 2, 4, 2, 8, 0, 8)
    parted = Region("person", (0, 0, 2, 8), SIZE, polygons=(head, legs))
    painted = changed_pixels(ImageMasking(person="part", fraction=0.75), parted)
    assert np.flatnonzero(painted.any(axis=1)).tolist() == [0, 4, 5]


@pytest.mark.parametrize("fill", ["grey", "mean", "blur", "noise"])
def test_nothing_outside_the_mask_is_touched(fill):
    masking = ImageMasking(fill=fill)
    mask = masking.mask(draw_picture_of(BIG))
    assert not changed_pixels(masking, BIG)[~mask].any()


@pytest.mark.parametrize("fill", ["grey", "mean", "noise"])
def test_what_is_painted_does_not_depend_on_what_was_there(fill):
    one, other = draw_picture_of(BIG), draw_picture_of(BIG)
    other.pixels[:4, :4] = 250
    masking = ImageMasking(fill=fill)
    assert (masking.apply(one) == masking.apply(other)).all()


def test_the_given_pixels_are_left_as_they_are():
    given = draw_picture_of(BIG)
    before = given.pixels.copy()
    ImageMasking().apply(given)
    assert (given.pixels == before).all()


def test_a_silhouette_is_black_and_white():
    apply = Silhouette(ImageMasking()).apply(draw_picture_of(BIG))
    assert (apply[:4, :4] == 255).all()
    assert apply.sum() == 16 * 3 * 255


def test_blank_pictures_are_all_alike():
    assert (Blank().apply(draw_picture_of(BIG)) == Blank().apply(draw_picture_of())).all()


def corpus(*regions: tuple[Region, ...] | None, image: Path = Path("a.jpg")) -> Corpus:
    male = {"gender": "m"}
    pictures = enumerate(regions)
    return make_corpus(
        [Record(str(n), "a dog", labels=male, image=image, regions=r) for n, r in pictures]
    )


BOXED = Region("person", (0, 0, 1, 1), SIZE)
BESIDE = Region("person", (SIZE[1], 0, 9, 9), SIZE)
ALL = ((BIG,), (BOXED,), (DOG,), None)


@pytest.mark.parametrize(
    ("person", "regions", "retained"),
    [
        ("segment", ALL, [True, False, False, False]),
        ("box", ALL, [True, True, False, False]),
        ("none", ALL, [True, True, True, True]),
        ("box", ((BIG,), (BESIDE,), (BIG, BESIDE)), [True, False, True]),
    ],
)
def test_pictures_that_cannot_be_masked_are_not_shown(person, regions, retained):
    assert ImageMasking(person=person)(corpus(*regions)).pictures.present.tolist() == retained


def test_a_person_beside_a_picture_of_unknown_size_masks_nothing(tmp_path):
    """Detections do not tell how large pictures are; the files do."""
    Image.new("RGB", (8, 8)).save(tmp_path / "1.png")
    within, beside = (Region("person", box, (0, 0)) for box in ((0, 0, 4, 4), (8, 0, 9, 9)))
    shown = corpus((within,), (beside,), image=tmp_path / "1.png")
    assert ImageMasking(person="box")(shown).pictures.present.tolist() == [True, False]


@pytest.mark.parametrize(
    ("polygon", "is_outside"), [((0, 0, 4, 0, 4, 4), False), ((9, 9, 12, 9, 12, 12), True)]
)
def test_an_outline_says_where_somebody_is_whatever_the_box(polygon, is_outside):
    boxes = [(0.0, 0.0, 4.0, 4.0), (9.0, 9.0, 3.0, 3.0)]
    regions = [Region("person", box, SIZE, polygons=(polygon,)) for box in boxes]
    assert [region.is_outside for region in regions] == [is_outside] * 2


def test_a_person_of_no_pixel_is_never_shown():
    """Run lengths of nothing, and a box beside the picture."""
    nobody = Region("person", (9, 9, 1, 1), (2, 2), counts=b"4")
    with pytest.raises(ValueError, match="contain no pixel"):
        ImageMasking().mask(draw_picture_of(nobody))


def test_how_many_cannot_be_masked_is_noted():
    result = ImageMasking()(corpus((BIG,), (DOG,)))
    assert "1 picture has no outline of a person, cannot be masked" in result.notes[-1]


@pytest.mark.parametrize(
    ("person", "regions", "message"),
    [
        ("segment", ((DOG,), None), "image 0 and all others have no outline .*dataset.regions"),
        ("box", ((UNSURE,),), r"no box of a person of image_masking\.min_score=0\.5"),
    ],
)
def test_where_none_can_be_masked_that_is_told_and_metric_all_skips_it(person, regions, message):
    with pytest.raises(NotApplicableError, match=message):
        ImageMasking(person=person)(corpus(*regions))


def test_things_are_not_hidden_where_people_alone_are_annotated():
    with pytest.raises(DataError, match="no thing beside people is annotated"):
        ImageMasking(person="none", objects=True)(corpus((BIG,), (SMALL,), None))


def test_each_masking_is_another_corpus():
    lines = [ImageMasking(fill=fill)(corpus((BIG,))) for fill in ("grey", "noise")]
    assert lines[0].digest != lines[1].digest


def test_a_corpus_without_pictures_stays_as_it_is():
    corpus = make_corpus([Record("1", "a dog")])
    assert ImageMasking()(corpus) is corpus
