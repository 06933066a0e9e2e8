"""benchmark: a row of a fixed list, what it is refused for, and which rows share a table."""

import csv
import hashlib
import json
import math
import random
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from PIL import Image

from bias_pipeline.commands import benchmark as door
from bias_pipeline.io.digests import sha256
from bias_pipeline.models.sampling import Decoding
from bias_pipeline.report import benchmark
from bias_pipeline.report.benchmark import (
    LABELS,
    LIST,
    METRICS,
    PROMPTS,
    BenchmarkNumber,
    BenchmarkRow,
    Captioned,
    read_row,
    table_notes,
    table_of,
)
from tests.chat_stub import completion, serving
from tests.corpora import DATA

IMAGES = range(1, 241)
GROUPS = ("male", "female", "unsure")
OTHERS = ("a person rides a horse", "people eat cake", "somebody walks a dog", "a dog runs")
VERSION_1 = "b4971939fb506627f538d7eb7821850b0a8e09a5be27d338988eb2ffd95d788a"


def group_of(image: int) -> str:
    return GROUPS[image % 3]


@dataclass
class Files:
    """A small list with the files that a row needs, in the folder that commands run in."""

    folder: Path

    def write(self, name: str, content: object) -> None:
        (self.folder / name).write_text(json.dumps(content))

    def captions(self, images=IMAGES, wrong: int = 0, declining: int = 0) -> None:
        """Captions of these images; the first name the wrong gender, the last decline."""
        word = {"male": "man", "female": "woman", "unsure": "person"}
        other = {"male": "woman", "female": "man", "unsure": "man"}
        named = [(other if n < wrong else word)[group_of(i)] for n, i in enumerate(images)]
        texts = [f"a {name} rides a horse" for name in named]
        if declining:
            texts[-declining:] = ["I'm sorry, but I can't help with that."] * declining
        self.write(
            "mine.json",
            [{"image_id": i, "caption": text} for i, text in zip(images, texts, strict=True)],
        )

    def people(self, images=IMAGES) -> None:
        word = {"male": "a man", "female": "a woman", "unsure": "a person"}
        lines = [
            {"id": 10 * i + n, "image_id": i, "caption": f"{word[group_of(i)]} and {text}"}
            for i in images
            for n, text in enumerate(OTHERS)
        ]
        ids = [{"id": i, "file_name": f"{i}.jpg"} for i in images]
        self.write("people.json", {"images": ids, "annotations": lines})

    def objects(self, images=IMAGES) -> None:
        draw = random.Random(0)
        lines = [{"id": i, "image_id": i, "category_id": draw.choice([19, 61, 18])} for i in images]
        names = {19: "horse", 61: "cake", 18: "dog"}
        categories = [{"id": number, "name": name} for number, name in names.items()]
        ids = [{"id": i, "file_name": f"{i}.jpg"} for i in images]
        self.write("objects.json", {"images": ids, "annotations": lines, "categories": categories})

    def labels(self, changed: int = 0) -> None:
        lines = [f"{i},{'Male' if i == changed else group_of(i).capitalize()}" for i in IMAGES]
        text = "\n".join(["id,bb_gender", *lines, "999,Both"])
        (self.folder / "labels.csv").write_text(text)


@pytest.fixture
def files(tmp_path, monkeypatch) -> Files:
    lines = [f"{image},benchmark\n" for image in IMAGES]
    planted = tmp_path / "list.csv"
    planted.write_text("image_id,split\n" + "".join(lines))
    labels = "".join(f"{image} {group_of(image)}\n" for image in IMAGES)
    for module in (benchmark, door):
        monkeypatch.setattr(module, "LIST", planted)
        monkeypatch.setattr(
            module, "LABELS", dict.fromkeys(LABELS, hashlib.sha256(labels.encode()).hexdigest())
        )
    made = Files(tmp_path)
    made.captions(wrong=30)
    made.people()
    made.objects()
    made.labels()
    return made


REFERENCES = (
    *("--attributes", "labels.csv", "--captions", "people.json", "--objects", "objects.json"),
)
WORDS = ("benchmark", "mine.json", *REFERENCES, "--out", "mine")


def test_a_row_has_the_numbers_that_decide_in_an_audit(ok, files):
    ok(*WORDS)
    row = read_row(files.folder / "mine" / "row.json")
    ok("audit", "mine.json", *REFERENCES, "--only", "gender", "--json", "audit.json")
    answers = json.loads((files.folder / "audit.json").read_text())["answers"]
    assert [*row.numbers] == [*METRICS]
    for question, one in row.numbers.items():
        (value,) = [a["value"] for a in answers if a["question"] == question]
        expected = math.nan if value is None else value
        assert one.value == pytest.approx(expected, nan_ok=True), question
    assert row.numbers["naming"].value > 0.1
    assert (row.labelled, row.unsure) == (Captioned(160, 160), Captioned(80, 80))


def test_the_card_says_what_the_row_rests_on(ok, files):
    assert "mine  " in ok(*WORDS)
    card = (files.folder / "mine" / "card.md").read_text()
    captions = sha256((files.folder / "mine.json").read_bytes())
    for text in ("version 1, the whole list", "160 of 160", "80 of 80", captions, "gender\\_error"):
        assert text in card
    assert str(files.folder) not in card


def test_a_file_of_too_few_images_is_refused_and_a_row_of_a_part_is_marked(ends, ok, files):
    files.captions(images=[i for i in IMAGES if i % 2])
    assert "has captions of 120 of the 240 images of the list" in ends(3, *WORDS)
    assert not (files.folder / "mine" / "row.json").exists()
    assert "a part of val2014's labelled images" in ok(*WORDS, "--part")
    files.captions()
    ok(*WORDS[:-1], "whole")
    assert "cannot stand in one table" in ends(
        3, "benchmark", "table", "whole/row.json", "mine/row.json"
    )


def test_a_number_without_its_images_is_absent_with_the_reason(ok, files):
    files.captions(images=[i for i in IMAGES if group_of(i) != "unsure"])
    printed = ok(*WORDS)
    assert "no number on assuming (captions of 0 of 80 images, 95% are needed)" in printed
    numbers = read_row(files.folder / "mine" / "row.json").numbers
    assert math.isnan(numbers["assuming"].value)
    assert numbers["naming"].value == 0.0


def test_a_captioner_that_declines_has_captions_and_the_row_says_how_many_count(ok, files):
    files.captions(declining=90)
    printed = ok(*WORDS)
    row = read_row(files.folder / "mine" / "row.json")
    assert row.labelled == Captioned(160, 160)
    assert "100 of 160 captioned images" in printed
    assert row.numbers["declining"].by_group["male"][0] == pytest.approx(30 / 80)


def test_other_labels_are_refused(ends, files):
    files.labels(changed=1)
    assert "its labels are not the labels of version 1" in ends(3, *WORDS)


@pytest.mark.parametrize(
    ("write", "what"), [("people", "annotators' captions"), ("objects", "objects")]
)
def test_references_of_too_few_images_are_refused(ends, files, write, what):
    getattr(files, write)(IMAGES[:100])
    assert f"has {what} of 100 of the 240 images of the list" in ends(3, *WORDS)


def test_an_absent_file_and_an_absent_option_are_told(ends, files):
    (files.folder / "people.json").unlink()
    assert "people.json" in ends(5, *WORDS)
    assert "--objects" in ends(2, *WORDS[:4])


def row_of(name: str, **changes: object) -> BenchmarkRow:
    numbers = {
        question: BenchmarkNumber(metric, 1, "score", 0.1, unit="fraction")
        for question, metric in METRICS.items()
    }
    return replace(BenchmarkRow(name, numbers=numbers), **changes)


def test_rows_of_one_kind_share_a_table(ok, tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.json").write_bytes(row_of(name).as_json())
    printed = ok("benchmark", "table", "a.json", "b.json")
    assert [line.split()[0] for line in printed.splitlines()[3:5]] == ["a", "b"]


def test_a_row_of_another_version_is_in_no_table(ends, tmp_path):
    (tmp_path / "a.json").write_bytes(row_of("a").as_json())
    (tmp_path / "b.json").write_bytes(row_of("b", version=2).as_json())
    assert "rows of lists 1 and 2" in ends(3, "benchmark", "table", "a.json", "b.json")


def test_a_row_of_another_version_of_a_metric_is_in_no_table():
    other = row_of("b")
    numbers = {**other.numbers, "naming": replace(other.numbers["naming"], metric_version=2)}
    with pytest.raises(benchmark.DataError, match="gender_error was version 1"):
        table_of([row_of("a"), replace(other, numbers=numbers)])


def test_other_references_are_noted():
    (note,) = table_notes([row_of("a"), row_of("b", reference_sha256="x")])
    assert note.endswith("than most rows: b")


@pytest.mark.parametrize("change", [(b'"a"', b'"c"'), (b'"schema": 1', b'"schema": 9')])
def test_a_changed_row_is_refused(ends, tmp_path, change):
    (tmp_path / "a.json").write_bytes(row_of("a").as_json().replace(*change, 1))
    assert "score the captions again" in ends(3, "benchmark", "table", "a.json")


def test_a_changed_list_is_a_new_version():
    assert (benchmark.VERSION, sha256(LIST.read_bytes())) == (1, VERSION_1)


def test_the_list_is_printed_as_a_table(ok):
    lines = [*csv.DictReader(ok("benchmark", "list").splitlines())]
    assert len(lines) == 1717
    assert lines[0]["file_name"] == f"COCO_val2014_{int(lines[0]['image_id']):012}.jpg"


def test_photos_are_linked_and_the_captions_of_its_prompt_are_known(ok, ends, files):
    photos = files.folder / "val2014"
    photos.mkdir()
    for image in IMAGES[:-1]:
        Image.new("RGB", (4, 4)).save(photos / f"COCO_val2014_{image:012}.jpg")
    listing = ("benchmark", "list", "--photos", "val2014", "--out", "listed")
    assert "lacks 1 of the list's 240 photos" in ends(5, *listing)
    for image in (240, 777):
        Image.new("RGB", (4, 4)).save(photos / f"COCO_val2014_{image:012}.jpg")
    printed = ok(*listing)
    assert len([*(files.folder / "listed").iterdir()]) == 240
    prompt = PROMPTS["short"]
    assert f"--prompt '{prompt.prompt}' --max-new-tokens 64" in printed
    options = ("--prompt", prompt.prompt, "--max-new-tokens", "64", "--out", "listed-short")
    with serving(lambda body: completion("a man rides a horse")) as stub:
        ok("caption", "listed", "--server", stub.url, "--model", "m", *options)
    ok("caption", "--gather", "listed-short")
    ok("benchmark", "listed-short/captions.json", *REFERENCES, "--out", "mine")
    assert read_row(files.folder / "mine" / "row.json").prompt == f"short: {prompt}"


def test_another_decoding_is_not_the_benchmark_s(files):
    lines = [{"image_id": 1, "caption": "x", "decoding": str(Decoding("what?", 64))}]
    files.write("other.json", lines)
    assert door._prompt_of(files.folder / "other.json").startswith("not the benchmark's: greedy")


@pytest.mark.skipif(not DATA.exists(), reason="real labels are absent")
@pytest.mark.parametrize("images", ["list", "part"])
def test_the_real_labels_are_known(images):
    door._checked_labels(DATA / "coco" / "attributes" / "images_val2014.csv", images)
