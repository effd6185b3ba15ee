"""What happened to a group with members of both protocols, read off the bytes of its log: no product code."""

from dataclasses import dataclass, field
from typing import Any

from groups_sim_history import Consumer, GroupHistory, Place

CLASSIC, CONSUMER = "classic", "consumer"


@dataclass
class MixedHistory(GroupHistory):
    """The run's record. `modern`: the members' rows, `targets`: theirs, while the group is of the type consumer."""

    type: str = CLASSIC
    modern: dict[str, dict[str, Any]] = field(default_factory=dict)
    targets: dict[str, dict[str, Any]] = field(default_factory=dict)

    def _entry(self, data: bytes) -> None:
        super()._entry(data)
        self._judge_holders()

    def _group(self, row: dict) -> None:
        before = self.type
        self.type = row.get("type", CLASSIC)
        self.counts["turned up" if (before, self.type) == (CLASSIC, CONSUMER) else "wrote a group"] += 1
        if self.type == CLASSIC:
            if before == CONSUMER:
                self.counts["turned back"] += bool(row["members"])
                self.group = {"generation": self.group["generation"], "phase": "Stable", "members": []}
                self.modern, self.targets = {}, {}
            super()._group(row)
            return
        generation = row["group_epoch"]
        if generation < self.group.get("generation", 0):
            self.violate(f"epoch {generation} follows {self.group['generation']}")
        self.note(f"GROUP of epoch {generation}, assigned for {row['assignment_epoch']}")
        self.group = {"generation": generation, "assigned": row["assignment_epoch"], "phase": "", "members": []}

    def _offset(self, row: dict) -> None:
        if row["kind"] == "member":
            if row.get("deleted"):
                self.modern.pop(row["member_id"], None)
            elif self.type == CONSUMER:
                self.modern[row["member_id"]] = row
                self.note(f"MEMBER {row['member_id']} {row['member_epoch']} {_places(row, 'assigned')}")
        elif row["kind"] == "target":
            self.targets[row["member_id"]] = row
        elif row["kind"] == "offset" and not row.get("deleted"):
            if self.type == CONSUMER:
                epochs = {member["member_epoch"] for member in self.modern.values()}
                generation, self.group = self.group, self.group | {"generation": row["generation"]}
                super()._offset(row)
                self.group = generation
                if row["generation"] not in epochs:
                    self.violate(f"a commit of epoch {row['generation']} was taken, and members are in {epochs}")
            else:
                super()._offset(row)

    def _judge_holders(self) -> None:
        holders: dict[Place, str] = {}
        for name, row in self.modern.items():
            for place in {*_places(row, "assigned"), *_places(row, "revoking")}:
                if (other := holders.setdefault(place, name)) != name:
                    self.violate(f"{place} is held by {name} and {other}")

    def can_commit(self, consumer: Consumer) -> bool:
        """Whether a commit of a consumer would be taken now."""
        member_id, generation = consumer.membership.member_id, consumer.membership.generation
        if self.type == CONSUMER:
            row = self.modern.get(member_id)
            return row is not None and row["member_epoch"] == generation
        names = {member["member_id"] for member in self.group.get("members", [])}
        phase = self.group.get("phase")
        return member_id in names and self.group["generation"] == generation and phase != "CompletingRebalance"

    def assigned(self, consumer: Consumer, member_id: str, generation: int, owned: frozenset[Place]) -> None:
        """A consumer now owns these partitions: no other one that can commit does."""
        consumer.member_id, consumer.generation, consumer.owned = member_id, generation, owned
        self.note(f"OWNS {member_id} {generation} {sorted(owned)}")
        if not self.can_commit(consumer):
            return
        for other in self.consumers:
            both = other.owned & owned
            if other is not consumer and both and not other.process.dead and self.can_commit(other):
                self.violate(f"{member_id} and {other.member_id} both own {sorted(both)}, and both can commit")

    def at_rest(self, members: set[str], modern: bool) -> bool:
        """Whether the group is of the type that its members make it, and all of these have what they are to have."""
        if self.type == CLASSIC:
            named = {member["member_id"] for member in self.group.get("members", [])}
            return not modern and self.group.get("phase") == "Stable" and named == members
        settled = all(map(self._is_settled, self.modern.values()))
        newest = self.group["generation"] == self.group["assigned"]
        return modern and self.modern.keys() == members and settled and newest

    def _is_settled(self, member: dict[str, Any]) -> bool:
        is_classic = bool(member.get("protocols"))
        if member.get("revoking") or (is_classic and member["member_epoch"] != self.group["assigned"]):
            return False
        target = self.targets.get(member["member_id"], {})
        return set(_places(member, "assigned")) == set(_places(target, "target"))


def _places(row: dict[str, Any], column: str) -> list[Place]:
    return [(one["topic"], number) for one in row.get(column) or () for number in range(one["start"], one["end"])]
