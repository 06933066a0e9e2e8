"""Which words of captions describe a person, and which stand in the same places unlisted."""

import pytest

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.run import compose
from bias_pipeline.text.description_words import describing_words, open_slots
from bias_pipeline.text.descriptions import describe_captions

METRIC = compose.cell(["metric=descriptions"]).build("metric")
TABLE = METRIC.concepts
WORDS = frozenset(METRIC.attribute.all_words)


def marked_words(text: str) -> dict[str, str]:
    """Each describing word of a caption, as written, with its concept."""
    captions = Captions.from_texts(["an empty road", text])
    concepts = describing_words(captions, TABLE).in_caption(1)
    return {
        word: TABLE.concepts[concept]
        for word, concept in zip(captions.words(1), concepts, strict=True)
        if concept >= 0
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A Young, tall man.", {"Young,": "young", "tall": "tall"}),
        ("An old truck near an old man", {"old": "old"}),
        ("He has facial hair and looks focused.", {"hair": "facial hair", "focused.": "focused"}),
        ("A dog. The woman is smiling!", {"smiling!": "smiling"}),
        ("... - a truck ...", {}),
    ],
)
def test_words_are_marked_as_they_are_written(text, expected):
    assert marked_words(text) == expected


def test_only_the_mention_of_a_person_is_marked():
    captions = Captions.from_texts(["an old truck beside an old man"])
    words = describing_words(captions, TABLE)
    marked = words.of_concept(0, TABLE.concepts.index("old"))
    assert [place for place, (_, is_marked) in enumerate(marked) if is_marked] == [5]


def test_a_long_caption_is_cut_around_its_word():
    text = " ".join(
        ["there is a road ."] * 20 + ["A young man rides ."] + ["there is a road ."] * 20
    )
    words = describing_words(Captions.from_texts([text]), TABLE)
    marked = words.of_concept(0, TABLE.concepts.index("young"))
    assert marked[0] == marked[-1] == ("…", False)
    assert ("young", True) in marked
    assert len(marked) < 30


def test_every_mention_that_counts_is_marked_and_no_other():
    texts = [
        "a young woman with long hair smiles at the camera. She is focused.",
        "two spectators look happy while a skilled player jumps",
        "a man without hair, and another young man",
        "",
    ]
    captions = Captions.from_texts(texts)
    words = describing_words(captions, TABLE)

    concepts = describe_captions(captions, TABLE).concepts.toarray() > 0
    for row in range(len(texts)):
        marked = {k for k in words.in_caption(row) if k >= 0}
        assert marked == set(concepts[row].nonzero()[0].tolist())


def test_open_slots_are_words_of_no_concept_where_descriptions_stand():
    captions = Captions.from_texts(
        [
            "a soaked man runs",
            "the man is soaked",
            "a soaked dog",
            "a man is on a boat",
            "a man rides",
        ]
    )
    slots = {slot.word: slot.rows.tolist() for slot in open_slots(captions, TABLE, WORDS)}
    assert slots == {"soaked": [0, 1]}


def test_captions_without_persons_have_no_open_slots():
    assert open_slots(Captions.from_texts(["a red truck", ""]), TABLE, WORDS) == []
