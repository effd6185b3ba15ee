"""Rewinds of topics, and of all of a lake, to a cut: what leaves, which groups move, and what does not come back."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from typing import Final

from tidelog.cuts.model import Cut
from tidelog.cuts.rules import ends_of, markers
from tidelog.groups.model import CommittedOffset, GroupView
from tidelog.groups.store.adapters import LoggedOffsets
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import ObjectNotFoundError, PolicyViolationError, TidelogError
from tidelog.log.checkpoints.entry_ranges import decoded_entries
from tidelog.log.delta import layout
from tidelog.log.lake import Lake
from tidelog.log.rules import names
from tidelog.log.state.topic_state import TopicState
from tidelog.operations.groups import set_offsets
from tidelog.retention.predicates.where import Condition
from tidelog.retention.restoring import Restored, restore_topic
from tidelog.retention.rewinds import TopicRewind, rewind_topic
from tidelog.retention.rewrites.executors import Executor
from tidelog.transactions.upkeep import TransactionUpkeep

# Entries of a topic that are looked through for its transactions; where there are more, all that it holds are named.
MOST_ENTRIES: Final = 20_000


@dataclass(frozen=True, slots=True)
class MovedPosition:
    """A group's position that is after the cut, and where it is to be. `why_not`: why it stays; "" where it moves."""

    group: str
    topic: str
    partition: int
    before: int
    after: int
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Rewind:
    """What a rewind did, or would do.

    `restored`: what came back from a branch. `crossing`: {transactional id: other topics}, where a part of its
    transactions after the cut stays, or may stay, as only some topics are rewound. `compacted`: topics of which
    compaction has dropped older values since the cut, which don't come back. `left`: {topic: why it stays as it is}.
    """

    cut: Cut
    executed: bool
    topics: tuple[TopicRewind, ...]
    positions: tuple[MovedPosition, ...] = ()
    restored: tuple[Restored, ...] = ()
    crossing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    compacted: tuple[str, ...] = ()
    left: Mapping[str, str] = field(default_factory=dict)

    @property
    def records(self) -> int:
        """How many leave in all."""
        return sum(topic.records for topic in self.topics)

    @property
    def failed(self) -> bool:
        """Whether a partition keeps its records, or a group its position."""
        stays = any(topic.failures for topic in self.topics) or any(topic.problems for topic in self.restored)
        return stays or any(moved.why_not for moved in self.positions)


def rewind_topics(
    lake: Lake,
    cut: Cut,
    topics: Sequence[str],
    *,
    where: Condition | None = None,
    groups: bool = False,
    execute: bool = False,
    executor: Executor | None = None,
    branch: Lake | None = None,
) -> Rewind:
    """Take what topics got after a cut out of them: all, or the records that `where` means.

    `groups`: positions after the cut go back to it, of groups without members; those that show no life are evicted.
    `branch`: what compaction has dropped since comes back from there, a branch that was made at this cut. Nothing is
    changed without `execute`.
    Raises `UnknownTopicError`, `CutLostError`, `PolicyViolationError` for the registry's topic, for another branch, and
    where keys were erased since that would come back; `LakeFollowsError`; and as `rewind_topic`.
    """
    states = {topic: lake.topic(topic).state() for topic in topics}
    firsts = {topic: ends_of(cut, topic, state.topic_id) for topic, state in states.items()}
    for topic in topics:
        _refuse_schemas(topic)
    return _run(lake, cut, firsts, states, where, groups, execute, executor, branch=branch)


def rewind_lake(
    lake: Lake, cut: Cut, *, execute: bool = False, executor: Executor | None = None, branch: Lake | None = None
) -> Rewind:
    """Take what a lake got after a cut out of all its topics, and set its groups without members back to it.

    A topic that was made since loses all its records; so each transaction after the cut leaves as a whole. The
    registry's topic stays, as the ids of schemas are given once. Raises as `rewind_topics`.
    """
    states: dict[str, TopicState] = {}
    left: dict[str, str] = {}
    for topic in lake.topics(internal=True):
        if topic == layout.SCHEMAS_TOPIC:
            left[topic] = "the ids of its schemas are given once"
        elif not names.is_table(topic):
            try:
                states[topic] = lake.topic(topic).state()
            except TidelogError as e:
                if e.retriable:
                    raise
                left[topic] = str(e)
    firsts = {}
    for topic, state in states.items():
        known = cut.topic(topic)
        firsts[topic] = known.ends if known is not None and known.topic_id == state.topic_id else {}
    gone = dict.fromkeys(cut.topics.keys() - states.keys() - left.keys(), "it was deleted since")
    return _run(lake, cut, firsts, states, None, True, execute, executor, left | gone, branch)


def _refuse_schemas(topic: str) -> None:
    if topic == layout.SCHEMAS_TOPIC:
        raise PolicyViolationError(
            f"Topic '{topic}' keeps the schemas of the lake's registry, and is not rewound: the id of a schema that"
            " left would be given again, and records that name it would be read by another one. Delete subjects instead"
            " ('tidelog schema delete')."
        )


def _run(
    lake: Lake,
    cut: Cut,
    firsts: Mapping[str, Mapping[int, int]],
    states: Mapping[str, TopicState],
    where: Condition | None,
    groups: bool,
    execute: bool,
    executor: Executor | None,
    left: Mapping[str, str] | None = None,
    branch: Lake | None = None,
) -> Rewind:
    if execute:
        lake.permit(layout.LAKE_FILE)()  # before anything is applied or written
    if branch is not None:
        _require_branch_of(lake, branch, cut, where)
    log = GroupLog(lake)
    by = f"cut {cut.name}"
    if execute:
        settle = TransactionUpkeep(lake, LoggedOffsets(log)).complete_for
        for topic in states:
            settle(topic)
        states = {topic: lake.topic(topic).state() for topic in states}
    # All that may refuse comes before the first record leaves.
    restorable = [] if branch is None else _restorable(branch, cut, states)
    looks = {topic: _look(lake, cut, topic, states[topic]) for topic in restorable}
    for topic, look in looks.items():
        _require_nothing_erased(topic, look)
    crossing = _crossing(lake, cut, states, looks)
    compacted = tuple(topic for topic, state in states.items() if _is_compacted(state, firsts[topic]))
    rewound = tuple(
        rewind_topic(lake, topic, firsts[topic], by=by, where=where, executor=executor, dry_run=not execute)
        for topic in states
    )
    restored: list[Restored] = []
    if branch is not None:
        restored += (
            restore_topic(lake, branch, topic, firsts[topic], by=by, dry_run=not execute) for topic in restorable
        )
    positions = plan_positions(cut, log.views(), states) if groups else []
    if execute:
        positions = list(_move(lake, log, positions))
    left_dropped = tuple(topic for topic in compacted if topic not in restorable)
    return Rewind(cut, execute, rewound, tuple(positions), tuple(restored), crossing, left_dropped, left or {})


def _require_branch_of(lake: Lake, branch: Lake, cut: Cut, where: Condition | None) -> None:
    """Refuse any lake but a branch made at the cut: an earlier one has keys that were erased before the cut."""
    if where is not None:
        raise PolicyViolationError(
            "A condition says which records leave, and a branch brings back all that compaction dropped: give one of"
            " them."
        )
    facts = branch.branch_facts()
    if facts is None or not facts.is_whole or (facts.of, facts.cut, facts.time_ms) != (lake.uri, cut.name, cut.time_ms):
        raise PolicyViolationError(
            f"The lake {branch.uri} is no whole branch of {lake.uri} made at the cut {cut.name!r}, and nothing comes"
            " back from another one: it may have keys that were erased here, or records of another lake. Make one"
            f" ('tidelog lake branch {lake.uri} ADDRESS --at {cut.name}')."
        )


def _restorable(branch: Lake, cut: Cut, states: Mapping[str, TopicState]) -> list[str]:
    """The topics that the cut and the branch have, too."""
    theirs = {topic: branch.peek(topic) for topic in states if cut.topic(topic) is not None}
    return [topic for topic, state in theirs.items() if state is not None and state.topic_id == states[topic].topic_id]


def _require_nothing_erased(topic: str, look: "_SinceCut | None") -> None:
    """Refuse to bring back what was erased since the cut."""
    if look is not None and look.erased is None:
        return
    why = (
        "its log is not kept back to the cut, so that nothing says whether keys were erased since"
        if look is None
        else f"keys were erased from it since the cut (entry {look.erased}), and would come back"
    )
    raise PolicyViolationError(
        f"Topic '{topic}' gets nothing back from a branch: {why}. Rewind it without the branch; what compaction dropped"
        " can be copied from the branch by hand."
    )


def _is_compacted(state: TopicState, ends: Mapping[int, int]) -> bool:
    """Whether compaction has compared what came after the cut with what was before."""
    return any(state.cleans.get(p, 0) > ends.get(p, 0) > 0 for p in range(state.partitions))


# --- positions ---------------------------------------------------------------------------------------------


def plan_positions(cut: Cut, views: Mapping[str, GroupView], states: Mapping[str, TopicState]) -> list[MovedPosition]:
    """The positions after a cut in topics that are rewound, and where they are to be. Pure.

    A group goes back to its own position in the cut; one that had none there, to where the partition ended.
    """
    positions = []
    for group, view in sorted(views.items()):
        own = cut.positions.get(group, {})
        members = 0 if view.group is None else len(view.group.members)
        why_not = f"the group has {members} members: stop them, and reset it to the cut" if members else ""
        for (topic, partition), committed in sorted(view.offsets.items()):
            state = states.get(topic)
            if state is None or partition >= state.partitions:
                continue
            table = cut.topic(topic)
            known = table is not None and table.topic_id == state.topic_id
            end = table.ends.get(partition, 0) if known and table is not None else 0
            after = max(state.start(partition), own.get((topic, partition), end) if known else 0)
            if committed.offset > after:
                positions.append(MovedPosition(group, topic, partition, committed.offset, after, why_not))
    return positions


def _move(lake: Lake, log: GroupLog, positions: Sequence[MovedPosition]) -> Iterator[MovedPosition]:
    """Move each group's positions, all or none; whether one has members is decided as it is done."""
    for group, moved in groupby(positions, attrgetter("group")):
        own = list(moved)
        refusal = ""
        try:
            set_offsets(lake, log, group, {(one.topic, one.partition): CommittedOffset(one.after) for one in own})
        except TidelogError as e:
            if e.retriable:
                raise
            refusal = str(e)
        yield from (replace(one, why_not=refusal and (one.why_not or refusal)) for one in own)


# --- what came after the cut, by the log ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _SinceCut:
    """What a topic's log says of the time after a cut.

    `applied`: (transactional id, marker) of transactions. `erased`: the first entry that erased keys.
    """

    applied: frozenset[tuple[str, int]]
    erased: int | None


def _look(lake: Lake, cut: Cut, topic: str, state: TopicState) -> _SinceCut | None:
    """None where the log is not kept back to the cut."""
    applied: set[tuple[str, int]] = set()
    erased: int | None = None
    try:
        for entry in decoded_entries(lake.storage, topic, range(_first(cut, topic), state.version + 1)):
            applied.update(markers(entry.actions).items())
            if erased is None and entry.info.operation == "FORGET":
                erased = entry.version
    except ObjectNotFoundError:
        return None
    return _SinceCut(frozenset(applied), erased)


def _first(cut: Cut, topic: str) -> int:
    """The first entry of a topic after a cut."""
    table = cut.tables.get(topic)
    return 0 if table is None else table.version + 1


def _crossing(
    lake: Lake, cut: Cut, states: Mapping[str, TopicState], looks: Mapping[str, _SinceCut | None]
) -> dict[str, tuple[str, ...]]:
    """{transactional id: other topics} of the transactions after the cut that wrote to these topics and to others.

    `looks`: at those of the topics that were looked at. A topic that can't be opened may have a part of each.
    """
    others = [topic for topic in lake.topics() if topic not in states]
    if not others:
        return {}
    crossing: dict[str, set[str]] = {}
    applied = {topic: _applied_since(lake, cut, topic, state, looks.get(topic)) for topic, state in states.items()}
    wanted = {marker for found in applied.values() for marker in found}
    if not wanted:
        return {}
    for topic in others:
        try:
            state = lake.peek(topic)
            theirs = set() if state is None else _applied_since(lake, cut, topic, state)
        except TidelogError as e:
            if e.retriable:
                raise
            theirs = {(name, None) for name, _ in wanted}
        for name, number in theirs:
            if (name, number) in wanted or (name, None) in wanted or (number is None and _named(name, wanted)):
                crossing.setdefault(name, set()).add(topic)
    return {name: tuple(sorted(topics)) for name, topics in sorted(crossing.items())}


def _named(name: str, markers_: set[tuple[str, int | None]]) -> bool:
    return any(other == name for other, _ in markers_)


def _applied_since(
    lake: Lake, cut: Cut, topic: str, state: TopicState, look: _SinceCut | None = None
) -> set[tuple[str, int | None]]:
    """(transactional id, marker) of what a topic applied after the cut; (id, None) of all, where its log can't say."""
    if look is None and state.version - _first(cut, topic) < MOST_ENTRIES:
        look = _look(lake, cut, topic, state)
    if look is not None:
        return set(look.applied)
    prefix = layout.TRANSACTION_PREFIX
    return {(app_id.removeprefix(prefix), None) for app_id in state.txns if app_id.startswith(prefix)}
