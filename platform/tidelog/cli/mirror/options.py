"""Options of a mirror on the command line alone: how to reach Kafka, and how fast to copy."""

import re
from dataclasses import dataclass
from typing import Annotated, ClassVar

import typer

from tidelog.cli.serving.config_file import read_config
from tidelog.commands.failures import UsageProblemError
from tidelog.commands.mirror_options import KAFKA
from tidelog.commands.options import pairs

# As `MetricsAt`, with the name that it had.
MirrorMetricsAt = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        "--metrics-listener",
        metavar="HOST:PORT",
        help="Serve /metrics for Prometheus, /healthz and /readyz there; port 0 takes a free one.",
        show_default=False,
    ),
]


@dataclass(frozen=True, kw_only=True)
class KafkaOptions:
    """How to reach Kafka."""

    panel: ClassVar[str] = "From Kafka"

    config: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="A key of confluent-kafka's configuration: security.protocol, ssl.ca.location, … Repeatable. Others"
            " see a command's line: keep secrets in a file.",
        ),
    ] = None
    config_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A properties file of such keys: sasl.password and others."),
    ] = None

    def conf(self) -> dict[str, str]:
        """Keys of the file, then those of the command's line. Raises `UsageProblemError`, `typer.BadParameter`."""
        found = {} if self.config_file is None else read_config(self.config_file)
        return found | pairs("--config", self.config or [])

    def require_none(self) -> None:
        """Refuse them where the source is a lake. Raises `UsageProblemError`."""
        if self.config or self.config_file:
            raise UsageProblemError(
                "--config and --config-file say how to reach Kafka, and the source is a lake: its store's options are"
                " --from-option."
            )


def kafka_servers(address: str) -> str | None:
    """The servers of `kafka://HOST:PORT[,HOST:PORT…]`; None for the address of a lake. Raises `UsageProblemError`.

    >>> kafka_servers("kafka://one:9092,two:9092/"), kafka_servers("/data/lake")
    ('one:9092,two:9092', None)
    """
    if not address.startswith(KAFKA):
        return None
    servers = address.removeprefix(KAFKA).rstrip("/")
    if not all(re.fullmatch(r"(\[[0-9a-fA-F:]+\]|[^\s:,/]+):\d{1,5}", server) for server in servers.split(",")):
        raise UsageProblemError(f"--from {address!r} is no address of Kafka: give kafka://HOST:PORT[,HOST:PORT…].")
    return servers


def bytes_per_s(text: str | None) -> float | None:
    """A rate such as 500k, 20M or 1G, bytes a second. Raises `UsageProblemError`.

    >>> bytes_per_s("1.5M")
    1500000.0
    """
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kMG]?)", text)
    if match is None or not float(match[1]):
        raise UsageProblemError(f"--limit {text!r} is no rate: give bytes a second, as 500k, 20M or 1G.")
    return float(match[1]) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[match[2]]
