"""Finds the layers of a captioner in which Grad-CAM can read a map. Needs PyTorch.

There are two kinds, grid and attention. A grid is a layer's output with a vector for each place of
the picture: channels of a convolution (B, C, h, w), the output of a Swin (B, h, w, C), or tokens
(B, N, C), after up to five tokens that belong to no place. Attention has weights (..., L, N) from
words to such tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bias_pipeline.errors import DataError, NotApplicableError, UsageError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from bias_pipeline.pictures.forced_captions import ForcedCaptioner, WrittenCaption

GRID, ATTENTION = "grid", "attention"
_PLACELESS = (0, 1, 5)  # tokens before the places: none, a class token, registers too
_STRETCH = 1.3  # a grid's form may differ from the picture's by this factor
_SHOWN = 6  # names of layers in a message


@dataclass(frozen=True)
class MapLayer:
    name: str  # of the module within the network
    kind: str  # `grid` or `attention`
    item: int  # the number of the output, if the module has several outputs
    grid: tuple[int, int]  # height and width of the map

    def __str__(self) -> str:
        height, width = self.grid
        how = "attention times gradient" if self.kind == ATTENTION else "Grad-CAM"
        return f"{self.name} ({how}, {height} x {width})"


def layer_outputs(output: object) -> list[tuple[int, Any]]:
    """The tensors among the outputs of a module, each with its number among the outputs."""
    import torch

    items = output if isinstance(output, tuple | list) else (output,)
    return [(place, item) for place, item in enumerate(items) if isinstance(item, torch.Tensor)]


def replace_output(output: Any, item: int, value: Tensor) -> Any:
    """The output of a module after one tensor was replaced."""
    if not isinstance(output, tuple | list):
        return value
    items = [value if place == item else one for place, one in enumerate(output)]
    return type(output)(*items) if hasattr(output, "_fields") else type(output)(items)


def form_of(n_places: int, picture: tuple[int, int]) -> tuple[int, int] | None:
    """Height and width of a grid with this number of places over a picture, or None if none fits.

    Example:
        >>> form_of(196, (224, 224)), form_of(60, (384, 640)), form_of(7, (64, 64))
        ((14, 14), (6, 10), None)
    """
    if n_places < 2:
        return None
    height, width = picture
    rows = round((n_places * height / width) ** 0.5)
    if rows < 1 or n_places % rows:
        return None
    ratio = rows / (n_places // rows) * width / height
    return (rows, n_places // rows) if 1 / _STRETCH <= ratio <= _STRETCH else None


def layer_grid(shape: Sequence[int], picture: tuple[int, int]) -> tuple[int, int] | None:
    """Height and width of the grid in the shape of an output; None if the output is not a grid."""
    if len(shape) == 4:
        for rows, columns in (shape[2:], shape[1:3]):
            if rows <= picture[0] and form_of(rows * columns, picture) == (rows, columns):
                return rows, columns
    if len(shape) == 3:
        return _form(shape[1], picture)
    return None


def _halves(grid: tuple[int, int]) -> set[tuple[int, int]]:
    """The sizes of a grid, of the grid half as fine, and so on."""
    rows, columns = grid
    coarser = {grid}
    while rows * columns > 1:
        rows, columns = -(-rows // 2), -(-columns // 2)
        coarser.add((rows, columns))
    return coarser


def _form(n_tokens: int, picture: tuple[int, int]) -> tuple[int, int] | None:
    """The form of a grid of tokens, if some tokens may belong to no place."""
    forms = (form_of(n_tokens - more, picture) for more in _PLACELESS)
    return next((form for form in forms if form), None)


def as_channels(values: Tensor, grid: tuple[int, int]) -> Tensor:
    """(B, C, h, w) the grid in an output of any of the three forms."""
    rows, columns = grid
    if values.dim() == 3:
        places = values[:, values.shape[1] - rows * columns :]
        return places.transpose(1, 2).reshape(len(values), -1, rows, columns)
    return values if tuple(values.shape[2:]) == (rows, columns) else values.permute(0, 3, 1, 2)


@contextmanager
def hook_modules(modules: Sequence[tuple[str, nn.Module]], hook: Any) -> Iterator[None]:
    """Call ``hook(name, output)`` after each module; the hook's result replaces the output."""
    handles = [
        module.register_forward_hook(lambda _, __, output, name=name: hook(name, output))
        for name, module in modules
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


class LayerSearch:
    """Finds the layers of a captioner with the help of two pictures and a caption."""

    def __init__(
        self,
        captioner: ForcedCaptioner[Any],
        pictures: Sequence[Any],
        caption: WrittenCaption,
    ) -> None:
        self.captioner, self.pictures, self.caption = captioner, pictures, caption
        height, width = captioner.pixels(pictures[0]).shape[1:]
        self.size = (int(height), int(width))
        self.modules = [pair for pair in captioner.network.named_modules() if pair[0]]

    def grids(self) -> list[MapLayer]:
        """Layers whose grid depends on the picture but not on the words; the last layer first."""
        here, elsewhere = (self._outputs(number, self.caption) for number in (0, 1))
        tokens = [*self.caption.tokens[1:], *self.caption.tokens[:1]]
        if tokens == list(self.caption.tokens):
            tokens = [token + 1 for token in tokens]
        otherwise = self._outputs(0, replace(self.caption, tokens=tokens))
        layers = [
            MapLayer(name, GRID, item, grid)
            for (name, item), (shape, numbers) in reversed(here.items())
            if (grid := layer_grid(shape, self.size))
            and otherwise.get((name, item), (None, None))[1] == numbers
            and elsewhere[name, item][1] != numbers
        ]
        # Patches come from a convolution; later grids are as fine or halved, so other forms are no
        # grids of places.
        cut = next((one for one in layers[::-1] if len(here[one.name, one.item][0]) == 4), None)
        return [one for one in layers if cut is None or one.grid in _halves(cut.grid)]

    def attentions(self) -> list[MapLayer]:
        """Layers with attention weights from words to a grid; the last layer first."""
        here = self._outputs(0, self.caption, weights=True)
        forms = {layer.grid for layer in self.grids()}
        return [
            MapLayer(name, ATTENTION, item, grid)
            for (name, item), (shape, _) in reversed(here.items())
            if self._of_words(shape) and (grid := _form(shape[-1], self.size)) in forms
        ]

    def _of_words(self, shape: Sequence[int]) -> bool:
        """Whether weights belong to a caption's words, with a row or a call for each word."""
        n_words = len(self.caption.before) + len(self.caption.tokens)
        return len(shape) == 2 or (len(shape) == 4 and shape[2] == n_words != shape[3])

    def find(self) -> MapLayer:
        """The last layer with a grid through which the whole picture reaches the words.

        If the output of this layer is replaced by its output on another picture, the captioner
        behaves as it does on the other picture.
        """
        wanted = self._logits(1)
        if bool(wanted.isnan().any()):
            raise DataError(
                f"{self.captioner.name}: it gives values that are not numbers; its weights are "
                "broken"
            )
        for layer in self.grids():
            if bool((self._with_the_others(layer) - wanted).abs().max() < 1e-3 * wanted.std()):
                return layer
        raise NotApplicableError(
            f"{self.captioner.name}: no layer with a grid has all that the captioner sees of the "
            f"picture; choose one (--layer): {self._layer_names(self.grids())}"
        )

    def find_named(self, name: str) -> MapLayer:
        """The layer with the given name; ``attention`` is the last layer with attention weights."""
        attentions = self.attentions()
        if name == ATTENTION and not attentions:
            raise UsageError(
                f"--layer {name}: no layer of {self.captioner.name} says how much words "
                "attend to places of the picture; leave --layer out"
            )
        layers = [*self.grids(), *attentions]
        chosen = attentions if name == ATTENTION else [one for one in layers if one.name == name]
        if chosen:
            return chosen[0]
        raise UsageError(
            f"--layer {name}: {self.captioner.name} has no such layer with a grid, or with "
            f"attention to a grid; its last layers are {self._layer_names(layers)}"
        )

    @staticmethod
    def _layer_names(layers: Sequence[MapLayer]) -> str:
        return ", ".join(layer.name for layer in layers[:_SHOWN])

    def _logits(self, number: int) -> Tensor:
        import torch

        with torch.no_grad():
            return self.captioner.logits([self.pictures[number]], [self.caption])

    def _with_the_others(self, layer: MapLayer) -> Tensor:
        """The logits of the first picture if the layer has its output on the second picture."""
        taken: list[Tensor] = []
        module = [(layer.name, self.captioner.network.get_submodule(layer.name))]

        def take(_: str, output: Any) -> None:
            taken.append(dict(layer_outputs(output))[layer.item])

        with hook_modules(module, take):
            self._logits(1)
        with hook_modules(module, lambda _, output: replace_output(output, layer.item, taken[0])):
            return self._logits(0)

    def _outputs(
        self, number: int, caption: WrittenCaption, *, weights: bool = False
    ) -> dict[tuple[str, int], tuple[tuple[int, ...], tuple[float, ...]]]:
        """The shape and some sums of each output (module and number), in the order of calls."""
        import torch

        outputs: dict[tuple[str, int], tuple[tuple[int, ...], tuple[float, ...]]] = {}
        calls: Counter[str] = Counter()

        def note(name: str, output: Any) -> None:
            calls[name] += 1
            for item, values in layer_outputs(output):
                if values.is_floating_point() and (not weights or _sums_to_one(values)):
                    wide = values.double()
                    sums = (wide.sum(), wide.abs().sum(), (wide**2).sum())
                    outputs.pop((name, item), None)
                    outputs[name, item] = (tuple(values.shape), tuple(map(float, sums)))

        with torch.no_grad(), hook_modules(self.modules, note):
            self.captioner.logits([self.pictures[number]], [caption])
        return {key: one for key, one in outputs.items() if weights or calls[key[0]] == 1}


def _sums_to_one(values: Tensor) -> bool:
    total = values.sum(dim=-1) if values.dim() else values
    return bool(values.min() >= 0) and bool(((total - 1).abs() < 1e-3).all())
