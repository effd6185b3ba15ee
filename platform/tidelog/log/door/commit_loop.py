"""The door: the one way to change a log (docs/format.md, "The door").

`commit(decide)` tails the log to its head, lets the pure `decide` choose the actions, and creates the next entry unless
another writer has. A writer that loses the race tails, decides again and tries the next entry. One that has just seen
the head, and no other writer's entry, skips the tailing: that its entry can be created proves the head. The log's
entries are the only truth: state changes only by `apply`, live and at start-up alike.
"""

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Generic, TypeVar

from tidelog.log.base.backoff import BackoffRule
from tidelog.log.base.clock import Clock, Ids
from tidelog.log.base.errors import (
    ContendedLogError,
    CorruptLogError,
    ObjectNotFoundError,
    StorageError,
    StorageUnavailableError,
)
from tidelog.log.checkpoints.reading import newest_floor
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Add, CommitInfo, Entry, decode_entry, encode_entry
from tidelog.log.door.commit_objects import AttachedFiles, SegmentLookup, UnsyncedSegments
from tidelog.log.door.contract import Committed, LogState, Machine, Pending, RetryPolicy
from tidelog.log.door.fairness import FairnessBackoff
from tidelog.log.door.opening import newest_state
from tidelog.log.door.reading_ahead import ReadingAhead
from tidelog.log.door.unanswered import Unanswered
from tidelog.log.rules.topics import Outcome
from tidelog.log.storage.port import Storage, asks_two
from tidelog.log.storage.proving import require_proof
from tidelog.log.storage.store_time import NEVER, StoreTime

# The smallest `log.min.age.ms`. A writer or reader that has not seen the head for half of it looks at the
# floors first: every trimmer keeps entries at least this long, whatever the topic's configuration becomes.
SMALLEST_MIN_AGE_S = 10.0
_LATE_S = SMALLEST_MIN_AGE_S / 2
# How often a process that follows a log looks at the floors where other machines write, late or not.
FLOORS_EVERY_S = 60.0
# How long after a look at the head a commit may skip the next one: short enough that its put is rarely late.
_AHEAD_S = SMALLEST_MIN_AGE_S / 4
# After a race that was lost, and after a put without an answer.
_LOST_RACE = BackoffRule(0.001, 0.05, times=1.5, least=0.0, spread=1.0)
_NO_ANSWER = BackoffRule(0.001, 1.0, least=0.5, spread=0.5)

S = TypeVar("S", bound=LogState)
R = TypeVar("R")


class Door(Generic[S]):
    """One log, opened. All methods may be called from many threads."""

    def __init__(
        self,
        storage: Storage,
        folder: str,
        machine: Machine[S],
        clock: Clock,
        ids: Ids,
        retries: RetryPolicy | None = None,
        fairness: FairnessBackoff | None = None,
        time: StoreTime | None = None,
        permit: Callable[[], None] | None = None,
    ) -> None:
        """`permit` is asked before anything is written, and refuses it by raising."""
        self.storage = storage
        self.folder = folder
        self._permit = permit
        # One node's word for the head is enough for an entry, whose put proves it.
        self._begins_sure = not asks_two(storage)
        self.lock = threading.RLock()
        self._machine = machine
        self._clock = clock
        self._ids = ids
        self._retries = retries or RetryPolicy()
        self._fairness = fairness or FairnessBackoff(pause_s=0)
        self._time = time or StoreTime(clock)
        self._reading = ReadingAhead(storage, lambda version: self.path(layout.entry_path(version)), self._time)
        self._state = machine.empty()
        self._floor = -1
        self._opened = False
        # Entries up to this version came from a checkpoint, not one by one.
        self._read_from = -1
        # When the head was last seen, and its version: no entry up to it is stale, and none was skipped.
        self._head_seen = NEVER
        self._floors_seen = NEVER
        self._head = -1
        # Whether the last look, or commit, met no other writer's entry.
        self._alone = False
        self.unsynced = UnsyncedSegments(storage, folder, self.lock)
        # What the commit that goes on has synced, in a race that it lost, perhaps.
        self._synced: set[str] = set()
        self._unanswered = Unanswered(folder)
        self._proven = False
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
            self._machine.verify_head(self._state)
            return self._state

    def oldest_version(self) -> int:
        """The oldest version of the log that can still be read: nothing below it is kept."""
        with self.lock:
            return self._look_at_floors() + 1

    def path(self, relative: str) -> str:
        """A path below the log's folder, as the storage port takes it."""
        return f"{self.folder}/{relative}"

    def _tail(self, *, sure: bool = True) -> None:
        """Follow the log to its head. Without `sure` the head may be that of a node which has missed entries."""
        if not self._opened:
            self._restart()
        self._alone = True
        while True:
            broken = None
            try:
                self._reading.begin(sure=sure)
                while self._step():
                    self._alone = False
                    self._fairness.saw(self._state.version)
            except CorruptLogError as e:
                broken = e
            # A floor counts only when it is looked at after the entries: it is published before one is deleted.
            if (self._is_late() or self._may_be_late(broken)) and self._trimmed_past(self._head):
                self._restart()
            elif broken is not None:
                raise broken
            else:
                self._head, self._head_seen = self._state.version, self._reading.looked
                self._decide_unanswered()
                self.unsynced.shorten()
                return

    def _is_late(self) -> bool:
        """Whether entries may have been created and trimmed since the head was last seen.

        Then a missing entry may have been trimmed, and one that is there may be a stale writer's: created after the log
        was trimmed past it.
        """
        return self._time.passed_s(self._head_seen) > _LATE_S

    def _may_be_late(self, broken: CorruptLogError | None) -> bool:
        """Whether the floors are to be looked at although no clock says so.

        A machine that was paused finds its next entry gone, and would take its own state for the head for ever; or it
        finds a stale entry there, its own perhaps, and the one after it breaks the format.
        """
        if not self.storage.is_shared:
            return False
        suspicious = broken is not None or self._unanswered.has_seen
        return suspicious or self._time.passed_s(self._floors_seen) > FLOORS_EVERY_S

    def _step(self) -> bool:
        """Apply the next entry if there is one."""
        version = self._state.version + 1
        path = self.path(layout.entry_path(version))
        try:
            data = self._reading.get(version)
        except ObjectNotFoundError:
            return False
        entry = decode_entry(version, data, path)
        self._machine.verify(self._state, entry)
        self._apply(entry)
        return True

    def _apply(self, entry: Entry) -> None:
        self._state.apply(entry)
        self._unanswered.saw(entry)
        self.unsynced.saw(entry)

    def _decide_unanswered(self) -> None:
        """The state is that of the head: it says what became of unanswered requests up to there."""
        proves = partial(self._machine.proves_committed, self._state)
        self._unanswered.passed(self._state.version, self._read_from, proves)

    def _look_at_floors(self) -> int:
        """The newest floor: every entry up to it may be gone."""
        seen = self._time.moment()
        self._floor = newest_floor(self.storage, self.folder, self._floor)
        self._floors_seen = seen
        return self._floor

    def _trimmed_past(self, version: int) -> bool:
        """Whether a trim may have passed the entry after this one: a floor says so, or this one is gone.

        A trim deletes in order. A node that has just come back may miss the floor in its listing: then a writer would
        acknowledge what no reader reads, and a reader take its own state for the head. So there are two proofs.
        """
        return self._look_at_floors() > version or (self.storage.is_shared and self._is_gone(version))

    def _is_gone(self, version: int) -> bool:
        if version < 0:
            return False
        try:
            self.storage.head(self.path(layout.entry_path(version)))
        except ObjectNotFoundError:
            return True
        return False

    def _restart(self) -> None:
        """Begin from the newest checkpoint that no floor has passed, or from the first entry."""
        state, checkpoint = newest_state(self.storage, self.folder, self._machine, self._look_at_floors)
        self.checkpoint_version = max(self.checkpoint_version, checkpoint)
        # Entries that were read since the head was last seen may have been stale, our own among them.
        self._unanswered.distrust(self._head)
        self._state = state
        self._read_from = self._head = state.version
        self.unsynced.clear()
        self._opened = True

    # --- committing ----------------------------------------------------------------------------------------

    def commit(
        self,
        decide: Callable[[S], Outcome[R]],
        *,
        durable: bool = True,
        request_id: str | None = None,
        timeout_s: float | None = None,
    ) -> Committed[R]:
        """Commit what `decide` chooses as one entry.

        `durable`: the entry's segments, and those of earlier entries, are made to survive a power loss before
        the entry is there, and so are the outcome's `files`. `decide` is called again after each lost race and may
        refuse by raising.
        Raises `MissingSegmentError` when a segment that it brings is not in storage: then no entry was put.
        Raises `OutcomeUnknownError` when the store stops answering. Repeated here under the same `request_id`,
        the commit takes up that entry again, whatever `decide` is by then, so that it lands at most once.
        Raises `ContendedLogError` when every race was lost until the time was up.
        """
        request = request_id or self._ids.new()
        most_s = self._retries.timeout_s
        limit_s = most_s if timeout_s is None else min(timeout_s, most_s)
        deadline = self._clock.elapsed_s() + limit_s
        lost = 0
        attached, lookup = AttachedFiles(self.storage, self.folder), SegmentLookup(self.storage, self.folder)
        with self.lock:
            self._synced.clear()
            if self._state.version >= 0:  # what is refused leaves no folder behind
                self._time.keep(self.storage, self.folder)
            ahead = self._may_skip_tailing(request)
            sure = self._begins_sure
            while True:
                last_try = self._clock.elapsed_s() > deadline  # one in full, however long we were frozen
                if not ahead:
                    self._tail(sure=sure)
                landed = self._unanswered.outcome(request)
                if landed is not None:
                    return landed
                pending = self._unanswered.get(request)
                again = pending is not None
                if pending is None:
                    now_s = self._clock.elapsed_s()
                    wait_s = 0.0 if last_try else self._fairness.wait_s(self._state.version + 1, now_s)
                    if wait_s:  # another writer gets the next entry
                        self._clock.sleep(wait_s)
                        ahead = False
                        continue
                    outcome = self._decided(decide, ahead or not sure)
                    if outcome is None:
                        ahead, sure = False, True
                        continue
                    if self._permit is not None and (outcome.actions or outcome.files):
                        self._permit()
                    attached.store(outcome.files)
                    if not outcome.actions:
                        return Committed(self._state.version, outcome.response, written=False)
                    if outcome.elsewhere:
                        lookup.require(outcome.actions)
                    self._require_proof()
                    pending = self._prepare(request, outcome, durable)
                ahead = False
                if self._attempt(request, pending, again, deadline):
                    return Committed(pending.entry.version, pending.response, written=True)
                if last_try:
                    raise ContendedLogError(
                        f"Other writers of the log in {self.folder} took every next entry for {limit_s:g} s; nothing"
                        " was committed. Send larger batches from fewer writers, or try again."
                    )
                lost += 1
                self._clock.sleep(_LOST_RACE.pause_s(lost, self._ids.fraction()))

    def _require_proof(self) -> None:
        if not self._proven:
            require_proof(self.storage, self.folder, self._ids)
            self._proven = True

    def _may_skip_tailing(self, request: str) -> bool:
        """Whether a commit needs no look at the head: it was seen just now, and no other writer is active."""
        seen_s = self._time.passed_s(self._head_seen)
        return self._alone and seen_s <= _AHEAD_S and request not in self._unanswered

    def _decided(self, decide: Callable[[S], Outcome[R]], unproved: bool) -> Outcome[R] | None:
        """What `decide` chooses; None when the head must be looked at first, and surely.

        `unproved`: the decision rests on a state that only a created entry proves, so a refusal proves nothing.
        """
        try:
            self._machine.verify_head(self._state)
            outcome = decide(self._state)
        except Exception:
            if unproved:
                return None
            raise
        return outcome if outcome.actions or not unproved else None

    def _prepare(self, request: str, outcome: Outcome[Any], durable: bool) -> Pending:
        info = CommitInfo(
            self._clock.now_ms(),
            outcome.operation,
            request,
            durable,
            outcome.blind_append,
            outcome.parameters or {},
            outcome.rows,
        )
        entry = Entry(self._state.version + 1, outcome.actions, info)
        self._machine.verify(self._state, entry)
        adds = () if outcome.synced else [self.path(a.path) for a in outcome.actions if isinstance(a, Add)]
        brought = [path for path in adds if path not in self._synced]
        to_sync = brought if durable and (brought or self.unsynced) else None
        return Pending(
            entry, encode_entry(outcome.actions, info), outcome.response, self._time.moment(), to_sync=to_sync
        )

    def _attempt(self, request: str, pending: Pending, again: bool, deadline: float) -> bool:
        """Try to create the next entry: True when it is there and ours."""
        self._unanswered.begin(request, pending)
        committed = self._put(request, pending, again, deadline)
        version = pending.entry.version
        came_late = committed is not None and self._came_late(pending)
        if (came_late or self._is_late()) and self._was_trimmed(request, version):
            # A stale writer: the entry that was here is trimmed, and no reader reads the one that is here now, ours or
            # another's. Unless ours came in time, at an earlier put perhaps, and was trimmed since: the state may prove
            # it, and the time since the first put may rule it out.
            proved = self._machine.proves_committed(self._state, pending.entry)
            if not proved and (came_late or self._time.passed_s(pending.since) > _LATE_S):
                raise self._unanswered.unknown(request, version, "the log was trimmed past it")
            self._unanswered.end(request)
            return proved
        if committed is None:
            self._unanswered.end(request)
            self._alone = False
            return False
        self._apply(committed)
        self._fairness.committed(self._clock.elapsed_s())
        if pending.created is not None:  # nothing was there: a look at the head, too
            self._head, self._head_seen = version - 1, pending.created
        self._unanswered.end(request)
        self._decide_unanswered()
        return True

    def _came_late(self, pending: Pending) -> bool:
        """Whether the own entry that is there was stored so late that a trim may have passed its version before.

        This machine may have been paused since the head was seen, and none of its clocks say so. The store's time of
        the entry does, where other machines go on meanwhile; without an answer the entry counts as late.
        """
        if not self.storage.is_shared:
            return False
        ended, seen_ms = self._time.moment(), self._head_seen.store_ms
        try:
            stored_ms = self.storage.head(self.path(layout.entry_path(pending.entry.version))).modified_ms
        except StorageError:
            return True
        if pending.created is not None:
            self._time.learn(pending.created, ended, stored_ms)
            pending.created = replace(pending.created, store_ms=stored_ms)
        return seen_ms is None or abs(stored_ms - seen_ms) > _LATE_S * 1000

    def _was_trimmed(self, request: str, version: int) -> bool:
        """Whether a trim has passed this entry; then the log is opened again."""
        try:
            passed = self._trimmed_past(version - 1)
            if passed:
                self._restart()
        except StorageError as e:
            raise self._unanswered.unknown(request, version, str(e)) from e
        return passed

    def _put(self, request: str, pending: Pending, again: bool, deadline: float) -> Entry | None:
        """Put the entry until one is there: the entry that is, None when it is another writer's.

        `again`: it was put before, and may be there. An error other than the store's leaves that open.
        """
        version = pending.entry.version
        path = self.path(layout.entry_path(version))
        tries, open_ended = 0, again

        def sync() -> None:
            self.unsynced.sync(pending.to_sync or ())
            self._synced.update(pending.to_sync or ())
            pending.to_sync, pending.since = None, self._time.moment()

        while True:
            last_try = self._clock.elapsed_s() > deadline
            try:
                if self.storage.put_if_absent(path, pending.data, None if pending.to_sync is None else sync):
                    pending.created = None if open_ended else pending.since
                    return pending.entry
                open_ended = True  # "already there" may be our own success, repeated inside the store's client
                found = decode_entry(version, self.storage.get(path), path)
                return found if found.info.request_id == request else None
            except StorageError as e:
                # Not found: a conflict in which nothing was stored, or a floor passed us. The next round tells.
                open_ended = open_ended or isinstance(e, StorageUnavailableError | ObjectNotFoundError)
                if pending.to_sync is not None or not open_ended:  # nothing was put
                    self._unanswered.end(request)
                    raise
                cause = e
            if last_try:
                why = f"the store gave no answer in time ({cause})"
                raise self._unanswered.unknown(request, version, why) from cause
            tries += 1
            self._clock.sleep(_NO_ANSWER.pause_s(tries, self._ids.fraction()))
