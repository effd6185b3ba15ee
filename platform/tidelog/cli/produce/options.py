"""The options of `tidelog produce`: kcat's letters, each with a long name."""

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

# What -z, --acks and --partitioner take.
CodecName = Literal["none", "gzip", "snappy", "lz4", "zstd"]
Acks = Literal["0", "1", "all", "-1"]
PartitionerName = Literal["murmur2", "murmur3", "round_robin", "random"]


@dataclass(frozen=True, kw_only=True)
class ProduceOptions:
    """What a call asks for: kcat's letters, each with a long name."""

    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Where to produce to.", show_default=False)]
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE", help="What to read; without any, or for -, stdin.")
    ] = None
    key_delimiter: Annotated[
        str | None, typer.Option("-K", "--key-delimiter", metavar="DELIM", help="Divides key and value in a line.")
    ] = None
    key: Annotated[
        str | None, typer.Option("-k", "--key", metavar="KEY", help="The key of records that come without one.")
    ] = None
    header: Annotated[
        list[str] | None,
        typer.Option("-H", "--header", metavar="NAME=VALUE", help="A header for each record. Repeatable."),
    ] = None
    partition: Annotated[
        int | None, typer.Option("-p", "--partition", metavar="N", min=0, help="The partition for all records.")
    ] = None
    delimiter: Annotated[
        str | None,
        typer.Option(
            "-D", "--delimiter", metavar="DELIM", help=r"Divides records: \n (the default), \t, \0, \x1e, or any text."
        ),
    ] = None
    nulls: Annotated[
        bool, typer.Option("-Z", "--nulls", help="An empty value, or an empty key before the delimiter, is null.")
    ] = False
    as_json: Annotated[
        bool, typer.Option("-J", "--json", help="Lines are JSON, as 'consume --format json' writes them.")
    ] = False
    repartition: Annotated[
        bool, typer.Option("--repartition", help="With --json: choose partitions again, whatever the lines say.")
    ] = False
    codec: Annotated[CodecName | None, typer.Option("-z", "--compression", help="Codec of the segments.")] = None
    acks: Annotated[
        Acks, typer.Option(help="When a batch counts: 0 at once, 1 committed, all (or -1) also safe on disk.")
    ] = "all"
    partitioner: Annotated[PartitionerName, typer.Option(help="Chooses partitions; murmur2 as Kafka's.")] = "murmur2"
    batch_records: Annotated[int, typer.Option(metavar="N", min=1, help="Records in one append at most.")] = 50_000
    linger_ms: Annotated[int, typer.Option(metavar="MS", min=0, help="How long a record waits for others at most.")] = (
        100
    )
    value_as: Annotated[
        Literal["avro", "json", "protobuf"] | None,
        typer.Option(
            help="Values are JSON: write them by the newest schema of a subject, and name it in them.",
            show_default=False,
        ),
    ] = None
    value_subject: Annotated[
        str | None,
        typer.Option(
            metavar="SUBJECT", help="With --value-as: the subject; without it, TOPIC-value.", show_default=False
        ),
    ] = None
    value_type: Annotated[
        str | None,
        typer.Option(
            metavar="MESSAGE",
            help="With --value-as protobuf: the schema's message type, by its full name or without the package;"
            " without it, the first one.",
            show_default=False,
        ),
    ] = None
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No report on stderr.")] = False
