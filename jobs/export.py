"""Records of topics become rows of any Spark sink: Delta, files, JDBC, Kafka, topics; once or as a stream.

`spark-submit jobs/export.py --lake ./lake --topic orders --to delta --save ./orders-table`
"""

import sys
from dataclasses import dataclass
from typing import Annotated, ClassVar

import typer

from tidelog.commands.declare import program
from tidelog.commands.failures import UsageProblemError
from tidelog.commands.options import Session, pairs
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
from tidelog.jobs.transfer.spark_errors import spark_failures_told
from tidelog.log.upkeep.holds import Holder
from tidelog.server.process.stopping import Stop
from tidelog.spark import session as spark_session


@dataclass(frozen=True, kw_only=True)
class TargetOptions:
    """Where rows go."""

    panel: ClassVar[str] = "Where they go"

    to: Annotated[
        str,
        typer.Option(
            metavar="FORMAT",
            help="delta, parquet, json, csv, text, jdbc, kafka, tidelog, or any other that Spark writes.",
            show_default=False,
        ),
    ]
    save: Annotated[str | None, typer.Option(metavar="PATH", help="The folder to write to.")] = None
    mode: Annotated[
        SaveMode | None,
        typer.Option(
            help="With --once, what becomes of what is there; error unless given, append for Kafka and topics."
        ),
    ] = None
    partition_by: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Divide files into folders by this column. Repeatable.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class RecordsOptions:
    """Which records are read."""

    panel: ClassVar[str] = "Which records"

    topic: Annotated[list[str] | None, typer.Option(metavar="TOPIC", help="A topic to read. Repeatable.")] = None
    pattern: Annotated[str | None, typer.Option(metavar="REGEX", help="Every topic whose name matches.")] = None
    starting_offsets: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help='earliest (the default), latest, or JSON such as \'{"orders": {"0": 23}}\'. A stream that goes on'
            " starts where it was.",
        ),
    ] = None
    ending_offsets: Annotated[
        str | None,
        typer.Option(metavar="WHERE", help="With --once: latest (the default), or JSON; the end itself is not taken."),
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
        with spark_failures_told(to.options), Stop() as stop:
            spark = spark_session("tidelog export", packages=transfer.package_list, delta=to.needs_delta)
            if when.streaming:
                stream, initial = read_stream(spark, lake, read)
                report = write_stream(stream, initial, to, rows, when, lake, transfer.tell, stop)
            else:
                with Holder(lake.storage, lake.clock, lake.ids, "export") as holder:
                    batch, offsets = read_batch(spark, lake, read, holder)
                    report = write_batch(batch, offsets, to, rows, when, lake)
        report.show(as_json=call.as_json)
    if stop.asked:
        raise typer.Exit(stop.exit_code)


def _check_topics(records: RecordsOptions, when: When) -> None:
    if bool(records.topic) == (records.pattern is not None):
        raise UsageProblemError(
            "Say which topics to read: --topic orders (repeatable), or --pattern 'orders-.*', one of the two."
        )
    if when.streaming and records.ending_offsets is not None:
        raise UsageProblemError("A stream has no end. Leave --ending-offsets out, or use --once.")


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
