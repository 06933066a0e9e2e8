"""``encoder=grit``: GRIT (Nguyen et al. 2022) as a prompted captioner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bias_pipeline.captioners.backbones import Backbone, BackboneInputs
from bias_pipeline.captioners.grit_backbone import DetectorBackbone, ReleasedBackbone
from bias_pipeline.captioners.prompt import N_SPECIAL, Prompt
from bias_pipeline.captioners.prompted import AnswerNumbers, PromptCaptioner, PromptedInputs
from bias_pipeline.errors import DataError, ResourceError, UsageError
from bias_pipeline.io.digests import digest_of
from bias_pipeline.models.grit.sizes import SIZES, read_vocabulary, shared_rows

if TYPE_CHECKING:
    from bias_pipeline.captioners.grit_net import GritNet
    from bias_pipeline.models.grit.checkpoint import GritCheckpoint

VERSION = 1  # raise it whenever any prediction changes
FILE_VERSION = 2  # the same, with a file of weights
FILES = ("weights", "vocabulary")


@dataclass(frozen=True)
class Grit(PromptCaptioner):
    """A description of the network; :meth:`build` makes it, with PyTorch.

    Without ``weights`` all of it is trained from scratch, only on the answers. (GRIT's own detector
    was pre-trained on the boxes of Visual Genome; here the region decoder gets no boxes.) With
    ``weights``, the file's detector is used and frozen; grid network and decoder start from a
    captioner's file, or from scratch with a detector's.
    """

    prompt: Prompt  # the prompt for the group
    # Of the `released` network, or `small` (ours), for small pictures on a CPU
    size: Literal["small", "released"] = "small"
    # Whether the gate on regions has the weights of the gate on the grid, as in the `released`
    # network, or its own, as in the `paper`
    second_gate: Literal["released", "paper"] = "released"
    # Whether weights begin as He et al. (2015) draw them, as ImageCaptioner2's; else as in the
    # published network. Not with a file of weights.
    he: bool = False
    weights: str | None = None  # file of a captioner or a detector as GRIT's authors released them
    # The file of that captioner's words; other words of prompts and captions get new vectors
    vocabulary: str | None = None
    # Folder that caches the pictures or their features as arrays; None for no cache
    cache: str | None = None

    @property
    def spec(self) -> Mapping[str, object]:
        """The settings that decide its predictions; paths do not."""
        settings = asdict(self)
        for key in ("cache", "size", *FILES):
            settings.pop(key)
        files = self.by_content(asdict(self))
        version = VERSION if self.weights is None else FILE_VERSION
        return {"version": version, **settings, **files, "backbone": dict(self.visual.spec)}

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        """Weights and vocabulary by their digests."""
        named = {key: settings[key] for key in FILES if settings.get(key)}
        return {key: digest_of(Path(name).expanduser()) for key, name in named.items()}

    @property
    def visual(self) -> Backbone:
        """How it sees."""
        size = SIZES[self.size]
        if self.weights is None:
            return DetectorBackbone(size, self.cache)
        return ReleasedBackbone(size, self.weights, self.cache)

    def require(self) -> None:
        """Check that the files exist and that settings do not contradict each other."""
        if self.weights is None and self.vocabulary is not None:
            raise UsageError(
                f"encoder.vocabulary={self.vocabulary}: words without weights; name the "
                "captioner's file with encoder.weights=FILE, or leave it out"
            )
        if self.weights is not None and self.he:
            raise UsageError(
                "encoder.he=true is for training from scratch, not with "
                f"encoder.weights={self.weights}; leave one out"
            )
        super().require()
        if self.vocabulary is not None and not Path(self.vocabulary).expanduser().is_file():
            raise ResourceError(f"encoder.vocabulary={self.vocabulary}: no such file")

    def notes(self, groups: Sequence[str]) -> list[str]:
        """A note on words of the prompt that the file lacks."""
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
        """See the base; weights are those of the file, if there is one."""
        from bias_pipeline.captioners.grit_net import GritNet
        from bias_pipeline.captioners.initial_weights import begin_as_he

        detector, n_words = self.visual.build(visual), len(vocabulary) + N_SPECIAL
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
            begin_as_he(net)
        if checkpoint is not None:
            self._begin(net, checkpoint, vocabulary)
        return net

    def build(self, inputs: PromptedInputs) -> GritNet:
        """See the base.

        Raises:
            DataError: if a caption in its prompt is longer than the file's captioner reads.
        """
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
        """The contents of the file, if there is one.

        Raises:
            UsageError: if the file's vocabulary is not given, or it has none.
        """
        from bias_pipeline.models.grit.checkpoint import read_checkpoint

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

    def _begin(self, net: GritNet, checkpoint: GritCheckpoint, words: Mapping[str, int]) -> None:
        """Load a captioner's file into the network."""
        from bias_pipeline.models.grit.checkpoint import load_captions

        if self.vocabulary is not None:
            theirs = read_vocabulary(Path(self.vocabulary).expanduser(), checkpoint.n_words)
            load_captions(net, checkpoint, shared_rows(words, theirs), f"encoder.size={self.size}")
