"""Images are spread over blocks, and blocks over tasks, by their ids alone."""

import random
from collections.abc import Sequence

import pytest

from bias_pipeline.errors import UsageError
from bias_pipeline.models.blocks import LARGEST_BLOCK, Shard, blocks_of

IDS = [str(number) for number in range(20_000)]


def share(number: int, count: int, ids: Sequence[str] = IDS) -> list[str]:
    return [image for block in Shard(number, count).share(blocks_of(ids)) for image in block]


def test_the_order_of_a_listing_plays_no_part():
    shuffled = random.Random(0).sample(IDS, len(IDS))
    assert blocks_of(shuffled) == blocks_of(IDS)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 3, 16, 300])
def test_every_image_belongs_to_one_task(count):
    lines = [image for number in range(count) for image in share(number, count)]
    assert sorted(lines) == sorted(IDS)


@pytest.mark.parametrize("count", [2, 5, 16])
def test_tasks_have_like_shares(count):
    sizes = [len(share(number, count)) for number in range(count)]
    assert max(sizes) < 1.1 * len(IDS) / count


def test_names_that_follow_a_pattern_are_spread_too():
    ids = [f"{number * 64:012d}" for number in range(6400)]
    sizes = [len(share(number, 8, ids)) for number in range(8)]
    assert max(sizes) < 1.15 * 800


def test_one_more_image_changes_one_block():
    before, after = blocks_of(IDS), blocks_of([*IDS, "one more"])
    assert len(set(after) - set(before)) == 1


@pytest.mark.parametrize("n_images", [0, 1, 100, 5_000, 20_000])
def test_blocks_are_of_a_bounded_size(n_images):
    blocks = blocks_of(IDS[:n_images])
    assert sum(map(len, blocks)) <= LARGEST_BLOCK * len(blocks)
    assert bool(blocks) == bool(n_images)


# --- which task this is


@pytest.mark.parametrize("text", ["3/3", "-1/3", "1", "a/b", "1/0", "1/2/3", " 1/2", "٣/5"])
def test_what_is_no_shard_is_refused(text):
    with pytest.raises(UsageError, match="expected K/N"):
        Shard.parse(text)


def slurm(**numbers: int) -> dict[str, str]:
    return {f"SLURM_ARRAY_TASK_{key}": str(value) for key, value in numbers.items()}


@pytest.mark.parametrize(
    ("variables", "shard"),
    [
        ({}, Shard(0, 1)),
        (slurm(ID=2, MIN=0, MAX=15, STEP=1, COUNT=16), Shard(2, 16)),
        (slurm(ID=101, MIN=100, MAX=103, STEP=1, COUNT=4), Shard(1, 4)),
        (slurm(ID=9, MIN=1, MAX=9, STEP=4, COUNT=3), Shard(2, 3)),
        (slurm(ID=7, MIN=7, MAX=7, STEP=1, COUNT=1), Shard(0, 1)),
    ],
)
def test_a_task_of_an_array_knows_its_share(variables, shard):
    assert Shard.of_slurm(variables) == shard


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (slurm(ID=7, MIN=3, MAX=7, STEP=1, COUNT=2), r"has gaps .* .\$SLURM_ARRAY_TASK_ID/N"),
        (slurm(ID=7), "incomplete"),
    ],
)
def test_an_array_with_gaps_and_half_of_one_are_refused(variables, message):
    with pytest.raises(UsageError, match=message):
        Shard.of_slurm(variables)
