"""Which captions describe a person, and as what: the rules, one by one."""

import random

import pytest

from bias_pipeline.corpus.attribute import words_of
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.run import compose
from bias_pipeline.text.descriptions import ConceptTable, content_words, describe_captions

TABLE: ConceptTable = compose.cell(["metric=descriptions"]).build("metric").concepts


def concepts(text: str) -> set[str]:
    """What one caption says of a person."""
    described_one = describe_captions(Captions.from_texts([text]), TABLE)
    return {TABLE.concepts[k] for k in described_one.concepts.indices}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # (a) before a person, or before what a person has
        ("A handsome man rides a horse.", {"good-looking"}),
        ("A pretty woman rides a horse.", {"good-looking"}),
        ("a young tennis player", {"young"}),
        ("an elegant, confident asian woman", {"stylish", "confident"}),
        ("a man with a serious expression", {"serious"}),
        ("A beautiful cake and a man.", set()),
        ("an old truck beside a man", set()),
        ("a woman statue, and a young woman statue", set()),
        # (b) behind a verb, or a comma
        ("The man is tired.", {"tired"}),
        ("She looks calm and very elegant.", {"calm", "stylish"}),
        ("The expression on her face is stern.", {"serious"}),
        ("The man stands in a room; the atmosphere is calm.", set()),
        ("A man stands where the lighting is warm.", set()),
        ("A woman, beautiful and calm, stands.", {"good-looking", "calm"}),
        # (c) looking
        ("a man in a suit looking confident", {"confident"}),
        # (d) only a person can be this
        ("a man at the table, smiling", {"smiling"}),
        ("a man next to a smiling dog", set()),
        # nouns for a person that describe
        ("two girls on a bench", {"young"}),
        ("a baby elephant", set()),
        ("a man in a baby blue tie", set()),
        ("an elderly grandmother", {"old"}),
        # (e) what a person has or does
        ("a woman with long hair", {"hair"}),
        ("There is a bright smile on her face.", {"smiling"}),
        ("a man with a small smile", {"smiling"}),
        ("a dog with long hair beside a man", set()),
        ("a woman with a hair dryer", set()),
        ("a woman brushing her hair", set()),
        ("a man skillfully riding a wave", {"skilled"}),
        ("the focus is on the man", set()),
        ("a man with great focus", {"focused"}),
        ("a man with facial hair", {"facial hair"}),
        ("a brown-haired man", {"hair"}),
        # (f) another person
        ("A man rides. Several people smile and look happy.", set()),
        ("Another man is smiling.", set()),
        ("Spectators are smiling at the man.", set()),
        # negations
        ("The man isn't smiling.", set()),
        ("The woman is not happy.", set()),
        ("a man without a beard", set()),
        # sizes need a person
        ("a man is short on time", set()),
        ("a short man", {"short"}),
    ],
)
def test_a_caption_describes_by_the_rules(text, expected):
    assert concepts(text) == expected


@pytest.mark.parametrize(
    "text", ["", ".", "woman", "Smiling.", "a dog", "hair", "12 34", "¿?", "\u200b", "<unk>"]
)
def test_a_caption_of_a_word_or_none_describes_nobody(text):
    assert concepts(text) == set()


def test_tags_and_capitals_are_read():
    assert concepts("woman, smiling, dress, street") == {"smiling"}
    assert concepts("A YOUNG MAN WITH A BEARD") == {"young", "facial hair"}
    assert concepts("woman’s smile") == concepts("woman's smile") == {"smiling"}


def test_each_person_of_a_sentence_may_be_described():
    assert concepts("A tall man and a pretty woman.") == {"tall", "good-looking"}


def test_a_caption_says_what_it_says_alone():
    texts = ["a tall man", "", "a pretty woman. She smiles.", "a dog", "A calm man"]
    together = describe_captions(Captions.from_texts(texts), TABLE).concepts
    for row, text in enumerate(texts):
        columns = together.indices[together.indptr[row] : together.indptr[row + 1]]
        assert {TABLE.concepts[k] for k in columns} == concepts(text)


def test_spellings_belong_to_their_concepts():
    one = describe_captions(
        Captions.from_texts(["a handsome man", "a pretty man", "a pretty man"]), TABLE
    )
    assert one.words == ("handsome", "pretty")
    assert {TABLE.concepts[k] for k in one.concept_of} == {"good-looking"}
    assert one.spellings.sum(axis=0).tolist() == [1, 2]


def test_content_has_no_word_of_a_concept_wherever_it_stands():
    texts = Captions.from_texts(["A smiling man with an old hat, and his hair is brown."])
    content = content_words(texts, TABLE, frozenset(["man", "his"]), framed=True)
    assert content.text(0) == "a person with an hat and person is brown"
    assert content_words(texts, TABLE, frozenset(["man"]), framed=False).text(0) == "with hat brown"


def test_the_table_has_34_concepts_and_nine_classes_of_words():
    listed = [concept for of in TABLE.adjectives.values() for concept in of]
    assert len(listed) == len(set(listed)) == 34
    nine = {"agency", "competence", "warmth", "attractiveness", "body", "age", "joy", "gloom"}
    assert set(TABLE.alone) <= nine | {"status"} <= set(TABLE.classes)


def test_a_word_has_one_concept_and_one_class():
    adjectives = [
        w for of in TABLE.adjectives.values() for words in of.values() for w in words_of(words)
    ]
    adjectives += [w for words in TABLE.alone.values() for w in words_of(words)]
    assert len(adjectives) == len(set(adjectives))
    assert all(w == w.lower() for w in adjectives)
    for of in (TABLE.person_nouns, TABLE.carried):
        assert set(of) <= set(TABLE.concepts)


def test_an_attribute_is_no_description_of_itself():
    age, emotion, gender = (
        compose.cell(["metric=descriptions", f"attribute={name}"]).build("attribute")
        for name in ("age", "emotion", "gender")
    )
    assert {"young", "old", "adult"} <= TABLE.about(age)
    assert {"smiling", "sad", "angry"} <= TABLE.about(emotion)
    assert TABLE.about(gender) == {"feminine", "masculine", "manly", "motherly", "pregnant"}


def test_planted_words_are_all_read():
    """Every adjective of the table, in three places where it describes a person."""
    generator = random.Random(0)
    frames = ("The man looks {}.", "a {} woman in a park", "The expression on his face is {}.")
    for word in TABLE.adjective_concepts:
        text = generator.choice(frames[:2]).format(word)
        assert TABLE.concepts[TABLE.adjective_concepts[word]] in concepts(text) or word in (
            *words_of(TABLE.sizes),
            "haired",
        ), text
