"""From a client's settings to its lake."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tidelog.clients.settings import CommonSettings, ConsumerSettings, ProducerSettings
from tidelog.clients.values.errors import invalid_argument, kafka_exceptions
from tidelog.log.base.environment import LAKE_VARIABLE
from tidelog.log.lake import Lake
from tidelog.log.storage.addresses import parse_address
from tidelog.log.storage.objects_connecting import REQUEST_TIMEOUT_MS, RETRY_TIMEOUT_MS
from tidelog.log.storage.options import StoreOptions

LOGGER: Final = logging.getLogger("tidelog.clients")


@dataclass(frozen=True)
class OpenedLake:
    """A client's lake. `owned`: whether the client opened it; one that it was handed stays open."""

    lake: Lake
    owned: bool

    def close(self) -> None:
        """Close the lake where the client opened it."""
        if self.owned:
            self.lake.close()


def open_lake(settings: CommonSettings) -> OpenedLake:
    """Open the lake that a client's settings name, and warn of keys that do nothing.

    A lake that is not there comes with the first thing that a Producer or an AdminClient writes; a Consumer's has to be
    there. Call it once per client: each ignored key is logged once, as a warning. Raises KafkaException when no lake is
    named or the lake can't be opened.
    """
    for name, reason in settings.ignored.items():
        (settings.logger or LOGGER).warning('Configuration property "%s" is ignored: %s.', name, reason)
    if isinstance(settings.lake, Lake):
        return OpenedLake(settings.lake, owned=False)
    if settings.lake is None:
        raise invalid_argument(
            "No lake is named. Give its address, a folder or a URI such as s3://bucket/lake, as `lake` or "
            f"`bootstrap.servers`, or in the environment's {LAKE_VARIABLE}."
        )
    with kafka_exceptions():
        create = False if isinstance(settings, ConsumerSettings) else None
        return OpenedLake(Lake(settings.lake, create, options=store_options(settings)), owned=True)


def store_options(settings: CommonSettings) -> Mapping[str, str] | None:
    """The store's options. A call of a producer's store ends within its `delivery.timeout.ms`, repeats included.

    Else a store that hangs would hold the report back that the time is up. What the options say themselves counts.
    """
    given = settings.storage_options
    if not isinstance(settings, ProducerSettings) or not isinstance(settings.lake, str):
        return given
    half_ms = max(1, settings.delivery_timeout_ms // 2)
    if (
        not settings.delivery_timeout_ms
        or half_ms >= RETRY_TIMEOUT_MS
        or not parse_address(settings.lake).is_object_store
    ):
        return given
    bounds = {
        "lake.store.request.timeout.ms": min(half_ms, REQUEST_TIMEOUT_MS),
        "lake.store.retry.timeout.ms": half_ms,
    }
    if given is not None and "timeout" in given:
        del bounds["lake.store.request.timeout.ms"]
    return StoreOptions({**bounds, **(given or {})})
