"""The affective world: what it shows, what is said of it, and how it is written."""

from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pytest

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.errors import UsageError
from bias_pipeline.published import artemis
from bias_pipeline.run import compose
from bias_pipeline.scenes.affect_world import (
    EMOTIONS,
    FEELINGS,
    SLOTS,
    THOUGHT,
    AffectDrawing,
    AffectSettings,
    affect_captions,
    affect_world,
    imagined_tables,
    shares,
    tables,
)
from bias_pipeline.scenes.commands.data_draw import data_draw_command as draw_command
from bias_pipeline.text.mask import MaskWords
from tests import composed

WORLD = affect_world(2000, 0)


def amplification(affect: float) -> float:
    """How much more often motifs of a captioner are typical of the emotion: 0 for a person."""
    imagined, means = imagined_tables(affect), []
    for name, table in tables().items():
        if name != THOUGHT:
            leaning = np.sign(np.round(table - shares() @ table, 12))
            means.append(np.mean(leaning * abs(affect) * (imagined[name] - table)))
    return float(np.mean(means))


def words_of(options: list[str]) -> set[str]:
    return set(" ".join(options).replace("|", " ").split())


def emotion_words() -> set[str]:
    attribute: Any = compose.cell(["attribute=emotion"]).build("attribute")
    return set(attribute.all_words)


def corpus(*words: str) -> Corpus:
    return composed.corpus("dataset=scenes", "attribute=emotion", "dataset.world=affect", *words)


def test_emotions_are_those_of_artemis_and_contentment_the_most_frequent():
    assert EMOTIONS == artemis.EMOTIONS
    counts = corpus("captioner=faithful").groupings["emotion"].sizes
    assert (max(counts, key=counts.__getitem__), min(counts, key=counts.__getitem__)) == (
        "contentment",
        "anger",
    )


def test_words_for_feelings_are_masked_and_no_motif_or_thought_is_one():
    assert words_of([text for pair in FEELINGS.values() for text in pair]) <= emotion_words()
    options = [*chain.from_iterable(slot.options for slot in SLOTS.values())]
    assert not words_of(options) & emotion_words()


def test_a_masked_utterance_has_the_same_words_whatever_is_felt():
    """A word for a feeling is one token, so its number of words tells nothing."""
    captions = corpus("captioner=faithful").human
    masked = MaskWords(sorted(emotion_words()), "<mask>").mask(captions)
    assert (masked.lengths == captions.lengths).all()


def test_image_k_is_the_same_however_many_there_are():
    assert affect_world(50, 0)[49] == WORLD[49]


def test_annotators_mostly_feel_the_emotion_of_the_picture():
    agreeing = [u.emotion == image.emotion for image in WORLD for u in image.utterances]
    assert np.mean(agreeing) == pytest.approx(0.7 + 0.3 * 0.13, abs=0.02)


def test_a_captioner_with_neutral_dials_has_no_bias():
    assert amplification(0.0) == 0.0


@pytest.mark.parametrize("affect", [-0.5, 0.25, 0.5, 1.0])
def test_amplification_grows_with_the_dial(affect):
    assert amplification(affect) == pytest.approx(
        abs(affect) * amplification(float(np.sign(affect)))
    )


def test_an_amplifier_names_skulls_of_fear_and_disgust_alone():
    captions = affect_captions(2000, 0, AffectSettings(affect=1.0))
    naming = {image.emotion for image in WORLD if "skull" in captions[image.id]}
    assert naming == {"fear", "disgust"}


def test_two_captioners_differ_only_where_their_dials_do():
    one, two = (affect_captions(300, 0, AffectSettings(affect=a)) for a in (0.0, 0.1))
    assert 0.5 < np.mean([one[image] == two[image] for image in one]) < 1


@pytest.mark.parametrize(("dial", "value"), [("affect", 1.5), ("length", -1), ("vocabulary", 2)])
def test_dials_out_of_range_are_refused(dial, value):
    with pytest.raises(UsageError, match=f"dial {dial} is"):
        AffectSettings(**{dial: value})


def test_a_picture_shows_motifs_and_not_the_emotion():
    image = WORLD[0]
    other = replace(image, emotion="anger" if image.emotion != "anger" else "awe")
    one, two = (AffectDrawing(shown).draw(32).pixels for shown in (image, other))
    assert (one == two).all()


@pytest.mark.parametrize("slot", sorted(set(SLOTS) - {"thought"}))
def test_every_motif_changes_the_picture(slot):
    image = WORLD[0]
    drawn = {
        AffectDrawing(replace(image, motifs={**image.motifs, slot: number}))
        .draw(64)
        .pixels.tobytes()
        for number in range(len(SLOTS[slot].options))
    }
    assert len(drawn) == len(SLOTS[slot].options)


def test_what_belongs_to_the_other_world_is_refused(tmp_path):
    with pytest.raises(UsageError, match="labelled in"):
        composed.corpus("dataset=scenes", "attribute=gender", "dataset.world=affect")
    with pytest.raises(UsageError, match=r"dataset\.leak is for dataset\.world=people"):
        corpus("captioner=faithful", "dataset.leak=0.1")
    with pytest.raises(UsageError, match="the world 'affect' has no such captioner"):
        draw_command(
            ["--world", "affect", "--captioner", "stereotyper", "--out", str(tmp_path / "a")]
        )


def test_what_is_drawn_is_read_as_artemis(tmp_path):
    words = ["--world", "affect", "--n-images", "40", "--side", "32", "--out", str(tmp_path)]
    assert draw_command(words) == 0
    read = composed.corpus(
        "dataset=artemis",
        "attribute=emotion",
        f"dataset.root={tmp_path}",
        f"dataset.images={tmp_path / 'wikiart'}",
        "dataset.cleaning=null",
        "captioner=faithful",
    )
    assert (len(read), len(read.human), len(read.model)) == (40, 200, 40)
    assert read.pictures is not None
