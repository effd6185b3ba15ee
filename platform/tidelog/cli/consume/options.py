"""The options of `tidelog consume`: kcat's letters, each with a long name."""

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from tidelog.server.options import MetricsAt


@dataclass(frozen=True, kw_only=True)
class ConsumeOptions:
    """What a call asks for: kcat's letters, each with a long name."""

    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="What to consume.", show_default=False)]
    partition: Annotated[
        list[int] | None, typer.Option("-p", "--partition", metavar="N", min=0, help="Only this partition. Repeatable.")
    ] = None
    offset: Annotated[
        list[str] | None,
        typer.Option(
            "-o",
            "--offset",
            metavar="POSITION",
            help="Where to start: beginning (the default), end, an offset (42), how many of each partition's last"
            " (-10), or s@MS, a time in ms since the epoch. e@MS is a time to stop at; give -o twice for both.",
        ),
    ] = None
    group: Annotated[
        str | None,
        typer.Option(
            "-G",
            "--group",
            metavar="GROUP",
            help="Share the partitions with the other members of this consumer group, go on where it stands, and commit"
            " what is printed. -o (beginning or end) counts where it has no committed offset.",
        ),
    ] = None
    metrics: MetricsAt = None
    to_end: Annotated[bool, typer.Option("-e", "--to-end", help="Stop at the end, as of now.")] = False
    count: Annotated[int | None, typer.Option("-c", "--count", metavar="N", min=1, help="Stop after N records.")] = None
    template: Annotated[
        str | None,
        typer.Option(
            "-f",
            "--template",
            metavar="FORMAT",
            help=r"How to print a record: %s value, %k key, %h headers, %t topic, %p partition, %o offset, %T timestamp"
            r" (ms), %S and %K lengths of value and key, %R length of the value as 4 bytes, %%; \n \t \0 \x1e.",
        ),
    ] = None
    json_lines: Annotated[
        bool,
        typer.Option(
            "-J", "--json", help="Print lines of JSON, as 'produce --json' reads them; the same as --format json."
        ),
    ] = False
    key_delimiter: Annotated[
        str | None,
        typer.Option("-K", "--key-delimiter", metavar="DELIM", help="Print the key, and this, before the value."),
    ] = None
    delimiter: Annotated[
        str | None,
        typer.Option("-D", "--delimiter", metavar="DELIM", help=r"What to print after each record; \n by default."),
    ] = None
    nulls: Annotated[
        bool, typer.Option("-Z", "--nulls", help="Print NULL for a null key, value or header, not nothing.")
    ] = False
    print_headers: Annotated[
        bool, typer.Option("--print-headers", help="Print the headers, and a tab, before the record.")
    ] = False
    value_as: Annotated[
        Literal["avro", "json", "protobuf"] | None,
        typer.Option(
            help="Values name a schema, as serializers of registries write them: print what they hold, as JSON.",
            show_default=False,
        ),
    ] = None
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="Don't tell on stderr when a partition's end is reached.")
    ] = False
