"""Captioners that this program fitted, with their folder, captions and answers.

A folder has weights (safetensors), configuration, vocabulary, preprocessing and a README. Reading
the folder runs no code. A grounded captioner writes its captions for an emotion.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from bias_pipeline.array_types import Float32Array
from bias_pipeline.corpus.pictures import Pixels
from bias_pipeline.data.image_masking import PhotoReader
from bias_pipeline.data.photos import image_id, read_photo, read_pixels
from bias_pipeline.data.tables import SUFFIXES, check_file, open_rows
from bias_pipeline.errors import (
    DataError,
    NotApplicableError,
    ResourceError,
    UsageError,
    did_you_mean,
)
from bias_pipeline.io.json_files import expect, load_json
from bias_pipeline.models.picture_text import Question
from bias_pipeline.models.pretrained import WEIGHTS, Pretrained, first_line
from bias_pipeline.models.sampling import Decoding, Noise, decode_captions
from bias_pipeline.models.weight_files import read_numbers
from bias_pipeline.pictures.captioners.backbones import (
    BackboneInputs,
    PixelBackbone,
    PixelInputs,
    PublishedBackbone,
    RegionInputs,
)
from bias_pipeline.pictures.captioners.grit import DetectorBackbone, Grit
from bias_pipeline.pictures.captioners.prompt import (
    N_SPECIAL,
    PAD,
    START,
    UNKNOWN,
    Prompt,
    PromptCaptioner,
)
from bias_pipeline.pictures.captioners.sat import Sat
from bias_pipeline.pictures.vision.networks import (
    OWN_NETWORK,
    find_again,
    find_network,
    is_network,
    lasting_name,
    load_network,
)

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

    from bias_pipeline.pictures.vision.net import VisionNet

Emotion: TypeAlias = str | Mapping[str, str]
PREDICTED = "predicted"  # stands for the emotion that the captioner's own head predicts


def read_emotion(text: str) -> Emotion:
    """The value of ``--emotion``: an emotion, ``predicted``, or a table of images' emotions."""
    path = Path(text)
    if path.suffix.lower() not in SUFFIXES:
        return text
    rows = open_rows(check_file(path), what="a table with image_id, emotion")
    rows.require("image_id", "emotion")
    emotions: dict[str, str] = {}
    for number, row in rows.items:
        image = image_id(rows.id(number, row, "image_id"))
        emotion = rows.text(number, row, "emotion").replace(" ", "_")
        if emotions.setdefault(image, emotion) != emotion:
            rows.refuse(number, f"image {image} has two emotions; keep one")
    return emotions


def check_emotion(model: str, known: Sequence[str], emotion: Emotion | None) -> None:
    if not known and emotion is not None:
        raise UsageError(f"{model}: its captions are grounded in no emotion; leave out --emotion")
    if known and emotion is None:
        raise UsageError(
            f"{model}: its captions are grounded in an emotion; give --emotion {PREDICTED}, a "
            f"table, or one of {', '.join(known)}"
        )
    allowed = known if isinstance(emotion, Mapping) else (*known, PREDICTED)
    for name in emotion.values() if isinstance(emotion, Mapping) else (emotion,):
        if name is not None and name not in allowed:
            raise UsageError(f"--emotion: {name!r} is unknown; {did_you_mean(name, allowed)}")


VERSION = 1  # raise it whenever the same folder would give other captions or answers
CLASSES: Mapping[str, type[Sat] | type[Grit]] = {"sat": Sat, "grit": Grit}
KINDS = tuple(CLASSES)
NO_PROMPT = Prompt("group")  # for a captioner that writes, which ignores its prompt
SPECIALS = ("<unknown>", "<pad>", "<start>", "<end>")  # numbers 0 to 3
CONFIG, VOCABULARY, PREPROCESSING = "config.json", "vocab.json", "preprocessor_config.json"
_EMOTIONS = "emotions"  # the key of a grounded captioner
_BACKBONE = "backbone"  # the setting, and the key of a captioner with a published network
# Settings of prompts and files, which do not describe the network.
_ELSEWHERE = ("prompt", "cache", "weights", "vocabulary")


@dataclass(frozen=True, eq=False)
class Fitted:
    kind: str  # `sat` or `grit`
    encoder: Sat | Grit  # the sizes of the network; the prompt is ignored
    words: tuple[str, ...]  # the words that the captioner can write, numbered from `len(SPECIALS)`
    # The emotions in which its captions are grounded; empty without grounding
    emotions: tuple[str, ...] = ()
    tuned: int = 0  # the number of last blocks of a published backbone that were tuned

    @property
    def vocabulary(self) -> Mapping[str, int]:
        """Numbers of words and of the end token; the network has an output for each number."""
        return {word: n for n, word in enumerate((SPECIALS[-1], *self.words), N_SPECIAL)}

    @property
    def side(self) -> int:
        return side_of(self.encoder)

    def network(self, visual: BackboneInputs | None = None) -> Any:
        """The captioner's network with fresh weights, for pixels or for other visual inputs."""
        nothing = PixelInputs(np.zeros((0, self.side, self.side, 3), np.uint8))
        inputs = visual or nothing
        if self.emotions:
            assert isinstance(self.encoder, Sat)
            return self.encoder.network(inputs, self.vocabulary, (), len(self.emotions))
        return self.encoder.network(inputs, self.vocabulary, ())

    def backbone(self) -> VisionNet | None:
        """The captioner's published vision network, if it has one; its tuned blocks may learn."""
        if not is_network(self.encoder.backbone):
            return None
        network = load_network(find_network(self.encoder.backbone))
        network.tune(self.tuned)
        return network

    def seeing_network(self, backbone: VisionNet | None) -> Any:
        """The captioner's network with fresh weights, including the vision network."""
        from bias_pipeline.pictures.vision.net import attach

        if backbone is None:
            return self.network()
        network = self.network(RegionInputs(np.zeros((0, 1, backbone.size), np.float16)))
        attach(network, backbone)
        return network

    def save(self, folder: Path, weights: Mapping[str, torch.Tensor], card: str) -> None:
        from safetensors.torch import save_file

        settings = {k: v for k, v in asdict(self.encoder).items() if k not in _ELSEWHERE}
        config = {"model_type": self.kind, "version": VERSION, "encoder": settings}
        if is_network(self.encoder.backbone):
            settings[_BACKBONE] = lasting_name(self.encoder.backbone)
            files = dict(find_network(self.encoder.backbone).files)
            config[_BACKBONE] = {"files": files, "tuned": self.tuned}
        if self.emotions:
            config[_EMOTIONS] = list(self.emotions)
        sized = {"size": {"height": self.side, "width": self.side}, "resample": 3}
        numbers = {word: n for n, word in enumerate((*SPECIALS, *self.words))}
        for name, contents in ((CONFIG, config), (PREPROCESSING, sized), (VOCABULARY, numbers)):
            (folder / name).write_text(json.dumps(contents, indent=1), encoding="utf-8")
        save_file({k: v.detach().cpu().contiguous() for k, v in weights.items()}, folder / WEIGHTS)
        (folder / "README.md").write_text(card, encoding="utf-8")

    @classmethod
    def read(cls, model: Pretrained) -> Fitted:
        path = model.folder / CONFIG
        config = expect(load_json(path, what="a model's configuration"), dict, path, "")
        if config.get("version") != VERSION:
            version = config.get("version")
            raise DataError(
                f"{path}: fitted by version {version} of this program's captioners, but this is "
                f"version {VERSION}; fit it again"
            )
        settings = expect(config.get("encoder"), dict, path, "encoder")
        settings = {_BACKBONE: OWN_NETWORK, **settings}  # older files of a GRIT do not name it
        tuned = 0
        if is_network(str(settings[_BACKBONE])):
            backbone = expect(config.get(_BACKBONE), dict, path, _BACKBONE)
            settings[_BACKBONE] = find_again(
                settings[_BACKBONE], backbone.get("files"), model.folder
            )
            tuned = expect(backbone.get("tuned"), int, path, f"{_BACKBONE}.tuned")
        encoder = _encoder(model.kind, settings, path)
        listed = expect(config.get(_EMOTIONS, []), list, path, _EMOTIONS)
        distinct = len(set(map(str, listed))) == len(listed)
        if not all(isinstance(name, str) for name in listed) or not distinct:
            raise DataError(f"{path}: {_EMOTIONS} must be a list of distinct names")
        if listed and model.kind != "sat":
            raise DataError(f"{path}: a {model.kind} is not grounded; {_EMOTIONS} belongs to a sat")
        emotions = tuple(listed)
        fitted = cls(model.kind, encoder, _words(model.folder), emotions, tuned)
        path = model.folder / PREPROCESSING
        sized = expect(_read_file(path), dict, path, "")
        if sized.get("size") != {"height": fitted.side, "width": fitted.side}:
            raise DataError(f"{path}: its size differs from the size of {CONFIG}, {fitted.side}")
        return fitted


def side_of(encoder: PromptCaptioner) -> int:
    """The width and height in pixels of a captioner's square input."""
    visual = encoder.visual
    if isinstance(visual, PixelBackbone):
        return visual.side
    if isinstance(visual, DetectorBackbone):
        return visual.size.side
    if isinstance(visual, PublishedBackbone):
        return find_network(visual.name).side
    raise NotApplicableError(
        "a captioner is fitted to see pixels; leave out encoder.weights, and choose another "
        "encoder.backbone, such as own or efficientnet_lite0"
    )


def _read_file(path: Path) -> object:
    if not path.is_file():
        raise ResourceError(f"{path}: is absent; fit the captioner again, or copy it whole")
    return load_json(path, what="a file of a captioner")


def _encoder(kind: str, settings: Mapping[str, Any], path: Path) -> Sat | Grit:
    """The encoder that the settings in a folder describe; their names and types are checked."""
    usual = CLASSES[kind](NO_PROMPT)
    known = {field.name for field in fields(usual)} - set(_ELSEWHERE)
    if set(settings) != known:
        raise DataError(f"{path}: encoder must have the keys {', '.join(sorted(known))}")
    for key, value in settings.items():
        expected = type(getattr(usual, key))
        if type(value) is not expected and (type(value), expected) != (int, float):
            raise DataError(f"{path}: encoder.{key}={value!r} is of the wrong type")
    try:
        encoder = CLASSES[kind](NO_PROMPT, **settings)
    except UsageError as error:
        raise DataError(f"{path}: encoder has a wrong value; {error}") from error
    side_of(encoder)
    return encoder


def _words(folder: Path) -> tuple[str, ...]:
    path = folder / VOCABULARY
    numbers = expect(_read_file(path), dict, path, "")
    words = tuple(numbers)
    if list(numbers.values()) != list(range(len(numbers))) or words[: len(SPECIALS)] != SPECIALS:
        raise DataError(
            f"{path}: must number its words from 0 on, beginning with {', '.join(SPECIALS)}"
        )
    return words[len(SPECIALS) :]


class FittedNet:
    def __init__(self, model: Pretrained, device: torch.device) -> None:
        self.name, self.device = model.name, device
        self.fitted = Fitted.read(model)
        self.side = self.fitted.side  # pixels a side of its pictures
        self.network = _load_network(self.fitted, model).to(device).eval()

    def prepare(self, photo: Image) -> Pixels:
        """(side, side, 3) a photo in the form that the network takes."""
        return np.asarray(photo.resize((self.side, self.side), reducing_gap=2.0))

    def picture(self, pixels: Sequence[Pixels]) -> dict[str, torch.Tensor]:
        import torch

        table = PixelInputs(np.stack(pixels))
        batch = table.batch(np.arange(len(pixels)))
        return {name: torch.from_numpy(array).to(self.device) for name, array in batch.items()}


def _load_network(fitted: Fitted, model: Pretrained) -> Any:
    """The network with the weights in its folder.

    Sizes are compared before the network is built, so that no configuration fills the memory.
    """
    import torch

    from bias_pipeline.pictures.vision.net import learnt_weights

    weights = read_numbers(model.folder / WEIGHTS)
    backbone = fitted.backbone()
    try:
        with torch.device("meta"):
            empty = fitted.seeing_network(backbone)
        wanted = {name: weight.shape for name, weight in learnt_weights(empty).items()}
    except Exception as error:  # whatever the library raises on wrong sizes
        raise DataError(f"{model.name}: {CONFIG} describes no network ({first_line(error)})") from (
            error
        )
    if wanted != {name: weight.shape for name, weight in weights.items()}:
        raise DataError(f"{model.name}: the weights in {WEIGHTS} do not match {CONFIG}")
    network = fitted.seeing_network(backbone)
    network.load_state_dict({**network.state_dict(), **weights})
    return network


class FittedCaptioner:
    def __init__(
        self,
        model: Pretrained,
        device: torch.device,
        decoding: Decoding,
        reader: PhotoReader = read_photo,
        emotion: Emotion | None = None,
    ) -> None:
        assert not decoding.prompt  # prompts were refused before
        self._reader = reader
        self._net, self._decoding = FittedNet(model, device), decoding
        check_emotion(model.name, self._net.fitted.emotions, emotion)
        self._emotion = emotion

    def read(self, path: Path) -> tuple[Pixels, str]:
        """(side, side, 3) a photo in the form that the network takes, and the photo's id."""
        return self._net.prepare(self._reader(path)), image_id(path.name)

    def describe(self, photos: Sequence[tuple[Pixels, str]]) -> list[list[str]]:
        import torch

        picture = self._net.picture([pixels for pixels, _ in photos])
        images = [image for _, image in photos]
        if self._emotion is not None:
            codes = self._codes(picture, images)
            n_emotions = len(self._net.fitted.emotions)
            picture["group"] = torch.nn.functional.one_hot(codes, n_emotions).float()
        texts_of = partial(self._texts, picture)
        return decode_captions(self._decoding, images, self._net.device, texts_of)

    def emotions(self, photos: Sequence[tuple[Pixels, str]]) -> list[str]:
        """The emotion for which the caption of each photo is written."""
        picture = self._net.picture([pixels for pixels, _ in photos])
        codes = self._codes(picture, [image for _, image in photos])
        return [self._net.fitted.emotions[code] for code in codes.tolist()]

    def _codes(self, picture: Mapping[str, torch.Tensor], images: Sequence[str]) -> torch.Tensor:
        """(B,) the number of each picture's emotion."""
        import torch

        emotions, network = self._net.fitted.emotions, self._net.network
        if self._emotion == PREDICTED:
            with torch.inference_mode():
                codes: torch.Tensor = network.guess(network.means(**picture)).argmax(dim=1)
                return codes
        chosen = self._emotion
        assert chosen is not None
        if isinstance(chosen, str):
            chosen = dict.fromkeys(images, chosen)
        absent = next((image for image in images if image not in chosen), None)
        if absent is not None:
            raise DataError(f"--emotion: the table has no emotion of image {absent}; add it")
        names = [chosen[image] for image in images]
        return torch.tensor([emotions.index(name) for name in names], device=self._net.device)

    def _texts(
        self, picture: Mapping[str, torch.Tensor], noise: Noise | None, best: int
    ) -> list[str]:
        from bias_pipeline.pictures.captioners.decoding import beam_search

        decoding = self._decoding
        captions = beam_search(
            self._net.network,
            picture,
            beams=decoding.beams,
            longest=decoding.max_new_tokens,
            best=best,
            noise=noise,
        )
        names = (*SPECIALS, *self._net.fitted.words)
        return [" ".join(names[number] for number in numbers) for numbers in captions]


class FittedJudge:
    """Computes log-probabilities of answers with a fitted captioner and its own vocabulary."""

    def __init__(self, model: Pretrained, device: torch.device) -> None:
        self._net = FittedNet(model, device)
        if self._net.fitted.emotions:
            raise NotApplicableError(
                f"{model.name}: its captions are grounded in the group that it would have to "
                "guess; take a captioner that was fitted without encoder.grounding"
            )
        self._numbers = self._net.fitted.vocabulary

    def read(self, question: Question) -> tuple[Pixels, list[int], list[list[int]]]:
        """The picture, the words before the answer, and the words of each possible continuation."""
        pixels = read_pixels(question.pictures, question.row, self._net.side)
        texts = [text.split() for text in question.follows]
        common = set.intersection(*map(set, texts))  # words after the answer
        for word in chain.from_iterable(texts):
            if word not in self._numbers and word not in common:
                raise DataError(
                    f"{self._net.name}: its vocabulary cannot write {word!r}; give other words "
                    "(encoder.prompt.answers)"
                )
        before = [START, *self._word_numbers(question.before.split())]
        return pixels, before, [self._word_numbers(text) for text in texts]

    def _word_numbers(self, words: Sequence[str]) -> list[int]:
        return [self._numbers.get(word, UNKNOWN) for word in words]

    def describe(
        self, requests: Sequence[tuple[Pixels, list[int], list[list[int]]]]
    ) -> list[Float32Array]:
        import torch

        n_texts = len(requests[0][2])
        lines = [(before, text) for _, before, texts in requests for text in texts]
        tokens = torch.full(
            (len(lines), max(len(a) + len(b) for a, b in lines)), PAD, device=self._net.device
        )
        follows = torch.zeros_like(tokens[:, 1:], dtype=torch.bool)
        for row, (before, text) in enumerate(lines):
            line = torch.tensor([*before, *text])
            tokens[row, : len(line)] = line
            follows[row, len(before) - 1 : len(line) - 1] = True
        picture = self._net.picture([pixels for pixels, _, texts in requests for _ in texts])
        with torch.inference_mode():
            log_probs = self._net.network.next_word_log_probs(tokens[:, :-1], **picture)
            own_words = log_probs.gather(2, tokens[:, 1:, None]).squeeze(2)
        totals = (own_words * follows).sum(dim=1).view(-1, n_texts)
        return list(totals.cpu().numpy())
