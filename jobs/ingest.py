"""Rows of any Spark source become records of a topic: files, tables, JDBC, Kafka, topics; once or as a stream.

`spark-submit jobs/ingest.py --lake ./lake --topic orders --from csv --load orders.csv --option header=true --key id`
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import typer

from tidelog.commands.declare import program
from tidelog.commands.options import Session, pairs
from tidelog.commands.stopping import Stop
from tidelog.commands.terminal import note
from tidelog.jobs.transfer.ingest import IngestSource, as_records, check_source, read, write_batch, write_stream
from tidelog.jobs.transfer.options import EXIT_CODES, TransferOptions, When
from tidelog.jobs.transfer.records import RecordExpressions
from tidelog.jobs.transfer.report import Place, Transferred, batch_in_words
from tidelog.jobs.transfer.spark_errors import spark_failures_told
from tidelog.log.base.errors import UnknownTopicError
from tidelog.log.lake import Lake
from tidelog.spark import session as spark_session

RECORD = "What a record is: each a column's name or an SQL expression"
SOURCE = "Where rows come from"


@dataclass(frozen=True, kw_only=True)
class InputOptions:
    """Where rows come from."""

    source_format: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FORMAT",
            help="csv, json, parquet, text, delta, jdbc, kafka, tidelog, or any other that Spark reads.",
            rich_help_panel=SOURCE,
        ),
    ] = None
    load: Annotated[
        list[str] | None,
        typer.Option(
            "--load",
            metavar="PATH",
            help="The files, folder or pattern to read. Repeatable, but for streams.",
            rich_help_panel=SOURCE,
            show_default=False,
        ),
    ] = None
    table: Annotated[
        str | None,
        typer.Option("--table", metavar="NAME", help="A table of Spark's catalog, not --from.", rich_help_panel=SOURCE),
    ] = None
    query: Annotated[
        str | None,
        typer.Option(
            "--query",
            metavar="SQL",
            help="A query over what --from or --table names, which it calls 'source', or over tables of the catalog.",
            rich_help_panel=SOURCE,
        ),
    ] = None
    schema: Annotated[
        str | None,
        typer.Option(
            "--schema",
            metavar="DDL",
            help="The columns, such as 'id long, city string'. Streams of files need it.",
            rich_help_panel=SOURCE,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class RecordOptions:
    """What a record is."""

    key: Annotated[
        str | None, typer.Option("--key", metavar="SQL", help="The key; none unless given.", rich_help_panel=RECORD)
    ] = None
    value: Annotated[
        str | None,
        typer.Option(
            "--value",
            metavar="SQL",
            help="The value; the columns that no other option names, as JSON, unless given. Rows that are records"
            " already (columns value, and key, headers, timestamp …, as Kafka's) stay as they are.",
            rich_help_panel=RECORD,
        ),
    ] = None
    headers: Annotated[
        str | None,
        typer.Option(
            "--headers",
            metavar="SQL",
            help="All headers: a map, or an array of structs of key and value.",
            rich_help_panel=RECORD,
        ),
    ] = None
    header: Annotated[
        list[str] | None,
        typer.Option(
            "--header",
            metavar="NAME=SQL",
            help="One header, such as \"source='shop'\". Repeatable.",
            rich_help_panel=RECORD,
            show_default=False,
        ),
    ] = None
    timestamp: Annotated[
        str | None,
        typer.Option("--timestamp", metavar="SQL", help="The record's time; now unless given.", rich_help_panel=RECORD),
    ] = None
    partition: Annotated[
        str | None,
        typer.Option(
            "--partition", metavar="SQL", help="The partition; chosen by the key unless given.", rich_help_panel=RECORD
        ),
    ] = None


def ingest(
    call: Session,
    topic: Annotated[str, typer.Option("--topic", metavar="TOPIC", help="The topic to write to.", show_default=False)],
    rows: InputOptions,
    record: RecordOptions,
    transfer: TransferOptions,
) -> None:
    """Write rows of any Spark source to a topic.

    A batch appears as a whole or not at all; a stream's batches count exactly once each, whatever fails between.
    """
    when = transfer.when()
    source = IngestSource(
        format=None if rows.source_format is None else rows.source_format.strip(),
        options=pairs("--option", transfer.option or ()),
        paths=tuple(rows.load or ()),
        table=rows.table,
        schema=rows.schema,
        query=rows.query,
        select=tuple(transfer.select or ()),
        where=transfer.where,
    )
    check_source(source, when)
    headers = pairs("--header", record.header or ())
    wanted = RecordExpressions(record.key, record.value, record.headers, headers, record.timestamp, record.partition)
    options = pairs("--tidelog-option", transfer.tidelog_option or ())
    with call.open_lake() as lake:
        _transfer(call, lake, topic, source, wanted, when, options, transfer)


def _transfer(
    call: Session,
    lake: Lake,
    topic: str,
    source: IngestSource,
    wanted: RecordExpressions,
    when: When,
    options: Mapping[str, str],
    transfer: TransferOptions,
) -> None:
    _check_topic(lake, topic)
    spark = spark_session("tidelog ingest", packages=transfer.package_list, delta=source.needs_delta)

    def tell(records: int, moved: Mapping[Place, Transferred]) -> None:
        if not transfer.quiet:
            note(batch_in_words(records, moved))

    with spark_failures_told(source.options), Stop() as stop:
        records = as_records(read(spark, source, when, lake.uri), wanted)
        lake.ensure_topic(topic)
        if when.streaming:
            report = write_stream(records, lake, topic, source, when, options, tell, stop)
        else:
            report = write_batch(records, lake, topic, source, when, options)
        code = stop.exit_code
    report.show(as_json=call.as_json)
    if code:
        raise typer.Exit(code)


def _check_topic(lake: Lake, topic: str) -> None:
    """Refuse a topic that is not there and must not be created, before Spark starts. Creates nothing."""
    if not lake.topic(topic).id and not lake.config().auto_create_topics_enable:
        raise UnknownTopicError(
            f"Topic '{topic}' does not exist, and the lake's auto.create.topics.enable is false. Create it: 'tidelog"
            " topic create'."
        )


main = program(
    "ingest",
    ingest,
    summary=ingest.__doc__ or "",
    example="ingest --lake ./lake --topic orders --from json --load in/ --schema 'id long, city string'"
    " --key id --available-now --checkpoint ./checkpoints/orders",
    codes=EXIT_CODES,
)

if __name__ == "__main__":
    sys.exit(main())
