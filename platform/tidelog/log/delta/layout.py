"""Paths below a topic's folder, and the names of the transaction ids (docs/format.md)."""

from functools import lru_cache

LOG_FOLDER = "_delta_log"
FLOOR_FOLDER = "_tidelog/floor"
# What running jobs hold.
HOLDS_FOLDER = "_tidelog/holds"
# Created by a writer that tries whether its store honours put-if-absent.
PROBES_FOLDER = "_tidelog/probes"
# Of folders directly below a lake's root, in which the store is tried before there is a lake.
PROOF_PREFIX = "__tidelog-proof-"
# Overwritten by a writer that asks its store for the time.
CLOCK_FILE = "_tidelog/clock"
# What `tidelog check --repair` took out of the log.
ASIDE_FOLDER = "_tidelog/torn"
# Of a table of rows: its files.
ROWS_FOLDER = "rows"
LAKE_FILE = "__lake.json"
# The first table of consumer groups' offsets; the i-th further one is `__consumer_offsets-<i>`.
OFFSETS_TABLE = "__consumer_offsets"
# What becomes of transactions.
TRANSACTIONS_TABLE = "__transaction_state"
# Which brokers serve the lake.
CLUSTER_TABLE = "__cluster"
# Points in time of the whole lake that have names.
CUTS_TABLE = "__cuts"
# What principals may do, and how much.
ACCESS_TABLE = "__access"
# A topic that brokers make: what clients measure of themselves.
CLIENT_METRICS_TOPIC = "__client_metrics"
# The topic in which a registry keeps its schemas, unless another one is configured.
SCHEMAS_TOPIC = "_schemas"
# Of a lake that follows another one: what its mirror keeps there.
MIRROR_FOLDER = "__mirror"
# What a lake notes of its branches, one object each.
BRANCHES_FOLDER = "__branches"
LAST_CHECKPOINT = f"{LOG_FOLDER}/_last_checkpoint"

TXN_PREFIX = "tidelog/"
END_PREFIX = "tidelog/end/"
START_PREFIX = "tidelog/start/"
CLEAN_PREFIX = "tidelog/clean/"
TOMBSTONES_PREFIX = "tidelog/tombstones/"
TOMBSTONES_SINCE_PREFIX = "tidelog/tombstones-since/"
PRODUCER_PREFIX = "tidelog/producer/"
# How far a partition is a copy of another log, whose offsets its records keep.
COPIED_PREFIX = "tidelog/copied/"
SINK_PREFIX = "tidelog/sink/"
TIMESTAMP_PREFIX = "tidelog/timestamp/"
TRANSACTION_PREFIX = "tidelog/transaction/"
TRANSACTION_FLOOR = "tidelog/transaction-floor"
PURGE_TXN = "tidelog/purge"

END_TAG = "tidelog.end"

_NUMBERS_OF_AN_EPOCH = 2**32


def pack_epoch(epoch: int, number: int) -> int:
    """The version of a transaction id that counts in epochs: epoch · 2^32 + number.

    It rises from one number to the next, and from an epoch's last to the first of the next.

    >>> pack_epoch(2, 7), unpack_epoch(pack_epoch(2, 7))
    (8589934599, (2, 7))
    """
    return epoch * _NUMBERS_OF_AN_EPOCH + number


def unpack_epoch(version: int) -> tuple[int, int]:
    """The (epoch, number) of such a version."""
    return divmod(version, _NUMBERS_OF_AN_EPOCH)


def number(text: str) -> int | None:
    """A whole number as tidelog writes it into names; None for any other text.

    >>> [number(text) for text in ("0", "42", "042", "-1", "²", "")]
    [0, 42, None, None, None, None]
    """
    return int(text) if text.isascii() and text.isdigit() and (text == "0" or text[0] != "0") else None


def entry_path(version: int) -> str:
    """The entry's path below the topic's folder: `_delta_log/00000000000000000007.json`."""
    return f"{LOG_FOLDER}/{version:020d}.json"


def checkpoint_path(version: int) -> str:
    """The path of a checkpoint in one file below the topic's folder."""
    return f"{LOG_FOLDER}/{version:020d}.checkpoint.parquet"


def floor_path(version: int) -> str:
    """The path of the floor `version` below the topic's folder."""
    return f"{FLOOR_FOLDER}/{version:020d}"


def version_of(name: str) -> int | None:
    """The version that a file name of the log or floor folder starts with, or None."""
    head = name.rpartition("/")[2][:20]
    return int(head) if len(head) == 20 and head.isdigit() else None


def entry_version(path: str) -> int | None:
    """The version of the entry at a path, None for anything else.

    >>> [entry_version(f"t/_delta_log/{7:020d}{rest}") for rest in (".json", f".{9:020d}.compacted.json")]
    [7, None]
    """
    name = path.rpartition("/")[2]
    return version_of(name) if len(name) == len("00000000000000000000.json") and name.endswith(".json") else None


def segment_path(partition: int, known_version: int, unique: str) -> str:
    """A new segment's path: `known_version` is the topic's version that its writer knew when it opened it."""
    return f"partition={partition}/{known_version}-{unique}.parquet"


def written_again(path: str, known_version: int, unique: str) -> str:
    """A new path for the records of a segment that is written again before it is committed.

    It keeps the name of the first one and the version that its writer knew: whichever of the two is committed, a repeat
    of the other is known by it.

    >>> written_again("partition=3/41-15b1.parquet", 57, "90aa")
    'partition=3/57-15b1_41-90aa.parquet'
    """
    first, name = segment_name(path)
    return f"{path.rpartition('/')[0]}/{known_version}-{name}_{first}-{unique}.parquet"


# Each rule of a commit asks for the names of the same few segments.
@lru_cache(4096)
def segment_name(path: str) -> tuple[int, str]:
    """The version known to the writer that wrote a segment's records first, and the name that they keep.

    A file that tidelog did not name knew nothing, -1, and its name is its path.

    >>> segment_name("partition=3/57-15b1_41-90aa.parquet")
    (41, '15b1')
    """
    version, dash, rest = path.rpartition("/")[2].partition("-")
    if not (dash and version.isdecimal() and rest.endswith(".parquet")):
        return -1, path
    name, again, first = rest.removesuffix(".parquet").partition("_")
    return int(first.partition("-")[0] if again else version), name


def rows_path(known_version: int, unique: str) -> str:
    """A new file's path in a table of rows; `known_version` as in `segment_path`."""
    return f"{ROWS_FOLDER}/{known_version}-{unique}.parquet"
