"""A FIBER folder, which the user makes from a released file of weights and RoBERTa's vocabulary.

The sizes of its network are read from the file of weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bias_pipeline.errors import AbsentModelError, DataError, UsageError, did_you_mean
from bias_pipeline.io.digests import digest_of
from bias_pipeline.models.pretrained import Pretrained, first_line

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PATCH = 4  # pixels a side
TEXT_HEAD = 64  # numbers of an attention head, in RoBERTas of every size
PADDING = 1  # the number of the padding token in RoBERTa

Head = Literal["rank_output", "itm_score"]  # the head that says whether a pair matches


@dataclass(frozen=True)
class FiberSize:
    """The sizes of all parts of a FIBER; the defaults belong to the published network.

    Example:
        >>> FiberSize().side, FiberSize().blocks[-3:], FiberSize().fused_blocks[0]
        (384, ((2, 17), (3, 0), (3, 1)), (2, 14))
    """

    size: int = 128  # of a patch's vector in the first stage; it doubles with each stage
    depths: tuple[int, ...] = (2, 2, 18, 2)  # blocks of each stage
    n_heads: tuple[int, ...] = (4, 8, 16, 32)  # attention heads of each stage
    window: int = 12  # side of a window, and of the last stage's grid, in patches
    text_size: int = 768  # of a token's vector
    text_inner: int = 3072  # of the vectors between the two linear layers of a text layer
    text_layers: int = 12  # of the text side
    n_words: int = 50265  # number of words in the vocabulary
    n_places: int = 514  # positions of a text, plus the number of the padding
    n_pairs: int = 6  # number of fused blocks
    joint: int = 768  # of a vector in the common space of pictures and texts
    matches: bool = True  # whether the network judges a picture and a text together

    @property
    def step(self) -> int:
        return PATCH << (len(self.depths) - 1)

    @property
    def side(self) -> int:
        return self.window * self.step

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """The stage and the number within the stage of each block, in the order of blocks."""
        return tuple((stage, block) for stage, n in enumerate(self.depths) for block in range(n))

    @property
    def fused_blocks(self) -> tuple[tuple[int, int], ...]:
        """The blocks that also read a text."""
        return self.blocks[len(self.blocks) - self.n_pairs :]


KIND = "fiber"
LONGEST = 40  # tokens of a text that the authors read
VOCABULARY = ("vocab.json", "merges.txt")
_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
_FETCH = (
    "fetch fiber_pretrain.ckpt by hand (the README of microsoft/FIBER, coarse_grained, links it; "
    "no hub has it) into a folder, together with roberta-base's vocab.json and merges.txt"
)


def is_fiber(folder: str) -> bool:
    """Whether a folder contains files named like FIBER's release.

    Example:
        >>> is_fiber("nowhere")
        False
    """
    return any(Path(folder).expanduser().glob("*.ckpt"))


def fiber_files(folder: str | None, weights: str | None) -> tuple[Path, ...]:
    """The paths of the file of weights and of the two vocabulary files; no file is read."""
    if folder is None:
        raise AbsentModelError(f"encoder.model=null: {_FETCH}, and set encoder.model=FOLDER")
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise AbsentModelError(
            f"encoder.model={folder}: no such folder (relative paths start at {Path.cwd()}); "
            f"{_FETCH}"
        )
    files = (_weights(root, weights), *(root / name for name in VOCABULARY))
    for path in files:
        if not path.is_file():
            raise AbsentModelError(f"{folder}: {path.name} is absent; {_FETCH}")
    return files


def _weights(folder: Path, name: str | None) -> Path:
    if name is not None:
        if Path(name).name != name:
            raise UsageError(f"encoder.weights={name}: give a file's name within encoder.model")
        return folder / name
    names = sorted(path.name for path in folder.glob("*.ckpt"))
    if len(names) > 1:
        raise UsageError(f"{folder}: several files of weights; set encoder.weights=NAME, "
                         f"{did_you_mean('', names)}")  # fmt: skip
    return folder / (names[0] if names else "fiber_pretrain.ckpt")


def find_fiber(folder: str | None, weights: str | None = None) -> Pretrained:
    """The model in a folder with the digests of its files; the file of weights comes first."""
    files = fiber_files(folder, weights)
    digests = {path.name: digest_of(path) for path in files}
    return Pretrained(str(folder), files[0].parent, KIND, digests)


def read_tokenizer(model: Pretrained) -> Tokenizer:
    """RoBERTa's tokenizer of byte pairs, with ``<s>`` before a text and ``</s>`` after it."""
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors

    paths = [str(model.folder / name) for name in VOCABULARY]
    try:
        tokenizer = Tokenizer(models.BPE.from_file(*paths))
    except Exception as error:  # whatever the library raises on a broken file
        raise DataError(
            f"{model.name}: its vocabulary cannot be read ({first_line(error)}); fetch "
            "roberta-base's vocab.json and merges.txt again"
        ) from error
    known = tokenizer.get_vocab()
    if not set(_SPECIAL) <= set(known) or known["<pad>"] != PADDING:
        raise DataError(
            f"{paths[0]}: not RoBERTa's vocabulary; {', '.join(_SPECIAL)} must be in it, and "
            f"<pad> be {PADDING}"
        )
    added: list[Any] = [AddedToken(name, lstrip=name == "<mask>") for name in _SPECIAL]
    tokenizer.add_special_tokens(added)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    ends = (("</s>", known["</s>"]), ("<s>", known["<s>"]))
    tokenizer.post_processor = processors.RobertaProcessing(*ends, add_prefix_space=False)
    return tokenizer
