"""Choose the command, run it, turn an error into a sentence and an exit code."""

from __future__ import annotations

import gc
import os
import resource
import sys
from collections.abc import Sequence

from bias_pipeline import __version__
from bias_pipeline.commands.registry import group_help, overview, resolve_command, word_help
from bias_pipeline.errors import (
    NO_MEMORY,
    BiasPipelineError,
    ResourceError,
    UsageError,
    is_out_of_memory,
    refused_by_system,
)
from bias_pipeline.io import installation, signals, terminal
from bias_pipeline.io.paths import including, places
from bias_pipeline.io.terminal import guard, print_out, warn

LEAST_MEMORY = 1_000_000_000  # bytes of address space; libraries alone take most of it


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; a user's mistake never shows a traceback."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    terminal.open_streams()
    _settle()
    guard()
    signals.listen()
    try:
        code = _obey(words)
        stopped = code != 0 and signals.requested()
    except BaseException as error:
        if not isinstance(error, KeyboardInterrupt) and not signals.requested():
            raise
        stopped = True
    if not stopped:
        return code
    warn("stopped; what was finished is kept")
    return signals.exit_code()


def program() -> int:
    """Run the command of this process; returns the exit code.

    A request to stop that comes just after :func:`main` still counts; later ones are ignored, since
    Python would end with a traceback.
    """
    try:
        code = main()
        signals.ignore_signals()
    except (KeyboardInterrupt, signals.Stopped):
        signals.ignore_signals()
        code = signals.exit_code()
    return code


def _settle() -> None:
    """Change two defaults of Python and NumPy that slow this program down."""
    # A sweep composes some hundred thousand nodes that stay until their job ran; collecting garbage
    # every 700 objects took a sixth of the time of a sweep of cached cells.
    gc.set_threshold(10_000, 10, 10)
    # NumPy reads this on import, which comes later. Its products are small and cells run in
    # parallel: threads of one product would wait for each other on busy cores.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _obey(words: list[str]) -> int:
    for sentence in installation.doubts():
        warn(f"warning: {sentence}")
    try:
        with including(words) as rest:
            for name, place in places().items():
                warn(f"included: {name} from {place}; a configuration may build its classes")
            return _run_command(rest) or _printed()
    except BiasPipelineError as error:
        signals.stop_if_requested()  # an error after a request to stop is no mistake
        warn(f"error: {error}")
        return error.exit_code


def _printed() -> int:
    """The exit code of a command that succeeded.

    Raises:
        ResourceError: if what it printed is lost.
    """
    fault = terminal.output_fault()
    if fault:
        raise ResourceError(
            f"standard output did not take everything: {fault.strerror}; files are complete"
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
    """Run the chosen command, or print its help.

    Raises:
        UsageError: if there is no such command.
    """
    if words[:1] in (["-h"], ["--help"], ["help"]):
        return _say(overview())
    if words[:1] == ["--version"]:
        return _say("\n".join([f"bias_pipeline {__version__}", *installation.versions()]))
    word, rest = resolve_command(words)
    if word is None:
        wants_help = bool({"-h", "--help"} & set(rest))
        return _say(group_help(words[0])) or (0 if wants_help else UsageError.exit_code)
    if {"-h", "--help"} & set(rest):
        return _say(word_help(word))
    _check_memory_limit()
    return word.command(rest)


def _check_memory_limit() -> None:
    """Refuse a memory limit that is too low: OpenBLAS would abort or hang without a message.

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
    print_out(*text.split("\n"))
    return 0
