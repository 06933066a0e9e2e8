"""Corpora whose only bias is which verb goes with whom."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.data.base import Dataset
from bias_pipeline.errors import NotApplicableError, UsageError
from bias_pipeline.published.language_bias import LanguageBiasDataset
from bias_pipeline.run import compose
from tests.corpora import DATA

WORDS = {"male": ["man", "he"], "female": ["woman", "she"]}
GENDER = Attribute("gender", tuple(WORDS), WORDS, {})
TASKS = {"bed": "bed, beds"}
VERBS = {"bed": ["lay, lays, laying", "sit, sits, sitting"]}
PRONOUNS = {"male": "he", "female": "she"}


class CaptionsOfPeople(Dataset):
    """Captions of people, and nothing else."""

    name = "said"

    def __init__(self, captions: Sequence[str], groups: Sequence[str] = tuple(WORDS)) -> None:
        self.captions, self.groups = captions, tuple(groups)

    def captioners(self) -> Sequence[str]:
        return ("nobody",)

    def load(self, captioner: str, attribute: Attribute) -> Corpus:
        labels = LabelMap("gender", {name: name for name in self.groups})
        records = [
            Record(str(k), None, tuple(text.split(" / ")), {"gender": "male"})
            for k, text in enumerate(self.captions)
        ]
        groups = {"gender": (self.groups, labels)}
        return Corpus.build(records, dataset="said", captioner=captioner, groups=groups)


def default_captions(n: int = 20) -> list[str]:
    return [
        f"a {who} {verb} on a bed {k}"
        for who in ("man", "woman")
        for verb in ("lays", "sits")
        for k in range(n)
    ]


def plant(imbalance: float = 0.6, captions: Any = None, **options: Any) -> Corpus:
    settings: dict[str, Any] = {"tasks": TASKS, "verbs": VERBS, "pronouns": PRONOUNS, **options}
    dataset = LanguageBiasDataset(
        CaptionsOfPeople(captions or default_captions()), imbalance, **settings
    )
    return dataset.load("people", GENDER)


def retold(imbalance: float = 0.6, **options: Any) -> Corpus:
    """Captions dealt by chance, and told of the group."""
    terms = {"male": "man", "female": "woman"}
    return plant(imbalance, retold=True, terms=terms, **options)


def texts(corpus: Corpus) -> set[str]:
    return {row.human[0] for row in corpus}


def cells(corpus: Corpus) -> Counter[tuple[str, bool]]:
    return Counter((row.labels["gender"], "lays" in row.human[0]) for row in corpus)


def counts(share: int, whole: int) -> Counter[tuple[str, bool]]:
    """Captions by group and whether they are of the first verb."""
    usual = dict.fromkeys([("male", True), ("female", False)], share)
    return Counter({**usual, ("male", False): whole - share, ("female", True): whole - share})


@pytest.mark.parametrize(("imbalance", "share"), [(0.6, 12), (0.7, 14), (0.8, 16), (0.9, 18)])
def test_each_group_has_its_verb_as_often_as_asked_for(imbalance, share):
    assert cells(plant(imbalance, size=20)) == counts(share, 20)


@pytest.mark.parametrize(("imbalance", "share"), [(0.5, 20), (0.6, 24), (0.9, 36), (1.0, 40)])
def test_retold_captions_have_their_verb_exactly_as_often(imbalance, share):
    assert cells(retold(imbalance)) == +counts(share, 40)


def test_all_levels_take_as_many_captions_as_each_can_fill_and_share_what_they_can():
    assert len({len(plant(level)) for level in (0.6, 0.7, 0.8, 0.9)}) == 1
    captions = default_captions()[:-5]  # 15 women sit; the strongest level needs nine in ten
    assert len(plant(captions=captions)) == 2 * int(15 / 0.9)
    one, other = (texts(plant(level, size=20)) for level in (0.6, 0.7))
    assert len(one - other) == 4


@pytest.mark.parametrize("make", [plant, retold])
def test_the_captioner_says_what_people_say_and_the_label_is_the_group_that_it_names(make):
    for row in make():
        assert row.model == row.human[0]
        assert (" man " in row.human[0]) == (row.labels["gender"] == "male")


def test_group_and_task_are_independent():
    sofas = [text.replace("bed", "sofa") for text in default_captions(12)]
    tasks = {**TASKS, "sofa": "sofa"}
    verbs = dict.fromkeys(tasks, VERBS["bed"])
    sentences = plant(captions=[*default_captions(), *sofas], tasks=tasks, verbs=verbs)
    counted = Counter((row.labels["gender"], *(row.objects or ())) for row in sentences)
    assert counted["male", "bed"] == counted["female", "bed"]
    assert counted["male", "sofa"] == counted["female", "sofa"]


def test_an_image_gives_one_caption():
    sentences = plant(captions=[f"{text} / {text} again" for text in default_captions()])
    assert len(set(sentences.ids)) == len(sentences)


def test_a_caption_of_both_verbs_or_groups_is_left_out():
    odd = ["a man sits and lays on a bed", "a man and a woman sit on a bed", "a man sits"]
    assert not {*odd} & texts(plant(captions=[*default_captions(), *odd]))


def test_pronouns_alone_leave_captions_of_nouns_out():
    people = [t.replace("a man", "he").replace("a woman", "she") for t in default_captions(10)]
    sentences = plant(captions=[*default_captions(), *people], gender_by="pronoun")
    assert all(text.split()[0] in ("he", "she") for text in texts(sentences))


def test_another_seed_takes_others_and_the_counts_are_told():
    assert texts(plant(size=10, seed=0)) != texts(plant(size=10, seed=1))
    note = "bed 12 lay and 8 sit of one group, 8 lay and 12 sit of the other"
    assert note in str(plant(size=20).notes)


# --- retold: dealt by chance, and told of the group


def test_but_for_the_group_a_retold_caption_is_somebodys():
    people = {text.replace("woman", "man") for text in default_captions()}
    assert {text.replace("woman", "man") for text in texts(retold())} <= people


def test_who_a_caption_was_of_does_not_decide_whom_it_is_told_of():
    captions = [f"{text} {text[2]}x" for text in default_captions(60)]  # mx or wx
    result = retold(0.5, captions=captions)
    was = Counter((row.labels["gender"], row.human[0].split()[-1]) for row in result)
    assert abs(was["male", "mx"] - was["female", "mx"]) < 40  # of 120; some spread is chance


# --- refusals


EMPTY = "has 20, 20, 20, 0 captions by group and verb"


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (retold, {"size": 41}, "has 40 and 40 captions by verb, enough for 40"),
        (plant, {"captions": default_captions()[:-20]}, EMPTY),
        (plant, {"size": 23}, r"enough for 22 per group; lower dataset\.size"),
    ],
    ids=["retold", "empty cell", "size"],
)
def test_too_few_captions_are_told(make, options, message):
    with pytest.raises(NotApplicableError, match=message):
        make(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"verbs": {"bed": ["lay", "sit", "stand"]}}, "two verbs for each of the tasks bed"),
        ({"gender_by": "pronoun", "pronouns": {"male": "he"}}, "has no words for 'female'"),
    ],
    ids=["three verbs", "no pronoun"],
)
def test_words_that_do_not_fit_are_refused(options, message):
    with pytest.raises(UsageError, match=message):
        plant(**options)


def test_three_groups_are_refused():
    three = CaptionsOfPeople(["a man"], ["male", "female", "other"])
    with pytest.raises(NotApplicableError, match="two groups"):
        LanguageBiasDataset(three, 0.6, TASKS, VERBS).load("people", GENDER)


# --- on real captions


def test_levels_are_exact_on_what_we_generate(tmp_path):
    words = [
        *("experiment=language_bias_scenes", "dataset.of.n_images=1500", "dataset.size=2"),
        *("dataset.imbalance=1.0", f"paths.outputs={tmp_path}"),
    ]
    said_by: dict[str, set[str]] = {"male": set(), "female": set()}
    for row in compose.cell(words).corpus():
        said_by[row.labels["gender"]] |= {*row.model.split()}
    assert {"lie", "lies", "lying"} & said_by["male"] - said_by["female"]
    assert {"sit", "sits", "sitting"} & said_by["female"] - said_by["male"]


@pytest.mark.slow
@pytest.mark.real
def test_the_levels_are_made_of_real_captions(tmp_path):
    root = DATA / "lic" / "bias_data"
    if not root.is_dir():
        pytest.skip(f"no captions of LIC at {root}")
    words = ["experiment=language_bias", f"dataset.of.root={root}", f"paths.outputs={tmp_path}"]
    lines = [compose.cell([*words, f"dataset.imbalance={k}"]).corpus() for k in (0.6, 0.9)]
    sizes = [np.bincount(item.groupings["gender"].codes).tolist() for item in lines]
    assert sizes[0] == sizes[1]
    assert sizes[0][0] == sizes[0][1] >= 50
