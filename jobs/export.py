"""Records of topics become rows of any Spark sink: Delta, files, JDBC, Kafka, topics; once or as a stream.

`spark-submit jobs/export.py --lake ./lake --topic orders --to delta --save ./orders-table`
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from tidelog.commands.failures import UsageProblemError
from tidelog.commands.options import DebugOption, FormatOption, LakeOption, Session, StoreOption, pairs, session
from tidelog.commands.stopping import Stop
from tidelog.commands.terminal import note
from tidelog.jobs.programs import lone_app, run_job
from tidelog.jobs.transfer import options as shared
from tidelog.jobs.transfer.columns import BadJson, Forms, KeyForm, ValueForm
from tidelog.jobs.transfer.export import (
    Rows,
    SaveMode,
    Target,
    check_target,
    read_batch,
    read_stream,
    source_options,
    write_batch,
    write_stream,
)
from tidelog.jobs.transfer.report import Moved, Place, batch_in_words
from tidelog.jobs.transfer.spark_errors import spark_failures_told
from tidelog.log.lake import Lake
from tidelog.log.upkeep.holds import Holder
from tidelog.spark import session as spark_session

RECORDS = "Which records"
TARGET = "Where they go"
FORM = "What keys and values become"

Topics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic", metavar="TOPIC", help="A topic to read. Repeatable.", rich_help_panel=RECORDS, show_default=False
    ),
]
Pattern = Annotated[
    str | None,
    typer.Option("--pattern", metavar="REGEX", help="Every topic whose name matches.", rich_help_panel=RECORDS),
]
Starting = Annotated[
    str | None,
    typer.Option(
        "--starting-offsets",
        metavar="WHERE",
        help='earliest (the default), latest, or JSON such as \'{"orders": {"0": 23}}\'. A stream that goes on starts'
        " where it was.",
        rich_help_panel=RECORDS,
    ),
]
Ending = Annotated[
    str | None,
    typer.Option(
        "--ending-offsets",
        metavar="WHERE",
        help="With --once: latest (the default), or JSON; the end itself is not taken.",
        rich_help_panel=RECORDS,
    ),
]
To = Annotated[
    str,
    typer.Option(
        "--to",
        metavar="FORMAT",
        help="delta, parquet, json, csv, text, jdbc, kafka, tidelog, or any other that Spark writes.",
        rich_help_panel=TARGET,
        show_default=False,
    ),
]
Save = Annotated[
    str | None, typer.Option("--save", metavar="PATH", help="The folder to write to.", rich_help_panel=TARGET)
]
ModeOption = Annotated[
    SaveMode | None,
    typer.Option(
        "--mode",
        help="With --once, what becomes of what is there; error unless given, append for Kafka and topics.",
        rich_help_panel=TARGET,
    ),
]
PartitionBy = Annotated[
    list[str] | None,
    typer.Option(
        "--partition-by",
        metavar="COLUMN",
        help="Divide files into folders by this column. Repeatable.",
        rich_help_panel=TARGET,
        show_default=False,
    ),
]
KeyAs = Annotated[
    KeyForm | None,
    typer.Option("--key-as", help="string unless given; binary for Kafka and topics.", rich_help_panel=FORM),
]
ValueAs = Annotated[
    ValueForm | None,
    typer.Option(
        "--value-as",
        help="string unless given, binary for Kafka and topics; json: the columns of --schema.",
        rich_help_panel=FORM,
    ),
]
Schema = Annotated[
    str | None,
    typer.Option(
        "--schema", metavar="DDL", help="What is in JSON values: 'id long, city string'.", rich_help_panel=FORM
    ),
]
OnBadJson = Annotated[
    BadJson,
    typer.Option(
        "--on-bad-json", help="What a value does that is no JSON: end the job, or be null.", rich_help_panel=FORM
    ),
]
WithHeaders = Annotated[bool, typer.Option("--headers", help="A column of headers, too.", rich_help_panel=FORM)]


def export(
    context: typer.Context,
    to: To,
    topic: Topics = None,
    pattern: Pattern = None,
    starting_offsets: Starting = None,
    ending_offsets: Ending = None,
    save: Save = None,
    option: shared.Options = None,
    mode: ModeOption = None,
    partition_by: PartitionBy = None,
    key_as: KeyAs = None,
    value_as: ValueAs = None,
    schema: Schema = None,
    on_bad_json: OnBadJson = BadJson.FAIL,
    headers: WithHeaders = False,
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
    """Write records of topics to any Spark sink.

    Streams write each record exactly once to Delta, to files that Spark reads, to JDBC (by a table tidelog_exports in
    the same database) and to topics; at least once to Kafka and others. A batch begins anew each time.
    """
    when = shared.parse_when(
        once=once, available_now=available_now, stream=stream, every=every, checkpoint=checkpoint, run=run
    )
    target = Target(to.strip(), pairs("--option", option or ()), save, mode, tuple(partition_by or ()))
    rows = Rows(Forms(key_as, value_as, schema, on_bad_json, headers), tuple(select or ()), where)
    check_target(target, rows, when)
    more = pairs("--tidelog-option", tidelog_option or ())
    limits = {"startingOffsets": starting_offsets, "endingOffsets": ending_offsets}
    more |= {name: value for name, value in limits.items() if value is not None}
    _check_topics(topic, pattern, when, ending_offsets)
    call = session(context, lake, output, debug, store)
    with call.open_lake() as opened:
        options = source_options(opened, tuple(topic or ()), pattern, more)
        _carry_out(opened, options, target, rows, when, shared.package_list(packages), call, quiet)


def _check_topics(topics: Sequence[str] | None, pattern: str | None, when: shared.When, ending: str | None) -> None:
    if bool(topics) == (pattern is not None):
        raise UsageProblemError(
            "Say which topics to read: --topic orders (repeatable), or --pattern 'orders-.*', one of the two."
        )
    if when.streaming and ending is not None:
        raise UsageProblemError("A stream has no end. Leave --ending-offsets out, or use --once.")


def _carry_out(
    lake: Lake,
    options: Mapping[str, str],
    target: Target,
    rows: Rows,
    when: shared.When,
    packages: Sequence[str],
    call: Session,
    quiet: bool,
) -> None:
    def tell(records: int, moved: Mapping[Place, Moved]) -> None:
        if not quiet:
            note(batch_in_words(records, moved))

    with spark_failures_told(target.options), Stop() as stop:
        spark = spark_session("tidelog export", packages=packages, delta=target.needs_delta)
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


app = lone_app(
    "export",
    export.__doc__ or "",
    export,
    "export --lake ./lake --topic orders --to delta --save ./orders-table --value-as json --schema 'id"
    " long, city string' --available-now --checkpoint ./checkpoints/orders-table",
    shared.EXIT_CODES,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out the command line; its exit code."""
    return run_job(app, arguments)


if __name__ == "__main__":
    sys.exit(main())
