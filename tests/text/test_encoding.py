"""Text in another encoding, written-out signs, blanks that nobody sees."""

import pytest

from bias_pipeline.text.encoding import holding, mend_mojibake, unescape_signs, with_blanks

RIGHT = "josé, naïve, façade"


@pytest.mark.parametrize("codec", ["cp1252", "latin-1", "cp437", "mac_roman"])
def test_utf8_that_was_read_in_another_encoding_is_mended(codec):
    wrong = RIGHT.encode().decode(codec)
    assert mend_mojibake([wrong]) == {wrong: RIGHT}


WRONG = {
    "twice": ("womanÃ¢â‚¬â„¢s dog", "woman’s dog"),
    "a no-break space": ("womanÂ\xa0near", "woman\xa0near"),
    "a no-break space that became a blank": ("a womanÂ near a dog", "a woman\xa0near a dog"),
    "one that was stripped": ("a dog and a womanÂ", "a dog and a woman "),
    "a quotation mark that lost a byte": ("â€œa womanâ€", '“a woman"'),
    "a dash": ("womanâ€”and", "woman—and"),
    "a control character of Latin-1": ("woman\x92s dog", "woman’s dog"),
    "MacRoman's apostrophe": ("womanÕs dog", "woman’s dog"),
    "a blank of no width": ("womanâ€‹near", "woman\u200bnear"),
    "an emoji": ("ðŸ˜€ man", "\U0001f600 man"),
    "GPT-2's mark": ("aÄ\xa0woman", "aĠwoman"),
    "SentencePiece's mark": ("aâ–\x81woman", "a▁woman"),
    "German": ("StraÃŸe", "Straße"),
    "é twice": ("Ã\x83Â©", "é"),
}


@pytest.mark.parametrize(("wrong", "right"), WRONG.values(), ids=WRONG)
def test_mojibake_is_mended(wrong, right):
    assert mend_mojibake([wrong]) == {wrong: right}


CLEAN = (
    "a café, a façade in São Paulo and Žižek",
    "l’été à Paris — “man”",
    "VOILÀ Â Ñandú Õ",
    "a family \U0001f468\u200d\U0001f469\u200d\U0001f467",
    "क्\u200dष ज्ञ",
    "می\u200cخواهم",
    "一个女人 и женщина",
    "½ a dog · 20 °C £5",
    "Ærø, 日本, …, “so”",
    "a man with a \ufffd",
)


@pytest.mark.parametrize("text", CLEAN)
def test_clean_text_stays(text):
    assert not mend_mojibake([text])
    assert not unescape_signs([text])
    assert not with_blanks([text])


ESCAPED = {
    r"a woman\u2019s dog": "a woman’s dog",
    r"a man\nwoman": "a man woman",
    r"\"a woman\"": '"a woman"',
    r"\ud83d\ude00": "\U0001f600",
    "a woman&#39;s &amp; man&#x27;s": "a woman's & man's",
    "wo&shy;man": "wo\u00adman",
    "a dog<0x0A>": "a dog\n",
    r"a woman\xe2\x80\x99s": "a woman’s",
    "a woman &amp;#39;s": "a woman 's",
    "a%20woman%20runs": "a woman runs",
    "a woman<0xE2><0x80><0x99>s": "a woman’s",
}


@pytest.mark.parametrize(("written", "right"), ESCAPED.items(), ids=range(len(ESCAPED)))
def test_written_out_signs_are_read(written, right):
    assert unescape_signs([written]) == {written: right}


@pytest.mark.parametrize("text", ["R&B; a dog", "AT&T", "a <0> b", "c:\\users", "a & b"])
def test_other_signs_stay(text):
    assert not unescape_signs([text])


def test_a_blank_of_no_width_is_a_blank_where_no_other_separates_words():
    texts = [
        "a\u200bwoman\u200bnear",
        "a wo\u200bman",
        "a woman near a dog",
        "a dog\u200bnear",
        "\u200ba dog",
    ]
    assert with_blanks(texts) == {texts[0]: "a woman near", texts[3]: "a dog near"}


def test_one_word_with_a_blank_of_no_width_is_a_word_if_it_is_known():
    assert not with_blanks(["wo\u200bman", "a woman"])


@pytest.mark.parametrize("between", ["", "\0"])
def test_texts_that_hold_a_sign_are_found_in_their_order(between):
    texts = ["a", f"b#{between}#", "", "&", "#&", f"x{between}"]
    assert holding(texts, "&", "#") == [f"b#{between}#", "&", "#&"]
    assert holding(texts, "@") == []
    assert holding([], "#") == []


def test_a_sign_with_a_blank_is_found_between_two_words():
    texts = ["a wo- man", "two- men", "cut-\nout", "two men", "out-"]
    assert holding(texts, "wo- m", "-\n") == texts[:3]
