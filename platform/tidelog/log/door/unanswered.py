"""Requests that ended without an answer: open until the log is read past their version, then known by their outcome.

A process that runs for years keeps no more of them than it needs: neither their actions nor their bytes once an entry
is at their version, and of the oldest nothing at all.
"""

from collections.abc import Callable
from typing import Any, Final

from tidelog.log.base.errors import OutcomeUnknownError
from tidelog.log.delta.actions import Entry
from tidelog.log.door.contract import Committed, Pending

MOST_REMEMBERED: Final = 1_000


class Unanswered:
    """The requests of one door, by id. Not for several threads."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
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

    def outcome(self, request: str) -> Committed[Any] | None:
        """The answer to a request whose earlier put has turned out to be committed, which is given once; else None.

        Raises `OutcomeUnknownError` where the log was trimmed past it.
        """
        outcome = self._outcomes.get(request)
        if isinstance(outcome, int):
            raise self.unknown(request, outcome, "the log was trimmed past it")
        self._outcomes.pop(request, None)
        return outcome

    def unknown(self, request: str, version: int, why: str) -> OutcomeUnknownError:
        """The error for a request of which the store did not say whether it was committed as entry `version`."""
        return OutcomeUnknownError(
            f"Whether request {request} was committed as entry {version} of {self._folder} is not known: {why}. Repeat"
            " it here under the same id, which commits it at most once, or read the topic to see.",
            request_id=request,
        )
