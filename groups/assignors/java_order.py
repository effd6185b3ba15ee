"""The two orders of names that decide Kafka's assignments: Java's comparison of strings, and a HashMap's walk.

A group may hold Java members, behind a broker, beside native ones, and its leader changes: partitions stay where they
are only if all leaders break ties alike. Where several members have the same right to a partition, Kafka's sticky
assignors take the one that they meet first while they walk a `java.util.HashMap`. That order is a plain function of the
names, so it is computed here: assignments don't depend on the order in which a caller lists members.
"""

from collections.abc import Iterable
from typing import Final

_SMALLEST_TABLE: Final = 16
_MASK_32: Final = (1 << 32) - 1


def utf16_key(name: str) -> bytes:
    """Sort key by UTF-16 code units, as `String.compareTo`; differs from Python's order beyond U+FFFF only."""
    return name.encode("utf-16-be", "surrogatepass")


def string_hash(name: str) -> int:
    """`String.hashCode` as an unsigned number of 32 bits: `string_hash("ab")` is 97 * 31 + 98 = 3105."""
    code = 0
    units = utf16_key(name)
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = 31 * code + (high << 8 | low) & _MASK_32
    return code


def partition_hash(topic_hash: int, partition: int) -> int:
    """`TopicPartition.hashCode`, unsigned, from its topic's hash."""
    return 31 * (31 + partition) + topic_hash & _MASK_32


def bucket(code: int, size: int) -> int:
    """Where a HashMap with a table of `size` places (a power of two) puts a key of that hash."""
    return (code ^ code >> 16) & size - 1


def table_size(keys: int, size: int = _SMALLEST_TABLE) -> int:
    """The table of a HashMap that has grown to `keys` keys from a table of `size`: three quarters full at most."""
    while 4 * keys > 3 * size:
        size *= 2
    return size


def hash_order(names: Iterable[str]) -> list[str]:
    """Return the names as a HashMap walks them that was filled in sorted order.

    Example: `hash_order(["C0", "C1", "C2", "C3"])` is `["C3", "C0", "C1", "C2"]`: their hashes are 2125 to 2128,
    and 2128 is a multiple of the table's 16 places. Names in one place come in the order in which they were put;
    Kafka puts members as its broker lists them, which is no contract, so they are sorted here.
    Source: `java.util.HashMap`; more than eight names in one place, which take a tree there, need made-up names.
    """
    ordered = sorted(names, key=utf16_key)
    size = table_size(len(ordered))
    return sorted(ordered, key=lambda name: bucket(string_hash(name), size))
