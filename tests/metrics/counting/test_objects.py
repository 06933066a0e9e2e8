"""Captioners that invent objects for a group, for a scene and for nobody; what is refused."""

import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

import bias_pipeline as bp
from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.errors import DataError, NotApplicableError
from bias_pipeline.metrics.base import Score
from bias_pipeline.metrics.counting.object_answer import composition
from bias_pipeline.metrics.functional.invention import Amount
from bias_pipeline.run import compose
from tests.corpora import GENDER, make_corpus

CELL = compose.cell(["metric=objects"])
METRIC = replace(CELL.build("metric"), attribute=GENDER)
NOUNS = {"f": "woman", "m": "man"}
CHANCES = {"surfboard": (0.2, 0.5), "oven": (0.5, 0.2), "dog": (0.3, 0.3)}  # of women and men
Add = Callable[[str, frozenset[str], random.Random], str]


def nothing(group: str, objects: frozenset[str], generator: random.Random) -> str:
    return ""


def sometimes(thing: str, women: float, men: float) -> Add:
    """A captioner that names a thing in captions of so many women and men."""
    return lambda group, objects, generator: (
        f" with a {thing}" if generator.random() < (women if group == "f" else men) else ""
    )


def in_kitchens(group: str, objects: frozenset[str], generator: random.Random) -> str:
    """A captioner that names a cup where there is an oven, whoever is shown."""
    return " with a cup" if "oven" in objects and generator.random() < 0.4 else ""


def records(n: int, add: Add, *, annotators: int = 3, seed: int = 0) -> list[Record]:
    """Images of women and men; annotators name what there is, and the captioner adds a thing."""
    generator, made = random.Random(seed), []
    for i in range(n):
        group = "f" if generator.random() < 0.4 else "m"
        chances = {name: rates[group == "m"] for name, rates in CHANCES.items()}
        objects = frozenset(name for name, rate in chances.items() if generator.random() < rate)

        def caption(group: str = group, objects: frozenset[str] = objects) -> str:
            names = [f"a {name}" for name in sorted(objects) if generator.random() < 0.7]
            return " and ".join([f"a {NOUNS[group]}", *names])

        human = tuple(caption() for _ in range(annotators))
        labels = {"gender": group, "faith": generator.choice("abc")}
        model = f"{caption()}{add(group, objects, generator)}"
        made.append(Record(str(i), model, human, labels, objects))
    return made


def score_captions(add: Add, n: int = 1500, **options: int) -> Score:
    return METRIC.compute(make_corpus(records(n, add, **options)), splits=[])


def answer(score: Score) -> dict[str, object]:
    return score.audit["objects"]


def value(score: Score, part: str) -> float:
    return score.parts[part].value


@pytest.fixture(scope="module")
def planted_score() -> Score:
    return score_captions(sometimes("handbag", 0.12, 0.02))


def test_an_object_invented_for_a_group_is_noticed_with_its_size(planted_score):
    assert answer(planted_score)["answer"] == "yes"
    assert answer(planted_score)["named"] == ["handbag"]
    assert 0 < answer(planted_score)["p_value"] < 0.01
    assert value(planted_score, "object:handbag") == pytest.approx(0.10, abs=0.03)
    assert value(planted_score, "score") == pytest.approx(0.05, abs=0.02)
    assert value(planted_score, "invented:female") == pytest.approx(0.12, abs=0.03)
    assert value(planted_score, "gap") == pytest.approx(0.10, abs=0.03)
    assert value(planted_score, "gap:alike") == pytest.approx(0.10, abs=0.03)


def test_the_sentences_say_how_many_captions_and_of_whom(planted_score):
    first, second, *_ = sentences = answer(planted_score)["sentences"]
    assert first.startswith("handbag where there is none (male ")
    assert first.endswith("more of female on comparable pictures")
    assert second.startswith("of 100 captions ")
    assert second.endswith("name an absent object that goes with the group")
    assert any("annotators' difference" in text and "no verdict" in text for text in sentences)
    assert set(sentences) <= set(planted_score.notes)


def test_the_table_has_a_line_for_each_object(planted_score):
    line = planted_score.tables["objects"][0]
    assert (line["object"], line["group"], line["others"]) == ("handbag", "female", "male")
    assert line["beyond chance"] is True
    assert line["p"] < 1e-6
    assert line["invented"] > 0.08 > 0.04 > line["invented of others"]


def test_examples_are_captions_of_either_group_that_name_an_absent_object(planted_score):
    examples = planted_score.tables["invented_captions"]
    assert {line["object"] for line in examples} == {"handbag"}
    assert sorted(str(line["group"]) for line in examples) == ["female", "female", "male", "male"]
    assert all("handbag" in str(line["caption"]) for line in examples)


def test_the_parts_are_those_of_the_contract(planted_score):
    names = {"score", "gap", "gap:alike", "invented", "recall", "object:handbag", "null"}
    further = {"gap:number", "gap:words", "gap:recall", "invented:mentions", "recall:human"}
    of_groups = {"invented:female", "invented:female:mentions", "recall:male:increase"}
    assert names | further | of_groups <= set(planted_score.parts)
    increase = value(planted_score, "recall") - value(planted_score, "recall:human")
    assert value(planted_score, "recall:increase") == pytest.approx(increase)
    n_images = sum(planted_score.parts[f"invented:{name}"].n_images for name in GENDER.groups)
    assert n_images == planted_score.parts["invented"].n_images == 1500


def test_the_manifest_has_what_an_audit_reads(planted_score):
    facts = answer(planted_score)
    assert {"answer", "reason", "p_value", "named", "sentences", "pictures", "spread"} == set(facts)
    assert set(facts["pictures"]["female"]) == {"overlap", "accuracy"}
    low, high = facts["spread"]["female"]["interval"]
    assert 0 < low < facts["spread"]["female"]["score"] == value(planted_score, "score") < high


@pytest.mark.parametrize("seed", range(4))
def test_a_captioner_that_invents_alike_is_not_accused(seed):
    score = score_captions(sometimes("handbag", 0.1, 0.1), 800, seed=seed)
    assert answer(score)["answer"] in ("no", "cannot_tell")
    assert answer(score)["p_value"] > 0.05
    assert any("of 100 captions name an absent object" in note for note in score.notes)


@pytest.mark.parametrize("seed", range(3))
def test_what_follows_the_scene_is_explained_by_the_pictures(seed):
    score = score_captions(in_kitchens, 2000, seed=seed)
    assert answer(score)["answer"] != "yes"
    assert value(score, "gap") > 0.06
    assert abs(value(score, "gap:alike")) < 0.04
    assert any("composition explains" in note for note in score.notes)


@pytest.mark.parametrize(
    ("raw", "alike", "sentence"),
    [
        (0.074, 0.019, "composition explains 5.5 of 7.4 points"),
        (-0.074, -0.019, "composition explains 5.5 of 7.4 points"),
        (0.074, -0.019, "composition explains all 7.4 points"),
        (0.074, 0.09, "composition explains none of 7.4 points"),
        (0.01, 0.0, ""),
    ],
)
def test_what_composition_explains(raw, alike, sentence):
    assert composition(Amount(raw, 0.01), Amount(alike, 0.01)) == sentence


def test_what_annotators_name_is_there():
    made = [
        replace(r, human=(*r.human, "a person with a tie"))
        for r in records(600, sometimes("tie", 0.3, 0.0))
    ]
    assert value(METRIC.compute(make_corpus(made), splits=[]), "invented") == 0


def test_the_longest_phrase_names_the_object():
    made = [
        replace(r, model="a woman eats a hot dog", objects=frozenset({"hot dog"}))
        for r in records(300, nothing)
    ]
    assert value(METRIC.compute(make_corpus(made), splits=[]), "invented") == 0


def test_an_annotator_who_is_the_captioner_is_no_witness():
    """Else whatever a person names would be there."""
    made = records(600, sometimes("handbag", 0.1, 0.1))
    person = [replace(r, human=(r.model, *r.human[1:])) for r in made]
    plain = [replace(r, human=r.human[1:]) for r in made]
    one, other = (METRIC.compute(make_corpus(m), splits=[]) for m in (person, plain))
    assert value(one, "invented") == value(other, "invented") > 0.05
    assert value(one, "score") == value(other, "score")
    assert any("600 of 600 captions are an annotator's own" in note for note in one.notes)


def test_a_model_that_once_writes_what_an_annotator_wrote_has_all_annotators():
    made = records(600, sometimes("handbag", 0.5, 0.5))
    same = [replace(r, human=(r.model, *r.human[1:])) if i < 100 else r for i, r in enumerate(made)]
    one, other = (METRIC.compute(make_corpus(m), splits=[]) for m in (same, made))
    assert value(one, "invented") < value(other, "invented") - 0.03
    assert not any("annotator's own" in note for note in one.notes)


# --- what cannot be told ----------------------------------------------------------------------


def test_without_objects_it_is_refused_with_what_to_give():
    made = [replace(r, objects=None) for r in records(600, nothing)]
    with pytest.raises(NotApplicableError, match=r"dataset.instances=FILE \(audit --objects FILE"):
        METRIC.compute(make_corpus(made), splits=[])


def test_objects_that_are_none_of_the_counted_ones_are_refused():
    made = [replace(r, objects=frozenset({"quasar"})) for r in records(600, nothing)]
    with pytest.raises(NotApplicableError, match=r"such as quasar, and none of the 79 counted"):
        METRIC.compute(make_corpus(made), splits=[])
    with pytest.raises(DataError, match=r"mine.json: 600 of 600 objects"):
        METRIC.compute(make_corpus(made, objects_file="mine.json"), splits=[])


def test_images_without_known_objects_do_not_count():
    made = [replace(r, objects=None) if i < 90 else r for i, r in enumerate(records(600, nothing))]
    score = METRIC.compute(make_corpus(made), splits=[])
    assert score.parts["score"].n_images == 510
    assert any("90 images without known objects" in note for note in score.notes)
    few = [replace(r, objects=None) if i > 90 else r for i, r in enumerate(made)]
    with pytest.raises(NotApplicableError, match=r"a caption, known objects and annotators' cap"):
        METRIC.compute(make_corpus(few), splits=[])


def test_without_annotators_annotated_objects_decide_and_it_is_said():
    made = [replace(r, human=()) for r in records(1500, sometimes("handbag", 0.12, 0.02))]
    score = METRIC.compute(make_corpus(made), splits=[])
    assert answer(score)["named"] == ["handbag"]
    assert any(note.startswith("without annotators' captions an object") for note in score.notes)
    assert {"gap:words", "gap:recall", "recall:human"}.isdisjoint(score.parts)


def test_an_image_without_annotators_is_left_out_and_counted():
    made = records(600, nothing)
    score = METRIC.compute(make_corpus([replace(made[0], human=()), *made[1:]]), splits=[])
    assert score.parts["score"].n_images == 599
    assert any("1 image without annotators' captions: objects" in note for note in score.notes)


def test_few_images_tell_nothing_and_fewer_are_refused():
    score = score_captions(sometimes("handbag", 0.9, 0.0), 400)
    assert answer(score)["answer"] == "cannot_tell"
    assert "too few" in answer(score)["reason"]
    assert answer(score)["p_value"] is None
    with pytest.raises(NotApplicableError, match=r"objects needs 100"):
        score_captions(nothing, 99)
    few = [r for r in records(600, nothing) if r.labels["gender"] == "m" or int(r.id) < 40]
    with pytest.raises(NotApplicableError, match=r"objects compares groups of at least 30 images"):
        METRIC.compute(make_corpus(few), splits=[])


def test_who_invents_nothing_invents_for_nobody():
    score = score_captions(nothing, 600)
    assert value(score, "invented") == 0
    assert score.parts["invented"].ci_high > 0.002  # none was seen, some may be
    assert value(score, "score") == 0
    estimate = score.parts["score"]
    assert (estimate.ci_low, estimate.ci_high) == (0, score.parts["invented"].ci_high)
    assert answer(score)["answer"] == "no"
    assert "objects" not in score.tables


def test_an_object_in_all_captions_goes_with_nobody():
    score = score_captions(sometimes("handbag", 1.0, 1.0), 600)
    assert value(score, "invented") == 1
    assert answer(score)["answer"] == "no"
    assert "object:handbag" not in score.parts
    assert (value(score, "gap"), value(score, "gap:alike")) == pytest.approx((0, 0), abs=1e-9)


@pytest.mark.parametrize("caption", ["woman, dog, street", "12", "Man.", '{"caption": "a dog"}'])
def test_captions_in_other_forms_are_read(caption):
    made = [replace(r, model=caption) for r in records(600, nothing)]
    score = METRIC.compute(make_corpus(made), splits=[])
    assert answer(score)["answer"] != "yes"


@pytest.mark.parametrize("side", ["model", "human"])
@pytest.mark.parametrize("language", ["en", "de"])
def test_captions_of_another_language_are_not_tested(side, language):
    german = "ein Mensch steht mit einem Hund vor dem Haus und wartet auf den Bus"
    texts = {"model": german} if side == "model" else {"human": (german,) * 3}
    made = [replace(r, **texts) for r in records(600, sometimes("handbag", 0.3, 0.0))]
    words = {"male": ["man", "mensch"], "female": ["woman"]}
    attribute = replace(GENDER, words=words, language=language)
    score = replace(METRIC, attribute=attribute).compute(make_corpus(made), splits=[])
    assert answer(score)["answer"] == "cannot_tell"
    assert answer(score)["reason"].startswith("the word lists are English, and 0% of ")


def test_capitals_count_as_captions_do():
    lower = records(600, sometimes("handbag", 0.3, 0.1))
    upper = [replace(r, model=r.model.upper()) for r in lower]
    one, other = (METRIC.compute(make_corpus(made), splits=[]) for made in (lower, upper))
    assert value(one, "score") == value(other, "score")


# --- other attributes -------------------------------------------------------------------------

FAITH = Attribute("faith", ("a", "b", "c"), {"a": ["alpha"], "b": ["beta"], "c": ["gamma"]}, {})


def of_faith(add: Callable[[str, random.Random], str], n: int = 1500) -> Corpus:
    made = [
        replace(r, model=r.model + add(r.labels["faith"], random.Random(r.id)))
        for r in records(n, nothing)
    ]
    labels = LabelMap("faith", {"a": "a", "b": "b", "c": "c"})
    return Corpus.build(
        made, dataset="toy", captioner="toy", groups={"faith": (("a", "b", "c"), labels)}
    )


def test_each_of_several_groups_is_compared_with_the_others():
    def book(faith: str, generator: random.Random) -> str:
        return " with a book" if generator.random() < (0.3 if faith == "b" else 0.05) else ""

    metric = replace(METRIC, attribute=FAITH)
    score = metric.compute(of_faith(book), splits=[])
    assert (answer(score)["answer"], set(answer(score)["named"])) == ("yes", {"book"})
    assert value(score, "object:b:book") == pytest.approx(0.25, abs=0.05)
    assert value(score, "object:a:book") < -0.05
    assert value(score, "gap:b") == pytest.approx(value(score, "gap:b:alike"), abs=0.03)
    groups = [value(score, f"group:{name}") for name in "abc"]
    assert value(score, "score") == pytest.approx(sum(groups) / 3)
    alike = metric.compute(
        of_faith(lambda _, g: " with a book" if g.random() < 0.1 else ""), splits=[]
    )
    assert answer(alike)["answer"] != "yes"


@pytest.mark.parametrize("attribute", ["[gender,race]", "race", "age"])
def test_any_attribute_is_compared(attribute):
    cell = compose.cell(["metric=objects", f"attribute={attribute}", "dataset.n_images=1200"])
    score = cell.build("metric").compute(cell.corpus(), splits=[])
    assert "gap" in {name.partition(":")[0] for name in score.parts}
    assert not math.isnan(value(score, "invented"))


def test_a_users_own_data_are_scored_from_python():
    made = records(600, sometimes("handbag", 0.3, 0.0))
    words = {"f": "female", "m": "male"}
    result = bp.score(
        "objects",
        [r.model for r in made],
        [words[r.labels["gender"]] for r in made],
        [list(r.human) for r in made],
        [sorted(r.objects) for r in made],
    )
    assert result.manifest["audit"]["objects"]["named"] == ["handbag"]
