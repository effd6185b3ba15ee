"""What happened in a world of brokers: read off the bytes that its logs were given, and reported by its clients."""

import json
from collections import defaultdict
from dataclasses import dataclass

from groups_sim_history import GroupHistory
from history import Acked, History, Place, Sent, Stretch
from sim_scheduler import Actor, Process, Scheduler

CLUSTER = "__cluster/_delta_log/"
# The group whose members share the topics; others only keep what transactional producers have copied.
GROUP = "g"


@dataclass(frozen=True, slots=True)
class SentCommit:
    """A commit that a member sent to a broker's process. Times by the scheduler's clock."""

    broker: str
    member_id: str
    generation: int
    offsets: dict[Place, int]
    sent_s: float
    arrives_s: float

    @property
    def node(self) -> int:
        """The broker's id."""
        return int(self.broker.removeprefix("b").partition("@")[0])


class BrokersJournal(GroupHistory):
    """The run's record. What needs the whole run is in `seen`, for the checkers of what clients saw."""

    def __init__(self, scheduler: Scheduler, partitions: int, trace: list[str] | None = None) -> None:
        super().__init__(scheduler, "range", trace=trace)
        self.partitions = partitions
        self.seen = History()
        # Actors that answer clients, and so never wait for a store.
        self.in_loops: set[Actor] = set()
        # What brokers and clients raised, and no caller awaits.
        self.faults: list[str] = []
        # Values whose producer heard that they were there before, and not where.
        self.repeated: set[str] = set()
        self.records: dict[Place, dict[int, str]] = defaultdict(dict)
        self.epoch = 0
        self.serving: frozenset[int] = frozenset()
        # How many brokers lead each topic, by its id, when that was decided, and the least time between two decisions.
        self.leaders: dict[str, tuple[int, float]] = {}
        self.leaders_s = 0.0
        self._brokers: dict[int, dict] = {}
        self._leaders: dict[tuple[int, Place], int] = {}
        # By connection: what is said on two of them may come in any order.
        self._shown: dict[object, int] = {}
        # When a member last heard that it is one, and those that said that they leave.
        self.vouched: dict[str, float] = {}
        self.leaving: set[str] = set()
        self._commits: list[SentCommit] = []
        # By transactional id: the newest epoch that a producer was given; and what was committed past that.
        self._epochs: dict[str, int] = {}
        self.fenced: set[str] = set()
        # By value: its place, and the lower bound of its offset that the answer named.
        self.bounds: dict[str, tuple[Place, int]] = {}

    # --- the storage's observer ----------------------------------------------------------------------------

    def called(self, process: Process, method: str, path: str, result: object) -> None:
        if self.scheduler.current in self.in_loops:
            self.violate(f"{process.name} asks its store ({method} {path}) where it answers its clients")
        super().called(process, method, path, result)

    def stored(self, method: str, path: str, data: bytes) -> None:
        if path.startswith(CLUSTER) and path.endswith(".json"):
            self._cluster(data)
        elif "/leases/" not in path:
            super().stored(method, path, data)

    def _offset(self, row: dict) -> None:
        if row["kind"] == "offset" and row["group"] == GROUP:
            super()._offset(row)

    # --- the cluster, in log order -------------------------------------------------------------------------

    def _cluster(self, data: bytes) -> None:
        epoch, leaders = self.epoch, dict(self.leaders)
        for line in data.decode().splitlines():
            for row in json.loads(line).get("commitInfo", {}).get("tidelog", {}).get("rows", []):
                if row["kind"] == "epoch":
                    if row["epoch"] <= epoch:
                        self.violate(f"epoch {row['epoch']} follows {epoch}")
                    epoch = row["epoch"]
                elif row["kind"] == "leaders":
                    self._lead(row)
                else:
                    self._brokers[row["id"]] = row
                    self.counts[f"broker {row['state']}"] += 1
        states = {number: row["state"] for number, row in self._brokers.items()}
        running = frozenset(n for n, state in states.items() if state == "running")
        serving = running or frozenset(n for n, state in states.items() if state == "draining")
        self.note(f"CLUSTER {epoch} {states}")
        if serving != self.serving and epoch == self.epoch:
            self.violate(f"{sorted(serving)} serve in epoch {epoch}, in which {sorted(self.serving)} did")
        if leaders != self.leaders and epoch == self.epoch:
            self.violate(f"{self.leaders} lead topics in epoch {epoch}, in which {leaders} did")
        self.epoch, self.serving = epoch, serving

    def _lead(self, row: dict) -> None:
        topic, now_s = row.get("topic", ""), self.scheduler.now
        leaders = 1 if row.get("deleted") else row["leaders"]
        before, since_s = self.leaders.get(topic, (1, float("-inf")))
        self.counts["more leaders" if leaders > before or not leaders else "fewer leaders"] += 1
        if now_s - since_s < self.leaders_s * 0.98:  # clocks drift
            self.violate(f"{leaders} lead {topic}, {now_s - since_s} s after {before} did")
        self.leaders[topic] = leaders, now_s

    # --- what clients hear --------------------------------------------------------------------------------

    def led(self, broker: str, connection: object, epoch: int, place: Place, leader: int) -> None:
        """A broker's process named a partition's leader: it never goes back, and all say the same of one epoch."""
        if epoch < self._shown.get(connection, 0):
            self.violate(f"{broker} says epoch {epoch} after {self._shown[connection]}")
        self._shown[connection] = epoch
        first = self._leaders.setdefault((epoch, place), leader)
        if first != leader:
            self.violate(f"{broker} says that {leader} leads {place} in epoch {epoch}, others say {first}")

    def vouch(self, member_id: str, broker: int | None) -> None:
        """A member has just heard that it is one, of a broker that serves, by the log."""
        if broker in self.serving:
            self.vouched[member_id] = self.scheduler.now

    def commits(
        self, broker: str, member_id: str, generation: int, offsets: dict[Place, int], arrives_s: float
    ) -> None:
        """A member has sent a commit, which is at the broker's process then."""
        commit = SentCommit(broker, member_id, generation, dict(offsets), self.scheduler.now, arrives_s)
        self._commits.append(commit)

    def sent(self, topic: str, sender: str, number: int, value: str) -> None:
        """A producer is about to send a record."""
        self.seen.sent[value] = Sent(topic, sender, number)

    def acked(self, place: Place, base: int, values: list[str]) -> None:
        """A producer heard that its records are there, and where; -1: they had been there before."""
        self.counts["acknowledged"] += len(values)
        for at, value in enumerate(values):
            if base < 0:
                self.repeated.add(value)
            else:
                self.seen.acked.append(Acked(place, base + at, value))
                self._record(place, base + at, value)

    def read(self, stretch: Stretch, offset: int, value: str) -> None:
        """A consumer has a record."""
        self.counts["read"] += 1
        stretch.reads.append((offset, value))
        self._record(stretch.place, offset, value)

    # --- transactions --------------------------------------------------------------------------------------

    def began(self, transactional_id: str, epoch: int) -> None:
        """A producer was given an epoch of an id: those before it are fenced."""
        self._epochs[transactional_id] = max(epoch, self._epochs.get(transactional_id, -1))
        self.counts["init"] += 1

    def asks_to_commit(self, name: str, transactional_id: str, epoch: int) -> None:
        """A producer is about to ask for the first time that a transaction is committed."""
        self.seen.transactions[name].asked_to_commit = True
        if epoch < self._epochs[transactional_id]:
            self.counts["fenced before a commit"] += 1
            self.fenced.add(name)

    def told(self, name: str, what: str) -> None:
        """A producer heard what became of a transaction."""
        self.seen.transactions[name].told = what
        self.counts[what] += 1
        self.note(f"{what} {name}")

    def complaints(self) -> list[str]:
        """What the log says of transactions, against what only brokers' clients hear."""
        offsets = {value: (place, o) for place, one in self.seen.log.items() for o, _, value in one.records}
        found = [
            f"{name} is there, but its producer was fenced before it asked to commit"
            for name in sorted(self.fenced)
            if any(value in offsets for value in self.seen.transactions[name].values)
        ]
        for value, (place, bound) in self.bounds.items():
            where = offsets.get(value)
            if where is not None and (where[0] != place or where[1] < bound):
                found.append(f"{value} is at {where}, but the answer said {place} from {bound} on")
        return found

    # --- records -------------------------------------------------------------------------------------------

    def _record(self, place: Place, offset: int, value: str) -> None:
        before = self.records[place].setdefault(offset, value)
        if before != value:
            self.violate(f"record {offset} of {place} was {before} and is {value}")

    def _came_late(self, place: Place, offset: int, generation: int) -> bool:
        """Whether a commit may take back a newer one of the same member.

        Kafka takes commits of a group's current generation as they come to its coordinator, whatever they commit. A
        request that the network holds up, so that its client gives it up and commits again by another connection, takes
        the newer offset back when it comes at last. It may where it came after the newer one was sent, to a coordinator
        that serves, from one that is a member still. What a broker had before, it may not bring up again.
        """
        broker = self.scheduler.current.process.name
        members = {member["member_id"] for member in self.group["members"]}
        of_now = [one for one in self._commits if one.generation == generation and one.member_id in members]
        newer = next((one for one in of_now if one.offsets.get(place) == self.committed[place]), None)
        late = newer is not None and any(
            one.offsets.get(place) == offset
            and one.member_id == newer.member_id
            and one.sent_s < newer.sent_s <= one.arrives_s
            and one.broker == broker
            and one.node in self.serving
            for one in of_now
        )
        if late:
            self.counts["commits that came late"] += 1
        return late

    def _judge_evictions(self, before: dict, row: dict) -> None:
        """A member that is evicted from a group at rest has not just heard that it is one."""
        kept = {m["member_id"] for m in row["members"]} | {m.get("instance_id") for m in row["members"]}
        for member in before.get("members", []):
            name = member["member_id"]
            if name in kept or member.get("instance_id") in kept - {None}:
                continue
            if name in self.leaving:
                self.counts["left by itself"] += 1
                continue
            self.counts["evicted"] += 1
            heard = self.vouched.get(name)
            late = before["phase"] != "Stable"
            if not late and heard is not None and self.scheduler.now - heard < member["session_timeout_ms"] / 2000:
                self.violate(f"{name} was evicted by {self.scheduler.current.process.name} but gave signs of life")
