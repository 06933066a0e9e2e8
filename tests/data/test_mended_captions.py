"""A file whose text a program spoiled gives the numbers of the file without, and says so."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.errors import DataError
from bias_pipeline.text.mentions import named_group
from tests import composed
from tests.coco_folder import CAPTIONS, MINE, human, write_folder
from tests.corpora import GENDER

WORDS = ("a man rides a surfboard", "a woman holds a surfboard", "a person with a dog")
N = 60


def load(root: Path, *overrides: str) -> Corpus:
    words = ["dataset=coco", f"dataset.root={root}", "captioner=mine", *overrides]
    return composed.corpus(*words)


def folder(root: Path, spoil: Callable[[str], str] = str, **more: object) -> Path:
    rows = [{"image_id": 100 + n, "caption": spoil(WORDS[n % 3]), **more} for n in range(N)]
    return write_folder(root, {MINE: rows})


def _mojibake(text: str) -> str:
    return text.replace("man ", "man’s ").encode().decode("cp1252")


SPOILED = {
    "an end mark": (lambda text: f"<start> {text} <end>", "decoder"),
    "pads": (lambda text: f"{text} [SEP] [PAD]", "decoder"),
    "a chat": (lambda text: f"USER: Who? ASSISTANT: {text}</s>", "decoder"),
    "fairseq": (lambda text: text.replace("woman", "wo@@ man"), "sub-words"),
    "BERT": (lambda text: text.replace("woman", "wo ##man"), "sub-words"),
    "SentencePiece": (lambda text: "▁" + text.replace(" ", " ▁"), "sub-words"),
    "GPT-2": (lambda text: text.replace(" ", "Ġ"), "sub-words"),
    "CLIP": (lambda text: f"{text} ".replace(" ", "</w> ").replace("wo", "wo "), "sub-words"),
    "a line's end": (lambda text: text.replace("woman", "wo-\nman"), "line's end"),
    "no width": (lambda text: text.replace(" ", "\u200b"), "no width"),
    "a no-break space": (lambda text: text.replace("man ", "manÂ\xa0"), "mojibake"),
    "HTML": (lambda text: text.replace("woman", "wo&shy;man"), "HTML"),
    "JSON": (lambda text: text.replace(" rides", r"\nrides"), "JSON"),
}


@pytest.mark.parametrize(("spoil", "what"), SPOILED.values(), ids=SPOILED)
def test_a_spoiled_file_is_the_plain_one_with_a_note(tmp_path, spoil, what):
    plain = load(folder(tmp_path / "plain"))
    spoiled = load(folder(tmp_path / "spoiled", spoil))
    assert spoiled.digest == plain.digest
    (note,) = set(spoiled.notes) - set(plain.notes)
    assert what in note
    assert " of 60 captions: " in note


def test_people_s_captions_are_mended_too(tmp_path):
    content = human()
    for row in content["annotations"]:
        row["caption"] = "a womanâ€™s kite"
    corpus = load(write_folder(tmp_path, {CAPTIONS: content}))
    assert set(named_group(corpus.human, GENDER, GENDER.groups)) == {1}
    assert any("in 100 of 100 human captions: 'womanâ€™s'" in note for note in corpus.notes)


def test_a_clean_file_has_no_note_and_is_as_it_was(tmp_path):
    clean = "\U0001f468\u200d\U0001f469 café, a <unk> 20 °C “man” & a dog (left) / right"
    corpus = load(folder(tmp_path, lambda text: f"{text} {clean}"))
    assert corpus.model.text(0) == f"{WORDS[0]} {clean}"
    assert not any(" of 60 captions" in note for note in corpus.notes)


def test_marks_of_unclear_words_are_refused_with_the_image_and_read_once_they_are_words(tmp_path):
    with pytest.raises(DataError) as refusal:
        load(folder(tmp_path / "a", lambda text: text.replace("man", "▁man")))
    assert str(refusal.value).startswith(f"{tmp_path}/a/captioners/mine.json, image 10")
    assert "tokenizer.decode(ids, skip_special_tokens=True)" in str(refusal.value)
    assert len(load(folder(tmp_path / "b")).model) == N


def test_the_file_s_own_prompt_is_no_caption(tmp_path):
    prompt = "Beschreibe das Bild."
    root = folder(tmp_path, lambda text: prompt if "dog" in text else text, prompt=prompt)
    corpus = load(root)
    assert (len(corpus.model), int(corpus.declined.sum())) == (40, 20)
    assert any("20 of 60 captions hold only a prompt or a request" in n for n in corpus.notes)


def test_the_file_s_own_prompt_before_a_caption_is_cut(tmp_path):
    prompt = "Wer ist das? Sage es kurz."
    plain = load(folder(tmp_path / "plain"))
    prompted = load(folder(tmp_path / "a", lambda text: f"{prompt} {text}", prompt=prompt))
    assert prompted.model.digest == plain.model.digest
    assert any("60 of 60 captions hold a prompt beside" in note for note in prompted.notes)


def test_nothing_but_tags_declines(tmp_path):
    corpus = load(folder(tmp_path, lambda text: "</Img>" if "dog" in text else f"</Img> {text}"))
    assert int(corpus.declined.sum()) == 20
    assert "<" not in "".join(corpus.model.types)
