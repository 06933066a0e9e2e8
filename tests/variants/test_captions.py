"""Files of a captioner's captions, as they come."""

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.variants.files import CAPTIONS, IDS, Variant, check, csv

TEXTS = list(CAPTIONS.values())


def rows(image: str = "image_id", text: str = "caption", **more: str) -> list[dict[str, Any]]:
    return [{image: i, text: t, **more} for i, t in CAPTIONS.items()]


def table(image: str = "image_id", text: str = "caption", sign: str = ",") -> str:
    return csv({image: list(IDS), text: TEXTS}, sign)


def parquet(path: Path) -> None:
    pd.DataFrame(rows("img_id", "pred")).to_parquet(path)


def mark(form: str, sign: str) -> str:
    """A table whose captions have quotation marks."""
    return csv({"image_id": list(IDS), "caption": [form.format(text) for text in TEXTS]}, sign)


def print_list(form: Callable[[str], Any]) -> str:
    """A table of what a program made of each caption, as pandas prints it."""
    cells = [str(form(text)) for text in TEXTS]
    return pd.DataFrame({"image_id": IDS, "caption": cells}).to_csv(index=False)


def decimals(path: Path) -> None:
    table = pd.DataFrame(rows())
    table["image_id"] = table["image_id"].map(Decimal)
    table.to_parquet(path)


VARIANTS = [
    Variant(
        "`{id: caption}`", {"mine.json": json.dumps(CAPTIONS)}, "mine.json: an object of image"
    ),
    Variant(
        "`{id: [caption]}`",
        {"mine.json": json.dumps({i: [t] for i, t in CAPTIONS.items()})},
        "an object of image ids",
    ),
    Variant(
        "`{id: [{caption: ...}]}`, as evaluation code writes it",
        {"mine.json": json.dumps({i: [{"caption": t}] for i, t in CAPTIONS.items()})},
        "an object of image ids",
    ),
    Variant(
        '`{"results": [...]}`',
        {"mine.json": json.dumps({"model": "x", "results": rows()})},
        "the list under 'results'",
    ),
    Variant('`{"annotations": [...]}`', {"mine.json": json.dumps({"annotations": rows()})}),
    Variant(
        "`img_id`, `pred`",
        {"mine.json": json.dumps(rows("img_id", "pred"))},
        "image ids from 'img_id', the captioner's captions from 'pred'",
    ),
    Variant(
        "`filename`, `generated_caption`",
        {"mine.jsonl": "\n".join(map(json.dumps, rows("filename", "generated_caption")))},
        "image ids from 'filename', the captioner's captions from 'generated_caption'",
    ),
    Variant(
        "`Image ID`, `Caption`",
        {"mine.csv": table("Image ID", "Caption")},
        "image ids from 'Image ID', the captioner's captions from 'Caption'",
    ),
    Variant("Parquet of `img_id`, `pred`", {"mine.parquet": parquet}, "from 'pred'"),
    Variant(
        "lists of one caption",
        {"mine.json": json.dumps([{**row, "caption": [row["caption"]]} for row in rows()])},
    ),
    Variant(
        "cells that contain a printed list of one caption",
        {"mine.csv": csv({"image_id": list(IDS), "caption": [f'"{[t]!r}"' for t in TEXTS]})},
    ),
    Variant("semicolons", {"mine.csv": table(sign=";")}, "columns separated by semicolons"),
    Variant(
        "semicolons and quotes",
        {"mine.csv": table('"image_id"', '"caption"', ";")},
        "columns separated by semicolons",
    ),
    Variant("tabs in `.csv`", {"mine.csv": table(sign="\t")}, "columns separated by tabs"),
    Variant("bars", {"mine.csv": table(sign="|")}, "columns separated by bars"),
    Variant("a byte order mark", {"mine.csv": b"\xef\xbb\xbf" + table().encode()}),
    Variant("Windows line ends", {"mine.csv": table().replace("\n", "\r\n")}),
    Variant(
        "columns `caption` and `pred`",
        {"mine.json": json.dumps(rows(pred="a dog"))},
        "caption ('a man with a kite') and pred ('a dog') may both be the captioner's "
        "captions; choose one with --caption-column COLUMN (dataset.caption_column=COLUMN)",
        code=3,
    ),
    Variant(
        "columns `caption` and `pred`, if an option names one of them",
        {"mine.json": json.dumps(rows(text="pred", caption="a dog"))},
        words=("--caption-column", "pred"),
    ),
    Variant(
        "columns with unknown names",
        {"mine.csv": table("nr", "alt")},
        "'image_id' is absent, and no other column is known for image ids; found nr "
        "('100'), alt ('a man with a kite'). Name yours with --id-column COLUMN",
        code=3,
    ),
    Variant(
        "columns with unknown names, if options give these names",
        {"mine.csv": table("nr", "alt")},
        words=("--id-column", "nr", "--caption-column", "alt"),
    ),
    Variant(
        "a caption column that the file lacks",
        {},
        "dataset.caption_column=captoin is absent; did you mean 'caption'?",
        ("--caption-column", "captoin"),
        code=2,
    ),
    Variant(
        "an id column that no file has",
        {},
        "dataset.id_column=nr: no file has such a column",
        ("--id-column", "nr"),
        code=2,
    ),
    Variant(
        "two lists of captions in one JSON object",
        {"mine.json": json.dumps({"greedy": rows(), "beam": rows()})},
        "it is not clear which list to read: greedy, beam",
        code=3,
    ),
    Variant(
        "lists of several captions",
        {"mine.json": json.dumps({i: [t, "a dog"] for i, t in CAPTIONS.items()})},
        "choose one with dataset.multi_caption=true",
        code=3,
    ),
    Variant(
        "lists of several captions; the first caption is scored",
        {"mine.json": json.dumps({i: [t, "a dog"] for i, t in CAPTIONS.items()})},
        "number 0 of each is scored, 12 others are not",
        ("dataset.multi_caption=true",),
    ),
    Variant(
        "five numbered captions of each image, written by `caption --n 5`; the first is scored",
        {
            "mine.json": json.dumps(
                [
                    {
                        **row,
                        "caption": f"{row['caption']}{' dog' * k}",
                        "sample": k,
                        "decoding": "x",
                    }
                    for row in rows()
                    for k in range(5)
                ]
            )
        },
        "decoding: x",
    ),
    Variant(
        "JSON Lines named `.json`",
        {"mine.json": "\n".join(map(json.dumps, rows()))},
        "One value per line is JSON Lines",
        code=3,
    ),
    Variant("UTF-16", {"mine.csv": table().encode("utf-16")}, "not UTF-8", code=3),
    Variant(
        "ids and captions without a header",
        {"mine.csv": table().split("\n", 1)[1]},
        "no heading: read as image_id and caption",
    ),
    Variant(
        "a table of three columns without a header",
        {"mine.csv": csv({"100": list(IDS), "a dog": TEXTS, "0.5": [0.5] * len(IDS)})},
        "'image_id' is absent, and no other column is known for image ids; found 100",
        code=3,
    ),
    Variant(
        "`sep=;` in the first line, as Excel writes it",
        {"mine.csv": f"sep=;\n{table(sign=';')}"},
        "columns separated by semicolons",
    ),
    Variant("a blank first line", {"mine.csv": f"\n{table()}"}),
    Variant(
        "a title above the table", {"mine.csv": f"My captions\n\n{table()}"}, "heading in line 3"
    ),
    Variant(
        "`.tsv` with quoting",
        {"mine.tsv": mark('"{}"', "\t")},
        "quotation marks enclose cells",
    ),
    Variant(
        "an unclosed quotation mark in `.csv`",
        {"mine.csv": table() + '200,"a tv of 40\n201,a man\n'},
        "line 14: unexpected end of data: a quotation mark opens a cell here",
        code=3,
    ),
    Variant(
        "rows that are joined by two stray quotation marks",
        {"mine.csv": table() + '200,"a tv of 40\n201,a man\n202,a tv of 40"\n'},
        "line 14: a quotation mark opens a cell of 3 lines here, which holds the row of 201",
        code=3,
    ),
    Variant(
        "a pipeline's `[{'generated_text': ...}]` in a table",
        {"mine.csv": print_list(lambda text: [{"generated_text": text}])},
        "12 cells of 'caption' are printed lists, whose texts are read",
    ),
    Variant(
        "`['...']` as NumPy prints it", {"mine.csv": print_list(lambda text: np.array([text]))}
    ),
    Variant("`b'...'`", {"mine.csv": print_list(str.encode)}),
    Variant(
        "a printed list that was shortened with `...`",
        {"mine.csv": print_list(lambda text: f"['{text}' ... 'a dog']")},
        "was shortened with '...': texts are lost",
        code=3,
    ),
    Variant(
        "a table that pandas' `to_json` wrote by columns (default)",
        {"mine.json": lambda path: pd.DataFrame(rows()).to_json(path)},
        "a table by its columns",
    ),
    Variant(
        "a table that `to_json` wrote by columns, with ids as index",
        {"mine.json": lambda path: pd.DataFrame(rows()).set_index("image_id").to_json(path)},
        "columns that map image ids",
    ),
    Variant(
        "a table that `to_json` wrote by rows",
        {"mine.json": lambda path: pd.DataFrame(rows("image")).to_json(path, orient="index")},
        "image ids from 'image'",
    ),
    Variant("ids as decimal numbers in Parquet", {"mine.parquet": decimals}),
    Variant(
        "a spreadsheet from before 2007", {"mine.xls": b"x"}, "the ending '.xls' is unknown", code=3
    ),
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.name)
def test_captions(tmp_path, variant):
    check(tmp_path, variant)
