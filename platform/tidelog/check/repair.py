"""Repair, executed: steps are tried on an overlay first, and taken on the store only if asked."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tidelog.check.dry_run import Overlay
from tidelog.check.listing import list_log
from tidelog.check.repair_plan import Operation, Plan, Refusal, Scene, Step, discards, plan_topic
from tidelog.check.report import Report
from tidelog.check.rows import machine_of
from tidelog.check.topic import read_log
from tidelog.log.base.clock import Clock, SystemIds
from tidelog.log.base.errors import ObjectNotFoundError, StorageError, UnsupportedFormatError
from tidelog.log.config.lake_file import lake_file, parse_follows
from tidelog.log.delta import layout
from tidelog.log.door.commit_loop import Door
from tidelog.log.rows.state import as_stored
from tidelog.log.rules.topics import Outcome, decide_take_back
from tidelog.log.state.topic_state import TopicState
from tidelog.log.storage.port import LeavesUnfinished, Storage
from tidelog.log.upkeep.topic_files import unfinished_in

# Each round of steps lets the next one see further into the log; no lake needs more.
_ROUNDS = 20


@dataclass(frozen=True, slots=True)
class Repair:
    """What a repair did, or would do.

    `report`: the check after the steps, as it would be when they were not taken (`executed` False). `skipped`:
    steps that were not taken because what they were to change had changed meanwhile.
    """

    uri: str
    executed: bool
    steps: tuple[Step, ...]
    skipped: tuple[Step, ...]
    refusals: tuple[Refusal, ...]
    report: Report

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "lake": self.uri,
            "executed": self.executed,
            "steps": [s.to_dict() for s in self.steps],
            "skipped": [s.to_dict() for s in self.skipped],
            "refusals": [r.to_dict() for r in self.refusals],
            "report": self.report.to_dict(),
        }


def mend(
    storage: Storage, topics: Sequence[str], execute: bool, clock: Clock, check: Callable[[Storage], Report]
) -> Repair:
    """Plan and take steps until none is left. `check` gives the report of the store as it then is."""
    now_ms = clock.now_ms()
    target: Storage = storage if execute else Overlay(storage, now_ms)
    followed = _followed(storage)
    taken: list[Step] = []
    skipped: list[Step] = []
    refusals: list[Refusal] = []
    for topic in ["", *topics]:
        for _ in range(_ROUNDS):
            plan = _left_to_the_mirror(_plan(target, topic, now_ms), followed)
            steps = [p for p in plan if isinstance(p, Step) and p not in taken and p not in skipped]
            if not steps:
                refusals.extend(p for p in plan if isinstance(p, Refusal))
                break
            for step in steps:
                (taken if _take(target, step, clock) else skipped).append(step)
    return Repair(storage.uri, execute, tuple(taken), tuple(skipped), tuple(refusals), check(target))


def _plan(storage: Storage, topic: str, now_ms: int) -> Plan:
    if topic:
        try:
            return plan_topic(Scene(storage, topic, *read_log(storage, topic), now_ms))
        except StorageError as e:
            if e.retriable:
                raise
            return [Refusal(topic, "folder", f"The store refuses to list or read it: {e}")]
    return [*_lake_file(storage), *discards("", unfinished_in(storage, ""), now_ms)]


def _followed(storage: Storage) -> str | None:
    """The address of the lake that this one follows; None for none, and where its own file can't be read."""
    try:
        follows = parse_follows(storage.get(layout.LAKE_FILE), storage.uri)
    except (ObjectNotFoundError, UnsupportedFormatError, ValueError, AttributeError):
        return None
    return None if follows is None else follows.source


def _left_to_the_mirror(plan: Plan, followed: str | None) -> Plan:
    """A plan in which no entry of a lake that follows `followed` is written: it would be none of the source's.

    Its brokers are its own, and so is their table.
    """
    if followed is None:
        return plan
    return [_refused_there(p, followed) if isinstance(p, Step) and _writes_entries(p) else p for p in plan]


def _writes_entries(step: Step) -> bool:
    return step.topic != layout.CLUSTER_TABLE and step.where.startswith("entry ")


def _refused_there(step: Step, followed: str) -> Refusal:
    why = (
        f"This lake follows {followed}, so that only its mirror writes entries: nothing is committed here. 'tidelog"
        " mirror start --discard-diverged' cuts the table off before this entry, and ships it again as the source has"
        " it. Where the source is lost, promote this lake ('tidelog mirror promote'), and repair it then."
    )
    return Refusal(step.topic, step.where, why)


def _lake_file(storage: Storage) -> Iterator[Step]:
    """A lake that lost its own file gets one, which nothing else dares to write: no default may come unasked."""
    if all(found.path != layout.LAKE_FILE for found in storage.list_after("")):
        what = "Write the lake's own file again, with all defaults. Set the lake's configuration again, if it had one."
        risk = "Topics that left retention, partitions or other keys to the lake go by Kafka's defaults from now on."
        yield Step("", layout.LAKE_FILE, what, risk, (Operation("create", layout.LAKE_FILE, data=lake_file({})),))


def _take(storage: Storage, step: Step, clock: Clock) -> bool:
    """Take a step; False when something that it was to change is not what it was any more."""
    return all(_operate(storage, operation, clock) for operation in step.operations)


def _operate(storage: Storage, operation: Operation, clock: Clock) -> bool:
    path = operation.path
    if operation.what == "take back":
        return _commit_taking_back(storage, path, clock)
    if operation.what in ("copy", "replace"):
        try:
            data = storage.get(path)
        except ObjectNotFoundError:
            return False
        if operation.what == "copy":
            storage.put_if_absent(operation.to, data)
        elif data != operation.seen:
            return False
        else:
            _put(storage, path, operation.data)
    elif operation.what == "create":
        return storage.put_if_absent(path, operation.data)
    elif operation.what == "write":
        _put(storage, path, operation.data)
    elif operation.what == "delete":
        storage.delete(path)
    elif isinstance(storage, LeavesUnfinished):
        storage.discard_unfinished(path)
    return True


def _commit_taking_back(storage: Storage, folder: str, clock: Clock) -> bool:
    """Take back by a commit what tidelog did not write; False when it is taken back by now."""

    now_ms = clock.now_ms()

    def decide(state: TopicState) -> Outcome[None]:
        outcome = decide_take_back(state, now_ms)
        return replace(outcome, actions=as_stored(state, outcome.actions))

    machine = machine_of(storage, folder, list_log(storage, folder))
    # Only here may a commit follow such an entry.
    door = Door(storage, folder, replace(machine, verify_head=lambda _: None), clock, SystemIds())
    return door.commit(decide).written


def _put(storage: Storage, path: str, data: bytes) -> None:
    storage.put(path, data)
    storage.sync([path])
