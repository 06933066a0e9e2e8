"""What contextual alignment replaces at each distance, on captions made by hand."""

import math
import re
from pathlib import Path

import pytest

from bias_pipeline.commands.main import main
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.language.caption_words import likeness, reach
from bias_pipeline.language.contextual import ContextualAlignment
from bias_pipeline.metrics.functional.quality import has_meteor
from tests.corpora import make_corpus

# Cosine distances to "dog", the captioner's one word with a vector: puppy .1, cat .4, far 1.
VECTORS = "dog 1 0\npuppy 0.9 0.435889894354\ncat 0.6 0.8\nfar 0 1\n"


@pytest.fixture
def vectors(tmp_path: Path) -> str:
    path = tmp_path / "tiny.txt"
    path.write_text(VECTORS)
    return str(path)


def corpus() -> Corpus:
    human = ("puppy puppy puppy cat cat far . . . xyzzy",)
    return make_corpus([Record("1", "dog", human)])


def test_shares_are_of_running_words_signs_left_out(vectors):
    result = reach(corpus(), ContextualAlignment(vectors), [0.2, 0.5, 1.5])
    assert result.shares.tolist() == pytest.approx([3 / 7, 5 / 7, 6 / 7])


@pytest.mark.parametrize(
    ("human", "enough"),
    [("puppy puppy puppy cat cat far . . . xyzzy", 0.4), ("puppy xyzzy xyzzy", math.inf)],
    ids=["a delta that reaches enough", "none, where vectors know too few words"],
)
def test_the_delta_that_reaches_enough(human, enough, vectors):
    result = reach(make_corpus([Record("1", "dog", (human,))]), ContextualAlignment(vectors))
    assert result.enough == pytest.approx(enough)


def test_the_own_delta_plays_no_part(vectors):
    shares = [reach(corpus(), ContextualAlignment(vectors, delta)).shares for delta in (0.1, 1.0)]
    assert shares[0].tolist() == shares[1].tolist()


@pytest.mark.skipif(not has_meteor(), reason="needs Java and pycocoevalcap (extra quality)")
def test_contextual_captions_are_liker_than_constant_ones(vectors):
    Path(vectors).write_text(VECTORS + "dogs 1 0.01\n")
    raw = make_corpus([Record("1", "a dog on a couch", ("two dogs on a couch",))])
    result = likeness(raw, ContextualAlignment(vectors), 5)
    assert result.contextual > result.constant


def test_the_command_prints_and_draws_every_captioner(vectors, tmp_path, capfd):
    figure = tmp_path / "deltas.svg"
    words = ["analysis", "alignment", f"alignment.vectors={vectors}", "dataset.n_images=50"]
    Path(vectors).write_text("person 1 0\nsomebody 1 0.1\n")
    assert main([*words, "captioner=faithful,terse", "--figure", str(figure)]) == 0
    assert "terse" in capfd.readouterr().out
    assert {"faithful", "terse"} <= set(re.findall(r">([a-z]+)</text>", figure.read_text()))


def test_another_alignment_is_refused(capfd):
    assert main(["analysis", "alignment", "alignment=constant", "dataset.n_images=50"]) == 2
    assert "leave alignment= out" in capfd.readouterr().err
