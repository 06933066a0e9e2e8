"""A captioner whose captions are grounded in an emotion: its network, its folder, who reads it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from bias_pipeline.data.photos import find_photos
from bias_pipeline.errors import DataError, NotApplicableError, UsageError
from bias_pipeline.models.pretrained import find_pretrained
from bias_pipeline.models.sampling import Decoding
from bias_pipeline.pictures.captioners.backbones import PixelInputs
from bias_pipeline.pictures.captioners.fitted import (
    KINDS,
    NO_PROMPT,
    Emotion,
    Fitted,
    FittedCaptioner,
    FittedJudge,
    read_emotion,
)
from bias_pipeline.pictures.captioners.sat import Sat
from bias_pipeline.pictures.captioners.sat_net import SatNet
from bias_pipeline.pictures.forced_captions import FittedForced
from tests.photo_folder import write_photos

CPU = torch.device("cpu")
EMOTIONS = ("awe", "anger", "something_else")
SIZES: Any = {"side": 32, "width": 4, "embedding_dim": 6, "hidden_dim": 8, "attention_dim": 5}
WORDS = ("the", "storm", "made", "me", "feel", "small", "and", "then", "it", "was", "over")
PIXELS = {"pixels": torch.arange(2 * 3 * 32 * 32).remainder(251).view(2, 3, 32, 32).byte()}
TOKENS = torch.tensor([[2, 5, 7, 4], [2, 9, 6, 8]])


def grounded_sat(emotions: tuple[str, ...] = EMOTIONS) -> Fitted:
    return Fitted("sat", Sat(NO_PROMPT, recipe="artemis", **SIZES), WORDS, emotions)


def network(emotions: tuple[str, ...] = EMOTIONS) -> SatNet:
    torch.manual_seed(0)
    net: SatNet = grounded_sat(emotions).network()
    for weight in net.parameters():
        nn.init.normal_(weight, std=1.0)
    return net.eval()


def vector(name: str) -> torch.Tensor:
    return torch.eye(len(EMOTIONS))[[EMOTIONS.index(name)] * 2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "mine"
    path.mkdir()
    grounded_sat().save(path, network().state_dict(), "# A card\n")
    return path


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return write_photos(tmp_path / "photos", 3)


def captioner(folder: Path, emotion: Emotion | None) -> FittedCaptioner:
    model = find_pretrained(str(folder), KINDS)
    return FittedCaptioner(model, CPU, Decoding(max_new_tokens=8), emotion=emotion)


def captions(folder: Path, photos: Path, emotion: Emotion) -> list[str]:
    speaker = captioner(folder, emotion)
    read = [speaker.read(path) for path in find_photos(photos).values()]
    return [text for [text] in speaker.describe(read)]


def test_the_emotion_enters_every_step_of_the_cell():
    """One step is PyTorch's own cell over the word, what is attended to, and the emotion."""
    net = network()
    with torch.no_grad():
        reading = net.initial_state(vector("anger"), **PIXELS)
        for place in range(TOKENS.shape[1]):
            state = reading.step
            reading, _ = net.step(reading, TOKENS[:, place])
            assert net.ground is not None
            emotion = torch.relu(net.ground(vector("anger")))
            parts = [net.vectors(TOKENS[:, place]), reading.step.context, emotion]
            hidden, cell = net.cell(torch.cat(parts, dim=1), (state.hidden, state.cell))
            assert torch.allclose(reading.step.hidden, hidden, atol=1e-6)
            assert torch.allclose(reading.step.cell, cell, atol=1e-6)


def test_another_emotion_makes_other_words_likely_at_every_step():
    net = network()
    with torch.no_grad():
        one, two = (
            net.next_word_log_probs(TOKENS, vector(name), **PIXELS) for name in ("anger", "awe")
        )
    assert ((one - two).abs().amax(dim=2) > 1e-4).all()


def test_writing_word_by_word_and_all_at_once_agree():
    net = network()
    with torch.no_grad():
        whole = net.next_word_log_probs(TOKENS, vector("awe"), **PIXELS)
        reading = net.initial_state(vector("awe"), **PIXELS)
        for place in range(TOKENS.shape[1]):
            reading, likely = net.step(reading, TOKENS[:, place])
            assert torch.allclose(likely, whole[:, place], atol=1e-5)


def test_without_emotions_the_network_has_no_weights_for_them():
    more = {*network().state_dict()} - {*network(()).state_dict()}
    assert more == {"ground.weight", "ground.bias", "guess.weight", "guess.bias"}


def test_its_emotions_are_read_back_in_their_order(folder):
    assert Fitted.read(find_pretrained(str(folder), KINDS)).emotions == EMOTIONS


@pytest.mark.parametrize("emotions", ['["awe", "awe"]', "[1, 2]", '"awe"'])
def test_emotions_that_are_no_names_are_refused(folder, emotions):
    path = folder / "config.json"
    text = path.read_text()
    start = text.index('"emotions": ') + len('"emotions": ')
    path.write_text(f"{text[:start]}{emotions}}}")
    with pytest.raises(DataError, match="emotions"):
        Fitted.read(find_pretrained(str(folder), KINDS))


def test_captions_depend_on_the_emotion_which_a_table_gives_each_photo(folder, photos):
    assert captions(folder, photos, "anger") != captions(folder, photos, "awe")
    images = list(find_photos(photos))
    table = dict(zip(images, ("anger", "awe", "anger"), strict=True))
    angry, awed = (captions(folder, photos, name) for name in ("anger", "awe"))
    assert captions(folder, photos, table) == [angry[0], awed[1], angry[2]]
    with pytest.raises(DataError, match="the table has no emotion of image"):
        captions(folder, photos, {"9999": "awe"})


def test_the_predicted_emotion_is_that_of_the_head(folder, photos):
    """With a head that always says awe."""
    net = network()
    with torch.no_grad():
        assert net.guess is not None
        net.guess.weight.zero_()
        net.guess.bias.copy_(torch.tensor([1.0, 0.0, 0.0]))
    grounded_sat().save(folder, net.state_dict(), "# A card\n")
    assert captions(folder, photos, "predicted") == captions(folder, photos, "awe")


@pytest.mark.parametrize(
    ("emotion", "message"),
    [
        (None, "give --emotion predicted, a table, or one of awe, anger"),
        ("angre", "'angre' is unknown; did you mean 'anger'"),
        ({"1": "joy"}, "'joy' is unknown"),
    ],
)
def test_an_emotion_that_it_does_not_know_is_refused(folder, emotion, message):
    with pytest.raises(UsageError, match=message):
        captioner(folder, emotion)


def test_a_captioner_without_grounding_takes_no_emotion(tmp_path):
    grounded_sat(()).save(tmp_path, network(()).state_dict(), "# A card\n")
    with pytest.raises(UsageError, match="leave out --emotion"):
        captioner(tmp_path, "awe")


def test_a_grounded_captioner_needs_its_emotion_to_judge_and_to_read_again(folder):
    with pytest.raises(NotApplicableError, match="would have to guess"):
        FittedJudge(find_pretrained(str(folder), KINDS), CPU)
    with pytest.raises(NotApplicableError, match="grounded in an emotion, which is not given"):
        FittedForced(find_pretrained(str(folder), KINDS), CPU)


def test_a_table_may_name_files_and_has_one_emotion_an_image(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("image_id,emotion\nStyle/a-painting.jpg,something else\n7,awe\n")
    assert read_emotion(str(path)) == {"a-painting": "something_else", "7": "awe"}
    path = tmp_path / "votes.csv"
    path.write_text("image_id,emotion\n7,awe\n7,fear\n")
    with pytest.raises(DataError, match="line 3: image 7 has two emotions"):
        read_emotion(str(path))


def test_the_head_learns_what_pictures_tell_and_nothing_else_changes():
    from bias_pipeline.pictures.fitting.learning import fit_guess

    net = network()
    shades = np.array([20, 120, 230], np.uint8)
    groups = np.arange(60) % 3
    table = np.broadcast_to(shades[groups][:, None, None, None], (60, 32, 32, 3)).copy()
    before = {name: weight.clone() for name, weight in net.state_dict().items()}
    share = fit_guess(net, PixelInputs(table), np.arange(60), groups)
    changed = {n for n, weight in net.state_dict().items() if not torch.equal(weight, before[n])}
    assert (share, changed) == (1.0, {"guess.weight", "guess.bias"})
