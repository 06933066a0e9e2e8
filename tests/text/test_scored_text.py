"""What of captions is scored: declined captions are absent, preambles are cut on both sides."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bias_pipeline.corpus.corpus import SIDES, Corpus, Record
from bias_pipeline.errors import DataError
from bias_pipeline.run import compose
from bias_pipeline.text.mentions import neutral_rate
from bias_pipeline.text.scored_text import ScoredText, declined_images, visible
from tests.corpora import GENDER, make_corpus

SORRY = "I'm sorry, but I can't identify the people in this image."


def records(n: int = 20, declined: int = 0, text: str = "a man rides") -> list[Record]:
    texts = [SORRY] * declined + [text] * (n - declined)
    people = ("a picture of a man", SORRY)
    return [Record(str(i), t, people, {"gender": "mf"[i % 2]}) for i, t in enumerate(texts)]


def corpus(n: int = 20, declined: int = 0, text: str = "a man rides") -> Corpus:
    return make_corpus(records(n, declined, text))


def test_a_declined_caption_is_absent_not_blank_and_people_s_stay():
    scored = ScoredText().apply(corpus(declined=3))
    assert (len(scored.model), len(scored.human)) == (17, 40)
    assert declined_images(scored)[:3].all()
    assert scored.blanks == corpus().blanks


def test_a_refusal_behind_a_preamble_that_is_cut_is_absent_too():
    behind = ScoredText(preambles="cut").apply(
        corpus(text=f"Sure! Here is a caption: {SORRY}"), 1.0
    )
    assert (len(behind.model), behind.declined.sum()) == (0, 20)


def test_declined_captions_stay_if_asked():
    raw = corpus(declined=3)
    scored = ScoredText(declined="keep").apply(raw)
    assert scored.digest == raw.digest
    assert declined_images(scored).sum() == 3


def test_which_images_were_declined_is_part_of_the_digest():
    one, two, *rest = records()
    first, second = (
        ScoredText().apply(make_corpus([replace(one, model=a), replace(two, model=b), *rest]))
        for a, b in ((SORRY, None), (None, SORRY))
    )
    assert first.model.digest == second.model.digest
    assert first.digest != second.digest


def test_a_corpus_without_any_is_as_it_was():
    raw = corpus()
    assert ScoredText().apply(raw).digest == raw.digest


def test_above_the_limit_of_blanks_they_are_refused_unless_it_is_raised():
    with pytest.raises(DataError, match=r"11 captions decline .* 55.0% are absent"):
        ScoredText().apply(corpus(declined=11))
    assert len(ScoredText().apply(corpus(declined=11), blank_limit=0.6).model) == 9


def test_both_sides_lose_their_preambles():
    scored = ScoredText(preambles="cut").apply(corpus(text="The image depicts a man."))
    assert {scored.model.text(i) for i in range(len(scored.model))} == {"a man."}
    assert scored.human.text(0) == "a man"


PREAMBLES = (
    "20 of 20 captions and 20 of 40 human captions open with a preamble, most often "
    "'the image depicts'"
)
OPENING = "120 of 120 captions open with 'behold a scene where a man'"


@pytest.mark.parametrize(
    ("n", "text", "note"),
    [(20, "The image depicts a man.", PREAMBLES), (120, "Behold a scene where a man", OPENING)],
    ids=["preambles", "an unlisted opening"],
)
def test_what_captions_open_with_is_noted_and_stays(n, text, note):
    raw = corpus(n, text=text)
    scored = ScoredText().apply(raw)
    assert scored.digest == raw.digest
    assert any(note in line for line in scored.notes)


THOUGHT = "<think>It could be a woman.</think>\n\na man rides"


def test_thoughts_are_not_scored_and_it_is_noted():
    plain, thinking = corpus(), corpus(text=THOUGHT)
    scored = ScoredText().apply(thinking)
    assert scored.model.digest == ScoredText().apply(plain).model.digest
    assert any("20 of 20 captions hold a model's thoughts" in line for line in scored.notes)


@pytest.mark.parametrize(
    "thought", ["<think>It could be a wo", "It could be a man</think>", "<think>a man</think> ."]
)
def test_a_thought_without_an_answer_is_an_absent_caption(thought):
    one, *rest = records()
    scored = ScoredText().apply(make_corpus([replace(one, model=thought), *rest]))
    assert (len(scored.model), declined_images(scored).tolist()) == (19, [True] + [False] * 19)


def test_few_preambles_are_not_noted():
    assert not ScoredText().apply(corpus(text="a man")).notes


def words(tmp_path: Path, *more: str) -> list[str]:
    """A captioner of 200 scenes that declines a tenth of them."""
    cell = compose.cell(["dataset.n_images=200", f"paths.cache={tmp_path}"])
    captions = [
        {"image_id": int(r.id), "caption": SORRY if i % 10 == 0 else f"In this image, {r.model}"}
        for i, r in enumerate(cell.corpus())
    ]
    (tmp_path / "polite.json").write_text(json.dumps(captions))
    (root,) = (tmp_path / "scenes").iterdir()
    files = [f"dataset.attributes={root}/attributes.csv", f"captioner={tmp_path}/polite.json"]
    return ["dataset=coco", *files, *more]


def test_a_cell_reads_its_corpus_as_it_is_set(tmp_path):
    (tmp_path / "scenes").mkdir()
    absent = compose.cell(words(tmp_path, "metric=gender_error"))
    present = compose.cell(words(tmp_path, "metric=gender_error", "text.declined=keep"))
    shorter = compose.cell(words(tmp_path, "metric=gender_error", "text.preambles=cut"))
    assert [len(c.corpus().model) for c in (absent, present, shorter)] == [180, 200, 180]
    assert "image," in absent.corpus().model.types
    assert "image," not in shorter.corpus().model.types
    assert len({c.run_id(c.corpus()) for c in (absent, present, shorter)}) == 3


@pytest.mark.parametrize("metric", ["gender_error", "lic"])
def test_a_setting_without_effect_is_the_same_run(metric):
    plain, other = (
        compose.cell([f"metric={metric}", "captioner=faithful", "dataset.n_images=100", *more])
        for more in ((), ("text.declined=keep",))
    )
    assert plain.run_id(plain.corpus()) == other.run_id(other.corpus())


# --- invisible characters

CHEF = "\U0001f469\u200d\U0001f373"
HIDDEN = {
    "zero-width blank": ("wo\u200bman", "woman"),
    "joiner inside": ("wo\u200dman", "woman"),
    "non-joiner inside": ("wo\u200cman", "woman"),
    "joiner before": ("\u200dman", "man"),
    "joiners behind": ("man\u200d\u200b\u200d", "man"),
    "byte order mark": ("\ufeffman", "man"),
    "soft hyphen": ("wo\u00adman", "woman"),
    "emoji's form": ("man\ufe0f", "man"),
    "before a clitic": ("man\u200b's", "man's"),
    "beside an emoji": (f"{CHEF}\u200dman", f"{CHEF}man"),
    "emoji": (f"woman{CHEF}man", f"woman{CHEF}man"),
    "keycap": ("1\ufe0f\u20e3", "1\ufe0f\u20e3"),
    "Persian": ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",) * 2,
    "nothing else": ("\u200d", ""),
}


@pytest.mark.parametrize(("written", "shown"), HIDDEN.values(), ids=HIDDEN)
def test_invisible_characters_are_removed_and_emoji_stay(written, shown):
    assert visible(written) == shown


def test_no_invisible_character_hides_a_word_from_the_word_lists():
    records = [
        Record(str(i), f"a {word} runs", (f"a {word} sits",), {"gender": "f"})
        for i, word in enumerate(("wo\u200dman", "woman\u200d", "\u200cwoman", f"woman{CHEF}"))
    ]
    corpus = ScoredText().apply(make_corpus(records))
    for side in SIDES:
        assert neutral_rate(corpus.side(side), GENDER) == 0.0
