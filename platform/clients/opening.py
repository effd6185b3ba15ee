"""From a client's settings to its lake."""

import logging
from dataclasses import dataclass
from typing import Final

from tidelog.clients.errors import KafkaException, invalid_argument, kafka_error
from tidelog.clients.settings import LAKE_VARIABLE, CommonSettings
from tidelog.log.errors import TidelogError
from tidelog.log.lake import Lake

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
    """Open the lake that a client was told, creating one where there is none, and warn of keys that do nothing.

    Call it once per client: each ignored key is logged once, as a warning. Raises KafkaException when no lake is
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
    try:
        return OpenedLake(Lake(settings.lake, options=settings.storage_options), owned=True)
    except TidelogError as e:
        raise KafkaException(kafka_error(e)) from e
