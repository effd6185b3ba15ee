"""Rows of any Spark source become records of a topic: files, tables, JDBC, Kafka, topics; once or as a stream.

`spark-submit jobs/ingest.py --lake ./lake --topic orders --from csv --load orders.csv --option header=true --key id`
"""

import sys
from dataclasses import dataclass
from typing import Annotated, ClassVar

import typer

from tidelog.commands.declare import program
from tidelog.commands.options import Session, pairs
from tidelog.jobs.transfer.ingest import IngestSource, as_records, check_source, read, write_batch, write_stream
from tidelog.jobs.transfer.options import EXIT_CODES, TransferOptions
from tidelog.jobs.transfer.records import RecordExpressions
from tidelog.jobs.transfer.spark_errors import spark_failures_told
from tidelog.log.base.errors import UnknownTopicError
from tidelog.log.lake import Lake
from tidelog.server.process.stopping import Stop
from tidelog.spark import session as spark_session


@dataclass(frozen=True, kw_only=True)
class InputOptions:
    """Where rows come from."""

    panel: ClassVar[str] = "Where rows come from"

    source_format: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FORMAT",
            help="csv, json, parquet, text, delta, jdbc, kafka, tidelog, or any other that Spark reads.",
        ),
    ] = None
    load: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="The files, folder or pattern to read. Repeatable, but for streams."),
    ] = None
    table: Annotated[str | None, typer.Option(metavar="NAME", help="A table of Spark's catalog, not --from.")] = None
    query: Annotated[
        str | None,
        typer.Option(
            metavar="SQL",
            help="A query over what --from or --table names, which it calls 'source', or over tables of the catalog.",
        ),
    ] = None
    schema: Annotated[
        str | None,
        typer.Option(metavar="DDL", help="The columns, such as 'id long, city string'. Streams of files need it."),
    ] = None


def ingest(
    call: Session,
    topic: Annotated[str, typer.Option(metavar="TOPIC", help="The topic to write to.", show_default=False)],
    rows: InputOptions,
    record: RecordExpressions,
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
    header = pairs("--header", record.header or ())
    options = pairs("--tidelog-option", transfer.tidelog_option or ())
    with call.open_lake() as lake:
        _check_topic(lake, topic)
        spark = spark_session("tidelog ingest", packages=transfer.package_list, delta=source.needs_delta)
        with spark_failures_told(source.options), Stop() as stop:
            records = as_records(read(spark, source, when, lake.uri), record, header)
            lake.ensure_topic(topic)
            if when.streaming:
                report = write_stream(records, lake, topic, source, when, options, transfer.tell, stop)
            else:
                report = write_batch(records, lake, topic, source, when, options)
        report.show(as_json=call.as_json)
    if stop.asked:
        raise typer.Exit(stop.exit_code)


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
