"""Caption quality: the arithmetic against worked cases and a second implementation, the metric."""

import math

import numpy as np
import pytest

from bias_pipeline.corpus.corpus import Record
from bias_pipeline.errors import NotApplicableError, UsageError
from bias_pipeline.metrics import quality
from bias_pipeline.metrics.base import Score
from bias_pipeline.metrics.functional import quality as quality_formulas
from bias_pipeline.metrics.functional.quality import (
    METEOR_ABSENT,
    Ngrams,
    bleu,
    cider_d,
    clipped_counts,
    clipped_matches,
    closest_lengths,
    count_ngrams,
    document_frequencies,
    meteor,
)
from bias_pipeline.metrics.quality import Quality
from bias_pipeline.stats.bootstrap import Bootstrap
from tests.corpora import GENDER, make_corpus

FEW = Bootstrap(resamples=20)
WORDS = ["a", "the", "man", "woman", "dog", "red", "ball", "on", "in", "rides", "big", "park"]


def ngrams_of(*sets: list[str]) -> list[Ngrams]:
    known: dict[str, int] = {}
    columns = []
    for texts in sets:
        words = [known.setdefault(w, len(known)) for text in texts for w in text.split()]
        starts = np.cumsum([0, *(len(text.split()) for text in texts)])
        columns.append((np.array(words, np.int64), starts))
    return count_ngrams(columns)


def score_captions(
    candidates: list[str], references: list[list[str]]
) -> tuple[list[float], list[float]]:
    """BLEU-1 to 4 of all, CIDEr-D of each, with the references as documents."""
    owner = np.repeat(np.arange(len(references)), [len(texts) for texts in references])
    c, r = ngrams_of(candidates, [text for texts in references for text in texts])
    totals = np.stack([table.sum(axis=1) for table in c.tables], axis=-1).sum(axis=0)
    closest = closest_lengths(c.lengths, r.lengths, owner)
    clipped = clipped_counts(c, r, owner)
    matches = clipped_matches(clipped, owner, len(c)).sum(axis=0)
    whole = bleu(matches, totals, c.lengths.sum(), closest.sum())
    (frequencies,) = document_frequencies(r, owner)
    return whole.tolist(), cider_d(c, r, owner, clipped, frequencies, len(candidates)).tolist()


# --- worked cases


def test_the_papers_example_of_clipping():
    """Papineni et al. 2002, example 2: modified unigram precision 2/7, bigram precision 0."""
    the = "the the the the the the the"
    owner = np.zeros(2, np.int64)
    c, r = ngrams_of([the], ["the cat is on the mat", "there is a cat on the mat"])
    matches = clipped_matches(clipped_counts(c, r, owner), owner, 1)
    assert matches[0, :2].tolist() == [2, 0]


def test_the_papers_example_of_precision():
    """Papineni et al. 2002, examples 1 and 2: 17/18 and 8/14 of single words, 10/17 and 1/13."""
    good = (
        "it is a guide to action which ensures that the military always obeys the commands of "
        "the party"
    )
    poor = "it is to insure the troops forever hearing the activity guidebook that party direct"
    references = [
        "it is a guide to action that ensures that the military will forever heed party commands",
        "it is the guiding principle which guarantees the military forces always being under the "
        "command of the party",
        "it is the practical guide for the army always to heed the directions of the party",
    ]
    for text, matches in ((good, [17, 10]), (poor, [8, 1])):
        c, r = ngrams_of([text], references)
        owner = np.zeros(3, np.int64)
        outcome = clipped_matches(clipped_counts(c, r, owner), owner, 1)
        assert outcome[0, :2].tolist() == matches


def test_bleu_penalises_short_captions_and_is_absent_of_those_too_short_for_an_order():
    assert score_captions(["a dog"], [["a dog in the park"]])[0][0] == pytest.approx(
        math.exp(1 - 5 / 2)
    )
    assert math.isnan(score_captions(["a dog"], [["a dog"]])[0][2])


def test_cider_d_of_a_hand_worked_pair():
    """Two documents: "a" is in both and weighs nothing, all else weighs log 2.

    "a red ball" against "a red dog": of single words red of (red, ball), of pairs "a red" of two;
    cosine 1/2 each, nothing of three, so 10 * (1/2 + 1/2) / 4.
    """
    result = score_captions(["a red ball", "a park"], [["a red dog"], ["a park"]])[1]
    assert result == pytest.approx([2.5, 5.0])


def test_cider_d_clips_and_penalises_length():
    """ "red red" against "red": min(2, 1) * 1 / (2 * 1) of single words, one word too many."""
    result = score_captions(["red red", "park"], [["red"], ["park"]])[1]
    assert result[0] == pytest.approx(10 / 4 * 0.5 * math.exp(-1 / 72))


def test_what_no_document_holds_weighs_as_if_one_did():
    recorded = score_captions(["red ball", "park"], [["red dog", "ball in"], ["park"]])[1]
    unseen = score_captions(["red big", "park"], [["red dog", "ball in"], ["park"]])[1]
    assert unseen[0] == pytest.approx(recorded[0] / 2)


def test_a_caption_without_words_scores_nothing():
    assert score_captions(["", "a dog"], [["a dog"], ["a dog in"]])[1][0] == 0


def random_captions(seed: int) -> tuple[list[str], list[list[str]]]:
    generator = np.random.default_rng(seed)

    def text() -> str:
        return " ".join(generator.choice(WORDS, generator.integers(4, 9)))

    return [text() for _ in range(40)], [[text() for _ in range(1 + i % 5)] for i in range(40)]


def plain_cider_d(candidates: list[str], references: list[list[str]]) -> list[float]:
    """The paper's formula word by word, as slowly as it reads."""

    def grams(text: str, n: int) -> list[tuple[str, ...]]:
        words = text.split()
        return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]

    def weighted_grams(text: str, n: int) -> dict[tuple[str, ...], float]:
        its_grams = grams(text, n)
        documents = {
            g: sum(any(g in grams(r, n) for r in refs) for refs in references)
            for g in set(its_grams)
        }
        return {
            g: its_grams.count(g) * math.log(len(references) / max(1, documents[g]))
            for g in set(its_grams)
        }

    scores = []
    for text, refs in zip(candidates, references, strict=True):
        total = 0.0
        for ref in refs:
            apart = len(text.split()) - len(ref.split())
            for n in (1, 2, 3, 4):
                one, two = weighted_grams(text, n), weighted_grams(ref, n)
                norms = math.hypot(*one.values()) * math.hypot(*two.values())
                overlap = sum(min(one[g], two[g]) * two[g] for g in one if g in two)
                total += math.exp(-(apart**2) / 72) * overlap / norms if norms else 0.0
        scores.append(10 * total / 4 / len(refs))
    return scores


def test_cider_d_equals_a_second_implementation():
    captions = random_captions(0)
    assert score_captions(*captions)[1] == pytest.approx(plain_cider_d(*captions), abs=1e-12)


def test_both_equal_the_published_tool():
    bleu_module = pytest.importorskip("pycocoevalcap.bleu.bleu")
    cider_module = pytest.importorskip("pycocoevalcap.cider.cider")
    candidates, references = random_captions(1)
    candidates[0] = references[0][0]  # else no four words match, which they smooth and we do not
    results = {i: [text] for i, text in enumerate(candidates)}
    theirs = dict(enumerate(references))
    result = score_captions(candidates, references)
    expected, _ = bleu_module.Bleu(4).compute_score(theirs, results, verbose=0)
    assert result[0] == pytest.approx(expected, rel=1e-6)
    assert result[1] == pytest.approx(
        cider_module.Cider().compute_score(theirs, results)[1].tolist()
    )


# --- the metric


def people(n: int = 60, captions: int = 5) -> list[tuple[str, ...]]:
    """Five captions an image of one of three scenes, with words of their own."""
    scenes = ("red ball in the park", "big dog on a sofa", "horse rides on the beach")
    generator = np.random.default_rng(2)
    return [
        tuple(
            f"a {generator.choice(['small', 'old', 'wet'])} {scenes[i % 3]} "
            f"{generator.choice(['today', 'again', 'now'])}"
            for _ in range(captions)
        )
        for i in range(n)
    ]


def compute(model: list[str | None], human: list[tuple[str, ...]], **options: object) -> Score:
    lines = enumerate(zip(model, human, strict=True))
    records = [Record(str(i), m, h, {"gender": "mf"[i % 2]}) for i, (m, h) in lines]
    return Quality(GENDER, FEW, **options).compute(make_corpus(records), splits=[])


def values(model: list[str | None], human: list[tuple[str, ...]]) -> dict[str, float]:
    parts = compute(model, human).parts
    return {str(name): part.value for name, part in parts.items()}


def test_one_more_person_is_no_better_and_no_worse():
    """Exchanging the captioner with any person leaves the mean score at 0."""
    human = people(60, 6)
    scores = [
        values([item[k] for item in human], [item[:k] + item[k + 1 :] for item in human])["score"]
        for k in range(6)
    ]
    assert np.mean(scores) == pytest.approx(0, abs=0.05)


def test_a_captioner_of_other_images_is_worse():
    human = people()
    wrong = [human[(i + 1) % len(human)][0] for i in range(len(human))]
    assert compute(wrong, human).parts["score"].ci_high < 0


def test_a_captioner_that_fails_one_group_has_a_gap():
    human = people()
    model = [item[0] if i % 2 == 0 else "a person" for i, item in enumerate(human)]
    result = values(model, human)
    assert result["group:male"] > 0 > result["group:female"]
    assert result["gap"] == result["group:male"] - result["group:female"]


def test_pictures_that_are_harder_for_all_are_no_gap():
    """Captions of one group agree, those of the other do not: people's fall as the captioner's."""
    generator = np.random.default_rng(3)
    texts = [
        ["a red ball in the park"] * 6
        if i % 2
        else [" ".join(generator.choice(WORDS, 6)) for _ in range(6)]
        for i in range(60)
    ]
    result = values([t[0] for t in texts], [tuple(t[1:]) for t in texts])
    assert result["gap:model"] > 1
    assert result["gap"] < 0.3


def test_the_model_side_is_what_the_published_formula_gives():
    human = people()
    model = [person[0] for person in people(60, 1)]
    whole, each = score_captions(model, [list(person) for person in human])
    result = values(model, human)
    assert result["model"] == pytest.approx(np.mean(each))
    assert [result[f"bleu_{n}:model"] for n in (1, 2, 3, 4)] == pytest.approx(whole)


@pytest.mark.parametrize(("documents", "count"), [("corpus", 60), ("scored", 50)])
def test_document_frequencies_are_of_the_images_chosen(documents, count):
    human = people()
    model = [item[0] if i < 50 else None for i, item in enumerate(human)]
    assert compute(model, human, documents=documents).audit["n_documents"] == count


def test_without_a_second_human_caption_there_is_no_score():
    score = compute(["a dog"] * 60, people(60, 1))
    assert set(score.parts) >= {"model", "bleu_4:model", "group:male:model"}
    assert "score" not in score.parts
    assert any("no score" in note for note in score.notes)


def test_without_human_captions_nothing_can_be_said():
    with pytest.raises(NotApplicableError, match="human captions"):
        compute(["a dog"] * 60, [()] * 60)


def test_meteor_without_java_is_absent(monkeypatch):
    monkeypatch.setattr(quality_formulas.shutil, "which", lambda name: None)
    score = compute(["a dog"] * 60, people(), meteor=True)
    assert math.isnan(score.parts["meteor:model"].value)
    assert METEOR_ABSENT in score.notes


def test_meteor_of_captions_in_another_language_is_absent(monkeypatch):
    monkeypatch.setattr(quality, "meteor", lambda texts, _: np.full(len(texts), 0.5))
    assert compute(["a dog"] * 60, people(), meteor=True).parts["meteor:model"].value == 0.5
    german = compute(["ein Hund im Garten"] * 60, people(), meteor=True)
    assert math.isnan(german.parts["meteor:model"].value)


@pytest.mark.skipif(not quality_formulas.has_meteor(), reason="no Java or no pycocoevalcap")
def test_meteor_of_a_right_caption_is_above_that_of_a_wrong_one():
    right, wrong = meteor(["a man rides a horse", "two cakes"], [["a man on a horse"]] * 2)
    assert right > wrong


@pytest.mark.parametrize("option", [{"positions": 0}, {"sigma": 0.0}, {"documents": "all"}])
def test_settings_out_of_range_are_refused(option):
    with pytest.raises(UsageError, match=next(iter(option))):
        Quality(GENDER, FEW, **option)


def test_document_frequencies_without_a_caption_are_those_of_the_rest():
    texts = ["a dog a dog", "a cat", "a dog", "the dog", "a cat runs"]
    (whole,) = ngrams_of(texts)
    documents, first = np.array([0, 0, 1, 1, 2]), np.array([1, 0, 1, 0, 1], bool)
    rest = whole.take(np.flatnonzero(~first))
    _, without = document_frequencies(whole, documents, [first])
    (alone,) = document_frequencies(rest, documents[~first])
    assert [n.tolist() for n in without] == [n.tolist() for n in alone]
