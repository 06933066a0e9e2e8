"""The questions to raters and their answers; each answer is on disk before the next page."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
import shlex
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib.resources import files
from io import BytesIO, FileIO
from pathlib import Path
from typing import Any

from bias_pipeline.corpus.image_ids import id_key
from bias_pipeline.data.image_masking import PhotoReader
from bias_pipeline.data.photos import read_photo
from bias_pipeline.data.rating_tables import CANNOT_TELL, SEVERAL
from bias_pipeline.errors import DataError, ResourceError, UsageError, cannot_write, inflect
from bias_pipeline.io.files import table_csv, write_file
from bias_pipeline.io.json_files import expect, load_json

CONSENT = files("bias_pipeline.people.web").joinpath("consent.txt").read_text(encoding="utf-8")
NO_ATTRIBUTE = "question"  # stands for the attribute if raters are not asked for groups
_LONGEST_SIDE, _QUALITY = 1600, 90


@dataclass(frozen=True)
class RatingQuestion:
    text: str  # what raters read
    attribute: str  # the attribute that the answers label
    # In the order of the page; "cannot tell" is added unless the answers have "unsure"
    answers: tuple[str, ...]
    ordinal: bool = False  # whether the answers are ordered
    several: bool = False  # whether a picture may show people of several groups

    @property
    def values(self) -> dict[str, str]:
        """The text on the button of each stored value.

        Example:
            >>> RatingQuestion("Emotion?", "emotion", ("awe", "something_else")).values
            {'awe': 'awe', 'something_else': 'something else', 'Unsure': 'cannot tell'}
        """
        words = {answer: answer.replace("_", " ") for answer in self.answers}
        if self.several:
            words.setdefault(SEVERAL, "several people of different groups")
        return words if "unsure" in words else {**words, CANNOT_TELL: "cannot tell"}


@dataclass(frozen=True)
class Study:
    """A question about pictures, captions or both, or about pairs of captions."""

    question: RatingQuestion  # the question about each item
    photos: Mapping[str, Path]  # files by image id; empty if only captions are shown
    captions: Mapping[str, str]  # captions by image id; empty if only pictures are shown
    read: PhotoReader = read_photo  # how photos are read
    masking: str = ""  # how photos are masked, in words; empty if they are whole
    consent: str = CONSENT  # the text that raters agree to
    gold: Mapping[str, str] = field(default_factory=dict)  # known answers by image id
    limit: int | None = None  # the most items, the first by their ids; None: all items
    # By id, a second caption, shown as B beside the first; empty if there are no pairs
    beside: Mapping[str, str] = field(default_factory=dict)
    # By id, the chance that the item was drawn; empty if items were not drawn
    chances: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def images(self) -> tuple[str, ...]:
        """The ids of all items, in the study's order."""
        shown = [set(items) for items in (self.photos, self.captions) if items]
        return tuple(sorted(set.intersection(*shown), key=id_key)[: self.limit])

    @cached_property
    def settings(self) -> dict[str, object]:
        """The settings that must stay the same while answers are collected."""
        shown: list[tuple[str | None, ...]] = [
            (image, self.captions.get(image), *filter(None, [self.beside.get(image)]))
            for image in self.images
        ]
        return {
            "question": self.question.text,
            "attribute": self.question.attribute,
            "answers": list(self.question.answers),
            "ordinal": self.question.ordinal,
            "masking": self.masking,
            "pictures": bool(self.photos),
            "items": hashlib.sha256(repr(shown).encode()).hexdigest(),
            "consent": self.consent_digest,
        }

    @property
    def consent_digest(self) -> str:
        return hashlib.sha256(self.consent.encode()).hexdigest()

    def order(self, rater: str) -> tuple[str, ...]:
        """The order of the items for a rater, which depends only on the rater's name."""
        return tuple(
            sorted(self.images, key=lambda i: hashlib.sha256(f"{rater}\0{i}".encode()).digest())
        )

    def picture(self, image: str) -> bytes:
        """An image as a JPEG of at most 1600 pixels in width and height, without metadata."""
        photo = self.read(self.photos[image])
        photo.thumbnail((_LONGEST_SIDE, _LONGEST_SIDE))
        content = BytesIO()
        photo.save(content, "JPEG", quality=_QUALITY)
        return content.getvalue()


LOG, TABLE, STUDY, RATERS = "answers.jsonl", "answers.csv", "study.json", "raters.json"
GOLD = "gold.json"
LOCK = ".lock"  # a process holds this file while it uses the folder; unlike the log it stays
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_PAUSE = 10  # times the time that writing the table took; the table is written again after that


@dataclass(frozen=True)
class Rating:
    image_id: str  # the item
    rater: str  # who gave the answer
    value: str  # the answer
    seconds: float | None  # between page and answer; None if the page was shown before a restart
    answered_at: str  # the time in UTC


class NameTakenError(Exception):
    """The error for a name that another rater has."""


class AnswerStore:
    """The folder of a study and its answers; one process at a time may use the folder."""

    def __init__(self, folder: Path, study: Study) -> None:
        self.folder, self.study = folder, study
        with ExitStack() as opened:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                lock = opened.enter_context((folder / LOCK).open("ab"))
                self._log: FileIO = opened.enter_context((folder / LOG).open("ab+", buffering=0))
            except OSError as error:
                raise ResourceError(
                    f"{folder}: cannot be written ({error.strerror}); choose another --out"
                ) from error
            try:
                for file in (lock, self._log):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ResourceError(
                    f"{folder}: another rate uses it; end that process, or choose another --out"
                ) from None
            self._read()
            self._files = opened.pop_all()

    def _read(self) -> None:
        """Read the answers of earlier processes if they belong to the same study."""
        self._check_settings()
        write_file(self.folder / GOLD, json.dumps(self.study.gold).encode(), sync=True)
        self._raters: dict[str, dict[str, Any]] = _raters(self.folder / RATERS)
        self._log.seek(0)
        self._size = len(_whole_lines(self._log.readall()))
        self._log.truncate(self._size)  # a kill leaves half a line
        self._writing = threading.Lock()
        self._rescue: Path | None = None  # where the answers are once somebody replaced the log
        self.deliveries = Deliveries(self.folder / DELIVERIES)
        self._answers = {
            (rating.rater, rating.image_id): rating for rating in read_ratings(self.folder)
        }
        self._counts = Counter(rater for rater, _ in self._answers)
        self._write_table()

    def _check_settings(self) -> None:
        path, settings = self.folder / STUDY, self.study.settings
        if not path.is_file():
            write_file(path, json.dumps(settings, indent=1).encode(), sync=True)
            return
        known = expect(load_json(path, what="settings of a study"), dict, path, "")
        differ = [key for key in settings if known.get(key) != settings[key]]
        if differ:
            raise UsageError(
                f"{self.folder}: holds another study, which differs in {' and '.join(differ)}; "
                "choose another --out, or give what it was started with"
            )

    def close(self) -> None:
        """Write the whole table, and release the folder for other processes."""
        with contextlib.suppress(ResourceError):  # each start makes the table from the log
            self._write_table()
        self._files.close()

    def join(self, rater: str, code: str) -> tuple[str, str]:
        """Admit a rater who is new or has the code; returns the visit's token and a new code."""
        with self._writing:
            known = self._raters.get(rater)
            fresh = "" if known else secrets.token_hex(4)
            if known and not secrets.compare_digest(known["code"], _digest(code.strip().lower())):
                raise NameTakenError
            entry = known or {"code": _digest(fresh), "visits": []}
            token = secrets.token_urlsafe(24)
            changed = {**entry, "visits": [*entry["visits"], _digest(token)]}
            raters = {**self._raters, rater: changed}
            write_file(self.folder / RATERS, json.dumps(raters, indent=1).encode(), sync=True)
            self._raters = raters
            return token, fresh

    def rater(self, token: str) -> str | None:
        """The rater with this token, or None if no rater has it."""
        digest = _digest(token)
        return next(
            (name for name, entry in self._raters.items() if digest in entry["visits"]), None
        )

    def value(self, rater: str, image: str) -> str | None:
        """The answer of a rater, or None before the rater's answer."""
        rating = self._answers.get((rater, image))
        return None if rating is None else rating.value

    def n_answers(self, rater: str) -> int:
        return self._counts[rater]

    def put(self, rater: str, image: str, value: str, seconds: float | None) -> None:
        """Store an answer in place of an earlier answer; at the end it is on disk."""
        with self._writing:
            if self.value(rater, image) != value:  # else the page was sent twice
                self._put(rater, image, value, seconds)

    def _put(self, rater: str, image: str, value: str, seconds: float | None) -> None:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        rating = Rating(image, rater, value, seconds, now)
        self._check_log()
        line = _line(rating)
        try:
            if self._log.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._log.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):
                self._log.truncate(self._size)
            raise cannot_write(self.folder / LOG, error) from error
        self._size += len(line)
        self._check_log()  # somebody may have replaced the log since
        self._counts[rater] += (rater, image) not in self._answers
        self._answers[rater, image] = rating
        if time.monotonic() > self._table_due:
            with contextlib.suppress(ResourceError):  # the log has the answer
                self._write_table()

    def _check_log(self) -> None:
        """Refuse to continue if somebody else changed the log; answers then go to another file."""
        if self._rescue is None and self._is_log_ours():
            return
        if self._rescue is None:
            name = time.strftime("answers-%Y%m%dT%H%M%SZ.jsonl", time.gmtime())
            content = b"".join(map(_line, self._answers.values()))
            with contextlib.suppress(OSError):  # the next step reports the error
                self.folder.mkdir(parents=True, exist_ok=True)  # the whole folder may be gone
            write_file(self.folder / name, content, sync=True)
            self._rescue = self.folder / name
        log = self.folder / LOG
        raise ResourceError(
            f"{log}: was replaced or changed while rate was running; all "
            f"{inflect(len(self._answers), 'answers')} that were taken are in {self._rescue}; stop "
            f"rate, choose one of the two files (mv {shlex.quote(str(self._rescue))} "
            f"{shlex.quote(str(log))}), and start rate again"
        )

    def _is_log_ours(self) -> bool:
        """Whether the log is still the file that we write, without text by others."""
        try:
            named = (self.folder / LOG).stat()
        except OSError:
            return False
        opened = os.fstat(self._log.fileno())
        return os.path.samestat(named, opened) and opened.st_size == self._size

    def ratings(self) -> list[Rating]:
        """All answers, sorted by rater; a rater's answers are in the order of the first answers."""
        return sorted(self._answers.values(), key=lambda rating: rating.rater)

    def _write_table(self) -> None:
        """Write all answers as a table that data sets read; a long table is written less often."""
        started = time.monotonic()
        gold, chances = self.study.gold, self.study.chances
        lines = [
            {
                "image_id": rating.image_id,
                "attribute": self.study.question.attribute,
                "value": rating.value,
                "rater": rating.rater,
                "seconds": "" if rating.seconds is None else round(rating.seconds, 1),
                "answered_at": rating.answered_at,
                "consent": self.study.consent_digest[:12],
                "gold": gold.get(rating.image_id, ""),
                **({"chance": chances[rating.image_id]} if chances else {}),
            }
            for rating in self.ratings()
        ]
        if lines:
            write_file(self.folder / TABLE, table_csv(lines).encode(), sync=True)
        now = time.monotonic()
        self._table_due = now + _PAUSE * (now - started)


def _line(rating: Rating) -> bytes:
    return json.dumps(asdict(rating)).encode() + b"\n"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _raters(path: Path) -> dict[str, dict[str, Any]]:
    if not path.is_file():
        return {}
    read = expect(load_json(path, what="raters"), dict, path, "")
    for name, entry in read.items():
        expect(entry, dict, path, name)
        expect(entry.get("code"), str, path, f"{name}.code")
        expect(entry.get("visits"), list, path, f"{name}.visits")
    return read


def read_ratings(folder: Path) -> list[Rating]:
    """The last answer of each rater on each item."""
    path = folder / LOG
    content = path.read_bytes() if path.is_file() else b""
    last: dict[tuple[str, str], Rating] = {}
    for number, line in enumerate(_whole_lines(content).splitlines(), 1):
        try:
            rating = Rating(**json.loads(line))
        except (ValueError, TypeError) as error:
            raise DataError(
                f"{path}, line {number}: is not an answer; remove the line, or restore the file"
            ) from error
        last[rating.rater, rating.image_id] = rating
    return list(last.values())


def _whole_lines(content: bytes) -> bytes:
    return content[: content.rfind(b"\n") + 1]


DELIVERIES = "deliveries.jsonl"


class Deliveries:
    """Records which pictures were sent; a line that a kill or a full disk cut is ignored."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = set[tuple[str, str]]()
        for line in (path.read_bytes() if path.is_file() else b"").splitlines():
            with contextlib.suppress(ValueError):
                visit, image = json.loads(line)
                self._known.add((visit, image))

    def has(self, visit: str, image: str) -> bool:
        return (visit, image) in self._known

    def add(self, visit: str, image: str) -> None:
        """Record that a picture was sent; without a record, a restart shows the picture again."""
        if self.has(visit, image):
            return
        self._known.add((visit, image))
        with contextlib.suppress(OSError), self._path.open("ab") as file:
            file.write(f"\n{json.dumps([visit, image])}".encode())
