"""The configuration of clients: one frozen class of settings per kind of client, made from a dict by `parse`.

Keys, aliases, types, ranges and defaults are librdkafka's (CONFIGURATION.md of librdkafka 2.16), with Kafka 4's Java
names as further aliases; where a default differs, the field's text says so. A field holds its key's value in the
key's unit.
"""

# ruff: noqa: RUF009 - `key` makes a dataclass field

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, Union

from tidelog.clients.settings.ignored import NO_CREDENTIALS
from tidelog.clients.settings.parsing import ClientKeys, parse_keys
from tidelog.clients.settings.value_types import AddressKind, Callback, Instance, Options
from tidelog.log.base.environment import LAKE_VARIABLE
from tidelog.log.base.keys import key
from tidelog.log.base.typed_values import Choice, Text, Whole

if TYPE_CHECKING:
    from tidelog.log.lake import Lake


@dataclass(frozen=True, kw_only=True)
class CommonSettings(ClientKeys):
    """What every client takes. `ignored`: keys that were set and do nothing, with the reason of each."""

    lake: Union[str, "Lake", None] = key(
        "lake",
        None,
        AddressKind(),
        "Where the lake is. An opened Lake stays its owner's: the client does not close it.",
        "bootstrap.servers",
        "metadata.broker.list",
        unset="the environment's `TIDELOG_LAKE`",
    )
    storage_options: Mapping[str, str] | None = key(
        "storage.options", None, Options(), "The store's options in a dict of their own, as `tidelog.Lake` takes them."
    )
    client_id: str = key(
        "client.id",
        "tidelog",
        Text(),
        "The client's name, shown by `tidelog group describe`. librdkafka's default: rdkafka.",
    )
    error_cb: Callable[[Any], Any] | None = key(
        "error_cb",
        None,
        Callback("error_cb(KafkaError)"),
        "Called from a consumer's `poll` and `consume` with errors of no partition; a producer's are in its reports.",
    )
    logger: logging.Logger | None = key(
        "logger",
        None,
        Instance("a `logging.Logger`", ("log", "warning", "isEnabledFor")),
        "Where the client logs to.",
        unset="`tidelog.clients`",
    )
    retry_backoff_ms: int = key(
        "retry.backoff.ms",
        100,
        Whole(1, 300_000),
        "Pause before a failed request to the storage is repeated; it doubles each time.",
    )
    retry_backoff_max_ms: int = key("retry.backoff.max.ms", 1_000, Whole(1, 300_000), "The longest such pause.")
    security_protocol: str = key(
        "security.protocol",
        "plaintext",
        Choice({"plaintext": "plaintext"}, any_case=True, others=NO_CREDENTIALS),
        "Kept for programs that set it.",
    )
    ignored: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, conf: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> Self:
        """Return the settings that a dict makes; `environ` stands for the process's environment.

        Raises KafkaException (`_INVALID_ARG`) for a key that is unknown, refused or set twice, a value that its key
        does not take, keys that contradict one another, and where no lake is named.
        """
        parsed = parse_keys(conf, cls)
        values = dict(parsed.values)
        address = (os.environ if environ is None else environ).get(LAKE_VARIABLE, "").strip()
        if address:
            values.setdefault("lake", address)
        return cls(**cls._ruled(values), ignored=parsed.ignored)

    @classmethod
    def _ruled(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Check rules between keys; return the values with what follows from them."""
        return values


@dataclass(frozen=True, kw_only=True)
class AdminSettings(CommonSettings):
    """What an AdminClient takes: `AdminSettings.parse({"lake": "/data/lake"})`."""


@dataclass(frozen=True, kw_only=True)
class RecordClientSettings(CommonSettings):
    """What a producer and a consumer take besides: how often they report statistics, and to which function."""

    statistics_interval_ms: int = key(
        "statistics.interval.ms", 0, Whole(0, 86_400_000), "How often `stats_cb` is called; 0: never."
    )
    stats_cb: Callable[[str], Any] | None = key(
        "stats_cb",
        None,
        Callback("stats_cb(str)"),
        "Called from `poll`, `consume` and `flush` with librdkafka's statistics as a JSON text, every "
        "`statistics.interval.ms`.",
    )
