"""Which partition a record goes to: Kafka's rules as plain functions over Arrow columns.

Nothing here has state, a clock or randomness of its own. Where Kafka's partitioners keep a counter or draw a
number, the caller passes one in (`turn`, `start`, `sticky`), so the same call gives the same partitions.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidelog.log.base.errors import (
    InvalidConfigError,
    InvalidPartitionsError,
    InvalidRecordError,
    UnknownPartitionError,
)
from tidelog.log.base.typed_values import nearest
from tidelog.log.records import key_hashes

I32 = npt.NDArray[np.int32]

# A caller's own rule: keys and the number of partitions -> one partition per key (integers; null: the sticky one).
Partitioner = Callable[[pa.Array, int], Any]

# keys, number of partitions, the caller's counter -> one partition per key
_Rule = Callable[[pa.Array | pa.ChunkedArray, int, int], I32]

_MASK_64: Final = (1 << 64) - 1


def partition(keys: pa.Array | pa.ChunkedArray, n: int) -> I32:
    """Partition of each key among `n` by Kafka's default rule; -1 where the key is null.

    An empty key is a key: only null leaves the choice to `sticky`. Example: murmur2 of `foobar` is -790332482,
    so `partition(pa.array([b"foobar"]), 8)` is `[(-790332482 & 0x7fffffff) % 8]` = `[6]`.
    Raises InvalidPartitionsError when `n` is below 1. Source: `BuiltInPartitioner.partitionForKey`.
    """
    return _by_hash(key_hashes.murmur2, keys, n)


def murmur3(keys: pa.Array | pa.ChunkedArray, n: int) -> I32:
    """Partition of each key among `n` by `(mmh3.hash(key) & 0x7fffffff) % n`; -1 where the key is null."""
    return _by_hash(key_hashes.murmur3, keys, n)


def sticky(turn: int, n: int) -> int:
    """Return the one partition that all null keys of an append go to: Kafka's sticky choice.

    `turn`: a counter that the caller moves on by one per append (from a start of its own choosing), so that
    appends fill the partitions in turn and each makes one segment, not `n`.
    """
    _check_count(n)
    return turn % n


def round_robin(start: int, count: int, n: int) -> I32:
    """Partitions of `count` records one after another from `start`: `round_robin(2, 4, 3)` is `[2, 0, 1, 2]`.

    Keys don't matter, as in Kafka's RoundRobinPartitioner. The next call's `start` is `start + count`.
    """
    _check_count(n)
    return ((start % n + np.arange(count, dtype=np.int64)) % n).astype(np.int32)


def random(seed: int, count: int, n: int) -> I32:
    """Partitions of `count` records spread evenly without order, the same for the same `seed`. Keys don't matter.

    The numbers are SplitMix64's.
    """
    _check_count(n)
    steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = steps + np.uint64(seed & _MASK_64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) % np.uint64(n)).astype(np.int32)


def assign(
    keys: pa.Array | pa.ChunkedArray,
    explicit: pa.Array | pa.ChunkedArray | None,
    n: int,
    *,
    partitioner: str | Partitioner = "murmur2",
    sticky: int,
) -> I32:
    """Partition of each record among `n`: the explicit one where there is one, else the partitioner's.

    `explicit` is an integer column, or None; null in it leaves that record to the partitioner. `partitioner` is one
    of PARTITIONERS or a callable, which sees the keys of the records that are left and answers with one partition
    each (null: the sticky one). `sticky` is the counter or seed of `sticky`, `round_robin` and `random`.

    Raises UnknownPartitionError for a partition outside 0 to n - 1, InvalidConfigError for an unknown partitioner
    or one that answers badly, InvalidRecordError for columns of the wrong type or length.
    """
    _check_count(n)
    rule = _rule(partitioner)
    if explicit is None or explicit.null_count == len(explicit) == len(keys):
        return rule(keys, n, sticky)
    if len(explicit) != len(keys):
        raise InvalidRecordError(
            f"{len(explicit)} partitions were given for {len(keys)} keys: each record has one row of both columns."
        )
    chosen = _checked(explicit, n)
    if explicit.null_count:
        left = np.asarray(explicit.is_null())
        chosen[left] = rule(keys.filter(pa.array(left)), n, sticky)
    return chosen


def _by_hash(function: Callable[[Any], key_hashes.U32], keys: pa.Array | pa.ChunkedArray, n: int) -> I32:
    _check_count(n)
    if keys.null_count == len(keys) and keys.type == pa.binary():  # a producer without keys
        return np.full(len(keys), -1, np.int32)
    # Kafka's toPositive: the sign bit is dropped, not the sign
    partitions = ((function(keys) & np.uint32(0x7FFFFFFF)) % np.uint32(n)).astype(np.int32)
    if keys.null_count:
        partitions[np.asarray(keys.is_null())] = -1
    return partitions


def _keyed(by_key: Callable[[Any, int], I32]) -> _Rule:
    """Return the rule that sends keys by `by_key` and null keys to the sticky partition."""

    def rule(keys: pa.Array | pa.ChunkedArray, n: int, turn: int) -> I32:
        if n == 1 and keys.type == pa.binary():
            return np.zeros(len(keys), np.int32)
        partitions = by_key(keys, n)
        partitions[partitions < 0] = sticky(turn, n)
        return partitions

    return rule


_RULES: Final[Mapping[str, _Rule]] = {
    "murmur2": _keyed(partition),
    "murmur3": _keyed(murmur3),
    "round_robin": lambda keys, n, start: round_robin(start, len(keys), n),
    "random": lambda keys, n, seed: random(seed, len(keys), n),
}

PARTITIONERS: Final = tuple(_RULES)


def _rule(partitioner: str | Partitioner) -> _Rule:
    if isinstance(partitioner, str):
        rule = _RULES.get(partitioner)
        if rule is None:
            near = nearest(partitioner, PARTITIONERS)
            hint = f" Did you mean {near!r}?" if near else ""
            raise InvalidConfigError(
                f"Unknown partitioner {partitioner!r}.{hint} Give one of {', '.join(PARTITIONERS)}, or a callable "
                "that takes the keys and the number of partitions."
            )
        return rule
    if not callable(partitioner):
        raise InvalidConfigError(
            f"A partitioner is a name or a callable, not {type(partitioner).__name__}. Give one of "
            f"{', '.join(PARTITIONERS)}, or a callable that takes the keys and the number of partitions."
        )
    return _custom(partitioner)


def _custom(partitioner: Partitioner) -> _Rule:
    name = getattr(partitioner, "__qualname__", type(partitioner).__qualname__)

    def refused(what: str) -> InvalidConfigError:
        return InvalidConfigError(f"Partitioner {name} answered {what}: it must return one integer per key.")

    def rule(keys: pa.Array | pa.ChunkedArray, n: int, turn: int) -> I32:
        whole = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
        answer = partitioner(whole, n)
        try:
            column = answer if isinstance(answer, pa.Array | pa.ChunkedArray) else pa.array(answer)
        except (pa.ArrowException, TypeError) as error:
            raise refused(f"with {type(answer).__name__}, which is no array") from error
        if len(column) != len(whole):
            raise refused(f"{len(column)} partitions for {len(whole)} keys")
        if column.null_count == len(column):
            return np.full(len(column), sticky(turn, n), np.int32)
        if not pa.types.is_integer(column.type):
            raise refused(f"with {column.type}")
        try:
            partitions = _checked(column, n)
        except UnknownPartitionError as error:
            raise UnknownPartitionError(f"Partitioner {name}: {error}") from None
        if column.null_count:
            partitions[np.asarray(column.is_null())] = sticky(turn, n)
        return partitions

    return rule


def _checked(partitions: pa.Array | pa.ChunkedArray, n: int) -> I32:
    """Return the partitions as int32, 0 where null; raise where one is none of the topic's."""
    if not pa.types.is_integer(partitions.type):
        raise InvalidRecordError(
            f"A partition column of type {partitions.type} can't be used: partitions are integers. Cast it to int."
        )
    numbers = np.asarray(pc.fill_null(partitions, 0) if partitions.null_count else partitions)
    wrong = np.flatnonzero((numbers < 0) | (numbers >= n))
    if len(wrong):
        row = int(wrong[0])
        raise UnknownPartitionError(
            f"Partition {numbers[row]} in row {row} does not exist: the topic's {n} partitions are numbered 0 to "
            f"{n - 1}. Give one of those, or null to let the partitioner choose."
        )
    return numbers.astype(np.int32)


def _check_count(n: int) -> None:
    if n < 1:
        raise InvalidPartitionsError(
            f"{n} partitions can take no record: a topic has at least 1. Pass the topic's number of partitions."
        )
