"""The door: choose the command, run it, turn what went wrong into a sentence and an exit code."""

from __future__ import annotations

import gc
import os
import resource
import sys
from collections.abc import Sequence

from bias_pipeline import __version__
from bias_pipeline.commands import overview
from bias_pipeline.commands.words import chosen
from bias_pipeline.errors import (
    NO_MEMORY,
    BiasPipelineError,
    ResourceError,
    UsageError,
    is_out_of_memory,
    refused_by_system,
)
from bias_pipeline.io import stopping, streams
from bias_pipeline.io.included import including, places
from bias_pipeline.io.terminal import guard, say, warn

LEAST_MEMORY = 1_000_000_000  # bytes of address space, of which libraries alone take most


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; a user's mistake never shows a traceback."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    streams.open_streams()
    _settle()
    guard()
    stopping.listen()
    try:
        code = _obey(words)
        stopped = code != 0 and stopping.requested()
    except BaseException as error:
        if not isinstance(error, KeyboardInterrupt) and not stopping.requested():
            raise
        stopped = True
    if not stopped:
        return code
    warn("stopped; what was finished is kept")
    return stopping.exit_code()


def program() -> int:
    """Run the command of this process, which ends with the exit code that is returned.

    A request to stop that comes when :func:`main` is just done is heeded as any other, and one that
    comes later no longer: Python would end with a traceback.
    """
    try:
        code = main()
        stopping.ignore_signals()
    except (KeyboardInterrupt, stopping.Stopped):
        stopping.ignore_signals()
        code = stopping.exit_code()
    return code


def _settle() -> None:
    """Set what suits this program better than what Python and NumPy start with."""
    # Composing a sweep makes nodes by the hundred thousand that stay until their job ran; looking
    # for garbage among them every 700 took a sixth of a sweep of cached cells.
    gc.set_threshold(10_000, 10, 10)
    # Read when NumPy is imported, which nothing here has done yet. Its products are small, and
    # cells run side by side: threads that share one wait for each other on busy cores.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _obey(words: list[str]) -> int:
    try:
        with including(words) as rest:
            for name, place in places().items():
                warn(f"included: {name} from {place}; a configuration may build its classes")
            return _run_command(rest) or _printed()
    except BiasPipelineError as error:
        stopping.stop_if_requested()  # what failed then is nobody's mistake
        warn(f"error: {error}")
        return error.exit_code


def _printed() -> int:
    """What a command ends with that went well.

    Raises:
        ResourceError: if what it printed is lost.
    """
    fault = streams.fault()
    if fault:
        raise ResourceError(
            f"standard output took not all that was printed: {fault.strerror}; files are whole"
        )
    return 0


def _run_command(words: list[str]) -> int:
    try:
        return _command(words)
    except Exception as error:
        if is_out_of_memory(error):
            raise ResourceError(NO_MEMORY) from error
        if not isinstance(error, OSError) or error.filename is None:
            raise
        raise refused_by_system(error) from error


def _command(words: list[str]) -> int:
    """Run the word that is chosen, or tell of it; help does nothing else.

    Raises:
        UsageError: if there is no such word.
    """
    if words[:1] in (["-h"], ["--help"], ["help"]):
        return _say(overview.overview())
    if words[:1] == ["--version"]:
        return _say(f"bias_pipeline {__version__}")
    word, rest = chosen(words)
    if word is None:
        asked = bool({"-h", "--help"} & set(rest))
        return _say(overview.group_help(words[0])) or (0 if asked else UsageError.exit_code)
    if {"-h", "--help"} & set(rest):
        return _say(overview.word_help(word))
    _check_memory_limit()
    return word.command(rest)


def _check_memory_limit() -> None:
    """Refuse a limit under which libraries neither work nor say so: OpenBLAS aborts, or hangs.

    Raises:
        ResourceError: with the limit.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit not in (resource.RLIM_INFINITY, -1) and limit < LEAST_MEMORY:
        raise ResourceError(
            f"this process may use {limit // 10**6:,} MB of memory (ulimit -v, or a job's limit); "
            f"allow it {LEAST_MEMORY // 10**6:,} or more"
        )


def _say(text: str) -> int:
    say(*text.split("\n"))
    return 0
