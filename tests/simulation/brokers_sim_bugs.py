"""Bugs to plant in brokers: each changes one rule of the product's code while a run lasts."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from typing import Any
from unittest.mock import patch
from uuid import UUID

from brokers_sim_transaction_bugs import BUGS as IN_TRANSACTIONS
from sim_running import Planted

from tidelog.broker.base.batch_runs import BatchRun
from tidelog.broker.base.topics import BrokerTopics
from tidelog.broker.cluster import membership
from tidelog.broker.cluster.topic_leaders import TopicLeadersByLoad
from tidelog.broker.groups.offsets import OffsetHandlers
from tidelog.broker.produce.entry import WrittenEntry
from tidelog.broker.produce.hand_over import HandOvers
from tidelog.broker.produce.pool import TopicPool
from tidelog.broker.produce.repeats import Repeats
from tidelog.cluster import rules
from tidelog.cluster.leading import LeadersDecider, wanted_leaders
from tidelog.log.base.errors import OutOfOrderSequenceError, TidelogError
from tidelog.log.group_commit.engine import PendingEntry
from tidelog.log.rules import appends, joint_appends
from tidelog.log.rules.appends import AppendAnswer, CommitOutcome


@contextmanager
def takes_repeats_for_new_records() -> Iterator[None]:
    """Sequences do not reach the log."""
    requests = WrittenEntry._requests

    def without(self: Any, counts: Any) -> Any:
        return replace(requests(self, counts), batches={})

    with patch.object(WrittenEntry, "_requests", without):
        yield


@contextmanager
def answers_a_repeat_with_the_newest_offset() -> Iterator[None]:
    """A repeated batch gets the offset of the last one."""

    def newest(self: Any, partition: int, producer_id: int, batch: Any) -> Any:
        del batch
        last = self._last.get((producer_id, partition))
        return last[-1][1] if last else None

    with patch.object(Repeats, "find", newest):
        yield


@contextmanager
def takes_the_last_that_came_first() -> Iterator[None]:
    """What waits for an entry is taken from the wrong end."""
    take = TopicPool._take

    def backwards(self: Any, most_bytes: int, *, at_least_one: bool) -> Any:
        return take(self, most_bytes, at_least_one=at_least_one)[::-1]

    with patch.object(TopicPool, "_take", backwards):
        yield


@contextmanager
def skips_the_batch_that_holds_the_offset() -> Iterator[None]:
    """A fetch from within a batch begins behind it."""
    read = BatchRun.read

    def behind(self: Any, offset: int, most_bytes: int, *, at_least_one: bool) -> Any:
        return read(self, offset + 1 if offset > self.first else offset, most_bytes, at_least_one=at_least_one)

    with patch.object(BatchRun, "read", behind):
        yield


@contextmanager
def keeps_its_epoch_when_brokers_come_and_go() -> Iterator[None]:
    """The leader epoch does not rise at a move."""
    with patch.object(rules, "_served_by", lambda _: []):
        yield


@contextmanager
def deals_leaders_by_itself() -> Iterator[None]:
    """A broker deals leaders over the brokers that run, and the others over all that are known."""
    view_of = membership.view_of

    def otherwise(state: Any, cluster_id: str, me: Any) -> Any:
        view = view_of(state, cluster_id, me)
        return replace(view, known=()) if me.id == 1 else view

    with patch.object(membership, "view_of", otherwise):
        yield


@contextmanager
def deals_leaders_by_its_own_load() -> Iterator[None]:
    """A broker goes by what topics cost it, not by what the log says."""
    view_of, look = membership.view_of, TopicLeadersByLoad.look
    own: dict[int, dict[UUID, int]] = {}

    def noted(self: Any, state: Any, me: Any, lease: Any, now_s: float) -> bool:
        looked = look(self, state, me, lease, now_s)
        own[me.id] = {UUID(one.topic): wanted_leaders(1, one.cores, 8) for one in self._own.topics}
        return looked

    def otherwise(state: Any, cluster_id: str, me: Any) -> Any:
        return replace(view_of(state, cluster_id, me), leaders=own.get(me.id, {}))

    with patch.object(TopicLeadersByLoad, "look", noted), patch.object(membership, "view_of", otherwise):
        yield


@contextmanager
def changes_leaders_at_every_look() -> Iterator[None]:
    """No time has to pass between two changes of a topic's leaders."""
    with patch.object(LeadersDecider, "_wanted", _at_once):
        yield


def _at_once(self: Any, state: Any, topic: str, load: Any, now_s: float) -> int | None:
    del now_s
    leaders = state.leaders_of(topic)
    wanted = wanted_leaders(leaders, load.cores, len(state.serving))
    return wanted if wanted != leaders else None


@contextmanager
def asks_the_store_where_it_answers_clients() -> Iterator[None]:
    """A topic is looked at by the loop itself."""
    get = BrokerTopics.get

    async def at_once(self: Any, name: str) -> Any:
        found = await get(self, name)
        if found is not None:
            found.log.refresh()
        return found

    with patch.object(BrokerTopics, "get", at_once):
        yield


@contextmanager
def brings_old_commits_up_again() -> Iterator[None]:
    """A commit is executed once more, a second later."""
    commit = OffsetHandlers._commit

    async def twice(self: Any, body: Any, wanted: Any, cluster_epoch: int) -> None:
        await commit(self, body, wanted, cluster_epoch)

        async def again() -> None:
            await asyncio.sleep(1.0)
            with suppress(TidelogError):
                await commit(self, body, wanted, cluster_epoch)

        self.repeated = [*getattr(self, "repeated", []), asyncio.get_running_loop().create_task(again())]

    with patch.object(OffsetHandlers, "_commit", twice):
        yield


@contextmanager
def commits_what_has_landed_once_more() -> Iterator[None]:
    """What was handed over is committed without a look whether it has landed."""

    def not_there(*_: Any) -> dict[int, tuple[int, int]]:
        return {}

    with patch.object(joint_appends, "first_answer", not_there), patch.object(appends, "_require_new", not_there):
        yield


@contextmanager
def stages_again_what_it_handed_over() -> Iterator[None]:
    """A broker that gets no answer takes its records for new ones, and has them staged and committed again.

    Each fifth answer is lost: the network alone loses one in many runs.
    """
    ask, answers = HandOvers._handed_over, count(1)

    async def forgetful(self: Any, committer: Any, topic: Any, share: Any) -> AppendAnswer:
        answer = await ask(self, committer, topic, share)
        lost = answer.outcome is CommitOutcome.UNKNOWN or next(answers) % 5 == 0
        return AppendAnswer(CommitOutcome.STALE) if lost else answer

    with patch.object(HandOvers, "_handed_over", forgetful):
        yield


@contextmanager
def judges_what_it_stages_ahead_by_what_has_landed() -> Iterator[None]:
    """An entry that is staged while the one before is committed is judged as if that were not there."""
    judge = PendingEntry._judge_sequences

    def too_early(self: Any, *args: Any, ahead: bool = False, **more: Any) -> Any:
        self._engine.judges_first |= ahead
        return judge(self, *args, **more)

    with patch.object(PendingEntry, "_judge_sequences", too_early):
        yield


@contextmanager
def takes_what_follows_an_entry_that_failed() -> Iterator[None]:
    """An entry that was staged ahead goes on from sequences that the one before was to bring."""
    stage, earlier = PendingEntry.stage_ahead, joint_appends._earlier_answer
    ahead: set[str] = set()

    def remembered(self: Any) -> None:
        stage(self)
        if self._staged is not None:
            ahead.update(segment.path for segment in self._staged.share.segments)

    def without_gaps(state: Any, topic: str, share: Any, configuration: str, sequences: Any) -> Any:
        try:
            return earlier(state, topic, share, configuration, sequences)
        except OutOfOrderSequenceError:
            if not ahead.intersection(segment.path for segment in share.segments):
                raise
        for batch in share.producers:
            for partition, (first, records) in batch.sequences.items():
                sequences._landed[batch.producer_id, partition] = batch.epoch, first + records - 1
        return None

    with (
        patch.object(PendingEntry, "stage_ahead", remembered),
        patch.object(joint_appends, "_earlier_answer", without_gaps),
    ):
        yield


BUGS: dict[str, Planted] = {
    planted.__name__: planted
    for planted in (
        takes_repeats_for_new_records,
        answers_a_repeat_with_the_newest_offset,
        takes_the_last_that_came_first,
        skips_the_batch_that_holds_the_offset,
        keeps_its_epoch_when_brokers_come_and_go,
        deals_leaders_by_itself,
        deals_leaders_by_its_own_load,
        changes_leaders_at_every_look,
        asks_the_store_where_it_answers_clients,
        brings_old_commits_up_again,
        commits_what_has_landed_once_more,
        stages_again_what_it_handed_over,
        judges_what_it_stages_ahead_by_what_has_landed,
        takes_what_follows_an_entry_that_failed,
    )
} | IN_TRANSACTIONS
