"""What is wrong with a lake, as a table of rules: each looks at the facts, names one kind of trouble, and its cure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tidelog.check.store import TrialResult
from tidelog.groups.model import GroupPhase, StreamsGroup
from tidelog.groups.rules.modern.topics import assignable
from tidelog.groups.rules.streams.configuring import configure
from tidelog.groups.topology import StreamsTopology
from tidelog.log.base.errors import InvalidTopologyError
from tidelog.operations.health import LakeFacts
from tidelog.operations.maintenance import newest_whole_run
from tidelog.operations.mirrors import LATE_MS
from tidelog.operations.snapshots import LakeSnapshot

_HOUR_MS: Final = 3_600_000
# Of a disk: below the first, writers soon stop; below the second, merging has no room.
_FULL, _NEARLY_FULL = 0.03, 0.10
_LITTLE_BYTES: Final = 2 << 30
# Small files in a topic from which reading it costs more than its bytes.
_MANY_SMALL: Final = 1_000
# Checkpoints that a topic may be behind.
_INTERVALS: Final = 5
_LATE_S: Final = 3_600
# What an inactive slot may keep: a few segments of PostgreSQL's log.
_HELD_BYTES: Final = 64 << 20
# A mirror says something each second, unless a round takes longer; one of this age is gone.
_MIRROR_SILENT_MS: Final = 60_000


class Level(StrEnum):
    """`error`: records can't be written or read, or may be lost. `warning`: it will come to that, or costs too much."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A trouble: what is wrong, and what to do. `rule`: its name, which never changes."""

    rule: str
    level: Level
    what: str
    do: str


Rule = Callable[[LakeFacts], Iterator[Diagnosis]]
_RULES: dict[str, Rule] = {}


def examined(facts: LakeFacts) -> list[Diagnosis]:
    """All that is wrong, errors first."""
    found = [finding for rule in _RULES.values() for finding in rule(facts)]
    return sorted(found, key=lambda one: one.level is not Level.ERROR)


def rules() -> list[str]:
    """The names of all rules, in the order in which they look."""
    return list(_RULES)


def _rule(name: str, level: Level) -> Callable[[Callable[[LakeFacts], Iterator[tuple[str, str]]]], Rule]:
    """Decorate a rule, which yields (what is wrong, what to do)."""

    def add(look: Callable[[LakeFacts], Iterator[tuple[str, str]]]) -> Rule:
        def run(facts: LakeFacts) -> Iterator[Diagnosis]:
            for what, do in look(facts):
                yield Diagnosis(name, level, what, do)

        _RULES[name] = run
        return run

    return add


@_rule("store-unreachable", Level.ERROR)
def _store_unreachable(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    if facts.store_problem:
        yield (
            f"The store can't be used: {facts.store_problem}",
            "See that the address, the network and the credentials are right, and that the user may write there.",
        )


@_rule("store-dishonest", Level.ERROR)
def _store_dishonest(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    for trial in facts.store.trials if facts.store else ():
        if trial.verdict is TrialResult.FAILS:
            yield (
                f"The store does not do what a log needs ({trial.demand}): {trial.seen}",
                "Stop all writers now: records may be lost. See docs/object-stores.md for stores that are fit.",
            )


@_rule("store-doubtful", Level.WARNING)
def _store_doubtful(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    for trial in facts.store.trials if facts.store else ():
        if trial.verdict is TrialResult.WARNING:
            yield (
                trial.seen,
                "Set this machine's clock by NTP ('timedatectl status'), and that of the store's server.",
            )


@_rule("no-lake", Level.ERROR)
def _no_lake(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    if facts.lake_problem:
        yield (
            f"The lake can't be opened: {facts.lake_problem}",
            "Check the address; 'tidelog check' says what is broken, 'tidelog check --repair' how to mend it.",
        )


@_rule("format-unknown", Level.ERROR)
def _format_unknown(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    if facts.format_problem:
        yield (
            f"The lake is of another version: {facts.format_problem}",
            "Install the tidelog that wrote it ('tidelog --version' says which this one is); change nothing by hand.",
        )


@_rule("disk-full", Level.ERROR)
def _disk_full(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    if facts.space and _is_full(facts.space.free, facts.space.total, _FULL):
        yield _of_space(facts.space.free, facts.space.total)


@_rule("disk-nearly-full", Level.WARNING)
def _disk_nearly_full(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    space = facts.space
    if space and not _is_full(space.free, space.total, _FULL) and _is_full(space.free, space.total, _NEARLY_FULL):
        yield _of_space(space.free, space.total)


def _is_full(free: int, total: int, part: float) -> bool:
    return free < min(total * part, _LITTLE_BYTES * part / _FULL)


def _of_space(free: int, total: int) -> tuple[str, str]:
    return (
        f"The disk has {free / 2**30:.1f} GiB left of {total / 2**30:.0f}.",
        "Free some, or give topics a shorter retention ('tidelog topic alter ORDERS --config retention.ms=…') and run"
        " 'tidelog maintain', which deletes what expired.",
    )


@_rule("topic-broken", Level.ERROR)
def _topic_broken(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    for name, why in facts.snapshot.broken.items() if facts.snapshot else ():
        yield (
            f"Topic '{name}' can't be read: {why}",
            f"'tidelog check {name}' names all that is broken; 'tidelog check {name} --repair' says how to mend it.",
        )


@_rule("topic-config", Level.WARNING)
def _topic_config(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    for name, topic in facts.topics.items():
        if topic.config_problem:
            yield (
                f"Topic '{name}' has a configuration that contradicts itself: {topic.config_problem}",
                f"Set it right with 'tidelog topic alter {name}': until then maintenance leaves the topic alone.",
            )


@_rule("brokers-silent", Level.ERROR)
def _brokers_silent(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    for number, why in sorted(facts.silent_brokers.items()):
        yield (
            f"Broker {number} is said to run, and takes no connection from here ({why}).",
            "Look at its log and start it again; a broker that is gone for good leaves the cluster by itself within"
            " seconds while another one runs.",
        )


@_rule("transaction-stuck", Level.ERROR)
def _transaction_stuck(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    for transaction in facts.snapshot.open_transactions if facts.snapshot else ():
        age_s = (facts.now_ms - transaction.began_ms) / 1000
        if age_s * 1000 > _HOUR_MS:
            name = transaction.key.transactional_id
            yield (
                f"Transaction {transaction.key.number} of '{name}' is open for {_age(age_s)}: what it staged"
                " can't be deleted, and readers of groups that it commits to wait.",
                f"See that its producer lives; else 'tidelog transaction abort {name}'.",
            )


@_rule("transactions-undone", Level.WARNING)
def _transactions_undone(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    if facts.snapshot and facts.snapshot.undone:
        yield (
            f"{facts.snapshot.undone} transactions are committed and not yet in all of their topics.",
            "Any reader or writer of those topics completes them; 'tidelog transaction list' names them. If they stay,"
            " 'tidelog check' says why.",
        )


@_rule("maintenance-due", Level.WARNING)
def _maintenance_due(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    if facts.snapshot is None or not facts.snapshot.topics:
        return
    whole = newest_whole_run(facts.runs)
    if whole is None:
        said = "No maintenance of the whole lake is on record: what expires is not deleted, and small files stay."
    elif facts.now_ms - whole.at_ms > _HOUR_MS:
        said = f"The last maintenance of the whole lake was {_age((facts.now_ms - whole.at_ms) / 1000)} ago."
    else:
        return
    yield (
        said,
        "Run 'tidelog maintain --every 5m' as a service (docs/maintenance.md), or brokers without '--no-maintain'.",
    )


@_rule("maintenance-failed", Level.ERROR)
def _maintenance_failed(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    if facts.runs and facts.runs[0].failures:
        first, *others = facts.runs[0].failures
        more = f" (and {len(others)} more)" if others else ""
        yield (
            f"The last maintenance failed in part: {first}{more}",
            "'tidelog maintain' says it again with all of it; what it can't do it leaves as it is.",
        )


@_rule("small-files", Level.WARNING)
def _small_files(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    for name, topic in facts.topics.items():
        if topic.small >= _MANY_SMALL:
            yield (
                f"Topic '{name}' has {topic.small:,} small files of {topic.files:,}: reading it is slow.",
                f"'tidelog maintain --topic {name}' merges them; let producers linger longer if they come back.",
            )


@_rule("checkpoint-late", Level.WARNING)
def _checkpoint_late(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    for name, topic in facts.topics.items():
        behind = topic.entries_since_checkpoint
        if behind is not None and behind > _INTERVALS * topic.checkpoint_interval:
            yield (
                f"Topic '{name}' has {behind:,} entries since its newest checkpoint: opening it is slow, and its log"
                " can't be trimmed.",
                "Writers checkpoint in the background: see their logs for why they don't. 'tidelog check' says what is"
                f" wrong with it; 'tidelog maintain --topic {name}' writes one.",
            )


@_rule("cut-costs", Level.WARNING)
def _cut_costs(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    costly = {name: held for name, held in sorted(facts.kept_cuts.items()) if held >= _LITTLE_BYTES}
    if len(costly) == 1:
        [(name, held)] = costly.items()
        yield (
            f"Cut '{name}' is kept, and {held / 2**30:.1f} GiB of files that left their tables since stay for it.",
            f"Delete it when nothing needs it any more ('tidelog cut delete {name}'), and run 'tidelog maintain'.",
        )
    elif costly:
        each = ", ".join(f"'{name}' ({held / 2**30:.1f} GiB)" for name, held in costly.items())
        yield (
            f"Cuts {each} are kept, and {facts.kept_bytes / 2**30:.1f} GiB of files in all that left their tables since"
            " stay for them; several may hold one file.",
            "Delete those that nothing needs any more ('tidelog cut delete NAME'), and run 'tidelog maintain'.",
        )


@_rule("holds-abandoned", Level.WARNING)
def _holds_abandoned(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    for name, topic in facts.topics.items():
        if topic.abandoned_holds:
            yield (
                f"Topic '{name}' has {topic.abandoned_holds} holds of jobs that are gone.",
                "They hold nothing any more; 'tidelog maintain' removes them.",
            )


@_rule("group-behind", Level.WARNING)
def _group_behind(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    for name, group in facts.groups.items():
        seconds = group.seconds(facts.now_ms)
        if seconds > _LATE_S and group.records:
            reads = "has 1 member" if group.members == 1 else f"has {group.members or 'no'} members"
            view = facts.snapshot.groups.get(name) if facts.snapshot else None
            if view is not None and view.group is not None:
                reads = f"({view.group.type}, {view.group.phase}) {reads}"
            yield (
                f"Group '{name}' {reads} and is {group.records:,} records behind, the oldest of {_age(seconds)}.",
                f"'tidelog group describe {name}' shows where. Start its consumers, or 'tidelog group delete {name}'"
                " if it is not needed any more.",
            )


@_rule("group-not-ready", Level.ERROR)
def _group_not_ready(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    snapshot = facts.snapshot or LakeSnapshot(facts.now_ms)
    for name, view in snapshot.groups.items():
        group = view.group
        if isinstance(group, StreamsGroup) and group.phase is GroupPhase.NOT_READY and group.topology is not None:
            yield (
                f"The application of streams group '{name}' does not run: {_unready(group.topology, snapshot)}",
                "Create the topics that it reads, with equally many partitions where it joins them; it begins by"
                f" itself. 'tidelog group describe {name}' shows its members.",
            )


def _unready(topology: StreamsTopology, snapshot: LakeSnapshot) -> str:
    """What a topology lacks, in the words that its members hear."""
    topics = {topic: snapshot.topics.get(topic) for topic in topology.required}
    try:
        problem = configure(topology, assignable(topics)).problem
    except InvalidTopologyError as e:
        return str(e)
    return "its members have not yet heard that its topics are there." if problem is None else problem[1]


@_rule("connector-failed", Level.ERROR)
def _connector_failed(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    for name, health in facts.connectors.items():
        if health.failed:
            run, why = next(iter(health.failed.items()))
            more = f" (and {len(health.failed) - 1} more)" if len(health.failed) > 1 else ""
            yield (
                f"Connector '{name}' has failed ({run}{more}): {why}",
                f"'tidelog connect status {name}' has the whole trace. Mend what it says, then restart it:"
                f" POST /connectors/{name}/restart?includeTasks=true&onlyFailed=true at a worker.",
            )


@_rule("connector-silent", Level.ERROR)
def _connector_silent(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    for name, health in facts.connectors.items():
        if health.silent:
            workers = ", ".join(sorted({*health.silent.values()}))
            yield (
                f"Connector '{name}' is said to run ({', '.join(health.silent)}), and its worker {workers} is not heard"
                " of.",
                "Look at that worker's log and start it again, or any other: 'tidelog connect start'.",
            )


@_rule("connector-unassigned", Level.ERROR)
def _connector_unassigned(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    for name, health in facts.connectors.items():
        if health.unassigned:
            yield (
                f"No worker runs connector '{name}' ({', '.join(health.unassigned)}).",
                "Start a worker with the connector's group.id: 'tidelog connect start'.",
            )


@_rule("connector-retrying", Level.WARNING)
def _connector_retrying(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    for name, one in facts.connectors.items():
        for run, why in one.retrying.items():
            yield (
                f"Connector '{name}' ({run}) can't go on, and tries again: {why}",
                "See that the system it names answers; the connector then goes on by itself.",
            )


@_rule("slot-inactive", Level.WARNING)
def _slot_inactive(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    for slot in facts.slots:
        if slot.problem or slot.active or slot.held_bytes < _HELD_BYTES:
            continue
        whose = f"of connector '{slot.connector}'" if slot.connector else "of no connector of this lake"
        yield (
            f"Replication slot {slot.slot} in {slot.database}, {whose}, has no reader and keeps"
            f" {slot.held_bytes / 2**20:,.0f} MiB of PostgreSQL's log: its disk fills.",
            f"Let its connector run again; a slot that is not needed any more goes by SELECT"
            f" pg_drop_replication_slot('{slot.slot}').",
        )


@_rule("mirror-silent", Level.ERROR)
def _mirror_silent(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    if not facts.follows:
        return
    said = facts.mirror
    if said is None:
        what = "and no mirror ever said anything."
    elif said.ended:
        what = f"and its mirror was stopped {_age((facts.now_ms - said.now_ms) / 1000)} ago."
    elif facts.now_ms - said.now_ms > _MIRROR_SILENT_MS:
        what = f"and its mirror was last heard of {_age((facts.now_ms - said.now_ms) / 1000)} ago."
    else:
        return
    yield (
        f"The lake follows {facts.follows}, {what}",
        "Start 'tidelog mirror start' again; where the source is lost, 'tidelog mirror promote' makes this lake one of"
        " its own.",
    )


@_rule("mirror-problem", Level.ERROR)
def _mirror_problem(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    said = facts.mirror
    if said is None or said.ended:
        return
    for why in (said.problem, *(f"{name}: {one.problem}" for name, one in said.tables.items() if one.problem)):
        if why:
            yield (
                f"The mirror does not ship all of {facts.follows}: {why}",
                "'tidelog mirror status' has all tables; see that both stores answer, and the mirror's log.",
            )


@_rule("mirror-behind", Level.WARNING)
def _mirror_behind(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    said = facts.mirror
    if said is not None and not said.ended and said.behind_ms > LATE_MS:
        yield (
            f"The mirror is {said.behind_entries:,} entries behind {facts.follows}, the oldest of"
            f" {_age(said.behind_ms / 1000)}.",
            "It catches up by itself where the network and both stores are fast enough; 'tidelog mirror status' shows"
            " how it goes.",
        )


@_rule("versions", Level.WARNING)
def _versions(facts: LakeFacts) -> Iterator[tuple[str, str]]:
    for name, (there, needed) in facts.misfits.items():
        yield f"{name} is {there}, and tidelog works with {needed}.", f"pip install '{name}{needed}'"


def _age(seconds: float) -> str:
    """As people say it.

    >>> _age(40), _age(600), _age(90_000)
    ('40 s', '10 min', '25 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3_600:.0f} h"
