"""Bugs to plant: each changes one rule of the product's code while a run lasts."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from sim_running import Planted

from tidelog.log import lake
from tidelog.log.appends import joint
from tidelog.log.appends.joint import JointAppend
from tidelog.log.appends.staged import StagedAppend
from tidelog.log.base.errors import OutcomeUnknownError
from tidelog.log.door import topic_machine
from tidelog.log.door.commit_loop import Door
from tidelog.log.door.commit_objects import UnsyncedSegments
from tidelog.log.group_commit.engine import PendingEntry
from tidelog.log.rules.appends import CommitOutcome
from tidelog.log.rules.joint_appends import decide_joint_append
from tidelog.log.rules.sequences import Sequences
from tidelog.log.state.topic_state import TopicState
from tidelog.log.upkeep import background
from tidelog.log.upkeep.trim import trim


class _Proxy:
    """A storage of which a few methods differ."""

    def __init__(self, inner: Any, **methods: Callable[..., Any]) -> None:
        self._inner = inner
        self.__dict__.update(methods)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@contextmanager
def keeps_its_offsets_after_a_lost_race() -> Iterator[None]:
    """The writer decides once, and tries the next version with what it had decided for the last one."""
    commit = Door.commit

    def once(self: Any, decide: Any, **options: Any) -> Any:
        decided: list[Any] = []

        def first(state: Any) -> Any:
            if not decided:
                decided.append(decide(state))
            return decided[0]

        return commit(self, first, **options)

    with patch.object(Door, "commit", once), patch.object(topic_machine, "verify_entry", lambda *_: None):
        yield


@contextmanager
def takes_its_own_success_for_somebody_elses() -> Iterator[None]:
    """ "Already there" is always a lost race: no writer compares the request's id."""
    put = Door._put

    def never_ours(self: Any, request: str, pending: Any, again: bool, deadline: float) -> Any:
        found = put(self, request, pending, again, deadline)
        return found if found is pending.entry else None

    with patch.object(Door, "_put", never_ours):
        yield


@contextmanager
def acknowledges_without_a_look_at_the_floors() -> Iterator[None]:
    """A writer that was frozen believes its put."""
    with patch.object(Door, "_was_trimmed", lambda *_: False):
        yield


@contextmanager
def goes_by_its_own_clocks_alone() -> Iterator[None]:
    """A writer on a machine that was paused believes its put: no clock says that it was frozen."""
    with patch.object(Door, "_came_late", lambda *_: False):
        yield


@contextmanager
def deletes_before_it_publishes_the_floor() -> Iterator[None]:
    """Trimming in the wrong order."""

    def backwards(storage: Any, folder: str, min_age_ms: int) -> Any:
        floors: list[tuple[str, bytes]] = []
        proxy = _Proxy(storage, put_if_absent=lambda path, data: floors.append((path, data)) or True)
        plan = trim(proxy, folder, min_age_ms)
        for path, data in floors:
            storage.put_if_absent(path, data)
        return plan

    with patch.object(background, "trim", backwards):
        yield


@contextmanager
def trims_whatever_the_age() -> Iterator[None]:
    """Trimming that counts entries only."""
    with patch.object(background, "trim", lambda storage, folder, _: trim(storage, folder, 0)):
        yield


@contextmanager
def syncs_only_its_own_segments() -> Iterator[None]:
    """acks=all forgets the segments of earlier entries."""

    def own(self: Any, brought: Any) -> None:
        self._storage.sync(brought)

    with patch.object(UnsyncedSegments, "sync", own):
        yield


@contextmanager
def believes_what_it_reads_after_a_long_sleep() -> Iterator[None]:
    """A tailer, idle or frozen, that never looks at the floors once it is open."""

    def tail(self: Any, *, sure: bool = True) -> None:
        if not self._opened:
            self._restart()
        while self._step():
            pass
        self._head, self._head_seen = self._state.version, self._reading.looked

    with patch.object(Door, "_tail", tail):
        yield


@contextmanager
def rests_the_floor_on_a_checkpoint_that_is_not_synced() -> Iterator[None]:
    """No writer syncs checkpoints."""
    with ExitStack() as stack:
        for module, name in ((background, "trim"), (lake, "write_checkpoint")):
            stack.enter_context(patch.object(module, name, _without_checkpoint_syncs(getattr(module, name))))
        yield


def _without_checkpoint_syncs(function: Callable[..., Any]) -> Callable[..., Any]:
    def changed(real: Any, *others: Any) -> Any:
        proxy = _Proxy(real, sync=lambda paths: real.sync(p for p in paths if ".checkpoint." not in p))
        return function(proxy, *others)

    return changed


@contextmanager
def writes_checkpoints_over_unsynced_segments() -> Iterator[None]:
    """A program that opens the log from the checkpoint no longer knows which segments were not synced."""
    with patch.object(UnsyncedSegments, "up_to", lambda *_: []):
        yield


@contextmanager
def deletes_its_segments_after_an_unknown_outcome() -> Iterator[None]:
    """An append that fails cleans up, although its entry may be there."""
    commit_all = JointAppend.commit_all

    def cleaning(self: Any, shares: Any, *others: Any, **more: Any) -> Any:
        answers = commit_all(self, shares, *others, **more)
        for share, answer in zip(shares, answers, strict=True):
            if answer.outcome is CommitOutcome.UNKNOWN:
                for segment in share.segments:
                    self.topic.storage.delete(f"{self.topic.folder}/{segment.path}")
        return answers

    with patch.object(JointAppend, "commit_all", cleaning):
        yield


@contextmanager
def takes_every_request_for_a_new_one() -> Iterator[None]:
    """What is live, or was, is appended again."""

    def as_new(state: Any, name: str, shares: Any, **more: Any) -> Any:
        return decide_joint_append(state, name, [replace(share, new_until=None) for share in shares], **more)

    with patch.object(TopicState, "find", lambda *_: None), patch.object(joint, "decide_joint_append", as_new):
        yield


@contextmanager
def takes_every_batch_for_a_new_one() -> Iterator[None]:
    """A producer's repeat lands again."""
    with patch.object(Sequences, "_is_repeat", lambda *_: False):
        yield


@contextmanager
def keeps_no_sequences() -> Iterator[None]:
    """What a producer has sent is forgotten with the process that appended it."""
    with patch.object(Sequences, "txns", lambda *_: []):
        yield


@contextmanager
def gives_an_unknown_outcome_up_for_lost() -> Iterator[None]:
    """Group commit stages the records again, without their sequences."""
    advance = PendingEntry.advance

    def again(self: Any) -> None:
        advance(self)
        if self.in_doubt:
            self._staged = None
            self._requests = replace(self._requests, batches={})

    with patch.object(PendingEntry, "advance", again):
        yield


@contextmanager
def stages_a_repeat_again() -> Iterator[None]:
    """An appender forgets what it staged when it gets no answer: its repeat is another append."""
    attempt = StagedAppend.attempt

    def forgetful(self: Any) -> Any:
        try:
            return attempt(self)
        except OutcomeUnknownError:
            self._share = None
            raise

    with patch.object(StagedAppend, "attempt", forgetful):
        yield


@contextmanager
def trusts_a_listing_of_floors() -> Iterator[None]:
    """A late writer, or reader, goes by the floors alone, and a node that was away lacks the newest one."""
    with patch.object(Door, "_is_gone", lambda *_: False):
        yield


# The six of the door, and more around it.
BUGS: dict[str, Planted] = {
    planted.__name__: planted
    for planted in (
        keeps_its_offsets_after_a_lost_race,
        takes_its_own_success_for_somebody_elses,
        acknowledges_without_a_look_at_the_floors,
        goes_by_its_own_clocks_alone,
        deletes_before_it_publishes_the_floor,
        syncs_only_its_own_segments,
        trims_whatever_the_age,
        believes_what_it_reads_after_a_long_sleep,
        rests_the_floor_on_a_checkpoint_that_is_not_synced,
        writes_checkpoints_over_unsynced_segments,
        deletes_its_segments_after_an_unknown_outcome,
        takes_every_request_for_a_new_one,
        takes_every_batch_for_a_new_one,
        keeps_no_sequences,
        gives_an_unknown_outcome_up_for_lost,
        stages_a_repeat_again,
        trusts_a_listing_of_floors,
    )
}
