"""Files that are streamed in ranges of images give what the same files in memory give."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bias_pipeline.commands.main import main
from bias_pipeline.corpus import streamed_captions
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.data import image_ranges
from bias_pipeline.errors import DataError, NotApplicableError, UsageError
from bias_pipeline.metrics.catalogue import infos
from bias_pipeline.run.cell import run_cell
from bias_pipeline.run.compose import Cell, cell

STREAMED = "dataset._target_=bias_pipeline.data.coco_streamed.StreamedCocoDataset"
N = 20_000
PEOPLE = ("a man", "a tall man", "a happy woman", "a person", "a lady", "a man and a woman", "boys")
THINGS = ("a dog", "a hot dog", "a cat", "an umbrella", "a tie", "a cell phone", "skis", "a bus")
PLACES = ("on a bench. He smiles.", "in the street", "near the window", "at home", "on grass")
UNUSUAL = (
    "",
    "NaN",
    "a (wo)man with a dog",
    "a man&#39;s dog",
    "a cafÃ© with a woman",
    "<s> a man with a dog </s>",
    "I'm sorry, but I can't help with that.",
    "what appears to be a young woman with a cat",
    "<think>is it a man?</think> a woman with a dog",
    "Describe this image. A man with a dog sits. Describe this image.",
    "ein Mann auf einer Bank mit einem Hund",
    "The image depicts a man with a bus",
    "word " * 2500,
)
METRICS = [name for name, info in infos().items() if info.streams]

Columns = Mapping[str, Sequence[object]]


def write(path: Path, parts: int = 1, **columns: Sequence[object]) -> str:
    """Write columns to a Parquet file, or to a folder of parts."""
    table = pa.table(columns)
    if parts == 1:
        pq.write_table(table, path, row_group_size=1500)
        return str(path)
    path.mkdir()
    size = -(-table.num_rows // parts)
    for k in range(parts):
        pq.write_table(table.slice(k * size, size), path / f"part-{k}.parquet")
    return str(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, str]:
    """Four files, out of order, with much that is decided by all captions of a file together."""
    folder, draw = tmp_path_factory.mktemp("large"), np.random.default_rng(0)

    def texts(n: int) -> list[str]:
        parts = [draw.choice(each, n).tolist() for each in (PEOPLE, THINGS, PLACES)]
        return [f"{who} with {what} {where}" for who, what, where in zip(*parts, strict=True)]

    ids = draw.permutation(3 * N)[:N]
    spoken = texts(N)
    for place, text in enumerate(UNUSUAL * 20):
        spoken[70 * place] = text
    described, some = draw.permutation(ids[50:]), ids[: N // 5]
    people, images = texts(3 * len(some)), np.repeat(some, 3)
    people[::30] = ["Quality issues are too severe to recognize visual content."] * len(
        people[::30]
    )
    order = draw.permutation(len(people))
    return {
        "captions": write(
            folder / "captions.parquet",
            image_id=np.append(described, [3 * N + 1, 3 * N + 2]),
            caption=[*spoken[50:], "a dog", "a cat"],
        ),
        "labels": write(
            folder / "labels.parquet",
            id=ids,
            gender=draw.choice(["Male", "f", "Unsure", ""], N, p=[0.5, 0.3, 0.1, 0.1]),
        ),
        "people": write(
            folder / "people.parquet",
            3,
            image_id=images[order].astype(str),
            caption=[people[row] for row in order],
        ),
        "objects": write(
            folder / "objects.parquet",
            image_id=np.repeat(ids[100:], 2),
            category=draw.choice(["dog", "hot dog", "cat", "bus", "skis"], 2 * (N - 100)),
        ),
    }


@pytest.fixture
def small_blocks(monkeypatch):
    """Ranges and blocks that are small beside the files."""
    monkeypatch.setattr(image_ranges, "_IMAGES", N // 3)
    monkeypatch.setattr(streamed_captions, "_WORDS", 3 * N)


def settings(files: Mapping[str, str], *words: str) -> Cell:
    named = {"attributes": "labels", "captions": "people", "instances": "objects"}
    read = [f"dataset.{key}={files[name]}" for key, name in named.items() if name in files]
    return cell(
        ["dataset=coco", "dataset.strict=false", f"captioner={files['captions']}", *read, *words]
    )


def corpus(files: Mapping[str, str], *words: str) -> Corpus:
    return settings(files, *words).corpus()


@pytest.fixture
def corpora(files, small_blocks) -> tuple[Corpus, Corpus]:
    return corpus(files), corpus(files, STREAMED)


def test_a_streamed_corpus_is_the_corpus_in_memory(corpora):
    whole, streamed = corpora
    assert len([*streamed.model.blocks()]) > 2
    assert (streamed.digest, streamed.reference) == (whole.digest, whole.reference)


def test_notes_on_all_captions_together_are_the_same(corpora):
    whole, streamed = corpora
    assert len(whole.notes) > 12
    assert [*streamed.notes] == [*whole.notes]


@pytest.mark.parametrize("metric", METRICS)
def test_a_streamed_metric_has_the_numbers_and_intervals_of_the_one_in_memory(
    metric, files, small_blocks
):
    results = []
    for words in ([], [STREAMED]):
        here = settings(files, *words, f"metric={metric}", "stats.resamples=50")
        results.append(run_cell(here.corpus(), here.build("metric"), here.seeds, run_id="same"))
    whole, streamed = results
    assert repr(streamed.rows) == repr(whole.rows)
    assert streamed.tables == whole.tables
    same = ("corpus", "speech", "language", "audit", "notes", "metric")
    assert [streamed.manifest[key] for key in same] == [whole.manifest[key] for key in same]


def test_a_folder_of_parts_is_streamed_as_one_file(files, tmp_path, small_blocks):
    table = pq.read_table(files["captions"]).to_pydict()
    parts = {**files, "captions": write(tmp_path / "captions", 4, **table)}
    assert corpus(parts, STREAMED).digest == corpus(files).digest


def test_streamed_words_are_not_read_all_at_once(corpora):
    with pytest.raises(NotApplicableError, match="needs all captions in memory; leave out"):
        corpora[1].model.join(["hot dog"])


def test_what_is_not_decided_caption_by_caption_is_refused(corpora):
    def longest(captions: Captions) -> np.ndarray:
        return captions.lengths[captions.lengths == captions.lengths.max()]

    with pytest.raises(NotApplicableError, match="needs all captions in memory; leave out"):
        corpora[1].model.read(longest)


FEW = range(1, 13)


def with_row(values: Sequence[object], row: int, value: object) -> list[object]:
    return [*values[:row], value, *values[row + 1 :]]


def files_of_twelve(tmp_path: Path, **columns: Sequence[object]) -> dict[str, str]:
    """Files of twelve images in which some columns are replaced."""
    usual = {
        "labels": {"id": FEW, "gender": ["Male", "Female"] * 6},
        "captions": {"image_id": FEW, "caption": ["a man"] * 12},
    }
    return {
        name: write(
            tmp_path / f"{name}.parquet",
            **{key: columns.get(key, values) for key, values in each.items()},
        )
        for name, each in usual.items()
    }


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"image_id": with_row([*map(str, FEW)], 2, "c.jpg")},
            "row 2: id 'c.jpg' is no whole number",
        ),
        ({"image_id": with_row(FEW, 3, None)}, "row 3: image id None is neither"),
        (
            {"image_id": with_row(FEW, 2, 2), "caption": with_row(["a man"] * 12, 2, "a dog")},
            "row 2: image id 2 occurs twice with different captions",
        ),
        ({"caption": FEW}, "row 0: 'caption' must be text, found 1"),
        ({"image_id": range(20, 32)}, "captions.parquet: no caption is of a labelled image"),
        (
            {"gender": with_row(["Male", "Female"] * 6, 2, "x")},
            "labels.parquet: unknown labels in 'gender': 'x' .image 3.",
        ),
        ({"id": with_row(FEW, 2, 2)}, "labels.parquet, row 2: image id 2 occurs twice with diff"),
        ({"caption": with_row(["a man"] * 12, 5, "a wo-\nman")}, "parquet: has words in parts"),
        ({"caption": ["a man | a dog"] * 12}, "parquet: a cell may have several captions"),
    ],
)
def test_a_fault_names_the_file_the_row_and_a_fix(columns, message, tmp_path):
    with pytest.raises(DataError, match=message):
        corpus(files_of_twelve(tmp_path, **columns), STREAMED)


def test_an_annotation_of_two_images_is_refused(tmp_path):
    people = write(
        tmp_path / "people.parquet", id=[7, 8, 7], image_id=[1, 1, 2], caption=["a", "b", "c"]
    )
    with pytest.raises(DataError, match="row 2: annotation id 7 occurs twice with different"):
        corpus({**files_of_twelve(tmp_path), "people": people}, STREAMED)


def test_only_parquet_is_streamed(files, tmp_path):
    place = tmp_path / "captions.json"
    place.write_text('[{"image_id": 1, "caption": "a man"}]')
    with pytest.raises(UsageError, match="--stream reads Parquet alone; write the file as Parquet"):
        corpus({**files, "captions": str(place)}, STREAMED)


def test_a_streamed_audit_says_what_it_does_not_test(files, tmp_path, capsys, small_blocks):
    words = ["audit", files["captions"], "--attributes", files["labels"], "--only", "gender"]
    words += ["--captions", files["people"]]
    assert main([*words, "--stream", "--out", str(tmp_path / "out")]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Does it leak gender? Not tested: this needs all captions in memory" in text
    assert "Does it describe the groups differently? Not tested" not in text


@pytest.mark.parametrize("option", [["--quick"], ["--limit", "9"], ["--gold", "gold.csv"]])
def test_a_streamed_audit_refuses_options_that_read_captions_anew(option, files, capsys):
    words = ["audit", files["captions"], "--attributes", files["labels"], "--stream", *option]
    assert main(words) == 2
    assert f"does not go with {option[0]}; leave one of the two out" in capsys.readouterr().err
