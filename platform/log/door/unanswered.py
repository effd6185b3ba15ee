"""Requests that ended without an answer: open until the log is read past their version, then known by their outcome.

A process that runs for years keeps no more of them than it needs: neither their actions nor their bytes once an entry
is at their version, and of the oldest nothing at all.
"""

from collections.abc import Callable
from typing import Any, Final

from tidelog.log.delta.actions import Entry
from tidelog.log.door.contract import Committed, Pending

MOST_REMEMBERED: Final = 1_000


class Unanswered:
    """The requests of one door, by id. Not for several threads."""

    def __init__(self) -> None:
        self._open: dict[str, Pending] = {}
        # Where an entry with the id of an open request was read.
        self._seen: dict[str, int] = {}
        self._outcomes: dict[str, Committed[Any] | int] = {}

    def __contains__(self, request: str) -> bool:
        return request in self._open

    def get(self, request: str) -> Pending | None:
        """The put of an open request."""
        return self._open.get(request)

    def begin(self, request: str, pending: Pending) -> None:
        """A put of the request is on its way."""
        self._open[request] = pending

    def end(self, request: str) -> None:
        """The request has its answer."""
        self._open.pop(request, None)
        self._seen.pop(request, None)

    def saw(self, entry: Entry) -> None:
        """The log's next entry was read."""
        request = entry.info.request_id
        if request is not None and request in self._open:
            self._seen[request] = entry.version

    @property
    def has_seen(self) -> bool:
        """Whether an entry of an open request was read, which may be a stale one."""
        return bool(self._seen)

    def distrust(self, head: int) -> None:
        """Entries that were read past `head` may have been stale."""
        self._seen = {request: version for request, version in self._seen.items() if version <= head}

    def passed(self, version: int, read_from: int, proves_committed: Callable[[Entry], bool]) -> None:
        """The log was read to its head, `version`: requests up to there are decided.

        Entries up to `read_from` came from a checkpoint, of which only `proves_committed` knows.
        """
        for request, pending in list(self._open.items()):
            at = pending.entry.version
            if at > version:
                continue
            seen = self._seen.get(request)
            if seen is None and at <= read_from:
                seen = at if proves_committed(pending.entry) else None
                if seen is None:
                    self._outcomes[request] = at
            if seen is not None:
                self._outcomes[request] = Committed(seen, pending.response, written=True)
            self.end(request)
        while len(self._outcomes) > MOST_REMEMBERED:
            del self._outcomes[next(iter(self._outcomes))]

    def outcome(self, request: str) -> Committed[Any] | int | None:
        """The outcome of a request that the log has passed: its answer, which is given once.

        A version where the log was trimmed past it, so that its outcome is lost; None for one that was not committed,
        and for one that is not known.
        """
        found = self._outcomes.get(request)
        if isinstance(found, Committed):
            del self._outcomes[request]
        return found
