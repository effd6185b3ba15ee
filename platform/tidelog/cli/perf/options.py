"""The options of `tidelog perf`: those of Kafka's performance tools, and what reports storage calls."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tidelog.server.options import MetricsAt

_STORAGE = "Storage calls"

PricesOption = Annotated[
    Path | None,
    typer.Option(
        "--prices",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="List prices, in TOML or JSON (docs/object-stores.md); those of S3 Standard unless given.",
        rich_help_panel=_STORAGE,
    ),
]

StorageCallsOption = Annotated[
    bool,
    typer.Option(
        "--storage-calls",
        help="Report the calls to the object store by kind, and what they cost. On another store: those that would be"
        " made.",
        rich_help_panel=_STORAGE,
    ),
]

TopicOption = Annotated[
    str, typer.Option("--topic", metavar="TOPIC", help="The topic to produce to, or consume from.", show_default=False)
]


@dataclass(frozen=True, kw_only=True)
class PerfProduceOptions:
    """What `tidelog perf produce` is asked for."""

    topic: TopicOption
    num_records: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many records to produce.", show_default=False)
    ]
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="More keys, as Kafka's tool takes them.", hidden=True),
    ] = None
    record_size: Annotated[
        int | None, typer.Option(metavar="BYTES", min=1, help="Values of this number of random letters.")
    ] = None
    payload_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", exists=True, dir_okay=False, help="Values from this text file, at random."),
    ] = None
    payload_monotonic: Annotated[
        bool, typer.Option("--payload-monotonic", help="Values that are the texts of 0, 1, 2 and so on.")
    ] = False
    payload_delimiter: Annotated[str, typer.Option(metavar="DELIM", help="Divides the values in the payload file.")] = (
        "\\n"
    )
    throughput: Annotated[
        float, typer.Option(metavar="RATE", help="Roughly the most records a second; -1 for no limit.")
    ] = -1.0
    producer_props: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="A key of the producer's configuration (docs/clients.md). Repeatable; more may follow as arguments.",
        ),
    ] = None
    producer_config: Annotated[
        Path | None,
        typer.Option(
            "--producer.config", metavar="FILE", exists=True, dir_okay=False, help="A properties file of such keys."
        ),
    ] = None
    transactional_id: Annotated[str | None, typer.Option(metavar="ID", help="Produce in transactions of this id.")] = (
        None
    )
    transaction_duration_ms: Annotated[
        int | None, typer.Option(metavar="MS", min=1, help="How long a transaction is open at most; 3000 unless given.")
    ] = None
    warmup_records: Annotated[
        int, typer.Option(metavar="N", min=0, help="Sum up the records after the first N in a line of their own.")
    ] = 0
    storage_calls: StorageCallsOption = False
    prices: PricesOption = None
    metrics: MetricsAt = None


@dataclass(frozen=True, kw_only=True)
class PerfConsumeOptions:
    """What `tidelog perf consume` is asked for."""

    topic: TopicOption
    messages: Annotated[
        int,
        typer.Option(
            "--messages", "--num-records", metavar="N", min=1, help="How many to consume.", show_default=False
        ),
    ]
    group: Annotated[
        str | None, typer.Option(metavar="GROUP", help="The consumer group; perf-consumer- and a number unless given.")
    ] = None
    fetch_size: Annotated[
        int, typer.Option(metavar="BYTES", min=1, help="The most to fetch of a partition at once.")
    ] = 1024 * 1024
    from_latest: Annotated[
        bool, typer.Option("--from-latest", help="Without committed offsets start at the end, not at the beginning.")
    ] = False
    consumer_config: Annotated[
        Path | None,
        typer.Option(
            "--consumer.config",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="A properties file with keys of the consumer's configuration (docs/clients.md).",
        ),
    ] = None
    show_detailed_stats: Annotated[
        bool, typer.Option("--show-detailed-stats", help="Report each interval, and not the whole at the end.")
    ] = False
    timeout: Annotated[int, typer.Option(metavar="MS", min=0, help="End when no record came for so long.")] = 10_000
    reporting_interval: Annotated[
        int, typer.Option(metavar="MS", min=1, help="The intervals of detailed statistics.")
    ] = 5_000
    date_format: Annotated[
        str, typer.Option(metavar="PATTERN", help="How to print times: Java's letters yyyy MM dd HH mm ss SSS.")
    ] = "yyyy-MM-dd HH:mm:ss:SSS"
    hide_header: Annotated[bool, typer.Option("--hide-header", help="Print no header.")] = False
    storage_calls: StorageCallsOption = False
    prices: PricesOption = None
    metrics: MetricsAt = None
