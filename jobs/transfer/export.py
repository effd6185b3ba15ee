"""Topics to any Spark sink: what `jobs/export.py` does once its options are read."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.streaming.query import StreamingQuery

from tidelog.commands.failures import UsageProblemError
from tidelog.jobs.transfer.columns import (
    BYTE_FORMATS,
    Forms,
    check_forms,
    check_partition_by,
    chosen,
    decoded,
)
from tidelog.jobs.transfer.jdbc import JdbcSink, check_jdbc
from tidelog.jobs.transfer.options import When, with_default
from tidelog.jobs.transfer.report import Place, Transferred, TransferReport
from tidelog.jobs.transfer.spark_errors import wrong_columns
from tidelog.jobs.transfer.stream import StreamProgress, offsets_read, records_in, run_to_end, triggered
from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import UnknownTopicError
from tidelog.log.lake import Lake
from tidelog.log.upkeep.holds import Holder
from tidelog.server.process.stopping import Stop
from tidelog.sources.catalog import Catalog
from tidelog.sources.offset_json import dumps, partitions_json
from tidelog.sources.options import SourceOptions, parse_batch, parse_stream

# The metric that counts what was read.
MOVED = "moved"
# How long a batch that may be a repeat is waited for to tell its counts.
PATIENCE_S = 3.0
# Targets that are a place in a file system, and those that are none.
_FILES = ("delta", "parquet", "orc", "json", "csv", "text", "xml", "avro")
_BY_RUN = ("delta", "tidelog")
_LIMITS = {
    *("subscribe", "subscribepattern", "assign", "startingoffsets", "endingoffsets", "startingtimestamp"),
    *("endingtimestamp", "startingoffsetsbytimestamp", "endingoffsetsbytimestamp"),
}

Options = Mapping[str, str]
Say = Callable[[int, Mapping[Place, Transferred]], None]


# What becomes of what is there.
SaveMode = Literal["append", "overwrite", "error"]


@dataclass(frozen=True)
class ExportTarget:
    """Where rows go: a format with options and a path."""

    format: str
    options: Options
    path: str | None
    mode: SaveMode | None
    partition_by: tuple[str, ...]

    @property
    def needs_delta(self) -> bool:
        """Whether Delta's jars are wanted."""
        return self.format == "delta"

    def in_words(self) -> str:
        """The target as a report names it."""
        named = {name.lower(): value for name, value in self.options.items()}
        places = [self.path] if self.path else [named[n] for n in ("dbtable", "topic") if n in named]
        return " ".join((self.format, *places))


@dataclass(frozen=True)
class RowShape:
    """What of the records is written, and how."""

    forms: Forms
    select: tuple[str, ...]
    where: str | None


def check_target(target: ExportTarget, rows: RowShape, when: When) -> None:
    """Refuse a target that can't be written as the options say. Raises `UsageProblemError`."""
    check_forms(target.format, rows.forms, bool(rows.select))
    if target.format in _FILES and not target.path:
        raise UsageProblemError(f"--to {target.format} needs --save, the folder to write to.")
    if target.format == "jdbc":
        check_jdbc(target.options)
    if target.path and target.format in ("jdbc", "kafka", "tidelog", "noop", "console"):
        raise UsageProblemError(f"--save is a folder, and {target.format} has none: its place is in --option.")
    if when.streaming and target.mode not in (None, "append"):
        raise UsageProblemError(f"--mode {target.mode} is of batches: a stream appends. Leave --mode out.")
    if when.streaming and target.format == "jdbc" and target.partition_by:
        raise UsageProblemError("--partition-by divides files into folders, and a database has none. Leave it out.")
    if when.run is not None and target.format not in _BY_RUN:
        raise UsageProblemError(
            f"--run marks what is written, and {target.format} keeps no such mark: {' and '.join(_BY_RUN)} do. Leave it"
            " out; --available-now with --checkpoint writes each record once where the target allows that."
        )


def read_batch(
    spark: SparkSession, lake: Lake, options: Options, holder: Holder
) -> tuple[DataFrame, dict[Place, Transferred]]:
    """The records between the limits, and their offsets, fixed now. Raises what the source raises.

    `holder` holds their topics from before the segments are chosen on, so that no purge takes one that is still to be
    read.
    """
    parsed = parse_batch(options, None)
    catalog = _catalog(lake, parsed)
    if not catalog.assigned():
        raise UnknownTopicError(f"No topic of the lake {lake.uri} matches. 'tidelog topic list' shows what is there.")
    starts, ends = catalog.batch_limits()
    fixed = {n: v for n, v in options.items() if n.lower() not in _LIMITS}
    fixed |= {
        "assign": partitions_json(starts),
        "startingOffsets": dumps(starts),
        "endingOffsets": dumps(ends),
    }
    offsets = {(tp.topic, tp.partition): Transferred(starts[tp], ends[tp]) for tp in starts}
    for topic in sorted({tp.topic for tp in starts}):
        holder.hold(topic, partial(_head, lake, topic))
    return spark.read.format("tidelog").options(**fixed).load(), offsets


def read_stream(spark: SparkSession, lake: Lake, options: Options) -> tuple[DataFrame, dict[Place, int]]:
    """The stream of records, and where a new query starts."""
    parsed = parse_stream(options, None)
    catalog = _catalog(lake, parsed)
    starts = catalog.resolved(parsed.starting, "start", streaming=True)
    rows = spark.readStream.format("tidelog").options(**options).load()
    return rows, {(tp.topic, tp.partition): offset for tp, offset in starts.items()}


def source_options(lake: Lake, topics: tuple[str, ...], pattern: str | None, given: Options) -> dict[str, str]:
    """The source's options: everything from the earliest offset on, with headers, unless they say otherwise."""
    named = {"subscribe": ",".join(topics)} if topics else {"subscribePattern": pattern or ""}
    options = {**lake.options, **given, **named, "lake": lake.uri}
    options = with_default(options, "includeHeaders", "true")
    return with_default(options, "startingOffsets", "earliest", "startingTimestamp", "startingOffsetsByTimestamp")


def counted(records: DataFrame, metric: Observation | str) -> DataFrame:
    """The records, counted on their way: how many, and the bytes of their keys and values."""
    size = F.coalesce(F.length("key"), F.lit(0)) + F.coalesce(F.length("value"), F.lit(0))
    return records.observe(metric, F.count(F.lit(1)).alias("records"), F.sum(size).alias("bytes"))


def shaped(records: DataFrame, target: ExportTarget, rows: RowShape) -> DataFrame:
    """The rows to write. Raises `UsageProblemError`."""
    frame = _selected(records, decoded(target.format, rows.forms), "--schema")
    if rows.where is not None:
        try:
            frame = frame.where(rows.where)
        except (AnalysisException, ParseException) as e:
            raise wrong_columns("--where", frame, e) from e
    fields = frame.select("value.*").columns if rows.forms.value == "json" else []
    frame = _selected(frame, rows.select or chosen(target.format, rows.forms, fields), "--select")
    check_partition_by(target.partition_by, frame.columns)
    return frame


def write_batch(
    records: DataFrame,
    offsets: Mapping[Place, Transferred],
    target: ExportTarget,
    rows: RowShape,
    when: When,
    lake: Lake,
) -> TransferReport:
    """Write one batch."""
    began = lake.clock.elapsed_s()
    observation = Observation(MOVED)
    writer = shaped(counted(records, observation), target, rows).write.format(target.format)
    writer = writer.options(**_settings(target, when, lake)).mode(target.mode or _default_mode(target))
    if target.partition_by:
        writer = writer.partitionBy(*target.partition_by)
    writer.save(target.path)
    seen = _seen(observation, when, lake.clock)
    return TransferReport(
        job="export",
        lake=lake.uri,
        source=_topics(offsets),
        target=target.in_words(),
        partitions=offsets,
        records=int(seen.get("records", 0)),
        bytes=int(seen.get("bytes") or 0),
        seconds=lake.clock.elapsed_s() - began,
        repeated=not seen,
    )


def write_stream(
    records: DataFrame,
    initial: Mapping[Place, int],
    target: ExportTarget,
    rows: RowShape,
    when: When,
    lake: Lake,
    say: Say,
    stop: Stop,
) -> TransferReport:
    """Write batch after batch; `say` is called for each."""
    began = lake.clock.elapsed_s()
    progress = StreamProgress()
    found = shaped(counted(records, MOVED), target, rows)
    query = _started(found, target, when, lake)

    def look() -> None:
        for new in progress.take(query):
            say(records_in(new, MOVED), offsets_read(new, initial))

    run_to_end(query, stop, look)
    moved = progress.read(initial)
    return TransferReport(
        job="export",
        lake=lake.uri,
        source=_topics(moved or {place: Transferred(at, at) for place, at in initial.items()}),
        target=target.in_words(),
        partitions=moved,
        records=progress.observed(MOVED, "records"),
        bytes=progress.observed(MOVED, "bytes"),
        seconds=lake.clock.elapsed_s() - began,
        batches=progress.batches,
        query_id=query.id,
    )


def _started(rows: DataFrame, target: ExportTarget, when: When, lake: Lake) -> StreamingQuery:
    writer = triggered(rows.writeStream.queryName(f"export to {target.in_words()}"), when)
    if target.format == "jdbc":
        sink = JdbcSink(rows.sparkSession, target.options)
        sink.prepare(rows)
        own: list[str] = []
        began = threading.Event()

        def write(batch: DataFrame, batch_id: int) -> None:
            began.wait()
            sink.write(batch, own[0], batch_id)

        query = writer.foreachBatch(write).start()
        own.append(query.id)
        began.set()
        return query
    writer = writer.format(target.format).options(**_settings(target, when, lake))
    if target.partition_by:
        writer = writer.partitionBy(*target.partition_by)
    return writer.start(target.path)


def _seen(observation: Observation, when: When, clock: Clock) -> dict[str, Any]:
    """What was counted; {} for a repeated --run, of which the target reads nothing, so that nothing is counted."""
    counted = observation._jo.future()  # type: ignore[union-attr]
    waited = 0.0
    while when.run is not None and not counted.isCompleted() and waited < PATIENCE_S:
        clock.sleep(0.05)  # Spark tells a little after the write; a repeat never does
        waited += 0.05
    return observation.get if when.run is None or counted.isCompleted() else {}


def _settings(target: ExportTarget, when: When, lake: Lake) -> dict[str, str]:
    """The sink's options, with the mark of --run."""
    options = dict(target.options)
    if target.format == "tidelog":
        options = with_default(options, "includeTimestamp", "true")
        options = with_default(options, "lake", lake.uri, "kafka.bootstrap.servers")
    if when.run is not None:
        options |= {"txnAppId": f"export/{when.run.name}", "txnVersion": str(when.run.number)}
    return options


def _default_mode(target: ExportTarget) -> SaveMode:
    """Logs take what comes; elsewhere no existing data is touched unasked."""
    return "append" if target.format in (*BYTE_FORMATS, "noop", "console") else "error"


def _selected(rows: DataFrame, columns: Sequence[str], option: str) -> DataFrame:
    try:
        return rows.selectExpr(*columns)
    except (AnalysisException, ParseException) as e:
        raise wrong_columns(option, rows, e) from e


def _topics(places: Iterable[Place]) -> str:
    names = sorted({topic for topic, _ in places})
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{'topic' if len(names) == 1 else 'topics'} {', '.join(repr(name) for name in names[:3])}{more}"


def _head(lake: Lake, topic: str) -> int:
    return lake.log(topic).door.refresh().version


def _catalog(lake: Lake, options: SourceOptions) -> Catalog:
    catalog = Catalog(lake, options)
    catalog.refresh(required=True)
    return catalog
