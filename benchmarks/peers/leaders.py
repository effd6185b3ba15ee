"""Waiting until a broker leads the partitions of a topic that was just created.

The controller answers that a topic is there before its broker leads it. What an idempotent producer sends meanwhile can
be stuck: its first batch is refused, to be sent again, while the second, which is on its way by then, is taken for the
producer's first. From then on the repeat of the first one is out of order, until the producer gives it up after
`delivery.timeout.ms`. It takes a slow machine, or one whose broker has only just started.
"""

import time
from collections.abc import Callable, Sequence

_PAUSE_S = 0.05
_AT_ONCE = 1_000


class NoLeaderError(Exception):
    """Partitions are led by no broker, long after they were made."""


def await_leaders(
    unled: Callable[[Sequence[int]], list[int]],
    partitions: int,
    timeout_s: float = 60.0,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Return once every partition is led. `unled`: those of some partitions whose leader does not answer yet.

    Raises `NoLeaderError` after `timeout_s` seconds.
    """
    deadline = clock() + timeout_s
    left = list(range(partitions))
    while True:
        left = [p for first in range(0, len(left), _AT_ONCE) for p in unled(left[first : first + _AT_ONCE])]
        if not left:
            return
        if clock() > deadline:
            raise NoLeaderError(f"{len(left)} of {partitions} partitions have no leader after {timeout_s:g} s.")
        sleep(_PAUSE_S)
