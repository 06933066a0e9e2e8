"""GRIT's networks against a plain second writing of its equations."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from bias_pipeline.pictures.captioners.grit_net import (
    PAD,
    CaptionAttention,
    CaptionDecoder,
    FeedForward,
    GridNet,
    ParallelLayer,
)
from bias_pipeline.pictures.grit.detector import GritDetector, RegionDecoder, Visual, refine_boxes
from bias_pipeline.pictures.grit.sizes import SIZES

WORDS, C = 12, 8
TINY = replace(SIZES["small"], size=C, n_heads=2, inner=10, grid_layers=2, caption_layers=2)
TOKENS = torch.tensor([[2, 3, 4, 5], [2, 6, PAD, PAD]])


def random(net: nn.Module) -> nn.Module:
    """Weights of which none is zero."""
    torch.manual_seed(0)
    for weight in net.parameters():
        nn.init.normal_(weight, std=0.5)
    return net.eval()


def visual(seed: int = 1) -> Visual:
    generator = torch.Generator().manual_seed(seed)
    return Visual(
        torch.randn(2, 5, C, generator=generator), torch.randn(2, 3, C, generator=generator)
    )


def attend_by_heads(attention: CaptionAttention, queries: Tensor, memory: Tensor) -> Tensor:
    """(Q, C) queries that see (S, C) all of something, head by head."""
    heads = []
    parts = [attention.fc_q(queries), attention.fc_k(memory), attention.fc_v(memory)]
    for q, k, v in zip(*(part.chunk(attention.n_heads, dim=1) for part in parts), strict=True):
        heads.append((q @ k.T / math.sqrt(q.shape[1])).softmax(dim=1) @ v)
    output: Tensor = attention.layer_norm(queries + attention.fc_o(torch.cat(heads, dim=1)))
    return output


def feed(layer: FeedForward, vectors: Tensor) -> Tensor:
    output: Tensor = layer.layer_norm(vectors + layer.fc2(layer.fc1(vectors).clamp(min=0)))
    return output


def place(number: int) -> Tensor:
    """Vaswani et al. 2017, section 3.5."""
    rates = [10_000 ** (2 * pair / C) for pair in range(C // 2)]
    pairs = [(math.sin(number / rate), math.cos(number / rate)) for rate in rates]
    return torch.tensor([item for pair in pairs for item in pair])


def log_probabilities(
    decoder: CaptionDecoder, words: list[int], visual: Visual, row: int
) -> Tensor:
    """(L, C) the state after each word of one caption."""
    states = torch.stack([decoder.word_emb.weight[w] + place(n) for n, w in enumerate(words, 1)])
    for layer in decoder.layers:
        read = torch.cat(
            [
                attend_by_heads(layer.self_att, states[n : n + 1], states[: n + 1])
                for n in range(len(words))
            ]
        )
        grid = attend_by_heads(layer.vis_att1, read, visual.grid[row])
        regions = attend_by_heads(layer.vis_att2, read, visual.regions[row])
        second = layer.fc_alpha2 if layer.fc_alpha2 is not None else layer.fc_alpha1
        first = torch.sigmoid(layer.fc_alpha1(torch.cat([read, grid], dim=1)))
        other = torch.sigmoid(second(torch.cat([read, regions], dim=1)))
        states = feed(layer.pwff, (first * grid + other * regions) / math.sqrt(2))
    return states


@pytest.mark.parametrize("second_gate", ["released", "paper"])
def test_states_are_those_of_the_equations(second_gate):
    layer = random(CaptionDecoder(WORDS, TINY, second_gate))
    assert isinstance(layer, CaptionDecoder)
    output = layer(TOKENS, visual())
    for row, words in enumerate(([2, 3, 4, 5], [2, 6])):
        wanted = log_probabilities(layer, words, visual(), row)
        assert (output[row, : len(words)] - wanted).abs().max() < 1e-5


def test_the_released_network_has_one_gate_for_both():
    released, paper = (random(ParallelLayer(TINY, gate)) for gate in ("released", "paper"))
    weights = released.state_dict()
    weights |= {k.replace("alpha1", "alpha2"): v for k, v in weights.items() if "alpha1" in k}
    words, present = torch.randn(2, 4, C), torch.ones(2, 4, 1)
    visible = torch.ones(4, 4, dtype=torch.bool).tril()
    other = paper(words, present, visible, visual())
    paper.load_state_dict(weights)
    one = released(words, present, visible, visual())
    assert torch.equal(paper(words, present, visible, visual()), one)
    assert not torch.allclose(other, one)


def test_a_closed_gate_lets_nothing_in():
    layer = random(ParallelLayer(TINY, "released"))
    nn.init.zeros_(layer.fc_alpha1.weight)
    nn.init.constant_(layer.fc_alpha1.bias, -1e4)
    words, present = torch.randn(2, 4, C), torch.ones(2, 4, 1)
    visible = torch.ones(4, 4, dtype=torch.bool).tril()
    one, other = (layer(words, present, visible, visual(seed)) for seed in (1, 2))
    assert torch.equal(one, other)


def test_later_words_do_not_change_what_was_read():
    layer = random(CaptionDecoder(WORDS, TINY, "released"))
    changed = TOKENS.clone()
    changed[0, 3] = 9
    one, other = layer(TOKENS, visual()), layer(changed, visual())
    assert torch.equal(one[0, :3], other[0, :3])
    assert not torch.equal(one[0, 3], other[0, 3])


def test_the_grid_network_is_that_of_the_equations():
    network = random(GridNet(6, TINY))
    grid = torch.randn(2, 5, 6)
    wanted = network.layer_norm(network.fc(grid).clamp(min=0))[1]
    for layer in network.layers:
        wanted = feed(layer.pwff, attend_by_heads(layer.mhatt, wanted, wanted))
    assert (network(grid)[1] - wanted).abs().max() < 1e-5


def test_boxes_that_do_not_change_stay():
    boxes = torch.tensor([[[0.1, 0.5, 0.9, 0.25]]])
    assert torch.allclose(refine_boxes(boxes, torch.zeros(1, 1, 4)), boxes)
    assert refine_boxes(boxes, torch.full((1, 1, 4), 50.0)).max() <= 1


def test_regions_do_not_depend_on_other_pictures():
    layer = random(RegionDecoder([6, 8], replace(TINY, size=32)))
    levels = [torch.randn(3, 4, 4, 6), torch.randn(3, 2, 2, 8)]
    alone = layer([level[1:2] for level in levels])
    assert (layer(levels)[1:2] - alone).abs().max() < 1e-5


def test_every_weight_of_the_detector_is_learnt():
    """But those of the last boxes; training on several devices allows no others to be idle."""
    torch.manual_seed(0)
    size = SIZES["small"]
    detector = GritDetector(size).eval()
    for weight in detector.regions.bbox_embed.parameters():
        nn.init.normal_(weight, std=0.1)
    observed_own = detector(torch.randint(0, 256, (2, 3, size.side, size.side), dtype=torch.uint8))
    (
        observed_own.grid.square().sum()
        + (observed_own.regions * torch.randn_like(observed_own.regions)).sum()
    ).backward()
    learnt = [(name, w) for name, w in detector.named_parameters() if w.requires_grad]
    assert [name for name, w in learnt if w.grad is None or not w.grad.any()] == []


def plain_regions(decoder: RegionDecoder, levels: list[Tensor]) -> Tensor:
    """(R, C) regions of one picture, query by query, with the last box after no layer."""
    maps = [
        layer(level.permute(0, 3, 1, 2))
        for layer, level in zip(decoder.input_proj, levels, strict=True)
    ]
    place, content = decoder.query_embed.weight.chunk(2, dim=1)
    boxes = torch.cat(
        [decoder.reference_points(place).sigmoid(), torch.full((len(place), 2), 0.5)], 1
    )
    values = torch.cat([one.flatten(2).transpose(1, 2) for one in maps], dim=1)
    shapes = [(one.shape[2], one.shape[3]) for one in maps]
    for number, layer in enumerate(decoder.layers):
        boxes = refine_boxes(boxes, decoder.bbox_embed[number](content))
        asking = content + place
        attended_content, _ = layer.self_attn(asking[None], asking[None], content[None])
        content = layer.norm2(content + attended_content[0])
        rows = [
            layer.cross_attn((content + place)[q][None, None], boxes[q][None, None], values, shapes)
            for q in range(len(place))
        ]
        content = layer.norm1(content + torch.cat(rows, dim=1)[0])
        inner = layer.linear1(content).clamp(min=0)
        content = layer.norm3(content + layer.linear2(inner))
    return content


def test_regions_are_those_of_the_equations():
    layer = random(RegionDecoder([6, 8], replace(TINY, size=32)))
    assert isinstance(layer, RegionDecoder)
    levels = [torch.randn(1, 4, 4, 6), torch.randn(1, 2, 2, 8)]
    assert (layer(levels)[0] - plain_regions(layer, levels)).abs().max() < 1e-4


def test_the_released_size_is_that_of_the_paper():
    """Swin-B, and levels of 256 to 1024 numbers; made without its weights in memory."""
    with torch.device("meta"):
        detector = GritDetector(SIZES["released"])
    assert detector.backbone.sizes[-4:] == [256, 512, 1024, 1024]
    assert detector.regions.query_embed.weight.shape == (150, 1024)
    assert len(detector.regions.layers) == 6
