"""The log of consumer groups: `__consumer_offsets`, through which members of a group agree without a coordinator.

A group's generation, members and offsets share one log, so that one decision fences a commit by member and generation.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, TypeVar

import mmh3

from tidelog.groups.model import AnyGroup, CommittedOffset, Decision, GroupView, TopicPartition
from tidelog.groups.rules.expiry import expire
from tidelog.groups.rules.members import check_group_id
from tidelog.groups.rules.offsets import decide_commit, delete_group, delete_offsets, settle
from tidelog.groups.store.offset_checks import check_values, of_this_life, placed
from tidelog.groups.store.rows import KIND, GroupsFold, changes
from tidelog.log.base.backoff import Backoff
from tidelog.log.base.errors import GroupSubscribedError, UnstableOffsetError
from tidelog.log.delta import layout
from tidelog.log.lake import Lake
from tidelog.log.rows.row_log import RowLog
from tidelog.log.rows.rules import RowOutcome
from tidelog.log.state.topic_state import TABLES, TopicState
from tidelog.transactions.model import TransactionKey, Verdict
from tidelog.transactions.ports import GroupIdentity
from tidelog.transactions.timeouts import TransactionTimeouts
from tidelog.transactions.transaction_log import TransactionLog

Verdicts = Mapping[TransactionKey, Verdict]
R = TypeVar("R")

# Between looks at a group whose offsets wait for a transaction: at first, and when it takes longer.
FIRST_LOOK_AGAIN_S = 0.02
LAST_LOOK_AGAIN_S = 0.25


class GroupLog:
    """The groups of a lake. All methods may be called from many threads.

    Tables are made by the first write; before that there are no groups. Reads see every commit that was acknowledged
    before them, in whatever process.
    """

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._known_tables = 0
        self._transactions = TransactionLog(lake)
        self._timeouts = TransactionTimeouts(self._transactions, lake.clock)

    # --- reading -------------------------------------------------------------------------------------------

    def group(self, group_id: str) -> AnyGroup | None:
        """The group; None when no member ever joined it, or it was deleted since."""
        return self.written(group_id).group

    def offsets(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        """The group's committed offsets, by (topic, partition)."""
        return self.view(group_id).offsets

    def stable_offsets(self, group_id: str, timeout_s: float = 0.0) -> Mapping[TopicPartition, CommittedOffset]:
        """The group's committed offsets when none waits for a transaction, else `UnstableOffsetError`: ask again.

        A transaction that is open for longer than its time-out, as seen from here, is aborted on the way. With
        `timeout_s` it is asked again so long.
        """
        clock = self._lake.clock
        until_s = clock.elapsed_s() + timeout_s
        backoff = Backoff(FIRST_LOOK_AGAIN_S, LAST_LOOK_AGAIN_S)
        while True:
            try:
                return self._stable_offsets(group_id)
            except UnstableOffsetError:
                left_s = until_s - clock.elapsed_s()
                if left_s <= 0:
                    raise
                clock.sleep(min(backoff.next_s(), left_s))

    def _stable_offsets(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        view, verdicts = self._resolved(group_id)
        follows = self._lake.follows() is not None  # then others end transactions, and settle
        if view.pending and not follows and self._timeouts.abort_late(dict.fromkeys(key for key, _ in view.pending)):
            view, verdicts = self._resolved(group_id)
        if not follows:
            self._settle(group_id, verdicts)  # the next reader need not ask again
        if view.pending:
            raise unstable(group_id, view)
        return of_this_life(view.offsets, self._lake.peek)

    def view(self, group_id: str) -> GroupView:
        """The group and its offsets, those of topics deleted since left out. Raises `InvalidGroupError`.

        Offsets of transactions that are committed count; those that wait for open ones are `pending`.
        """
        view, _ = self._resolved(group_id)
        return replace(view, offsets=of_this_life(view.offsets, self._lake.peek))

    def _settle(self, group_id: str, verdicts: Verdicts) -> None:
        for key, verdict in verdicts.items():
            if verdict is not Verdict.OPEN:
                rule = partial(settle, transaction=key, committed=verdict is Verdict.COMMITTED)
                self.decide(group_id, rule)

    def _resolved(self, group_id: str) -> tuple[GroupView, Verdicts]:
        return resolve(lambda: self.written(group_id), self._transactions.verdicts)

    def groups(self) -> list[str]:
        """The ids of all groups that have members, a generation or offsets; sorted."""
        return sorted(group_id for log in self.tables() for group_id in log.look(GroupsFold.group_ids))

    def with_members(self) -> dict[str, GroupView]:
        """The groups that have members, by their ids."""

        def at(fold: GroupsFold) -> dict[str, GroupView]:
            views = {group_id: fold.view(group_id) for group_id in fold.group_ids()}
            return {group_id: view for group_id, view in views.items() if view.group is not None and view.group.members}

        groups: dict[str, GroupView] = {}
        for log in self.tables():
            groups |= log.look(at)
        return groups

    def views(self, topic: Callable[[str], TopicState | None] | None = None) -> dict[str, GroupView]:
        """{group id: group and offsets} of all groups, sorted, from one look at each table and at each topic.

        `topic`: gives each topic as a look at the lake has found it; none is looked at again.
        """
        look = cache(self._lake.peek) if topic is None else topic
        written: dict[str, GroupView] = {}
        for log in self.tables():
            written |= log.look(lambda fold: {group_id: fold.view(group_id) for group_id in fold.group_ids()})
        views = {}
        for group_id, view in sorted(written.items()):
            if view.pending:
                view, _ = self._resolved(group_id)
            views[group_id] = replace(view, offsets=of_this_life(view.offsets, look))
        return views

    def written(self, group_id: str) -> GroupView:
        """What the rows say of a group, whatever became of its topics. Raises `InvalidGroupError`."""
        check_group_id(group_id)
        tables = self._tables()
        return self._log(group_id, tables).look(lambda fold: fold.view(group_id)) if tables else GroupView()

    def table(self, group_id: str) -> str:
        """The table that the group's rows are in: its folder below the lake's root."""
        return self._log(group_id, self._tables() or self._lake.config().offsets_topic_num_partitions).name

    def version(self, group_id: str) -> int:
        """The version of that table's log as of the last look at it, -1 before its first entry."""
        tables = self._tables()
        return self._log(group_id, tables).version if tables else -1

    def config(self, group_id: str) -> Mapping[str, str]:
        """What a group is configured with, as texts by key. Raises `InvalidGroupError`."""
        return self.written(group_id).config

    def configured(self) -> list[str]:
        """The ids of all groups that are configured with something, be they there or not; sorted."""
        return sorted(group_id for log in self.tables() for group_id in log.look(GroupsFold.configured))

    # --- writing -------------------------------------------------------------------------------------------

    def decide(self, group_id: str, rule: Callable[[GroupView], Decision[R]]) -> R:
        """Write what a pure rule makes of the group as it is now, and return the rule's response once that is durable.

        The rule is called again after each lost race, and refuses by raising. Offsets without a time get the clock's.
        Raises `OutcomeUnknownError` when the store stops answering: the rule may be tried again.
        """
        check_group_id(group_id)
        now_ms = self._lake.clock.now_ms()

        def over_fold(fold: GroupsFold) -> RowOutcome[R]:
            view = fold.view(group_id)
            decision = rule(view)
            return RowOutcome(changes(view, group_id, decision, now_ms), decision.response)

        if not self._tables():
            first = over_fold(GroupsFold())
            if not first.rows:
                return first.response
            self._first().create()
        return self._log(group_id, self._tables()).commit(over_fold)

    def decide_all(
        self, requests: Sequence[tuple[str, Callable[[GroupView], Decision[Any]]]]
    ) -> list[tuple[Any, Exception | None]]:
        """Make many decisions, each of one group, in their order, and in one entry for each table that they touch.

        Answers, for each, the rule's response or its refusal. A decision sees those before it. Raises as `decide` does,
        for all: then some may have been made.
        """
        now_ms = self._lake.clock.now_ms()
        answers: dict[int, tuple[Any, Exception | None]] = {}

        def over_fold(fold: GroupsFold, numbers: Iterable[int]) -> RowOutcome[None]:
            after, rows = fold.fork(), []
            for number in numbers:
                group_id, rule = requests[number]
                try:
                    check_group_id(group_id)
                    view = after.view(group_id)
                    decision = rule(view)
                    new = [KIND.schema.checked(row) for row in changes(view, group_id, decision, now_ms)]
                except Exception as e:  # a refusal, or a broken rule: only its own caller hears of it
                    answers[number] = None, e
                    continue
                answers[number] = decision.response, None
                after.take(new)
                rows.extend(new)
            return RowOutcome(rows, None)

        if not self._tables():
            if not over_fold(GroupsFold(), range(len(requests))).rows:
                return [answers[number] for number in range(len(requests))]
            self._first().create()
        tables: dict[str, tuple[RowLog[GroupsFold], list[int]]] = {}
        for number, (group_id, _) in enumerate(requests):
            log = self._log(group_id, self._tables())
            tables.setdefault(log.name, (log, []))[1].append(number)
        for log, numbers in tables.values():
            log.commit(partial(over_fold, numbers=numbers))
        return [answers[number] for number in range(len(requests))]

    def commit_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, CommittedOffset],
        member_id: str = "",
        generation: int = -1,
        instance_id: str | None = None,
    ) -> None:
        """Commit offsets, all or none: as a member of the group's `generation`, or of a group without members.

        Raises `UnknownTopicError`, `UnknownPartitionError`, `OffsetOutOfRangeError` (below 0, or past the partition's
        end), `OffsetMetadataTooLargeError`, `InvalidGroupError`, `UnknownMemberError`, `FencedInstanceError`,
        `IllegalGenerationError`, `RebalanceInProgressError`.
        """
        check_values(offsets)
        wanted = self.placed(offsets)
        committer = GroupIdentity(group_id, member_id, generation, instance_id)
        self.decide(group_id, lambda view: decide_commit(view, committer, wanted))

    def placed(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> dict[TopicPartition, CommittedOffset]:
        """The offsets with the ids of their topics. Raises as `group_log_checks.placed`."""
        return placed(offsets, self._lake.peek)

    def delete_group(self, group_id: str) -> None:
        """Delete a group and its offsets. Raises `GroupNotFoundError`, `GroupNotEmptyError`."""
        self.decide(group_id, lambda view: delete_group(view, group_id))

    def delete_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, GroupSubscribedError | None]:
        """Delete offsets; the answer says per partition why one stays, or None.

        Raises `GroupNotFoundError`, `GroupNotEmptyError`.
        """
        wanted = list(partitions)
        return self.decide(group_id, lambda view: delete_offsets(view, group_id, wanted))

    def expire_offsets(self, now_ms: int, *, dry_run: bool = False) -> dict[str, list[TopicPartition]]:
        """Delete what `offsets.retention.minutes` has passed for, and groups of which nothing is left by that.

        What still waits for transactions that have ended, whose producers died, is settled before.
        `now_ms`: ms since the epoch. Returns {group id: partitions whose offset went}; `dry_run`: would go.
        """
        retention_ms = self._lake.config().offsets_retention_minutes * 60_000

        def rule(view: GroupView) -> Decision[list[TopicPartition]]:
            return expire(view, now_ms, retention_ms)

        expired: dict[str, list[TopicPartition]] = {}
        for group_id in self.groups():
            seen = rule(self._settled_view(group_id, dry_run=dry_run))
            if seen.group is not None or seen.offsets:
                expired[group_id] = seen.response if dry_run else self.decide(group_id, rule)
        return expired

    def _settled_view(self, group_id: str, *, dry_run: bool) -> GroupView:
        view = self.written(group_id)
        if view.pending:
            view, verdicts = self._resolved(group_id)
            if not dry_run:
                self._settle(group_id, verdicts)
        return view

    # --- tables --------------------------------------------------------------------------------------------

    def _tables(self) -> int:
        """How many tables there are, fixed when the first one was made; 0 before."""
        if not self._known_tables:
            self._known_tables = int(self._first().fact(TABLES) or "0")
        return self._known_tables

    def tables(self) -> list[RowLog[GroupsFold]]:
        """The tables that hold the groups; none before the first write."""
        tables = self._tables()
        return [self._table(number, tables) for number in range(tables)]

    def _first(self) -> RowLog[GroupsFold]:
        return self._table(0, self._lake.config().offsets_topic_num_partitions)

    def _log(self, group_id: str, tables: int) -> RowLog[GroupsFold]:
        """The group's table: `(mmh3(group id) & 0x7fffffff) % tables`."""
        return self._table((mmh3.hash(group_id.encode(errors="surrogatepass")) & 0x7FFFFFFF) % tables, tables)

    def _table(self, number: int, tables: int) -> RowLog[GroupsFold]:
        name = layout.OFFSETS_TABLE if number == 0 else f"{layout.OFFSETS_TABLE}-{number}"
        return self._lake.row_log(name, KIND, {TABLES: str(tables)})


# --- offsets that wait for transactions: the log of transactions says which count ---------------------------


def resolve(
    look: Callable[[], GroupView], ask: Callable[[Collection[TransactionKey]], Verdicts]
) -> tuple[GroupView, Verdicts]:
    """The group as it is when every transaction that has ended counts, and what became of those that offsets wait for.

    `look` gives the group as its log says, `ask` what becomes of transactions, in that order: a transaction that was
    open when the group was read may have ended since, never the other way round. What the log of transactions says no
    more was settled in the group's log before: it is read again, and what still waits there was aborted. What waits for
    an open transaction stays `pending`.
    """
    settled: set[TransactionKey] = set()
    while True:
        view = look()
        keys = dict.fromkeys(key for key, _ in view.pending)
        unsettled = [key for key in keys if key not in settled]
        answers = ask(unsettled) if unsettled else {}
        again = {key for key, verdict in answers.items() if verdict is Verdict.SETTLED}
        if not again:
            verdicts = {key: answers.get(key, Verdict.ABORTED) for key in keys}
            return counted(view, verdicts), verdicts
        settled |= again


def counted(view: GroupView, verdicts: Verdicts) -> GroupView:
    """The group when the offsets of transactions count that are committed by `verdicts`; those of open ones wait."""
    if not view.pending:
        return view
    offsets = dict(view.offsets)
    for (key, place), committed in view.pending.items():
        if verdicts[key] is Verdict.COMMITTED:
            offsets[place] = committed
    still_open = {waiting: one for waiting, one in view.pending.items() if verdicts[waiting[0]] is Verdict.OPEN}
    return replace(view, offsets=offsets, pending=still_open)


def unstable(group_id: str, view: GroupView) -> UnstableOffsetError:
    """What is raised while offsets wait for open transactions."""
    (key, (topic, partition)), *_ = view.pending
    return UnstableOffsetError(
        f"Offsets of group {group_id!r} wait for a transaction of {key.transactional_id!r}, that of topic '{topic}',"
        f" partition {partition}, among them: where to go on is known when it ends, at the latest after its"
        " transaction.timeout.ms. Ask again."
    )
