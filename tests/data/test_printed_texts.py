"""Lists and mappings that programs printed into cells: read whole, or refused with the row."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bias_pipeline.data.coco_files import human_captions, model_captions
from bias_pipeline.data.columns import Layout
from bias_pipeline.data.printed_texts import NotWholeError, printed_texts
from bias_pipeline.errors import DataError

TEXTS = [
    "a man's dog",
    'a "big" cat',
    "both ' and \"",
    "two\nlines",
    "an ünï 😀",
    "a\\b",
    "[x] ... y",
]
PRINTS = {
    "a list": str,
    "a tuple": lambda texts: str(tuple(texts)),
    "NumPy": lambda texts: str(np.array(texts)),
    "NumPy's repr": lambda texts: repr(np.array(texts)),
    "NumPy of objects": lambda texts: repr(np.array(texts, dtype=object)),
    "a list of NumPy's texts": lambda texts: str([np.str_(text) for text in texts]),
    "NumPy in NumPy": lambda texts: str(np.array([texts])),
    "a pipeline's answers": lambda texts: str([{"generated_text": text} for text in texts]),
    "a batch of answers": lambda texts: str([[{"generated_text": text} for text in texts]]),
    "JSON": json.dumps,
    "JSON with confidences": lambda texts: json.dumps(
        [{"caption": text, "conf": 0.9, "model": "blip"} for text in texts]
    ),
    "bytes": lambda texts: str([text.encode() for text in texts]),
}


@pytest.mark.parametrize("form", PRINTS)
def test_a_print_is_read_as_the_texts_that_were_printed(form):
    assert printed_texts(PRINTS[form](TEXTS)) == TEXTS


@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), min_size=1))
@settings(max_examples=100, deadline=None)
def test_any_texts_come_back_from_any_print(texts):
    for form, write in PRINTS.items():
        if form != "NumPy in NumPy":
            # NumPy drops NULs at a text's end
            expected = [text.rstrip("\0") for text in texts] if "NumPy" in form else texts
            assert printed_texts(write([*expected])) == expected, form


@pytest.mark.parametrize(
    ("cell", "texts"),
    [
        ("['a dog', None, 'a cat']", ["a dog", "", "a cat"]),
        ("[nan 'a dog']", ["", "a dog"]),
        ("['a dog'\r\n 'a cat']", ["a dog", "a cat"]),
        ("{'generated_text': 'a dog'}", ["a dog"]),
        ('{"caption": "a \\ud83d\\ude00 dog"}', ["a 😀 dog"]),
        ('["half a pair \\ud83d"]', ["half a pair �"]),
        ("b'a caf\\xc3\\xa9'", ["a café"]),
        ("np.str_('a dog')", ["a dog"]),
        ("{'a dog'}", ["a dog"]),
        ("[]", []),
        ("array([], dtype=object)", []),
        (r"['a \d sign']", [r"a \d sign"]),
    ],
)
def test_other_prints(cell, texts):
    assert printed_texts(cell) == texts


@pytest.mark.parametrize(
    "caption",
    [
        "a dog",
        "array of lights over a street",
        "(left) a dog",
        '("Stop" sign) in a street',
        '("Stop", he says) a man at a sign',
        "'a dog'",
        '"Stop" is written on a sign',
        "b'day cake",
        "[a dog]",
        "[1, 2]",
        "[unreadable] a dog",
        "",
    ],
)
def test_a_caption_that_only_resembles_a_print_stays(caption):
    assert printed_texts(caption) is None


@pytest.mark.parametrize(
    ("cell", "fault"),
    [
        (str(np.array([f"dog {k}" for k in range(2000)])), "shortened"),
        ("['a dog', 'a cat', ...]", "shortened"),
        ('["a dog", …, "a cat"]', "shortened"),
        ("('a dog', ...)", "shortened"),
        ("['a dog', 'a c...", "cut off"),
        ("['a dog', 'a cat'", "cut off"),
        ("['a dog', 'a ca", "cut off"),
        ("['a dog', 3]", "not a text"),
        ("[['a dog'], ['a cat']]", "not a text"),
        ("[{'role': 'user', 'content': 'Describe'}]", "not a text"),
        ("{'a': 'x', 'b': 'y'}", "not a text"),
        ("['a' * 9**9]", "cannot be read"),
        ("[__import__('os').system('true'), 'a']", None),
        ("['a dog'] and more", "cannot be read"),
        ("[['a dog']" + "[" * 50, "deeper"),
        (r"['\x']", "cannot be read"),
        ("['a dog', b'\\xff']", "cannot be read"),
    ],
)
def test_what_is_not_whole_is_refused(cell, fault):
    if fault is None:
        assert printed_texts(cell) is None  # nothing is executed
        return
    with pytest.raises(NotWholeError, match=fault):
        printed_texts(cell)


def table(path: Path, captions: Sequence[Any]) -> Path:
    frame = pd.DataFrame({"image_id": range(1, len(captions) + 1), "caption": captions})
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".xlsx":
        pytest.importorskip("openpyxl")
        frame.to_excel(path, index=False)
    elif path.suffix == ".json":
        frame.to_json(path, orient="records")
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "xlsx", "json"])
def test_people_have_as_many_captions_as_the_cell_has_texts(tmp_path, ending):
    people = [["a man's dog", "a dog"], ["a cat", 'a "big" cat']]
    prints = [str(np.array(texts)) for texts in people]
    layout = Layout()
    captions, _ = human_captions(table(tmp_path / f"people.{ending}", prints), layout)
    assert captions == {"1": tuple(people[0]), "2": tuple(people[1])}
    assert "2 cells of 'caption' are printed lists, whose texts are read" in layout.notes()[0]


@pytest.mark.parametrize("ending", ["parquet", "json"])
def test_lists_with_gaps_and_mappings_that_are_no_prints(tmp_path, ending):
    people = table(tmp_path / f"people.{ending}", [["a dog", None], ["a cat"], None])
    assert human_captions(people)[0] == {"1": ("a dog", ""), "2": ("a cat",), "3": ("",)}
    mine = table(tmp_path / f"mine.{ending}", [{"caption": "a dog", "conf": 0.9}] * 2)
    assert model_captions(mine).captions == {"1": "a dog", "2": "a dog"}


def test_a_print_that_lost_texts_is_refused_with_its_row_and_the_way_out_works(tmp_path):
    people = table(tmp_path / "people.csv", ["['a dog' 'a cat']", "['a dog' ... 'a cat']"])
    with pytest.raises(DataError, match=r"people\.csv, line 3: 'caption' .* texts are lost") as e:
        human_captions(people)
    advice = str(e.value).split("keeps lists: ")[1]
    code = (
        "import pandas as pd; table = pd.DataFrame({'image_id': [1], 'caption': [['a', 'b']]}); "
        + advice
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
    assert human_captions(tmp_path / "captions.jsonl")[0] == {"1": ("a", "b")}
