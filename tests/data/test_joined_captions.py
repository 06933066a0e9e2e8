"""Several captions in one cell are several captions, or the file is refused; one stays one."""

import csv
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.errors import BiasPipelineError, DataError, UsageError
from tests import composed
from tests.coco_folder import write_folder

N = 60
WHO = ("a man", "a woman", "a person", "someone")
WHAT = ("rides a brown horse", "is holding two kites", "sits near the red bench", "eats some cake")


def captions(generator: random.Random, n: int = 5) -> list[str]:
    return [f"{generator.choice(WHO)} {generator.choice(WHAT)}" for _ in range(n)]


def load(
    root: Path, cell: Callable[[random.Random], str], *words: str, mine: bool = False
) -> Corpus:
    """What is read of a table with a cell for each image, of people or of a captioner."""
    generator = random.Random(1)
    write_folder(root)
    with (root / "cells.csv").open("w", newline="") as file:
        rows = [[100 + k, cell(generator)] for k in range(N)]
        csv.writer(file).writerows([["image_id", "caption"], *rows])
    other = root / "captioners/mine.json"
    table = str(root / "cells.csv")
    files = [f"captioner={table}"] if mine else [f"captioner={other}", f"dataset.captions={table}"]
    labels = f"dataset.attributes={root / 'attributes/images_val2014.csv'}"
    return composed.corpus("dataset=coco", f"dataset.root={root}", labels, *files, *words)


def joiner_of(sign: str) -> Callable[[random.Random], str]:
    return lambda generator: sign.join(captions(generator))


def numbered_list(generator: random.Random) -> str:
    return " ".join(f"{k}. {text}" for k, text in enumerate(captions(generator), 1))


def now_and_then(generator: random.Random) -> str:
    return captions(generator, 1)[0] + (
        "; the sun shines on it" if generator.random() < 0.3 else ""
    )


def uneven(generator: random.Random) -> str:
    return "; ".join(captions(generator, generator.randint(1, 9)))


def sentence(generator: random.Random) -> str:
    first, second = captions(generator, 2)
    return f"{first.capitalize()}; {second}."


def paragraphs(generator: random.Random) -> str:
    halves = [". ".join(text.capitalize() for text in captions(generator, 3)) for _ in range(2)]
    return ".\n\n".join(halves) + "."


def wrapped_text(generator: random.Random) -> str:
    return "\n".join(captions(generator, 3)).capitalize() + "."


SEVERAL = {
    **{
        sign: joiner_of(sign)
        for sign in ("; ", ";", " | ", " || ", " /// ", "\n", "<sep>", " [SEP] ")
    },
    "<br>": joiner_of("<br>"),
    "numbers": numbered_list,
    "numbered_list lines": lambda generator: numbered_list(generator).replace(" 2.", "\n2."),
    "one less now and then": lambda g: "; ".join(captions(g, 5 - (g.random() < 0.3))),
    "a sign at the end": lambda g: "; ".join(captions(g)) + ";",
    "sentences": lambda g: "; ".join(f"{text.capitalize()}." for text in captions(g)),
}


@pytest.mark.parametrize("form", SEVERAL)
def test_cells_of_several_captions_are_split(tmp_path: Path, form: str) -> None:
    corpus = load(tmp_path, SEVERAL[form])
    n_captions = len(corpus.human)
    assert 4 * N < n_captions <= 5 * N
    assert max(corpus.human.lengths) <= 7
    (note,) = (note for note in corpus.notes if note.startswith("cells.csv"))
    assert "human captions from cells with mostly 5 captions" in note
    assert note.count("'") >= 6


ONE = {
    "now and then": now_and_then,
    "sentences with a sign": sentence,
    "paragraphs": paragraphs,
    "wrapped_text lines": wrapped_text,
    "tags": lambda generator: "; ".join(generator.sample(["dog", "cat", "red kite", "sky"], 3)),
    "written out for HTML": lambda generator: captions(generator, 1)[0] + " &amp; a dog &lt;3",
}


@pytest.mark.parametrize("form", ONE)
def test_a_cell_of_one_description_stays_one_caption(tmp_path: Path, form: str) -> None:
    corpus = load(tmp_path, ONE[form])
    assert len(corpus.human) == N
    assert not [note for note in corpus.notes if "cells" in note]


def test_cells_that_may_be_lists_are_refused_and_the_advice_works(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cells.csv: .* have ';', such as 'a ") as error:
        load(tmp_path, uneven)
    words = [word for word in str(error.value).split() if word.startswith("dataset.separator=")]
    several, one = (load(tmp_path, uneven, word) for word in words)
    assert len(one.human) == N
    assert len(several.human) > 3 * N


def test_a_separator_that_is_in_some_cells_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="<sep>"):
        load(tmp_path, lambda g: "<sep>".join(captions(g, 1 + 4 * (g.random() < 0.2))))


def test_a_separator_that_no_cell_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"dataset.separator=bars: no cell"):
        load(tmp_path, joiner_of(";"), "dataset.separator=bars")


@pytest.mark.parametrize("form", ["; ", " | ", "<sep>", "numbers"])
def test_a_captioners_cells_of_several_captions_need_a_choice(tmp_path: Path, form: str) -> None:
    with pytest.raises(BiasPipelineError, match=r"image 100: the cells have several") as error:
        load(tmp_path, SEVERAL[form], mine=True)
    words = [word.strip(",") for word in str(error.value).split() if word.startswith("dataset.")]
    chosen, whole = (load(tmp_path, SEVERAL[form], word, mine=True) for word in words)
    assert max(chosen.model.lengths) <= 7
    assert min(whole.model.lengths) > 20
    third = load(tmp_path, SEVERAL[form], words[0], "dataset.caption_index=2", mine=True)
    assert third.model.text(0) != chosen.model.text(0)


@pytest.mark.parametrize(
    "form",
    ["{}<|endoftext|>", "<|im_start|>assistant\n{}<|im_end|>", "{} </s>|<pad>", "[CLS] {} [SEP]"],
)
def test_marks_of_a_decoder_separate_nothing(tmp_path: Path, form: str) -> None:
    corpus = load(tmp_path, lambda g: form.format(captions(g, 1)[0]), mine=True)
    assert not [note for note in corpus.notes if "cells" in note]


def test_a_captioners_paragraphs_stay_one_caption(tmp_path: Path) -> None:
    assert len(load(tmp_path, joiner_of("\n"), mine=True).model) == N
