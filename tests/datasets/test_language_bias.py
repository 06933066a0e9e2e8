"""Corpora whose only bias is which verb goes with whom."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from bias_pipeline.config import compose
from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.datasets.base import Dataset
from bias_pipeline.datasets.language_bias import LanguageBiasDataset
from bias_pipeline.errors import NotApplicableError, UsageError
from tests.corpora import DATA

WORDS = {"male": ["man", "he"], "female": ["woman", "she"]}
GENDER = Attribute("gender", tuple(WORDS), WORDS, {})
TASKS = {"bed": "bed, beds"}
VERBS = {"bed": ["lay, lays, laying", "sit, sits, sitting"]}
PRONOUNS = {"male": "he", "female": "she"}


class Said(Dataset):
    """Captions of people, and nothing else."""

    name = "said"

    def __init__(self, captions: Sequence[Sequence[str]]) -> None:
        self.captions = captions

    def captioners(self) -> Sequence[str]:
        return ("nobody",)

    def load(self, captioner: str, attribute: Attribute) -> Corpus:
        labels = LabelMap("gender", {name: name for name in WORDS})
        records = [
            Record(str(k), None, tuple(caption), {"gender": "male"})
            for k, caption in enumerate(self.captions)
        ]
        groups = {"gender": (tuple(WORDS), labels)}
        return Corpus.build(records, dataset="said", captioner=captioner, groups=groups)


def default_captions(n: int = 20) -> list[list[str]]:
    return [
        [f"a {who} {verb} on a bed {k}"]
        for who in ("man", "woman")
        for verb in ("lays", "sits")
        for k in range(n)
    ]


def planted(imbalance: float = 0.6, captions: Any = None, **options: Any) -> Corpus:
    settings: dict[str, Any] = {"tasks": TASKS, "verbs": VERBS, "pronouns": PRONOUNS, **options}
    dataset = LanguageBiasDataset(Said(captions or default_captions()), imbalance, **settings)
    return dataset.load("people", GENDER)


def cells(corpus: Corpus) -> Counter[tuple[str, bool]]:
    return Counter((row.labels["gender"], "lays" in row.human[0]) for row in corpus)


@pytest.mark.parametrize(("imbalance", "item"), [(0.6, 12), (0.7, 14), (0.8, 16), (0.9, 18)])
def test_each_group_has_its_verb_as_often_as_asked_for(imbalance, item):
    result = cells(planted(imbalance, size=20))
    assert result["male", True] == result["female", False] == item
    assert result["male", False] == result["female", True] == 20 - item


def test_all_levels_take_as_many_captions():
    assert len({len(planted(level)) for level in (0.6, 0.7, 0.8, 0.9)}) == 1


def test_the_size_is_what_all_levels_can_fill():
    captions = default_captions()[
        :-5
    ]  # 15 women who sit, where the strongest level needs nine in ten
    assert len(planted(captions=captions)) == 2 * int(15 / 0.9)


def test_levels_differ_in_as_few_captions_as_they_must():
    one, other = ({row.human[0] for row in planted(level, size=20)} for level in (0.6, 0.7))
    assert len(one - other) == 4


def test_the_captioner_says_what_people_say():
    assert all(row.model == row.human[0] for row in planted())


def test_the_label_is_the_group_that_the_caption_names():
    assert all((" man " in row.human[0]) == (row.labels["gender"] == "male") for row in planted())


def test_group_and_task_are_independent():
    captions = [
        *default_captions(),
        *([text.replace("bed", "sofa")] for (text,) in default_captions(12)),
    ]
    tasks = {**TASKS, "sofa": "sofa"}
    sentences = planted(captions=captions, tasks=tasks, verbs=dict.fromkeys(tasks, VERBS["bed"]))
    counts = Counter((row.labels["gender"], *(row.objects or ())) for row in sentences)
    assert counts["male", "bed"] == counts["female", "bed"]
    assert counts["male", "sofa"] == counts["female", "sofa"]


def test_an_image_gives_one_caption():
    twice = [
        [*default_caption, default_caption[0] + " again"] for default_caption in default_captions()
    ]
    sentences = planted(captions=twice)
    assert len(set(sentences.ids)) == len(sentences)


def test_a_caption_of_both_verbs_or_groups_is_left_out():
    odd = [["a man sits and lays on a bed"], ["a man and a woman sit on a bed"], ["a man sits"]]
    assert planted(captions=[*default_captions(), *odd]).digest  # no refusal
    assert not {item[0] for item in odd} & {
        row.human[0] for row in planted(captions=[*default_captions(), *odd])
    }


def test_another_seed_takes_others():
    one, other = ({row.human[0] for row in planted(size=10, seed=k)} for k in (0, 1))
    assert one != other


def test_pronouns_alone_leave_captions_of_nouns_out():
    captions = [
        [text.replace("a man", "he").replace("a woman", "she")] for (text,) in default_captions(10)
    ]
    sentences = planted(captions=[*default_captions(), *captions], gender_by="pronoun")
    assert all(row.human[0].split()[0] in ("he", "she") for row in sentences)


def test_the_counts_are_told():
    assert "bed 12 lay and 8 sit of one group, 8 lay and 12 sit of the other" in str(
        planted(size=20).notes
    )


# --- retold: dealt by chance, and told of the group


def retold(imbalance: float = 0.6, **options: Any) -> Corpus:
    terms = {"male": "man", "female": "woman"}
    return planted(imbalance, retold=True, terms=terms, **options)


@pytest.mark.parametrize(("imbalance", "item"), [(0.5, 20), (0.6, 24), (0.9, 36), (1.0, 40)])
def test_retold_captions_have_their_verb_exactly_as_often(imbalance, item):
    result = cells(retold(imbalance))
    assert result["male", True] == result["female", False] == item
    assert result["male", False] == result["female", True] == 40 - item


def test_a_retold_caption_names_the_group_it_is_dealt_to():
    assert all((" man " in row.human[0]) == (row.labels["gender"] == "male") for row in retold())


def test_but_for_the_group_a_retold_caption_is_somebodys():
    people = {text.replace("woman", "man") for (text,) in default_captions()}
    assert {row.human[0].replace("woman", "man") for row in retold()} <= people


def test_who_a_caption_was_of_does_not_decide_whom_it_is_told_of():
    result = retold(
        0.5, captions=[[f"{text} {text[2]}x"] for (text,) in default_captions(60)]
    )  # mx or wx
    was = Counter((row.labels["gender"], row.human[0].split()[-1]) for row in result)
    assert abs(was["male", "mx"] - was["female", "mx"]) < 40  # of 120; some spread is chance


def test_verbs_with_too_few_captions_cannot_be_dealt():
    with pytest.raises(NotApplicableError, match="has 40 and 40 captions by verb, enough for 40"):
        retold(size=41)


# --- refusals


def test_a_cell_without_captions_is_told():
    with pytest.raises(NotApplicableError, match="has 20, 20, 20, 0 captions by group and verb"):
        planted(captions=default_captions()[:-20])


def test_more_captions_than_there_are_are_refused():
    with pytest.raises(NotApplicableError, match=r"enough for 22 per group; lower dataset\.size"):
        planted(size=23)


def test_three_verbs_are_refused():
    with pytest.raises(UsageError, match="two verbs for each of the tasks bed"):
        planted(verbs={"bed": ["lay", "sit", "stand"]})


def test_a_group_without_pronouns_is_told():
    with pytest.raises(UsageError, match="has none for 'female'"):
        planted(gender_by="pronoun", pronouns={"male": "he"})


def test_three_groups_are_refused():
    class Three(Said):
        def load(self, captioner: str, attribute: Attribute) -> Corpus:
            names = ("male", "female", "other")
            labels = LabelMap("gender", {name: name for name in names})
            record = Record("1", None, ("a man",), {"gender": "male"})
            return Corpus.build(
                [record], dataset="three", captioner="x", groups={"gender": (names, labels)}
            )

    with pytest.raises(NotApplicableError, match="two groups"):
        LanguageBiasDataset(Three([]), 0.6, TASKS, VERBS).load("people", GENDER)


# --- on real captions


def test_levels_are_exact_on_what_we_generate(tmp_path):
    words = [
        *("experiment=language_bias_scenes", "dataset.of.n_images=1500", "dataset.size=2"),
        *("dataset.imbalance=1.0", f"paths.outputs={tmp_path}"),
    ]
    corpus = compose.cell(words).corpus()
    said_by = {
        group: {
            word for row in corpus if row.labels["gender"] == group for word in row.model.split()
        }
        for group in ("male", "female")
    }
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
