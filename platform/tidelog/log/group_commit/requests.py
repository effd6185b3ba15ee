"""What group commit is given and what it answers: records of many producers as one table, and an outcome for each."""

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidelog.log.base.errors import (
    DeliveryTimeoutError,
    InvalidRecordError,
    InvalidTimestampError,
    InvalidValueError,
    RecordTooLargeError,
    TidelogError,
)
from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.delta.schema import CREATE_TIME
from tidelog.log.group_commit.producer_sequences import Numbering
from tidelog.log.records.checks import times_within
from tidelog.log.records.partitioners import Partitioner, assign
from tidelog.log.rules.appends import Ranges
from tidelog.log.rules.sequences import ProducerBatch, can_be
from tidelog.log.segments.noted import NotedRecords

logger = logging.getLogger(__name__)

Bools = npt.NDArray[np.bool_]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

# The partition of a row that is left to the partitioner.
NO_PARTITION: Final = -1

# What records are refused for by themselves, while others of the same entry are taken.
_REFUSALS = (InvalidRecordError, InvalidTimestampError, RecordTooLargeError)


@dataclass(frozen=True, slots=True)
class ProduceRequests:
    """Records for one topic, of one request or of many.

    `records`: a table with columns as `Topic.append` takes them, keys of type binary, without `partition`; at least one
    row. Or records that are noted, of units and partitions that rise.
    `partitions`: one for each row, `NO_PARTITION` where `partitioner` chooses it by `turn`; None where it chooses all.
    `deadlines_s`: until when each unit may be tried, seconds on the elapsed clock. A unit is what is taken or refused
    as a whole: a request's rows of one partition, a row, or a whole table. `units`: the unit of each row, from 0 on and
    never falling; None where there is one.
    `batches`: {unit: what its idempotent producer says of its rows}. `numbering` instead, for the rows of one producer:
    what is taken of them is numbered when it is staged. `acks`: 1, or -1 for all. `compression` and `compression_level`
    are the producers' wish. `chosen_ahead`: partitions of all rows, for a topic of this many partitions.
    `sizes_judged`: whether `max.message.bytes` was judged before, by the batches that came.
    """

    records: pa.Table | NotedRecords
    deadlines_s: F64
    partitions: I32 | None = None
    units: I64 | None = None
    batches: Mapping[int, ProducerBatch] = field(default_factory=dict)
    numbering: Numbering | None = None
    partitioner: str | Partitioner = "murmur2"
    turn: int = 0
    acks: int = -1
    compression: str | None = None
    compression_level: int | None = None
    chosen_ahead: tuple[int, Future[I32]] | None = None
    sizes_judged: bool = False

    @property
    def table(self) -> pa.Table:
        """The records as a table."""
        return self.records.table if isinstance(self.records, NotedRecords) else self.records

    def plain_notes(self, config: TopicConfig, now_ms: int) -> NotedRecords | None:
        """The records where they are noted, and all keep the rules of a plain topic of this configuration."""
        if not isinstance(self.records, NotedRecords) or config.timestamp_type != CREATE_TIME:
            return None
        with_keys = "compact" in config.cleanup_policy
        return self.records if self.records.are_plain(*times_within(config, now_ms), with_keys=with_keys) else None

    @property
    def batches_can_be(self) -> bool:
        """Whether what producers say of their rows is like a batch's, whatever the log knows of them."""
        return all(map(can_be, self.batches.values()))

    def unknown_partitions(self, count: int, open_units: Bools) -> Bools | None:
        """Which rows of open units name a partition that a topic of `count` partitions does not have."""
        given = self.partitions
        if given is None:
            return None
        unknown: Bools = (given != NO_PARTITION) & ((given < 0) | (given >= count))
        if not unknown.any():
            return None
        unknown &= open_units if self.units is None else open_units[self.units]
        return unknown if unknown.any() else None

    def choose(self, partitions: int, rows: I64 | None = None) -> I32:
        """The partition of each row, or of each of `rows`, in a topic of this many. Raises as `assign` does."""
        table, given, ahead = self.table, self.partitions, self.chosen_ahead
        if rows is not None:
            table, given = table.take(pa.array(rows)), None if given is None else given[rows]
        elif ahead is not None and ahead[0] == partitions:
            return ahead[1].result()
        if given is not None and (given != NO_PARTITION).all():
            return given
        if partitions == 1 and isinstance(self.partitioner, str):
            return np.zeros(table.num_rows, np.int32)
        names = table.schema.names
        keys = table.column("key") if "key" in names else pa.chunked_array([pa.nulls(table.num_rows, pa.binary())])
        explicit = None if given is None else pa.array(given, mask=given == NO_PARTITION)
        return assign(keys, explicit, partitions, partitioner=self.partitioner, sticky=self.turn)

    def require_consistent(self) -> None:
        """Refuse requests whose rows, partitions, units and sequences don't fit together: `InvalidRecordError`."""
        rows, units = self.records.num_rows, self.units
        fit = rows and (self.partitions is None or len(self.partitions) == rows)
        if units is None:
            fit = fit and len(self.deadlines_s) == 1
        else:
            fit = fit and len(units) == rows and units[0] == 0 and units[-1] == len(self.deadlines_s) - 1
        if not fit:
            raise InvalidRecordError(
                f"{rows} records were given with {'no' if self.partitions is None else len(self.partitions)}"
                f" partitions and {len(self.deadlines_s)} units: each record has one, and there is at least one record."
            )
        for unit, batch in self.batches.items():
            own = self.partitions
            if own is not None and units is not None:
                own = own[np.searchsorted(units, unit) : np.searchsorted(units, unit, side="right")]
            counts = {} if own is None else _counts(own)
            if {p: n for p, (_, n) in batch.sequences.items()} != counts:
                raise InvalidRecordError(
                    f"Producer {batch.producer_id} gives sequences {dict(batch.sequences)} for {counts} records of unit"
                    f" {unit}: every partition's records have theirs."
                )


def _counts(partitions: I32) -> dict[int, int]:
    """How often each number comes; mostly all are the same."""
    first = int(partitions[0])
    return {first: len(partitions)} if (partitions == first).all() else dict(Counter(partitions.tolist()))


def together(requests: Sequence[ProduceRequests]) -> ProduceRequests:
    """Requests of many producers as one table, whose units are numbered on from one to the next.

    Every row has its partition, and all ask for the same compression. The strongest `acks` counts for all.
    """
    if len(requests) == 1:
        return requests[0]
    first = requests[0]
    codec = (first.compression, first.compression_level)
    if any((one.compression, one.compression_level) != codec for one in requests):
        raise ValueError("requests of one entry share their compression: begin an entry for each")
    starts = np.cumsum([0, *(len(one.deadlines_s) for one in requests)]).tolist()
    if any(one.units is not None for one in requests):
        units = np.concatenate(
            [
                np.full(one.table.num_rows, start) if one.units is None else one.units + start
                for one, start in zip(requests, starts, strict=False)
            ]
        )
    else:
        units = np.repeat(np.arange(len(requests)), [one.table.num_rows for one in requests])
    batches = [(start, one.batches) for one, start in zip(requests, starts, strict=False) if one.batches]
    return ProduceRequests(
        _one_table([one.table for one in requests]),
        np.concatenate([one.deadlines_s for one in requests]),
        np.concatenate([one.partitions for one in requests]),
        units,
        {unit + start: batch for start, own in batches for unit, batch in own.items()},
        acks=min(one.acks for one in requests),
        compression=codec[0],
        compression_level=codec[1],
        sizes_judged=all(one.sizes_judged for one in requests),
    )


def _one_table(tables: list[pa.Table]) -> pa.Table:
    """The rows of all, with the columns of all: most tables have the same ones, where a look at each is not needed."""
    try:
        table = pa.concat_tables(tables)
    except pa.ArrowInvalid:
        table = pa.concat_tables(tables, promote_options="default")
    return table.combine_chunks()


@dataclass(slots=True)
class Outcomes:
    """The outcomes of requests: `errors` by unit; the offsets of all other rows, unless they were there already.

    `ranges`: {partition: (first offset, end offset)} of the entry. `append_ms`: the records' timestamp where the topic
    has LogAppendTime (ms since the epoch), else None. `rows` (None: all) are those that were staged, `chosen` their
    partitions.
    """

    errors: dict[int, BaseException] = field(default_factory=dict)
    ranges: Ranges = field(default_factory=dict)
    append_ms: int | None = None
    rows: I64 | None = None
    chosen: I32 | None = None

    def partitions(self, count: int, given: I32 | None) -> I32:
        """The partition of each of the requests' `count` rows: where it was staged, else the `given` one."""
        partitions = np.full(count, NO_PARTITION, np.int32) if given is None else given.copy()
        if self.chosen is not None:
            partitions[slice(None) if self.rows is None else self.rows] = self.chosen
        return partitions

    def offsets(self, count: int) -> I64:
        """The offset of each of the requests' `count` rows: -1 for one that was refused, or was there already."""
        offsets = np.full(count, -1, np.int64)
        if self.chosen is not None and self.ranges:
            own = np.empty(len(self.chosen), np.int64)
            for partition, (first, end) in self.ranges.items():
                own[slice(None) if len(self.ranges) == 1 else self.chosen == partition] = np.arange(first, end)
            offsets[slice(None) if self.rows is None else self.rows] = own
        return offsets


def late(*, in_doubt: bool) -> DeliveryTimeoutError:
    """The error of records whose time is up."""
    if in_doubt:
        text = (
            "Whether these records were committed is not known: the store, or the process that they were handed over"
            " to, gave no answer in their time. They may be there. Read the topic to see."
        )
    else:
        text = "These records could not be committed in their time, and are not there. Send them again."
    return DeliveryTimeoutError(text, maybe_persisted=in_doubt)


def rows_by_partition(partitions: I32) -> dict[int, int]:
    """{partition: rows} of partitions from 0 on."""
    return {p: rows for p, rows in enumerate(np.bincount(partitions).tolist()) if rows}


def refused_units(
    table: pa.Table, units: I64 | None, check: Callable[[pa.Table], pa.Table]
) -> tuple[pa.Table, dict[int, TidelogError]]:
    """The table as `check` gives it, and nothing refused; or which of its `units` are refused, each by itself.

    A fault in the program counts as a refusal where there are several units: one's data must not fail the others.
    """
    try:
        return check(table), {}
    except TidelogError as e:
        if not isinstance(e, _REFUSALS):
            raise
        error: TidelogError = e
    except Exception:
        if units is None:
            raise
        if units[0] == units[-1]:
            logger.exception("Records of one request can't be checked.")
        error = InvalidRecordError("The records can't be checked; the log of the process says why.")
    if units is None or units[0] == units[-1]:
        return table, {0 if units is None else int(units[0]): error}
    if isinstance(error, InvalidValueError):
        return table, _by_unit(error, units)
    middle = int(np.searchsorted(units, units[len(units) // 2]))
    if middle == 0:
        middle = int(np.searchsorted(units, units[0], side="right"))
    first = refused_units(table.slice(0, middle), units[:middle], check)[1]
    return table, first | refused_units(table.slice(middle), units[middle:], check)[1]


def _by_unit(error: InvalidValueError, units: I64) -> dict[int, TidelogError]:
    """The units of values that are refused, each with its own."""
    refused = np.unique(units[list(error.rows)]).tolist()
    ends = np.searchsorted(units, refused, side="right").tolist()
    return {
        unit: error.part(start, end)
        for unit, start, end in zip(refused, np.searchsorted(units, refused).tolist(), ends, strict=True)
    }
