"""Copies of images stay on one side of a split, so that nobody is tested on what was learnt."""

from dataclasses import replace

import numpy as np
import pytest

from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.corpus.split import originals
from bias_pipeline.corpus.split_rules import HoldOut
from bias_pipeline.run import compose
from bias_pipeline.run.cell import run_cell
from tests.corpora import make_corpus

WORDS = ["red", "big", "old", "wet", "dry", "hot", "new", "low"]


def records(n: int = 60) -> list[Record]:
    """Images whose captions nobody else has."""
    return [
        Record(str(i), "a thing", (f"a {WORDS[i % 8]} {i}", f"{i} things"), {"gender": "mf"[i % 2]})
        for i in range(n)
    ]


def double_records(records: list[Record]) -> list[Record]:
    """Every image twice, its captions in another order the second time."""
    return [*records, *(replace(r, id=f"9{r.id:0>4}", human=r.human[::-1]) for r in records)]


@pytest.mark.parametrize(
    ("human", "first"),
    [
        ([("a", "b"), ("c", "d"), ("b", "a"), ("d", "c")], [0, 1, 0, 1]),
        ([("a cat", f"a dog {i}") for i in range(3)], [0, 1, 2]),
        ([("a surfer",)] * 3, [0, 1, 2]),
        ([("a surfer", "a sea")] * 11, [*range(11)]),
        ([("a", "b"), ("a", "b", "b")], [0, 1]),
    ],
    ids=[
        "the same captions in any order", "some captions", "one caption in common is no sign",
        "set phrases of many images", "a caption more",
    ],
)  # fmt: skip
def test_images_with_the_same_captions_are_copies(human, first):
    lines = [Record(str(i), "x", texts, {"gender": "m"}) for i, texts in enumerate(human)]
    assert originals(make_corpus(lines)).tolist() == first


def test_equal_pictures_are_copies_whatever_people_wrote(tmp_path):
    paths = [tmp_path / f"{i}.jpg" for i in range(4)]
    for path, content in zip(paths, (b"one", b"two", b"one", b"other"), strict=True):
        path.write_bytes(content)
    lines = [replace(r, image=path) for r, path in zip(records(4), paths, strict=True)]
    assert originals(make_corpus(lines)).tolist() == [0, 1, 0, 3]


def test_copies_by_captions_and_by_pictures_chain(tmp_path):
    picture = tmp_path / "1.jpg"
    picture.write_bytes(b"one")
    record_list = records(3)
    record_list[1] = replace(record_list[1], human=record_list[0].human, image=picture)
    record_list[2] = replace(record_list[2], image=picture)
    assert originals(make_corpus(record_list)).tolist() == [0, 0, 0]


def parts(corpus: Corpus, **options: bool) -> list[np.ndarray]:
    rule = HoldOut(test_share=0.2, validation_share=0.1, balanced=False, **options)
    (split,) = rule.draw(corpus, "gender", [3])
    return [split.train, split.test, split.validation]


def sets_of(corpus: Corpus, **options: bool) -> list[set[int]]:
    """Which pictures are in each part."""
    return [set(originals(corpus)[part].tolist()) for part in parts(corpus, **options)]


def test_copies_stay_in_one_part_and_every_image_is_in_one():
    corpus = make_corpus(double_records(records()))
    assert len(set.union(*sets_of(corpus))) == sum(map(len, sets_of(corpus)))
    assert sorted(np.concatenate(parts(corpus)).tolist()) == list(range(120))


def test_copies_are_torn_apart_if_asked():
    train, test, _ = sets_of(make_corpus(double_records(records())), together=False)
    assert train & test


def test_copies_stay_together_across_groups():
    copied = double_records(records())
    other = [replace(r, labels={"gender": "mf"[i % 3 > 0]}) for i, r in enumerate(copied[60:])]
    train, test, _ = sets_of(make_corpus([*copied[:60], *other]))
    assert not train & test


def test_without_copies_the_split_is_as_it_was():
    corpus = make_corpus(records())
    for one, two in zip(parts(corpus), parts(corpus, together=False), strict=True):
        np.testing.assert_array_equal(one, two)


def same_men() -> Corpus:
    """Every man is the same picture."""
    same = ("a man", "a cat")
    records = [
        Record(str(i), "x", (f"a {i}", "b") if i % 6 else same, {"gender": "mf"[i % 6 > 0]})
        for i in range(60)
    ]
    return make_corpus(records)


def test_copies_that_are_all_a_group_has_are_torn_apart():
    for one, two in zip(parts(same_men()), parts(same_men(), together=False), strict=True):
        np.testing.assert_array_equal(one, two)


def test_copies_that_are_torn_apart_are_told():
    (split,) = HoldOut().draw(same_men(), "gender", [0])
    note = "9 images are copies of others: attackers learn from some"
    assert split.copies.note().startswith(note)


def test_the_number_of_copies_stands_in_the_manifest():
    cell = compose.cell(["dataset.n_images=200", "probe.cache=null"])
    manifest = run_cell(cell.corpus(), cell.build("metric"), [0], run_id="x").manifest
    assert manifest["split"] == {"copies": {"images": 0, "together": True}}


def double_corpus(corpus: Corpus) -> Corpus:
    """Every image twice, under another id."""
    side = {
        name: replace(
            captions,
            tokens=np.tile(captions.tokens, 2),
            starts=np.concatenate([captions.starts, captions.starts[1:] + captions.starts[-1]]),
            image_rows=np.concatenate([captions.image_rows, captions.image_rows + len(corpus)]),
        )
        for name, captions in (("model", corpus.model), ("human", corpus.human))
    }
    groupings = {
        name: replace(captions, codes=np.tile(captions.codes, 2))
        for name, captions in corpus.groupings.items()
    }
    return replace(
        corpus.rewrite(side),
        ids=(*corpus.ids, *(f"copy of {i}" for i in corpus.ids)),
        groupings=groupings,
        objects=None if corpus.objects is None else corpus.objects * 2,
        source_order=np.arange(2 * len(corpus)),
    )


@pytest.mark.parametrize("metric", ["lic", "leakage"])
def test_images_that_stand_twice_do_not_move_a_score(metric):
    words = ["captioner=amplifier", "dataset.n_images=800", "probe.cache=null"]
    few = ("metric.learning_curve=false", "stats.resamples=200")
    cell = compose.cell([f"metric={metric}", *words, *few])
    once, again = (
        next(row for row in run_cell(item, cell.build("metric"), (0, 12, 456), run_id="x").rows
             if row.part == "score")
        for item in (cell.corpus(), double_corpus(cell.corpus()))
    )  # fmt: skip
    assert once.ci_low <= again.value <= once.ci_high
    assert again.ci_low <= once.value <= again.ci_high
