"""Files of GRIT's weights: what is read, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.pictures.grit.checkpoint import (
    load_captions,
    load_detector,
    read_checkpoint,
    rename_grit_weights,
)
from bias_pipeline.pictures.grit.detector import GritDetector
from bias_pipeline.pictures.grit.sizes import read_vocabulary, shared_rows
from tests.grit_files import (
    SMALL,
    WORDS,
    network,
    released_weights,
    write_captioner,
    write_detector,
    write_vocabulary,
)

WHAT = "encoder.size=small"


@pytest.mark.parametrize("n_memories", [0, 1, 3])
def test_every_name_of_a_captioner_is_one_of_ours_or_unused(n_memories):
    built_network = network(n_memories=n_memories)
    weights = rename_grit_weights(released_weights(built_network), Path("grit.pth"))
    assert set(weights) == set(built_network.state_dict())
    assert all(
        torch.equal(weights[name], value) for name, value in built_network.state_dict().items()
    )


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("write", [write_captioner, write_detector])
def test_a_detector_sees_the_same_as_the_saved_one(tmp_path, write, zipped):
    item, fresh = network(), GritDetector(SMALL).eval()
    path = write(tmp_path / "grit.pth", item, _use_new_zipfile_serialization=zipped)
    load_detector(fresh, read_checkpoint(path), WHAT)
    pixels = torch.randint(0, 256, (2, 3, 64, 64), dtype=torch.uint8)
    with torch.no_grad():
        for recorded, wanted in zip(fresh(pixels), item.detector(pixels), strict=True):
            assert torch.equal(recorded, wanted)


def test_a_detector_with_attributes_is_one(tmp_path):
    item, fresh = network(), GritDetector(SMALL).eval()
    path = write_detector(tmp_path / "grit.pth", item, n_attributes=5)
    load_detector(fresh, read_checkpoint(path), WHAT)
    assert torch.equal(fresh.regions.query_embed.weight, item.detector.regions.query_embed.weight)


def test_a_captioner_has_the_file_s_weights_and_the_words_that_both_know(tmp_path):
    saved, other = network(), network(n_words=6, seed=1)
    before = other.cap_generator.word_emb.weight.clone()
    rows = shared_rows({"man": 3, "gender": 4, "female": 5}, {w: n for n, w in enumerate(WORDS)})
    load_captions(other, read_checkpoint(write_captioner(tmp_path / "g.pth", saved)), rows, WHAT)
    table, theirs = other.cap_generator.word_emb.weight, saved.cap_generator.word_emb.weight
    assert torch.equal(table[[0, 1, 2, 3, 5]], theirs[[0, 1, 2, 4, 8]])
    assert torch.equal(table[4], before[4])
    assert torch.equal(other.grid_net.fc.weight, saved.grid_net.fc.weight)


def refusal(weights: dict[str, object], path: Path) -> str:
    torch.save(weights, path)
    with pytest.raises(DataError) as refused:
        load_detector(GritDetector(SMALL), read_checkpoint(path), WHAT)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_weights_that_are_no_numbers_are_refused(tmp_path):
    weights: dict[str, object] = dict(released_weights(network()))
    name = next(weight for weight in weights if weight.endswith("fc.weight"))
    weights[name] = torch.full_like(weights[name], torch.nan)
    assert f"{name!r} contains NaN" in refusal({"state_dict": weights}, tmp_path / "g.pth")


QUERIES = "detector.det_module.query_embed.weight"


@pytest.mark.parametrize(
    ("without", "added", "message"),
    [
        ("cap_generator.pos_emb", {}, "'cap_generator.pos_emb.weight' is absent"),
        (QUERIES, {}, "'regions.query_embed.weight' is absent"),
        ("detector.", {}, "has no detector"),
        ("nothing", {"head.weight": torch.zeros(1)}, "'head.weight' is not a weight of GRIT"),
        ("nothing", {"detector.query_embed.weight": torch.zeros(16, 128)}, "occurs in it twice"),
    ],
)
def test_other_weights_than_grit_s_are_refused(tmp_path, without, added, message):
    weights = {k: v for k, v in released_weights(network()).items() if not k.startswith(without)}
    assert message in refusal({"state_dict": weights | added}, tmp_path / "g.pth")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"n_regions": 5}, "is of 5 x 128 numbers and not of 16 x 128"),
        ({"n_regions": 5}, "encoder.size=small"),
        ({"region_layers": 3}, "one too many"),
    ],
)
def test_another_size_is_refused(tmp_path, other, message):
    size = replace(SMALL, **other)
    assert message in refusal(
        {"state_dict": released_weights(network(size), size)}, tmp_path / "g.pth"
    )


def test_an_optimiser_alone_is_refused(tmp_path):
    message = refusal({"optim_model": {"state": {}}}, tmp_path / "g.pth")
    assert "neither state_dict (a captioner) nor model" in message


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_file_that_is_cut_short_is_refused(tmp_path, share):
    path = write_captioner(tmp_path / "g.pth", network())
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(DataError, match="cut short"):
        read_checkpoint(path)


def test_a_file_that_is_absent_is_told(tmp_path):
    with pytest.raises(ResourceError, match="fetch GRIT's weights by hand"):
        read_checkpoint(tmp_path / "g.pth")


def test_words_are_read_by_number(tmp_path):
    vocabulary = read_vocabulary(write_vocabulary(tmp_path / "vocab.json"), len(WORDS))
    assert vocabulary["man"] == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [(WORDS[:5], "has 5 words, but the weights have 9"), (WORDS[::-1], "the first of them <unk>")],
)
def test_other_vocabularies_are_refused(tmp_path, words, message):
    with pytest.raises(DataError, match=message):
        read_vocabulary(write_vocabulary(tmp_path / "vocab.json", words), len(WORDS))
