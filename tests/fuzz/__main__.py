"""``python -m tests.fuzz``: mutated files of every kind, until the time is up.

Files in odd forms that say the same as plain ones are compared by their numbers. Ends
with 1 if there is a finding. Put its file into a folder of ``tests/fuzz/findings/KIND``, where
a test reads it again, and mend what reads it.
"""

import argparse
import multiprocessing
import random
import sys
import time
from collections.abc import Sequence

from tests.fuzz.hunt import hunt
from tests.fuzz.odd_forms import FORMS
from tests.fuzz.readers import READERS


def main(words: Sequence[str] | None = None) -> int:
    """Fuzz; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, help="of all trials (by chance)")
    parser.add_argument(
        "--only", choices=[*READERS, *FORMS], action="append", help="kinds of files (all)"
    )
    parser.add_argument("--again", metavar="SEED-NUMBER", help="one trial")
    options = parser.parse_args(words)
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    first, last = 0, sys.maxsize
    if options.again:
        seed, first = map(int, options.again.split("-"))
        last = first
    print(f"seed {seed}, {options.seconds:g} s", flush=True)
    end = time.time() + options.seconds
    findings = 0
    while first <= last and time.time() < end:
        died, first, more = _watch(options.only or [*READERS, *FORMS], seed, first, last, end)
        findings += died + more
    print(f"{first} rounds; {findings} findings")
    return 1 if findings else 0


def _watch(
    kinds: Sequence[str], seed: int, first: int, last: int, end: float
) -> tuple[int, int, int]:
    """Trials in a process of their own: a library may end it.

    Returns:
        Whether it was ended, the round to go on with, and how many findings it told.
    """
    ours, theirs = multiprocessing.Pipe(duplex=False)
    context = multiprocessing.get_context("spawn")
    child = context.Process(target=hunt, args=(kinds, seed, first, last, end, theirs))
    child.start()
    theirs.close()
    progress, kind, findings = "", "", 0
    try:
        while True:
            first, kind, progress = ours.recv()
            if progress:
                findings += 1
                print(progress, flush=True)
    except EOFError:
        child.join()
    if child.exitcode == 0:
        return 0, first + 1, findings
    again = f"python -m tests.fuzz --only {kind} --again {seed}-{first}"
    print(f"{kind}: the process ended with {child.exitcode}\n  {again}", flush=True)
    return 1, first + 1, findings


if __name__ == "__main__":
    sys.exit(main())
