"""Says where to get the published files of each data set.

Files that are free and have a known checksum can be downloaded from their makers' addresses. Labels
of people require a form with terms. The printed steps say how to get the labels and where to put
them.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

from bias_pipeline.errors import ResourceError
from bias_pipeline.io.progress import bar, track

if TYPE_CHECKING:
    from http.client import HTTPResponse

_CHUNK = 1 << 20
_PATIENCE_S = 30.0


@dataclass(frozen=True)
class Archive:
    """A zip file that anyone may download."""

    url: str  # where it is
    sha256: str  # of the whole file, hex
    size: int  # in bytes
    members: Mapping[str, str]  # path in the archive to path under `dataset.root`


def download(archive: Archive, root: Path) -> list[Path]:
    """Download an archive and unpack its members; anything unexpected is deleted."""
    wanted = {
        m: root / target for m, target in archive.members.items() if not (root / target).exists()
    }
    if not wanted:
        return []
    try:
        root.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(root).free
        needed = 3 * archive.size  # for the archive and its unpacked files
        if free < needed:
            raise ResourceError(
                f"{root} has {free / 1e9:.1f} GB free; {archive.url} needs {needed / 1e9:.1f} GB"
            )
        with tempfile.TemporaryDirectory(prefix=".download-", dir=root) as folder:
            packed = Path(folder, "archive.zip")
            _fetch(archive, packed)
            return [_unpack(packed, member, place) for member, place in wanted.items()]
    except (OSError, HTTPException, zipfile.BadZipFile, KeyError) as error:
        raise ResourceError(
            f"{archive.url} cannot be downloaded ({getattr(error, 'strerror', None) or error}); "
            f"nothing was kept. Download it by other means and unpack {', '.join(archive.members)}"
        ) from error


def _fetch(archive: Archive, place: Path) -> None:
    sha = hashlib.sha256()
    with (
        urlopen(archive.url, timeout=_PATIENCE_S) as answer,  # noqa: S310  (addresses are ours)
        place.open("wb") as file,
        bar(archive.url.rpartition("/")[2] + " (MB)"),
    ):
        for chunk in track(_chunks(answer, archive.size), total=-(-archive.size // _CHUNK)):
            sha.update(chunk)
            file.write(chunk)
    if sha.hexdigest() != archive.sha256:
        raise ResourceError(
            f"{archive.url} is not the file expected: its SHA-256 is {sha.hexdigest()}, not "
            f"{archive.sha256}; nothing was kept"
        )


def _chunks(answer: HTTPResponse, size: int) -> Iterator[bytes]:
    """The chunks of an answer.

    Reading stops soon after the expected size, since a server might never stop sending.
    """
    left = size + _CHUNK
    while left > 0 and (chunk := answer.read(_CHUNK)):
        left -= len(chunk)
        yield chunk


def _unpack(packed: Path, member: str, place: Path) -> Path:
    """Write one member to its place, completely or not at all."""
    place.parent.mkdir(parents=True, exist_ok=True)
    part = packed.with_name("member")
    with (
        zipfile.ZipFile(packed) as archive,
        archive.open(member) as source,
        part.open("wb") as target,
    ):
        shutil.copyfileobj(source, target, _CHUNK)
    return part.replace(place)


@dataclass(frozen=True)
class Source:
    files: dict[str, str]  # path under `dataset.root` to a description
    steps: tuple[str, ...]  # how to get them, a sentence each
    terms: str  # what users agree to
    archives: tuple[Archive, ...] = ()  # what may be downloaded without a form


_PRINCETON = (
    "Labels of gender and skin tone: fill in the form linked from "
    "https://github.com/princetonvisualai/imagecaptioning-bias ."
)
_COCO = Archive(
    url="http://images.cocodataset.org/annotations/annotations_trainval2014.zip",
    sha256="031296bbc80c45a1d1f76bf9a90ead27e94e99ec629208449507a4917a3bf009",
    size=252_872_794,
    members={
        "annotations/captions_val2014.json": "annotations/captions_val2014.json",
        "annotations/instances_val2014.json": "annotations/instances_val2014.json",
    },
)
_LIC = "https://github.com/rebnej/lick-caption-bias"
_FAIRFACE = "https://github.com/joojs/fairface"
_RELIC = "https://github.com/eggonz/relic-caption-bias"

SOURCES = {
    "coco": Source(
        files={
            "annotations/captions_val2014.json": "human captions",
            "annotations/instances_val2014.json": "objects",
            "attributes/images_val2014.csv": "labels of gender and skin tone",
            "captioners/<name>.json": "your captioner's results: [{image_id, caption}, ...]",
        },
        steps=(
            "Captions and objects: python -m bias_pipeline data fetch coco --out FOLDER, or "
            "annotations_trainval2014.zip from https://cocodataset.org/#download .",
            _PRINCETON,
        ),
        terms="COCO annotations: CC BY 4.0. The labels: research use, as their form says.",
        archives=(_COCO,),
    ),
    "lic": Source(
        files={
            "Show-Attend-Tell/gender_val_sat_cap_mw_entries.pkl": "captions of sat; others alike",
            "Human_Ann/gender_obj_cap_mw_entries.pkl": "human captions",
            "model_vocab/sat_vocab.pkl": "vocabulary of sat; others alike",
        },
        steps=(
            f"The folder bias_data: the Drive link in the README of {_LIC} .",
            "Name it as dataset.root, or put it at lic/bias_data under BIAS_PIPELINE_DATA.",
        ),
        terms="No licence is stated; cite Hirota et al. 2022 and do not pass the files on.",
    ),
    "relic": Source(
        files={
            "age_dataset.csv": "human captions, captions of four captioners, ages",
            "model_vocab/sat_vocab.pkl": "vocabulary of sat; others alike (from LIC's folder)",
        },
        steps=(f"data/age_data/age_dataset.csv in {_RELIC} .",),
        terms="No licence is stated; cite RELIC (2023) and do not pass the files on.",
    ),
    "flickr30k": Source(
        files={
            "dataset_flickr30k.json": "human captions and splits, or",
            "results_20130124.token": "human captions, or Kaggle's results.csv",
            "attributes.csv": "your labels: image_id and a column for each attribute",
            "captioners/<name>.json": "your captioner's results: [{image_id, caption}, ...]",
        },
        steps=(
            "dataset_flickr30k.json: caption_datasets.zip under "
            "https://cs.stanford.edu/people/karpathy/deepimagesent/ .",
            "results_20130124.token: the form at "
            "https://shannon.cs.illinois.edu/DenotationGraph/ .",
        ),
        terms="Flickr's terms of use; research and education only.",
    ),
    "artemis": Source(
        files={
            "artemis_dataset_release_v0.csv": "emotions and utterances (version 1), or",
            "Contrastive.csv": "emotions and utterances of version 2",
            "STYLE/NAME.jpg": "WikiArt's pictures, in the folder of dataset.images",
            "captioners/<name>.json": "your captioner's results: [{image_id, caption}, ...]",
        },
        steps=(
            "Version 1: the form on https://www.artemisdataset.org/ .",
            "Version 2: the form on https://www.artemisdataset-v2.org/ .",
            "Pictures: the link to WikiArt in the README of https://github.com/optas/artemis .",
        ),
        terms="As in the forms; cite Achlioptas et al. 2021 and Mohamed et al. 2022.",
    ),
    "fairface": Source(
        files={
            "fairface_label_train.csv": "labels of the training part, or",
            "fairface_label_val.csv": "labels of the validation part",
            "train/1.jpg": "pictures, where the label files say",
        },
        steps=(f"Labels and pictures: the links in the README of {_FAIRFACE} .",),
        terms="CC BY 4.0; cite Karkkainen and Joo 2021.",
    ),
    "utkface": Source(
        files={"[age]_[gender]_[race]_[date].jpg": "pictures, within folders too"},
        steps=("The links on https://susanqq.github.io/UTKFace/ .",),
        terms="Non-commercial research only; cite Zhang, Song and Qi 2017.",
    ),
    "celeba": Source(
        files={
            "list_attr_celeba.txt": "forty attributes of each picture; in Anno, or .csv, too",
            "list_eval_partition.txt": "its part, for dataset.part; in Eval, or .csv, too",
            "img_align_celeba/000001.jpg": "pictures; in Img, too",
        },
        steps=("The links on https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html .",),
        terms="Non-commercial research only; cite Liu et al. 2015.",
    ),
    "pairs": Source(
        files={
            "data/occupations/airplane/white_man.png": "a picture of a set and a group",
        },
        steps=("The repository: https://github.com/katiefraser/PAIRS .",),
        terms="CC BY 4.0, made by Midjourney; cite Fraser and Kiritchenko 2024.",
    ),
    "pata": Source(
        files={
            "pata_fairness.files.lst": "scene, race, gender, age and address of each picture",
            "images/7.jpg": "the picture of line 7; others alike",
        },
        steps=("The list: https://github.com/pata-fairness/pata_dataset ; fetch its addresses.",),
        terms="No licence is stated; pictures belong to whoever took them. Cite Seth et al. 2023.",
    ),
    "miap": Source(
        files={
            "open_images_extended_miap_boxes_val.csv": "boxes of people; train and test alike",
            "validation/<ImageID>.jpg": "pictures of Open Images; train and test alike",
        },
        steps=(
            "The boxes: https://storage.googleapis.com/openimages/web/extended.html .",
            "The pictures: by their ids, as Open Images says there.",
        ),
        terms="Boxes: CC BY 4.0. Pictures: the licence of each. Cite Schumann et al. 2021.",
    ),
    "facet": Source(
        files={
            "annotations.csv": "people, their boxes, and votes on each",
            "imgs_1/<filename>": "pictures; imgs_2 and imgs_3 alike",
        },
        steps=("The form on https://ai.meta.com/datasets/facet/ .",),
        terms="For evaluation only; cite Gustafson et al. 2023.",
    ),
    "phase": Source(
        files={
            "phase_gcc_val_all_20221101.json": "people, their boxes, what workers said; or",
            "phase_gcc_val_regions_20221101.json": "the same with one answer each",
            "images/<image>": "pictures of Conceptual Captions, by the names in the file",
        },
        steps=("The form linked from https://github.com/noagarcia/phase .",),
        terms="Research only; cite Garcia et al. 2023.",
    ),
    "visogender": Source(
        files={
            "oo.tsv": "occupations with objects, as any name *.tsv; in OO, too",
            "op.tsv": "occupations with participants, likewise; in OP, too",
            "images/oo/7.jpg": "the picture of IDX 7 of oo.tsv; others alike",
        },
        steps=("The tables: https://github.com/oxai/visogender ; fetch their addresses.",),
        terms="CC BY 4.0, for benchmarks only; cite Hall et al. 2023.",
    ),
    "language_bias": Source(
        files={"as dataset=lic": "its captions and labels, from which the corpora are made"},
        steps=("Made of another data set's captions: see data fetch lic.",),
        terms="As for the data set that the captions come from.",
    ),
    "scenes": Source(files={}, steps=("Made on the spot: nothing to fetch.",), terms="None."),
}


def describe_sources(name: str, source: Source) -> str:
    width = max((len(file) for file in source.files), default=0)
    files = [f"  {file:<{width}}  {what}" for file, what in source.files.items()]
    steps = [f"  {number}. {step}" for number, step in enumerate(source.steps, start=1)]
    expected = ["Expected in dataset.root:", *files] if files else []
    terms = f"Terms: {source.terms}"
    return "\n".join([f"dataset={name}", *expected, "How to get it:", *steps, terms])
