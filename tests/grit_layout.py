"""Names and shapes in released files of GRIT, as the authors' modules write them.

davidnvq/grit at 4664d69; with a memory, at 7ed68f8 to bde75f9. Compared with ``../shared/layouts``,
where that is present, by ``tests/pictures/grit/test_grit_layout.py``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bias_pipeline.pictures.grit.sizes import GritSize

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Saved:
    """What decides a file's shapes beside the network's size."""

    n_words: int
    n_positions: int = 55
    n_memories: int = 0
    n_classes: int = 1849
    n_attributes: int = 0


def captioner(size: GritSize, saved: Saved) -> dict[str, Shape]:
    """Of ``state_dict`` in a captioner's file."""
    shapes = {f"detector.{name}": shape for name, shape in detector(size, saved).items()}
    return {**shapes, **dict(_grid_net(size, saved)), **dict(_cap_generator(size, saved))}


def detector(size: GritSize, saved: Saved) -> dict[str, Shape]:
    """Of ``model`` in a detector's file."""
    return {
        **dict(_backbone(size)),
        **dict(_regions(size, saved)),
        **dict(_attributes(size, saved)),
    }


def _linear(name: str, n_inputs: int, n_outputs: int) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.weight", (n_outputs, n_inputs)
    yield f"{name}.bias", (n_outputs,)


def _norm(name: str, width: int) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.weight", (width,)
    yield f"{name}.bias", (width,)


def _backbone(size: GritSize) -> Iterator[tuple[str, Shape]]:
    patch = "backbone.patch_embed"
    yield f"{patch}.proj.weight", (size.embed, 3, size.patch, size.patch)
    yield f"{patch}.proj.bias", (size.embed,)
    yield from _norm(f"{patch}.norm", size.embed)
    for stage, (depth, heads) in enumerate(zip(size.depths, size.backbone_heads, strict=True)):
        width = size.embed << stage
        for block in range(depth):
            yield from _block(f"backbone.layers.{stage}.blocks.{block}", width, heads, size.window)
        merged = min(2 * width, size.grid_dim)  # the last one, after all stages, does not widen
        merging = f"backbone.layers.{stage}.downsample"
        yield f"{merging}.reduction.weight", (merged, 4 * width)
        yield from _norm(f"{merging}.norm", 4 * width)
        yield f"{merging}.expansion.weight", (merged, width)
        yield from _norm(f"{merging}.norm2", width)
    for stage in range(1, len(size.depths)):
        yield from _norm(f"backbone.norm{stage}", size.embed << stage)


def _block(name: str, width: int, heads: int, window: int) -> Iterator[tuple[str, Shape]]:
    yield from _norm(f"{name}.norm1", width)
    yield f"{name}.attn.relative_position_bias_table", ((2 * window - 1) ** 2, heads)
    yield f"{name}.attn.relative_position_index", (window**2, window**2)
    yield from _linear(f"{name}.attn.qkv", width, 3 * width)
    yield from _linear(f"{name}.attn.proj", width, width)
    yield from _norm(f"{name}.norm2", width)
    yield from _linear(f"{name}.mlp.fc1", width, 4 * width)
    yield from _linear(f"{name}.mlp.fc2", 4 * width, width)


def _regions(size: GritSize, saved: Saved) -> Iterator[tuple[str, Shape]]:
    width, looks = size.size, size.n_heads * size.n_levels * size.n_points
    levels = [*(size.embed << stage for stage in range(len(size.depths))), size.grid_dim]
    for number, level in enumerate(levels[-size.n_levels :]):
        yield f"input_proj.{number}.0.weight", (width, level, 1, 1)
        yield f"input_proj.{number}.0.bias", (width,)
        yield from _norm(f"input_proj.{number}.1", width)
    yield "det_module.level_embed", (size.n_levels, width)
    yield "det_module.query_embed.weight", (size.n_regions, 2 * width)
    yield from _linear("det_module.reference_points", width, 2)
    for number in range(size.region_layers):
        layer = f"det_module.decoder_layers.{number}"
        yield from _linear(f"{layer}.cross_attn.sampling_offsets", width, 2 * looks)
        yield from _linear(f"{layer}.cross_attn.attention_weights", width, looks)
        yield from _linear(f"{layer}.cross_attn.value_proj", width, width)
        yield from _linear(f"{layer}.cross_attn.output_proj", width, width)
        yield f"{layer}.self_attn.in_proj_weight", (3 * width, width)
        yield f"{layer}.self_attn.in_proj_bias", (3 * width,)
        yield from _linear(f"{layer}.self_attn.out_proj", width, width)
        yield from _linear(f"{layer}.linear1", width, size.region_inner)
        yield from _linear(f"{layer}.linear2", size.region_inner, width)
        for norm in (1, 2, 3):
            yield from _norm(f"{layer}.norm{norm}", width)
    for number in range(size.region_layers + 1):
        yield from _linear(f"det_module.class_embed.{number}", width, saved.n_classes)
        for layer, n_outputs in enumerate((width, width, 4)):
            yield from _linear(f"det_module.bbox_embed.{number}.layers.{layer}", width, n_outputs)


def _attributes(size: GritSize, saved: Saved) -> Iterator[tuple[str, Shape]]:
    if saved.n_attributes:
        yield "attr_head.od_cls_embed.weight", (saved.n_classes, size.size)
        yield from _linear("attr_head.attr_linear1", 2 * size.size, size.size)
        yield from _linear("attr_head.attr_linear2", size.size, saved.n_attributes)


def _attention(name: str, width: int) -> Iterator[tuple[str, Shape]]:
    for part in "qkvo":
        yield from _linear(f"{name}.attention.fc_{part}", width, width)
    yield from _norm(f"{name}.layer_norm", width)


def _feed(name: str, width: int, inner: int) -> Iterator[tuple[str, Shape]]:
    yield from _linear(f"{name}.fc1", width, inner)
    yield from _linear(f"{name}.fc2", inner, width)
    yield from _norm(f"{name}.layer_norm", width)


def _grid_net(size: GritSize, saved: Saved) -> Iterator[tuple[str, Shape]]:
    yield from _linear("grid_net.fc", size.grid_dim, size.size)
    yield from _norm("grid_net.layer_norm", size.size)
    for number in range(size.grid_layers):
        layer = f"grid_net.layers.{number}"
        yield from _attention(f"{layer}.mhatt", size.size)
        if saved.n_memories:
            for slots in ("m_k", "m_v"):
                yield f"{layer}.mhatt.attention.{slots}", (1, saved.n_memories, size.size)
        yield from _feed(f"{layer}.pwff", size.size, size.inner)


def _cap_generator(size: GritSize, saved: Saved) -> Iterator[tuple[str, Shape]]:
    yield "cap_generator.running_mask_x", (1, 1, 0)
    yield "cap_generator.running_seq", (1,)
    yield "cap_generator.word_emb.weight", (saved.n_words, size.size)
    yield "cap_generator.pos_emb.weight", (saved.n_positions, size.size)
    for number in range(size.caption_layers):
        layer = f"cap_generator.layers.{number}"
        yield f"{layer}.self_att.running_keys", (1, size.size)
        yield f"{layer}.self_att.running_values", (1, size.size)
        for part in ("self_att", "vis_att1", "vis_att2"):
            yield from _attention(f"{layer}.{part}", size.size)
        for gate in ("fc_alpha1", "fc_alpha2"):
            yield from _linear(f"{layer}.{gate}", 2 * size.size, size.size)
        yield from _feed(f"{layer}.pwff", size.size, size.inner)
    yield "cap_generator.fc.weight", (saved.n_words, size.size)


# Under the names of ``../shared/layouts``.
RELEASED: Mapping[str, Saved] = {
    "grit_captioner": Saved(10201),
    "grit_captioner_until_2023_04": Saved(10201, n_memories=1),
    "grit_detector": Saved(10201),
    "grit_detector_with_attributes": Saved(10201, n_attributes=400),
}
