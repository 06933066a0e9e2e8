"""Captioners that were fitted here: their folder, and what they say of photos and questions.

A folder holds weights (safetensors), configuration, vocabulary, preprocessing and a card; reading
it runs no code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bias_pipeline.captioners.backbones import PixelBackbone, PixelInputs
from bias_pipeline.captioners.grit import Grit
from bias_pipeline.captioners.grit_backbone import DetectorBackbone
from bias_pipeline.captioners.prompt import N_SPECIAL, PAD, START, UNKNOWN, Prompt
from bias_pipeline.captioners.prompted import PromptCaptioner
from bias_pipeline.captioners.sat import Sat
from bias_pipeline.errors import DataError, NotApplicableError, ResourceError
from bias_pipeline.io.json_files import expect, load_json
from bias_pipeline.models.picture_text import Question
from bias_pipeline.models.pretrained import WEIGHTS, Pretrained, first_line
from bias_pipeline.models.weight_files import read_numbers
from bias_pipeline.vision.photos import read_photo
from bias_pipeline.vision.pixels import read_pixels

if TYPE_CHECKING:
    import torch

VERSION = 1  # raise it whenever the same folder would give other captions or answers
CLASSES: Mapping[str, type[Sat] | type[Grit]] = {"sat": Sat, "grit": Grit}
KINDS = tuple(CLASSES)
SPECIALS = ("<unknown>", "<pad>", "<start>", "<end>")  # numbers 0 to 3
CONFIG, VOCABULARY, PREPROCESSING = "config.json", "vocab.json", "preprocessor_config.json"
# What says how a group is asked for, or where files lie, is none of a captioner's sizes.
_ELSEWHERE = ("prompt", "cache", "weights", "vocabulary")

Pixels = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A captioner that was fitted to a data set.

    Attributes:
        kind: ``sat`` or ``grit``.
        encoder: its sizes; the prompt plays no part.
        words: that it can write, by their numbers from ``len(SPECIALS)`` on.
    """

    kind: str
    encoder: Sat | Grit
    words: tuple[str, ...]

    @property
    def vocabulary(self) -> Mapping[str, int]:
        """Word to number, the sign for the end included, as networks are sized by it."""
        return {word: n for n, word in enumerate((SPECIALS[-1], *self.words), N_SPECIAL)}

    @property
    def side(self) -> int:
        """Of the square that pictures are squeezed into, in pixels."""
        return side_of(self.encoder)

    def network(self) -> Any:
        """Its network with fresh weights."""
        nothing = PixelInputs(np.zeros((0, self.side, self.side, 3), np.uint8))
        return self.encoder.network(nothing, self.vocabulary, ())

    def save(self, folder: Path, weights: Mapping[str, torch.Tensor], card: str) -> None:
        """Write all files of a folder."""
        from safetensors.torch import save_file

        settings = {k: v for k, v in asdict(self.encoder).items() if k not in _ELSEWHERE}
        told = {"model_type": self.kind, "version": VERSION, "encoder": settings}
        sized = {"size": {"height": self.side, "width": self.side}, "resample": 3}
        numbers = {word: n for n, word in enumerate((*SPECIALS, *self.words))}
        for name, own in ((CONFIG, told), (PREPROCESSING, sized), (VOCABULARY, numbers)):
            (folder / name).write_text(json.dumps(own, indent=1), encoding="utf-8")
        save_file({k: v.detach().cpu().contiguous() for k, v in weights.items()}, folder / WEIGHTS)
        (folder / "README.md").write_text(card, encoding="utf-8")

    @classmethod
    def read(cls, model: Pretrained) -> Fitted:
        """What a folder says of itself.

        Raises:
            DataError: if its files do not belong together.
            ResourceError: if one is absent.
        """
        path = model.folder / CONFIG
        config = expect(load_json(path, what="a model's configuration"), dict, path, "")
        if config.get("version") != VERSION:
            told = config.get("version")
            raise DataError(
                f"{path}: fitted by version {told} of this program's captioners, and this is "
                f"version {VERSION}; fit it again"
            )
        settings = expect(config.get("encoder"), dict, path, "encoder")
        found = cls(model.kind, _encoder(model.kind, settings, path), _words(model.folder))
        path = model.folder / PREPROCESSING
        sized = expect(_beside(path), dict, path, "")
        if sized.get("size") != {"height": found.side, "width": found.side}:
            raise DataError(f"{path}: its size is not that of {CONFIG}, {found.side}")
        return found


def side_of(encoder: PromptCaptioner) -> int:
    """The side of the square that a captioner sees pixels of.

    Raises:
        NotApplicableError: if what sees is not fitted with it.
    """
    visual = encoder.visual
    if isinstance(visual, PixelBackbone):
        return visual.side
    if isinstance(visual, DetectorBackbone):
        return visual.size.side
    raise NotApplicableError(
        "a captioner is fitted whole, its eyes included; leave out encoder.backbone and "
        "encoder.weights"
    )


def _beside(path: Path) -> object:
    if not path.is_file():
        raise ResourceError(f"{path}: is absent; fit the captioner again, or copy it whole")
    return load_json(path, what="a file of a captioner")


def _encoder(kind: str, settings: Mapping[str, Any], path: Path) -> Sat | Grit:
    """Of settings that are as those of a fresh one in names and kinds.

    Raises:
        DataError: naming the key.
    """
    usual = CLASSES[kind](Prompt(""))
    known = {own.name for own in fields(usual)} - set(_ELSEWHERE)
    if set(settings) != known:
        raise DataError(f"{path}: encoder must have the keys {', '.join(sorted(known))}")
    for key, value in settings.items():
        if type(value) is not type(getattr(usual, key)):
            raise DataError(f"{path}: encoder.{key}={value!r} is of another kind than it must be")
    found = CLASSES[kind](Prompt(""), **settings)
    try:
        side_of(found)
    except KeyError as error:
        raise DataError(f"{path}: encoder names what is unknown, {error}") from error
    return found


def _words(folder: Path) -> tuple[str, ...]:
    path = folder / VOCABULARY
    numbers = expect(_beside(path), dict, path, "")
    words = tuple(numbers)
    if list(numbers.values()) != list(range(len(numbers))) or words[: len(SPECIALS)] != SPECIALS:
        raise DataError(
            f"{path}: must number its words from 0 on, the first of them {', '.join(SPECIALS)}"
        )
    return words[len(SPECIALS) :]


class FittedNet:
    """A fitted captioner's network with its weights, ready to be asked.

    Args:
        model: its folder.
        device: where to compute.

    Raises:
        BiasPipelineError: if its files are broken or do not belong together.
    """

    def __init__(self, model: Pretrained, device: torch.device) -> None:
        self.name, self.device = model.name, device
        self.fitted = Fitted.read(model)
        self.network = _loaded(self.fitted, model).to(device).eval()

    def picture(self, pixels: Sequence[Pixels]) -> dict[str, torch.Tensor]:
        """What its network takes of B pictures (side, side, 3)."""
        import torch

        table = PixelInputs(np.stack(pixels))
        own = table.batch(np.arange(len(pixels)))
        return {name: torch.from_numpy(array).to(self.device) for name, array in own.items()}


def _loaded(fitted: Fitted, model: Pretrained) -> Any:
    """The network with the weights of its folder.

    Sizes are compared before anything is made: a configuration must not fill the memory.
    """
    import torch

    weights = read_numbers(model.folder / WEIGHTS)
    try:
        with torch.device("meta"):
            wanted = {name: own.shape for name, own in fitted.network().state_dict().items()}
    except Exception as error:  # whatever sizes that do not fit make of the library
        raise DataError(f"{model.name}: {CONFIG} describes no network ({first_line(error)})") from (
            error
        )
    if wanted != {name: own.shape for name, own in weights.items()}:
        raise DataError(f"{model.name}: {WEIGHTS} holds other weights than {CONFIG} says")
    network = fitted.network()
    network.load_state_dict(weights)
    return network


class FittedCaptioner:
    """Photos as captions: the likeliest words, nothing is drawn at random.

    Args:
        model: a folder of ``fit sat`` or ``fit grit``.
        device: where to compute.
        max_new_tokens: words, where a caption is cut off.
        beams: captions that are followed at once.
        prompt: none: it begins by itself.
    """

    def __init__(
        self,
        model: Pretrained,
        device: torch.device,
        *,
        max_new_tokens: int = 30,
        beams: int = 1,
        prompt: str = "",
    ) -> None:
        assert not prompt  # refused before
        self._net = FittedNet(model, device)
        self._longest, self._beams = max_new_tokens, beams

    def read(self, path: Path) -> Pixels:
        """(side, side, 3) a photo as the network takes it.

        Raises:
            UnreadableError: with the reason.
        """
        side = self._net.fitted.side
        return np.asarray(read_photo(path).resize((side, side), reducing_gap=2.0))

    def describe(self, photos: Sequence[Pixels]) -> list[str]:
        """A caption for each photo."""
        from bias_pipeline.captioners.writing import written

        picture = self._net.picture(photos)
        found = written(self._net.network, picture, beams=self._beams, longest=self._longest)
        names = (*SPECIALS, *self._net.fitted.words)
        return [" ".join(names[number] for number in own) for own in found]


class FittedJudge:
    """A fitted captioner asked how likely answers are, with the words that it can write.

    Args:
        model: a folder of ``fit sat`` or ``fit grit``.
        device: where to compute.
    """

    def __init__(self, model: Pretrained, device: torch.device) -> None:
        self._net = FittedNet(model, device)
        self._numbers = self._net.fitted.vocabulary

    def read(self, question: Question) -> tuple[Pixels, list[int], list[list[int]]]:
        """The picture, the words before the answer, and each text that may follow.

        Raises:
            DataError: if the picture cannot be read, or an answer cannot be written.
        """
        pixels = read_pixels(question.pictures, question.row, self._net.fitted.side)
        texts = [own.split() for own in question.follows]
        told = set.intersection(*map(set, texts))  # of a caption that follows every answer
        for word in chain.from_iterable(texts):
            if word not in self._numbers and word not in told:
                raise DataError(
                    f"{self._net.name}: its vocabulary cannot write {word!r}; give other words "
                    "(encoder.prompt.answers)"
                )
        before = [START, *self._known(question.before.split())]
        return pixels, before, [self._known(own) for own in texts]

    def _known(self, words: Sequence[str]) -> list[int]:
        return [self._numbers.get(word, UNKNOWN) for word in words]

    def describe(
        self, asked: Sequence[tuple[Pixels, list[int], list[list[int]]]]
    ) -> list[npt.NDArray[np.float32]]:
        """(K,) logarithms of how likely each text is to follow, for each question."""
        import torch

        n_texts = len(asked[0][2])
        lines = [(before, own) for _, before, texts in asked for own in texts]
        tokens = torch.full(
            (len(lines), max(len(a) + len(b) for a, b in lines)), PAD, device=self._net.device
        )
        follows = torch.zeros_like(tokens[:, 1:], dtype=torch.bool)
        for row, (before, own) in enumerate(lines):
            line = torch.tensor([*before, *own])
            tokens[row, : len(line)] = line
            follows[row, len(before) - 1 : len(line) - 1] = True
        picture = self._net.picture([pixels for pixels, _, texts in asked for _ in texts])
        with torch.inference_mode():
            likely = self._net.network.following(tokens[:, :-1], **picture)
            own_words = likely.gather(2, tokens[:, 1:, None]).squeeze(2)
        totals = (own_words * follows).sum(dim=1).view(-1, n_texts)
        return list(totals.cpu().numpy())
