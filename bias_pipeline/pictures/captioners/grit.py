"""``encoder=grit``: GRIT (Nguyen et al. 2022) as a captioner with a prompt, and its backbone.

The backbone is a Swin transformer with a region decoder, fresh or with released weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import IntArray
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.data.photos import VERSION as PIXELS_VERSION
from bias_pipeline.data.photos import pixel_table
from bias_pipeline.errors import DataError, ResourceError, UsageError
from bias_pipeline.io.digests import digest_of
from bias_pipeline.models.pretrained import device_of
from bias_pipeline.pictures.captioners.backbones import (
    Backbone,
    BackboneInputs,
    PictureBackbone,
    PixelInputs,
    PublishedBackbone,
    pictures_of,
)
from bias_pipeline.pictures.captioners.prompt import (
    N_SPECIAL,
    AnswerNumbers,
    Prompt,
    PromptCaptioner,
    PromptedInputs,
)
from bias_pipeline.pictures.grit.sizes import SIZES, GritSize, read_vocabulary, shared_rows
from bias_pipeline.pictures.vision.networks import (
    OWN_NETWORK,
    PictureBackboneName,
    find_network,
    is_network,
)

if TYPE_CHECKING:
    import torch
    from torch import nn

    from bias_pipeline.pictures.captioners.grit_net import GritNet
    from bias_pipeline.pictures.grit.checkpoint import GritCheckpoint

REGIONS_VERSION = 1  # raise it whenever features of the released detector change


@dataclass(frozen=True)
class DetectorBackbone(PictureBackbone):
    """A Swin transformer and a region decoder, both trained from scratch with the captioner."""

    size: GritSize  # of all parts
    cache: str | None = None  # folder that caches the pictures as arrays, None for no cache

    @property
    def spec(self) -> Mapping[str, object]:
        return {"sees": "regions", "version": PIXELS_VERSION, **asdict(self.size)}

    def read(self, data: LabelledCaptions) -> PixelInputs:
        return PixelInputs(pixel_table(pictures_of(data), self.size.side, self.cache))

    def build(self, inputs: BackboneInputs) -> nn.Module:
        del inputs
        from bias_pipeline.pictures.grit.detector import GritDetector

        return GritDetector(self.size)


@dataclass(frozen=True)
class ReleasedBackbone(PictureBackbone):
    """The same network with frozen weights from a file, which encodes each picture once.

    Features are stored as float16, for all seeds and sides of a metric.
    """

    size: GritSize  # of all parts
    weights: str  # the file of a captioner or a detector, see `checkpoint`
    cache: str | None = None  # folder that caches the features; None for no cache
    device: str = "auto"  # where to compute; `auto` is the first GPU if there is one

    @property
    def spec(self) -> Mapping[str, object]:
        versions, settings = [REGIONS_VERSION, PIXELS_VERSION], asdict(self.size)
        return {"sees": "regions", "versions": versions, **settings, "file": digest_of(self.path)}

    @property
    def path(self) -> Path:
        return Path(self.weights).expanduser()

    def require(self) -> None:
        if not self.path.is_file():
            raise ResourceError(
                f"encoder.weights={self.weights}: no such file; fetch GRIT's weights by hand"
            )

    def read(self, data: LabelledCaptions) -> VisualInputs:
        from bias_pipeline.models.picture_vectors import regions_of

        pictures = pictures_of(data)

        def load() -> _FeatureExtractor:
            return _FeatureExtractor(self.size, self.path, device_of(self.device))

        regions = regions_of(pictures, self.cache, self.spec, self.path.name, load)
        return VisualInputs(regions, self.size)

    def build(self, inputs: BackboneInputs) -> nn.Module:
        assert isinstance(inputs, VisualInputs)
        from bias_pipeline.pictures.grit.detector import PrecomputedFeatures

        return PrecomputedFeatures(self.size)


class _FeatureExtractor:
    batch_size: ClassVar[int] = 8  # pictures per batch

    def __init__(self, size: GritSize, path: Path, device: torch.device) -> None:
        from bias_pipeline.pictures.grit.checkpoint import load_detector, read_checkpoint
        from bias_pipeline.pictures.grit.detector import GritDetector

        self.side, self._device = size.side, device
        self._net = GritDetector(size)
        load_detector(self._net, read_checkpoint(path), f"encoder.size={size.name}")
        self._net.to(device).eval()

    def extract(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.float16]:
        """(B, G * D + R * C) the grid of each of B pictures, with its regions behind it."""
        import torch

        turned = torch.from_numpy(np.ascontiguousarray(pixels.transpose(0, 3, 1, 2)))
        with torch.inference_mode():
            outputs = self._net(turned.to(self._device))
        flat = torch.cat([output.flatten(1) for output in outputs], dim=1)
        return flat.to(torch.float16).cpu().numpy()


@dataclass(frozen=True, eq=False)
class VisualInputs(BackboneInputs):
    table: npt.NDArray[np.float16]  # (N, G * D + R * C) float16, the grid and then the regions
    size: GritSize  # of the detector

    def batch(self, rows: IntArray) -> Mapping[str, npt.NDArray[Any]]:
        """``grid`` (B, G, D) and ``regions`` (B, R, C)."""
        vectors = np.array(self.table[rows])
        cut = vectors.shape[1] - self.size.n_regions * self.size.size
        grid, regions = vectors[:, :cut], vectors[:, cut:]
        return {
            "grid": grid.reshape(len(vectors), -1, self.size.grid_dim),
            "regions": regions.reshape(len(vectors), -1, self.size.size),
        }


VERSION = 1  # raise it whenever any prediction changes
FILE_VERSION = 2  # the same for predictions with a file of weights
FILES = ("weights", "vocabulary")


@dataclass(frozen=True)
class Grit(PromptCaptioner):
    """A description of the network; :meth:`build` makes the network with PyTorch.

    Without ``weights`` the whole network is trained from scratch, only on the answers. (GRIT's own
    detector was pre-trained on the boxes of Visual Genome; here the region decoder gets no boxes.)
    With ``weights``, the detector comes from the file and is frozen. A captioner's file also has
    start weights for the grid network and the decoder. With a detector's file, these two networks
    start from scratch.
    """

    prompt: Prompt  # the prompt for the group
    # The vision network: `own`, a Swin transformer trained from scratch with the rest, or a
    # published one, frozen, as `Sat` takes it; the region decoder then works on its last grid
    backbone: PictureBackboneName = OWN_NETWORK
    # The sizes of the `released` network, or our `small` sizes for small pictures on a CPU
    size: Literal["small", "released"] = "small"
    # `released`: the gate on regions has the weights of the gate on the grid, as in the released
    # network; `paper`: the gate on regions has its own weights
    second_gate: Literal["released", "paper"] = "released"
    # Whether weights start as He et al. (2015) draw them, as in ImageCaptioner2, or as in the
    # published network. Not with a file of weights.
    he: bool = False
    weights: str | None = None  # file of a captioner or a detector as GRIT's authors released them
    # The file with the words of the captioner in `weights`; other words get new vectors
    vocabulary: str | None = None
    # The folder that caches pictures or their features as arrays; None for no cache
    cache: str | None = None

    @property
    def spec(self) -> Mapping[str, object]:
        """The settings that decide predictions, which do not include paths."""
        settings = asdict(self)
        for key in ("cache", "size", "backbone", *FILES):
            settings.pop(key)
        files = {key: value for key, value in self.by_content(asdict(self)).items() if key in FILES}
        version = VERSION if self.weights is None else FILE_VERSION
        return {"version": version, **settings, **files, "backbone": dict(self.visual.spec)}

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        named = {key: settings[key] for key in FILES if settings.get(key)}
        digests = {key: digest_of(Path(name).expanduser()) for key, name in named.items()}
        backbone = str(settings.get("backbone", ""))
        network = {"backbone": dict(find_network(backbone).files)} if is_network(backbone) else {}
        return {**digests, **network}

    @property
    def visual(self) -> Backbone:
        size = SIZES[self.size]
        if is_network(self.backbone):
            return PublishedBackbone(self.backbone, self.cache)
        if self.weights is None:
            return DetectorBackbone(size, self.cache)
        return ReleasedBackbone(size, self.weights, self.cache)

    def require(self) -> None:
        if self.weights is None and self.vocabulary is not None:
            raise UsageError(
                f"encoder.vocabulary={self.vocabulary}: words without weights; name the "
                "captioner's file with encoder.weights=FILE, or leave encoder.vocabulary out"
            )
        if self.weights is not None and self.he:
            raise UsageError(
                "encoder.he=true is for training from scratch, not with "
                f"encoder.weights={self.weights}; leave one out"
            )
        if self.weights is not None and self.backbone != OWN_NETWORK:
            raise UsageError(
                f"encoder.weights={self.weights} has its own detector; leave out "
                f"encoder.backbone={self.backbone}"
            )
        super().require()
        if self.vocabulary is not None and not Path(self.vocabulary).expanduser().is_file():
            raise ResourceError(f"encoder.vocabulary={self.vocabulary}: no such file")

    def notes(self, groups: Sequence[str]) -> list[str]:
        if self.vocabulary is None:
            return []
        lacking = self.prompt.lacking(groups, read_vocabulary(Path(self.vocabulary).expanduser()))
        if not lacking:
            return []
        return [
            "words that the captioner's vocabulary lacks start with new vectors: "
            f"{', '.join(lacking)}"
        ]

    def network(
        self, visual: BackboneInputs, vocabulary: Mapping[str, int], answers: AnswerNumbers
    ) -> GritNet:
        from bias_pipeline.pictures.captioners.grit_net import GritNet
        from bias_pipeline.pictures.captioners.nets import init_he
        from bias_pipeline.pictures.grit.checkpoint import load_captions
        from bias_pipeline.pictures.grit.detector import PublishedDetector

        detector, n_words = self.visual.build(visual), len(vocabulary) + N_SPECIAL
        if is_network(self.backbone):
            detector = PublishedDetector(detector, SIZES[self.size])
        checkpoint = self._checkpoint()
        net = GritNet(
            detector,
            n_words,
            answers,
            SIZES[self.size],
            self.second_gate,
            n_memories=checkpoint.n_memories if checkpoint else 0,
            n_positions=checkpoint.n_positions if checkpoint else 0,
        )
        if self.he:
            init_he(net)
        if checkpoint is not None and self.vocabulary is not None:
            theirs = read_vocabulary(Path(self.vocabulary).expanduser(), checkpoint.n_words)
            rows = shared_rows(vocabulary, theirs)
            load_captions(net, checkpoint, rows, f"encoder.size={self.size}")
        return net

    def build(self, inputs: PromptedInputs) -> GritNet:
        net: GritNet = super().build(inputs)  # type: ignore[assignment]
        positions, lengths = net.cap_generator.positions, inputs.words.whole_lengths
        if positions is not None and lengths.max(initial=0) > len(positions):
            row = int(lengths.argmax())
            raise DataError(
                f"encoder.weights={self.weights}: reads {len(positions)} words, and "
                f"{' '.join(inputs.words.data.captions.words(row))[:60]!r} in its prompt has "
                f"{lengths[row]}; shorten the caption or leave encoder.weights out"
            )
        return net

    def _checkpoint(self) -> GritCheckpoint | None:
        from bias_pipeline.pictures.grit.checkpoint import read_checkpoint

        if self.weights is None:
            return None
        checkpoint = read_checkpoint(Path(self.weights).expanduser())
        if bool(checkpoint.captions) != (self.vocabulary is not None):
            raise UsageError(
                f"encoder.weights={self.weights} is of a captioner; name its words with "
                "encoder.vocabulary=FILE"
                if checkpoint.captions
                else f"encoder.weights={self.weights} is of a detector, which has no words; leave "
                "encoder.vocabulary out"
            )
        return checkpoint
