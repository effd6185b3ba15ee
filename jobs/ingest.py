"""Rows of any Spark source become records of a topic: files, tables, JDBC, Kafka, topics; once or as a stream.

`spark-submit jobs/ingest.py --lake ./lake --topic orders --from csv --load orders.csv --option header=true --key id`
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from tidelog.commands.options import DebugOption, FormatOption, LakeOption, Session, StoreOption, pairs, session
from tidelog.commands.stopping import Stop
from tidelog.commands.terminal import note
from tidelog.jobs.programs import lone_app, run_job
from tidelog.jobs.transfer import options as shared
from tidelog.jobs.transfer.ingest import Source, as_records, check_source, read, write_batch, write_stream
from tidelog.jobs.transfer.records import Wanted
from tidelog.jobs.transfer.report import Moved, Place, batch_in_words
from tidelog.jobs.transfer.spark_errors import spark_failures_told
from tidelog.log.base.errors import UnknownTopicError
from tidelog.log.lake import Lake
from tidelog.spark import session as spark_session

RECORD = "What a record is: each a column's name or an SQL expression"
SOURCE = "Where rows come from"

Topic = Annotated[str, typer.Option("--topic", metavar="TOPIC", help="The topic to write to.", show_default=False)]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="FORMAT",
        help="csv, json, parquet, text, delta, jdbc, kafka, tidelog, or any other that Spark reads.",
        rich_help_panel=SOURCE,
    ),
]
Load = Annotated[
    list[str] | None,
    typer.Option(
        "--load",
        metavar="PATH",
        help="The files, folder or pattern to read. Repeatable, but for streams.",
        rich_help_panel=SOURCE,
        show_default=False,
    ),
]
Table = Annotated[
    str | None,
    typer.Option("--table", metavar="NAME", help="A table of Spark's catalog, not --from.", rich_help_panel=SOURCE),
]
Query = Annotated[
    str | None,
    typer.Option(
        "--query",
        metavar="SQL",
        help="A query over what --from or --table names, which it calls 'source', or over tables of the catalog.",
        rich_help_panel=SOURCE,
    ),
]
Schema = Annotated[
    str | None,
    typer.Option(
        "--schema",
        metavar="DDL",
        help="The columns, such as 'id long, city string'. Streams of files need it.",
        rich_help_panel=SOURCE,
    ),
]
Key = Annotated[
    str | None, typer.Option("--key", metavar="SQL", help="The key; none unless given.", rich_help_panel=RECORD)
]
Value = Annotated[
    str | None,
    typer.Option(
        "--value",
        metavar="SQL",
        help="The value; the columns that no other option names, as JSON, unless given. Rows that are records already"
        " (columns value, and key, headers, timestamp …, as Kafka's) stay as they are.",
        rich_help_panel=RECORD,
    ),
]
Headers = Annotated[
    str | None,
    typer.Option(
        "--headers",
        metavar="SQL",
        help="All headers: a map, or an array of structs of key and value.",
        rich_help_panel=RECORD,
    ),
]
Header = Annotated[
    list[str] | None,
    typer.Option(
        "--header",
        metavar="NAME=SQL",
        help="One header, such as \"source='shop'\". Repeatable.",
        rich_help_panel=RECORD,
        show_default=False,
    ),
]
Timestamp = Annotated[
    str | None,
    typer.Option("--timestamp", metavar="SQL", help="The record's time; now unless given.", rich_help_panel=RECORD),
]
Partition = Annotated[
    str | None,
    typer.Option(
        "--partition", metavar="SQL", help="The partition; chosen by the key unless given.", rich_help_panel=RECORD
    ),
]


def ingest(
    context: typer.Context,
    topic: Topic,
    source_format: From = None,
    load: Load = None,
    option: shared.Options = None,
    table: Table = None,
    query: Query = None,
    schema: Schema = None,
    key: Key = None,
    value: Value = None,
    headers: Headers = None,
    header: Header = None,
    timestamp: Timestamp = None,
    partition: Partition = None,
    select: shared.Select = None,
    where: shared.Where = None,
    once: shared.Once = False,
    available_now: shared.AvailableNow = False,
    stream: shared.Stream = False,
    every: shared.Every = None,
    checkpoint: shared.Checkpoint = None,
    run: shared.RunOption = None,
    tidelog_option: shared.TidelogOptions = None,
    packages: shared.Packages = None,
    quiet: shared.Quiet = False,
    lake: LakeOption = None,
    store: StoreOption = None,
    output: FormatOption = None,
    debug: DebugOption = False,
) -> None:
    """Write rows of any Spark source to a topic.

    A batch appears as a whole or not at all; a stream's batches count exactly once each, whatever fails between.
    """
    when = shared.parse_when(
        once=once, available_now=available_now, stream=stream, every=every, checkpoint=checkpoint, run=run
    )
    source = Source(
        format=None if source_format is None else source_format.strip(),
        options=pairs("--option", option or ()),
        paths=tuple(load or ()),
        table=table,
        schema=schema,
        query=query,
        select=tuple(select or ()),
        where=where,
    )
    check_source(source, when)
    wanted = Wanted(key, value, headers, pairs("--header", header or ()), timestamp, partition)
    call = session(context, lake, output, debug, store)
    more = pairs("--tidelog-option", tidelog_option or ())
    with call.open_lake() as opened:
        _carry_out(opened, topic, source, wanted, when, more, shared.package_list(packages), call, quiet)


def _carry_out(
    lake: Lake,
    topic: str,
    source: Source,
    wanted: Wanted,
    when: shared.When,
    options: Mapping[str, str],
    packages: Sequence[str],
    call: Session,
    quiet: bool,
) -> None:
    _check_topic(lake, topic)
    spark = spark_session("tidelog ingest", packages=packages, delta=source.needs_delta)

    def tell(records: int, moved: Mapping[Place, Moved]) -> None:
        if not quiet:
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


app = lone_app(
    "ingest",
    ingest.__doc__ or "",
    ingest,
    "ingest --lake ./lake --topic orders --from json --load in/ --schema 'id long, city string'"
    " --key id --available-now --checkpoint ./checkpoints/orders",
    shared.EXIT_CODES,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out the command line; its exit code."""
    return run_job(app, arguments)


if __name__ == "__main__":
    sys.exit(main())
