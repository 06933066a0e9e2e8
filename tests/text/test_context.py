"""What is said of a person, and what is not: words of race in context."""

import json
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bias_pipeline.corpus.attribute import Attribute, Context
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.errors import UsageError
from bias_pipeline.run import compose
from bias_pipeline.text.mentions import attribute_mentions, listed_words, named_group, neutral_rate
from tests.corpora import DATA

NOBODY: list[str] = []
NAMES_NOBODY = [
    "a black dog", "a black dog and a man", "a man in a black shirt", "a black and white photo",
    "a black and white photo of people", "a black and white tennis player", "a woman in black",
    "a man in white people look at", "wearing black two women stand", "a black haired man",
    "a white-haired woman", "a white clad tennis player", "a white chef hat", "a white chef's hat",
    "a white passenger train", "three white baby birds", "a man with a dog that is black",
    "a man and a woman are white water rafting", "a man who is black and white", "black", "",
]  # fmt: skip


@cache
def attribute(name: str, *words: str) -> Attribute:
    built: Attribute = compose.cell([f"attribute={name}", *words]).build("attribute")
    return built


def groups_named(text: str, attribute: Attribute, preset: str | None = None) -> list[str]:
    flags = attribute_mentions(
        Captions.from_texts([text]), attribute, attribute.groups, preset
    ).toarray()[0]
    return [name for name, flag in zip(attribute.groups, flags, strict=True) if flag]


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("a black man", ["dark"]),
        ("A BLACK MAN.", ["dark"]),
        ("a black young man", ["dark"]),
        ("two white women", ["light"]),
        ("two black women tennis players", ["dark"]),
        ("a white police officer", ["light"]),
        ("a white male on a skate board", ["light"]),
        ("an African-American girl", ["dark"]),
        ("a dark-skinned woman", ["dark"]),
        ("a dark skinned woman", ["dark"]),
        ("a light-skinned boy", ["light"]),
        ("a group of Caucasians", ["light"]),
        ("a man who is black", ["dark"]),
        ("a man who is black on a bench", ["dark"]),
        ("the women are white", ["light"]),
        ("a black man's hand", ["dark"]),
        ("a black man and a white woman", ["light", "dark"]),
        ("a black man in a white shirt", ["dark"]),
        *((text, NOBODY) for text in NAMES_NOBODY),
    ],
)
def test_race_is_named_of_persons(text, groups):
    assert groups_named(text, attribute("race")) == groups


def test_words_on_either_side_of_the_end_of_a_caption_do_not_meet():
    captions = Captions.from_texts(["a cat is black", "man on a bus", "a man is", "white"])
    assert set(named_group(captions, attribute("race"), ("light", "dark")).tolist()) == {-1}


@pytest.mark.parametrize("text", ["a black dog", "a black man", "a man in a black shirt"])
def test_a_published_list_counts_as_it_was_published(text):
    assert groups_named(text, attribute("race"), "lic") == ["dark"]


@pytest.mark.parametrize("name", ["race", "race_unsure"])
def test_the_context_can_be_left_out(name):
    without = ("attribute.applies_to=null", "attribute.other_senses=[]")
    assert groups_named("a black dog", attribute(name)) == []
    assert groups_named("a black dog", attribute(name, *without)) == ["dark"]


def test_any_attribute_can_have_it():
    everywhere = attribute("age", "+context@attribute.applies_to=person")
    texts = ["an old truck", "a little table", "an old man", "a child", "a young giraffe"]
    assert [groups_named(text, everywhere) for text in texts] == [[], [], ["old"], ["young"], []]


def test_a_context_that_is_a_name_alone_is_refused():
    with pytest.raises(UsageError, match="must be a configuration of a Context"):
        attribute("age", "+attribute.applies_to=person")


def test_in_python_it_is_refused_with_what_to_write_in_yaml():
    age = attribute("age")
    with pytest.raises(UsageError, match=r"\+context@attribute\.applies_to=person"):
        replace(age, applies_to="person")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"groups": ("old", "old")}, "at least two distinct groups are needed"),
        ({"groups": ("old", "aged")}, "words of unknown group 'young'; Known: aged, old"),
        ({"words": {"old": ("man",), "young": ("man",)}}, "'man' is listed in 'old' and 'young'"),
    ],
)
def test_groups_and_words_that_do_not_fit_are_refused(values, message):
    with pytest.raises(UsageError, match=message):
        replace(attribute("age"), **values)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("a black dog", "a <race> dog"),
        ("a dark - skinned man", "a <race> man"),
        ("a dark skinned man", "a <race> man"),
    ],
)
def test_a_word_that_waits_for_a_context_is_still_masked(text, masked):
    mask = compose.cell(["attribute=race"]).build("masking")
    assert mask.mask(Captions.from_texts([text])).text(0) == masked


def test_what_was_read_is_not_mistaken_for_another_reading():
    """Readings are remembered by captions and by all that decides them."""
    captions = Captions.from_texts(["a black dog"])
    contexts = (None, Context("man"), Context("dog"), Context("man", linking="is"))
    made = [
        Attribute("race", ("light", "dark"), {"dark": "black"}, {}, applies_to=context)
        for context in contexts
    ]
    assert [neutral_rate(captions, context) for context in made] == [0, 1, 0, 1]


def test_the_lists_for_persons_hold_the_nouns_of_the_other_lists():
    """One place for persons: what the other lists call one must not be missing there."""
    person = set(attribute("race").applies_to.words)
    gender, age = attribute("gender"), attribute("age")
    task = compose.cell(["metric=dbac"]).build("task").tasks["person"]
    no_nouns = {"his", "her", "mans", "mens", "womans", "womens", "masculine", "manly", "boyish"}
    no_nouns |= {"fatherly", "feminine", "womanly", "girlish", "motherly"}
    assert {w for word in gender.words.values() for w in word} - no_nouns <= person
    assert set(task) <= person
    missing = {w for word in age.words.values() for w in word} - person
    assert missing <= {
        *("old", "older", "oldest", "elderly", "aged", "aging", "ageing", "grown", "mature"),
        *("retired", "young", "younger", "youngest", "youthful", "little", "teenage", "teenaged"),
    }


def test_no_word_of_the_context_does_two_things():
    context = attribute("race").applies_to
    words = [*context.words, *context.between, *context.other_heads, *context.linking]
    words += context.closing
    assert {word for word in words if words.count(word) > 1} == set()
    assert all(word.isalpha() and word.islower() for word in words)


# --- properties ----------------------------------------------------------------------------------

WORDS = ["a", "man", "young", "black", "white", "dog", "who", "is", "and", "in", "hat"]
SENTENCE = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
COLOUR = st.sampled_from(["black", "white", "ebony", "pale"])


def by_hand(text: str, attribute: Attribute) -> set[str]:
    """The rules of ``describing_a_person`` again, word by word."""
    words = text
    for phrase in sorted(attribute.other_senses, key=lambda phrase: (-len(phrase.split()), phrase)):
        words = re.sub(rf"(?<!\S){phrase}(?!\S)", phrase.replace(" ", "_"), words)
    cut, context = words.split(), attribute.applies_to
    return {
        group
        for group, listed in attribute.words.items()
        for i, word in enumerate(cut)
        if word in listed and _describes_a_person(cut, i, context)
    }


def _describes_a_person(cut: list[str], i: int, context: Context) -> bool:
    after = i + 1
    while after < len(cut) and cut[after] in context.between:
        after += 1
    behind = after
    while behind < len(cut) and cut[behind] in context.words:
        behind += 1
    head = behind < len(cut) and cut[behind] in context.other_heads
    before = i - 1
    while before >= 0 and cut[before] in context.linking:
        before -= 1
    linked = 0 <= before < i - 1 and cut[before] in context.words
    ends = i + 1 == len(cut) or cut[i + 1] in context.closing
    return (behind > after and not head) or (linked and ends)


@given(SENTENCE)
@example("black white black man")
@example("in black in black man")
@settings(deadline=None)
def test_the_rules_are_those_of_a_loop_over_words(text):
    assert set(groups_named(text, attribute("race"))) == by_hand(text, attribute("race"))


@given(st.lists(SENTENCE, max_size=6))
@settings(deadline=None)
def test_a_caption_names_what_it_names_alone(texts):
    race = attribute("race")
    together = attribute_mentions(Captions.from_texts(texts), race, race.groups).toarray()
    alone = [[float(group in groups_named(text, race)) for group in race.groups] for text in texts]
    assert together.tolist() == alone


@given(SENTENCE, COLOUR, st.sampled_from(["dog", "cat", "shirt", "bus", "chef hat"]))
@settings(deadline=None)
def test_the_colour_of_a_thing_names_nobody(text, colour, thing):
    race = attribute("race")
    assert groups_named(f"{text} and a {colour} {thing}", race) == groups_named(
        f"{text} and a {thing}", race
    )


# --- real captions --------------------------------------------------------------------------------


def captions_of(name: str) -> Captions:
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"no real captions at {DATA}; set BIAS_PIPELINE_DATA to have this test run")
    content = json.loads(path.read_text())
    lines = content if isinstance(content, list) else content["annotations"]
    return Captions.from_texts([line["caption"] for line in lines])


@pytest.mark.real
@pytest.mark.parametrize("name", ["sat", "nic", "transformer"])
def test_real_captioners_have_colours_and_name_nobody(name):
    result = listed_words(captions_of(f"captioners/{name}.json"), attribute("race").namings()[0])
    assert len(result.places) > 300
    assert not result.names.any()


@pytest.mark.real
def test_people_name_skin_tone_in_one_caption_in_a_thousand():
    captions = captions_of("coco/annotations/captions_val2014.json")
    result = listed_words(captions, attribute("race").namings()[0])
    n_named = int(result.holding(result.names).sum())
    assert 40 <= n_named <= 80  # of 97,074; an audit found 41 right before a word for a person
    before = result.captions.tokens[result.places[result.names] + 1]
    of_gender = [result.captions.types[t] in attribute("gender").all_words for t in before]
    assert np.mean(of_gender) > 0.5
