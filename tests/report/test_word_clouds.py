"""Word clouds: the larger the share the larger the word, and the same cloud each time."""

import pytest

from bias_pipeline.report.concepts import MOST, cloud, laid_out

pytest.importorskip("wordcloud", reason="the extra clouds is not installed")
SHARES = {"makeup artist": 0.97, "nurse": 0.6, "chef": 0.2, "judge": 0.05, "miner": 0.0}


def test_the_larger_the_share_the_larger_the_word():
    sizes = {word.text: word.size for word in laid_out(SHARES)}
    assert sorted(sizes, key=sizes.__getitem__, reverse=True) == list(SHARES)[:4]


def test_the_same_shares_are_the_same_cloud_in_whatever_order():
    backwards = dict(reversed(SHARES.items()))
    assert cloud(SHARES, "c").png() == cloud(backwards, "c").png()


def test_words_stand_within_it():
    assert all(0 <= word.left < 640 and 0 < word.base <= 300 for word in laid_out(SHARES))


def test_of_very_many_the_largest_are_there():
    cloud = laid_out({f"concept {k}": (k + 1) / 200 for k in range(200)})
    assert len(cloud) <= MOST
    assert "concept 199" in {word.text for word in cloud}


def test_a_page_takes_its_colours_and_no_markup():
    drawn = cloud({"<b>nurse</b>": 1.0}, "c").inline()
    assert ("var(--mark)" in drawn, "<b>" in drawn) == (True, False)
