"""What happened to a group, read off the bytes that its log was given and what its consumers said: no product code.

The checks that can be made at once are made here; `groups_sim_run` makes those that need the whole run.
"""

import base64
import json
import struct
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from sim_journal import Journal
from sim_scheduler import Process

Place = tuple[str, int]
ENTRIES = "__consumer_offsets/_delta_log/"
LEASES = "/leases/"


@dataclass(eq=False)
class Consumer:
    """A consumer as it sees itself. `since`: when it last was in a generation, by the scheduler's clock."""

    process: Process
    instance_id: str | None
    member_id: str = ""
    generation: int = -1
    owned: frozenset[Place] = frozenset()
    failed: bool = False
    left: bool = False
    membership: Any = None


@dataclass
class GroupHistory(Journal):
    """The run's record, and what is wrong with it."""

    strategy: str
    rows: list[tuple[float, str, dict]] = field(default_factory=list)  # time, process, group or offset row
    group: dict = field(default_factory=dict)  # the newest row of the group
    committed: dict[Place, int] = field(default_factory=dict)
    shares: dict[int, dict[str, frozenset[Place]]] = field(default_factory=lambda: defaultdict(dict))
    consumers: list[Consumer] = field(default_factory=list)
    processed: dict[Place, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    leases: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    frozen: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    homes: dict[str, str] = field(default_factory=dict)  # by member: its process
    counts: Counter = field(default_factory=Counter)

    # --- the storage's observer ----------------------------------------------------------------------------

    def called(self, process: Process, method: str, path: str, result: object) -> None:
        if method == "FROZEN":
            self.counts["frozen"] += 1
            now = self.scheduler.now
            self.frozen[process.name].append((now, now + float(path.removesuffix("s"))))
        if method in ("FROZEN", "put_if_absent", "put"):
            self.note(f"{process.name}: {method} {path} {result if isinstance(result, str | bool) else ''}")

    def stored(self, method: str, path: str, data: bytes) -> None:
        if LEASES in path:
            name = json.loads(data)["member"]
            self.leases[name].append(self.scheduler.now)
            self.homes[name] = self.scheduler.current.process.name
        elif path.startswith(ENTRIES) and path.endswith(".json"):
            self._entry(data)

    def _entry(self, data: bytes) -> None:
        for line in data.decode().splitlines():
            for row in json.loads(line).get("commitInfo", {}).get("tidelog", {}).get("rows", []):
                self.rows.append((self.scheduler.now, self.scheduler.current.process.name, row))
                if row["kind"] == "group":
                    self._group(row)
                else:
                    self._offset(row)

    # --- rows, in log order --------------------------------------------------------------------------------

    def _group(self, row: dict) -> None:
        before, self.group = self.group, row
        generation = row["generation"]
        phase = row["phase"]
        self.counts[f"phase {phase}"] += 1
        self.note(f"GROUP {phase} {generation} {[m['member_id'] for m in row['members']]}")
        if generation < before.get("generation", 0):
            self.violate(f"generation {generation} follows {before['generation']}")
        self._judge_evictions(before, row)
        if phase == "Stable":
            self._judge_shares(row)

    def _judge_shares(self, row: dict) -> None:
        owner: dict[Place, str] = {}
        for member in row["members"]:
            for place in partitions_of(base64.b64decode(member["assignment"])):
                if place in owner:
                    self.violate(f"{place} is {member['member_id']}'s and {owner[place]}'s in one generation")
                owner[place] = member["member_id"]
        names = {m["member_id"]: m.get("instance_id") or m["member_id"] for m in row["members"]}
        shares = {names[name]: frozenset(p for p, o in owner.items() if o == name) for name in names}
        first = self.shares.setdefault(row["generation"], shares)
        if first != shares:
            self.violate(f"generation {row['generation']} was shared out twice: {first} and {shares}")

    def _judge_evictions(self, before: dict, row: dict) -> None:
        """A member that another one evicted must have been silent, or have kept a rebalance waiting."""
        process, now = self.scheduler.current.process, self.scheduler.now
        kept = {m["member_id"] for m in row["members"]} | {m.get("instance_id") for m in row["members"]}
        for member in before.get("members", []):
            name = member["member_id"]
            if name in kept or member.get("instance_id") in kept - {None}:
                continue
            if self.homes.get(name) == process.name:
                self.counts["left by itself"] += 1
                continue
            self.counts["evicted"] += 1
            late = (before["phase"] != "Stable" and before["generation"] + 1 == row["generation"]) or (
                before["phase"] == "CompletingRebalance"
            )
            if not late and not any(self._silent(process.name, name, at) for at in self._moments(process.name, now)):
                self.violate(f"{name} was evicted by {process.name} but gave signs of life")

    def _moments(self, process: str, now: float) -> list[float]:
        """When the evictor may have looked last: some calls ago, or before it froze in between."""
        return [now, now - 1, now - 10, *(since for since, _ in self.frozen[process] if now - 200 < since <= now)]

    def _silent(self, process: str, name: str, at: float) -> bool:
        """Whether the process was awake for half a session at least since the member's last sign before `at`."""
        last = max((put for put in self.leases[name] if put <= at), default=0.0)
        asleep, awake_from = 0.0, last
        for since, until in sorted(self.frozen[process]):  # a frozen member may be frozen again
            asleep += max(0.0, min(until, at) - max(since, awake_from))
            awake_from = max(awake_from, until)
        return at - last - asleep >= 3.0

    def _offset(self, row: dict) -> None:
        if row.get("deleted"):
            return
        place, offset, generation = (row["topic"], row["partition"]), row["offset"], row["generation"]
        self.counts["commits"] += 1
        self.note(f"COMMIT {place} {offset} of generation {generation}")
        if generation != self.group.get("generation"):
            self.violate(f"a commit of generation {generation} was taken in {self.group.get('generation')}")
        if offset < self.committed.get(place, 0) and not self._came_late(place, offset, generation):
            self.violate(f"the offset of {place} went back from {self.committed[place]} to {offset}")
        skipped = [o for o in range(self.committed.get(place, 0), offset) if o not in self.processed[place]]
        if skipped:
            self.violate(f"offsets {skipped} of {place} were committed, but nobody has processed them")
        self.committed[place] = offset

    def _came_late(self, place: Place, offset: int, generation: int) -> bool:
        """Whether a commit may take back a newer one, because its request came after the newer one's."""
        return False

    # --- what consumers say --------------------------------------------------------------------------------

    def assigned(self, consumer: Consumer, member_id: str, generation: int, owned: frozenset[Place]) -> None:
        """A consumer now owns these partitions."""
        consumer.member_id, consumer.generation, consumer.owned = member_id, generation, owned
        self.note(f"OWNS {member_id} {generation} {sorted(owned)}")
        members = {m["member_id"] for m in self.group["members"]}
        for other in self.consumers:
            both = other.owned & owned
            same = other.instance_id is not None and other.instance_id == consumer.instance_id
            if other is consumer or same or not both:
                continue
            if other.generation == generation:
                self.violate(f"{member_id} and {other.member_id} both own {sorted(both)} in generation {generation}")
            elif other.member_id in members and other.instance_id is None and self.group["generation"] == generation:
                self.violate(f"{member_id} got {sorted(both)}, which {other.member_id} has not given up")

    def gave_up(self, consumer: Consumer, partitions: frozenset[Place]) -> None:
        """A consumer no longer owns these."""
        consumer.owned -= partitions
        self.note(f"GAVE UP {consumer.member_id} {sorted(partitions)}")

    def killed(self, process: Process) -> None:
        self.counts["killed"] += 1
        super().killed(process)
        self.consumers = [c for c in self.consumers if c.process is not process]

    def process_record(self, place: Place, offset: int, value: str) -> None:
        """A consumer did its work on a record."""
        self.counts["processed"] += 1
        before = self.processed[place].setdefault(offset, value)
        if before != value:
            self.violate(f"record {offset} of {place} was {before} and is {value}")


def partitions_of(assignment: bytes) -> list[Place]:
    """The partitions in the bytes of an assignment, read by hand."""
    found: list[Place] = []
    if not assignment:
        return found
    (topics,), at = struct.unpack_from(">i", assignment, 2), 6
    for _ in range(topics):
        (length,) = struct.unpack_from(">h", assignment, at)
        topic = assignment[at + 2 : at + 2 + length].decode()
        (count,) = struct.unpack_from(">i", assignment, at + 2 + length)
        at += 6 + length
        found += [(topic, number) for number in struct.unpack_from(f">{count}i", assignment, at)]
        at += 4 * count
    return found
