"""The errors, and the exit code of each kind.

Every message names the file, id or key at fault, what is wrong, and how to correct it.
"""

from __future__ import annotations

import difflib
import errno
import re
from collections.abc import Iterable, Sequence


class BiasPipelineError(Exception):
    """A mistake or fault that the user can correct; it is shown without a traceback."""

    exit_code = 1


class UsageError(BiasPipelineError):
    """A wrong command, option or configuration (exit code 2)."""

    exit_code = 2


class UnlabelledError(UsageError):
    """A data set has no labels of an attribute."""


class DataError(BiasPipelineError):
    """Input data cannot be scored as they are (exit code 3)."""

    exit_code = 3


class NotApplicableError(DataError):
    """Valid data do not allow this metric or attribute.

    ``metric=all`` and ``audit`` skip this metric or attribute.
    """


class TooFewImagesError(NotApplicableError):
    """There are fewer images than a setting requires (exit code 2, since the setting is wrong)."""

    exit_code = 2


class AbsentLabelError(DataError):
    """The file lacks a label that the user maps; ``audit`` goes on with other attributes."""

    exit_code = 2


class UndecidedError(BiasPipelineError):
    """A gate cannot decide (exit code 6)."""

    exit_code = 6


class SweepError(BiasPipelineError):
    """At least one job of a sweep has failed (exit code 4)."""

    exit_code = 4


class ResourceError(BiasPipelineError):
    """A file, model or device is absent, full or not writable (exit code 5)."""

    exit_code = 5


class AbsentModelError(ResourceError):
    """Published weights that a metric needs are absent; ``metric=all`` skips the metric."""


NAME_HUMAN_CAPTIONS = "name a file of human captions (dataset.captions=FILE, audit --captions FILE)"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def refused_by_system(error: OSError) -> ResourceError:
    """An error of the operating system, with a message that is a sentence.

    Example:
        >>> print(refused_by_system(FileNotFoundError(2, "No such file or directory", "a.json")))
        a.json: No such file or directory
    """
    if error.errno in _FULL and error.filename is not None:
        return cannot_write(error.filename, error)
    named = f"{error.filename}: " if error.filename is not None else ""
    return ResourceError(f"{named}{error.strerror or error}")


def cannot_write(place: object, error: OSError) -> ResourceError:
    """The error for a file or folder that cannot be written.

    Example:
        >>> print(cannot_write("a.json", OSError(28, "No space left on device")))
        cannot write a.json: No space left on device; free space there, or choose another place
    """
    fix = f"{'free space there, or ' if error.errno in _FULL else ''}choose another place"
    return ResourceError(f"cannot write {place}: {error.strerror or error}; {fix}")


def unwritable(what: object, error: OSError) -> ResourceError:
    """The error if outputs cannot be written.

    Example:
        >>> print(unwritable("to out", OSError(28, "No space left on device")))
        cannot write to out: No space left on device; choose another folder with paths.outputs=... \
(audit: --out)
    """
    return ResourceError(
        f"cannot write {what}: {error.strerror or error}; choose another folder with "
        "paths.outputs=... (audit: --out)"
    )


NO_MEMORY = (
    "this process has no memory left, or may not use more (ulimit -v, a job's limit); allow more "
    "memory, or use less: limit=N images, smaller batches (--batch, encoder.batch_size)"
)
# Messages of libraries that have no exception for a lack of memory.
_MEMORY_SIGNS = (
    "allocate memory", "not enough memory", "bad_alloc", "failed to map segment",
    "can't start new thread", "out of memory",
    # Messages of CPython while it imports
    "error return without exception set", "returned null without setting an exception",
    # of oneDNN
    "could not create a primitive", "could not execute a primitive", "could not create a memory",
)  # fmt: skip


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an error, or one of its causes, means that memory ran out.

    Example:
        >>> is_out_of_memory(MemoryError()), is_out_of_memory(OSError(28, "No space left"))
        (True, False)
    """
    while error is not None:
        if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
            return True
        if any(sign in str(error).lower() for sign in _MEMORY_SIGNS):
            return True
        error = error.__cause__ or error.__context__
    return False


_SINGULAR = {"are": "is", "were": "was", "have": "has"}
_VERBS = r"\b(are|were|have|belong|hold|occur|open|retrieve)\b"


def inflect(number: object, words: str) -> str:
    """A number and a noun, perhaps with a verb; they are singular if the number is one.

    Example:
        >>> inflect(1, "blank captions are left out"), inflect(1, "of 9 images have")
        ('1 blank caption is left out', '1 of 9 images has')
        >>> inflect(2, "queries"), inflect(1, "queries"), inflect(1, "classes")
        ('2 queries', '1 query', '1 class')
    """
    if str(number) != "1":
        return f"{number} {words}"
    if not words.startswith("of "):
        ends = {"ies": "y", "sses": "ss", "xes": "x", "s": ""}
        words = re.sub(r"(ies|sses|xes|s)\b", lambda match: ends[match[1]], words, count=1)
    words = re.sub(_VERBS, lambda match: _SINGULAR.get(match[1], f"{match[1]}s"), words)
    return f"{number} {words}"


def join_words(texts: Iterable[str]) -> str:
    """Texts as an enumeration.

    Example:
        >>> join_words(["a cup"]), join_words(["a cup", "a fork", "a knife"])
        ('a cup', 'a cup, a fork and a knife')
    """
    *most, final = texts
    return f"{', '.join(most)} and {final}" if most else final


def nearest_name(name: str, known: Sequence[str]) -> str:
    """The known name that is most similar to a name, ignoring case; empty if no name is similar.

    If names differ only in case, the name with the most similar case is returned.

    Example:
        >>> nearest_name("STA", ["sat", "oscar"]), nearest_name("x", ["sat"])
        ('sat', '')
        >>> nearest_name("man", ["Male", "male"])
        'male'
    """
    lowered = [one.lower() for one in known]
    near = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.5)
    alike = [one for one in known if one.lower() in near]
    return next(iter(difflib.get_close_matches(name, alike, n=1, cutoff=0.0)), "")


_MOST = 40  # most names in a message


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the nearest known name, as the end of an error message.

    Example:
        >>> did_you_mean("sta", ["sat", "oscar"])
        "did you mean 'sat'? Known: oscar, sat."
    """
    names = sorted(known)
    near = nearest_name(name, names)
    return f"{f'did you mean {near!r}? ' if near else ''}{listed_names(names)}"


def some_of(names: Sequence[str], most: int = 3) -> str:
    """The first names, and how many further names there are.

    Example:
        >>> some_of(["bank", "park"]), some_of(list("abcde"))
        ('bank, park', 'a, b, c and 2 more')
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def listed_names(known: Iterable[str]) -> str:
    """All known names, as the end of an error message about a name that is no misspelling.

    Example:
        >>> listed_names(["sat", "oscar"])
        'Known: oscar, sat.'
    """
    names = sorted(known)
    return f"Known: {some_of(names, _MOST) or 'none'}."
