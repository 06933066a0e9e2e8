"""The sizes of GRIT's parts, and the words of a released GRIT by number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bias_pipeline.errors import DataError
from bias_pipeline.io.json_files import expect, load_json


@dataclass(frozen=True)
class GritSize:
    name: str  # of this set of sizes
    side: int  # pixels a side of the square input
    patch: int  # of the Swin transformer; for this and the next four see `Swin`
    embed: int  # size of a patch's vector
    depths: tuple[int, ...]  # the number of blocks of each stage
    backbone_heads: tuple[int, ...]  # attention heads of its stages
    window: int  # side of its windows
    n_levels: int  # the number of coarsest grids in which regions are found
    size: int  # of a region, a place of the grid and a word
    n_heads: int  # attention heads of all that follows the Swin transformer
    n_regions: int  # queries, each of which becomes a region
    n_points: int  # places that a query's head samples in each level
    region_layers: int  # of the region decoder
    region_inner: int  # of its feed-forward networks
    grid_layers: int  # of the grid network
    caption_layers: int  # of the caption decoder
    inner: int  # of the feed-forward networks of grid network and caption decoder
    drop_path: float  # how often a block of the Swin transformer is left out in training
    region_dropout: float  # in the region decoder
    dropout: float  # in the grid network and the caption decoder

    @property
    def grid_dim(self) -> int:
        """The size of the vector at a place of the coarsest grid."""
        return self.embed << (len(self.depths) - 1)


SIZES: Mapping[str, GritSize] = {
    # Our sizes for pictures of 64 pixels, trained from scratch on few pictures.
    "small": GritSize(
        name="small",
        side=64,
        patch=8,
        embed=32,
        depths=(2, 2),
        backbone_heads=(2, 4),
        window=4,
        n_levels=3,
        size=64,
        n_heads=4,
        n_regions=16,
        n_points=4,
        region_layers=2,
        region_inner=128,
        grid_layers=1,
        caption_layers=2,
        inner=128,
        drop_path=0.0,
        region_dropout=0.1,
        dropout=0.2,
    ),
    "released": GritSize(
        name="released",
        side=384,
        patch=4,
        embed=128,
        depths=(2, 2, 18, 2),
        backbone_heads=(4, 8, 16, 32),
        window=12,
        n_levels=4,
        size=512,
        n_heads=8,
        n_regions=150,
        n_points=4,
        region_layers=6,
        region_inner=1024,
        grid_layers=3,
        caption_layers=3,
        inner=2048,
        drop_path=0.3,
        region_dropout=0.1,
        dropout=0.2,
    ),
}


SPECIALS = ("<unk>", "<pad>", "<bos>")  # numbers 0, 1 and 2, as in our vocabulary


def read_vocabulary(path: Path, n_words: int | None = None) -> Mapping[str, int]:
    contents = expect(load_json(path, what="GRIT's vocabulary"), dict, path, "")
    words = expect(contents.get("itos"), list, path, "itos")
    if tuple(words[: len(SPECIALS)]) != SPECIALS or not all(isinstance(w, str) for w in words):
        raise DataError(f"{path}: itos must be words, the first of them {', '.join(SPECIALS)}")
    if n_words not in (None, len(words)):
        raise DataError(f"{path}: it has {len(words)} words, but the weights have {n_words}")
    return {word: number for number, word in enumerate(words)}


def shared_rows(ours: Mapping[str, int], theirs: Mapping[str, int]) -> dict[int, int]:
    """Map our numbers of words to the file's numbers, for special tokens and common words.

    Example:
        >>> shared_rows({"man": 3, "gender": 4}, {"<unk>": 0, "<pad>": 1, "<bos>": 2, "man": 12})
        {0: 0, 1: 1, 2: 2, 3: 12}
    """
    specials = {number: number for number in range(len(SPECIALS))}
    return specials | {number: theirs[word] for word, number in ours.items() if word in theirs}
