"""Records as rows of Delta tables, in Spark's tasks: the connector's converters and transformations over batches."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import pyarrow as pa

from tidelog.connect.connectors.arrow_values import arrow_table
from tidelog.connect.connectors.delta_changes import KeyedChange, change_of, columns_of
from tidelog.connect.connectors.spark.delta_sink import SPARK_DELTA_KEYS, DeltaJob, SparkDeltaSink
from tidelog.connect.data.errors import DataError
from tidelog.connect.data.records import SinkRecord
from tidelog.connect.runtime.conversion import Conversion, RawRecord
from tidelog.connect.runtime.dead_letters import dead_letters_of
from tidelog.connect.runtime.plugins import definition_of
from tidelog.connect.runtime.tolerance import ErrorStage, RecordFailedError, ToleranceOperator, TolerancePolicy
from tidelog.log.lake import Lake

# Columns beside a row's own: whether its key's row is deleted, and the record's offset.
DELETED: Final = "__tidelog_deleted"
OFFSET: Final = "__tidelog_offset"
# What a task makes of records: how far each partition is read, and rows of a table in Arrow's stream format.
CONVERTED: Final = (
    "location string, keys string, columns binary, topic string, number int, next_offset long, rows binary"
)
_SCHEMA: Final = pa.schema(
    [
        ("location", pa.string()), ("keys", pa.string()), ("columns", pa.binary()), ("topic", pa.string()),
        ("number", pa.int32()), ("next_offset", pa.int64()), ("rows", pa.binary()),
    ]
)  # fmt: skip
Batches = Iterator[pa.RecordBatch]


class _Place(NamedTuple):
    location: str
    keys: tuple[str, ...]
    topic: str
    partition: int


class RowMaker:
    """Makes rows of a connector's records, in one process. Raises `ConnectError` where errors are not tolerated."""

    def __init__(self, job: DeltaJob) -> None:
        lake = Lake(job.lake, create=False, options=job.options)
        parsed = definition_of(SparkDeltaSink, job.config).parse(job.config)
        self._values = SPARK_DELTA_KEYS.parse(job.config)

        def wait(seconds: float) -> bool:
            lake.clock.sleep(seconds)
            return False

        policy = TolerancePolicy.of(parsed)
        self._operator = ToleranceOperator(policy, wait, lake.clock.elapsed_s, lake.ids.fraction)
        self._conversion = Conversion(job.config, lake, self._operator, job.worker)
        self._letters = dead_letters_of(lake, job.connector, 0, parsed)

    def rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch of the source's records, as `CONVERTED` has them."""
        behind: dict[tuple[str, int], int] = {}
        changes_by_place: dict[_Place, list[tuple[KeyedChange, int]]] = {}
        for raw in raw_records(batch):
            partition = raw.partition or 0
            behind[raw.topic, partition] = max(raw.offset + 1, behind.get((raw.topic, partition), 0))
            try:
                record = self._conversion.to_sink(raw)
                if record is not None:
                    change = self._change(record)
                    place = _Place(self._location(record.topic), (*change.key,), raw.topic, partition)
                    changes_by_place.setdefault(place, []).append((change, record.offset))
            except RecordFailedError as failure:
                self._give_up(raw, failure)
        made: list[dict[str, Any]] = [
            {"location": "", "topic": topic, "number": number, "next_offset": offset}
            for (topic, number), offset in behind.items()
        ]
        for place, changes in changes_by_place.items():
            kept = newest_of(changes) if self._values["merge"] else changes
            columns, rows = packed(kept)
            made.append(
                {"location": place.location, "keys": json.dumps(place.keys), "columns": columns, "rows": rows,
                 "topic": place.topic, "number": place.partition, "next_offset": behind[place.topic, place.partition]}
            )  # fmt: skip
        return pa.RecordBatch.from_pylist(made, _SCHEMA)

    def _change(self, record: SinkRecord) -> KeyedChange:
        try:
            return change_of(record, self._values["pk.fields"], keyed=self._values["merge"])
        except DataError as error:
            raise RecordFailedError(ErrorStage.TASK_PUT, SparkDeltaSink.__name__, error) from error

    def _give_up(self, raw: RawRecord, failure: RecordFailedError) -> None:
        letters = self._letters
        where = f"topic={raw.topic} partition={raw.partition} offset={raw.offset}"
        self._operator.tolerate(failure, where, None if letters is None else lambda: letters.put(raw, failure))

    def _location(self, topic: str) -> str:
        return str(self._values["table.location"]).replace("${topic}", topic)


@lru_cache(maxsize=8)
def _maker(text: str) -> RowMaker:
    """One for each connector in a Python process of Spark's, which runs many tasks."""
    return RowMaker(DeltaJob.of(text))


def rows_of(text: str) -> Callable[[Batches], Batches]:
    """What a task does with the source's records. `text`: the job's."""

    def run(batches: Batches) -> Batches:
        return (_maker(text).rows(batch) for batch in batches)

    return run


def raw_records(batch: pa.RecordBatch) -> Iterator[RawRecord]:
    """The records of a batch of the source's columns, with headers."""
    columns = {
        name: batch.column(name).to_pylist() for name in ("topic", "partition", "key", "value", "offset", "headers")
    }
    times = [moment // 1000 for moment in batch.column("timestamp").cast(pa.int64()).to_pylist()]
    for at in range(batch.num_rows):
        headers = [(one["key"], one["value"]) for one in columns["headers"][at] or ()]
        yield RawRecord(
            columns["topic"][at], columns["partition"][at], columns["key"][at], columns["value"][at], times[at],
            headers, columns["offset"][at],
        )  # fmt: skip


def newest_of(changes: Sequence[tuple[KeyedChange, int]]) -> list[tuple[KeyedChange, int]]:
    """The last change of each key, of (change, offset)."""
    return [*{tuple(change.key.items()): (change, offset) for change, offset in changes}.values()]


def packed(changes: Sequence[tuple[KeyedChange, int]]) -> tuple[bytes, bytes]:
    """(columns, rows) of (change, offset), in Arrow's formats. Raises `DataError`."""
    columns = columns_of([change for change, _ in changes])
    rows = arrow_table([change.values or change.key for change, _ in changes], columns)
    rows = rows.append_column(DELETED, pa.array([change.values is None for change, _ in changes], pa.bool_()))
    rows = rows.append_column(OFFSET, pa.array([offset for _, offset in changes], pa.int64()))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return columns.serialize().to_pybytes(), sink.getvalue().to_pybytes()


def merged_columns(packed_schemas: Sequence[bytes]) -> pa.Schema:
    """All columns of packed rows, each of a type that holds all values. Raises `DataError` where there is none."""
    try:
        schemas = [pa.ipc.read_schema(pa.py_buffer(one)) for one in packed_schemas]
        return pa.unify_schemas(schemas, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(
            f"Records of one batch have columns whose types don't fit together: {error}. Correct them with Cast."
        ) from error


def unpacked(columns: bytes) -> Callable[[Batches], Batches]:
    """What a task does with packed rows: it gives them with these columns, and the two beside."""
    wanted = pa.ipc.read_schema(pa.py_buffer(columns))

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for rows in batch.column("rows").to_pylist():
                yield from aligned(pa.ipc.open_stream(rows).read_all(), wanted).to_batches()

    return run


def aligned(rows: pa.Table, wanted: pa.Schema) -> pa.Table:
    """Rows with these columns, null where they have none, and the two beside."""
    whole = with_own_columns(wanted)
    arrays = [
        rows.column(one.name).cast(one.type) if one.name in rows.column_names else pa.nulls(rows.num_rows, one.type)
        for one in whole
    ]
    return pa.table(arrays, schema=whole)


def with_own_columns(columns: pa.Schema) -> pa.Schema:
    """Columns, and the two beside."""
    return columns.append(pa.field(DELETED, pa.bool_())).append(pa.field(OFFSET, pa.int64()))
