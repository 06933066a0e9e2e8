"""Decodes captions; a random draw depends only on the photo, not on its batch."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bias_pipeline.errors import UsageError
from bias_pipeline.io.json_files import expect, load_json

if TYPE_CHECKING:
    import torch

# The settings that a model's own file may add to a search, with the values that change nothing.
_IDLE: Mapping[str, tuple[object, ...]] = {
    "repetition_penalty": (None, 1, 1.0),
    "length_penalty": (None, 1, 1.0),
    "no_repeat_ngram_size": (None, 0),
    "min_length": (None, 0),
    "min_new_tokens": (None, 0),
    "early_stopping": (None, False),
}


@dataclass(frozen=True)
class Decoding:
    """How captions are decoded.

    Example:
        >>> str(Decoding("a photo of", 30))
        "greedy, at most 30 tokens, prompt 'a photo of'"
        >>> str(Decoding(n=5, temperature=0.7, seed=3))
        '5 draws at temperature 0.7 with seed 3, at most 30 tokens'
    """

    prompt: str = ""  # what the model is asked, or how its captions begin
    max_new_tokens: int = 30  # tokens after the prompt, where a caption is cut off
    beams: int = 1  # beams of beam search; 1 takes the likeliest word each time
    n: int = 1  # captions for each photo: the n best beams, or n draws
    temperature: float = 0.0  # of sampling from all words; 0 does not sample
    seed: int = 0  # the seed of sampling

    def __post_init__(self) -> None:
        if self.temperature and self.beams > 1:
            raise UsageError(
                f"--temperature {self.temperature:g} draws words and --beams {self.beams} searches "
                "for the likeliest; leave out one of the two"
            )
        if not self.temperature and self.n > self.beams:
            raise UsageError(
                f"--n {self.n}: without sampling all captions would be equal; add --temperature 1, "
                f"or --beams {self.n} for the {self.n} best"
            )

    def __str__(self) -> str:
        if self.temperature:
            how = f"at temperature {self.temperature:g} with seed {self.seed}"
            how = f"{self.n} draws {how}" if self.n > 1 else f"a draw {how}"
        elif self.beams > 1:
            how = f"{f'{self.n} best' if self.n > 1 else 'best'} of {self.beams} beams"
        else:
            how = "greedy"
        prompt = f", prompt {self.prompt!r}" if self.prompt else ""
        return f"{how}, at most {self.max_new_tokens} tokens{prompt}"


def describe_decoding(decoding: Decoding, added: Mapping[str, Any]) -> str:
    """Words that describe how captions are decoded.

    Example:
        >>> describe_decoding(Decoding(beams=3), {"length_penalty": 2.0})
        "best of 3 beams, at most 30 tokens, the model's own length_penalty=2.0"
    """
    settings = " ".join(f"{name}={value}" for name, value in added.items())
    return f"{decoding}, the model's own {settings}" if settings else str(decoding)


def own_settings(folder: Path) -> dict[str, Any]:
    """The search settings in a model's own file, such as a penalty for repetitions."""
    path = folder / "generation_config.json"
    if not path.is_file():
        return {}
    config = expect(load_json(path, what="settings of generation"), dict, path, "")
    return {key: config[key] for key, idle in _IDLE.items() if config.get(key) not in idle}


class Noise:
    """Adds Gumbel noise to log-probabilities / temperature, so the likeliest word is a draw.

    Each photo has its own random numbers, so a draw depends neither on the batch nor on the order.
    """

    def __init__(
        self, decoding: Decoding, images: Sequence[str], number: int, device: torch.device
    ) -> None:
        import torch

        self._temperature = decoding.temperature
        self._generators = [
            torch.Generator(device).manual_seed(_seed(decoding.seed, image, number))
            for image in images
        ]

    def __call__(self, tokens: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """(B, V) noisy scores of the next word, from log-probabilities (up to a constant)."""
        import torch

        del tokens
        waits = torch.stack(
            [torch.empty_like(scores[0]).exponential_(generator=one) for one in self._generators]
        )
        return scores / self._temperature - waits.clamp_min(torch.finfo(scores.dtype).tiny).log()


def decode_captions(
    decoding: Decoding,
    images: Sequence[str],
    device: torch.device,
    texts_of: Callable[[Noise | None, int], Sequence[str]],
) -> list[list[str]]:
    """The wanted captions of each photo: the best beams, or draws made in succession."""
    n = decoding.n
    if not decoding.temperature:
        texts = texts_of(None, n)
        return [list(texts[first : first + n]) for first in range(0, len(texts), n)]
    draws = [texts_of(Noise(decoding, images, number, device), 1) for number in range(n)]
    return [list(of_photo) for of_photo in zip(*draws, strict=True)]


def _seed(seed: int, image: str, number: int) -> int:
    """A seed of 63 bits for one draw on one image.

    Example:
        >>> _seed(0, "139", 0) == _seed(0, "139", 1)
        False
    """
    digest = hashlib.sha256(f"{seed} {number} {image}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
