"""FIBER's two modes against a second implementation, and what must hold of any FIBER."""

import numpy as np
import pytest
import torch
from torch import Tensor

from bias_pipeline.retrieval.fiber.folder import FiberSize
from bias_pipeline.retrieval.fiber.net import EncodedTexts, FiberNet
from tests.fiber_files import TINY, network, released_weights
from tests.retrieval.plain_fiber import PlainFiber

TOKENS = torch.tensor([[0, 5, 6, 9, 2], [0, 7, 2, 1, 1]])


def pixels(side: int = TINY.side) -> Tensor:
    return torch.from_numpy(np.random.default_rng(0).normal(size=(2, 3, side, side))).float()


def plain_network(network: FiberNet) -> PlainFiber:
    weights = {name: value.double().numpy() for name, value in released_weights(network).items()}
    size = network.size
    return PlainFiber(weights, size.depths, size.n_heads, 2, size.window, size.n_pairs)


@pytest.fixture(scope="module", params=[TINY.depths, (2, 2, 3, 1)])
def net(request: pytest.FixtureRequest) -> FiberNet:
    """Of two shapes: pairs that begin within the third stage, and one that ends with one block."""
    return network(FiberSize(**{**vars(TINY), "depths": request.param}))


def test_pictures_and_texts_by_themselves_are_where_the_plain_network_puts_them(net):
    plain = plain_network(net)
    shown = [plain.image(picture.double().numpy()) for picture in pixels()]
    read = [plain.text(tokens) for tokens in TOKENS.tolist()]
    for vectors, wanted in ((net.pictures(pixels()), shown), (net.texts(TOKENS), read)):
        units = torch.nn.functional.normalize(vectors, dim=1)
        np.testing.assert_allclose(units.numpy(), np.stack(wanted), atol=1e-5)


def test_the_text_side_alone_is_the_library_s_roberta():
    transformers = pytest.importorskip("transformers")
    item, start = network(), "text_transformer."
    size = item.size
    config = transformers.RobertaConfig(
        vocab_size=size.n_words,
        hidden_size=size.text_size,
        num_hidden_layers=size.text_layers,
        num_attention_heads=2,
        intermediate_size=size.text_inner,
        max_position_embeddings=size.n_places,
        type_vocab_size=1,
        layer_norm_eps=1e-5,
    )
    library = transformers.RobertaModel(config, add_pooling_layer=False).eval()
    weights = {name.removeprefix(start): value for name, value in released_weights(item).items()}
    wanted = library.state_dict()
    library.load_state_dict({name: weights.get(name, value) for name, value in wanted.items()})
    assert set(wanted) - set(weights) <= {"embeddings.token_type_ids", "embeddings.position_ids"}
    with torch.inference_mode():
        last_hidden_state = library(
            input_ids=TOKENS, attention_mask=(TOKENS != 1).long()
        ).last_hidden_state
    there = TOKENS != 1
    assert (item.text(TOKENS) - last_hidden_state)[there].abs().max() < 1e-5


def judge(net: FiberNet, pictures: Tensor, tokens: Tensor) -> Tensor:
    return net.match(net.encode_pictures(pictures), net.encode_texts(tokens))


def test_pairs_are_judged_as_by_the_plain_network(net):
    matches = judge(net, pixels(), TOKENS)
    wanted = [
        plain_network(net).matching(picture.double().numpy(), tokens)
        for picture, tokens in zip(pixels(), TOKENS.tolist(), strict=True)
    ]
    np.testing.assert_allclose(matches.numpy(), wanted, atol=1e-5)


def shut(network: FiberNet) -> FiberNet:
    """With all gates at 0."""
    for name, weight in network.named_parameters():
        if name.endswith("strength"):
            torch.nn.init.zeros_(weight)
    return network


def test_with_gates_at_0_a_picture_is_seen_as_by_swin_alone():
    gated = shut(network())
    grid, (vectors, there) = gated.encode_pictures(pixels()), gated.encode_texts(TOKENS)
    for place in gated.size.fused_blocks:
        grid = gated._downsample(place, gated._fused_block(place, grid, vectors, there))
    assert torch.equal(grid, gated.swin(pixels())[-1])


def test_with_open_gates_it_is_not():
    built_network = network()
    one, other = (judge(built_network, pixels(), tokens) for tokens in (TOKENS, TOKENS.flip(0)))
    assert (one - other).abs().min() > 1e-3


def test_a_fresh_network_begins_with_gates_at_0():
    strengths = [item for name, item in FiberNet(TINY).named_parameters() if "strength" in name]
    assert len(strengths) == 2 * TINY.n_pairs
    assert not torch.cat(strengths).any()


def test_either_side_reads_the_other_as_it_was_before():
    """The order in which the two sides of a pair are computed plays no part."""
    built_network = network()
    grid, (vectors, there) = (
        built_network.encode_pictures(pixels()),
        built_network.encode_texts(TOKENS),
    )
    layers = built_network.text.layers[-built_network.size.n_pairs :]
    for place, layer in zip(built_network.size.fused_blocks, layers, strict=True):
        last = place == built_network.size.blocks[-1]
        text = layer(vectors, there, grid.flatten(1, 2), normed=not last)  # the text first
        grid = built_network._downsample(
            place, built_network._fused_block(place, grid, vectors, there)
        )
        vectors = text
    sides = [
        built_network.fused_text(vectors[:, 0]),
        built_network.fused_image(grid.flatten(1, 2).mean(dim=1)),
    ]
    assert built_network.matching is not None
    assert torch.equal(
        built_network.matching(torch.cat(sides, dim=1))[:, 1],
        judge(built_network, pixels(), TOKENS),
    )


def test_padding_plays_no_part():
    item, short = network(), TOKENS[1:, :3]
    longer = torch.nn.functional.pad(short, (0, 6), value=1)
    assert torch.allclose(item.texts(short), item.texts(longer), atol=1e-6)
    one = pixels()[:1]
    assert torch.allclose(judge(item, one, short), judge(item, one, longer), atol=1e-6)


def test_a_pair_does_not_depend_on_the_pairs_beside_it():
    built_network = network()
    together = judge(built_network, pixels(), TOKENS)
    encoded = built_network.encode_texts(TOKENS)
    alone = built_network.match(
        built_network.encode_pictures(pixels()[1:]),
        EncodedTexts(encoded.vectors[1:], encoded.there[1:]),
    )
    assert torch.allclose(together[1:], alone, atol=1e-5)


def test_the_published_network_has_its_published_sizes():
    with torch.device("meta"):
        network = FiberNet(FiberSize())
    texts = [layer.gate.attention.key.in_features for layer in network.text.layers if layer.gate]
    assert texts == [512, 512, 512, 512, 1024, 1024]
    assert list(network.gates) == ["2_14", "2_15", "2_16", "2_17", "3_0", "3_1"]
    assert network.gates["3_0"].attention.key.in_features == 768
    weights = sum(weight.numel() for weight in network.parameters())
    assert 240e6 < weights < 260e6
