"""``report --images --maps``: pictures of a page's examples, and maps of their words."""

import base64
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bias_pipeline.data.photos import find_photos
from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.pictures.gradcam.attribution import Explained, WordMap, write_attribution
from bias_pipeline.pictures.gradcam.maps import Shares
from bias_pipeline.report import example_pictures
from bias_pipeline.report.example_pictures import drawn_maps, with_pictures
from bias_pipeline.report.examples import ScreenExamples
from bias_pipeline.report.page import Report, html, report_of
from bias_pipeline.report.section import Section
from bias_pipeline.report.table import Table
from bias_pipeline.results.rows import Result
from tests.photo_folder import write_photos
from tests.report.test_page import LOWER
from tests.report.test_tables import row

PICTURE = 'href="data:image/jpeg;base64,'  # a thumbnail
MAP = 'src="data:image/jpeg;base64,'


def report_on(*images: str) -> Report:
    table = Table("Examples", ["image", "caption"], [[image, "a man"] for image in images])
    return Report("t", "", [Section("Words", tables=[table])], [])


@pytest.fixture
def photos(tmp_path: Path) -> dict[str, Path]:
    return find_photos(write_photos(tmp_path / "photos", 6))


def test_examples_have_their_pictures(photos):
    text = html(with_pictures(report_on("1", "2", "777"), photos))
    assert text.count(PICTURE) == 2
    assert "777" in text


def test_captions_of_the_first_screen_have_pictures(photos):
    rows = [
        row(run_id="r", metric="gender_error", part=part, attribute="gender", value=0.3)
        for part in ("score", "named", "human", "named:human", "named:increase")
    ]
    readings = {"score": {"part": "named", "follows": [], "named": True, "matched": False}}
    manifest = {"metric": {**LOWER, "question": "misgendering", "readings": readings}, "notes": []}
    line = {"image_id": "3", "labelled": "male", "named": "female", "caption": "a woman"}
    behind = ScreenExamples({"misnamed": {"r": [{**line, "wrong": "9"}]}})
    report = report_of([Result("r", rows, manifest)], {}, behind=behind)
    assert any(panel.tables for summary in report.summaries for panel in summary.panels)
    text = html(with_pictures(report, photos))  # on its card, and among all examples
    assert (text.count(PICTURE), text.count('<use href="#p0"/>')) == (1, 1)


@pytest.mark.parametrize(("images", "most", "shown"), [("1234", 2, 2), ("111", 1, 1)])
def test_a_page_has_pictures_of_no_more_images_than_its_limit(
    images, most, shown, photos, monkeypatch
):
    monkeypatch.setattr(example_pictures, "MOST", most)
    assert html(with_pictures(report_on(*images), photos)).count(PICTURE) == shown


def test_photos_of_another_data_set_are_refused(photos):
    with pytest.raises(DataError, match="none of the 2 images of the examples"):
        with_pictures(report_on("777", "778"), photos)


def test_a_page_without_examples_says_so(photos, capsys):
    with_pictures(report_on(), photos)
    assert "the page has no pictures, since" in capsys.readouterr().err


def test_a_broken_photo_is_named_and_left_out(photos, capfd):
    photos["1"].write_bytes(b"no picture")
    assert html(with_pictures(report_on("1", "2"), photos)).count(PICTURE) == 1
    assert "the report does not show it" in capfd.readouterr().err


def test_pictures_hold_no_metadata(photos):
    exif = Image.Exif()
    exif[0x010E] = "where it was taken"
    Image.new("RGB", (8, 8)).save(photos["1"], "JPEG", exif=exif)
    text = html(with_pictures(report_on("1"), photos))
    picture = text.partition(PICTURE)[2].partition('"')[0]
    assert b"where it was taken" not in base64.b64decode(picture)


def explained_image(image_id: str, caption: str, word: str) -> Explained:
    heat = np.array([[0.0, 1.0], [0.0, 0.0]])
    mapped = WordMap(word, heat, Shares(0.5, 0.5, 0.5))
    return Explained(image_id, caption, [mapped], np.full((8, 8, 3), 90, np.uint8))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Maps of three images, of which the first two are drawn; the second caption is another."""
    captions = [("1", "a man", "man"), ("2", "an old man", "old man"), ("3", "a man", "man")]
    write_attribution(
        tmp_path, [explained_image(*one) for one in captions], pictures=2, with_maps=False
    )
    return tmp_path


def test_a_map_is_folded_beside_the_example_of_its_caption(folder):
    text = html(with_pictures(report_on("1", "2", "3"), maps=drawn_maps(folder)))
    assert text.count("<details><summary>map of “man”</summary><img ") == 1
    assert (text.count(PICTURE), text.count(MAP)) == (0, 1)


def test_a_map_and_a_picture_stand_side_by_side(folder, photos):
    text = html(with_pictures(report_on("1", "2"), photos, drawn_maps(folder)))
    assert (text.count(PICTURE), text.count(MAP)) == (2, 1)


def test_a_map_shows_the_picture_and_where_it_is_hot(folder):
    text = html(with_pictures(report_on("1"), maps=drawn_maps(folder)))
    drawing = text.partition("<details>")[2].partition(MAP)[2].partition('"')[0]
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(drawing))), np.int64)
    assert pixels.shape == (128, 256, 3)
    assert np.abs(pixels[:, :120] - 90).max() < 30
    assert pixels[20:40, 210:240, 0].min() > pixels[20:40, 140:170, 0].max() + 80


def test_maps_of_other_captions_are_refused(folder):
    with pytest.raises(DataError, match=r"none of the 1 images .* of the same caption"):
        with_pictures(report_on("2"), maps=drawn_maps(folder))


def test_a_folder_without_maps_is_refused(tmp_path):
    with pytest.raises(ResourceError, match=r"attribution\.parquet"):
        drawn_maps(tmp_path)


@pytest.mark.parametrize("image", ["train/7", "../../7", 300 * "7"])
def test_no_id_takes_a_map_out_of_its_folder(image, tmp_path):
    place = tmp_path / "a" / "b"
    place.mkdir(parents=True)
    write_attribution(place, [explained_image(image, "a man", "man")], pictures=1, with_maps=False)
    assert drawn_maps(place)[image].file.parent == place / "maps"
    assert [path.name for path in tmp_path.rglob("*.png")] == [drawn_maps(place)[image].file.name]
