"""Files whose numbers of images are not those in the names of the pictures' files.

Picture k is ``00000k.jpg``; its captions, objects and regions say ``thingk``: a wrong join shows.
"""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.data.coco_files import human_captions, model_captions
from bias_pipeline.data.columns import Layout
from bias_pipeline.data.file_names import listed_names
from bias_pipeline.data.image_numbers import of_photos
from bias_pipeline.errors import DataError
from bias_pipeline.published.convert import convert
from tests import composed
from tests.photo_folder import write_photos

N = 40
PICTURES = range(1, N + 1)
NUMBERS = dict(
    zip(PICTURES, random.Random(3).sample(PICTURES, N), strict=True)
)  # picture to number
OTHER = dict(zip(PICTURES, random.Random(4).sample(PICTURES, N), strict=True))

Ids = Callable[[int], object]


def name(picture: int) -> str:
    return f"{picture:06d}.jpg"


def bare(picture: int) -> int:
    return picture


def number_of(picture: int) -> int:
    return NUMBERS[picture]


def list_of_images(
    number: Ids = number_of, called: Callable[[int], str] = name
) -> list[dict[str, object]]:
    return [{"id": number(k), "file_name": called(k), "height": 8, "width": 8} for k in PICTURES]


def words(picture: int) -> str:
    return f"a man with thing{picture}"


def captions(ids: Ids) -> list[dict[str, object]]:
    return [{"image_id": ids(k), "caption": words(k)} for k in PICTURES]


def people(number: Ids = number_of, called: Callable[[int], str] = name) -> dict[str, Any]:
    rows = [{"id": k, **row} for k, row in enumerate(captions(number))]
    return {"images": list_of_images(number, called), "annotations": rows}


def objects(number: Ids = number_of) -> dict[str, Any]:
    return {
        "images": list_of_images(number),
        "categories": [{"id": k, "name": f"thing{k}"} for k in PICTURES],
        "annotations": [
            {"id": k, "image_id": number(k), "category_id": k, "bbox": [0, 0, k % 7 + 1, 8]}
            for k in PICTURES
        ],
    }


def labels(ids: Ids) -> str:
    lines = [f"{ids(k)},{('male', 'female')[k % 2]},{k % 3}" for k in PICTURES]
    return "\n".join(["image_id,gender,split", *lines]) + "\n"


def load(folder: Path, files: dict[str, Any], *overrides: str) -> Corpus:
    """The corpus of files by the keys of the data set."""
    settings = {"dataset": "coco"}
    endings = {"attributes": ".csv", "split_file": ".csv"}
    for key, content in files.items():
        is_text = isinstance(content, str)
        path = folder / f"{key}{endings.get(key, '.json') if is_text else '.json'}"
        path.write_text(content if is_text else json.dumps(content), encoding="utf-8")
        settings[key if key == "captioner" else f"dataset.{key}"] = str(path)
    return composed.corpus(*(f"{key}={value}" for key, value in settings.items()), *overrides)


def check(corpus: Corpus, picture_of: Callable[[str], int]) -> None:
    """Every image has the words, label and things of its picture."""
    assert len(corpus) == N
    for record in corpus:
        picture = picture_of(record.id)
        assert record.model in (words(picture), None)
        assert record.human in ((words(picture),), ())
        assert record.labels == {"gender": ("male", "female")[picture % 2]}
        assert record.objects in (None, {f"thing{picture}"})
        if record.regions:
            assert [region.category for region in record.regions] == [f"thing{picture}"]


def notes(corpus: Corpus) -> str:
    return "\n".join(corpus.notes)


ALL = f"names find {N} of {N} images, ids {N}"
TWIST = {number: picture for picture, number in NUMBERS.items()}


@pytest.mark.parametrize("ids", [name, bare, lambda k: f"val2014/COCO_val2014_{k:012d}.jpg"])
@pytest.mark.parametrize("called", [name, lambda k: f"val2014/COCO_val2014_{k:012d}.jpg"])
def test_names_win_over_a_files_own_numbers(tmp_path, ids, called):
    files = {
        "attributes": labels(ids),
        "captioner": captions(ids),
        "captions": people(number_of, called),
    }
    corpus = load(tmp_path, files)
    check(corpus, int)
    assert all(record.human for record in corpus)
    assert f"captions.json: joined by file_name, not by image id: {ALL}" in notes(corpus)


@pytest.mark.parametrize("key", ["captioner", "instances", "captions"])
def test_each_file_may_have_own_numbers(tmp_path, key):
    files = {
        "attributes": labels(name),
        "captioner": captions(name),
        "captions": people(bare),
        "instances": objects(bare),
    }
    content = {"captioner": people, "instances": objects, "captions": people}[key]()
    corpus = load(tmp_path, files | {key: content})
    check(corpus, int)
    assert all(record.human and record.model and record.objects for record in corpus)
    assert f"{key}.json: joined by file_name" in notes(corpus)


def test_files_may_have_different_numbers_and_texts_as_numbers(tmp_path):
    files = {
        "attributes": labels(name),
        "captioner": people(lambda k: str(OTHER[k])),
        "captions": people(lambda k: str(NUMBERS[k])),
        "instances": objects(lambda k: f"{OTHER[k]:03d}"),
    }
    check(load(tmp_path, files), int)


def test_coco_itself_is_read_without_a_note(tmp_path):
    def file_name_of(k: int) -> str:
        return f"COCO_val2014_{k:012d}.jpg"

    files = {
        "attributes": labels(bare),
        "captioner": captions(bare),
        "captions": people(bare, file_name_of),
    }
    corpus = load(tmp_path, files | {"instances": objects(bare)})
    check(corpus, int)
    assert "joined" not in notes(corpus)


def test_numbers_without_names_are_those_of_the_files_list(tmp_path):
    """Labels by name, a captioner's results by the numbers of people's file: only that joins."""

    def file_name_of(k: int) -> str:
        return f"kitchen_{k}.jpg"

    files = {
        "attributes": labels(file_name_of),
        "captioner": captions(number_of),
        "captions": people(number_of, file_name_of),
    }
    corpus = load(tmp_path, files)
    check(corpus, lambda i: int(i.removeprefix("kitchen_")))
    assert "captioner.json: image ids are the ids of captions.json" in notes(corpus)


@pytest.mark.parametrize("ids", [number_of, bare])
def test_words_say_what_a_captioners_numbers_are(tmp_path, ids):
    """Both readings of the captioner's numbers find every labelled image."""
    files = {"attributes": labels(name), "captioner": captions(ids), "captions": people()}
    check(load(tmp_path, files), int)


def test_words_say_that_all_files_have_one_programs_numbers(tmp_path):
    files = {
        "attributes": labels(number_of),
        "captioner": captions(number_of),
        "captions": people(),
    }
    corpus = load(tmp_path, files | {"instances": objects()})
    check(corpus, lambda i: TWIST[int(i)])
    assert "captions.json: joined by image id, not by file_name" in notes(corpus)


def test_numbers_that_can_be_read_in_two_ways_are_refused(tmp_path):
    same = [{**row, "caption": "a man"} for row in captions(number_of)]
    files = {"attributes": labels(name), "captioner": same, "captions": people()}
    with pytest.raises(
        DataError, match=r"captioner\.json: its image ids may be .* or the image ids of "
    ):
        load(tmp_path, files)


def test_a_tie_is_refused_and_the_advised_options_decide(tmp_path):
    """Names find the first half of the labelled images, numbers the second."""
    half = N // 2

    def file_name_of(k: int) -> str:
        return name(k if k <= half else k + N)

    def number(k: int) -> int:
        return k + half if k <= half else k + 2 * N

    same = [{**row, "caption": "a man"} for row in captions(bare)]
    files = {
        "attributes": labels(bare),
        "captioner": same,
        "captions": people(number, file_name_of),
    }
    with pytest.raises(DataError, match="both find 20 of 40 images; choose with --id-column"):
        load(tmp_path, files)
    by_name = load(tmp_path, files, "dataset.id_column=file_name")
    by_number = load(tmp_path, files, "dataset.id_column=image_id")
    assert {int(r.id) for r in by_name if r.human} == set(range(1, half + 1))
    assert {int(r.id) for r in by_number if r.human} == set(range(half + 1, N + 1))


def test_the_column_of_names_may_be_named_where_nothing_is_doubtful(tmp_path):
    files = {"attributes": labels(name), "captioner": captions(name), "captions": people()}
    check(load(tmp_path, files, "dataset.id_column=file_name"), int)


def test_more_joins_win_where_names_find_few(tmp_path):
    """Names that share a few numbers with the labels by chance do not win."""

    def file_name_of(k: int) -> str:
        return name(k + N - 5)

    files = {"attributes": labels(bare), "captioner": captions(bare)}
    corpus = load(tmp_path, files | {"captions": people(bare, file_name_of)})
    check(corpus, int)
    assert "joined by image id, not by file_name: ids find 40 of 40 images, names 5" in notes(
        corpus
    )


def test_numbers_of_one_program_find_pictures_by_name(tmp_path):
    """Labels have own numbers; photos, and regions with other numbers, are found by file name."""
    write_photos(tmp_path / "photos", N)
    files = {
        "attributes": labels(number_of),
        "captioner": captions(number_of),
        "captions": people(),
    }
    files |= {"regions": objects(lambda k: OTHER[k])}
    corpus = load(tmp_path, files, f"dataset.images={tmp_path / 'photos'}")
    check(corpus, lambda i: TWIST[int(i)])
    for record in corpus:
        assert Path(str(record.image)).stem == str(TWIST[int(record.id)])
        assert record.regions


def test_regions_of_own_numbers_are_of_the_named_pictures(tmp_path):
    write_photos(tmp_path / "photos", N)
    files = {"attributes": labels(name), "captioner": captions(name), "regions": objects()}
    corpus = load(tmp_path, files, f"dataset.images={tmp_path / 'photos'}")
    check(corpus, int)
    assert all(record.regions for record in corpus)


@pytest.mark.parametrize(
    "content",
    [
        {
            "images": [
                {**row, "split": "a" if k % 2 else "b"} for k, row in enumerate(list_of_images(), 1)
            ]
        },
        {
            "images": [
                {"cocoid": NUMBERS[k], "filename": name(k), "split": "a" if k % 2 else "b"}
                for k in PICTURES
            ]
        },
        {"images": [{"filename": name(k), "split": "a" if k % 2 else "b"} for k in PICTURES]},
        "image_id,file_name,split\n"
        + "".join(f"{NUMBERS[k]},{name(k)},{'a' if k % 2 else 'b'}\n" for k in PICTURES),
        "image_id,split\n" + "".join(f"{name(k)},{'a' if k % 2 else 'b'}\n" for k in PICTURES),
    ],
)
def test_parts_are_of_the_named_pictures(tmp_path, content):
    files = {"attributes": labels(name), "captioner": captions(name), "split_file": content}
    corpus = load(tmp_path, files, "dataset.split=a")
    assert sorted(int(record.id) for record in corpus) == list(range(1, N + 1, 2))


def test_a_table_with_numbers_and_names_is_read_as_a_list_of_images(tmp_path):
    rows = [
        {**row, "file_name": name(k)} for k, row in zip(PICTURES, captions(number_of), strict=True)
    ]
    lines = [f"{OTHER[k]},{name(k)},{('male', 'female')[k % 2]}" for k in PICTURES]
    table = "\n".join(["image_id,file_name,gender", *lines])
    corpus = load(tmp_path, {"attributes": table, "captioner": rows, "captions": people(bare)})
    check(corpus, int)


def test_a_label_table_that_can_be_read_in_two_ways_is_refused(tmp_path):
    lines = [f"{NUMBERS[k]},{name(k)},{('male', 'female')[k % 2]}" for k in PICTURES]
    files = {"attributes": "\n".join(["image_id,file_name,gender", *lines])}
    with pytest.raises(DataError, match="--id-column file_name"):
        load(tmp_path, files | {"captioner": captions(bare)})
    chosen = load(tmp_path, files | {"captioner": captions(bare)}, "dataset.id_column=file_name")
    check(chosen, int)
    chosen = load(
        tmp_path, files | {"captioner": captions(number_of)}, "dataset.id_column=image_id"
    )
    check(chosen, lambda i: TWIST[int(i)])


def test_an_image_without_a_name_is_not_taken_for_another(tmp_path):
    content = people()
    del content["images"][4]
    files = {"attributes": labels(name), "captioner": captions(name), "captions": content}
    with pytest.raises(DataError, match=f"image id {NUMBERS[5]} is not among its images"):
        load(tmp_path, files)


def test_a_join_by_number_of_files_that_name_pictures_otherwise_is_told(tmp_path):
    content = people(bare, lambda k: f"kitchen_{k}.jpg")
    files = {"attributes": labels(name), "captioner": captions(name), "captions": content}
    corpus = load(tmp_path, files)
    check(corpus, int)
    assert "joined by image id, not by file_name: ids find 40 of 40 images, names 0" in notes(
        corpus
    )


def test_two_numbers_of_one_picture_are_refused(tmp_path):
    content = people(number_of, lambda k: name(min(k, N - 1)))
    files = {"attributes": labels(name), "captioner": captions(name), "captions": content}
    message = r"image ids \d+ and \d+ are one picture, '000039\.jpg'; give each picture one id"
    with pytest.raises(DataError, match=message):
        load(tmp_path, files)


def test_one_number_of_two_pictures_is_refused(tmp_path):
    images = [{"id": 1, "file_name": "1.jpg"}, {"id": 1, "file_name": "2.jpg"}]
    with pytest.raises(DataError, match=r"image id 1 is '1\.jpg' and '2\.jpg'"):
        listed_names(tmp_path / "a.json", images)


def test_a_converted_file_keeps_the_names(tmp_path):
    for key, content in {"people": people(), "things": objects()}.items():
        (tmp_path / f"{key}.json").write_text(json.dumps(content))
        convert(tmp_path / f"{key}.json", tmp_path)
    files = {"attributes": labels(name), "captioner": captions(name)}
    named = [f"dataset.captions={tmp_path}/people.parquet"]
    corpus = load(tmp_path, files, *named, f"dataset.instances={tmp_path}/things.parquet")
    check(corpus, int)
    assert all(record.human and record.objects for record in corpus)


def test_coco_converted_has_no_names(tmp_path):
    (tmp_path / "people.json").write_text(json.dumps(people(bare)))
    (table,) = convert(tmp_path / "people.json", tmp_path)
    assert list(pd.read_parquet(table).columns) == ["id", "image_id", "caption"]


def test_photos_are_known_by_name(tmp_path):
    path, layout = tmp_path / "people.json", Layout()
    path.write_text(json.dumps(people()))
    read = model_captions(path, None, layout).captions
    photos = {str(k) for k in PICTURES}
    assert of_photos(path, read, photos, layout) == {str(k): words(k) for k in PICTURES}
    assert human_captions(path)[0][str(NUMBERS[1])] == (words(1),)
