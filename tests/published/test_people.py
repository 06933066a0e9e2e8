"""Data sets of people, in layouts made anew: what is written is what is read."""

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.data.base import Dataset
from bias_pipeline.data.regions import crop_person
from bias_pipeline.errors import BiasPipelineError, DataError, ResourceError
from bias_pipeline.io.paths import choices_of, conf_dir
from bias_pipeline.run import compose
from bias_pipeline.stats.bootstrap import Bootstrap
from tests import composed

LAYOUTS = {
    "utkface": {},
    "celeba": {
        "list_attr_celeba.txt": "3\nBald Male Young\n"
        "1.jpg   1 -1  1\n2.jpg -1  1 -1\n3.jpg -1 -1  1\n",
        "list_eval_partition.txt": "1.jpg 0\n2.jpg 2\n3.jpg 1\n",
    },
    "pata": {
        "pata_fairness.files.lst": "gun_range_black_male_young|http://a/1.png\n"
        "market_caucasian_female_old|http://a/2.png\ndrinking_water_eastasian_male_old|x\n",
    },
    "miap": {
        "open_images_extended_miap_boxes_val.csv": "ImageID,LabelName,Confidence,XMin,XMax,YMin,"
        "YMax,IsOccluded,IsTruncated,IsGroupOf,IsDepictionOf,IsInsideOf,GenderPresentation,"
        "AgePresentation\n"
        "000000000000001e,/m/01g317,1,0.5,1,0,0.5,0,0,0,0,0,Predominantly Feminine,Middle\n"
        "000000000000001e,/m/01g317,1,0,0.5,0.25,1,0,0,0,0,0,Predominantly Masculine,Young\n"
        "000000000000001e,/m/01g317,1,0,1,0,1,0,0,1,0,0,Unknown,Unknown\n"
        "00000000000000e2,/m/01g317,1,0,1,0,1,0,0,0,0,0,Unknown,Older\n",
    },
}
_FACET = {
    "annotations.csv": "person_id,filename,class1,class2,bounding_box,gender_presentation_masc,"
    "gender_presentation_fem,gender_presentation_non_binary,gender_presentation_na,"
    "age_presentation_young,age_presentation_middle,age_presentation_older,age_presentation_na\n"
    """1,a.jpg,nurse,,"{'x': 20, 'y': 0, 'width': 20, 'height': 20}",0,3,0,0,1,2,0,0\n"""
    """2,a.jpg,doctor,,"{""x"": 0, ""y"": 10, ""width"": 20, ""height"": 30}",2,1,0,0,0,0,3,0\n"""
    """3,b.jpg,guard,,"{'x': 0, 'y': 0, 'width': 40, 'height': 40}",1,1,0,0,2,2,0,0\n"""
}
_WORKERS = [
    {"gender": "female", "age": "adult", "ethnicity": "latino"},
    {"gender": "female", "age": "child", "ethnicity": "unsure"},
    {"gender": "male", "age": "adult", "ethnicity": "latino"},
]
_PHASE = {
    "a.jpg": {
        "caption": "two people",
        "person1": {"region": [20, 0, 40, 20], "annotations": _WORKERS},
        "person2": {"region": [0, 10, 20, 40], "annotations": _WORKERS[1:]},
    }
}
_VISO = "IDX\tSector\tSpecialisation\tOccupation\tObject\tURL\tOccupation_perceived_gender\n"
LAYOUTS |= {
    "facet": _FACET,
    "phase": {"phase_gcc_val_all_20221101.json": json.dumps(_PHASE)},
    "visogender": {
        "oo.tsv": f"{_VISO}1\tHealth\t\tnurse\tphone\thttp://a\tmasculine\n"
        "2\tHealth\t\tnurse\tphone\thttp://a\tfeminine\n3\tHealth\t\tnurse\tphone\tNA\tNA\n",
        "op.tsv": "IDX\tSector\tOccupation\tParticipant\tOccupation_Gender\n"
        "1\tHealth\tnurse\tpatient\tfeminine\n",
        "labour.tsv": "Occupation\tShare\nnurse\t0.9\n",
    },
}
PICTURES = {
    "utkface": [
        "part1/25_0_1_20170116174525125.jpg",
        "part1/3_1_2_20161219140623097.jpg.chip.jpg",
        "70_1_4_20170109150557335.jpg",
        "61_1_20170109142408075.jpg.chip.jpg",  # lacks its race, as some published names do
    ],
    "celeba": [f"img_align_celeba/{number}.jpg" for number in (1, 2, 3)],
    "pata": [f"images/{number}.jpg" for number in (1, 2, 3)],
    "facet": ["imgs_1/a.jpg", "imgs_2/b.jpg"],
    "phase": ["images/a.jpg"],
    "visogender": ["images/oo/1.jpg", "images/oo/2.jpg", "images/op/1.jpg"],
    "miap": ["validation/000000000000001e.jpg", "validation/00000000000000e2.jpg"],
}
READ = {
    ("utkface", "gender"): ["female", "male", "female"],
    ("utkface", "age"): ["old", "old", "young"],
    ("utkface", "ethnicity"): [None, "black", "asian"],
    ("celeba", "gender"): ["female", "male", "female"],
    ("celeba", "age"): ["young", "old", "young"],
    ("pata", "gender"): ["male", "female", "male"],
    ("pata", "age"): ["young", "old", "old"],
    ("pata", "ethnicity"): ["black", "white", "east_asian"],
    ("facet", "gender"): ["female", "male", None],
    ("facet", "age"): ["old", "old", None],
    ("phase", "gender"): ["female", None],
    ("phase", "age"): ["old", None],
    ("phase", "ethnicity"): ["latino", None],
    ("visogender", "gender"): ["male", "female", "female"],
    ("miap", "gender"): ["female", "male", None],
    ("miap", "age"): ["old", "young", "old"],
}


def write(root: Path, name: str) -> Path:
    for path, text in LAYOUTS[name].items():
        (root / path).write_text(text)
    for number, path in enumerate(PICTURES[name]):
        (root / path).parent.mkdir(exist_ok=True, parents=True)
        shade = np.full((40, 40, 3), 10 * number, np.uint8)
        shade[:20, 20:] = 255  # the upper right
        Image.fromarray(shade).save(root / path, format="png")
    return root


def load(root: Path, name: str, *words: str) -> Corpus:
    return composed.corpus(f"dataset={name}", f"dataset.root={root}", *words)


@pytest.fixture(scope="module")
def read(tmp_path_factory) -> Callable[..., Corpus]:
    """The corpus of each layout as it is written, of an attribute or the usual one."""

    @cache
    def reading(name: str, *words: str) -> Corpus:
        return load(write(tmp_path_factory.mktemp(name), name), name, *words)

    return reading


def groups(corpus: Corpus, attribute: str) -> list[str | None]:
    grouping = corpus.groupings[attribute]
    return [grouping.names[code] if code >= 0 else None for code in grouping.codes]


@pytest.mark.parametrize(("name", "attribute"), READ, ids="-".join)
def test_labels_are_read(read, name, attribute):
    corpus = read(name, f"attribute={attribute}")
    assert groups(corpus, attribute) == READ[name, attribute]


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_picture_is_there_and_the_licence_which_forbids_to_show_it_is_told_once(read, name):
    corpus = read(name)
    assert corpus.pictures.present.all()
    assert corpus.shown_under == ""
    *others, note = corpus.notes
    assert note == dataset(name).terms
    assert note not in others


def test_only_data_sets_that_say_so_may_be_shown():
    names = {name for name in choices_of(conf_dir() / "dataset") if dataset(name).shown_under}
    assert names == {"fairface", "scenes"}


@cache
def dataset(name: str) -> Dataset:
    built: Dataset = compose.cell([f"dataset={name}"]).build("dataset")
    return built


@pytest.mark.parametrize("name", ["celeba", "pata", "miap", "facet", "visogender"])
def test_an_absent_picture_is_refused_and_its_share_noted_leniently(tmp_path, name):
    root = write(tmp_path, name)
    (root / PICTURES[name][0]).unlink()
    with pytest.raises(ResourceError, match=r"(1 of 3 pictures is|2 of 3 pictures are) not in"):
        load(root, name)
    corpus = load(root, name, "dataset.strict=false")
    assert any(
        re.search("of 3 pictures (is|are) absent: not retrieved", note) for note in corpus.notes
    )


@pytest.mark.parametrize("name", LAYOUTS)
def test_an_empty_folder_is_refused(tmp_path, name):
    with pytest.raises(BiasPipelineError, match=str(tmp_path)):
        load(tmp_path, name)


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("utkface", "1 of 4 pictures is skipped"),
        ("miap", "1 box of groups or depictions is skipped"),
        ("visogender", "1 line without a perceived gender is skipped"),  # and no labour.tsv
    ],
)
def test_what_is_skipped_is_counted(read, name, note):
    assert any(each.startswith(note) for each in read(name).notes)


def test_scenes_with_underscores_are_split_from_the_right(tmp_path):
    reader = compose.cell(["dataset=pata", f"dataset.root={write(tmp_path, 'pata')}"])
    lines = [label.value for label in reader.build("dataset").labels("scene", [])]
    assert lines == ["gun_range", "market", "drinking_water"]


@pytest.mark.parametrize("name", ["miap", "facet", "phase"])
def test_each_person_of_a_picture_is_there_in_their_box_and_all_are_resampled_together(read, name):
    corpus = read(name)
    (drawn,) = Bootstrap(resamples=20).weights(corpus.keys)
    assert (drawn[:, 0] == drawn[:, 1]).all()
    assert corpus.ids[0].endswith("1")
    upper_right = np.asarray(crop_person(corpus.pictures, 0, "person"))
    assert (upper_right == 255).all()
    left = np.asarray(crop_person(corpus.pictures, 1, "person"))
    assert not (left == 255).any()


FACET_BOX = "{'x': 20, 'y': 0, 'width': 20, 'height': 20}"
HUGE = FACET_BOX.replace("20", "1" + "0" * 400, 1)
NO_BOX = "line 2: bounding_box .* is no x, y, width and height"


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("pata", "_old|x\n", "_old|x\nmarket_male_old\n", "line 4: not scene_race_gender_age"),
        ("miap", "0.5,1,0,0.5", "5,1,0,0.5", "line 2: '5' is no share"),
        ("celeba", "3\n", "4\n", "'4' pictures, but 3 follow"),
        ("celeba", "2.jpg -1  1 -1", "2.jpg -1 1", "line 4: 3 cells"),
        ("celeba", "2.jpg -1  1 -1", "2.jpg -1  0 -1", "line 4: label '0'"),
        ("celeba", "Male", "Mail", "attribute 'Male' is absent"),
        *(
            ("facet", FACET_BOX, box, NO_BOX)
            for box in ("20 0 20 20", "{'x': 1}", "[1, 2, 3, 4]", HUGE)
        ),
        ("facet", '",0,3,0,0', '",0,three,0,0', "line 2: gender_presentation_fem 'three'"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, name, old, new, message):
    path = write(tmp_path, name) / next(iter(LAYOUTS[name]))
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(DataError, match=message):
        load(tmp_path, name)


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("celeba", b"2.jpg", b"\xe9.jpg", r"celeba\.txt: line 4, byte 1: not UTF-8"),
        ("pata", b"market", b"caf\xe9", r"files\.lst: line \d+, byte 4: not UTF-8"),
    ],
)
def test_a_line_that_is_not_utf_8_is_named(tmp_path, name, old, new, message):
    path = write(tmp_path, name) / next(iter(LAYOUTS[name]))
    path.write_bytes(path.read_bytes().replace(old, new))
    with pytest.raises(DataError, match=message):
        load(tmp_path, name)


def test_tables_of_other_things_than_people_are_refused(tmp_path):
    for path in write(tmp_path, "visogender").glob("*.tsv"):
        path.write_text(path.read_text().replace("IDX", "ID"))
    with pytest.raises(DataError, match="column 'IDX' is absent; no table here is VisoGender's"):
        load(tmp_path, "visogender")


CELEBA = {
    "published": {
        "Anno/list_attr_celeba.txt": LAYOUTS["celeba"]["list_attr_celeba.txt"],
        "Eval/list_eval_partition.txt": LAYOUTS["celeba"]["list_eval_partition.txt"],
    },
    "Kaggle": {
        "list_attr_celeba.csv": "image_id,Bald,Male,Young\n1.jpg,1,-1,1\n2.jpg,-1,1,-1\n"
        "3.jpg,-1,-1,1\n",
        "list_eval_partition.csv": "image_id,partition\n1.jpg,0\n2.jpg,2\n3.jpg,1\n",
    },
}


@pytest.mark.parametrize(
    "folder",
    [
        "img_align_celeba",
        "img_align_celeba/img_align_celeba",
        "Img/img_align_celeba",
        "Img/img_align_celeba/img_align_celeba",
    ],
)
@pytest.mark.parametrize("form", CELEBA)
def test_celeba_is_read_as_published_and_as_kaggle_has_it(tmp_path, form, folder):
    root = write(tmp_path, "celeba")
    for name in LAYOUTS["celeba"]:
        (root / name).unlink()
    for name, text in CELEBA[form].items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    (root / "img_align_celeba").rename(root / "there")
    (root / folder).parent.mkdir(parents=True, exist_ok=True)
    (root / "there").rename(root / folder)
    corpus = load(root, "celeba")
    assert groups(corpus, "gender") == READ["celeba", "gender"]
    assert all(record.image is not None for record in corpus)
    assert load(root, "celeba", "dataset.part=test").ids == (f"{folder}/2.jpg",)


def test_visogender_is_read_as_published(tmp_path):
    root = write(tmp_path, "visogender")
    for kind in ("oo", "op"):
        (root / kind.upper()).mkdir()
        (root / f"{kind}.tsv").rename(root / kind.upper() / f"{kind}.tsv")
    (root / "OO" / "images").mkdir()
    (root / "images" / "oo").rename(root / "OO" / "images" / "oo")
    corpus = load(root, "visogender")
    assert groups(corpus, "gender") == READ["visogender", "gender"]
    assert corpus.ids == ("OO/images/oo/1.jpg", "OO/images/oo/2.jpg", "images/op/1.jpg")
    assert all(record.image is not None for record in corpus)


def test_two_versions_of_a_table_are_refused(tmp_path):
    root = write(tmp_path, "visogender")
    (root / "oo_older.tsv").write_text((root / "oo.tsv").read_text())
    with pytest.raises(DataError, match=r"oo\.tsv and .*oo_older\.tsv are two versions"):
        load(root, "visogender")


def test_the_merged_answers_of_regions_are_read_too(tmp_path):
    person = {"region": [20, 0, 40, 20], "annotations": {"gender": "disagreement"}}
    text = json.dumps({"a.jpg": {"caption": "", "person1": person}})
    write(tmp_path, "phase")
    (tmp_path / "phase_gcc_val_all_20221101.json").unlink()
    (tmp_path / "phase_gcc_val_regions_20221101.json").write_text(text)
    assert groups(load(tmp_path, "phase"), "gender") == [None]


@pytest.mark.parametrize(
    ("person", "message"),
    [
        ({"region": [1, 2, 3], "annotations": _WORKERS}, "is not x1, y1, x2, y2"),
        ({"region": [1, 2, 3, 10**400], "annotations": _WORKERS}, "is not x1, y1, x2, y2"),
        ({"region": [1, 2, 3, 4], "annotations": [{}]}, "no annotations with 'gender'"),
        ({"region": [1, 2, 3, 4]}, "no annotations with 'gender'"),
    ],
)
def test_a_damaged_person_is_refused(tmp_path, person, message):
    path = write(tmp_path, "phase") / "phase_gcc_val_all_20221101.json"
    path.write_text(json.dumps({"a.jpg": {"person1": person}}))
    with pytest.raises(DataError, match=f"a.jpg, person1.*{message}"):
        load(tmp_path, "phase")
