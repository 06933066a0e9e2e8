"""Tables of text: what quotation marks are, where the heading is, what is refused by its row."""

import csv
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from bias_pipeline.data import csv_tables
from bias_pipeline.data.blocks import ArrowColumns
from bias_pipeline.data.coco_files import human_captions, model_captions
from bias_pipeline.data.columns import Layout
from bias_pipeline.data.tables import open_rows
from bias_pipeline.errors import DataError
from tests.data.test_spreadsheets import workbook

ENDS = ["\n", "\r\n", "\r"]


def write(path: Path, *lines: str, end: str = "\n") -> Path:
    path.write_text("".join(line + end for line in lines), encoding="utf-8", newline="")
    return path


def read(path: Path) -> tuple[dict[str, str], str]:
    """The captions and the notes on the file."""
    layout = Layout()
    return dict(model_captions(path, layout=layout).captions), " ".join(layout.notes())


@pytest.mark.parametrize("end", ENDS)
def test_marks_are_text_in_a_table_with_tabs_that_has_no_quoting(tmp_path, end):
    rows = ('7\t"Stop" on a sign', '8\t"a tv of 40', "9\ta man", '10\tanother of 40"', '11\t"Go"')
    captions, notes = read(write(tmp_path / "mine.tsv", "image_id\tcaption", *rows, end=end))
    assert captions == dict(row.split("\t") for row in rows)
    assert notes == "mine.tsv: quotation marks are text"


QUOTINGS = [csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("quoting", QUOTINGS)
@pytest.mark.parametrize("ending", ["tsv", "csv"])
def test_marks_enclose_cells_where_the_whole_file_says_so(tmp_path, ending, quoting, end):
    texts = [
        "a dog",
        'a "big" dog',
        '"Stop"',
        "a\ttab, and a comma",
        f"a paragraph{end}{end}and more",
        '"',
    ]
    path = tmp_path / f"mine.{ending}"
    with path.open("w", newline="", encoding="utf-8") as file:
        sign = "\t" if ending == "tsv" else ","
        writer = csv.writer(file, delimiter=sign, quoting=quoting, lineterminator=end)
        writer.writerows([["image_id", "caption"], *enumerate(texts, start=1)])
    captions, notes = read(path)
    assert list(captions.values()) == texts
    assert notes == ("mine.tsv: quotation marks enclose cells" if ending == "tsv" else "")


def test_data_may_be_enclosed_below_a_heading_that_is_not(tmp_path):
    path = write(tmp_path / "mine.tsv", "image_id\tcaption", '7\t"a dog"', '8\t"a cat"')
    assert read(path)[0] == {"7": "a dog", "8": "a cat"}


text = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=9)


@given(texts=st.lists(text, min_size=1))
@settings(max_examples=100, deadline=None)
def test_a_table_without_quoting_keeps_every_caption(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("tables") / "mine.tsv"
    rows = (f"{k}\t{caption}" for k, caption in enumerate(texts))
    captions, notes = read(write(path, "image_id\tcaption", *rows))
    enclosed = "enclose" in notes  # cells that a writer of quoted cells would write, too
    unquoted = [t[1:-1].replace('""', '"') for t in texts if t[:1] == '"'] if enclosed else []
    assert len(captions) == len(texts)
    assert set(captions.values()) <= {*texts, *unquoted}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(
    ("lines", "line", "shown"),
    [
        (['7,"Stop" on a sign', "8,a dog"], 2, '"Stop" on a sign'),
        (["7,a dog", '8,"a tv of 40', "9,a man", "10,a cat"], 3, '"a tv of 40'),
        (["7,a dog", '8,"a tv'], 3, '"a tv'),
        (["7,a dog", '8,"a tv of 40', "9,a man", '10,a cat of 40"'], 3, '"a tv of 40'),
        (['7,"a dog, big"', '8,"a tv', "9,a man", '10,"a, b"'], 3, '"a tv'),
        (["7,a dog", '8,"' + "x" * 100, "9,a man"], 3, '"' + "x" * 59),
        (['7,"two', 'lines"', '8,"a tv', "9,a man"], 4, '"a tv'),
        (['7,"a tv', "1234,a man", '8,a cat"', "1234,a dog"], 2, '"a tv'),
    ],
)
def test_an_unclosed_mark_is_refused_by_the_row_in_which_it_opened(
    tmp_path, lines, line, shown, end
):
    path = write(tmp_path / "mine.csv", "image_id,caption", *lines, end=end)
    with pytest.raises(DataError) as error:
        human_captions(path)
    assert f"mine.csv, line {line}: " in str(error.value)
    assert f": {shown!r}"[:-1] in str(error.value)


def test_the_command_that_encloses_cells_works(tmp_path):
    path = write(
        tmp_path / "my file.csv", "image_id;caption", '7;"Stop" on a sign', '8;"a tv of 40'
    )
    with pytest.raises(DataError) as error:
        model_captions(path)
    command = str(error.value).split("enclose them: ")[1].replace("python", sys.executable, 1)
    subprocess.run(["bash", "-c", command], check=True, cwd=tmp_path)
    captions = {"7": '"Stop" on a sign', "8": '"a tv of 40'}
    assert read(tmp_path / "enclosed.csv") == (captions, "")


@pytest.mark.parametrize(
    "paragraph",
    ["1. A man\n2. A dog", "Two things:\n12 dogs, and a cat", "first\n\nthird", "a\nb, c, d\n7"],
)
def test_a_paragraph_with_line_ends_is_ordinary(tmp_path, paragraph):
    path = tmp_path / "mine.csv"
    texts = ["a dog", paragraph, "a cat"]
    pd.DataFrame({"image_id": [1000, 1007, 1014], "caption": texts}).to_csv(path, index=False)
    assert list(read(path)[0].values()) == texts


def test_rows_inside_of_a_cell_are_ordinary_where_all_cells_are_enclosed(tmp_path):
    path = tmp_path / "mine.csv"
    frame = pd.DataFrame({"image_id": [1000, 1007], "caption": ["a list:\n1007,a dog", "a cat"]})
    frame.to_csv(path, index=False, quoting=csv.QUOTE_ALL)
    assert read(path)[0] == {"1000": "a list:\n1007,a dog", "1007": "a cat"}


def test_a_mark_within_a_cell_is_text(tmp_path):
    path = write(tmp_path / "mine.csv", "image_id,caption", '7,a tv of 40" or so', '8,a 5" dog"')
    assert read(path)[0] == {"7": 'a tv of 40" or so', "8": 'a 5" dog"'}


@pytest.mark.parametrize(
    ("name", "lines", "notes"),
    [
        ("mine.csv", ["sep=;", "image_id;caption", "7;a dog"], "columns separated by semicolons"),
        ("mine.csv", ["SEP=,", "image_id,caption", "7,a dog"], ""),
        ("mine.csv", ['"sep=\t"', "image_id\tcaption", "7\ta dog"], "columns separated by tabs"),
        ("mine.csv", ["sep=^", "image_id^caption", "7^a dog"], "columns separated by '^'"),
        ("mine.csv", ["", "", "image_id,caption", "7,a dog"], ""),
        ("mine.csv", ["# made by a tool", "image_id,caption", "7,a dog"], "heading in line 2"),
        ("mine.csv", ["Mine,,", ",,", "image_id,caption,", "7,a dog,"], "heading in line 3"),
        (
            "mine.csv",
            ["My captions, 2026", "", "image_id;caption;score", "7;a dog;1"],
            "columns separated by semicolons, heading in line 3",
        ),
        ("mine.tsv", ["Mine", "", "image_id\tcaption", "7\ta dog"], "heading in line 3"),
        ("mine.tsv", ["7\ta dog"], "no heading: read as image_id and caption"),
        ("mine.csv", ["7.jpg,a dog"], "no heading: read as image_id and caption"),
        ("mine.csv", ["image_id,caption,,,", "7,a dog,,,"], ""),
    ],
)
def test_the_heading_is_found(tmp_path, name, lines, notes):
    captions, facts = read(write(tmp_path / name, *lines))
    assert list(captions.values()) == ["a dog"]
    assert facts == (f"{name}: {notes}" if notes else "")


def test_a_cell_that_is_called_as_a_column_of_ids_is_no_heading(tmp_path):
    path = write(tmp_path / "mine.csv", "photo_key,caption", "7,image", "8,a dog")
    layout = Layout(id_column="photo_key")
    assert model_captions(path, layout=layout).captions == {"7": "image", "8": "a dog"}


def test_a_heading_below_a_title_is_found_in_excel(tmp_path):
    rows = [("My captions",), (None,), ("image_id", "caption"), (7, "a dog")]
    captions, notes = read(workbook(tmp_path / "mine.xlsx", rows))
    assert captions == {"7": "a dog"}
    assert notes == "mine.xlsx: heading in row 3"


@pytest.mark.parametrize("digits", [4, 40])
def test_decimal_ids_of_parquet_are_numbers(tmp_path, digits):
    ids = [Decimal(10 ** (digits - 1) + k) for k in range(2)]
    table = pa.table({"image_id": pa.array(ids, pa.decimal256(60, 2)), "caption": ["a", "b"]})
    parquet.write_table(table, tmp_path / "mine.parquet")
    assert list(read(tmp_path / "mine.parquet")[0]) == [str(int(number)) for number in ids]


def test_utf_16_is_refused_with_a_command_that_works(tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_text("image_id\tcaption\n7\ta dog\n", encoding="utf-16")
    with pytest.raises(DataError, match="UTF-16") as error:
        read(path)
    command = str(error.value).split("in a shell: ")[1].split(")")[0]
    typed = command.replace("FILE", "mine.tsv").replace("NEW", "utf8.tsv")
    subprocess.run(["bash", "-c", typed], check=True, cwd=tmp_path)
    assert read(tmp_path / "utf8.tsv")[0] == {"7": "a dog"}


UNQUOTED = {
    "plain": "id,bb_gender\n007,Male\n8,NA\n9,\n",
    "no line end at the end": "id,bb_gender\n7,Male\n8,Female",
    "ends of Windows": "id,bb_gender\r\n7,Male\r\n8,Female\r\n",
    "ends of old Macs": "id,bb_gender\r7,Male\r8,Female\r",
    "blank lines": "id,bb_gender\n7,Male\n\n8,Female\n\n",
    "title": "My labels\n\nid,bb_gender\n7,Male\n8,null\n",
    "blank column": "id,bb_gender,\n7,Male,\n8,Female,\n",
    "letters beyond ASCII": "id,bb_gender\n7,männlich\u2028x\n8,\u00a0w\n",
    "byte order mark": "\ufeffid,bb_gender\n7,Male\n",
    "one column": "id\n7\n\n8\n",
    "NUL": "id,bb_gender\n7,a\0b\n8,c\n",
    "numbers": "id,bb_gender\n1e3,1.0\n-0,0x1F\n 7 ,TRUE\n",
}


@pytest.mark.parametrize("content", UNQUOTED.values(), ids=UNQUOTED)
def test_arrow_reads_a_table_as_the_reader_of_rows_does(tmp_path, monkeypatch, content):
    path = tmp_path / "labels.csv"
    path.write_bytes(content.encode())
    by_column = [(number, dict(row)) for number, row in open_rows(path, what="labels").items]
    monkeypatch.setattr(csv_tables, "_without_marks", lambda *_: None)
    assert [(n, dict(row)) for n, row in open_rows(path, what="labels").items] == by_column


def test_arrow_reads_a_table_without_marks(tmp_path):
    path = write(tmp_path / "labels.csv", "id,bb_gender", "7,Male", "8,Female")
    (block,) = open_rows(path, what="labels").blocks
    assert isinstance(block.columns, ArrowColumns)
    assert list(block.numbers) == [2, 3]
