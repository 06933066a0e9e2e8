"""What happened while attackers were trained and a result's manifest should tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass
class Training:
    """An account of the attackers behind a result.

    Attributes:
        trained: attackers whose answers were computed.
        cached: attackers whose answers were there already.
        failed: attackers that diverged or answered all alike, and were replaced.
        world_size: processes that trained each attacker together; None if no network was trained.
        out_of_memory: what was done each time memory was short.
        curves: side, seed, epoch and mean training loss of every epoch of every attacker.
    """

    trained: int = 0
    cached: int = 0
    failed: int = 0
    world_size: int | None = None
    out_of_memory: list[dict[str, object]] = field(default_factory=list)
    curves: list[dict[str, object]] = field(default_factory=list)

    def add_curve(self, side: str, seed: int, losses: Sequence[float]) -> None:
        """Put the losses of an attacker down, one for each epoch.

        Example:
            >>> training = Training()
            >>> training.add_curve("model", 12, [0.7, 0.5])
            >>> training.curves[1]
            {'side': 'model', 'seed': 12, 'epoch': 2, 'train_loss': 0.5}
        """
        self.curves += [
            {"side": side, "seed": seed, "epoch": epoch, "train_loss": loss}
            for epoch, loss in enumerate(losses, start=1)
        ]


_current: ContextVar[Training | None] = ContextVar("training", default=None)


@contextmanager
def recording() -> Iterator[Training]:
    """Collect the account of everything that is trained inside.

    Example:
        >>> with recording() as training:
        ...     current().trained += 2
        >>> training.trained
        2
    """
    opened = Training()
    token = _current.set(opened)
    try:
        yield opened
    finally:
        _current.reset(token)


def current() -> Training:
    """The open account; one that nobody reads if there is none."""
    return _current.get() or Training()
