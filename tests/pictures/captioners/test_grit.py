"""GRIT, prompted: what its answers depend on, and its attackers."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from bias_pipeline.attack.neural import NeuralProbe
from bias_pipeline.attack.recipe import Adam
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.data.image_masking import Blank
from bias_pipeline.data.photos import pixel_table
from bias_pipeline.errors import ResourceError, UsageError
from bias_pipeline.pictures.captioners.backbones import PixelInputs
from bias_pipeline.pictures.captioners.grit import Grit
from bias_pipeline.pictures.captioners.grit_net import GritNet
from bias_pipeline.pictures.captioners.prompt import N_SPECIAL, Answers, Prompt
from bias_pipeline.pictures.grit.detector import GritDetector, Visual
from bias_pipeline.pictures.grit.sizes import SIZES
from tests.grit_files import network, write_captioner, write_detector, write_vocabulary
from tests.pictures.captioners import test_sat
from tests.pictures.captioners.test_sat import FLAGS, data, split

WORDS, C = 11, 8
TINY = replace(SIZES["small"], size=C, n_heads=2, inner=10)
TOKENS = torch.tensor([[2, 3, 4, 5], [2, 6, 1, 1]])
LENGTHS = torch.tensor([4, 2])
GRIT = Grit(Prompt("gender"))


class Given(nn.Module):
    """Passes on what was seen."""

    grid_dim = 5

    def forward(self, grid: Tensor, regions: Tensor) -> Visual:
        return Visual(grid, regions)


def picture() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return {
        "grid": torch.randn(2, 6, 5, generator=generator),
        "regions": torch.randn(2, 3, C, generator=generator),
    }


def net(answers: Sequence[Sequence[int]] = ((7,), (8,))) -> GritNet:
    torch.manual_seed(0)
    network = GritNet(Given(), WORDS, answers, TINY, "released")
    for weight in network.parameters():
        nn.init.normal_(weight, std=0.3)
    return network.eval()


def following(net: GritNet, words: Sequence[int], row: int) -> Tensor:
    """(V,) how likely each word is to follow one line of words."""
    visual = Visual(*(value[row : row + 1] for value in picture().values()))
    visual = visual._replace(grid=net.grid_net(visual.grid))
    states = net.cap_generator(torch.tensor([list(words)]), visual)
    return net.cap_generator.fc(states[0, -1]).log_softmax(dim=0)


def likely(net: GritNet, words: Sequence[int], follows: Sequence[int], row: int) -> float:
    """One word after the other."""
    total, read = 0.0, list(words)
    for word in follows:
        total += following(net, read, row)[word].item()
        read.append(word)
    return total


LINES = [TOKENS[row, : LENGTHS[row]].tolist() for row in range(2)]


@pytest.mark.parametrize("answers", [((7,), (8,)), ((7, 9), (8,))], ids=["words", "several words"])
def test_answers_are_what_is_likely_to_follow_the_prompt(answers):
    built_net = net(answers)
    output = built_net(TOKENS, LENGTHS, **picture())
    for row, line in enumerate(LINES):
        wanted = [likely(built_net, line, answer, row) for answer in answers]
        assert output[row].tolist() == pytest.approx(wanted, abs=1e-5)


def test_what_follows_the_answer_counts():
    built_net = net()
    tail, tail_lengths = torch.tensor([[3, 4], [5, 1]]), torch.tensor([2, 1])
    output = built_net(TOKENS, LENGTHS, tail, tail_lengths, **picture())
    for row, rest in enumerate(([3, 4], [5])):
        wanted = [likely(built_net, LINES[row], [answer, *rest], row) for answer in (7, 8)]
        assert output[row].tolist() == pytest.approx(wanted, abs=1e-5)


def parts(module: nn.Module) -> set[type]:
    """The kinds of parts of a network that PyTorch does not have."""
    kinds = {type(part) for part in module.modules()}
    return {kind for kind in kinds if not kind.__module__.startswith("torch.")}


def test_it_shares_no_part_with_show_attend_and_tell():
    grit = GritNet(GritDetector(SIZES["small"]), WORDS, ((7,), (8,)), SIZES["small"], "released")
    assert parts(grit).isdisjoint(parts(test_sat.net("paper")))


# --- attackers


def probe(grit: Grit = GRIT, epochs: int = 3) -> NeuralProbe:
    return NeuralProbe(
        grit, Answers(), Adam(0.001), 32, {**FLAGS, "max_epochs": epochs}, processes=1
    )


def test_dropout_is_off_when_it_answers():
    labelled = data(64)
    items = GRIT.read(labelled).fit(np.arange(48))
    built = GRIT.build(items).eval()
    rows = {k: torch.from_numpy(v) for k, v in items.batch(np.arange(8)).items()}
    assert torch.equal(built(**rows), built(**rows))
    assert not torch.equal(built.train()(**rows), built(**rows))


def test_weights_and_the_second_gate_decide_the_attacker_and_the_cache_does_not(tmp_path):
    assert replace(GRIT, cache="here").spec == GRIT.spec
    assert replace(GRIT, second_gate="paper").spec != GRIT.spec
    grit = with_file(tmp_path)
    before = grit.spec
    write_captioner(tmp_path / "grit.pth", network(seed=1))
    assert grit.spec != before


def test_blank_pictures_tell_all_alike_under_one_caption():
    labelled = data(64)
    assert labelled.pictures is not None
    blank = replace(labelled, pictures=labelled.pictures.with_edit(Blank()))
    predictions = probe(epochs=1).fit_predict(blank, [split(64)])
    assert np.ptp(predictions.probs[0], axis=0).max() < 1e-6


def test_words_that_tell_the_group_are_learnt():
    labelled = data(200)
    words = np.where(labelled.labels == 1, "a person with a handbag", "a person with a tie")
    telling = replace(labelled, captions=Captions.from_texts(words.tolist()))
    predictions = probe().fit_predict(telling, [split(200)])
    assert (predictions.probs[0].argmax(axis=1) == predictions.truth[0]).mean() > 0.95


@pytest.mark.slow
def test_unmasked_pictures_tell_the_group_under_one_caption():
    labelled = data(600)
    predictions = probe(epochs=6).fit_predict(labelled, [split(600)])
    assert (predictions.probs[0].argmax(axis=1) == predictions.truth[0]).mean() > 0.8


# --- released weights


def with_file(folder: Path, **settings: str) -> Grit:
    """GRIT with the weights of a captioner's file."""
    weights = write_captioner(folder / "grit.pth", network())
    options = {"vocabulary": str(write_vocabulary(folder / "vocab.json")), **settings}
    return Grit(Prompt("gender"), weights=str(weights), cache=str(folder / "kept"), **options)


def test_a_released_detector_sees_each_picture_once(tmp_path):
    labelled, grit = data(12), with_file(tmp_path)
    content = grit.visual.read(labelled)
    (tmp_path / "grit.pth").rename(tmp_path / "moved.pth")
    moved = replace(grit, weights=str(tmp_path / "moved.pth"))
    files = sorted((tmp_path / "kept").iterdir())
    again = moved.visual.read(labelled)
    assert sorted((tmp_path / "kept").iterdir()) == files
    first, second = (one.batch(np.arange(3)) for one in (content, again))
    assert first["grid"].shape == (3, 4, SIZES["small"].grid_dim)
    assert np.array_equal(first["regions"], second["regions"])


def test_what_is_kept_is_what_the_detector_sees(tmp_path):
    labelled, grit = data(3), with_file(tmp_path)
    assert labelled.pictures is not None
    pixels = pixel_table(labelled.pictures, SIZES["small"].side, None).transpose(0, 3, 1, 2).copy()
    with torch.no_grad():
        wanted = network().detector(torch.from_numpy(pixels))
    batch = grit.visual.read(labelled).batch(np.arange(3))
    for name in ("grid", "regions"):
        assert np.abs(batch[name] - getattr(wanted, name).numpy()).max() < 5e-3


def test_a_released_captioner_is_trained_with_its_detector_as_it_is(tmp_path):
    labelled, grit = data(64), with_file(tmp_path)
    net = grit.build(grit.read(labelled).fit(np.arange(48)))
    assert not list(net.detector.parameters())
    assert torch.equal(net.grid_net.fc.weight, network().grid_net.fc.weight)
    assert probe(grit, epochs=1).fit_predict(labelled, [split(64)]).probs[0].shape == (16, 2)


def test_words_belong_to_a_captioners_file_and_not_to_a_detectors(tmp_path):
    labelled, grit = data(64), replace(with_file(tmp_path), vocabulary=None)
    with pytest.raises(UsageError, match=r"name its words with encoder\.vocabulary"):
        grit.build(grit.read(labelled).fit(np.arange(48)))
    labelled, grit = data(64), with_file(tmp_path)
    write_detector(tmp_path / "grit.pth", network())
    with pytest.raises(UsageError, match=r"leave encoder\.vocabulary out"):
        grit.build(grit.read(labelled).fit(np.arange(48)))


def test_words_that_the_file_lacks_are_told(tmp_path):
    (note,) = with_file(tmp_path).notes(["male", "female"])
    assert note.endswith("start with new vectors: gender, male, therefore")
    assert GRIT.notes(["male", "female"]) == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vocabulary": "v.json"}, "words without weights"),
        ({"he": True, "weights": "w.pth"}, "leave one out"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings, message):
    with pytest.raises(UsageError, match=message):
        Grit(Prompt("gender"), **settings).require()


def fresh(he: bool) -> GritNet:
    torch.manual_seed(0)
    words = {str(number): number + N_SPECIAL for number in range(200)}
    nothing = PixelInputs(np.zeros((0, 64, 64, 3), np.uint8))
    return replace(GRIT, he=he).network(nothing, words, ())


def test_weights_of_he_have_their_spread_and_leave_the_places_of_regions():
    plain, begun = (fresh(he).state_dict() for he in (False, True))
    places = [name for name in begun if "sampling_offsets" in name]
    assert places
    assert all(torch.equal(plain[name], begun[name]) for name in places)
    # The square root of two by the numbers that come in.
    linear = (m for m in fresh(he=True).cap_generator.modules() if isinstance(m, nn.Linear))
    layer = next(m for m in linear if m.weight.any())
    assert layer.weight.std().item() == pytest.approx((2 / layer.in_features) ** 0.5, rel=0.1)


@pytest.mark.parametrize("setting", ["weights", "vocabulary"])
def test_files_that_are_absent_are_known_before_any_work(tmp_path, setting):
    with pytest.raises(ResourceError, match=f"encoder.{setting}=nowhere"):
        replace(with_file(tmp_path), **{setting: "nowhere"}).require()
