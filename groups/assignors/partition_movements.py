"""Which partitions have moved between which members while an assignment is evened out, so that moves cancel out."""

from tidelog.groups.assignors.input_view import Partition
from tidelog.groups.assignors.java_order import bucket, partition_hash, string_hash, table_size


class Movements:
    """Moves of partitions, each from its first holder to its present one.

    When a partition of a topic is about to go from `a` to `b` while another of the same topic went from `b` to `a`,
    that one goes back instead: two members never swap partitions of a topic. Example: after `record(("t", 0), "b",
    "a")`, `cheapest(("t", 1), "a", "b")` is `("t", 0)`. Source: `AbstractStickyAssignor.PartitionMovements`.
    """

    def __init__(self) -> None:
        self._ends: dict[Partition, tuple[str, str]] = {}
        self._moved: dict[tuple[str, str, str], _PartitionsOfOneTopic] = {}

    def cheapest(self, partition: Partition, holder: str, taker: str) -> Partition:
        """Return the partition to move to `taker` for the sake of `holder`: `partition`, or one that goes back.

        Where `partition` itself has moved before, its first holder counts, and the one that goes back is taken from
        there: not from `holder`.
        """
        topic = partition[0]
        origin = self._ends[partition][0] if partition in self._ends else holder
        opposite = self._moved.get((topic, taker, origin))
        return (topic, opposite.first()) if opposite else partition

    def record(self, partition: Partition, holder: str, taker: str) -> None:
        """Note that `partition` moved; two moves become one, and a move back home leaves nothing."""
        origin = holder
        if partition in self._ends:
            origin = self._forget(partition)
        if origin != taker:
            self._ends[partition] = origin, taker
            moved = self._moved.setdefault((partition[0], origin, taker), _PartitionsOfOneTopic(partition[0]))
            moved.add(partition[1])

    def state(self) -> frozenset[tuple[Partition, tuple[str, str]]]:
        """Return all moves, for comparison with the same at another time."""
        return frozenset(self._ends.items())

    def _forget(self, partition: Partition) -> str:
        origin, holder = self._ends.pop(partition)
        moved = self._moved[partition[0], origin, holder]
        moved.discard(partition[1])
        if not moved:
            del self._moved[partition[0], origin, holder]
        return origin


class _PartitionsOfOneTopic:
    """A set of partitions that knows which one a `java.util.HashSet` would give first."""

    def __init__(self, topic: str) -> None:
        self._topic_hash = string_hash(topic)
        self._hashes: dict[int, int] = {}
        self._size = table_size(0)

    def __len__(self) -> int:
        return len(self._hashes)

    def add(self, number: int) -> None:
        self._hashes[number] = partition_hash(self._topic_hash, number)
        self._size = table_size(len(self._hashes), self._size)  # tables grow and never shrink

    def discard(self, number: int) -> None:
        del self._hashes[number]

    def first(self) -> int:
        return min(self._hashes, key=lambda number: bucket(self._hashes[number], self._size))
