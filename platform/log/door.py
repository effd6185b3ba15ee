"""The door: the one way to change a log (docs/format.md, "The door").

`commit(decide)` tails the log to its head, lets the pure `decide` choose the actions, and creates the next
entry if nobody else has. Whoever loses the race tails, decides again and tries the next one. The log's entries
are the only truth: state changes only by `apply`, live and at start-up alike.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from tidelog.log import layout
from tidelog.log.actions import Action, Add, CommitInfo, Entry, decode_entry, encode_entry
from tidelog.log.checkpoints import find_checkpoint, newest_checkpoint_version, read_checkpoint
from tidelog.log.clock import Clock, Ids
from tidelog.log.decisions import Outcome
from tidelog.log.errors import (
    ContendedLogError,
    CorruptLogError,
    ObjectNotFoundError,
    OutcomeUnknownError,
    StorageUnavailableError,
)
from tidelog.log.storage.port import Storage

# The smallest `log.min.age.ms`. A writer or reader that has not seen the head for half of it looks at the
# floors first: every trimmer keeps entries at least this long, whatever the topic's configuration becomes.
SMALLEST_MIN_AGE_S = 10.0
# Past this many unsynced segments a durable commit first asks how far the checkpointer has synced.
MANY_UNSYNCED = 512


class LogState(Protocol):
    """What a door asks of the state behind it."""

    version: int

    def apply(self, entry: Entry) -> None:
        """Move on by one verified entry."""
        ...

    def restore(self, version: int, actions: list[Action]) -> None:
        """Become what the checkpoint of `version` says."""
        ...


S = TypeVar("S", bound=LogState)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Machine(Generic[S]):
    """The kind of log behind a door: its empty state, and what may follow a state."""

    empty: Callable[[], S]
    verify: Callable[[S, Entry], None]
    verify_checkpoint: Callable[[S, int], None]


@dataclass(frozen=True, slots=True)
class Committed(Generic[R]):
    """A commit's answer. `version` is the entry's, or the head's when nothing had to be written."""

    version: int
    response: R
    written: bool


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a commit goes on. Seconds on the elapsed clock."""

    timeout_s: float = 30.0
    first_backoff_s: float = 0.001
    last_backoff_s: float = 1.0


@dataclass(slots=True)
class _Pending:
    """A put whose outcome is not known: an entry of this request may be at `version`."""

    version: int
    response: Any


class Door(Generic[S]):
    """One log, opened. All methods may be called from many threads."""

    def __init__(
        self,
        storage: Storage,
        folder: str,
        machine: Machine[S],
        clock: Clock,
        ids: Ids,
        patience: Patience | None = None,
    ) -> None:
        self.storage = storage
        self.folder = folder
        self.lock = threading.RLock()
        self._machine = machine
        self._clock = clock
        self._ids = ids
        self._patience = patience or Patience()
        self._state = machine.empty()
        self._floor = -1
        self._opened = False
        # Entries up to this version came from a checkpoint, not one by one.
        self._read_from = -1
        self._head_seen_s = 0.0
        self._unsynced: list[tuple[int, str]] = []
        self._pending: dict[str, _Pending] = {}
        self._landed: dict[str, int] = {}
        self.checkpoint_version = -1

    # --- reading -------------------------------------------------------------------------------------------

    @property
    def state(self) -> S:
        """The state as of the last look at the log."""
        return self._state

    def refresh(self) -> S:
        """Tail the log to its head and return the state."""
        with self.lock:
            self._tail()
            return self._state

    def oldest_version(self) -> int:
        """The oldest version of the log that can still be read: nothing below it is kept."""
        with self.lock:
            return self._look_at_floors() + 1

    def path(self, relative: str) -> str:
        """A path below the log's folder, as the storage port takes it."""
        return f"{self.folder}/{relative}"

    def _tail(self) -> None:
        if not self._opened or (self._is_late() and self._look_at_floors() > self._state.version):
            self._restart()
        while self._step():
            pass

    def _is_late(self) -> bool:
        """Whether entries may have come and gone since the head was last seen.

        What is at the next entry's name may then be a stray of another writer from the past, or our own.
        """
        return self._clock.elapsed_s() - self._head_seen_s > SMALLEST_MIN_AGE_S / 2

    def _step(self) -> bool:
        """Apply the next entry if there is one."""
        version = self._state.version + 1
        looked_s = self._clock.elapsed_s()
        path = self.path(layout.entry_path(version))
        try:
            data = self.storage.get(path)
        except ObjectNotFoundError:
            self._head_seen_s = looked_s
            return False
        self._apply(decode_entry(version, data, path))
        return True

    def _apply(self, entry: Entry) -> None:
        self._machine.verify(self._state, entry)
        self._state.apply(entry)
        request = entry.info.request_id
        if request is not None and request in self._pending:
            self._landed[request] = entry.version
        if entry.info.durable:
            self._unsynced = []
        else:
            self._unsynced.extend((entry.version, a.path) for a in entry.actions if isinstance(a, Add))

    def _look_at_floors(self) -> int:
        """The newest floor: every entry up to it may be gone."""
        folder = self.path(layout.FLOOR_FOLDER)
        for found in self.storage.list_after(folder, f"{self._floor:020d}" if self._floor >= 0 else ""):
            self._floor = max(self._floor, layout.version_of(found.path) or -1)
        return self._floor

    def _restart(self) -> None:
        """Begin from the newest checkpoint that no floor has passed, or from the first entry."""
        floor = self._look_at_floors()
        checkpoint = find_checkpoint(self.storage, self.folder, floor + 1)
        state = self._machine.empty()
        if checkpoint is not None:
            state.restore(checkpoint.version, read_checkpoint(self.storage, self.folder, checkpoint))
            self._machine.verify_checkpoint(state, checkpoint.version)
            self.checkpoint_version = max(self.checkpoint_version, checkpoint.version)
        elif floor >= 0:
            raise CorruptLogError(
                f"The log in {self.folder} has a floor {floor} but no checkpoint past it: the checkpoint was"
                " removed by somebody else's tool. Restore it from a copy; 'tidelog check' says what is left."
            )
        self._state = state
        self._read_from = state.version
        self._unsynced = []
        self._opened = True

    # --- committing ----------------------------------------------------------------------------------------

    def commit(
        self,
        decide: Callable[[S], Outcome[R]],
        *,
        durable: bool = True,
        request_id: str | None = None,
    ) -> Committed[R]:
        """Commit what `decide` chooses as one entry, at most once for each `request_id`.

        `durable`: the entry's segments, and those of earlier entries, are made to survive a power loss before
        the entry is there. `decide` is called again after each lost race and may refuse by raising.
        Raises `OutcomeUnknownError` when the store stops answering; the same `request_id` may then be
        committed again. Raises `ContendedLogError` when every race was lost until the time was up.
        """
        request = request_id or self._ids.new()
        deadline = self._clock.elapsed_s() + self._patience.timeout_s
        backoff = self._patience.first_backoff_s
        with self.lock:
            while True:
                self._tail()
                landed = self._settle(request)
                if landed is not None:
                    return landed
                outcome = decide(self._state)
                if not outcome.actions:
                    return Committed(self._state.version, outcome.response, written=False)
                if durable:
                    self._sync(outcome.actions)
                if self._attempt(request, outcome, durable, deadline):
                    return Committed(self._state.version, outcome.response, written=True)
                if self._clock.elapsed_s() > deadline:
                    raise ContendedLogError(
                        f"The log in {self.folder} gave every next entry to somebody else for"
                        f" {self._patience.timeout_s:g} s; nothing was committed. Send larger batches from fewer"
                        " writers, or try again."
                    )
                self._clock.sleep(backoff * self._ids.fraction())
                backoff = min(backoff * 1.5, 0.05)

    def _settle(self, request: str) -> Committed[Any] | None:
        """The answer to a request whose earlier put has turned out to be committed."""
        pending = self._pending.get(request)
        if pending is None or self._state.version < pending.version:
            return None
        del self._pending[request]
        landed = self._landed.pop(request, None)
        if landed is not None:
            return Committed(landed, pending.response, written=True)
        if pending.version <= self._read_from:
            raise OutcomeUnknownError(
                f"Whether request {request} was committed as entry {pending.version} of {self.folder} can't be told"
                " any more: the log was trimmed past it. Read the topic to see; repeat the records only if they are"
                " missing.",
                request_id=request,
            )
        return None

    def _attempt(self, request: str, outcome: Outcome[R], durable: bool, deadline: float) -> bool:
        """Try to create the next entry: True when it is there and ours."""
        info = CommitInfo(
            self._clock.now_ms(),
            outcome.operation,
            request,
            durable,
            outcome.blind_append,
            outcome.parameters or {},
        )
        version = self._state.version + 1
        entry = Entry(version, outcome.actions, info)
        self._machine.verify(self._state, entry)
        self._pending[request] = _Pending(version, outcome.response)
        if not self._put(request, version, encode_entry(outcome.actions, info), deadline):
            del self._pending[request]
            return False
        if self._is_late() and self._look_at_floors() >= version:
            # A writer from the past: cleanup had removed the entry that was here, ours is a stray that nobody
            # reads and the next sweep deletes.
            del self._pending[request]
            self._restart()
            return False
        self._apply(entry)
        self._landed.pop(request, None)
        del self._pending[request]
        return True

    def _put(self, request: str, version: int, data: bytes, deadline: float) -> bool:
        """Put the entry until something is there: True when it is this request's."""
        path = self.path(layout.entry_path(version))
        backoff = self._patience.first_backoff_s
        while True:
            cause: Exception | None = None
            try:
                if self.storage.put_if_absent(path, data):
                    return True
                return self._is_ours(request, version, path)
            except StorageUnavailableError as e:
                cause = e
            except ObjectNotFoundError as e:
                # "Already there", and nothing to see: a conflict in which nothing was stored, or a floor
                # passed us. The next round, or the floor's check after it, tells.
                cause = e
            except BaseException:
                del self._pending[request]
                raise
            if self._clock.elapsed_s() > deadline:
                raise OutcomeUnknownError(
                    f"The store gave no answer for entry {version} of {self.folder} within"
                    f" {self._patience.timeout_s:g} s ({cause}): it may be committed. Repeat the request under"
                    f" the same id ({request}), or read the topic to see.",
                    request_id=request,
                ) from cause
            self._clock.sleep(backoff * (0.5 + self._ids.fraction() / 2))
            backoff = min(backoff * 2, self._patience.last_backoff_s)

    def _is_ours(self, request: str, version: int, path: str) -> bool:
        return decode_entry(version, self.storage.get(path), path).info.request_id == request

    # --- durability ----------------------------------------------------------------------------------------

    def _sync(self, actions: tuple[Action, ...]) -> None:
        """Make the segments of these actions and of all earlier entries survive a power loss."""
        if len(self._unsynced) > MANY_UNSYNCED:
            self.drop_synced(newest_checkpoint_version(self.storage, self.folder))
        own = [a.path for a in actions if isinstance(a, Add)]
        paths = [*(p for _, p in self._unsynced), *own]
        if paths:
            self.storage.sync(self.path(p) for p in paths)

    def unsynced(self) -> list[str]:
        """The segments, by path below the log's folder, that may not survive a power loss yet."""
        with self.lock:
            return [path for _, path in self._unsynced]

    def drop_synced(self, version: int) -> None:
        """Note that all segments up to entry `version` are synced: a checkpoint is written only after that."""
        with self.lock:
            self._unsynced = [(v, p) for v, p in self._unsynced if v > version]
