"""Any Spark source to a topic: what `jobs/ingest.py` does once its options are read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tidelog.commands.failures import UsageProblemError
from tidelog.jobs.transfer.options import When, with_default
from tidelog.jobs.transfer.records import RecordExpressions, TypeOf, record_columns
from tidelog.jobs.transfer.report import Place, Transferred, TransferReport
from tidelog.jobs.transfer.spark_errors import wrong_columns
from tidelog.jobs.transfer.stream import run_to_end, triggered
from tidelog.jobs.transfer.written_offsets import Written, of_query, of_request
from tidelog.log.lake import Lake
from tidelog.server.process.stopping import Stop

# What --from loads, for --query.
VIEW = "source"
_RECORD_FORMATS = ("kafka", "tidelog")
_STARTS = ("startingTimestamp", "startingOffsetsByTimestamp")

Options = Mapping[str, str]
# Called for each batch: how many records, and where they are.
Say = Callable[[int, Mapping[Place, Transferred]], None]


@dataclass(frozen=True)
class IngestSource:
    """Where rows come from: a format with options and paths, or a table of the catalog, or a query alone."""

    format: str | None
    options: Mapping[str, str]
    paths: tuple[str, ...]
    table: str | None
    schema: str | None
    query: str | None
    select: tuple[str, ...]
    where: str | None

    @property
    def needs_delta(self) -> bool:
        """Whether Delta's jars are wanted: for its format, and for the catalog's tables, which may be Delta's."""
        return self.format == "delta" or self.table is not None or self.query is not None

    def in_words(self) -> str:
        """The source as a report names it."""
        if self.format is None:
            return self.table or "--query"
        named = {name.lower(): value for name, value in self.options.items()}
        return " ".join((self.format, *self.paths, *(named[n] for n in ("dbtable", "subscribe") if n in named)))


def check_source(source: IngestSource, when: When) -> None:
    """Refuse a source that is none, or two. Raises `UsageProblemError`."""
    if source.format is None and source.table is None and source.query is None:
        raise UsageProblemError(
            "Nothing says what to read. Name a format (--from csv --load orders.csv), a table of the catalog (--table"
            " shop.orders), or an SQL query (--query)."
        )
    if source.format is not None and source.table is not None:
        raise UsageProblemError("--from and --table both say what to read. Keep one; --query can join others to it.")
    if source.format is None and (source.paths or source.options or source.schema):
        raise UsageProblemError("--load, --option and --schema belong to a format. Name it with --from.")
    if source.query is not None and (source.select or source.where):
        raise UsageProblemError("--query says which rows and columns to take. Leave --select and --where out.")
    if when.streaming and source.format is None and source.table is None:
        raise UsageProblemError("--query alone is a batch. Name the stream it reads with --from, and query 'source'.")
    if when.streaming and len(source.paths) > 1:
        raise UsageProblemError("A stream reads one --load. Give the folder above, or a pattern such as 'in/*/'.")


def source_options(source: IngestSource, lake: str) -> dict[str, str]:
    """The connector's options: of records, all that are there, with their headers, unless they say otherwise."""
    options = dict(source.options)
    if source.format in _RECORD_FORMATS:
        options = with_default(options, "startingOffsets", "earliest", *_STARTS)
        options = with_default(options, "includeHeaders", "true")
    if source.format == "tidelog":
        options = with_default(options, "lake", lake, "kafka.bootstrap.servers")
    return options


def read(spark: SparkSession, source: IngestSource, when: When, lake: str) -> DataFrame:
    """The rows that the options name; nothing is read yet. Raises `UsageProblemError`."""
    rows = _loaded(spark, source, when, lake)
    if source.query is not None:
        if rows is not None:
            rows.createOrReplaceTempView(VIEW)
        rows = spark.sql(source.query)
    if rows is None:
        raise UsageProblemError("Nothing says what to read: name --from, --table or --query.")
    if source.where is not None:
        rows = rows.where(source.where)
    if source.select:
        rows = rows.selectExpr(*source.select)
    if when.streaming and not rows.isStreaming:
        raise UsageProblemError("The query does not read the stream: select from 'source', which --from names.")
    return rows


def as_records(rows: DataFrame, wanted: RecordExpressions, header: Mapping[str, str]) -> DataFrame:
    """The rows as the sink takes them; `header`: expressions by name. Raises `UsageProblemError`."""
    columns = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
    found = record_columns(columns, wanted, header, _types_in(rows))
    return rows.selectExpr(*(f"({sql}) AS {name}" for name, sql in found.items()))


def write_batch(
    records: DataFrame, lake: Lake, topic: str, source: IngestSource, when: When, options: Options
) -> TransferReport:
    """Write one batch: all of it appears at once, or nothing."""
    began = lake.clock.elapsed_s()
    request = lake.ids.new()
    written = Written(lake, topic, of_request(request))
    settings = {**_settings(records, lake, topic, options), "requestId": request}
    repeated = False
    if when.run is not None:
        app_id = f"ingest/{when.run.name}"
        settings |= {"txnAppId": app_id, "txnVersion": str(when.run.number)}
        seen = lake.topic(topic).state().txn(app_id)
        repeated = seen is not None and seen >= when.run.number
    records.write.format("tidelog").options(**settings).mode("append").save()
    written.look(single=True)
    return _report(source, lake, topic, written, began, repeated=repeated and not written.entries)


def write_stream(
    records: DataFrame, lake: Lake, topic: str, source: IngestSource, when: When, options: Options, say: Say, stop: Stop
) -> TransferReport:
    """Write batch after batch, each exactly once; `say` is called for each."""
    began = lake.clock.elapsed_s()
    writer = records.writeStream.format("tidelog").options(**_settings(records, lake, topic, options))
    query = triggered(writer.queryName(f"ingest {topic}"), when).start()
    written = Written(lake, topic, of_query(query.id))

    def look() -> None:
        if new := written.look():
            say(sum(moved.records or 0 for moved in new.values()), new)

    run_to_end(query, stop, look)
    return _report(source, lake, topic, written, began, query=query)


def _loaded(spark: SparkSession, source: IngestSource, when: When, lake: str) -> DataFrame | None:
    reader = spark.readStream if when.streaming else spark.read
    if source.table is not None:
        return reader.table(source.table)
    if source.format is None:
        return None
    reader = reader.format(source.format).options(**source_options(source, lake))
    if source.schema is not None:
        reader = reader.schema(source.schema)
    if not source.paths:
        return reader.load()
    return reader.load(source.paths[0] if len(source.paths) == 1 else list(source.paths))  # type: ignore[arg-type]


def _types_in(rows: DataFrame) -> TypeOf:
    def type_of(option: str, sql: str) -> str:
        try:
            return str(rows.selectExpr(f"({sql}) AS it").schema.fields[0].dataType.simpleString())
        except (AnalysisException, ParseException) as e:
            raise wrong_columns(f"{option} {sql}", rows, e) from e

    return type_of


def _settings(records: DataFrame, lake: Lake, topic: str, options: Options) -> dict[str, str]:
    """The sink's options; a column of timestamps counts."""
    timed = {"includeTimestamp": "true"} if "timestamp" in records.columns else {}
    return {**timed, **lake.options, **options, "lake": lake.uri, "topic": topic}


def _report(
    source: IngestSource,
    lake: Lake,
    topic: str,
    written: Written,
    began_s: float,
    *,
    repeated: bool = False,
    query: StreamingQuery | None = None,
) -> TransferReport:
    return TransferReport(
        job="ingest",
        lake=lake.uri,
        source=source.in_words(),
        target=f"topic '{topic}'",
        partitions=written.moved,
        records=sum(moved.records or 0 for moved in written.moved.values()),
        bytes=sum(moved.bytes or 0 for moved in written.moved.values()),
        seconds=lake.clock.elapsed_s() - began_s,
        batches=None if query is None else written.entries,
        query_id=None if query is None else query.id,
        repeated=repeated,
    )
