"""``dataset.images``: pictures found by their names, known by what is in them."""

from pathlib import Path

import numpy as np
import pytest

from bias_pipeline.errors import DataError
from tests.coco_folder import write_folder
from tests.data.test_coco import load, refusal_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder with a made-up picture of each image, under COCO's long names."""
    write_folder(tmp_path)
    (tmp_path / "photos").mkdir()
    for i in range(100, 160):
        photo(tmp_path, i).write_bytes(f"picture {i}".encode())
    return tmp_path


def photo(root: Path, image: int) -> Path:
    return root / "photos" / f"COCO_val2014_{image:012}.jpg"


def photos_setting(root: Path) -> str:
    return f"dataset.images={root / 'photos'}"


def test_an_image_has_its_picture(root):
    assert load(root, photos_setting(root))[3].image == photo(root, 103)


def test_without_a_folder_there_are_none(root):
    assert load(root).pictures is None


def test_pictures_may_be_shown_where_their_owner_says_so(root):
    plain, content = (
        load(root, photos_setting(root)),
        load(root, photos_setting(root), "dataset.shown_under='our own'"),
    )
    assert (plain.shown_under, content.shown_under) == ("", "our own")
    assert plain.digest == content.digest


def test_a_changed_picture_is_another_corpus(root):
    before = load(root, photos_setting(root)).digest
    photo(root, 103).write_bytes(b"another picture")
    assert load(root, photos_setting(root), "limit=1000").digest != before


def test_a_moved_folder_is_the_same_corpus(root):
    before = load(root, photos_setting(root)).digest
    (root / "photos").rename(root / "elsewhere")
    assert load(root, f"dataset.images={root / 'elsewhere'}").digest == before


def test_equal_pictures_are_copies(root):
    photo(root, 107).write_bytes(photo(root, 103).read_bytes())
    pictures = load(root, photos_setting(root)).pictures
    assert pictures is not None
    assert [rows.tolist() for rows in pictures.copies()] == [[3, 7]]


def test_images_without_a_picture_are_refused(root):
    photo(root, 103).unlink()
    assert "1 of 60 labelled images has no picture" in refusal_of(root, photos_setting(root))


def test_images_without_a_picture_are_told_where_that_is_allowed(root):
    photo(root, 103).unlink()
    corpus = load(root, photos_setting(root), "dataset.strict=false")
    assert any("1 of 60 labelled images has no picture" in note for note in corpus.notes)


def test_a_corpus_of_some_images_keeps_their_pictures(root):
    some = load(root, photos_setting(root)).take(np.array([2, 5]))
    assert [record.image for record in some] == [photo(root, 102), photo(root, 105)]


def test_two_images_of_one_picture_are_refused(root):
    (root / "labels.csv").write_text("id,gender\na/103.jpg,male\nb/103.jpg,female\n")
    words = (photos_setting(root), f"dataset.attributes={root / 'labels.csv'}", "captioner=none")
    with pytest.raises(DataError, match=r"a/103\.jpg and b/103\.jpg would both have picture 103"):
        load(root, *words)


def test_two_pictures_of_an_image_are_refused(root):
    (root / "photos" / "103.png").write_bytes(b"another")
    with pytest.raises(DataError, match="are both image 103"):
        load(root, photos_setting(root))
