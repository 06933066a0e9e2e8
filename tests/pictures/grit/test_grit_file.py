"""A captioner of a GRIT file says what a second implementation reads out of the same file."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.errors import DataError
from bias_pipeline.pictures.captioners.grit import Grit
from bias_pipeline.pictures.captioners.grit_net import GritNet
from bias_pipeline.pictures.captioners.prompt import Prompt, PromptedInputs
from tests.grit_files import (
    N_POSITIONS,
    SMALL,
    WORDS,
    network,
    released_weights,
    write_captioner,
    write_vocabulary,
)
from tests.pictures.captioners.test_grit import data
from tests.pictures.grit import plain_grit

CAPTION = [2, 4, 5, 4, 8]
WIDTH = SMALL.size


def captioner(folder: Path, n_memories: int) -> tuple[Grit, dict[str, Tensor]]:
    """GRIT that begins as a file has it, and the file's weights."""
    saved = network(n_memories=n_memories)
    weights = write_captioner(folder / "grit.pth", saved)
    vocabulary = write_vocabulary(folder / "vocab.json")
    grit = Grit(Prompt("gender"), weights=str(weights), vocabulary=str(vocabulary))
    return grit, released_weights(saved)


def begin_net(grit: Grit) -> GritNet:
    """Its network with the words of the file alone, by the file's numbers."""
    labelled = data(8)
    visual = grit.visual.read(labelled)
    return grit.network(visual, {word: n for n, word in enumerate(WORDS) if n > 2}, ()).eval()


def visual_inputs() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(3)
    return {
        "grid": torch.randn(2, 4, SMALL.grid_dim, generator=generator),
        "regions": torch.randn(2, SMALL.n_regions, WIDTH, generator=generator),
    }


def expected_log_probs(weights: dict[str, Tensor], words: list[int], row: int) -> Tensor:
    grid = plain_grit.grid_net(weights, visual_inputs()["grid"][row], SMALL.n_heads)
    regions = visual_inputs()["regions"][row]
    return plain_grit.log_probabilities(weights, words, grid, regions, SMALL.n_heads)


@pytest.mark.parametrize("n_memories", [0, 1, 3])
def test_words_are_as_likely_as_in_a_second_implementation(tmp_path, n_memories):
    grit, weights = captioner(tmp_path, n_memories)
    with torch.no_grad():
        output = begin_net(grit).next_word_log_probs(
            torch.tensor([CAPTION, CAPTION[::-1]]), **visual_inputs()
        )
    for row, words in enumerate((CAPTION, CAPTION[::-1])):
        assert (output[row] - expected_log_probs(weights, words, row)).abs().max() < 1e-5


@pytest.mark.parametrize("name", ["cap_generator.pos_emb.weight", "m_k", "m_v"])
def test_positions_and_memory_of_the_file_matter(tmp_path, name):
    """The test above would see it if one were left out."""
    _, weights = captioner(tmp_path, 1)
    without = {key: weight * (not key.endswith(name)) for key, weight in weights.items()}
    differ = expected_log_probs(weights, CAPTION, 0) - expected_log_probs(without, CAPTION, 0)
    assert differ.abs().max() > 1e-4  # ten times what it allows


def test_positions_of_a_file_are_not_trained(tmp_path):
    grit, _ = captioner(tmp_path, 1)
    trained = {name for name, _ in begin_net(grit).named_parameters()}
    assert "cap_generator.positions" not in trained
    assert "grid_net.layers.0.mhatt.memory_keys" in trained


def inputs(grit: Grit, n_words: int) -> PromptedInputs:
    labelled = data(8)
    captions = Captions.from_texts([*["a man"] * 7, " ".join(["a"] * n_words)])
    long = LabelledCaptions(
        "model", captions, labelled.labels, 2, labelled.classes, labelled.pictures
    )
    return grit.read(long).fit(np.arange(8))


def test_a_caption_that_fills_all_positions_is_read(tmp_path):
    grit, _ = captioner(tmp_path, 0)
    most = N_POSITIONS - len(
        ["<bos>", *Prompt("gender").words_before]
    )  # which has the caption's place
    net = grit.build(inputs(grit, most)).eval()
    batch = inputs(grit, most).batch(np.arange(8))
    result = net(**{name: torch.from_numpy(item) for name, item in batch.items()})
    assert result.isfinite().all()


def test_a_caption_is_as_long_as_positions_and_of_any_length_from_scratch(tmp_path):
    grit, _ = captioner(tmp_path, 0)
    with pytest.raises(DataError, match=r"reads 16 words, and 'a a a .* in its prompt has \d+; sh"):
        grit.build(inputs(grit, N_POSITIONS))
    grit = Grit(Prompt("gender"))
    assert grit.build(inputs(grit, 200)).cap_generator.positions is None
