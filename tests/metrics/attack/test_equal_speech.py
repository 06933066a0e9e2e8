"""Scores at equal style: speakers without bias stay at 0, planted bias is seen, reach is told."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from bias_pipeline.attack.logistic import ConvexProbe
from bias_pipeline.attack.ngram import Ngram
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.corpus.split_rules import CrossFit
from bias_pipeline.metrics.attack.extra_parts import NO_SECOND_PERSON, mean_reach
from bias_pipeline.metrics.attack.lic import LIC, Leakage
from bias_pipeline.metrics.base import Score
from bias_pipeline.metrics.value_names import ALIKE, BEYOND
from bias_pipeline.run.cell import run_cell
from bias_pipeline.stats.bootstrap import Bootstrap
from bias_pipeline.stats.scoring import Lic
from bias_pipeline.text.align import ConstantAlignment
from bias_pipeline.text.mask import MaskWords
from bias_pipeline.text.matched import CHANGES, MatchedAlignment
from bias_pipeline.text.tokenize import Tokenize
from bias_pipeline.text.transform import Transform
from tests.corpora import GENDER, make_corpus
from tests.metrics.attack.test_dbac import TASKS, TWO, WORDS, corpus_of
from tests.metrics.attack.test_dbac import build as build_dbac
from tests.metrics.places import place
from tests.witness import alike
from tests.witness.attackers import PENALTY
from tests.witness.equal_speech import attack, match_words

SEEDS = (0, 12)
TYPICAL = {"m": ("truck", "hammer", "tie"), "f": ("flower", "purse", "dress")}
NEUTRAL = ("dog", "tree", "bus", "cup", "chair", "road")


def scene_words(random: np.random.Generator, group: str, leak: float) -> list[str]:
    """What a person says: two words of the group or of the other one, three of neither."""
    other = "f" if group == "m" else "m"
    of = [group if random.random() < leak else other for _ in range(2)]
    words = [str(random.choice(TYPICAL[one])) for one in of]
    return [*words, *random.choice(NEUTRAL, 3, replace=False).tolist()]


def corpus(
    model: Callable[[np.random.Generator, str, list[str]], list[str]],
    n_images: int = 1200,
    n_people: int = 4,
) -> Corpus:
    """Images of which people say things, and a captioner who makes something of another person's.

    Args:
        model: makes the captioner's words of those of one more person.
        n_images: how many.
        n_people: how many captions an image has.
    """
    random = np.random.default_rng(0)
    records = []
    for i in range(n_images):
        group = "mf"[i % 2]
        scene = scene_words(random, group, 0.7)
        speakers = range(n_people + 1)
        people = [" ".join(w for w in scene if random.random() < 0.8) or "dog" for _ in speakers]
        words = model(random, group, people[0].split())
        records.append(Record(str(i), " ".join(words), tuple(people[1:]), {"gender": group}))
    return make_corpus(records)


def keep_words(_: np.random.Generator, __: str, words: list[str]) -> list[str]:
    return words


def half(random: np.random.Generator, _: str, words: list[str]) -> list[str]:
    return [w for w in words if random.random() < 0.5] or words[:1]


def double_words(_: np.random.Generator, __: str, words: list[str]) -> list[str]:
    return [*words, *words]


def add_stereotype(random: np.random.Generator, group: str, words: list[str]) -> list[str]:
    extra = [str(random.choice(TYPICAL[group]))] if random.random() < 0.4 else []
    return [*words, *extra]


def talkative(n_images: int = 1200, planted: float = 0.0) -> Corpus:
    """A captioner who says all of the background, of which people say a tenth.

    Args:
        n_images: how many.
        planted: the share of its captions with one more word that is typical of the group.
    """
    random = np.random.default_rng(0)
    records = []
    for i in range(n_images):
        group = "mf"[i % 2]
        scene, behind = scene_words(random, group, 0.7), scene_words(random, group, 0.7)
        behind = [f"{word}s" for word in behind]
        people = [
            " ".join(
                [w for w in scene if random.random() < 0.8]
                + [w for w in behind if random.random() < 0.1]
            )
            for _ in range(5)
        ]
        extra = [str(random.choice(TYPICAL[group]))] if random.random() < planted else []
        records.append(
            Record(
                str(i), " ".join([people[0], *behind, *extra]), tuple(people[1:]), {"gender": group}
            )
        )
    return make_corpus(records)


BOTH = MatchedAlignment(GENDER.words, sides=("human", "model"))


def score(data: Corpus, align: Transform | None = None, penalty: float = 1.0) -> Score:
    metric = LIC(
        GENDER,
        [Tokenize(), MaskWords(GENDER.words, "<gender>"), align or MatchedAlignment(GENDER.words)],
        ConvexProbe(Ngram(order=1), inverse_penalty=penalty),
        CrossFit(),
        Lic("groups"),
        Bootstrap(resamples=200, level=0.99),
    )
    return metric.compute(data, splits=metric.draw_splits(data, SEEDS))


def estimate(score: Score, part: str = "score") -> tuple[float, float, float]:
    interval = score.parts[part]
    return interval.value, interval.ci_low, interval.ci_high


@pytest.mark.parametrize(
    ("manner", "align", "expected"),
    [
        (keep_words, None, "around 0"),
        (half, None, "around 0"),
        (half, ConstantAlignment(), "below 0"),  # the control has something to mend
        (add_stereotype, None, "above 0"),
    ],
)
def test_a_speaker_without_bias_is_at_0_and_planted_bias_above(manner, align, expected):
    assert place(score(corpus(manner), align).parts["score"]) == expected


@pytest.mark.parametrize(
    ("planted", "align", "expected"),
    [(0.0, None, "above 0"), (0.0, BOTH, "around 0"), (0.6, BOTH, "above 0")],
)
def test_who_says_more_than_people_can_is_at_0_without_those_words(planted, align, expected):
    assert place(score(talkative(planted=planted), align).parts["score"]) == expected


def test_reach_and_people_stand_beside_the_score():
    parts = score(corpus(half, 400)).parts
    assert parts["matched:reach"].value == pytest.approx(1.0, abs=0.02)
    assert parts["matched:people"].ci_low < 0 < parts["matched:people"].ci_high


def test_the_share_of_words_that_are_left_stands_beside_the_score():
    parts = score(talkative(400), BOTH).parts
    assert parts["matched:reach"].value == pytest.approx(1.0)
    assert 0.4 < parts["matched:retained"].value < 0.9
    assert "matched:retained" not in score(talkative(400)).parts


def test_people_are_the_same_whoever_the_captioner_is():
    data = corpus(half, 400)
    other = data.rewrite({"model": data.human.position(1)})
    assert estimate(score(data), "matched:people") == estimate(score(other), "matched:people")


def test_other_alignments_have_no_such_parts():
    parts = score(corpus(keep_words, 400), ConstantAlignment()).parts
    assert not [name for name in parts if name.startswith("matched")]


def test_one_caption_an_image_has_no_people_to_hold_against():
    result = score(corpus(keep_words, 400, n_people=1))
    assert "matched:people" not in result.parts
    assert NO_SECOND_PERSON in result.notes


def test_beyond_is_the_score_less_that_of_an_annotator_at_its_length():
    parts = score(corpus(add_stereotype, 600)).parts
    whole, alike, beyond = (parts[name] for name in ("score", ALIKE, BEYOND))
    assert beyond.value == pytest.approx(whole.value - alike.value)
    assert beyond.draws.resampled == pytest.approx(whole.draws.resampled - alike.draws.resampled)
    assert beyond.error > max(whole.error, alike.error)
    assert parts[BEYOND].neutral == 0
    assert parts[BEYOND].n_images == parts["score"].n_images


@pytest.mark.parametrize(
    ("manner", "expected"),
    [(keep_words, "around 0"), (half, "around 0"), (add_stereotype, "above 0")],
)
def test_planted_bias_alone_is_beyond_an_annotator_at_the_captioners_length(manner, expected):
    assert place(score(corpus(manner)).parts[BEYOND]) == expected


def two_joined(planted: float) -> Corpus:
    """A captioner that says what two people say, with words of its group in some captions."""
    data = corpus(keep_words, n_people=5)
    random = np.random.default_rng(1)
    records = []
    for k, record in enumerate(data):
        extra = [str(random.choice(TYPICAL["mf"[k % 2]]))] if random.random() < planted else []
        says = " ".join([record.model, record.human[0], *extra])
        labels = {"gender": "mf"[k % 2]}
        records.append(Record(record.id, says, record.human[1:], labels))
    return make_corpus(records)


@pytest.mark.parametrize(("planted", "expected"), [(0.0, "around 0"), (0.4, "above 0")])
def test_two_people_joined_are_held_against_two_others_joined(planted, expected):
    assert place(score(two_joined(planted)).parts[BEYOND]) == expected


def test_annotators_take_the_captioners_place_in_turn_each_against_another():
    names = [one.name for one in score(two_joined(0.0)).predictions]
    alike_names = [name for name in names if name.startswith("alike")]
    of_turns = [(f"alike:{k}:model:paired", f"alike:{k}:human:paired:0") for k in range(4)]
    assert alike_names == [name for pair in of_turns for name in pair]


def test_annotators_at_its_length_score_what_a_witness_finds():
    data = two_joined(0.0)
    groups = np.array([k % 2 for k in range(len(data))])
    differences = []
    for turn in range(4):
        made = alike.alike_annotators([*data], turn=turn)
        people = [[text.split() for text in one.others] for one in made]
        says = [one.says.split() for one in made]
        read = (says, match_words(says, people, 0))
        model, human = (attack(captions, groups, len(SEEDS)) for captions in read)
        differences.append(model - human)
    ours, *_ = estimate(score(data, penalty=PENALTY), ALIKE)
    assert ours == pytest.approx(np.mean(differences), abs=0.01)


@pytest.mark.parametrize(
    ("n_people", "manner", "message"),
    [
        (1, keep_words, "annotators wrote one caption an image"),
        (2, double_words, "human captions are too short or too few"),
    ],
)
def test_too_few_annotators_leave_no_number_and_a_reason(n_people, manner, message):
    result = score(corpus(manner, 400, n_people=n_people))
    for name in (ALIKE, BEYOND):
        part = result.parts[name]
        assert np.isnan(part.value)
        assert (part.n_images, part.coverage) == (0, 0.0)
    assert any(note.startswith(f"there is no matched:alike: {message}") for note in result.notes)
    assert np.isfinite(estimate(result)).all()


@pytest.mark.parametrize("metric", [LIC, Leakage])
@pytest.mark.parametrize("align", [None, BOTH])
def test_both_metrics_have_it_by_both_alignments_with_a_p_that_fits_its_interval(metric, align):
    data = corpus(add_stereotype, 400)
    build = metric(
        GENDER,
        [align or MatchedAlignment(GENDER.words)],
        ConvexProbe(Ngram(order=1)),
        CrossFit(),
        Lic("groups"),
        Bootstrap(resamples=200),
    )
    result = run_cell(data, build, SEEDS, run_id="x")
    rows = {row.part: row for row in result.rows}
    beyond = rows["matched:beyond"]
    assert (beyond.p_value < 0.05) == (beyond.ci_low > 0 or beyond.ci_high < 0)
    assert np.isnan(rows["matched:alike"].p_value)
    assert "matched:beyond" in result.draws


def few_with_three_captions() -> Corpus:
    """Two human captions an image; five images have a third, so people too few can be matched."""
    data = corpus(half, 400, n_people=3)
    rows = data.human.image_rows
    return data.rewrite({"human": data.human.take((data.human.positions < 2) | (rows < 5))})


def test_where_people_cannot_be_scored_the_captioner_is_and_a_note_says_why():
    result = score(few_with_three_captions())
    assert "matched:people" not in result.parts
    assert np.isfinite(estimate(result)).all()
    assert any(
        note.startswith("there is no matched:people: human captions: attackers need")
        for note in result.notes
    )


def test_attackers_of_people_have_names_of_their_own_and_changes_are_a_table():
    result = score(corpus(half, 400))
    names = [prediction.name for prediction in result.predictions]
    assert len(set(names)) == len(names)
    assert "people:model:paired" in names
    assert len(result.tables[CHANGES]) == 4


def test_a_result_says_that_its_reading_is_flat_at_equal_speech():
    data = corpus(keep_words, 400)
    metric = LIC(
        GENDER, [MatchedAlignment()], ConvexProbe(Ngram(order=1)), CrossFit(), Lic(), Bootstrap(50)
    )
    result = run_cell(data, metric, SEEDS, run_id="x")
    assert result.manifest["metric"]["readings"]["score"]["matched"]


def dbac_corpus(says: float) -> Corpus:
    """Objects that go with groups by chance alone; the captioner names fewer than annotators do."""
    random = np.random.default_rng(0)
    objects = [name for name in TASKS.tasks if name != "person"]
    records = []
    for i in range(900):
        group = tuple(WORDS)[i % 2]
        there = str(random.choice(objects))
        people = tuple(f"a {WORDS[group]} with a {there} and hat" for _ in range(3))
        named = f"with a {there}" if random.random() < says else "and hat"
        text, shown = f"a {WORDS[group]} {named}", frozenset({"person", there})
        records.append(Record(str(i), text, people, {"race": group}, shown))
    return corpus_of(records)


@pytest.fixture(scope="module")
def dbac() -> Score:
    metric = build_dbac(
        a_to_t=[Tokenize(), MaskWords(TWO.words, "<race>"), MatchedAlignment(TWO.words)],
        t_to_a=[Tokenize(), MaskWords(TASKS.tasks, "<task>"), MatchedAlignment(TWO.words)],
        split=CrossFit(balanced=False),
    )
    data = dbac_corpus(0.5)
    return metric.compute(data, splits=metric.draw_splits(data, SEEDS))


@pytest.mark.parametrize("direction", ["a_to_t", "t_to_a"])
def test_dbac_has_reach_and_people_in_both_directions_and_what_is_concluded_from(dbac, direction):
    ends = ("matched:reach", "matched:people", "shared:matched:people")
    assert {f"{direction}:{end}" for end in ends} <= {*dbac.parts}


def test_dbac_counts_captions_without_a_group_as_they_are_written(dbac):
    assert dbac.parts["a_to_t"].neutral_rate == 0


def test_people_name_tasks_as_often_as_the_captioner_in_dbac(dbac):
    model, human = (dbac.parts[f"a_to_t:prior:{s}"].value for s in ("model", "human"))
    assert model == pytest.approx(human, abs=0.002)


def test_dbac_is_scored_where_people_cannot_be():
    """Only images without known objects have a third caption, and only those can be matched."""
    whole = dbac_corpus(0.5)
    pairs = (whole.human.positions < 2) | (whole.human.image_rows < 20)
    data = replace(
        whole.rewrite({"human": whole.human.take(pairs)}),
        objects=(*[None] * 20, *(whole.objects or ())[20:]),
    )
    metric = build_dbac(
        t_to_a=[Tokenize(), MaskWords(TASKS.tasks, "<task>"), MatchedAlignment(TWO.words)],
        split=CrossFit(balanced=False),
    )
    parts = metric.compute(data, splits=metric.draw_splits(data, SEEDS)).parts
    assert "t_to_a:matched:people" not in parts
    assert np.isfinite(parts["t_to_a"].value)


def test_group_words_take_part_where_tasks_are_guessed():
    metric = build_dbac(t_to_a=[MatchedAlignment(TWO.words)])
    (align,) = metric.settings.transforms["t_to_a"]
    assert isinstance(align, MatchedAlignment)
    assert align.excluded == frozenset()


def test_a_caption_position_of_one_image_hardly_counts_in_the_reach():
    lines = [{"reach": 1.0, "images": 999}, {"reach": 0.0, "images": 1}]
    matched_corpus = replace(corpus(lambda _, __, words: words, 20), tables={CHANGES: lines})
    assert mean_reach(matched_corpus) == pytest.approx(0.999)
