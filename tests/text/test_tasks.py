"""Which tasks and groups captions name."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bias_pipeline.corpus.attribute import Attribute, TaskVocabulary
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.run import compose
from bias_pipeline.text.mentions import attribute_mentions, named_group, task_mentions

WORDS = {
    "dog": ["dog", "dogs", "puppy"],
    "hot dog": ["hot dog", "hot dogs"],
    "car": ["car", "cars"],
    "train": ["train", "trains", "train car", "train cars"],
    "dining table": ["dining table", "table"],
}
VOCABULARY = TaskVocabulary("toy", WORDS)
TASKS = tuple(WORDS)
GENDER = Attribute(
    "gender",
    ("male", "female", "unsure"),
    {"male": "man, men, he", "female": "woman, women, she"},
    {},
)


def tasks_named(text: str, tasks: tuple[str, ...] = TASKS) -> set[str]:
    row = task_mentions(Captions.from_texts([text]), VOCABULARY, tasks).toarray()[0]
    return {task for task, count in zip(tasks, row, strict=True) if count}


@pytest.mark.parametrize("word", ["t-shirt", "catcher's mitt"])
def test_a_listed_word_is_split_as_captions_are(word):
    vocabulary = TaskVocabulary("toy", {"thing": [word]})
    captions = Captions.from_texts([f"a red {word}."])
    assert task_mentions(captions, vocabulary, ("thing",)).toarray().tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("text", "tasks"),
    [
        ("a dog", {"dog"}),
        ("two dogs", {"dog"}),
        ("a puppy", {"dog"}),
        ("a hot dog", {"hot dog"}),
        ("hot dogs", {"hot dog"}),
        ("a hot day and a dog", {"dog"}),
        ("a dog eats a hot dog", {"dog", "hot dog"}),
        ("a train car", {"train"}),
        ("a car near a train", {"car", "train"}),
        ("a dining table", {"dining table"}),
        ("a Dog.", {"dog"}),
        ("the dog's ball", {"dog"}),
        ("a doghouse", set()),
        ("hotdog", set()),
        ("", set()),
    ],
)
def test_tasks_are_named_by_their_words_the_longest_first(text, tasks):
    assert tasks_named(text) == tasks


@pytest.mark.parametrize(
    ("texts", "tasks", "mentions"),
    [
        (["so hot", "dog"], TASKS, [[0, 0, 0, 0, 0], [1, 0, 0, 0, 0]]),
        (["a dog and a puppy and two dogs"], TASKS, [[1, 0, 0, 0, 0]]),
        (["a car"], ("car", "dog"), [[1, 0]]),
    ],
    ids=["no phrase crosses captions", "a task counts once", "columns in the order asked for"],
)
def test_mentions(texts, tasks, mentions):
    mentioned = task_mentions(Captions.from_texts(texts), VOCABULARY, tasks)
    assert mentioned.toarray().tolist() == mentions


@pytest.mark.parametrize("text", ["a hot dog", "two hot dogs"])
def test_phrases_of_excluded_tasks_still_take_their_words(text):
    assert tasks_named(text, tasks=("dog", "car")) == set()


@pytest.mark.parametrize("texts", [[], [""], ["a dog"]])
def test_there_may_be_no_tasks(texts):
    assert task_mentions(Captions.from_texts(texts), VOCABULARY, ()).shape == (len(texts), 0)


NAMES = st.sampled_from(["a", "hot", "dog", "train", "car", "puppy"])


@given(st.lists(st.lists(NAMES, max_size=6)))
@settings(deadline=None)
def test_mentions_do_not_depend_on_the_other_captions(captions):
    texts = [" ".join(words) for words in captions]
    result = task_mentions(Captions.from_texts(texts), VOCABULARY, TASKS).toarray()
    for text, row in zip(texts, result, strict=True):
        assert {task for task, count in zip(TASKS, row, strict=True) if count} == tasks_named(text)


def test_our_objects_know_a_hot_dog_from_a_dog():
    vocabulary = compose.cell(["metric=dbac"]).build("task")
    captions = Captions.from_texts(["a man eats a hot dog", "a man walks two dogs"])
    result = task_mentions(captions, vocabulary, ("dog", "hot dog")).toarray()
    assert result.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("a man", [1, 0]),
        ("A Woman!", [0, 1]),
        ("a man and a woman", [1, 1]),
        ("a man and he", [1, 0]),
        ("the man's hat", [1, 0]),
        ("a person", [0, 0]),
        ("", [0, 0]),
    ],
)
def test_groups_are_named_by_their_words(text, groups):
    mentions = attribute_mentions(Captions.from_texts([text]), GENDER, ("male", "female"))
    assert mentions.toarray().tolist() == [groups]


def test_a_group_without_words_is_never_named():
    mentions = attribute_mentions(Captions.from_texts(["a man"]), GENDER, GENDER.groups)
    assert mentions.toarray().tolist() == [[1, 0, 0]]


@pytest.mark.parametrize(
    ("text", "group"),
    [("a man", 0), ("two Women and a woman.", 1), ("a man and a woman", -2), ("mandate", -1)],
)
def test_one_group_is_asked_for(text, group):
    assert named_group(Captions.from_texts([text]), GENDER, GENDER.groups).tolist() == [group]


def test_a_word_with_an_apostrophe_names_its_group():
    attribute = Attribute("gender", ("male", "female"), {"male": ["men's"]}, {})
    captions = Captions.from_texts(["a men's hat", "a hat"])
    assert named_group(captions, attribute, attribute.groups).tolist() == [0, -1]
