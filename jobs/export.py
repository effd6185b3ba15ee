"""Records of topics become rows of any Spark sink: Delta, files, JDBC, Kafka, topics; once or as a stream.

`spark-submit jobs/export.py --lake ./lake --topic orders --to delta --save ./orders-table`
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import typer

from tidelog.commands.declare import program
from tidelog.commands.failures import UsageProblemError
from tidelog.commands.options import Session, pairs
from tidelog.commands.stopping import Stop
from tidelog.commands.terminal import note
from tidelog.jobs.transfer.columns import Forms
from tidelog.jobs.transfer.export import (
    ExportTarget,
    RowShape,
    SaveMode,
    check_target,
    read_batch,
    read_stream,
    source_options,
    write_batch,
    write_stream,
)
from tidelog.jobs.transfer.options import EXIT_CODES, TransferOptions, When
from tidelog.jobs.transfer.report import Place, Transferred, batch_in_words
from tidelog.jobs.transfer.spark_errors import spark_failures_told
from tidelog.log.lake import Lake
from tidelog.log.upkeep.holds import Holder
from tidelog.spark import session as spark_session

RECORDS = "Which records"
TARGET = "Where they go"


@dataclass(frozen=True, kw_only=True)
class TargetOptions:
    """Where rows go."""

    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help="delta, parquet, json, csv, text, jdbc, kafka, tidelog, or any other that Spark writes.",
            rich_help_panel=TARGET,
            show_default=False,
        ),
    ]
    save: Annotated[
        str | None, typer.Option("--save", metavar="PATH", help="The folder to write to.", rich_help_panel=TARGET)
    ] = None
    mode: Annotated[
        SaveMode | None,
        typer.Option(
            "--mode",
            help="With --once, what becomes of what is there; error unless given, append for Kafka and topics.",
            rich_help_panel=TARGET,
        ),
    ] = None
    partition_by: Annotated[
        list[str] | None,
        typer.Option(
            "--partition-by",
            metavar="COLUMN",
            help="Divide files into folders by this column. Repeatable.",
            rich_help_panel=TARGET,
            show_default=False,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class RecordsOptions:
    """Which records are read."""

    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic", metavar="TOPIC", help="A topic to read. Repeatable.", rich_help_panel=RECORDS, show_default=False
        ),
    ] = None
    pattern: Annotated[
        str | None,
        typer.Option("--pattern", metavar="REGEX", help="Every topic whose name matches.", rich_help_panel=RECORDS),
    ] = None
    starting_offsets: Annotated[
        str | None,
        typer.Option(
            "--starting-offsets",
            metavar="WHERE",
            help='earliest (the default), latest, or JSON such as \'{"orders": {"0": 23}}\'. A stream that goes on'
            " starts where it was.",
            rich_help_panel=RECORDS,
        ),
    ] = None
    ending_offsets: Annotated[
        str | None,
        typer.Option(
            "--ending-offsets",
            metavar="WHERE",
            help="With --once: latest (the default), or JSON; the end itself is not taken.",
            rich_help_panel=RECORDS,
        ),
    ] = None


def export(
    call: Session, target: TargetOptions, records: RecordsOptions, forms: Forms, transfer: TransferOptions
) -> None:
    """Write records of topics to any Spark sink.

    Streams write each record exactly once to Delta, to files that Spark reads, to JDBC (by a table tidelog_exports in
    the same database) and to topics; at least once to Kafka and others. A batch begins again each time.
    """
    when = transfer.when()
    options = pairs("--option", transfer.option or ())
    to = ExportTarget(target.to.strip(), options, target.save, target.mode, tuple(target.partition_by or ()))
    rows = RowShape(forms, tuple(transfer.select or ()), transfer.where)
    check_target(to, rows, when)
    more = pairs("--tidelog-option", transfer.tidelog_option or ())
    limits = {"startingOffsets": records.starting_offsets, "endingOffsets": records.ending_offsets}
    more |= {name: value for name, value in limits.items() if value is not None}
    _check_topics(records, when)
    with call.open_lake() as lake:
        read = source_options(lake, tuple(records.topic or ()), records.pattern, more)
        _transfer(call, lake, read, to, rows, when, transfer)


def _check_topics(records: RecordsOptions, when: When) -> None:
    if bool(records.topic) == (records.pattern is not None):
        raise UsageProblemError(
            "Say which topics to read: --topic orders (repeatable), or --pattern 'orders-.*', one of the two."
        )
    if when.streaming and records.ending_offsets is not None:
        raise UsageProblemError("A stream has no end. Leave --ending-offsets out, or use --once.")


def _transfer(
    call: Session,
    lake: Lake,
    options: Mapping[str, str],
    target: ExportTarget,
    rows: RowShape,
    when: When,
    transfer: TransferOptions,
) -> None:
    def tell(records: int, moved: Mapping[Place, Transferred]) -> None:
        if not transfer.quiet:
            note(batch_in_words(records, moved))

    with spark_failures_told(target.options), Stop() as stop:
        spark = spark_session("tidelog export", packages=transfer.package_list, delta=target.needs_delta)
        if when.streaming:
            stream, initial = read_stream(spark, lake, options)
            report = write_stream(stream, initial, target, rows, when, lake, tell, stop)
        else:
            with Holder(lake.storage, lake.clock, lake.ids, "export") as holder:
                records, offsets = read_batch(spark, lake, options, holder)
                report = write_batch(records, offsets, target, rows, when, lake)
        code = stop.exit_code
    report.show(as_json=call.as_json)
    if code:
        raise typer.Exit(code)


main = program(
    "export",
    export,
    summary=export.__doc__ or "",
    example="export --lake ./lake --topic orders --to delta --save ./orders-table --value-as json --schema 'id"
    " long, city string' --available-now --checkpoint ./checkpoints/orders-table",
    codes=EXIT_CODES,
)

if __name__ == "__main__":
    sys.exit(main())
