"""The word lists and label maps of conf/: what must hold for masking and counting to be fair."""

import csv
import json
import os
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from bias_pipeline.corpus.attribute import Attribute, Context, TaskVocabulary
from bias_pipeline.errors import UsageError

ROOT = Path(__file__).resolve().parents[2]
CONF = ROOT / "conf"
ATTRIBUTES = sorted(path.stem for path in (CONF / "attribute").glob("[!_]*.yaml"))
DATA = Path(os.environ.get("BIAS_PIPELINE_DATA", ROOT.parent / "shared" / "data"))

# Words without a plural, or whose singular is left out on purpose.
UNPAIRED_GENDER = {
    *("he", "him", "his", "himself", "mister", "mr"),
    *("mans", "mens"),  # possessives written without an apostrophe
    *("masculine", "manly", "boyish", "fatherly"),
}
UNCOUNTED_TASK_WORDS = {
    *("aircraft", "baggage", "baseballs", "basketballs", "broccoli", "cattle", "footballs"),
    *("glove", "grilled cheese", "horseback", "luggage", "scissors", "sheep", "shears"),
    *("someone", "somebody", "softballs", "stemware", "volleyballs"),
}
IRREGULAR = {
    "bus": "busses",  # beside the regular "buses"
    "calf": "calves",
    "doberman": "dobermans",
    "glass of wine": "glasses of wine",
    "goose": "geese",
    "human": "humans",
    "mouse": "mice",
    "ox": "oxen",
    "pair of scissors": "pairs of scissors",
    "person": "people",
}


def load(group: str, name: str) -> Attribute | TaskVocabulary:
    """What ``<group>=<name>`` builds, composed by Hydra as on the command line."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose(overrides=[f"+{group}={name}"])
    return instantiate(config[group], _convert_="all")


@cache
def attribute(name: str) -> Attribute:
    return load("attribute", name)


@cache
def tasks() -> dict[str, list[str]]:
    return dict(load("task", "coco_objects").tasks)


def gender_pairs() -> list[tuple[str, str]]:
    """(masculine, feminine) counterparts: words at the same place of the two lists."""
    words = attribute("gender").words
    return list(zip(words["male"], words["female"], strict=True))


def plurals(word: str) -> set[str]:
    """The plural forms English allows for a noun or a phrase that ends in one."""
    forms = {IRREGULAR[word]} if word in IRREGULAR else set()
    last = word.rsplit(" ", 1)[-1]
    if last in IRREGULAR:
        forms.add(word[: -len(last)] + IRREGULAR[last])
    if last.endswith("man"):
        forms.add(f"{word[:-2]}en")
    elif re.search(r"([sxz]|ch|sh)$", last):
        forms.add(f"{word}es")
    elif re.search(r"[^aeiou]y$", last):
        forms.add(f"{word[:-1]}ies")
    elif last.endswith("ife"):
        forms.add(f"{word[:-2]}ves")
    else:
        forms.add(f"{word}s")
    return forms


def lists_of(name: str) -> dict[str, list[str]]:
    """Every list of words of an attribute, by where it stands."""
    built = attribute(name)
    lists = {f"words.{group}": list(words) for group, words in built.words.items()}
    lists |= {f"presets.{preset}": list(listed.words) for preset, listed in built.presets.items()}
    return {**lists, "also_masked": list(built.also_masked)}


# --- every attribute -----------------------------------------------------------------------


def test_all_attributes_of_the_contract_are_there():
    assert {"age", "emotion", "gender", "race", "race_unsure"} <= set(ATTRIBUTES)


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_an_attribute_has_its_name_a_source_and_at_least_two_groups(name):
    built = attribute(name)
    assert isinstance(built, Attribute)
    assert built.name == name, "name is that of the file"
    assert len(built.source) > 20, "source says where words and labels come from (21 signs or more)"
    assert len(set(built.groups)) >= 2


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_words_are_lower_case_words_and_phrases(name):
    wrong = {
        where: bad
        for where, words in lists_of(name).items()
        if (bad := [word for word in words if not re.fullmatch("[a-z]+([ -][a-z]+)*", word)])
    }
    assert wrong == {}, "words have the letters a to z, with a blank or a hyphen between parts"


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_a_word_with_a_hyphen_stands_beside_the_same_without(name):
    """Masking finds the one by its hyphen; counting drops signs."""
    words = set(attribute(name).all_words)
    hyphenated = {word for word in words if "-" in word}
    spaced = {word for word in words if " " in word}
    lone = hyphenated ^ {word.replace(" ", "-") for word in spaced}
    assert lone == set(), "list such a word twice, with a hyphen and with a blank"
    assert {word.replace("-", " ") for word in hyphenated} <= words


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_no_word_stands_in_two_lists_of_our_own(name):
    lines = [
        set(words) for where, words in lists_of(name).items() if not where.startswith("presets")
    ]
    counts = Counter(word for line in lines for word in line)
    twice = [word for word, count in counts.items() if count > 1]
    assert twice == [], "a word belongs to one group, or to also_masked"


@pytest.mark.parametrize("name", [n for n in ATTRIBUTES if n != "gender"])
def test_no_list_repeats_a_word(name):
    repeated = {
        where: len(words) - len(set(words))
        for where, words in lists_of(name).items()
        if len(words) > len(set(words))
    }
    assert repeated == {}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_every_group_has_words_but_that_of_images_in_which_nobody_could_tell(name):
    built = attribute(name)
    assert set(built.words) <= set(built.groups), "words has a group that groups lacks"
    silent = set(built.groups) - set(built.words)
    assert silent <= {"unsure"}, "each group but one named unsure needs words that name it"


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_label_maps_lead_to_the_groups_and_to_all_of_them(name):
    """An attribute may have no label map: its groups are then the labels of the user's file."""
    maps = attribute(name).labels.values()
    groups = {group for labels in maps for group in labels.groups.values()}
    assert not maps or groups == set(attribute(name).groups)


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_no_label_is_both_a_group_and_a_stratum(name):
    both = {
        dataset: set(labels.groups) & set(labels.strata)
        for dataset, labels in attribute(name).labels.items()
    }
    assert not any(both.values()), both


@pytest.mark.parametrize(
    ("name", "dataset", "unsure"),
    [
        *((name, dataset, "Unsure") for name in ("gender", "race") for dataset in ("lic", "coco")),
        ("gender", "scenes", "Unsure"),
        ("race", "scenes", "Unsure"),
        ("gender", "miap", "Unknown"),
        ("age", "miap", "Unknown"),
        *((name, "phase", "unsure") for name in ("gender", "age", "ethnicity")),
        ("gender", "facet", ""),
        ("age", "relic", ""),
        *(("race_unsure", dataset, "") for dataset in ("lic", "coco", "scenes")),
    ],
)
def test_which_label_says_that_nobody_could_tell(name, dataset, unsure):
    labels = attribute(name).labels[dataset]
    known = [*labels.groups, *labels.strata]
    assert [label for label in known if labels.is_unsure(label)] == [unsure] * bool(unsure)


@pytest.mark.parametrize("name", ["age", "emotion", "gender", "race", "race_unsure"])
def test_the_embedded_data_set_is_labelled_with_what_it_shows(name):
    assert "scenes" in attribute(name).labels


# --- published lists -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "preset", "count", "token"),
    [
        ("gender", "lic", 50, "genderword"),
        ("gender", "hendricks", 44, "genderword"),
        ("gender", "wang_russakovsky", 10, "genderword"),
        ("race", "lic", 11, "raceword"),
        ("race_unsure", "lic", 11, "raceword"),
        ("age", "lic", 33, "AGEWORD"),
    ],
)
def test_preset_has_the_published_number_of_words(name, preset, count, token):
    result = attribute(name).presets[preset]
    assert (len(result.words), len(set(result.words)), result.token) == (count, count, token)


@pytest.mark.parametrize("name", ["gender", "race"])
def test_our_words_contain_the_published_list(name):
    built_attribute = attribute(name)
    assert set(built_attribute.presets["lic"].words) <= set(built_attribute.all_words)


def test_our_age_words_leave_out_only_published_words_that_are_not_about_age():
    age = attribute("age")
    neutral = {"person", "people"}
    gendered = {word for pair in gender_pairs() for word in pair} - {"boy", "boys", "girl", "girls"}
    left_out = set(age.presets["lic"].words) - set(age.all_words)
    assert left_out
    assert left_out <= neutral | gendered


def test_our_gender_words_contain_the_counting_list_but_for_a_name():
    gender = attribute("gender")
    assert set(gender.presets["hendricks"].words) - set(gender.all_words) == {"obama"}


def test_published_gender_list_splits_into_27_and_23():
    gender = attribute("gender")
    listed = set(gender.presets["lic"].words)
    masculine = listed & set(gender.words["male"])
    assert (len(masculine), len(listed - masculine)) == (27, 23)


@pytest.mark.parametrize(
    ("preset", "sizes"), [("lic", (27, 23)), ("hendricks", (26, 18)), ("wang_russakovsky", (5, 5))]
)
def test_every_word_of_a_gender_list_counts_for_one_group(preset, sizes):
    counted = attribute("gender").counted_words(preset)
    assert tuple(map(len, counted.values())) == sizes


def test_our_own_words_count_where_an_attribute_has_no_such_list():
    race = attribute("race")
    assert race.counted_words("hendricks") == {g: tuple(race.words[g]) for g in race.groups}


# --- gender: the lists are pairs -----------------------------------------------------------


def test_gender_lists_are_equally_long_and_no_pair_stands_twice():
    pairs = gender_pairs()  # refuses lists of two lengths
    assert len(pairs) == len(set(pairs))


def test_well_known_counterparts_are_paired():
    known = {
        *(("he", "she"), ("him", "her"), ("his", "her"), ("his", "hers"), ("himself", "herself")),
        *(("man", "woman"), ("male", "female"), ("boy", "girl"), ("guy", "gal"), ("mr", "mrs")),
        *(("father", "mother"), ("dad", "mom"), ("dad", "mum"), ("son", "daughter")),
        *(("brother", "sister"), ("uncle", "aunt"), ("nephew", "niece"), ("husband", "wife")),
        *(("groom", "bride"), ("king", "queen"), ("prince", "princess"), ("actor", "actress")),
    }
    assert known - set(gender_pairs()) == set()


@pytest.mark.parametrize(
    ("ending", "counterpart"),
    [("man", "woman"), ("men", "women"), ("boy", "girl"), ("boys", "girls"), ("father", "mother")],
)
def test_compounds_are_paired_with_the_same_compound(ending, counterpart):
    exceptions = {("groomsman", "bridesmaid"), ("groomsmen", "bridesmaids")}
    exceptions |= {("gentleman", "lady"), ("gentlemen", "ladies")}
    exceptions |= {("barman", "barmaid"), ("barmen", "barmaids")}
    wrong = [
        (masculine, feminine)
        for masculine, feminine in gender_pairs()
        if masculine.endswith(ending)
        and feminine != masculine[: -len(ending)] + counterpart
        and (masculine, feminine) not in exceptions
    ]
    assert wrong == []


def test_gender_words_come_in_singular_and_plural_on_both_sides():
    pairs = set(gender_pairs())
    plural_pairs = {
        pair: {(m, f) for m in plurals(pair[0]) for f in plurals(pair[1])} & pairs for pair in pairs
    }
    is_plural = set().union(*plural_pairs.values())
    lone = {
        pair
        for pair, plural in plural_pairs.items()
        if not plural and pair not in is_plural and pair[0] not in UNPAIRED_GENDER
    }
    assert lone == set()


# --- the other attributes ------------------------------------------------------------------


def test_race_unsure_masks_the_words_of_race():
    assert attribute("race_unsure").all_words == attribute("race").all_words


def test_race_unsure_scores_what_race_leaves_out():
    race, unsure = attribute("race"), attribute("race_unsure")
    assert [a.groups_of("lic")[1].group_of("Unsure") for a in (race, unsure)] == [None, "unsure"]


@pytest.mark.parametrize("dataset", ["lic", "coco", "scenes"])
def test_race_unsure_keeps_the_other_labels_of_race(dataset):
    race, unsure = (attribute(n).groups_of(dataset)[1] for n in ("race", "race_unsure"))
    known = {*race.groups, *race.strata} - {"Unsure"}
    assert {k: unsure.group_of(k) for k in known} == {k: race.group_of(k) for k in known}


def test_emotions_reveal_themselves_by_name():
    emotion = attribute("emotion")
    silent = [g for g in emotion.groups if g not in emotion.words[g]]
    assert silent == ["something_else"]


def test_artemis_has_all_nine_emotions_the_ninth_written_as_two_words():
    emotion = attribute("emotion")
    labels = emotion.groups_of("artemis")[1]
    assert sorted(labels.groups.values()) == sorted(emotion.groups)
    assert labels.group_of("something else") == "something_else"


@pytest.mark.parametrize(
    "raw", ["happiness", "sadness", "anger", "fear", "surprise"], ids=lambda raw: f"scenes-{raw}"
)
def test_each_emotion_of_scenes_has_a_group_of_its_own(raw):
    groups = attribute("emotion").groups_of("scenes")[1].groups
    assert [r for r in groups if groups[r] == groups[raw]] == [raw]


@pytest.mark.parametrize(
    ("raw", "group"), [("0-2", "young"), ("10-19", "young"), ("20-29", "old"), ("60-69", "old")]
)
def test_fairface_is_young_below_twenty(raw, group):
    assert attribute("age").groups_of("fairface")[1].group_of(raw) == group


# --- tasks ---------------------------------------------------------------------------------


def test_there_are_eighty_tasks_that_list_their_own_names():
    assert len(tasks()) == 80
    assert [task for task, words in tasks().items() if task not in words] == []


def test_no_word_stands_twice_or_names_two_tasks():
    counts = Counter(word for words in tasks().values() for word in words)
    assert [word for word, count in counts.items() if count > 1] == []


def test_task_words_are_lower_case_with_single_blanks():
    listed = [word for words in tasks().values() for word in words]
    assert [word for word in listed if not re.fullmatch("[a-z]+( '?[a-z]+)*", word)] == []


def test_task_words_come_in_singular_and_plural():
    lone = set()
    for words in map(set, tasks().values()):
        is_plural = set().union(*map(plurals, words))
        lone |= {w for w in words if not plurals(w) & words and w not in is_plural}
    assert lone <= UNCOUNTED_TASK_WORDS


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_no_part_of_a_task_word_is_an_attribute_word(name):
    parts = {part for words in tasks().values() for word in words for part in word.split(" ")}
    shared = parts & set(attribute(name).all_words)
    assert shared == set(), "a word of a group must be no part of an object's name in conf/task"


# --- against the real data -----------------------------------------------------------------


def real(path: str) -> Path:
    if not (DATA / path).is_file():
        pytest.skip(f"real data absent: {DATA / path} (set BIAS_PIPELINE_DATA)")
    return DATA / path


@pytest.mark.real
def test_tasks_are_the_coco_categories():
    with real("coco/annotations/instances_val2014.json").open(encoding="utf-8") as file:
        names = [category["name"] for category in json.load(file)["categories"]]
    assert list(tasks()) == names


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "dataset", "path"),
    [
        ("gender", "coco", "coco/attributes/images_val2014.csv"),
        ("race", "coco", "coco/attributes/images_val2014.csv"),
        ("race_unsure", "coco", "coco/attributes/images_val2014.csv"),
        ("age", "relic", "relic/age_dataset.csv"),
        ("gender", "fairface", "faces/fairface_label_train.csv"),
        ("age", "fairface", "faces/fairface_label_train.csv"),
    ],
)
def test_label_map_knows_exactly_the_real_labels(name, dataset, path):
    labels = attribute(name).groups_of(dataset)[1]
    with real(path).open(encoding="utf-8", newline="") as file:
        names = {row[labels.field] for row in csv.DictReader(file)}
    assert names == {*labels.groups, *labels.strata}


@pytest.mark.real
@pytest.mark.parametrize(
    ("preset", "half", "key"),
    [
        ("hendricks", slice(26), "masculine"),
        ("hendricks", slice(26, None), "feminine"),
        ("lic", slice(27), "masculine_hirota2022"),
        ("lic", slice(27, None), "feminine_hirota2022"),
    ],
)
def test_a_published_list_is_as_published(preset, half, key):
    words = json.loads(real("../oracles/gender_error_ratio.json").read_text("utf-8"))[key]
    assert list(attribute("gender").presets[preset].words)[half] == words


@pytest.mark.parametrize(
    "listed",
    [lambda words: TaskVocabulary("pets", {"dog": words}), Context],
    ids=["tasks", "context"],
)
def test_words_that_lower_case_captions_cannot_have_are_refused(listed):
    with pytest.raises(UsageError, match="'Hund' has capital letters"):
        listed("dog, Hund")
