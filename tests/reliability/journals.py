"""The journals that workers keep, a line of JSON an event: what a `History` is made of.

A request is noted before the worker sends it, an answer after the worker got it: a worker that is killed in between
has sent less than it says, or got more answers, so that a journal never accuses the product of what did not happen.
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from history import Acked, History, Look, Sent, Stretch, Transaction


class JournalFile:
    """An append-only file of one worker; each event is one `write`."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, event: str, **fields: Any) -> None:
        """Append an event."""
        os.write(
            self._fd,
            json.dumps({"e": event, "s": round(time.time(), 3), **fields}, separators=(",", ":")).encode() + b"\n",
        )


def events(path: Path) -> Iterator[dict[str, Any]]:
    """The events of a journal; a line that a kill has cut is none."""
    for line in path.read_bytes().split(b"\n"):
        try:
            yield json.loads(line)
        except ValueError:
            continue


class JournalTail:
    """A journal that is still written, each line of which is read once: the events of some kinds, up to some time."""

    def __init__(self, path: Path, kinds: Iterable[str]) -> None:
        self._path = path
        self._begins = tuple(f'{{"e":"{kind}"'.encode() for kind in kinds)
        self._at = 0
        self._later: dict[str, Any] | None = None

    def take(self, until_s: float) -> Iterator[dict[str, Any]]:
        """The next ones, those at `until_s` too. A line that is not whole yet is left for the next call."""
        if self._later is not None:
            if self._later["s"] > until_s:
                return
            yield self._later
            self._later = None
        if self._path.stat().st_size == self._at:
            return
        with self._path.open("rb") as journal:
            journal.seek(self._at)
            for line in journal:
                if not line.endswith(b"\n"):
                    return
                self._at += len(line)
                if not line.startswith(self._begins):
                    continue
                event = json.loads(line)
                if event["s"] > until_s:
                    self._later = event
                    return
                yield event


class HistoryReader:
    """Puts the journals of many workers together in one history."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._open: dict[tuple[str, str, int], Stretch] = {}  # reader, topic, partition
        self._numbers: dict[str, int] = {}
        self._takers: dict[str, Callable[[str, dict[str, Any]], None]] = {
            "send": self._send,
            "acked": self._acked,
            "begin": self._begin,
            "committing": self._committing,
            "committed": self._told,
            "aborted": self._told,
            "assign": self._assign,
            "seek": self._assign,
            "give up": self._give_up,
            "read": self._read,
            "look": self._look,
        }

    def take(self, worker: str, journal: Iterable[dict[str, Any]]) -> None:
        """Add the journal of one run of a worker."""
        for event in journal:
            taker = self._takers.get(event["e"])
            if taker is not None:
                taker(worker, event)

    def _send(self, worker: str, event: dict[str, Any]) -> None:
        transaction = self._history.transactions.get(event.get("txn", ""))
        for value in event["values"]:
            number = self._numbers[worker] = self._numbers.get(worker, 0) + 1
            self._history.sent[value] = Sent(event["topic"], worker, number)
            if transaction is not None:
                transaction.values[value] = event["topic"]

    def _acked(self, worker: str, event: dict[str, Any]) -> None:
        for partition, offset, value, key in event["records"]:
            self._history.acked.append(Acked((event["topic"], partition), offset, value, key))

    def _begin(self, worker: str, event: dict[str, Any]) -> None:
        self._history.transactions[event["txn"]] = Transaction(event["txn"])

    def _committing(self, worker: str, event: dict[str, Any]) -> None:
        self._history.transactions[event["txn"]].asked_to_commit = True

    def _told(self, worker: str, event: dict[str, Any]) -> None:
        self._history.transactions[event["txn"]].told = event["e"]

    def _assign(self, worker: str, event: dict[str, Any]) -> None:
        for topic, partition in event["places"]:
            stretch = Stretch(worker, event["group"], (topic, partition))
            self._open[worker, topic, partition] = stretch
            self._history.stretches.append(stretch)

    def _give_up(self, worker: str, event: dict[str, Any]) -> None:
        for topic, partition in event["places"]:
            self._open.pop((worker, topic, partition), None)

    def _read(self, worker: str, event: dict[str, Any]) -> None:
        for topic, partition, offset, value in event["records"]:
            stretch = self._open.get((worker, topic, partition))
            if stretch is None:
                self._history.unassigned.append((worker, (topic, partition), offset))
            else:
                stretch.reads.append((offset, value))

    def _look(self, worker: str, event: dict[str, Any]) -> None:
        bounds = {(topic, partition): (start, end) for topic, partition, start, end in event["bounds"]}
        committed = {(group, (topic, p)): offset for group, topic, p, offset in event["committed"]}
        self._history.looks.append(Look(worker, bounds, committed))
