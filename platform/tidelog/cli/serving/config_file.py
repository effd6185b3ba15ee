"""A broker's configuration file: Kafka's properties, or TOML."""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tidelog.commands.failures import UsageProblemError
from tidelog.log.base.properties import properties


def read_config(path: str) -> dict[str, str]:
    """{key: value} of a file: TOML where its name ends in .toml, else properties. Raises `UsageProblemError`."""
    try:
        text = Path(path).read_text("utf-8")
    except OSError as e:
        raise UsageProblemError(f"{path} can't be read: {e.strerror}.") from e
    except UnicodeDecodeError as e:
        raise UsageProblemError(f"{path} is no text in UTF-8: {e.reason} at byte {e.start}.") from e
    if not path.endswith(".toml"):
        return properties(text)
    try:
        return dict(_flat(tomllib.loads(text), ""))
    except tomllib.TOMLDecodeError as e:
        raise UsageProblemError(
            f"{path} is no TOML: {e}. A key that is also the beginning of others is put between quotes, as in"
            ' "max.connections" = 100.'
        ) from e


def _flat(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    """The values of a table and those within it: `ssl.keystore.location` may be written with dots or in tables."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, _text(value)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(_text, value)) if isinstance(value, list) else str(value)
