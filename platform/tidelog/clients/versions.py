"""Which version this is, asked as confluent-kafka's programs ask."""

from importlib import metadata
from typing import Final

# The librdkafka whose configuration keys, error codes and statistics the clients follow.
_LIBRDKAFKA: Final = ("2.16.0", 0x021000FF)


def version() -> str:
    """Return tidelog's version."""
    return metadata.version("tidelog")


def libversion() -> tuple[str, int]:
    """Return librdkafka's version as the clients follow it, as a text and as 0xMMmmrrff: none of it is in here."""
    return _LIBRDKAFKA
