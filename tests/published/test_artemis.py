"""ArtEmis' release as it is published, of both versions, and what in it is odd."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.split import originals
from bias_pipeline.corpus.split_rules import HoldOut
from bias_pipeline.errors import DataError, ResourceError, UsageError
from bias_pipeline.published.artemis import (
    EMOTIONS,
    Annotation,
    Cleaning,
    Names,
    parts_of,
    read_release,
)
from bias_pipeline.stats.bootstrap import Bootstrap
from tests import composed
from tests.artemis_folder import ROWS, STYLES_OF, draw_pictures, write_folder
from tests.corpora import DATA

BEACH = "Impressionism/eugène-roux_the-beach-at-noon"
WHOLE = DATA / "artemis"
TESTED = (
    70,
    ["s0001", "s0016", "s0028", "s0032", "s0034", "s0041"],
    ["s0640", "s0660", "s0679"],
)


NO_WORDS_REPLACED = "dataset.cleaning.word_frequency=0"
BY_CAPTION = "dataset.labels=caption"


def load(root: Path, *words: str, captioner: str = "none") -> Corpus:
    chosen = ("dataset=artemis", "attribute=emotion", f"captioner={captioner}")
    return composed.corpus(*chosen, f"dataset.root={root}", NO_WORDS_REPLACED, *words)


def labels(corpus: Corpus) -> dict[str, str]:
    grouping = corpus.groupings["emotion"]
    named = [*grouping.names, "none"]
    return {image: named[code] for image, code in zip(corpus.ids, grouping.codes, strict=True)}


def change_cell(number: int, column: int, value: str) -> list[tuple[str, ...]]:
    """The sixty rows with one cell changed."""
    rows = [list(row) for row in ROWS]
    rows[number][column] = value
    return [tuple(row) for row in rows]


def write_captions(folder: Path, images: Iterable[str]) -> Path:
    """The folder with captions of these images by captioner ``some``."""
    root = write_folder(folder)
    lines = "".join(f'"{image}",a picture\n' for image in images)
    (root / "captioners" / "some.csv").write_text(f"image_id,caption\n{lines}")
    return root


def without_a_picture(folder: Path) -> tuple[Path, str]:
    """The folder, and where all pictures but one are."""
    pictures = draw_pictures(folder / "wikiart")
    (pictures / "Pop_Art" / "bob-ray_three-cans.jpg").unlink()
    return write_folder(folder / "a"), f"dataset.images={pictures}"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Corpus:
    return load(write_folder(tmp_path_factory.mktemp("artemis")))


@pytest.fixture(scope="module")
def uncleaned_corpus(tmp_path_factory) -> Corpus:
    """Without cleaning."""
    return load(write_folder(tmp_path_factory.mktemp("artemis")), "dataset.cleaning=null")


def test_a_painting_has_all_its_utterances_and_mojibake_is_mended(corpus, uncleaned_corpus):
    assert (len(uncleaned_corpus), len(uncleaned_corpus.human)) == (12, 58)
    assert BEACH in corpus.ids
    assert (
        "It’s funny how they bathe in clothes."
        in uncleaned_corpus[uncleaned_corpus.ids.index(BEACH)].human
    )


def test_what_was_done_to_the_text_is_noted(corpus):
    assert {
        "2 of 60 rows have no utterance and are left out",
        "mojibake was mended in 2 names of paintings and 1 utterance",
        # Shorter than five: "why so much hate", "no idea" and "masterly".
        "50 of 60 utterances are kept: 3 have fewer than 5 tokens, 5 more than 11.9",
    } <= {*corpus.notes}


def test_most_annotators_label_a_painting_and_ties_are_counted(corpus):
    known = labels(corpus)
    assert known["Romanticism/carl-berg_mountains-at-dawn"] == "awe"
    # Of five, three chose this; one of the three wrote two words.
    assert known["Pop_Art/bob-ray_three-cans"] == "something_else"
    assert known["Realism/anna-lund_old-woman-with-bread"] == "none"  # a tie
    assert corpus.groupings["emotion"].strata == {"no majority": 3}


def test_each_utterance_can_be_a_record_with_its_own_emotion(tmp_path):
    corpus = load(write_folder(tmp_path), "dataset.cleaning=null", BY_CAPTION)
    written = Counter(emotion for *_, emotion, text, _ in ROWS if text.strip())
    expected = {name.replace(" ", "_"): written[name] for name in EMOTIONS}
    assert corpus.groupings["emotion"].sizes == expected
    assert len(np.unique(originals(corpus))) == 12  # those of a painting are copies of one another


def test_utterances_of_a_painting_stay_in_one_part_of_a_split(tmp_path):
    repeated = [
        (style, f"{name}-{copy}", emotion, f"{text} {copy} words more", repetition)
        for copy in range(30)
        for style, name, emotion, text, repetition in ROWS
    ]
    corpus = load(write_folder(tmp_path, repeated), BY_CAPTION, "dataset.cleaning=null")
    (split,) = HoldOut(0.2, 0.1).draw(corpus, "emotion", [0])
    paintings = np.array(corpus.picture_ids)
    assert not {*paintings[split.test]} & {*paintings[split.train]}


def test_utterances_of_a_painting_are_resampled_together(tmp_path):
    corpus = load(write_folder(tmp_path), BY_CAPTION)
    weights = next(iter(Bootstrap(resamples=50).weights(corpus.keys)))
    rows = [row for row, image in enumerate(corpus.picture_ids or ()) if image == BEACH]
    assert len(rows) > 1
    assert (weights[:, rows] == weights[:, rows[:1]]).all()


def test_words_that_the_training_part_hardly_has_are_replaced(tmp_path):
    corpus = load(write_folder(tmp_path), "dataset.cleaning.word_frequency=5")
    assert "holiday" not in corpus.human.types
    assert "<unk>" in corpus.human.types
    assert "the" in corpus.human.types


def test_the_parts_are_85_5_and_10_per_cent_of_the_other_paintings():
    rows = [Annotation(f"s/{n}", "awe", "", 5, f"s{n}") for n in range(1000)]
    assert Counter(parts_of(rows, 41, 2021).values()) == {"train": 849, "val": 51, "test": 100}


def test_the_parts_are_those_that_the_authors_draw():
    """The numbers are those of scikit-learn's train_test_split, called twice as they do."""
    names = [f"s{n:04}" for n in range(700)]
    rows = [Annotation(name, "awe", "", 5, name) for name in reversed(names)]
    parts = parts_of(rows, 41, 2021)
    tested = sorted(name for name, part in parts.items() if part == "test")
    assert (len(tested), tested[:6], tested[-3:]) == TESTED


def test_no_painting_is_in_two_parts_and_those_of_very_many_annotations_are_the_rest(tmp_path):
    root = write_folder(tmp_path)
    ids = [load(root, f"dataset.split={part}").ids for part in ("train", "val", "test", "rest")]
    assert ids[-1] == ("Baroque/pieter-maas_the-night-guard",)
    assert sorted(image for part in ids for image in part) == sorted(load(root).ids)


def test_version_2_gives_the_same_as_version_1_where_its_rows_are_the_same(tmp_path):
    one, two = write_folder(tmp_path / "1"), write_folder(tmp_path / "2", version=2)
    assert load(one).digest == load(two, "dataset.version=2").digest


@pytest.mark.parametrize(("given", "wanted"), [(1, 2), (2, 1)])
def test_a_file_of_the_other_version_is_refused(tmp_path, given, wanted):
    root = write_folder(tmp_path, version=given)
    (file,) = root.glob("*.csv")
    with pytest.raises(
        DataError, match=f"so it is version {given} of ArtEmis; set dataset.version"
    ):
        load(root, f"dataset.version={wanted}", f"dataset.file={file.name}")


UNKNOWN = r"1 of 60 rows has an unknown emotion, the first on line 9.*did you mean .*contentment"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (change_cell(7, 2, "contentmint"), UNKNOWN),
        (change_cell(1, 4, "five"), "line 3: repetition 'five' is not a whole number"),
        ([(*ROWS[0][:3], "", "5")], "no row has an utterance"),
    ],
    ids=["emotion", "repetition", "no utterance"],
)
def test_rows_that_cannot_be_used_are_refused(tmp_path, rows, message):
    with pytest.raises(DataError, match=message):
        load(write_folder(tmp_path, rows))


def test_a_column_that_is_absent_is_named(tmp_path):
    root = write_folder(tmp_path)
    path = root / "artemis_dataset_release_v0.csv"
    path.write_text(path.read_text().replace("art_style", "style", 1))
    with pytest.raises(DataError, match="column 'art_style' is absent"):
        load(root)


def test_the_order_of_rows_does_not_matter(tmp_path):
    one = write_folder(tmp_path / "1")
    two = write_folder(tmp_path / "2", sorted(ROWS, key=lambda row: row[1]))
    assert load(one).groupings["emotion"].sizes == load(two).groupings["emotion"].sizes


def test_a_captioner_is_matched_by_names_however_they_are_written(tmp_path):
    corpus = load(write_folder(tmp_path), captioner="mine")
    assert len(corpus.model) == 12


@pytest.mark.parametrize(
    ("images", "error", "message"),
    [
        (
            [next(iter(STYLES_OF))],
            ResourceError,
            "11 of 12 paintings have no caption.*strict=false",
        ),
        (["42"], DataError, "no caption is of a painting"),
    ],
    ids=["too few", "another data set"],
)
def test_captions_that_do_not_fit_are_refused(tmp_path, images, error, message):
    with pytest.raises(error, match=message):
        load(write_captions(tmp_path, images), captioner="some")


def test_two_captions_of_a_painting_under_two_names_are_refused(tmp_path):
    painting = next(iter(STYLES_OF))
    path = write_captions(tmp_path, STYLES_OF) / "captioners" / "some.csv"
    path.write_text(f'{path.read_text()}"{painting}.jpg",another\n')
    with pytest.raises(DataError, match=f"{painting} has two different captions"):
        load(tmp_path, captioner="some")


def test_captions_of_no_painting_are_counted(tmp_path):
    notes = load(write_captions(tmp_path, [*STYLES_OF, "Realism/unknown"]), captioner="some").notes
    assert "1 caption is of no painting, such as Realism/unknown" in notes


def test_pictures_are_found_by_names_in_another_wrong_encoding_with_any_known_ending(tmp_path):
    assert Names(["Realism/x"]).find("wikiart/Realism/x.webp") == "Realism/x"
    root, pictures = write_folder(tmp_path / "a"), draw_pictures(tmp_path / "wikiart")
    corpus = load(root, f"dataset.images={pictures}")
    assert corpus.pictures is not None
    assert corpus.pictures.present.all()


def test_an_absent_release_is_asked_for_by_its_folder(tmp_path):
    with pytest.raises(ResourceError, match=r"Contrastive\.csv is absent .* to its folder"):
        read_release(tmp_path / "Contrastive.csv", 2)


def test_an_absent_picture_is_an_error_and_counted_if_not_strict(tmp_path):
    where = without_a_picture(tmp_path)
    with pytest.raises(ResourceError, match=r"1 of 12 paintings has no picture.*bob-ray_three"):
        load(*where)
    notes = load(*where, "dataset.strict=false").notes
    assert any(note.startswith("1 of 12 paintings has no picture") for note in notes)


@pytest.mark.parametrize(
    ("word", "error", "message"),
    [
        ("dataset.split=trian", UsageError, "did you mean 'train'"),
        (
            "attribute.labels.artemis.field=mood",
            UsageError,
            "dataset 'artemis' labels 'emotion' alone, not 'mood'",
        ),
        ("dataset.split=[rest]", DataError, r"no utterance is of dataset\.split=\['rest'\]"),
    ],
)
def test_a_part_or_a_label_that_is_not_there_is_refused(tmp_path, word, error, message):
    with pytest.raises(error, match=message):
        load(write_folder(tmp_path, ROWS[:5]), word)


@pytest.mark.skipif(not WHOLE.is_dir(), reason="ArtEmis is given on request only; it is not here")
def test_the_whole_release_has_the_published_counts():
    release = read_release(WHOLE / "artemis_dataset_release_v0.csv", 1)
    assert release.n_rows == 454_684
    # The authors count NLTK's tokens of text with corrected spelling: 429,431.
    assert len(Cleaning().apply(release)[0].annotations) == pytest.approx(429_431, rel=0.005)
