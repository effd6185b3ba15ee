"""A topic as a native DataFrame: read by Spark's own Parquet scan through Delta, with offsets.

For catching up, SQL and time travel at Spark's full speed. What a consumer needs beyond that (Kafka's offsets in
the checkpoint, rate limits, subscribing to patterns) is in `format("tidelog")`.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from os import PathLike
from typing import Final, TypeVar

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.streaming.readwriter import DataStreamReader

from tidelog.cuts.cut_log import CutLog
from tidelog.cuts.rules import ends_of
from tidelog.log.base.errors import InvalidOptionError, LogTrimmedError
from tidelog.log.base.shallow_errors import shallow
from tidelog.log.delta import schema
from tidelog.log.lake import Lake
from tidelog.log.records.frames import check_forms
from tidelog.log.state.topic_state import TopicState
from tidelog.log.typed.facts import typing_of
from tidelog.spark.jars import require_delta
from tidelog.spark.s3a import hadoop_address, s3a_settings
from tidelog.spark.typed_rows import typed_rows

Reader = TypeVar("Reader", DataFrameReader, DataStreamReader)

# Whether Spark's Parquet scan checks the checksums of pages. The session alone says so: to a reader it is no option.
VERIFY_PAGES: Final = "parquet.page.verify-checksum.enabled"
_OFFSET = "base_offset + position"


@shallow
def read_topic(
    spark: SparkSession,
    lake: str | PathLike[str] | Lake,
    topic: str,
    *,
    version: int | None = None,
    timestamp: str | None = None,
    cut: str | None = None,
    columns: bool = False,
) -> DataFrame:
    """The topic as a batch DataFrame: key, value, topic, partition, offset, timestamp, timestampType, headers.

    `columns`: with the struct `columns` of a typed topic's values, of which Spark reads the fields that a query names;
    a field that a row's writer lacked has the default of the topic's newest schema.
    `version` (of the topic's log) or `timestamp` (as Delta's `timestampAsOf`) reads it as the table was then,
    records deleted since included; both reach back as far as the log is kept (`log.min.age.ms`). A time after the last
    commit is the newest version. `cut` (a cut's name): the table as it was in that cut; where the log does not reach
    back to it any more, the cut's offsets as the topic has them now.
    Raises `UnknownTopicError`, `LogTrimmedError`, `InvalidOptionError` for `columns` of a topic that has none;
    `UnknownCutError`, and `CutLostError` for a topic that the cut does not know.
    """
    if sum(given is not None for given in (version, timestamp, cut)) > 1:
        raise InvalidOptionError("Give one of version, timestamp and cut: each names one state of the topic.")
    with _table(spark.read, lake, topic) as (opened, state, reader, folder):
        if cut is not None:
            return _as_records(*_in_cut(reader, folder, opened, topic, state, cut), columns)
        if version is not None:
            _require_kept(opened, topic, state, version)
            visible = hidden_below(state) if version == state.version else None
            return _as_records(reader.option("versionAsOf", version).load(folder), topic, state, visible, columns)
        if timestamp is not None:
            with _trimmed_is_refused(opened, topic, state, timestamp):
                table = _as_of(reader, folder, timestamp)
                if table is not None:
                    return _as_records(table, topic, state, None, columns)
            # Nothing was committed since: the table was then what it is in its newest version.
            return read_topic(spark, opened, topic, version=state.version, columns=columns)
        return _as_records(reader.load(folder), topic, state, hidden_below(state), columns)


def _in_cut(
    reader: DataFrameReader, folder: str, lake: Lake, topic: str, state: TopicState, name: str
) -> tuple[DataFrame, str, TopicState, str]:
    """A topic's table in a cut, its name, its state, and what is visible of it: the offsets of the cut."""
    cut = CutLog(lake).get(name)
    ends_of(cut, topic, state.topic_id)
    table = cut.tables[topic]
    kept = lake.oldest_version(topic) <= table.version
    rows = (reader.option("versionAsOf", table.version) if kept else reader).load(folder)
    return rows, topic, state, visible_in(table.ranges, {} if kept else state.starts)


def visible_in(ranges: Sequence[tuple[int, int]], starts: Mapping[int, int]) -> str:
    """A condition, in SQL over a table's columns, that the offsets of a cut meet. Pure.

    `ranges`: the [start, end) of each partition in the cut. `starts`: the log start offsets of the table that is read
    where it is a newer one, whose files may hold records that were deleted since.

    >>> visible_in([(0, 5), (2, 4)], {0: 3, 1: 4})
    '(partition = 0 AND base_offset + position >= 3 AND base_offset + position < 5)'
    """
    return (
        " OR ".join(
            f"(partition = {p} AND {_OFFSET} >= {first} AND {_OFFSET} < {end})"
            for p, (start, end) in enumerate(ranges)
            if end > (first := max(start, starts.get(p, 0)))
        )
        or "false"
    )


def read_part(spark: SparkSession, lake: str | PathLike[str] | Lake, topic: str, condition: str) -> DataFrame:
    """As `read_topic`, of what a condition means, in SQL over the table's own columns: `base_offset` skips files."""
    with _table(spark.read, lake, topic) as (_, state, reader, folder):
        return _as_records(reader.load(folder).where(condition), topic, state, hidden_below(state), columns=False)


@shallow
def stream_topic(
    spark: SparkSession,
    lake: str | PathLike[str] | Lake,
    topic: str,
    *,
    starting_version: int | None = None,
    max_files_per_trigger: int | None = None,
    columns: bool = False,
) -> DataFrame:
    """The topic as a stream on Delta's own streaming source, columns as `read_topic`: for catching up fast.

    Retention, merging and compaction neither break nor repeat it. Its checkpoint holds versions of the topic's
    log, so the query must not stay away for longer than the log is kept (`log.min.age.ms`). `starting_version`
    begins with that entry instead of everything that is there. A query that runs while a typed topic's columns grow has
    the fields of its start. It ends, by Delta (DELTA_SCHEMA_CHANGED) or where a value is to be derived of fields that
    it does not read: call this again and start the query, and it goes on. Raises as `read_topic`.
    """
    with _table(spark.readStream, lake, topic) as (opened, state, reader, folder):
        if starting_version is not None:
            _require_kept(opened, topic, state, starting_version)
            reader = reader.option("startingVersion", starting_version)
        if max_files_per_trigger is not None:
            reader = reader.option("maxFilesPerTrigger", max_files_per_trigger)
        return _as_records(reader.load(folder), topic, state, hidden_below(state), columns)


@shallow
def decoded(records: DataFrame, *, key_as: str = "text", value_as: str = "text") -> DataFrame:
    """Records with keys and values as text or JSON in place of bytes: of `read_topic`, or of `format("tidelog")`.

    "bytes": as they are; "text": as UTF-8, what is none with U+FFFD in its place; "json": as VARIANT, whose fields SQL
    names as `value:item::string`, null where it is no JSON. Raises `InvalidConfigError`.
    """
    check_forms(key_as=key_as, value_as=value_as)
    forms = {"text": "string({0})", "json": "try_parse_json(string({0}))"}
    shown = {name: forms[form].format(name) for name, form in (("key", key_as), ("value", value_as)) if form in forms}
    return records.withColumns({name: expr(text) for name, text in shown.items()}) if shown else records


@shallow
def create_view(
    spark: SparkSession,
    lake: str | PathLike[str] | Lake,
    topic: str,
    name: str | None = None,
    *,
    key_as: str = "bytes",
    value_as: str = "bytes",
    columns: bool = False,
) -> str:
    """Make the topic a temporary view for SQL, named `name` or as the topic with `_` for `.` and `-`.

    `key_as`, `value_as`: what it shows of them, see `decoded`. `columns`: as for `read_topic`; the view has the fields
    that the topic has by now.
    The view is live: each query sees what is there by then. What `delete_records` cuts off inside a segment
    afterwards shows until the segment is rewritten or the view is made again. Returns the view's name.
    """
    view = name or topic.replace(".", "_").replace("-", "_")
    records = read_topic(spark, lake, topic, columns=columns)
    decoded(records, key_as=key_as, value_as=value_as).createOrReplaceTempView(view)
    return view


@contextmanager
def _table(
    reader: Reader, lake: str | PathLike[str] | Lake, topic: str
) -> Iterator[tuple[Lake, TopicState, Reader, str]]:
    """The lake, opened, the topic's state, a reader for Delta, and the address of the table.

    The session's Parquet scans check pages from then on, unless the session says whether they should. The reader alone
    gets the lake's options of its store, in Hadoop's words.
    """
    with nullcontext(lake) if isinstance(lake, Lake) else Lake(lake, create=False) as opened:
        state = opened.topic(topic).state()
        spark = reader._spark
        require_delta(spark._jvm)
        if spark.conf.get(VERIFY_PAGES, None) is None:
            spark.conf.set(VERIFY_PAGES, "true")
        if opened.options and opened.uri.startswith(("s3://", "s3a://")):
            reader = reader.options(**s3a_settings(opened.options, os.environ))
        yield opened, state, reader.format("delta"), f"{hadoop_address(opened.uri)}/{topic}"


def _as_records(table: DataFrame, topic: str, state: TopicState, visible: str | None, columns: bool) -> DataFrame:
    # SQL text is one call to the JVM where columns are one each, and more for what is made of them.
    rows = table if visible is None else table.where(visible)
    typing = typing_of(state.metadata)
    if columns and (typing is None or schema.COLUMNS not in table.columns):
        raise InvalidOptionError(
            f"Topic '{topic}' has no columns: it knows no schema of its values (yet). Leave out 'columns', or set the"
            " topic's value.columns, and append a value that has a schema."
        )
    if typing is not None:
        rows = typed_rows(rows, typing, columns=columns)
    return rows.selectExpr(
        "key",
        "value",
        f"'{topic}' AS topic",
        "partition",
        f"{_OFFSET} AS offset",
        "timestamp",
        "timestamp_type AS timestampType",
        "headers",
        *([schema.COLUMNS] if columns else []),
    )


def hidden_below(state: TopicState) -> str | None:
    """Return what hides records below the log start in a segment that delete_records has cut, until it is rewritten."""
    cut = {
        p: state.start(p)
        for p in range(state.partitions)
        if (live := state.live(p)) and live[0].base_offset < state.start(p)
    }
    if not cut:
        return None
    whole = f"partition NOT IN ({', '.join(map(str, cut))})"
    return " OR ".join([whole, *(f"(partition = {p} AND {_OFFSET} >= {start})" for p, start in cut.items())])


def _require_kept(lake: Lake, topic: str, state: TopicState, version: int) -> None:
    """Refuse a version of the log that was trimmed, with the offsets to start from instead."""
    oldest = lake.oldest_version(topic)
    if version > state.version or version < oldest:
        raise _trimmed(
            lake,
            topic,
            state,
            f"Topic '{topic}' has versions {oldest} to {state.version} of its log; version {version} is not among"
            " them.",
        )


def _as_of(reader: DataFrameReader, folder: str, timestamp: str) -> DataFrame | None:
    """The table as it was at a time; None for a time after its last commit, which Delta refuses."""
    try:
        return reader.option("timestampAsOf", timestamp).load(folder)
    except AnalysisException as e:
        if e.getCondition() != "DELTA_TIMESTAMP_GREATER_THAN_COMMIT":
            raise
        return None


@contextmanager
def _trimmed_is_refused(lake: Lake, topic: str, state: TopicState, timestamp: str) -> Iterator[None]:
    """Refuse a time that the log does not reach back to, in our words instead of Delta's."""
    try:
        yield
    except AnalysisException as e:
        if e.getCondition() != "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION":
            raise
        raise _trimmed(lake, topic, state, f"The log of topic '{topic}' does not reach back to {timestamp}.") from e


def _trimmed(lake: Lake, topic: str, state: TopicState, what: str) -> LogTrimmedError:
    starts = ", ".join(f"{p}: {state.start(p)}" for p in range(min(state.partitions, 8)))
    return LogTrimmedError(
        f"{what} Entries are kept for log.min.age.ms ({lake.topic_config(topic).log_min_age_ms} ms); raise it for"
        f" longer time travel. The records that are there begin at the log start offsets ({starts}): read from"
        " there with format('tidelog')."
    )
