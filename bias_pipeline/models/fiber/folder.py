"""A FIBER folder, made by the user: a released file of weights and RoBERTa's vocabulary."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bias_pipeline.errors import AbsentModelError, DataError, UsageError, did_you_mean
from bias_pipeline.io.digests import digest_of
from bias_pipeline.models.fiber.sizes import PADDING
from bias_pipeline.models.pretrained import Pretrained, first_line

if TYPE_CHECKING:
    from tokenizers import Tokenizer

KIND = "fiber"
LONGEST = 40  # tokens that the authors read of a text
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
    """The file of weights and the two of the vocabulary; nothing is read.

    Args:
        folder: that the user names.
        weights: the file's name, None if there is only one.

    Raises:
        AbsentModelError: if one is absent, saying where to get it.
        UsageError: if there are several files of weights.
    """
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
    """The model of a folder with the digests of its files, the weights first.

    Raises:
        AbsentModelError: see :func:`fiber_files`.
        UsageError: see there.
    """
    files = fiber_files(folder, weights)
    digests = {path.name: digest_of(path) for path in files}
    return Pretrained(str(folder), files[0].parent, KIND, digests)


def fiber_checkpoint_of(model: Pretrained) -> Path:
    """The file of weights of a model from :func:`find_fiber`."""
    return model.folder / next(iter(model.files))


def read_tokenizer(model: Pretrained) -> Tokenizer:
    """RoBERTa's: pairs of bytes, ``<s>`` before a text and ``</s>`` behind it.

    Raises:
        DataError: if the files are broken or another model's.
    """
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
