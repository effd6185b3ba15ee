"""Log lines of connections that end: a client that reconnects for ever does not fill the broker's log.

Of each address, listener and level the first line is written at once. What ends within a minute from there is counted,
and the minute's end brings one line with the count.
"""

import logging
from dataclasses import dataclass
from typing import Final, NamedTuple

from tidelog.broker.base.calls import Peer
from tidelog.log.base.clock import Clock

logger = logging.getLogger(__name__)

EVERY_S: Final = 60.0


class _Kind(NamedTuple):
    what: str
    host: str
    listener: str
    level: int


@dataclass(slots=True)
class _Counted:
    """What came since a line of this kind was written."""

    since_s: float
    count: int = 0
    last: str = ""


class ConnectionLines:
    """For the loop's thread. `look` is to be called now and then while `has_counts`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._counted: dict[_Kind, _Counted] = {}

    @property
    def has_counts(self) -> bool:
        """Whether lines are still to be written."""
        return any(one.count for one in self._counted.values())

    def say(self, what: str, peer: Peer, reason: str, level: int) -> None:
        """A connection was refused or closed (`what`), and why: written now, or counted."""
        kind, now_s = _Kind(what, peer.host, peer.listener, level), self._clock.elapsed_s()
        self._write_due(kind, now_s)
        counted = self._counted.get(kind)
        if counted is not None:
            counted.count += 1
            counted.last = reason
            return
        self._counted[kind] = _Counted(now_s)
        logger.log(level, "Connection %s: peer=%s listener=%s: %s", what, peer.host, peer.listener, reason)

    def look(self) -> None:
        """Write the counts whose minute is over."""
        now_s = self._clock.elapsed_s()
        for kind in list(self._counted):
            self._write_due(kind, now_s)

    def _write_due(self, kind: _Kind, now_s: float) -> None:
        counted = self._counted.get(kind)
        if counted is not None and now_s - counted.since_s >= EVERY_S:
            self._write(kind, counted, now_s)

    def finish(self) -> None:
        """Write all counts: the broker stops."""
        now_s = self._clock.elapsed_s()
        for kind, counted in list(self._counted.items()):
            self._write(kind, counted, now_s)

    def _write(self, kind: _Kind, counted: _Counted, now_s: float) -> None:
        if not counted.count:
            del self._counted[kind]
            return
        self._counted[kind] = _Counted(now_s)
        logger.log(
            kind.level,
            "Connections %s: peer=%s listener=%s: %d more in %.0f s, the last one: %s",
            kind.what,
            kind.host,
            kind.listener,
            counted.count,
            now_s - counted.since_s,
            counted.last,
        )
