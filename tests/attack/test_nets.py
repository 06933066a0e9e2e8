"""The networks behind the encoders, and what the attacker makes of them."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from bias_pipeline.attack.attacker import Attacker, Batch
from bias_pipeline.attack.encoder import N_SPECIAL, PAD, UNKNOWN, WordInputs
from bias_pipeline.attack.nets import positions
from bias_pipeline.attack.recipe import Adam
from bias_pipeline.attack.trained import Mlp, Recurrent, Transformer
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.errors import UsageError

SIZES: dict[str, Any] = {"embedding_dim": 8, "hidden_dim": 6}
ENCODERS: dict[str, Recurrent | Transformer] = {
    "lstm": Recurrent("lstm", **SIZES),
    "bilstm": Recurrent("lstm", **SIZES, bidirectional=True),
    "lstm of two layers": Recurrent("lstm", **SIZES, n_layers=2),
    "rnn": Recurrent("rnn", **SIZES),
    "birnn": Recurrent("rnn", **SIZES, bidirectional=True),
    "transformer": Transformer(2, embedding_dim=8, feedforward_dim=16),
    "transformer of two layers": Transformer(2, embedding_dim=8, feedforward_dim=16, n_layers=2),
}
SHORT, LONG = [2, 3, 4], [5, 6, 7, 8, 9, 5, 6]

every_encoder = pytest.mark.parametrize("name", ENCODERS)


def encode(net: nn.Module, captions: list[list[int]], width: int = 0) -> Tensor:
    """The vectors of captions in one batch, padded to the longest or to ``width``."""
    lengths = torch.tensor([len(caption) for caption in captions])
    tokens = torch.full((len(captions), max(width, int(lengths.max()))), PAD)
    for row, caption in enumerate(captions):
        tokens[row, : len(caption)] = torch.tensor(caption)
    with torch.no_grad():
        vectors: Tensor = net.eval()(tokens, lengths)
    return vectors


def vocabulary(size: int) -> WordInputs:
    """Inputs of that many word numbers, the specials included."""
    words = " ".join(f"w{i}" for i in range(size - N_SPECIAL))
    return WordInputs(Captions.from_texts([words]), np.array([0]))


def net(name: str, n_words: int = 10) -> nn.Module:
    torch.manual_seed(0)
    return ENCODERS[name].build(vocabulary(n_words))


@every_encoder
def test_a_caption_is_a_vector_of_the_size_told(name):
    built_net = net(name)
    assert encode(built_net, [SHORT, LONG]).shape == (2, built_net.output_dim)


@every_encoder
@pytest.mark.parametrize(
    ("captions", "row", "width"),
    [([SHORT, LONG], 0, 0), ([LONG, SHORT], 1, 0), ([SHORT], 0, 12)],
    ids=["a longer caption after it", "before it", "padding"],
)
def test_what_else_is_in_the_batch_changes_nothing(name, captions, row, width):
    built_net = net(name)
    alone, beside = encode(built_net, [SHORT])[0], encode(built_net, captions, width)[row]
    torch.testing.assert_close(beside, alone, rtol=0, atol=1e-6)


@every_encoder
def test_the_order_of_words_counts(name):
    one, two = encode(net(name), [SHORT, SHORT[::-1]])
    assert not torch.allclose(one, two)


@every_encoder
def test_known_words_start_as_random_normal_vectors_and_special_ones_as_zero(name):
    weight = net(name, 2000).vectors.weight
    known = weight[N_SPECIAL:]
    assert (known.mean().item(), known.std().item()) == pytest.approx((0, 1), abs=0.05)
    assert not weight[[UNKNOWN, PAD]].any()


@every_encoder
@pytest.mark.parametrize("training", [True, False])
def test_units_are_dropped_in_training_alone(name, training):
    trained = net(name).train(training)
    one, two = (trained(torch.tensor([SHORT]), torch.tensor([3])) for _ in range(2))
    assert torch.equal(one, two) is not training


@pytest.mark.parametrize("cell", ["lstm", "rnn"])
def test_two_ways_join_the_final_states_of_both(cell):
    """The forward half is the same network one way."""
    torch.manual_seed(0)
    both = Recurrent(cell, **SIZES, bidirectional=True).build(vocabulary(10))
    one = Recurrent(cell, **SIZES).build(vocabulary(10))
    one.load_state_dict(
        {name: value for name, value in both.state_dict().items() if "reverse" not in name}
    )
    forward = encode(both, [SHORT, LONG])[:, : SIZES["hidden_dim"]]
    torch.testing.assert_close(forward, encode(one, [SHORT, LONG]), rtol=0, atol=1e-6)


def test_the_published_attacker_has_as_many_weights_as_published():
    """2,372,557 at 619 word types, where <unk> and <pad> are two of the 619."""
    encoder = Recurrent("lstm", 100, 256, n_layers=2, bidirectional=True).build(vocabulary(619))
    head = Mlp().build(encoder.output_dim, 1)
    assert sum(p.numel() for part in (encoder, head) for p in part.parameters()) == 2_372_557


def test_positions_are_sines_and_cosines():
    place, size, pair = 7, 10, 3
    angle = place / 10_000 ** (2 * pair / size)
    position = positions(9, size)[place, 2 * pair : 2 * pair + 2].tolist()
    assert position == pytest.approx([math.sin(angle), math.cos(angle)], abs=1e-6)


def test_positions_do_not_depend_on_the_longest_caption():
    assert torch.equal(positions(20, 8)[:5], positions(5, 8))


@pytest.mark.parametrize(("hidden", "n_linear"), [((), 1), ((64, 32), 3)])
def test_heads_have_one_and_three_layers(hidden, n_linear):
    head = Mlp(hidden).build(8, 2)
    assert sum(isinstance(layer, nn.Linear) for layer in head) == n_linear


@pytest.mark.parametrize(
    ("encoder", "options", "message"),
    [
        (Recurrent, {"cell": "lsmt"}, "cell='lsmt' must be one of lstm, rnn"),
        (Transformer, {"n_heads": 3, "embedding_dim": 64}, "embedding_dim=64 must be even"),
        (Transformer, {"n_heads": 1, "embedding_dim": 61}, "embedding_dim=61 must be even"),
    ],
)
def test_an_unknown_cell_and_sizes_that_do_not_fit_are_refused(encoder, options, message):
    with pytest.raises(UsageError, match=message):
        encoder(**options)


# The attacker: outputs to predictions and loss.


class Given(nn.Module):
    """An encoder whose vectors are the tokens."""

    def forward(self, tokens: Tensor) -> Tensor:
        return tokens.float()


def attacker(*, exclusive: bool) -> Attacker:
    return Attacker(Given(), nn.Identity(), exclusive=exclusive, optimizer=Adam(0.1))


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


SOFTMAX = [math.exp(x) / sum(map(math.exp, (0, 1, 3))) for x in (0, 1, 3)]


@pytest.mark.parametrize(
    ("outputs", "exclusive", "expected"),
    [
        ([2], True, [sigmoid(-2), sigmoid(2)]),
        ([0, 1, 3], True, SOFTMAX),
        ([0, 1, 3], False, [sigmoid(0), sigmoid(1), sigmoid(3)]),
    ],
    ids=["of the last of two groups", "a softmax", "of tasks, a sigmoid each"],
)
def test_outputs_become_probabilities(outputs, exclusive, expected):
    built_attacker = attacker(exclusive=exclusive)
    (prediction,) = built_attacker.probabilities(tokens=torch.tensor([outputs])).tolist()
    assert prediction == pytest.approx(expected)


@pytest.mark.parametrize(
    ("outputs", "targets", "exclusive", "likely"),
    [
        ([[2], [2]], [1, 0], True, [sigmoid(2), sigmoid(-2)]),
        ([[0, 1, 3]], [2], True, [SOFTMAX[2]]),
        ([[2, -1]], [[1, 1]], False, [sigmoid(2), sigmoid(-1)]),
    ],
    ids=["two groups", "three groups", "tasks"],
)
def test_the_loss_is_cross_entropy(outputs, targets, exclusive, likely):
    built_attacker = attacker(exclusive=exclusive)
    built_attacker.log = lambda *_, **__: None
    batch = Batch({"tokens": torch.tensor(outputs)}, torch.tensor(targets))
    expected = -sum(map(math.log, likely)) / len(likely)
    assert built_attacker.training_step(batch, 0).item() == pytest.approx(expected)


def test_settings_of_the_optimiser_reach_adam():
    attacker = Attacker(
        Given(), nn.Linear(2, 1), exclusive=True, optimizer=Adam(0.1, weight_decay=0.2)
    )
    defaults = attacker.configure_optimizers().defaults
    assert (defaults["lr"], defaults["weight_decay"]) == (0.1, 0.2)
