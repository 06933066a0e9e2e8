"""FIBER a second time, token by token in double precision, from the weights under the file's names.

It shares nothing with the network: loops in NumPy, after the facts of the published network.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bias_pipeline.array_types import Float64Array

PADDING = 1


@dataclass(frozen=True)
class PlainFiber:
    """The two modes of one network.

    Attributes:
        weights: name of the file's to numbers.
        depths: blocks of each stage.
        heads: of each stage.
        text_heads: of the text side.
        window: side in patches.
        n_pairs: last blocks and layers that read each other.
    """

    weights: Mapping[str, Float64Array]
    depths: tuple[int, ...]
    heads: tuple[int, ...]
    text_heads: int
    window: int
    n_pairs: int

    def image(self, pixels: Float64Array) -> Float64Array:
        """(D,) of one picture (3, H, W), of length 1."""
        grid = self.patches(pixels)
        for stage, number in self.places():
            grid = self.block(grid, stage, number)
            grid = self.merge(grid, stage) if number + 1 == self.depths[stage] else grid
        vectors = self.norm("vit_model.norm", grid.reshape(-1, grid.shape[2]))
        projected = [self.linear("cross_modal_image_transform_itc", vector) for vector in vectors]
        mean = sum(projected) / len(projected)
        return unit(np.tanh(self.linear("cross_modal_image_pooler_itc.dense", mean)))

    def text(self, tokens: list[int]) -> Float64Array:
        """(D,) of one text, of length 1."""
        vectors = self.embed(tokens)
        for layer in range(self.n_layers()):
            vectors = self.layer(vectors, tokens, layer)
        projected = self.linear("cross_modal_text_transform_itc", vectors[0])
        return unit(np.tanh(self.linear("cross_modal_text_pooler_itc.dense", projected)))

    def matching(self, pixels: Float64Array, tokens: list[int]) -> float:
        """The second of the two numbers of one picture and one text."""
        grid, vectors = self.patches(pixels), self.embed(tokens)
        alone = self.n_layers() - self.n_pairs
        for layer in range(alone):
            vectors = self.layer(vectors, tokens, layer)
        places = self.places()
        for place, (stage, number) in enumerate(places):
            pair = place - (len(places) - self.n_pairs)
            if pair < 0:
                grid = self.block(grid, stage, number)
            else:
                read = self.block(grid, stage, number, text=(vectors, tokens))
                last = pair + 1 == self.n_pairs
                flat = grid.reshape(-1, grid.shape[2])
                vectors = self.layer(vectors, tokens, alone + pair, flat, last_norm=not last)
                grid = read
            grid = self.merge(grid, stage) if number + 1 == self.depths[stage] else grid
        flat = grid.reshape(-1, grid.shape[2])
        mean = sum(self.linear("cross_modal_image_transform", vector) for vector in flat) / len(
            flat
        )
        image = np.tanh(self.linear("cross_modal_image_pooler.dense", mean))
        first = self.linear("cross_modal_text_transform", vectors[0])
        text = np.tanh(self.linear("cross_modal_text_pooler.dense", first))
        return float(self.linear("itm_score.fc", np.concatenate([text, image]))[1])

    def places(self) -> list[tuple[int, int]]:
        return [(stage, block) for stage, n in enumerate(self.depths) for block in range(n)]

    def n_layers(self) -> int:
        names = (name for name in self.weights if name.endswith("intermediate.dense.weight"))
        return len(list(names))

    def linear(self, name: str, vector: Float64Array, rows: slice = slice(None)) -> Float64Array:
        product = self.weights[f"{name}.weight"][rows] @ vector
        bias = self.weights.get(f"{name}.bias")
        return product if bias is None else product + bias[rows]

    def norm(self, name: str, vectors: Float64Array) -> Float64Array:
        normed = np.empty_like(vectors)
        for row, vector in enumerate(vectors):
            middle = vector - vector.mean()
            normed[row] = middle / math.sqrt((middle**2).mean() + 1e-5)
        return normed * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def patches(self, pixels: Float64Array) -> Float64Array:
        kernel = self.weights["vit_model.patch_embed.proj.weight"]
        side = kernel.shape[2]
        rows, columns = pixels.shape[1] // side, pixels.shape[2] // side
        grid = np.empty((rows, columns, len(kernel)))
        for row in range(rows):
            for column in range(columns):
                cut = pixels[:, row * side : (row + 1) * side, column * side : (column + 1) * side]
                grid[row, column] = (kernel * cut).sum(axis=(1, 2, 3))
        grid += self.weights["vit_model.patch_embed.proj.bias"]
        flat = self.norm("vit_model.patch_embed.norm", grid.reshape(-1, grid.shape[2]))
        return flat.reshape(grid.shape)

    def merge(self, grid: Float64Array, stage: int) -> Float64Array:
        name = f"vit_model.layers.{stage}.downsample"
        if f"{name}.norm.weight" not in self.weights:
            return grid
        rows, columns = grid.shape[0] // 2, grid.shape[1] // 2
        merged = []
        for row in range(rows):
            for column in range(columns):
                top, left = 2 * row, 2 * column
                four = [grid[top, left], grid[top + 1, left], grid[top, left + 1],
                        grid[top + 1, left + 1]]  # fmt: skip
                normed = self.norm(f"{name}.norm", np.concatenate(four)[None])[0]
                merged.append(self.linear(f"{name}.reduction", normed))
        return np.stack(merged).reshape(rows, columns, -1)

    def block(self, grid: Float64Array, stage: int, number: int, text: Any = None) -> Float64Array:
        """One block; ``text``: vectors and tokens that it reads."""
        name = f"vit_model.layers.{stage}.blocks.{number}"
        shift = 0 if number % 2 == 0 or len(grid) <= self.window else self.window // 2
        flat = grid.reshape(-1, grid.shape[2])
        attended_rows = self.windows(
            self.norm(f"{name}.norm1", flat).reshape(grid.shape), name, stage, shift
        )
        if text is not None:
            attended_rows = attended_rows + self.read_text(
                attended_rows, *text, name, self.heads[stage]
            )
        middle = flat + attended_rows
        fed = [
            self.linear(f"{name}.mlp.fc2", gelu(self.linear(f"{name}.mlp.fc1", vector)))
            for vector in self.norm(f"{name}.norm2", middle)
        ]
        return (middle + np.stack(fed)).reshape(grid.shape)

    def windows(self, grid: Float64Array, name: str, stage: int, shift: int) -> Float64Array:
        rows, columns, size = grid.shape
        table = self.weights[f"{name}.attn.relative_position_bias_table"]
        heads, side = self.heads[stage], self.window
        triple = {
            (r, c): self.linear(f"{name}.attn.qkv", grid[r, c]).reshape(3, heads, -1)
            for r in range(rows)
            for c in range(columns)
        }
        outputs = []
        for (row, column), query in triple.items():
            near = [
                (r, c)
                for r, c in triple
                if (r - shift) // side == (row - shift) // side
                and (c - shift) // side == (column - shift) // side
            ]
            out = []
            for head in range(heads):
                scores = [
                    query[0, head] @ triple[r, c][1, head] / math.sqrt(size / heads)
                    + table[(row - r + side - 1) * (2 * side - 1) + column - c + side - 1, head]
                    for r, c in near
                ]
                values = [triple[place][2, head] for place in near]
                out.append(attend(scores, values))
            outputs.append(self.linear(f"{name}.attn.proj", np.concatenate(out)))
        return np.stack(outputs)

    def read_text(
        self, rows: Float64Array, vectors: Float64Array, tokens: list[int], name: str, heads: int
    ) -> Float64Array:
        """What a block adds of the tokens that are none of padding."""
        size = rows.shape[1]
        there = [vectors[k] for k, token in enumerate(tokens) if token != PADDING]
        keys = [
            self.linear(f"{name}.attn.qkv_text_i2t", vector, slice(0, size)) for vector in there
        ]
        values = [
            self.linear(f"{name}.attn.qkv_text_i2t", vector, slice(size, None)) for vector in there
        ]
        queries = [
            self.linear(f"{name}.attn.qkv_i2t", vector)
            for vector in self.norm(f"{name}.attn.norm_i2t_i", rows)
        ]
        outputs = [see(query, keys, values, heads) for query in queries]
        out = np.stack([self.linear(f"{name}.attn.proj_i2t", vector) for vector in outputs])
        return self.weights[f"{name}.attn.alpha_i2t"] * out

    def embed(self, tokens: list[int]) -> Float64Array:
        name, rows, place = "text_transformer.embeddings", [], PADDING
        for token in tokens:
            place += token != PADDING
            rows.append(
                self.weights[f"{name}.word_embeddings.weight"][token]
                + self.weights[f"{name}.position_embeddings.weight"][
                    place if token != PADDING else PADDING
                ]
                + self.weights[f"{name}.token_type_embeddings.weight"][0]
            )
        return self.norm(f"{name}.LayerNorm", np.stack(rows))

    def layer(
        self,
        vectors: Float64Array,
        tokens: list[int],
        number: int,
        picture: Float64Array | None = None,
        *,
        last_norm: bool = True,
    ) -> Float64Array:
        """One layer of RoBERTa; ``picture``: patches that it reads."""
        name = f"text_transformer.encoder.layer.{number}"
        there = [vectors[k] for k, token in enumerate(tokens) if token != PADDING]
        attended_rows = self.attention(f"{name}.attention", vectors, there)
        if picture is not None:
            cross = self.attention(f"{name}.crossattention_t2i", attended_rows, list(picture))
            attended_rows = self.weights[f"{name}.alpha_t2i"] * cross + attended_rows
        middle = self.norm(f"{name}.attention.output.LayerNorm", attended_rows + vectors)
        fed = [
            self.linear(f"{name}.output.dense", gelu(self.linear(f"{name}.intermediate.dense", v)))
            for v in middle
        ]
        summed = np.stack(fed) + middle
        return self.norm(f"{name}.output.LayerNorm", summed) if last_norm else summed

    def attention(
        self, name: str, vectors: Float64Array, others: list[Float64Array]
    ) -> Float64Array:
        keys = [self.linear(f"{name}.self.key", vector) for vector in others]
        values = [self.linear(f"{name}.self.value", vector) for vector in others]
        outputs = []
        for vector in vectors:
            looked_at = see(
                self.linear(f"{name}.self.query", vector), keys, values, self.text_heads
            )
            outputs.append(self.linear(f"{name}.output.dense", looked_at))
        return np.stack(outputs)


def see(
    query: Float64Array, keys: list[Float64Array], values: list[Float64Array], heads: int
) -> Float64Array:
    """What one query sees, head by head."""
    size = len(query) // heads
    parts = []
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        scores = [query[part] @ key[part] / math.sqrt(size) for key in keys]
        parts.append(attend(scores, [value[part] for value in values]))
    return np.concatenate(parts)


def attend(scores: list[Any], values: list[Float64Array]) -> Float64Array:
    """The mean of values, weighed by a softmax."""
    weights = np.exp(np.array(scores) - max(scores))
    weights = weights / weights.sum()
    return np.asarray(sum(w * value for w, value in zip(weights, values, strict=True)))


def gelu(vector: Float64Array) -> Float64Array:
    """x times the normal distribution function of x."""
    return np.array([x * 0.5 * (1 + math.erf(x / math.sqrt(2))) for x in vector])


def unit(vector: Float64Array) -> Float64Array:
    """Of length 1."""
    return np.asarray(vector / math.sqrt((vector**2).sum()))
