"""Marks of decoders, tags of chats, sub-words."""

import pytest

from bias_pipeline.corpus.captions import is_blank
from bias_pipeline.text.decoder_marks import (
    NO_CAPTION,
    UncertainTextError,
    joined_subwords,
    without_marks,
    written_on,
)
from bias_pipeline.text.mending import Mends
from bias_pipeline.text.scored_text import declines

MARKED = [
    *("a man runs </s>", "<s> a man runs</s><pad><pad>", "</s><s>a man runs</s>"),
    *("<start> a man runs <end>", "<SOS> a man runs <EOS>", "startseq a man runs endseq"),
    *("a man runs<|endoftext|>", "a man runs <|im_end|>", "a man runs<|eot_id|>"),
    *("[CLS] a man runs [SEP] [PAD]", "[start] a man runs [end]", "a man runs<end_of_turn>"),
    *("a <pad> man </s> runs", "a man runs<｜end▁of▁sentence｜>", "<p>a man runs</p>"),
    *("a man<br/>runs", "<Img> a man runs", "</Img>a man runs</Img>", "<image>\na man runs"),
    *("<|vision_start|>a man runs", "[IMG] a man runs", "<DETAILED_CAPTION>a man runs</s>"),
    "<|im_start|>assistant\na man runs<|im_end|>",
    "<|im_start|>user\nWho is it?<|im_end|>\n<|im_start|>assistant\na man runs<|im_end|>",
    "USER: <image>\nWho is it? ASSISTANT: a man runs</s>",
    "a man runs\n\nUSER: He thanks it. ASSISTANT: Well",
    "a man runs<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\na dog",
    "A chat between a human and an assistant. USER: <image>\nWho? ASSISTANT: a man runs",
    "ASSISTANT: a man runs USER: and a woman?",
    "[INST] <image>\nWho? [/INST] a man runs",
    "<start_of_turn>user\nWho?<end_of_turn>\n<start_of_turn>model\na man runs<end_of_turn>",
    "<|start_header_id|>assistant<|end_header_id|>\n\na man runs<|eot_id|>",
    "###Human: <Img></Img> Who? ###Assistant: a man runs###",
    "Question: who is it? Answer: a man runs",
    "Human: Who?\nAssistant: a man runs\nHuman: And?",
]


@pytest.mark.parametrize("text", MARKED)
def test_marks_and_tags_are_taken_out_wherever_they_are(text):
    (content,) = without_marks([text]).values()
    assert content.rstrip("# ").split() == ["a", "man", "runs"]


@pytest.mark.parametrize("text", ["a man</s><s>a dog</s>", "<s> a man </s><pad>", "a dog"])
def test_no_words_follow_the_end(text):
    assert not written_on([text])


def test_words_behind_an_end_stay_and_are_counted():
    mends = Mends("captions")
    mends.mend(["a man <end> a dog <end>", "a dog <end>"])
    assert mends.notes()[1].startswith("words follow a mark that ends a caption in 1 of 2 captions")


WHOLE = [
    *("a <unk> man", "<UNK> <UNK>", "a <person> rides", "<think>a man</think> a dog", "a < b > c"),
    *("a man [blurred]", "a box: 3 <16>", "the assistant: a man", "an answer: yes", "pad of paper"),
    *("a sign that says START", "<|begin_of_box|>a dog<|end_of_box|>", "", "</think> a dog"),
]


@pytest.mark.parametrize("text", WHOLE)
def test_other_text_stays(text):
    assert not without_marks([text])


@pytest.mark.parametrize("text", ["</Img>", "<Img> </Img>", "USER: Who? ASSISTANT:", "<image></s>"])
def test_a_text_of_nothing_but_tags_declines(text):
    assert without_marks([text]) == {text: NO_CAPTION}
    assert declines([NO_CAPTION]).all()


@pytest.mark.parametrize("text", ["</s>", "[SEP] [PAD]", "<end>", "<pad><pad>"])
def test_a_text_of_nothing_but_marks_is_blank(text):
    assert is_blank(without_marks([text])[text])


PIECES = {
    "fairseq": ("a wo@@ man ri@@ des a skate@@ board", "a woman rides a skateboard"),
    "fairseq, cut": ("a wo@@ man ri@@", "a woman ri"),
    "fairseq without blanks": ("a wo@@man rides", "a woman rides"),
    "mark before": ("a wo @@man rides", "a woman rides"),
    "BERT": ("a wo ##man rides a skate ##board .", "a woman rides a skateboard ."),
    "OpenNMT": ("a wo ￭man rides ￭.", "a woman rides."),
    "SentencePiece": ("▁a ▁wo man ▁ri des", "a woman rides"),
    "SentencePiece in one": ("▁a▁woman▁rides", "a woman rides"),
    "SentencePiece, blanks apart": ("▁ a ▁ wo man ▁ rides", "a woman rides"),
    "SentencePiece, once": ("▁a woman rides a horse", "a woman rides a horse"),
    "CLIP": ("a</w> wo man</w> ri des</w>", "a woman rides"),
    "CLIP in one": ("a</w>woman</w>rides</w>", "a woman rides"),
    "CLIP, once": ("a woman rides a horse</w>", "a woman rides a horse"),
    "GPT-2": ("Ġa Ġwo man Ġri des", "a woman rides"),
    "GPT-2 without the first": ("a Ġwo man Ġrides", "a woman rides"),
    "GPT-2 in one": ("aĠwomanĠridesĊ", "a woman rides"),
    "GPT-2's bytes": ("ĠaĠcafÃ©ĠandĠaĠwomanâĢĻsĠdog", "a café and a woman’s dog"),
    "GPT-2, decoded": ("ĠaĠcaféĠnaïve", "a café naïve"),
}


@pytest.mark.parametrize(("pieces", "words"), PIECES.values(), ids=PIECES)
def test_subwords_are_joined(pieces, words):
    assert joined_subwords([pieces, "a dog"])[pieces] == words


@pytest.mark.parametrize(
    "text",
    ["# Title\n## Part\na man", "##Part of it", "a man ## a dog", "a @ b", "me@@", "C# #tag"],
)
def test_other_signs_stay(text):
    assert joined_subwords([text, "a dog"]).get(text, text) in (text, text.replace("@@", ""))


def test_a_mark_in_few_captions_is_none():
    texts = ["a wo@@ man", *["a dog"] * 100]
    assert not joined_subwords(texts)
    assert joined_subwords(texts[:99])


@pytest.mark.parametrize(
    "text", ["a ▁woman rides a brown horse", "a Ġwoman rides a horse", "a</w> woman rides a"]
)
def test_a_mark_at_few_words_is_refused(text):
    with pytest.raises(UncertainTextError, match="most words lack it"):
        joined_subwords([text])
