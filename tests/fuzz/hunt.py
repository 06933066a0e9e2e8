"""One trial of fuzzing: a mutated file is read, and either read or refused in a sentence.

Or files in an odd form are read, and give the numbers of the plain form.
"""

import logging
import os
import random
import resource
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType

from bias_pipeline.errors import BiasPipelineError
from tests.fuzz.mutations import odd_file
from tests.fuzz.odd_forms import OtherNumberError, compare
from tests.fuzz.readers import READERS, Reader

LIMIT_S = 20
MEMORY = 16 << 30  # bytes; what asks for more ends in a MemoryError, a finding
MOST_CUTS = 150
CANARY = "canary"


class Hang(BaseException):
    """A file took longer than the limit; no handler of ours takes it for a fault of the file."""


@dataclass(frozen=True)
class Finding:
    """A file that was neither read nor refused in a sentence.

    Attributes:
        reader: what read it.
        name: of the file.
        content: of the file.
        seed: of the trial.
        fault: what happened, with the line of ours where it did.
    """

    reader: str
    name: str
    content: bytes
    seed: str
    fault: str

    def report(self) -> str:
        """All that is needed to see it again."""
        again = f"python -m tests.fuzz --only {self.reader} --again {self.seed}"
        shown = f"{self.content[:300]!r}{' ...' if len(self.content) > 300 else ''}"
        return f"{self.reader}: {self.fault}\n  {again}\n  {self.name}: {shown}"


class Hunter:
    """Reads files of one kind in a folder of its own, which must be the working folder.

    Args:
        kind: a key of ``READERS``.
        folder: for its files; where a canary would be left.
    """

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        (folder / kind).mkdir()
        self.reader: Reader = READERS[kind](folder / kind)

    def trial(self, seed: str) -> Finding | None:
        """Mutate one of the sound files by chance and read it."""
        generator = random.Random(f"{self.kind}:{seed}")
        name = generator.choice(sorted(self.reader.files))
        content = odd_file(name, self.reader.files[name], generator)
        fault = self.fault(name, content)
        return Finding(self.kind, name, content, seed, fault) if fault else None

    def fault(self, name: str, content: bytes) -> str:
        """What is wrong with how a file ends; nothing if it is read, or refused in a sentence."""
        place = self.folder / "tried"
        place.mkdir(exist_ok=True)
        (place / name).write_bytes(content)
        canary = self.folder / CANARY
        try:
            with time_limit():
                self.reader.read(place / name)
        except BiasPipelineError as error:
            return "" if str(error).strip() else "refused without a word"
        except Hang:
            return f"longer than {LIMIT_S} s"
        except (Exception, SystemExit) as error:
            return f"{type(error).__name__} at {_place(error)}"
        if canary.exists():
            canary.unlink()
            return "code ran"
        return ""

    def smallest(self, finding: Finding) -> Finding:
        """The same fault with as much as possible cut away."""
        content, tries = finding.content, 0
        size = len(content) // 2
        while size and tries < MOST_CUTS and not finding.fault.startswith("longer"):
            first, before = 0, len(content)
            while first < len(content) and tries < MOST_CUTS:
                cut = content[:first] + content[first + size :]
                tries += 1
                if self.fault(finding.name, cut) == finding.fault:
                    content = cut
                else:
                    first += size
            size = size if len(content) < before and size > 1 else size // 2
        return replace(finding, content=content)


class Comparer:
    """Compares the numbers of an odd form with those of the plain one.

    Args:
        kind: a key of ``FORMS``.
        folder: for the files.
    """

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder / kind
        self.folder.mkdir()

    def trial(self, seed: str) -> Finding | None:
        """Write a truth in an odd form by chance and compare its numbers."""
        try:
            with time_limit():
                compare(self.kind, self.folder, random.Random(f"{self.kind}:{seed}"))
        except OtherNumberError as error:
            fault = str(error)
        except Hang:
            fault = f"longer than {LIMIT_S} s"
        except (Exception, SystemExit) as error:
            fault = f"{type(error).__name__} at {_place(error)}"
        else:
            return None
        odd = max(self.folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)
        return Finding(self.kind, odd.name, odd.read_bytes(), seed, fault)

    def smallest(self, finding: Finding) -> Finding:
        """The finding itself: each part of its files is needed for the numbers."""
        return finding


@contextmanager
def time_limit() -> Iterator[None]:
    """Raise :class:`Hang` after the limit of processor time, or ten times that by the clock.

    On a busy machine the clock alone would find hangs where there are none.
    """

    def end(signum: int, frame: FrameType | None) -> None:
        raise Hang

    clocks = {signal.SIGALRM: signal.ITIMER_REAL, signal.SIGPROF: signal.ITIMER_PROF}
    before = {number: signal.signal(number, end) for number in clocks}
    signal.setitimer(signal.ITIMER_REAL, 10 * LIMIT_S)
    signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
    try:
        yield
    finally:
        for number, clock in clocks.items():
            signal.setitimer(clock, 0)
            signal.signal(number, before[number])


def _place(error: BaseException) -> str:
    """The last line of the package that the error came through."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "bias_pipeline" in f.filename]
    frames = frames or list(traceback.extract_tb(error.__traceback__))
    return f"{Path(frames[-1].filename).name}:{frames[-1].name}"


def hunt(
    kinds: Sequence[str], seed: int, first: int, last: int, end: float, parent: Connection
) -> None:
    """Trials of all kinds in turn; each fault is told once, with the smallest file that has it."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        place = Path(folder)
        hunters = [
            Hunter(kind, place) if kind in READERS else Comparer(kind, place) for kind in kinds
        ]
        known: set[tuple[str, str]] = set()
        for number, hunter in _turns(hunters, first, last):
            if time.time() > end:
                break
            parent.send((number, hunter.kind, ""))
            finding = hunter.trial(f"{seed}-{number}")
            if finding and (hunter.kind, finding.fault) not in known:
                known.add((hunter.kind, finding.fault))
                parent.send((number, hunter.kind, hunter.smallest(finding).report()))
        os.chdir("/")


def _turns(
    hunters: Sequence[Hunter | Comparer], first: int, last: int
) -> Iterator[tuple[int, Hunter | Comparer]]:
    for number in range(first, last + 1):
        for hunter in hunters:
            yield number, hunter
